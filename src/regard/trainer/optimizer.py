"""What of a model learns, and how: adapters, optimizers (torch's, fused where possible), schedules, averages.

Only matrices decay; biases and gains do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, assert_never

import torch
from torch import Tensor, nn

from regard.errors import SettingsError, did_you_mean
from regard.nn.embeddings import Embedding, OutputLayer
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.settings import TrainSettings

# What of a model learns: all of it, all but some parts, or low-rank additions to its matrices (LoRA).

EMBEDDINGS = "embeddings"  # of both sides, wherever they are


class Adapters(nn.Module):
    """``W = W₀ + α/r · B A`` for the matrices in the layers of a Transformer, A (r, in) and B (out, r) learned (Hu et
    al., 2021).

    The model holds W, not A and B: its forward pass, validation and checkpoints are those of ordinary weights. The
    gradient of W gives those of A and B, ``α/r · Bᵀ dW`` and ``α/r · dW Aᵀ``; after each step W is computed again.
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
        """Take the present matrices as W₀."""
        self._first = [matrix.detach().clone() for matrix in self._matrices]

    @torch.no_grad()
    def project(self) -> None:
        """Compute the adapters' gradients from those of the matrices."""
        for matrix, down, up in zip(self._matrices, self.down, self.up, strict=True):
            if matrix.grad is not None:
                down.grad = self.scale * (up.T @ matrix.grad)
                up.grad = self.scale * (matrix.grad @ down.T)
                matrix.grad = None

    @torch.no_grad()
    def merge(self) -> None:
        """Compute the matrices from W₀ and the adapters."""
        for matrix, first, down, up in zip(self._matrices, self._first, self.down, self.up, strict=True):
            matrix.copy_(torch.addmm(first, up, down, alpha=self.scale))


def restrict(model: nn.Module, settings: TrainSettings) -> Adapters | None:
    """Freeze the parts of a model that the settings name, or all but its adapters, which are returned."""
    frozen = _frozen(model, settings.freeze)
    if settings.adapt.kind == "lora":
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
    """The ids of the parameters of some parts; a shared parameter is in every part that has it."""
    named = list(model.named_parameters(remove_duplicate=False))
    frozen = set[int]()
    for part in parts:
        inside = {id(parameter) for name, parameter in named if _is_in(name, part)}
        if not inside:
            known = {".".join(name.split(".")[:depth]) for name, _ in named for depth in (1, 2)}
            raise SettingsError(f"train.freeze = {part}: no such part; {did_you_mean(part, {EMBEDDINGS, *known})}")
        frozen |= inside
    return frozen


def _is_in(name: str, part: str) -> bool:
    return "embedding" in name.split(".") if part == EMBEDDINGS else f"{name}.".startswith(f"{part}.")


def _matrices(model: nn.Module) -> list[Tensor]:
    """Of all linear maps in the layers of a Transformer: attention and feed-forward."""
    layers = [module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer)]
    return [each.weight for layer in layers for each in layer.modules() if isinstance(each, nn.Linear)]


class Together(torch.optim.Optimizer):
    """Several optimizers, each for parameters of its own, that are stepped, saved and loaded as one."""

    def __init__(self, *members: torch.optim.Optimizer) -> None:
        super().__init__([group for member in members for group in member.param_groups], {})
        self.members = members
        self.param_groups = [group for member in members for group in member.param_groups]
        self._share()

    def _share(self) -> None:
        """Let the members have the groups and states that are here."""
        groups = iter(self.param_groups)
        for member in self.members:
            member.param_groups, member.state = [next(groups) for _ in member.param_groups], self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        del closure
        for member in self.members:
            for name in ("found_inf", "grad_scale"):  # what a captured step sets, to leave out steps
                if hasattr(self, name):
                    setattr(member, name, getattr(self, name))
            member.step()


class BatchedMuon(torch.optim.Muon):
    """Torch's Muon (`match_rms_adamw`) for all matrices of a shape at once; the learning rate may be on the device.

    Torch brings one matrix after another to singular values near one, with twenty small kernels each; here the matrices
    of a shape are one batch, and those that are higher than wide lie on their side. A gradient that is not finite
    (``found_inf``) changes nothing. The written-out twin is torch's own (`tests/parity/test_muon.py`).
    """

    found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        del closure
        (group,) = self.param_groups
        taken = 1.0 if self.found_inf is None else 1 - self.found_inf
        rate = group["lr"] * taken
        for (height, width), matrices in _by_shape(group["params"]).items():
            updates = self._updates(matrices, group["momentum"], taken)
            batch = updates if height <= width else updates.mT
            changes = _orthogonal(batch, group) * (-rate * 0.2 * max(height, width) ** 0.5)  # as large as AdamW's
            upright = changes if height <= width else changes.mT
            if group["weight_decay"]:
                torch._foreach_mul_(matrices, 1 - rate * group["weight_decay"])
            torch._foreach_add_(matrices, list(upright.unbind()))

    def _updates(self, matrices: list[Tensor], momentum: float, taken: Tensor | float) -> Tensor:
        """Nesterov's: the gradients, with what the momenta are after them. (B, D, K)"""
        gradients = torch.stack([each.grad for each in matrices if each.grad is not None])
        if isinstance(taken, Tensor):
            gradients.masked_fill_(taken == 0, 0.0)
        momenta = self._momenta(matrices)
        momenta.lerp_(gradients, (1 - momentum) * taken)
        return gradients.lerp_(momenta, momentum)

    def _momenta(self, matrices: list[Tensor]) -> Tensor:
        """Those of matrices of one shape as one tensor, of which the state of each matrix has a part."""
        states = [self.state[each] for each in matrices]
        for state, each in zip(states, matrices, strict=True):
            if not state:
                state["momentum_buffer"] = torch.zeros_like(each)
        parts = [state["momentum_buffer"] for state in states]
        whole: Tensor | None = parts[0]._base
        shape = len(parts), *parts[0].shape
        if whole is None or whole.shape != shape or any(part._base is not whole for part in parts):
            whole = torch.stack(parts)  # the first step, or the first after a checkpoint
            for state, part in zip(states, whole.unbind(), strict=True):
                state["momentum_buffer"] = part
        return whole


def _by_shape(matrices: list[Tensor]) -> dict[torch.Size, list[Tensor]]:
    """Those that have gradients."""
    found: dict[torch.Size, list[Tensor]] = {}
    for each in matrices:
        if each.grad is not None:
            found.setdefault(each.shape, []).append(each)
    return found


def _orthogonal(batch: Tensor, how: Mapping[str, Any]) -> Tensor:
    """Matrices (B, D, K), D ≤ K, with the same singular vectors and all singular values near one: Newton and Schulz's
    iteration ``X ← a X + (b A + c A²) X``, ``A = X Xᵀ`` in bfloat16 (Jordan, 2024)."""
    a, b, c = how["ns_coefficients"]
    x = batch.bfloat16()
    x /= x.norm(dim=(1, 2), keepdim=True).clamp(min=how["eps"])
    for _ in range(how["ns_steps"]):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.to(batch.dtype)


def _inner(model: nn.Module) -> set[int]:
    """The matrices inside a model: not its embeddings, its output layer or what is tied to them."""
    outside = [module for module in model.modules() if isinstance(module, Embedding | OutputLayer)]
    edges = {id(parameter) for module in outside for parameter in module.parameters()}
    named = model.named_parameters()
    return {id(each) for name, each in named if each.dim() == 2 and _decays(name, each) and id(each) not in edges}


def _muon(
    groups: list[dict[str, Any]],
    inner: set[int],
    rate: float | Tensor,
    *,
    momentum: float,
    weight_decay: float,
    betas: tuple[float, float],
) -> torch.optim.Optimizer:
    """Muon for ``inner`` matrices: their momentum is brought to a matrix with all singular values near one (Jordan,
    2024), and scaled so that AdamW's learning rates fit (Liu et al., 2025); AdamW for all others."""
    found = [each for group in groups for each in group["params"] if id(each) in inner]
    rest = [{**group, "params": [each for each in group["params"] if id(each) not in inner]} for group in groups]
    rest = [group for group in rest if group["params"]]
    members, capturable = list[torch.optim.Optimizer](), isinstance(rate, Tensor)
    if found:
        own, scaled = rate.clone() if isinstance(rate, Tensor) else rate, "match_rms_adamw"
        members.append(
            BatchedMuon(found, lr=own, momentum=momentum, weight_decay=weight_decay, adjust_lr_fn=scaled)  # type: ignore[arg-type]
        )
    if rest:
        members.append(torch.optim.AdamW(rest, lr=rate, betas=betas, eps=1e-9, fused=True, capturable=capturable))
    return Together(*members)


def make_optimizer(
    kind: Literal["adam", "adamw", "sgd", "muon"],
    model: nn.Module,
    *,
    weight_decay: float,
    momentum: float,
    second_moment: float,
    capturable: bool = False,
) -> torch.optim.Optimizer:
    """``capturable`` keeps step counts and the learning rate on the device, for CUDA graphs."""
    learning = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    matrices = [parameter for name, parameter in learning if _decays(name, parameter)]
    vectors = [parameter for name, parameter in learning if not _decays(name, parameter)]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    rate: float | Tensor = torch.zeros((), device=learning[0][1].device) if capturable else 0.0
    betas = (0.9, second_moment)
    match kind:
        case "adam":
            return torch.optim.Adam(groups, lr=rate, betas=betas, eps=1e-9, fused=True, capturable=capturable)
        case "adamw":
            return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=1e-9, fused=True, capturable=capturable)
        case "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=momentum, fused=True)
        case "muon":
            how = {"momentum": momentum, "weight_decay": weight_decay}
            return _muon(groups, _inner(model), rate, betas=betas, **how)
        case _:
            assert_never(kind)


def _decays(name: str, parameter: Tensor) -> bool:
    """Whether it is a matrix. A score's bias and sharpness are not, although they have an axis for heads."""
    return parameter.dim() > 1 and name.rpartition(".")[2] not in {"bias", "sharpness"}


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step; in place where a captured graph reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


# Learning rates over time: a warm-up from zero, then one of five schedules.

DECAYING = ("cosine", "linear")  # these end at zero: training beyond that starts them again


def learning_rate(settings: TrainSettings, width: int, step: int, progress: float) -> float:
    """At step 1, 2, …, for a model of this width; ``progress`` is the share of the training that is done."""
    rate, warmup = settings.rate, settings.warmup
    rise = min(1.0, step / warmup) if warmup else 1.0
    match settings.schedule:
        case "constant":
            return rate * rise
        case "noam":  # Vaswani et al. (2017), eq. 3
            slowest = step**-0.5 if not warmup else min(step**-0.5, step * warmup**-1.5)
            return rate * width**-0.5 * slowest
        case "inverse_square_root":
            return rate * min(rise, (max(warmup, 1) / step) ** 0.5)
        case "cosine":
            return rate * rise * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
        case "linear":
            return rate * rise * max(0.0, 1 - progress)
        case _:
            assert_never(settings.schedule)


# Averages of the weights: often better than the weights themselves. Training goes on from the weights.

Weights = dict[str, Tensor]


class MovingAverage:
    """``average ← decay · average + (1 − decay) · weights`` after each step.

    The decay of step n is at most ``(1 + n) / (10 + n)``, so that the random beginning soon has no weight.
    """

    def __init__(self, weights: Weights, decay: float) -> None:
        self.decay = decay
        self.floating = [name for name, tensor in weights.items() if tensor.is_floating_point()]
        self._weights = [weights[name] for name in self.floating]
        self._average = [tensor.clone() for tensor in self._weights]

    def share(self, step: int) -> float:
        """How much of the weights goes into the average at this step."""
        return 1 - min(self.decay, (1 + step) / (10 + step))

    @torch.no_grad()
    def update(self, share: Tensor | float) -> None:
        if isinstance(share, Tensor):
            differences = torch._foreach_sub(self._weights, self._average)
            torch._foreach_mul_(differences, share)
            torch._foreach_add_(self._average, differences)
        else:
            torch._foreach_lerp_(self._average, self._weights, share)

    def weights(self) -> Weights:
        return dict(zip(self.floating, self._average, strict=True))

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, tensor in self.weights().items():
            tensor.copy_(weights[name])


def mean_weights(snapshots: list[Mapping[str, Tensor]]) -> Weights:
    """The mean of several sets of weights, computed in float64."""
    names = [name for name, tensor in snapshots[0].items() if tensor.is_floating_point()]
    return {
        name: torch.stack([snapshot[name].double() for snapshot in snapshots]).mean(0).to(snapshots[0][name].dtype)
        for name in names
    }


@contextmanager
def swapped(weights: Weights, average: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with averaged weights inside the block."""
    kept = {name: weights[name].clone() for name in average}
    with torch.no_grad():
        for name, tensor in average.items():
            weights[name].copy_(tensor)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, tensor in kept.items():
                weights[name].copy_(tensor)
