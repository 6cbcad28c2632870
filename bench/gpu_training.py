"""Training speed on one GPU: Regard's kinds of step against a plain Hugging Face loop, on the same weights and batches.

    python bench/gpu_training.py DATA [--tokens 8192 32768] [--pairs 60000] [--rounds 5] [--ledger]
    python bench/gpu_training.py --tokens 32768 --profile "graph, compiled"          # where a step's time goes
    python bench/gpu_training.py --tokens 32768 --kinds "graph, compiled" "graph, compiled, torch, drawn"

DATA has train.de.gz and train.en.gz; without it, rows are random, in eight shapes from 16 to 128 tokens. All
contestants begin as the same Marian model (6+6 layers, width 512, feed-forward 1024, 8,000 joint pieces) and see the
same padded batches in the same order, already on the device, in bf16 autocast with fused AdamW and clipping. They
take turns: a round of each, then the next round; the figure is the median over rounds of padded source and target
tokens per second, with the spread. Before that, with dropout off, each takes the same first steps from the same
weights, and the losses are printed beside one another. What capturing and compiling cost is shown by itself.

A kind may say more: `cudnn` and `efficient` allow only these kernels of attention, and flash attention, which takes no
mask; with `torch` it chooses. Without any of them, short sequences are computed by `nn.fast.short_attention`. With
`drawn`, dropout is torch's also where it is compiled, which draws a number for each feature.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import regard
from regard.convert.huggingface import from_transformers
from regard.data.batches import Batches, menu_for
from regard.nn.fast import dropout as fast_dropout
from regard.nn.fast import short_attention
from regard.nn.fast.dropout import Dropout
from regard.runs.folder import Run
from regard.settings import TrainSettings
from regard.tasks.task import Tensors
from regard.tasks.translate import TranslateTask
from regard.trainer.optimizer import make_optimizer
from regard.trainer.start import open_task
from regard.trainer.steps import EagerStep, GraphStep

LEDGER = Path(__file__).parent / "ledger.jsonl"
CUDA = torch.device("cuda")
PIECES = 8000
SMOOTHING = 0.1
RATE = 3e-4
FEW = 1000  # examples, with which rows are random
Take = Callable[[Tensors], Tensor]  # a batch in, its summed loss out
KERNELS = {
    "torch": None,
    "cudnn": [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION],
    "efficient": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION],
}
GROUPS = {  # of kernels, by words of their names; the first that fits
    "attention": ("fmha", "flash", "sdpa", "attention"),
    "fused by the compiler": ("triton",),
    "matrix products": ("gemm", "nvjet", "cutlass", "xmma", "cublas", "splitk"),
    "optimizer and clipping": ("multi_tensor", "adam", "lpnorm", "foreach"),
    "other elementwise": ("elementwise", "vectorized", "unrolled", "reduce", "copy", "memcpy", "memset", "cat"),
}


def marian(dropout: float) -> Any:
    """The model of the benchmark, as Hugging Face has it."""
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in SIZES.items()}
    config = transformers.MarianConfig(
        vocab_size=PIECES, d_model=512, max_position_embeddings=512, activation_function="relu", scale_embedding=True,
        dropout=dropout, attention_dropout=0.0, activation_dropout=dropout, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=1, forced_eos_token_id=None, **sizes,
    )  # fmt: skip
    torch.manual_seed(1)
    return transformers.MarianMTModel(config).to(CUDA).train()


SIZES = {"layers": 6, "attention_heads": 8, "ffn_dim": 1024}


def plain_loop(dropout: float) -> Take:
    """What a careful user of `transformers` writes."""
    model = marian(dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)

    def take(batch: Tensors) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(
                input_ids=batch.source, attention_mask=(batch.source != 0).long(), decoder_input_ids=batch.target_in
            ).logits
            targets = batch.target_out.flatten()
            loss = F.cross_entropy(
                logits.flatten(0, 1), targets, ignore_index=0, reduction="sum", label_smoothing=SMOOTHING
            )
        (loss / (targets != 0).sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return take


def regard_step(kind: str, dropout: float, task: TranslateTask) -> Take:
    """One of Regard's steps, from the weights that the plain loop begins with."""
    words = kind.split(", ")
    torch._dynamo.reset()  # the kernels of attention are chosen when a layer is compiled
    model = from_transformers(marian(0.0))[0].to(CUDA)
    for module in model.modules():
        if isinstance(module, Dropout) and module.p:  # attention drops nothing, as there
            module.p = dropout
    learn = TrainSettings(smoothing=SMOOTHING)
    own = TranslateTask(model, task.tokenizers, task.train_examples, task.valid_examples, learn=learn).to(CUDA).train()
    optimizer = make_optimizer(
        "adamw", own, weight_decay=0.0, momentum=0.0, second_moment=0.98, capturable="graph" in words
    )
    chosen = GraphStep if "graph" in words else EagerStep
    step = chosen(own, optimizer, autocast=True, compiled="compiled" in words)
    number = 0

    def take(batch: Tensors) -> Tensor:
        nonlocal number
        number += 1
        with torchs_own(words):
            taken = step([batch], float((batch.target_out != 0).sum()), RATE, number)
        return torch.as_tensor(taken.loss)

    return take


@contextlib.contextmanager
def torchs_own(words: list[str]) -> Iterator[None]:
    """What the words name is computed by torch: attention by some of its kernels, dropout."""
    named = [word for word in words if word in KERNELS]
    allowed = KERNELS[named[0]] if named else None
    with contextlib.ExitStack() as changed:
        if named:
            changed.enter_context(patch.object(short_attention, "LONGEST", 0))
        if allowed:
            changed.enter_context(sdpa_kernel(allowed))
        if "drawn" in words:
            changed.enter_context(patch.object(fast_dropout, "by_hash", F.dropout))
        yield


def prepare(data: Path, pairs: int, folder: Path) -> TranslateTask:
    for side in ("de", "en"):
        with gzip.open(data / f"train.{side}.gz", "rb") as lines:
            (folder / f"train.{side}").write_bytes(b"".join(islice(lines, pairs)))
    settings = regard.load_settings(
        "transformer-base", f"data.source='{folder}/train.de'", f"data.target='{folder}/train.en'",
        f"data.valid_source='{data}/dev.de.gz'", f"data.valid_target='{data}/dev.en.gz'",
        "data.longest=128", "text.tokenizer=bpe", f"text.size={PIECES}", "text.joint=true",
    )  # fmt: skip
    task = open_task(Run.create(folder / "run", settings), lambda line: print(line, flush=True))
    assert isinstance(task, TranslateTask)
    return task


def stand_in(folder: Path) -> TranslateTask:
    """A task whose examples are not read, for rows that are random."""
    settings = regard.load_settings(
        "transformer-tiny", "data.corpus='fable:fr'", "data.pairs=300", "text.tokenizer=word", "text.joint=false"
    )
    task = open_task(Run.create(folder / "run", settings), lambda line: print(line, flush=True))
    assert isinstance(task, TranslateTask)
    return task


def random_batches(budget: int) -> list[Tensors]:
    """One batch of each shape; rows are up to eight tokens shorter than that."""
    drawn = torch.Generator().manual_seed(1)
    made = []
    for length in (16, 24, 32, 40, 56, 72, 96, 128):
        rows = budget // length
        ids = torch.randint(4, PIECES, (2, rows, length), generator=drawn)
        real = torch.arange(length) < length - torch.randint(0, 9, (2, rows, 1), generator=drawn)
        source, target_out = torch.where(real, ids, 0)
        target_in = F.pad(target_out[:, :-1], (1, 0), value=1)
        absent = torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, 0, 0, dtype=torch.bool)
        made.append(Tensors(*(column.to(CUDA) for column in (source, target_in, target_out, *absent))))
    return made


def batches_of(task: TranslateTask, budget: int, count: int) -> list[Tensors]:
    """The first batches of a training, on the device."""
    if len(task.train_examples) < FEW:
        return random_batches(budget)
    menu = menu_for(task.train_examples, budget=budget, size=24, longest=128)
    made = Batches(task.train_examples, budget, seed=1, longest=128, menu=menu).read()
    return [Tensors.of(batch, CUDA) for batch, _ in islice(made, count)]


def timed(take: Take, batches: Iterable[Tensors]) -> tuple[float, int]:
    """Seconds, and padded tokens."""
    torch.cuda.synchronize()
    began, tokens = time.perf_counter(), 0
    for batch in batches:
        take(batch)
        tokens += batch.source.numel() + batch.target_in.numel()
    torch.cuda.synchronize()
    return time.perf_counter() - began, tokens


def contestants(task: TranslateTask, kinds: list[str], dropout: float) -> dict[str, Take]:
    made = {"hugging face": plain_loop(dropout)} if "hugging face" in kinds else {}
    return made | {kind: regard_step(kind, dropout, task) for kind in kinds if kind != "hugging face"}


def curves(task: TranslateTask, kinds: list[str], batches: list[Tensors]) -> dict[str, list[float]]:
    """Losses per token of the same first steps, dropout off."""
    found = {}
    for kind, take in contestants(task, kinds, 0.0).items():
        found[kind] = [round(float(take(batch)) / int((batch.target_out != 0).sum()), 4) for batch in batches]
    return found


def measure(task: TranslateTask, kinds: list[str], budget: int, rounds: int, steps: int) -> list[dict[str, object]]:
    batches = batches_of(task, budget, 4 * steps)
    shapes = len({batch.source.shape for batch in batches})
    print(f"{budget} tokens: {len(batches)} batches in {shapes} shapes", flush=True)
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    ready: dict[str, float] = {}
    taking = contestants(task, kinds, 0.1)
    for kind, take in taking.items():  # every shape twice: warmed up, compiled and captured
        torch._dynamo.reset()  # else a layer is what was compiled for the one before
        ready[kind] = timed(take, batches + batches)[0]
    streams = {kind: cycle(batches) for kind in kinds}
    for _ in range(rounds):
        for kind, take in taking.items():
            seconds, tokens = timed(take, islice(streams[kind], steps))
            found[kind].append(tokens / seconds)
    return [
        {
            "contestant": kind,
            "batch_tokens": budget,
            "tokens_per_second": round(statistics.median(speeds)),
            "spread": [round(min(speeds)), round(max(speeds))],
            "ratio": round(statistics.median(speeds) / statistics.median(found[kinds[0]]), 3),
            "first_two_rounds_seconds": round(ready[kind], 1),
            "milliseconds": round(1000 * 2 * budget / statistics.median(speeds), 2),
        }
        for kind, speeds in found.items()
    ]


def profile(task: TranslateTask, kind: str, budget: int) -> None:
    """Where the time of a step goes, by kernel."""
    take, batch = contestants(task, [kind], 0.1)[kind], batches_of(task, budget, 3)[2]
    for _ in range(5):
        take(batch)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(5):
            take(batch)
        torch.cuda.synchronize()
    print(f"{kind}, {budget} tokens, shape {tuple(batch.source.shape)} {tuple(batch.target_in.shape)}, 5 steps")
    kernels = sorted(seen.key_averages(), key=lambda each: -each.self_device_time_total)
    whole = sum(each.self_device_time_total for each in kernels)
    shares: dict[str, float] = {}
    for each in kernels:
        group = group_of(each.key)
        shares[group] = shares.get(group, 0.0) + each.self_device_time_total
    print(f"kernels of a step: {whole / 5000:.2f} ms")
    for group, spent in sorted(shares.items(), key=lambda pair: -pair[1]):
        print(f"{100 * spent / whole:6.1f} %  {spent / 5000:7.3f} ms  {group}")
    for each in kernels[:40]:
        spent = each.self_device_time_total
        print(f"{100 * spent / whole:6.1f} %  {spent / 5000:7.3f} ms  {each.count // 5:5d} ×  {each.key[:110]}")


def group_of(kernel: str) -> str:
    """What kind of work a kernel does, by its name."""
    name = kernel.lower()
    return next((group for group, words in GROUPS.items() if any(word in name for word in words)), "the rest")


def main() -> None:
    parser = argparse.ArgumentParser(description="Training speed on one GPU.")
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8192, 32768])
    parser.add_argument("--kinds", nargs="+", default=["hugging face", "eager", "graph", "graph, compiled"])
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--profile", default="", metavar="KIND")
    parser.add_argument("--no-losses", action="store_true", help="do not compare the losses of the first steps")
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        task = prepare(arguments.data, arguments.pairs, Path(folder)) if arguments.data else stand_in(Path(folder))
        if arguments.profile:
            return profile(task, arguments.profile, arguments.tokens[-1])
        few = batches_of(task, arguments.tokens[0], 20)
        for kind, losses in () if arguments.no_losses else curves(task, arguments.kinds, few).items():
            print(f"{kind:<18}loss of steps 1, 2, … {losses}", flush=True)
        for budget in arguments.tokens:
            for row in measure(task, arguments.kinds, budget, arguments.rounds, arguments.steps):
                print(json.dumps(row), flush=True)
                if arguments.ledger:
                    _enter(row)
    return None


def _enter(row: dict[str, object]) -> None:
    about = {
        "bench": "gpu-training", "model": "transformer 6+6, width 512, feed-forward 1024",
        "date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(),
        "torch": torch.__version__, "transformers": transformers.__version__, "command": "bench/gpu_training.py",
    }  # fmt: skip
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps({**about, **row}) + "\n")


if __name__ == "__main__":
    main()
