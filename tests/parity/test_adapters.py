"""Low-rank adapters whose matrices are always merged, against adapters written out beside frozen matrices."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regard
import tiny
from regard.models.generator import EncoderDecoder
from regard.nn.transformer import DecoderLayer, EncoderLayer
from regard.settings import TrainSettings
from regard.settings.reading import read
from regard.text.vocabulary import START
from regard.trainer.optimizer import Adapters, restrict

RATE, STEPS = 0.05, 4
LORA = read(TrainSettings, {"base": "some", "adapt": {"kind": "lora", "rank": 3, "alpha": 5.0}}, "test")


class Beside(nn.Module):
    """``W x + b + α/r · B (A x)``, with W and b as they were."""

    def __init__(self, first: nn.Linear, down: Tensor, up: Tensor, scale: float) -> None:
        super().__init__()
        self.first, self.scale = first, scale
        self.down, self.up = (nn.Parameter(each.detach().clone()) for each in (down, up))

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


def written_out(model: EncoderDecoder, adapters: Adapters) -> list[Beside]:
    """Put adapters beside the linear maps of a model's layers."""
    found = []
    for layer in [each for each in model.modules() if isinstance(each, EncoderLayer | DecoderLayer)]:
        for parent in list(layer.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.Linear):
                    place = len(found)
                    found.append(Beside(child, adapters.down[place], adapters.up[place], adapters.scale))
                    setattr(parent, name, found[-1])
    return found


def loss(model: EncoderDecoder) -> Tensor:
    source = tiny.rows([5, 3], tiny.SOURCE_SIZE, 1)
    target = tiny.rows([4, 6], tiny.TARGET_SIZE, 2, first=START)
    return F.cross_entropy(model(source, target)[:, :-1].flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_merged_is_adapted(activation: str, optimizer: type[torch.optim.Optimizer]) -> None:
    """Step after step: losses, adapters, and the matrices that are kept."""
    torch.manual_seed(0)
    settings = tiny.settings("transformer-tiny", f"model.activation={activation}", "model.dropout=0.0")
    model = regard.encoder_decoder(settings.model, tiny.TARGET_SIZE, tiny.TARGET_SIZE).double()
    twin = deepcopy(model).requires_grad_(requires_grad=False)
    adapters = restrict(model, LORA)
    assert adapters is not None
    adapters.double()
    beside = written_out(twin, adapters)
    ours = optimizer(adapters.parameters(), lr=RATE)  # type: ignore[call-arg]
    theirs = optimizer([p for p in twin.parameters() if p.requires_grad], lr=RATE)  # type: ignore[call-arg]
    for _ in range(STEPS):
        losses = loss(model), loss(twin)
        torch.testing.assert_close(*losses, rtol=1e-10, atol=1e-12)
        for total, chosen in zip(losses, (ours, theirs), strict=True):
            chosen.zero_grad()
            total.backward()
            if chosen is ours:
                adapters.project()
            chosen.step()
        adapters.merge()
    assert len(beside) == len(adapters.up) > 0
    for each, down, up, matrix in zip(beside, adapters.down, adapters.up, adapters._matrices, strict=True):
        torch.testing.assert_close(each.down, down, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(each.up, up, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(each.first.weight + each.scale * each.up @ each.down, matrix, rtol=1e-8, atol=1e-10)
        assert bool(each.up.any())


def test_what_is_not_adapted_does_not_learn() -> None:
    model = deepcopy(tiny.translator("transformer-tiny"))
    adapters = restrict(model, LORA)
    assert adapters is not None
    adapters.double()
    loss(model).backward()
    given = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert given == {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert all(name.endswith("weight") and ".layers." in name and "residuals" not in name for name in given)
