"""Modules whose weights are about to be read from a file need no random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_DRAWS = {Tensor.normal_, Tensor.uniform_}  # what all initialisers call,
_WAYS = {nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_}  # unless torch dispatches one call earlier


class Unset(TorchFunctionMode):
    """Inside this, drawing weights leaves them as they lie in memory: ``with Unset(): model = build(…)``."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if func in _DRAWS or func in _WAYS:
            return args[0] if args else given["tensor"]
        return func(*args, **given)
