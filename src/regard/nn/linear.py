"""The one way weights of a linear map begin: Glorot and Bengio (2010) uniform, bias at zero."""

from __future__ import annotations

from torch import nn


def linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """``y = W x + b`` with ``W ~ U(±√(6 / (inputs + outputs)))``."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
