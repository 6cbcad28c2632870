"""Engines on the same weights and sentences: our own search, CTranslate2 in float32 and int8, `generate`.

    python bench/engines.py --run RUN --source FILE [--target FILE] [--sentences 1000] [--rounds 5] [--ledger]
    python bench/engines.py --data FOLDER [--time 5m]   # train such a run on Multi30k first

All begin with the ids of the pieces and end with ids. `ctranslate2` is the library as one would call it by hand,
`engine` is what `regard translate decode.engine=ctranslate2` does around it.
Rounds are interleaved; ratios are medians over rounds of CTranslate2's time divided by that of the side, so that 1 is
as fast as CTranslate2 in float32. Outputs are compared with our own, and BLEU is there if the translations by people
are. On a busy machine, `--clock cpu` counts the time that the process computed, with `--threads 1`. One line for each
engine: all sentences at once, and sentences one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # two libraries in one process: who waits must not keep a core

import ctranslate2
import sacrebleu
import torch

import regard
from ledger import enter, spread
from regard.data.lines import read_lines
from regard.decode.fused import Fused
from regard.decode.rules import Beam
from regard.decode.search import of_like_length, search
from regard.decode.texts import CPU_BUDGET
from regard.models.generator import EncoderDecoder
from regard.settings import TransformerModel
from regard.tasks.engines import export
from regard.tasks.load import load, open_translator
from regard.tasks.translator import Translator
from regard.text.vocabulary import END
from regard.trainer.start import start
from translate import Match, copy_into, marian, their_outputs

Outputs = list[list[int]]
Line = dict[str, object]
Side = Callable[[list[int]], Outputs]  # the numbers of the sentences to translate
REFERENCE = "ctranslate2"


@dataclass(frozen=True)
class Work:
    """A run, its sentences as ids, and how much each may write."""

    translator: Translator
    rows: list[list[int]]
    limits: list[int]
    threads: int
    folder: Path  # for converted models

    def sides(self, beam: int, *, generate: bool) -> dict[str, Side]:
        sides: dict[str, Side] = {
            "native": self._native(Fused(self.translator.model), beam),
            "written_out": self._native(self.translator.model, beam),
            REFERENCE: self._library("float32", beam),
            "ctranslate2_int8": self._library("int8", beam),
            "engine": self._engine(beam),
        }
        if generate and (side := self._generate(beam)) is not None:
            sides["generate"] = side
        return sides

    def _native(self, model: Fused | EncoderDecoder, beam: int) -> Side:
        def translate(chosen: list[int]) -> Outputs:
            outputs: Outputs = [[] for _ in chosen]
            for group in of_like_length([len(self.rows[row]) for row in chosen], CPU_BUDGET // beam):
                source = torch.nn.utils.rnn.pad_sequence(
                    [torch.tensor(self.rows[chosen[place]]) for place in group], batch_first=True
                )
                limits = torch.tensor([self.limits[chosen[place]] for place in group])
                with torch.inference_mode():
                    found = search(model, *model.start(source), limits, rule=Beam(beam))
                for place, (best,) in zip(group, found, strict=True):
                    outputs[place] = best.tokens
            return outputs

        return translate

    def _library(self, quantization: str, beam: int) -> Side:
        folder = self.folder / quantization
        if not folder.exists():
            assert self.translator.run is not None
            export(open_translator(self.translator.run.folder), folder, quantization)
        program = ctranslate2.Translator(str(folder), compute_type=quantization, intra_threads=self.threads)
        source, target = self.translator.tokenizers.source, self.translator.tokenizers.target
        tokens = [[source.token(number) for number in row[:-1]] for row in self.rows]
        longest = max(self.limits)

        def translate(chosen: list[int]) -> Outputs:
            found = program.translate_batch(
                [tokens[row] for row in chosen],
                beam_size=beam,
                max_batch_size=CPU_BUDGET // beam,
                batch_type="tokens",
                max_decoding_length=longest,
                min_decoding_length=0,
                return_end_token=True,
                return_scores=True,
            )
            return [[target.id(token) for token in each.hypotheses[0][:-1]] for each in found]

        return translate

    def _engine(self, beam: int) -> Side:
        engine, native = self.translator.search.searcher.engine, self._native(Fused(self.translator.model), beam)
        assert engine is not None

        def translate(chosen: list[int]) -> Outputs:
            rows, limits = [self.rows[row] for row in chosen], [self.limits[row] for row in chosen]
            found = engine.search(rows, limits, Beam(beam), CPU_BUDGET)
            return [each[0].tokens if each else native([row])[0] for row, each in zip(chosen, found, strict=True)]

        return translate

    def _generate(self, beam: int) -> Side | None:
        """`generate` of transformers, for the one kind of Transformer that it has too."""
        assert self.translator.run is not None
        model = self.translator.run.settings.model
        if not isinstance(model, TransformerModel) or (model.norm_place, model.tie) != ("after", "all"):
            return None
        theirs = marian(model, self.translator.tokenizers.target.size)
        copy_into(theirs, self.translator.model)
        match = Match(theirs, self.translator.model, self.rows, self.limits, 64)

        def translate(chosen: list[int]) -> Outputs:
            rows, limits = [self.rows[row] for row in chosen], [self.limits[row] for row in chosen]
            return their_outputs(replace(match, rows=rows, limits=limits), beam, ordered=True)

        return translate


def train(data: Path, duration: str) -> Path:
    """The model of the tables: 3 + 3 layers, width 256, feed-forward 1,024, 8,000 joint pieces."""
    folder = Path(tempfile.mkdtemp()) / "multi30k"
    sides = {
        name: f"data.{name}='{data / 'multi30k' / file}'"
        for name, file in (
            *(("source", "train.de.gz"), ("target", "train.en.gz")),
            *(("valid_source", "val.de.gz"), ("valid_target", "val.en.gz")),
        )
    }
    made = ("model.tie=all", "model.norm_place=after", "text.tokenizer=bpe", "text.size=8000", "text.joint=true")
    settings = regard.load_settings("transformer-small", *made, *sides.values(), f"train.time='{duration}'")
    start(folder, settings, device="cpu")
    return folder


def compare(
    sides: dict[str, Side], count: int, rounds: int, clock: Callable[[], float]
) -> tuple[dict[str, Line], dict[str, Outputs]]:
    """All sentences at once: how many a second, ratios to the reference, and how many outputs are our own search's."""
    every = list(range(count))
    outputs = {name: side(every) for name, side in sides.items()}  # also warms up
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            began = clock()
            side(every)
            spent[name].append(clock() - began)
    lines: dict[str, Line] = {}
    for name, times in spent.items():
        ratios = [theirs / ours for ours, theirs in zip(times, spent[REFERENCE], strict=True)]
        equal = sum(a == b for a, b in zip(outputs[name], outputs["native"], strict=True))
        lines[name] = {
            "batch": "all at once",
            "sentences": count,
            "sentences_per_second": round(count / statistics.median(times), 1),
            "speed_of_ctranslate2": round(statistics.median(ratios), 2),
            "spread": spread(ratios, 2),
            "equal_to_native": round(equal / count, 3),
        }
    return lines, outputs


def latency(sides: dict[str, Side], count: int, clock: Callable[[], float]) -> dict[str, Line]:
    """The median milliseconds for one sentence alone, the sides one after the other on each sentence."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for row in range(count):
        for name, side in sides.items():
            began = clock()
            side([row])
            spent[name].append(clock() - began)
    lines: dict[str, Line] = {}
    for name, times in spent.items():
        ratios = [ours / theirs for ours, theirs in zip(times, spent[REFERENCE], strict=True)]
        median = statistics.median(times)
        lines[name] = {
            "batch": "one by one",
            "sentences": count,
            "milliseconds": round(1000 * median, 1),
            "time_of_ctranslate2": round(statistics.median(ratios), 2),
            "quartiles": [round(each, 2) for each in statistics.quantiles(ratios, n=4)[::2]],
        }
    return lines


def bleu(translator: Translator, outputs: Outputs, references: list[str]) -> float:
    decode = translator.tokenizers.target.decode
    return round(sacrebleu.corpus_bleu([decode(row) for row in outputs], [references]).score, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Engines on the same weights; 1 is CTranslate2 in float32.")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--data", type=Path, help="a folder with multi30k, to train on and translate")
    parser.add_argument("--time", default="5m", help="how long to train")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--singles", type=int, default=50, help="sentences translated one by one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--no-generate", action="store_true", help="leave out transformers, the slowest")
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    options.began = time.strftime("%Y-%m-%d %H:%M:%S")
    torch.set_num_threads(options.threads)
    if options.data is not None:
        test = options.data / "multi30k"
        options.run = options.run or train(options.data, options.time)
        options.source, options.target = test / "test_2016_flickr.de.gz", test / "test_2016_flickr.en.gz"
    if options.run is None or options.source is None:
        parser.error("give --run and --source, or --data")
    measure(options)


def measure(options: argparse.Namespace) -> None:
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    translator = load(options.run, engine="ctranslate2")
    rows = [
        [*translator.tokenizers.source.encode(line), END]
        for line in islice(read_lines(options.source), options.sentences)
    ]
    limits = [2 * (len(row) - 1) + 10 for row in rows]
    references = [] if options.target is None else list(islice(read_lines(options.target), len(rows)))
    with tempfile.TemporaryDirectory() as folder:
        work = Work(translator, rows, limits, options.threads, Path(folder))
        for beam in options.beams:
            sides = work.sides(beam, generate=not options.no_generate)
            together, outputs = compare(sides, len(rows), options.rounds, clock)
            if references:
                for name, line in together.items():
                    line["bleu"] = bleu(translator, outputs[name], references)
            tell(options, beam, together)
            tell(options, beam, latency(sides, min(options.singles, len(rows)), clock))


def tell(options: argparse.Namespace, beam: int, lines: dict[str, Line]) -> None:
    """A line for each engine, on stdout and, if asked for, in the ledger."""
    given = "--data DATA" if options.data is not None else f"--run {options.run.name} --source {options.source.name}"
    command = f"python bench/engines.py {given} --threads {options.threads} --clock {options.clock} --ledger"
    about = {"run": f"{options.began} {beam}", "beam": beam, "threads": options.threads, "clock": options.clock}
    about |= {"load": round(os.getloadavg()[0], 1), "ctranslate2": ctranslate2.__version__, "torch": torch.__version__}
    for name, line in lines.items():
        print(json.dumps({"engine": name, "beam": beam, **line}), flush=True)
        if options.ledger:
            enter("engines", {**about, "engine": name, **line}, command)


if __name__ == "__main__":
    main()
