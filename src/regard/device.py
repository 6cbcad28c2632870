"""Which device computes, and with how many threads."""

from __future__ import annotations

import os
import shutil
import sysconfig
import threading
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

from regard.errors import SettingsError

_one_by_one = threading.Lock()


def pick_device(name: str = "auto") -> torch.device:
    """``auto`` is the GPU if there is one; of several, each of torchrun's processes takes one."""
    if name == "auto" and not torch.cuda.is_available():
        return torch.device("cpu")
    device = _named("cuda" if name == "auto" else name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"device = {name}: torch sees no GPU here; use cpu")
    if device.type == "cuda" and device.index and device.index >= (count := torch.cuda.device_count()):
        raise SettingsError(f"device = {name}: no such GPU here; the last one is cuda:{count - 1}")
    own = os.environ.get("LOCAL_RANK", "")
    if device != torch.device("cuda") or not own.isdecimal():
        return device
    count = torch.cuda.device_count()
    if count == 1 and os.environ.get("CUDA_VISIBLE_DEVICES"):  # each process sees only its own GPU
        return torch.device("cuda", 0)
    if int(own) >= count:
        there = "is 1 GPU" if count == 1 else f"are {count} GPUs"
        raise SettingsError(f"LOCAL_RANK = {own}: there {there} here, one for each process; start {count} at the most")
    return torch.device("cuda", int(own))


def _named(name: str) -> torch.device:
    with suppress(RuntimeError):  # torch's, of a name that it does not know
        if (device := torch.device(name)).type in {"cpu", "cuda"}:
            return device
    raise SettingsError(f"device = {name}: no such device; auto, cpu and cuda are, and cuda:1 for the second GPU")


def can_compile() -> bool:
    """Whether kernels can be compiled here: there is Triton and, for the code that calls them, a C compiler that it
    finds, and Python's headers."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
    return find_spec("triton") is not None and bool(compiler) and headers


def runs_programs() -> bool:
    """Whether Triton's programs for bfloat16 can be compiled and run here."""
    return _found()


# `torch.compiler.assume_constant_result` does the same, and imports the whole compiler for it, which takes a second.
runs_programs._dynamo_marked_constant = True  # type: ignore[attr-defined]


@cache
def _found() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0) and can_compile()


def take_threads(count: int) -> None:
    """Set torch's number of threads for this thread; other threads keep theirs.

    Every thread that computes has a team of threads. If all teams together have more threads than there are cores, each
    is half as fast, also while the others do nothing. Torch's number belongs to the process, and a thread copies it at
    its first use; so this thread sets and uses it, and another thread sets it back.
    """
    with _one_by_one:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        other = threading.Thread(target=torch.set_num_threads, args=(before,))
        other.start()
        other.join()


def matrix_rate(device: torch.device, kind: torch.dtype) -> float:
    """Operations a second of a matrix product, the best of five."""
    matrix = torch.randn(1024, 1024, device=device, dtype=kind)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        product = matrix @ matrix
        float(product[0, 0])  # waits for the device
        best = min(best, time.perf_counter() - began)
    return 2 * 1024**3 / best
