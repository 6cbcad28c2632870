"""Memory that one step has freed is used by the next, and does not grow with the number of steps.

A step on a CPU makes and frees hundreds of large tensors. glibc takes each from the system and gives it back, and the
system clears every page again: about 60,000 page faults in a step of a small Transformer, 5 % of its time.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_LARGE = 1 << 30  # bytes: blocks up to this size stay in the memory of the process


def keep_freed() -> None:
    """Let glibc's allocator keep freed memory; other allocators are not changed."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    set_option(_MMAP_THRESHOLD, _LARGE)
    set_option(_TRIM_THRESHOLD, _LARGE)


# A long file: as many lines as there are, in the memory of a few thousand.

_SHAPES = "16"  # with 16, 32, 128 and 1,024 the CPU time of a greedy search differs by less than 4 %


def remember_few_shapes() -> None:
    """Let oneDNN keep programs for 16 shapes of input instead of 1,024. Call it before the first computation.

    A search shrinks its batch as sentences end, so an LSTM meets ever new shapes, and a program takes a quarter of a
    MiB. They lie between large tensors, too, where they keep freed memory from being used again.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _SHAPES)


# Modules whose weights will be read from a file need no random numbers.

_DRAWS = {Tensor.normal_, Tensor.uniform_}  # all initialisers call these,
_WAYS = {nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_}  # unless torch dispatches one call earlier


class Unset(TorchFunctionMode):
    """Weights are not initialised inside this: ``with Unset(): model = build(…)``."""

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
