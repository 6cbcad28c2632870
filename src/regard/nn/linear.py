"""Linear maps: how their weights begin, Glorot and Bengio (2010) uniform with the bias at zero, and several as one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """``y = W x + b`` with ``W ~ U(±√(6 / (inputs + outputs)))``."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def side_by_side(*linears: nn.Linear) -> tuple[Tensor, Tensor]:
    """W and b of several maps of one input as those of one map."""
    return torch.cat([each.weight.detach() for each in linears]), torch.cat([each.bias.detach() for each in linears])
