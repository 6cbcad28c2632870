"""The memory of a process that computes for long, and with ever new shapes."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's own figures are read")

BEGIN = """
import ctypes
from regard.nn.fast.allocator import remember_few_shapes

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"

class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Figures

def used():
    return library.mallinfo2().uordblks
"""

SHAPES = """
import torch

remember_few_shapes()
lstm = torch.nn.LSTM(16, 16, batch_first=True)
found = []
with torch.inference_mode():
    for rows in range(1, 641):
        lstm(torch.zeros(rows, 1, 16))
        if rows in (160, 640):
            found.append(used())
print(found[1] - found[0])
"""


def printed(program: str) -> int:
    return int(subprocess.run([sys.executable, "-c", BEGIN + program], check=True, capture_output=True).stdout)


def test_an_lstm_that_meets_ever_new_shapes_keeps_programs_of_few() -> None:
    """480 more shapes than 160 take 104 MiB where all are remembered."""
    assert printed(SHAPES) < 2 << 20
