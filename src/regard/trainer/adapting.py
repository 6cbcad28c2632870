"""What of a model learns: all of it, all but some parts, or low-rank additions to its matrices (LoRA)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from regard.errors import SettingsError, did_you_mean
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.settings import LowRankSettings, TrainSettings

EMBEDDINGS = "embeddings"  # of both sides, wherever they are


class Adapters(nn.Module):
    """``W = W₀ + α/r · B A`` for the matrices in the layers of a Transformer, A (r, in) and B (out, r) learned (Hu et
    al., 2021).

    The model holds W, never the parts of it: its forward pass, validation and checkpoints are those of ordinary
    weights. The gradient of W gives those of A and B, ``α/r · Bᵀ dW`` and ``α/r · dW Aᵀ``; after each step W is put
    together again.
    """

    def __init__(self, matrices: Iterable[Tensor], rank: int, alpha: float) -> None:
        super().__init__()
        self.scale = alpha / rank
        self._matrices = list(matrices)  # the model's own; in a list, a module does not take them for its parameters
        self.down, self.up = nn.ParameterList(), nn.ParameterList()
        for matrix in self._matrices:
            outputs, inputs = matrix.shape
            self.down.append(nn.Parameter(torch.randn(rank, inputs, device=matrix.device) * inputs**-0.5))
            self.up.append(nn.Parameter(torch.zeros(outputs, rank, device=matrix.device)))
        self.settle()

    def settle(self) -> None:
        """The matrices as they are now are those that are added to."""
        self._first = [matrix.detach().clone() for matrix in self._matrices]

    @torch.no_grad()
    def project(self) -> None:
        """The gradients of the matrices become those of the adapters."""
        for matrix, down, up in zip(self._matrices, self.down, self.up, strict=True):
            if matrix.grad is not None:
                down.grad = self.scale * (up.T @ matrix.grad)
                up.grad = self.scale * (matrix.grad @ down.T)
                matrix.grad = None

    @torch.no_grad()
    def merge(self) -> None:
        """The matrices with what the adapters add to them now."""
        for matrix, first, down, up in zip(self._matrices, self._first, self.down, self.up, strict=True):
            matrix.copy_(torch.addmm(first, up, down, alpha=self.scale))


def restrict(model: nn.Module, settings: TrainSettings) -> Adapters | None:
    """Let only those parts of a model learn that shall; what does not has no gradient. Returns its adapters, if any."""
    frozen = _frozen(model, settings.freeze)
    if isinstance(settings.adapt, LowRankSettings):
        matrices = [matrix for matrix in _matrices(model) if id(matrix) not in frozen]
        if not matrices:
            raise SettingsError(
                "train.adapt.kind = lora: adapts the layers of a Transformer, and here is none that learns; use 'none'"
            )
        adapters = Adapters(matrices, settings.adapt.rank, settings.adapt.alpha)
        frozen = {id(parameter) for parameter in model.parameters()} - {id(matrix) for matrix in matrices}
    else:
        adapters = None
    for parameter in model.parameters():
        parameter.requires_grad = id(parameter) not in frozen
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SettingsError(f"train.freeze = {', '.join(settings.freeze)}: leaves nothing that learns; freeze less")
    return adapters


def _frozen(model: nn.Module, parts: Iterable[str]) -> set[int]:
    """Parameters of some parts; what is shared with others is in all of them."""
    named = list(model.named_parameters(remove_duplicate=False))
    found = set[int]()
    for part in parts:
        inside = {id(parameter) for name, parameter in named if _is_in(name, part)}
        if not inside:
            known = {".".join(name.split(".")[:depth]) for name, _ in named for depth in (1, 2)}
            raise SettingsError(f"train.freeze = {part}: no such part; {did_you_mean(part, {EMBEDDINGS, *known})}")
        found |= inside
    return found


def _is_in(name: str, part: str) -> bool:
    return "embedding" in name.split(".") if part == EMBEDDINGS else f"{name}.".startswith(f"{part}.")


def _matrices(model: nn.Module) -> list[Tensor]:
    """Of all linear maps in the layers of a Transformer: attention and feed-forward."""
    layers = [module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer)]
    return [each.weight for layer in layers for each in layer.modules() if isinstance(each, nn.Linear)]
