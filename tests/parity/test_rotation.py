"""Rotary positions as complex numbers are those that are written out, with their gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.nn.embeddings import Rotary
from regard.nn.fast.rotation import rotate

B, H, T, K = 3, 2, 7, 10


def heads(kind: torch.dtype) -> Tensor:
    """(B, H, T, K) as attention has them: features of all heads side by side in memory."""
    return torch.randn(B, T, H, K, dtype=kind).transpose(1, 2)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("first", [0, 5])
def test_complex_products_are_the_rotation_that_is_written_out(kind: torch.dtype, first: int) -> None:
    rotary = Rotary(K).to(torch.float32 if kind == torch.bfloat16 else kind)
    x, by = heads(kind), rotary.tables(first, first + T)
    found, expected, wanted = [], [], torch.randn(B, H, T, K, dtype=kind)
    for turned, kept in ((rotate, found), (rotary.turn, expected)):
        leaf = x.clone().requires_grad_()
        out = turned(leaf, *by)
        (out * wanted).sum().backward()
        kept += [out.detach(), leaf.grad]
    precision = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 0.03}[kind]  # a bit of bfloat16: 0.4 %
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype == kind
        torch.testing.assert_close(one, other, atol=precision, rtol=precision)


def test_what_is_compiled_is_written_out() -> None:
    rotary, x = Rotary(K), heads(torch.float32)
    compiled = torch.compile(rotary, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, 5), rotary(x, 5), atol=1e-6, rtol=1e-6)
