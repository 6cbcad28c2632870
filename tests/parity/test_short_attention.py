"""Triton's programs for short sequences against attention as it is written out.

Without a GPU Triton's interpreter runs them, in a process of its own: it must be asked for before Triton is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

import corpora_for_tests as small
from regard.data.batches import Batches
from regard.device import can_compile, runs_programs
from regard.models import transformer
from regard.nn import attention, layers
from regard.nn.attention import Attention, InnerScore, Projections, softmax
from regard.nn.fast import short_attention
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.trainer.start import open_task

needs_triton = pytest.mark.skipif(not can_compile(), reason="no Triton, or no C compiler")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
CASES = [  # steps, keys, causal, masked: blocks of 32, 64 and 128
    *((7, 11, False, True), (13, 13, True, False), (41, 5, False, True), (37, 67, False, True), (1, 5, False, False)),
]


def tensors(steps: int, length: int, device: str, dtype: torch.dtype) -> list[Tensor]:
    """Queries, keys, values and a gradient; keys and values as slices of one tensor, as projections give them."""
    rows, heads, width = 3, 2, 16
    query, given = (torch.randn(rows, steps, heads, width) for _ in range(2))
    keys, values = torch.randn(rows, length, 2, heads, width).unbind(2)
    made = [each.to(device, dtype).transpose(1, 2) for each in (query, keys, values, given)]
    return [*(each.requires_grad_() for each in made[:3]), made[3]]


def distances(steps: int, length: int, causal: bool, masked: bool, device: str, dtype: torch.dtype) -> list[float]:
    """The largest differences of contexts and gradients, as shares of the largest value."""
    torch.manual_seed(1)
    query, keys, values, given = tensors(steps, length, device, dtype)
    lengths = torch.tensor([length, max(1, length // 2), 0], device=device)  # the last row may look at nothing
    mask = torch.arange(length, device=device) < lengths[:, None] if masked else None
    fast = short_attention.attend(query, keys, values, mask, causal=causal, scale=0.3)
    seen = mask[:, None, None] if mask is not None else None
    if causal:
        places = torch.arange(length, device=device)
        seen = places <= places[:, None]
    exact = softmax(query.float() @ keys.float().mT * 0.3, seen) @ values.float()
    found = [[out, *torch.autograd.grad(out, (query, keys, values), given.to(out.dtype))] for out in (fast, exact)]
    return [float((a.float() - b.float()).abs().max() / b.abs().max()) for a, b in zip(*found, strict=True)]


def check(device: str, dtype: torch.dtype, tolerance: float) -> None:
    for case in CASES:
        assert max(distances(*case, device, dtype)) < tolerance, case


@needs_triton
def test_programs_for_short_sequences_give_the_written_out_contexts_and_gradients() -> None:
    """In float32, and in float16, in which products are rounded before they are added up."""
    code = (
        "import torch, test_short_attention as own;"
        "own.check('cpu', torch.float32, 1e-5); own.check('cpu', torch.float16, 5e-3);"
        "own.check_layers(); print('equal')"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent), *sys.path])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stderr


def check_layers() -> None:
    """A step through the programs and through maps in one product, as on a GPU, against the usual one; compiled, it is
    one graph for each kind of part."""
    kind = ("model.dropout=0.0", "model.positions=rotary", "model.activation=swiglu")
    with TemporaryDirectory() as folder:
        settings = small.settings("transformer-tiny", *kind, *small.animals(Path(folder)))
        task = open_task(Run.create(Path(folder) / "run", settings), small.Notes().tell).train()
    batches = [Tensors.of(batch, torch.device("cpu")) for batch in Batches(task.train_examples, 64).epoch(0)]
    batches = [batch for batch in batches if batch.source.shape != batch.target_in.shape][:3]

    def gradients(batch: Tensors) -> list[Tensor]:
        loss = task(batch, static=True)
        return [loss.detach(), *torch.autograd.grad(loss, list(task.parameters()))]

    expected = [gradients(batch) for batch in batches]
    short_attention.DEVICE, short_attention.TYPES = "cpu", (torch.float32,)
    with patch("torch.cuda.is_available", lambda: True), patch("torch.cuda.get_device_capability", lambda: (9, 0)):
        assert runs_programs()  # and remembered
    for module in (attention, layers, transformer):
        module.together = layers.in_one_product  # type: ignore[attr-defined]
    for compiled in (False, True):
        if compiled:
            task.compile_parts("aot_eager")
        for batch, usual in zip(batches, expected, strict=True):
            torch.testing.assert_close(gradients(batch), usual, atol=2e-5, rtol=1e-4)
    assert counters["stats"]["unique_graphs"] == 3, counters["stats"]


@needs_triton
@needs_gpu
def test_programs_for_short_sequences_give_the_same_on_a_gpu() -> None:
    check("cuda", torch.bfloat16, 2e-2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "no GPU"),
        ({"dtype": torch.float32}, "float32 is computed exactly"),
        ({"steps": 129}, "too long"),
        ({"width": 24}, "no power of two"),
        ({"values": 32}, "values of another width"),
        ({"dropout": 0.1}, "weights are dropped"),
    ],
)
def test_other_attention_is_left_to_torch(change: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_attention, "runs_programs", lambda: True)
    shape = 2, 3, int(str(change.get("steps", 7))), int(str(change.get("width", 16)))
    device = "cpu" if why == "no GPU" else "meta"
    monkeypatch.setattr(short_attention, "DEVICE", "cuda" if device == "cpu" else "meta")
    query = torch.zeros(shape, dtype=change.get("dtype", torch.bfloat16), device=device)  # type: ignore[call-overload]
    values = query.repeat(1, 1, 1, 2) if "values" in change else query
    assert not short_attention.can_compute(query, query, values, float(str(change.get("dropout", 0.0))))
    fitting = torch.zeros(2, 3, 7, 16, dtype=torch.bfloat16, device=device)
    assert short_attention.can_compute(fitting, fitting, fitting, 0.0) == (device == "meta")
    with torch.no_grad():
        assert not short_attention.can_compute(fitting, fitting, fitting, 0.0)


@pytest.mark.parametrize(("causal", "padded"), [(False, True), (True, False), (False, False)])
def test_attention_hands_short_sequences_over_with_its_mask_and_scale(
    causal: bool, padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def attend(
        query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool, scale: float
    ) -> Tensor:
        calls.append((mask is not None, causal, scale))
        seen = None if mask is None else mask[:, None, None]
        if causal:
            seen = torch.ones(query.shape[2], keys.shape[2], dtype=torch.bool).tril()
        return softmax(query @ keys.mT * scale, seen) @ values

    own = Attention(InnerScore(0.25), heads=2, projections=Projections(8, 8, 8))
    x, mask = torch.randn(3, 5, 8), torch.arange(5) < torch.tensor([[5], [2], [1]])
    memory = own.remember(x, mask if padded else None, asks=True)
    usual = own(x, memory, causal=causal)
    monkeypatch.setattr(short_attention, "attend", attend)
    monkeypatch.setattr(short_attention, "can_compute", lambda *_: True)
    torch.testing.assert_close(own(x, memory, causal=causal), usual)
    assert calls == [(padded, causal, 0.25)]
    own(x[:, 2:], own.remember(x), first=2, causal=True)  # not square: torch's own
    assert len(calls) == 1
