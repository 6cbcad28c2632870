"""Attention over short sequences on a GPU: Regard's own program against torch's kernels, forward and backward.

    python bench/short_attention.py [--tokens 8192 32768] [--warps 32=2 128=4] [--ledger]

Each contestant is captured as a CUDA graph and replayed, in turn; the figure is the median of the microseconds of a
forward and a backward pass over so many tokens, 8 heads of 64 features in bfloat16, in rows of one length with up to
six tokens of padding. Before that, contexts and gradients are compared with the written-out ones in float32: the
distance as a share of their norm, of ours and of torch's. ``--warps`` tries other numbers of warps by size of a block.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ledger import enter
from regard.nn.attention import softmax
from regard.nn.fast import short_attention, short_kernels

HEADS, WIDTH = 8, 64
SCALE = WIDTH**-0.5
KERNELS = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
           "cudnn": SDPBackend.CUDNN_ATTENTION}  # fmt: skip
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def written_out(mask: Tensor | None, *, causal: bool) -> Attend:
    def attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query, keys, values = query.float(), keys.float(), values.float()
        scores = query @ keys.mT * SCALE
        seen = None if mask is None else mask[:, None, None]
        if causal:
            places = torch.arange(scores.shape[-1], device=scores.device)
            seen = places <= places[:, None]
        return softmax(scores, seen) @ values

    return attend


def ours(mask: Tensor | None, *, causal: bool) -> Attend:
    return lambda *given: short_attention.attend(*given, mask, causal=causal, scale=SCALE)


def torchs(kernel: str, mask: Tensor | None, *, causal: bool) -> Attend:
    seen = None if mask is None else mask[:, None, None]

    def attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        with sdpa_kernel([KERNELS[kernel]]):
            return F.scaled_dot_product_attention(query, keys, values, attn_mask=seen, is_causal=causal)

    return attend


def distances(attend: Attend, exact: Attend, given: list[Tensor], gradient: Tensor) -> list[float]:
    """Of the contexts and of the three gradients, as shares of their norms."""
    found = []
    for one in (attend, exact):
        out = one(*given)
        found.append([out.detach(), *torch.autograd.grad(out, given, gradient.to(out.dtype))])
    pairs = zip(*found, strict=True)
    return [round(float((a.float() - b.float()).norm() / b.float().norm()), 5) for a, b in pairs]


def captured(attend: Attend, given: list[Tensor], gradient: Tensor) -> torch.cuda.CUDAGraph:
    def both() -> None:
        torch.autograd.grad(attend(*given), given, gradient)

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        both()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        both()
    return graph


def microseconds(graph: torch.cuda.CUDAGraph, times: int = 20) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    begin.record()  # type: ignore[no-untyped-call]
    for _ in range(times):
        graph.replay()
    end.record()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    return 1000 * begin.elapsed_time(end) / times  # type: ignore[no-untyped-call,no-any-return]


def measure(tokens: int, length: int, *, causal: bool, rounds: int) -> dict[str, object]:
    torch.manual_seed(1)
    rows = tokens // length
    shape = rows, length, HEADS, WIDTH
    drawn = [torch.randn(shape, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for _ in range(4)]
    given, gradient = [each.requires_grad_() for each in drawn[:3]], drawn[3]
    lengths = torch.randint(max(1, length - 6), length + 1, (rows,), device="cuda")
    mask = None if causal else torch.arange(length, device="cuda") < lengths[:, None]
    ways = {"regard": ours(mask, causal=causal)}
    ways |= {name: torchs(name, mask, causal=causal) for name in KERNELS if causal or name != "flash"}
    exact = written_out(mask, causal=causal)
    errors = {name: distances(way, exact, given, gradient) for name, way in ways.items()}
    graphs = {name: captured(way, given, gradient) for name, way in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, graph in graphs.items():
            times[name].append(microseconds(graph))
    found = {name: round(statistics.median(each), 1) for name, each in times.items()}
    ratio = min(value for name, value in found.items() if name != "regard") / found["regard"]
    return {"tokens": tokens, "length": length, "causal": causal, "microseconds": found,
            "times_fastest": round(ratio, 2), "distance": errors}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Attention over short sequences on a GPU.")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 24, 32, 48, 64, 96, 128])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warps", nargs="*", default=[], metavar="SIZE=NUMBER")
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    short_kernels.WARPS.update({int(size): int(number) for size, number in (each.split("=") for each in asked.warps)})
    for tokens in asked.tokens:
        for length in asked.lengths:
            for causal in (False, True):
                row = measure(tokens, length, causal=causal, rounds=asked.rounds)
                print(json.dumps(row), flush=True)
                if asked.ledger:
                    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
                    enter("short-attention", about | row, "python bench/short_attention.py")


if __name__ == "__main__":
    main()
