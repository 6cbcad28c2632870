"""Searches other than a plain beam on one GPU: Regard's captured steps against `generate` of `transformers`.

    python bench/gpu_searches.py [--check] [--rounds 3] [--only WORD …] [--ledger]
    python bench/gpu_searches.py --device cpu --check --small     # all of it at sizes for a CPU

Sampling, n-best with constraints, recurrent models and ensembles, on random weights, in float32, with outputs of one
length: `<end>` has so small a bias that nothing ends before its limit, so both sides take the same number of steps.
Weights are scaled up until the next token is as uncertain as a trained model's. A Transformer of 6 + 6 layers and width
512 is a MarianMTModel with the same weights and the same settings there; two of them are an ensemble here and the
sum of two calls there. `transformers` has no recurrent translator: a recurrent model is held against the Transformer,
which has about as many parameters. Version 5 of it no longer forces words: n-best with terms is held against n-best
without.

`--check` first compares the outputs with those of the ordinary loop at small sizes, each case three times (as it is,
captured, replayed); a case that fails prints where, and the others go on. Of several sizes of `generate`'s batches the
fastest counts. Rounds are interleaved; the figures are medians.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import transformers
from torch import Tensor, nn

import regard
from gpu_translation import say, timed
from ledger import enter, spread
from regard.convert.huggingface import from_transformers
from regard.decode.constraints import Constraint, Forbidden, NoRepeat, Prefix, Terms
from regard.decode.engines.captured import Captured
from regard.decode.engines.engine import Searcher
from regard.decode.rules import Beam, Sample
from regard.decode.search import Hypothesis, of_like_length, search
from regard.decode.texts import BUDGET
from regard.models.generator import EncoderDecoder
from regard.settings import TransformerModel
from regard.text.vocabulary import END, PAD, START, UNK
from translate import marian

NEVER = -40.0  # a bias that lets nothing end before its limit, and keeps sums of log-probabilities small
Found = list[list[Hypothesis]]
LARGE = {"model.encoder_depth": 6, "model.decoder_depth": 6, "model.width": 512, "model.hidden": 2048, "model.heads": 8}
SMALL = {"model.encoder_depth": 2, "model.decoder_depth": 2, "model.width": 32, "model.hidden": 64, "model.heads": 4}


@dataclass(frozen=True)
class Sizes:
    sentences: int
    length: int  # of every output, <end> apart
    vocabulary: int
    transformer: dict[str, int]
    recurrent: dict[str, int]
    batches: tuple[int, ...]  # of `generate`


FULL = Sizes(512, 30, 16000, LARGE, {"model.width": 512, "model.hidden": 1024}, (128, 512))
TINY = Sizes(24, 9, 300, SMALL, {"model.width": 24, "model.hidden": 32}, (24,))


@dataclass(frozen=True)
class Case:
    """A search, and what is asked of `generate` in its place."""

    name: str
    models: tuple[str, ...]
    rule: Beam | Sample
    theirs: dict[str, Any]
    constraints: tuple[str, ...] = ()
    beside: str = "the same weights and settings"


BEST = {"num_beams": 5, "num_return_sequences": 5, "early_stopping": True}
BEAM = {"num_beams": 5, "early_stopping": True}
PLAIN = ("first",)
CASES = [
    Case("beam 5", PLAIN, Beam(5), BEAM),
    Case("1 sample", PLAIN, Sample(), {"do_sample": True, "top_k": 0}),
    Case(
        "8 samples, nucleus 0.9", PLAIN, Sample(8, nucleus=0.9),
        {"do_sample": True, "top_k": 0, "top_p": 0.9, "num_return_sequences": 8},
    ),
    Case("5 best, no repeat, forbidden, prefix", PLAIN, Beam(5, best=5), BEST, ("no_repeat", "forbidden", "prefix")),
    Case("5 best, terms", PLAIN, Beam(5, best=5), BEST, ("terms",), "the same without terms"),
    Case("bahdanau, beam 5", ("bahdanau",), Beam(5), BEAM, (), "the Transformer"),
    Case("luong-general, beam 5", ("luong-general",), Beam(5), BEAM, (), "the Transformer"),
    Case("bahdanau, 8 samples", ("bahdanau",), Sample(8), {"do_sample": True, "top_k": 0, "num_return_sequences": 8},
         (), "the Transformer"),
    Case("ensemble of two, beam 5", ("first", "second"), Beam(5), BEAM, (), "the sum of two"),
    Case("ensemble of two, 1 sample", ("first", "second"), Sample(), {"do_sample": True, "top_k": 0},
         (), "the sum of two"),
]  # fmt: skip


@dataclass
class Bench:
    """Models, made when they are first asked for, and what they read."""

    sizes: Sizes
    device: torch.device
    rows: list[list[int]] = field(default_factory=list)
    ours: dict[str, EncoderDecoder] = field(default_factory=dict)
    theirs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        lengths = torch.randint(8, 31, (self.sizes.sentences,)).tolist()
        self.rows = [[*torch.randint(4, self.sizes.vocabulary, (length,)).tolist(), END] for length in lengths]

    @property
    def limits(self) -> list[int]:
        return [self.sizes.length + 1] * len(self.rows)

    @torch.no_grad()
    def model(self, name: str) -> EncoderDecoder:
        if name not in self.ours:
            torch.manual_seed(len(name))
            if name in ("first", "second"):
                settings = regard.load_settings("transformer-small", *overrides(self.sizes.transformer)).model
                assert isinstance(settings, TransformerModel)
                theirs = marian(settings, self.sizes.vocabulary)
                for parameter_name, parameter in theirs.named_parameters():
                    if "embed_positions" not in parameter_name:
                        parameter.mul_(3)  # so that the odds differ
                theirs.final_logits_bias[0, END] = NEVER
                self.theirs[name] = copy.deepcopy(theirs).to(self.device)
                ours = from_transformers(theirs)[0]
            else:
                settings = regard.load_settings(name, *overrides(self.sizes.recurrent)).model
                ours = regard.encoder_decoder(settings, self.sizes.vocabulary, self.sizes.vocabulary)
                ours.decoder.output.weight.mul_(40)
                ours.decoder.output.bias[END] = NEVER
            self.ours[name] = ours.float().eval().to(self.device)
        return self.ours[name]

    def constraints(self, names: Sequence[str], rows: Sequence[int]) -> list[Constraint]:
        made: dict[str, Callable[[], Constraint]] = {
            "no_repeat": lambda: NoRepeat(3),
            "forbidden": lambda: Forbidden(self.forbidden(), self.device),
            "prefix": lambda: Prefix([self.prefix(row) for row in rows], device=self.device),
            "terms": lambda: Terms([self.terms(row) for row in rows], self.device),
        }
        return [made[name]() for name in names]

    def forbidden(self) -> list[list[int]]:
        drawn = torch.Generator().manual_seed(3)
        ids = torch.randint(4, self.sizes.vocabulary, (15, 2), generator=drawn).tolist()
        return [pair[: 1 + (number % 3 > 0)] for number, pair in enumerate(ids)]

    def prefix(self, row: int) -> list[int]:
        return self.rows[row][:2]

    def terms(self, row: int) -> list[list[int]]:
        return [self.rows[row][1:3], self.rows[row][5:6]]

    # The three sides

    def captured(self, case: Case) -> tuple[Callable[[], Found], Captured]:
        models, everything = [self.model(name) for name in case.models], range(len(self.rows))
        engine = Captured(models)

        def find() -> Found:
            constraints = self.constraints(case.constraints, everything)
            return engine.search(self.rows, self.limits, case.rule, 0, constraints=constraints)

        return find, engine

    @torch.inference_mode()
    def ordinary(self, case: Case) -> Found:
        models = [self.model(name) for name in case.models]
        writer, found = Searcher.of(models).model, [list[Hypothesis]() for _ in self.rows]
        for group in of_like_length([len(row) for row in self.rows], BUDGET // case.rule.rows):
            limits = torch.tensor([self.limits[row] for row in group], device=self.device)
            outputs = search(
                writer, *writer.start(self.padded(group)), limits, rule=case.rule, numbers=group,
                constraints=self.constraints(case.constraints, group),
            )  # fmt: skip
            for row, each in zip(group, outputs, strict=True):
                found[row] = each
        return found

    @torch.inference_mode()
    def generate(self, case: Case, batch: int) -> list[list[int]]:
        """Outputs as token rows; a recurrent model's place is taken by the first Transformer."""
        outputs: list[list[int]] = []
        for name in case.models:
            self.model(name if name in ("first", "second") else "first")
            theirs = self.theirs[name if name in ("first", "second") else "first"]
            order = sorted(range(len(self.rows)), key=lambda row: -len(self.rows[row]))
            for first in range(0, len(order), batch):
                outputs += self._generate(case, theirs, order[first : first + batch])
        return outputs

    def _generate(self, case: Case, theirs: Any, group: list[int]) -> list[list[int]]:
        source, more = self.padded(group), dict(case.theirs)
        begun: dict[str, Tensor] = {}
        length = self.sizes.length
        if "no_repeat" in case.constraints:
            more["no_repeat_ngram_size"] = 3
        if "forbidden" in case.constraints:
            more["bad_words_ids"] = self.forbidden()
        if "prefix" in case.constraints:
            begun["decoder_input_ids"] = torch.tensor([[START, *self.prefix(row)] for row in group]).to(self.device)
            length -= 2
        config = transformers.GenerationConfig(
            max_new_tokens=length, pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=START,
            suppress_tokens=[PAD, START, UNK], **more,
        )  # fmt: skip
        mask = (source != PAD).long()
        found: Tensor = theirs.generate(input_ids=source, attention_mask=mask, generation_config=config, **begun)
        return found.tolist()

    def padded(self, group: Sequence[int]) -> Tensor:
        rows = [torch.tensor(self.rows[row]) for row in group]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD).to(self.device)


def overrides(values: dict[str, int]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


def parameters(models: Sequence[EncoderDecoder]) -> int:
    return sum(each.numel() for model in models for each in model.parameters())


# Measuring


def alike(some: Found, others: Found) -> float:
    """The share of outputs, over all sentences and ranks, that have the same tokens."""
    pairs = [pair for mine, theirs in zip(some, others, strict=True) for pair in zip(mine, theirs, strict=True)]
    return round(sum(one.tokens == other.tokens for one, other in pairs) / len(pairs), 4)


def check(cases: list[Case], device: torch.device) -> None:
    """Outputs of every case at small sizes: the ordinary loop's, or a traceback."""
    bench = Bench(TINY, device)
    for case in cases:
        try:
            find, engine = bench.captured(case)
            expected = bench.ordinary(case)
            shares = [alike(find(), expected) for _ in range(3)]
            graphs = len(engine.graphs.graphs) if engine.graphs else 0
            say(f"check: {case.name}: equal {shares}, {graphs} graphs")
        except Exception:
            say(f"check: {case.name}: FAILED\n{traceback.format_exc()}")
        try:
            lengths = {len(row) for row in bench.generate(case, 24)}
            say(f"check: {case.name}: generate writes rows of {sorted(lengths)}")
        except Exception:
            say(f"check: {case.name}: generate FAILED\n{traceback.format_exc()}")


def measure(bench: Bench, case: Case, rounds: int) -> dict[str, Any]:
    find, engine = bench.captured(case)
    first, found = timed(find, bench.device)  # type: ignore[arg-type]
    second, _ = timed(find, bench.device)  # type: ignore[arg-type]  # captures what the first warmed up
    some = replace_rows(bench, 64)
    some.ordinary(case)
    loop, expected = timed(lambda: bench.ordinary(case), bench.device)  # type: ignore[arg-type, return-value]
    some.generate(case, 64)
    tried = {size: timed(lambda size=size: bench.generate(case, size), bench.device)[0] for size in bench.sizes.batches}  # type: ignore[misc]
    batch = min(tried, key=lambda size: tried[size])
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(timed(find, bench.device)[0])  # type: ignore[arg-type]
        theirs.append(timed(lambda: bench.generate(case, batch), bench.device)[0])
    ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
    return {
        "search": case.name,
        "sentences_per_second": round(len(found) / statistics.median(ours), 1),
        "times_generate": round(statistics.median(ratios), 2),
        "times_generate_range": spread(ratios, 2),
        "times_ordinary": round(loop / statistics.median(ours), 2),
        "ordinary_times_generate": round(statistics.median(theirs) / loop, 2),
        "equal_to_ordinary": alike(found, expected),
        "generate": case.beside,
        "generate_batch": batch,
        "generate_seconds": round(statistics.median(theirs), 3),
        "seconds": round(statistics.median(ours), 3),
        "first_seconds": [round(first, 2), round(second, 2)],
        "graphs": len(engine.graphs.graphs) if engine.graphs else 0,
        "million_parameters": round(parameters([bench.model(name) for name in case.models]) / 1e6, 1),
    }


def replace_rows(bench: Bench, count: int) -> Bench:
    """The same models with fewer sentences, to warm up."""
    some = replace(bench)
    some.rows, some.ours, some.theirs = bench.rows[:count], bench.ours, bench.theirs
    return some


def main() -> None:
    parser = argparse.ArgumentParser(description="Searches other than a plain beam against generate, on one GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--small", action="store_true", help="measure at the sizes of --check")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], help="words of the cases to run")
    parser.add_argument("--seconds", type=float, default=150, help="no case begins later than this")
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False  # recurrent kernels round to it otherwise, here and in the loop
    device, began = torch.device(options.device), time.perf_counter()
    cases = [case for case in CASES if any(word in case.name for word in options.only)]
    say(f"torch {torch.__version__}, transformers {transformers.__version__}")
    if options.check:
        check(cases, device)
        say(f"checked after {time.perf_counter() - began:.0f} s")
    sizes = TINY if options.small else FULL
    bench = Bench(sizes, device)
    about = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sentences": sizes.sentences,
        "output_length": sizes.length,
        "model": f"random weights, {sizes.vocabulary:,} tokens, transformer {sizes.transformer['model.encoder_depth']}+"
        f"{sizes.transformer['model.decoder_depth']}, width {sizes.transformer['model.width']}",
    }
    for case in cases:
        if time.perf_counter() - began > options.seconds:
            say(f"{case.name}: not measured, no time is left")
            continue
        try:
            line = measure(bench, case, options.rounds)
        except Exception:
            say(f"{case.name}: FAILED\n{traceback.format_exc()}")
            continue
        say(json.dumps(line))
        if options.ledger:
            enter("gpu-searches", {**about, **line}, "python bench/gpu_searches.py --check --ledger")
        if device.type == "cuda":
            torch.cuda.empty_cache()
    say(f"all after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
