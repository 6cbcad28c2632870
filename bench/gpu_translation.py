"""Translation on one GPU: Regard's search in captured steps against `generate` of `transformers`, on the same weights.

    python bench/gpu_translation.py --run RUN --source FILE [--target FILE] [--beam 5] [--rounds 3] [--ledger]
    python bench/gpu_translation.py --run RUN --source FILE --profile   # where the time goes, by kernel

RUN is a Transformer with model.tie=all; with norms after it becomes a MarianMTModel, with norms before an M2M100 model
with our positions. All begin with the ids of the pieces, in the order of the file, and end with ids. `generate` is
called in its leanest form (no processors), its batches are sorted by length, and of several sizes of batch the fastest
counts; beside the ratio in the same precision stands that to its faster precision. The ordinary search is Regard's own
without captured steps. Each is run once first, which captures and warms up and is shown by itself; then all take turns.
The figures are medians over rounds; the share of equal outputs is against the ordinary search in float32, and against
`generate` of the same precision.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import sacrebleu
import torch
import transformers
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from ledger import enter, spread
from regard.data.lines import read_lines
from regard.decode.engines.captured import KERNELS, MENU, Captured
from regard.decode.options import SLACK
from regard.decode.rules import Beam
from regard.decode.search import of_like_length, search
from regard.decode.texts import BUDGET
from regard.models.generator import EncoderDecoder
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import Attention
from regard.nn.embeddings import sinusoid
from regard.settings import TransformerModel
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.text.vocabulary import END, PAD, START
from translate import copy_into, marian

Outputs = list[list[int]]
Side = Callable[[], Outputs]
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CAPTURED, ORDINARY, GENERATE = "regard, captured", "regard, ordinary", "generate"


@dataclass(frozen=True)
class Work:
    """One model twice, and what it is to translate."""

    ours: EncoderDecoder
    theirs: Any
    rows: list[list[int]]
    limits: list[int]
    beam: int
    device: torch.device

    def cast(self, kind: torch.dtype) -> Work:
        return replace(self, ours=copy.deepcopy(self.ours).to(kind), theirs=copy.deepcopy(self.theirs).to(kind))

    def padded(self, group: list[int]) -> Tensor:
        rows = [torch.tensor(self.rows[row]) for row in group]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(self.device)

    def captured(
        self, kind: torch.dtype, slots: int = MENU[-1], look_every: int | None = None
    ) -> tuple[Side, Captured]:
        menu = [*(size for size in MENU if size < slots), slots]
        engine = Captured([self.ours], kind, menu=menu, **({} if look_every is None else {"look_every": look_every}))

        def translate() -> Outputs:
            found = engine.search(self.rows, self.limits, Beam(self.beam), 0)
            return [each[0].tokens for each in found if each]

        return translate, engine

    @torch.inference_mode()
    def ordinary(self) -> Outputs:
        outputs: Outputs = [[] for _ in self.rows]
        for group in of_like_length([len(row) for row in self.rows], BUDGET // self.beam):
            limits = torch.tensor([self.limits[row] for row in group], device=self.device)
            found = search(self.ours, *self.ours.start(self.padded(group)), limits, rule=Beam(self.beam))
            for row, (best,) in zip(group, found, strict=True):
                outputs[row] = best.tokens
        return outputs

    @torch.inference_mode()
    def generate(self, batch: int) -> Outputs:
        """With the kernels that our own search uses: cuDNN's, which torch would take, plan each new shape at length."""
        with sdpa_kernel(KERNELS):
            return self._generate(batch)

    def _generate(self, batch: int) -> Outputs:
        outputs: Outputs = [[] for _ in self.rows]
        order = sorted(range(len(self.rows)), key=lambda row: -len(self.rows[row]))
        for first in range(0, len(order), batch):
            group = order[first : first + batch]
            source = self.padded(group)
            config = transformers.GenerationConfig(
                num_beams=self.beam,
                early_stopping=self.beam > 1,
                do_sample=False,
                max_length=max(self.limits[row] for row in group) + 1,
                pad_token_id=PAD,
                eos_token_id=END,
                decoder_start_token_id=START,
            )
            mask = (source != PAD).long()
            found = self.theirs.generate(input_ids=source, attention_mask=mask, generation_config=config)
            for row, tokens in zip(group, found.tolist(), strict=True):
                outputs[row] = [token for token in tokens if token not in (PAD, START, END)]
        return outputs


# Their model


def their_model(settings: TransformerModel, ours: EncoderDecoder, size: int) -> Any:
    """The same function as a model of `transformers`."""
    if settings.tie != "all" or settings.positions != "sinusoidal" or settings.norm != "layer":
        raise SystemExit(
            "this run has no twin in transformers: it needs model.tie=all, sinusoidal positions, layer norm"
        )
    if settings.norm_place == "after":
        theirs: Any = marian(settings, size)
        copy_into(theirs, ours)
        return theirs
    return norms_before(settings, ours, size)


@torch.no_grad()
def norms_before(settings: TransformerModel, ours: EncoderDecoder, size: int) -> Any:
    """M2M100 is the one with norms before, given our table of positions and an output layer with a bias."""
    sides = {"layers": 0, "attention_heads": settings.heads, "ffn_dim": settings.hidden, "layerdrop": 0.0}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sides.items()}
    sizes |= {"encoder_layers": settings.encoder_depth, "decoder_layers": settings.decoder_depth}
    config = transformers.M2M100Config(
        vocab_size=size, d_model=settings.width, max_position_embeddings=1024,
        activation_function=settings.activation, pad_token_id=PAD, bos_token_id=START, eos_token_id=END,
        decoder_start_token_id=START, forced_eos_token_id=None, scale_embedding=True, **sizes,
    )  # fmt: skip
    theirs = transformers.M2M100ForConditionalGeneration(config).eval()
    encoder, decoder = ours.encoder, ours.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    theirs.lm_head = nn.Linear(settings.width, size)
    theirs.lm_head.weight = theirs.model.shared.weight
    theirs.lm_head.bias.copy_(decoder.output.bias)
    theirs.model.shared.weight.copy_(decoder.output.weight)
    for side, part in ((theirs.model.encoder, encoder), (theirs.model.decoder, decoder)):
        table = side.embed_positions.weights
        table.zero_()[PAD + 1 :] = sinusoid(torch.arange(len(table) - PAD - 1), settings.width)
        copy_norm(side.layer_norm, part.norm)
        for theirs_layer, layer in zip(side.layers, part.layers, strict=True):
            copy_layer(theirs_layer, layer)
    return theirs


def copy_layer(theirs: Any, ours: Any) -> None:
    norms = [theirs.self_attn_layer_norm, theirs.final_layer_norm]
    copy_attention(theirs.self_attn, ours.attention)
    if hasattr(ours, "cross"):
        copy_attention(theirs.encoder_attn, ours.cross)
        norms.insert(1, theirs.encoder_attn_layer_norm)
    for norm, residual in zip(norms, ours.residuals, strict=True):
        copy_norm(norm, residual.norm)
    theirs.fc1.load_state_dict(ours.feed_forward.expand.state_dict())
    theirs.fc2.load_state_dict(ours.feed_forward.contract.state_dict())


def copy_attention(theirs: Any, ours: Attention) -> None:
    assert ours.projections is not None
    for name, part in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output")):
        getattr(theirs, name).load_state_dict(getattr(ours.projections, part).state_dict())


def copy_norm(theirs: Any, ours: Any) -> None:
    theirs.weight.copy_(ours.gain)
    theirs.bias.copy_(ours.shift)


# Measuring


def timed(side: Side, device: torch.device) -> tuple[float, Outputs]:
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    found = side()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began, found


def say(line: str) -> None:
    print(line, flush=True)


def fastest_batch(work: Work, sizes: list[int], name: str) -> tuple[int, Outputs]:
    """The size of `generate`'s batches, each tried once after a warm-up on a few sentences."""
    found: dict[int, tuple[float, Outputs]] = {}
    for size in sizes:
        try:
            replace(work, rows=work.rows[:64], limits=work.limits[:64]).generate(size)
            found[size] = timed(lambda size=size: work.generate(size), work.device)  # type: ignore[misc]
            say(f"  generate, {name}, batches of {size}: {len(work.rows) / found[size][0]:.1f} sentences/s")
        except torch.OutOfMemoryError:
            say(f"  generate, {name}, batches of {size}: does not fit")
            torch.cuda.empty_cache()
    best = min(found, key=lambda size: found[size][0])
    return best, found[best][1]


def measure(work: Work, kinds: list[str], sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    """A line for each contestant and precision."""
    sides: dict[tuple[str, str], Side] = {}
    outputs: dict[tuple[str, str], Outputs] = {}
    about: dict[tuple[str, str], dict[str, Any]] = {}
    for name in kinds:
        cast = work.cast(KINDS[name])
        captured, engine = cast.captured(KINDS[name])
        for contestant, side in ((CAPTURED, captured), *(((ORDINARY, cast.ordinary),) if name == "float32" else ())):
            key = contestant, name
            try:
                first, outputs[key] = timed(side, work.device)
            except Exception:
                say(f"{contestant}, {name}: failed\n{traceback.format_exc()}")
                continue
            sides[key], about[key] = side, {"first_seconds": round(first, 2)}
            say(f"  {contestant}, {name}: first time {first:.2f} s")
        if engine.graphs is not None and (CAPTURED, name) in about:
            about[CAPTURED, name]["graphs"] = len(engine.graphs.graphs)
        for memory in engine.memories.values():
            say(f"  {memory.shape}; shapes: {sorted(str(key[1]) for key in getattr(engine.graphs, 'graphs', {}))}")
        key = GENERATE, name
        batch, outputs[key] = fastest_batch(cast, sizes, name)
        sides[key], about[key] = (lambda cast=cast, batch=batch: cast.generate(batch)), {"batch": batch}  # type: ignore[misc]
    spent: dict[tuple[str, str], list[float]] = {key: [] for key in sides}
    for number in range(rounds):
        for key, side in sides.items():
            spent[key].append(timed(side, work.device)[0])
            say(f"  round {number + 1}: {', '.join(key)}: {spent[key][-1]:.2f} s")
    return [summary(key, spent, outputs) | about[key] for key in sides]


def equal(some: Outputs, others: Outputs) -> float:
    return round(sum(a == b for a, b in zip(some, others, strict=True)) / len(some), 4)


def summary(
    key: tuple[str, str], spent: dict[tuple[str, str], list[float]], outputs: dict[tuple[str, str], Outputs]
) -> dict[str, Any]:
    speeds = [len(outputs[key]) / seconds for seconds in spent[key]]
    ratios = [theirs / ours for ours, theirs in zip(spent[key], spent[GENERATE, key[1]], strict=True)]
    fastest = min((spent[other] for other in spent if other[0] == GENERATE), key=statistics.median)
    found: dict[str, Any] = {
        "engine": key[0],
        "precision": key[1],
        "sentences_per_second": round(statistics.median(speeds), 1),
        "spread": spread(speeds, 1),
        "times_generate": round(statistics.median(ratios), 2),
        "times_generate_range": spread(ratios, 2),
        "times_fastest_generate": round(statistics.median(b / a for a, b in zip(spent[key], fastest, strict=True)), 2),
        "equal_to_generate": equal(outputs[key], outputs[GENERATE, key[1]]),
    }
    if (ORDINARY, "float32") in outputs:
        found["equal_to_ordinary_float32"] = equal(outputs[key], outputs[ORDINARY, "float32"])
    return found | {"outputs": outputs[key]}


def profile(work: Work, kinds: list[str]) -> None:
    for name in kinds:
        side, _ = work.cast(KINDS[name]).captured(KINDS[name])
        side(), side()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            wall, _ = timed(side, work.device)
        averages = seen.key_averages()
        busy = sum(each.self_device_time_total for each in averages) / 1e6
        say(f"{name}: {wall:.2f} s under the profiler, {busy:.2f} s of kernels")
        say(averages.table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=100))


def bleu(translator: Translator, outputs: Outputs, references: list[str]) -> float:
    lines = [translator.tokenizers.target.decode(row) for row in outputs]
    return round(sacrebleu.corpus_bleu(lines, [references]).score, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Translation speed on one GPU against generate.")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--corpus", default="europarl-de-en dev", help="what to call it in the ledger")
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    translator = load(options.run, device=options.device)
    assert translator.run is not None
    settings = translator.run.settings.model
    assert isinstance(settings, TransformerModel)
    rows = [
        [*translator.tokenizers.source.encode(line)[: translator.longest], END]
        for line in islice(read_lines(options.source), options.sentences)
    ]
    limits = [2 * (len(row) - 1) + SLACK for row in rows]
    theirs = their_model(settings, copy.deepcopy(translator.model).cpu(), translator.tokenizers.target.size)
    work = Work(translator.model, theirs.to(device).eval(), rows, limits, options.beam, device)
    lengths = [len(row) for row in rows]
    say(f"{len(rows)} sentences of {statistics.mean(lengths):.1f} pieces, {max(lengths)} at most")
    say(f"torch {torch.__version__}, transformers {transformers.__version__}")
    if options.profile:
        profile(work, options.kinds)
    else:
        report(work, translator, options)


def report(work: Work, translator: Translator, options: argparse.Namespace) -> None:
    references = None if options.target is None else list(islice(read_lines(options.target), len(work.rows)))
    model = translator.run.settings.model  # type: ignore[union-attr]
    about = {
        "device": torch.cuda.get_device_name() if work.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "corpus": options.corpus,
        "sentences": len(work.rows),
        "beam": work.beam,
        "model": f"transformer {model.encoder_depth}+{model.decoder_depth}, width {model.width}, "  # type: ignore[union-attr]
        f"feed-forward {model.hidden}, {translator.tokenizers.target.size:,} pieces",  # type: ignore[union-attr]
    }
    command = "python bench/gpu_translation.py --run RUN --source dev.de.gz --target dev.en.gz --ledger"
    run = time.strftime("%Y-%m-%dT%H:%M:%S")
    for line in measure(work, options.kinds, options.batches, options.rounds):
        outputs = line.pop("outputs")
        if references is not None:
            line["bleu"] = bleu(translator, outputs, references)
        say(json.dumps(line))
        if options.ledger:
            enter("gpu-translation", {"run": run, **about, **line}, command)


if __name__ == "__main__":
    main()
