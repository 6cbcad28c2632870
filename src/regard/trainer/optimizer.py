"""Optimizers: torch's own, fused where that exists. Only matrices decay; biases and gains do not."""

from __future__ import annotations

from typing import Literal, assert_never

import torch
from torch import Tensor, nn


def make_optimizer(
    kind: Literal["adam", "adamw", "sgd"],
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
        case _:
            assert_never(kind)


def _decays(name: str, parameter: Tensor) -> bool:
    """Whether it is a matrix. A score's bias and sharpness have an axis for heads, and are none all the same."""
    return parameter.dim() > 1 and name.rpartition(".")[2] not in {"bias", "sharpness"}


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of the next step, in place where a captured graph reads it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate
