"""Who searches for a run: chosen when it is loaded; and the folders that hold converted models.

RUN/engines/ctranslate2-float32/  model.bin, config.json, vocabularies; regard.json: the weights it was made of;
                                  same.json: how many of its outputs are those of our own loop, once measured
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.decode.engines.captured import Captured
from regard.decode.engines.ctranslate2 import to_ctranslate2, unfit
from regard.decode.engines.engine import Engine, Searcher
from regard.decode.options import SLACK, Options
from regard.decode.rules import Beam
from regard.decode.search import Hypothesis, of_like_length, search
from regard.decode.texts import CPU_BUDGET
from regard.errors import ModelError, ResourceError, SettingsError, did_you_mean, optional
from regard.files import new_file, new_folder
from regard.nn.embeddings import Learned
from regard.runs.folder import best_checkpoint, manifest
from regard.tasks.translator import Translator
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import END, PAD
from regard.text.words import SpaceTokenizer, WordTokenizer

ENGINES = ("native", "native-bfloat16", "auto", "ctranslate2", "ctranslate2-int8")
FORMAT = 1  # of the converted models; one that says another number is made again
MANY = 1000  # sentences: to convert a model and to compare the outputs takes about what is won on so many
SAMPLE = 50  # different ones, of the first that come, on which outputs are compared
_RECEIPT, _VERDICT = "regard.json", "same.json"
_MOST_PLACES = 4096  # positions that are written out; what is longer is searched by our own loop
_AS_GOOD_AS_NONE = 1e-9  # without a length penalty CTranslate2 ends a search by another rule; length^1e-9 rounds to 1

Tell = Callable[[str], object]


def silent(line: str) -> None:
    """Discard the line."""


def check(name: str) -> None:
    """That there is such an engine."""
    if name not in ENGINES:
        raise SettingsError(f"engine = {name}: no such engine; {did_you_mean(name, ENGINES)}")


def choose(name: str, material: Translator, tell: Tell = silent) -> Searcher:
    """Who searches, by the name of an engine. ``tell`` hears what `auto` chose, and what goes to our own loop.

    On a GPU, our own search of a Transformer is the one in captured steps, which finds the same.
    """
    check(name)
    return Searcher.of(material.models, _engine(name, material, tell))


def _engine(name: str, material: Translator, tell: Tell) -> Engine | None:
    """None is our own loop alone."""
    if name == "native":
        return _native(material)
    if name == "auto":
        return Auto(material, tell) if _may_write_the_same(material) else _native(material)
    if len(material.models) > 1:
        raise SettingsError(f"engine = {name}: translates with one run, and here are several; use the engine native")
    if name == "native-bfloat16":
        return _half(material)
    if material.device.type != "cpu":
        raise SettingsError(f"engine = {name}: computes on the CPU here; add --device cpu, or use the engine native")
    if problem := unfit(material.models[0]):
        raise ModelError(problem)
    return _ctranslate2(material, "int8" if name.endswith("int8") else "float32", tell)


def _native(material: Translator) -> Captured | None:
    """Captured steps, where there is a GPU to capture them and a model that they fit."""
    model = material.models[0]
    alone = len(material.models) == 1 and material.device.type == "cuda" and not material.tokenizers.begin
    return Captured(model) if alone and Captured.fits(model) else None


def _half(material: Translator) -> Captured:
    """The same with weights and activations of 16 bits."""
    name, model = "engine = native-bfloat16", material.models[0]
    if material.device.type != "cuda":
        raise SettingsError(f"{name}: computes on a GPU; add --device cuda, or use the engine native")
    if not Captured.fits(model):
        raise ModelError(f"{name}: is for Transformers with plain attention; use the engine native")
    if material.tokenizers.begin:
        raise ModelError(f"{name}: knows nothing of a target's first tokens, which this run is given; use native")
    return Captured(model, torch.bfloat16, name="native-bfloat16")


def _may_write_the_same(material: Translator) -> bool:
    """Whether CTranslate2 computes this on a CPU. With words, `<unk>` may have a share, which it hands to others."""
    alone = len(material.models) == 1 and material.device.type == "cpu"
    words = isinstance(material.tokenizers.target, WordTokenizer | SpaceTokenizer)
    return alone and not words and not unfit(material.models[0]) and find_spec("ctranslate2") is not None


# Converted models


def export(material: Translator, folder: Path | None, quantization: str) -> Path:
    """A converted model with its tokenizers in a new folder; without one, where `choose` looks for it."""
    from regard.runs.card import CARD, card

    if folder is None:
        return _cached(material, quantization)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder}: is there already; choose another folder")
    with new_folder(folder) as beside:
        _convert(material, beside, quantization)
        shutil.copytree(material.loaded_from.tokenizer, beside / "tokenizer")
        (beside / CARD).write_text(card(material.loaded_from.folder, "ctranslate2"), encoding="utf-8")
    return folder


def _cached(material: Translator, quantization: str) -> Path:
    """RUN/engines/ctranslate2-…, made again when the best checkpoint is another than it was made of."""
    folder = material.loaded_from.engines / f"ctranslate2-{quantization}"
    if _receipt(folder) != _wanted(material):
        _make(material, folder, quantization)
    return folder


def _make(material: Translator, folder: Path, quantization: str) -> None:
    with new_folder(folder) as beside:
        _convert(material, beside, quantization)


def _convert(material: Translator, folder: Path, quantization: str) -> None:
    sides = (material.tokenizers.source, material.tokenizers.target)
    source, target = ([side.token(number) for number in range(side.size)] for side in sides)
    places = _places(material)
    end = ends_plainly(material.tokenizers)
    to_ctranslate2(
        material.models[0],
        source,
        target,
        folder,
        end=end,
        quantization=quantization,
        places=places,
        aligner=None if material.run is None else material.run.settings.guided_head,
    )
    (folder / _RECEIPT).write_text(json.dumps(_wanted(material), indent=2) + "\n", encoding="utf-8")


def ends_plainly(tokenizers: Tokenizers) -> bool:
    """Whether the last token that a model reads of a source is `<end>`."""
    return tokenizers.framed(())[-1:] == [END]


def _wanted(material: Translator) -> dict[str, Any]:
    """What a converted model was made of."""
    best = best_checkpoint(material.loaded_from)
    return {"format": FORMAT, "checkpoint": best.name, "places": _places(material), "files": manifest(best)}


def _receipt(folder: Path) -> object:
    return _json(folder / _RECEIPT)


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _places(material: Translator) -> int:
    """Positions that a converted model has: enough for the longest source and an output of twice its length."""
    positions = getattr(material.models[0].encoder, "positions", None)
    if isinstance(positions, Learned):
        return len(positions.weight)
    return min(2 * material.longest + SLACK, _MOST_PLACES)


# CTranslate2


def _ctranslate2(material: Translator, quantization: str, tell: Tell) -> CTranslate2:
    package = optional("ctranslate2", "engine = ctranslate2")
    try:
        folder = _cached(material, quantization)
        try:
            program = _open(package, folder, quantization)
        except ResourceError:  # damaged; it is only a copy
            _make(material, folder, quantization)
            program = _open(package, folder, quantization)
        size = _size(folder)
    except OSError:  # a run that may only be read
        with tempfile.TemporaryDirectory() as elsewhere:
            _convert(material, Path(elsewhere), quantization)
            program = _open(package, Path(elsewhere), quantization)
            size = _size(Path(elsewhere))
    name = "ctranslate2" if quantization == "float32" else f"ctranslate2-{quantization}"
    return CTranslate2(program, material.tokenizers, _places(material), name, tell, size)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def _open(package: Any, folder: Path, quantization: str) -> Any:
    try:
        return package.Translator(str(folder), "cpu", compute_type=quantization, intra_threads=torch.get_num_threads())
    except (RuntimeError, ValueError) as problem:
        line = f"{folder}: ctranslate2 cannot use it ({problem}); remove the folder and try again"
        raise ResourceError(line) from None


@dataclass
class CTranslate2:
    """The CTranslate2 library. Its beam search is ours, step for step, as long as no limit is reached.

    There as here, the W best continuations count at each step, an end among them is an output, W outputs end the
    search, and they are compared by ``log p / length^a`` with ``<end>`` in the length. At a limit we end a hypothesis
    and CTranslate2 cuts it, so a sentence whose search came that far is given back. Tokens that a target
    begins with count as certain there, too; an output that has nothing behind them is not always considered.
    """

    program: Any
    tokenizers: Tokenizers
    places: int
    name: str = "ctranslate2"
    tell: Tell = silent
    bytes: int = 0  # of the converted model, which it keeps in memory
    _told: set[str] = field(default_factory=set)

    def refuses(self, options: Options) -> str:
        why = _not_known(options)
        if why and why not in self._told:
            self._told.add(why)
            self.tell(f"engine: native: {self.name} knows nothing of {why}")
        return why

    def search(
        self, sources: Sequence[Sequence[int]], limits: Sequence[int], rule: Beam, budget: int
    ) -> list[list[Hypothesis] | None]:
        results: list[list[Hypothesis] | None] = [None] * len(sources)
        short = [row for row, limit in enumerate(limits) if max(limit, len(sources[row])) <= self.places]
        if not short:
            return results
        found = self.program.translate_batch(
            [self._pieces(sources[row]) for row in short],
            target_prefix=[list(self.tokenizers.frame.begin)] * len(short) if self.tokenizers.begin else None,
            max_batch_size=max(1, budget // rule.width),
            batch_type="tokens",
            beam_size=rule.width,
            num_hypotheses=rule.width,
            length_penalty=rule.length_penalty or _AS_GOOD_AS_NONE,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,  # no limit
            min_decoding_length=0,  # an output may be empty
            max_decoding_length=max(limits[row] for row in short),
        )
        for row, outputs in zip(short, found, strict=True):
            results[row] = self._read(outputs, limits[row], rule)
        return results

    def _pieces(self, source: Sequence[int]) -> list[str]:
        """A source as it is given to CTranslate2, which adds `<end>` itself where every source ends so."""
        read = source[:-1] if ends_plainly(self.tokenizers) else source
        return [self.tokenizers.source.token(number) for number in read]

    def _read(self, outputs: Any, limit: int, rule: Beam) -> list[Hypothesis] | None:
        """The outputs, unless the search may have come to its limit: with a beam, when one has just the limit."""
        id_of, longest = self.tokenizers.target.id, limit if rule.width == 1 else limit - 1
        if any(len(tokens) > longest or not tokens or id_of(tokens[-1]) != END for tokens in outputs.hypotheses):
            return None
        return [
            Hypothesis([id_of(token) for token in tokens[:-1]], score * len(tokens) ** rule.length_penalty, score)
            for tokens, score in zip(outputs.hypotheses[: rule.best], outputs.scores, strict=False)
        ]


# Auto


class Auto:
    """CTranslate2, once there is much to translate and if it writes what our own loop writes; else that loop.

    Nothing is converted for few sentences. When `MANY` have come, the outputs for `SAMPLE` of them are compared, greedy
    and with a beam of 5, and only if all are the same CTranslate2 searches from then on. The run remembers that.
    """

    def __init__(self, material: Translator, tell: Tell) -> None:
        self.material, self.tell = material, tell
        self.engine: CTranslate2 | None = None
        self.decided = False
        self.count = 0
        self.sample: dict[tuple[int, ...], int] = {}  # sources, each with its limit

    @property
    def name(self) -> str:
        return "native" if self.engine is None else self.engine.name

    @property
    def bytes(self) -> int:
        return 0 if self.engine is None else self.engine.bytes

    def refuses(self, options: Options) -> str:
        return _not_known(options) if self.engine is None else self.engine.refuses(options)

    def search(
        self, sources: Sequence[Sequence[int]], limits: Sequence[int], rule: Beam, budget: int
    ) -> list[list[Hypothesis] | None]:
        if not self.decided:
            self.look_at(sources, limits)
        if self.engine is None:
            return [None] * len(sources)
        return self.engine.search(sources, limits, rule, budget)

    def look_at(self, sources: Sequence[Sequence[int]], limits: Sequence[int]) -> None:
        """Count these sources and, when there are enough, decide."""
        self.count += len(sources)
        for source, limit in zip(sources, limits, strict=True):
            if len(self.sample) < SAMPLE:
                self.sample.setdefault(tuple(source), limit)
        if self.count < MANY or len(self.sample) < SAMPLE:
            return
        self.decided = True
        try:
            engine = _ctranslate2(self.material, "float32", self.tell)
        except ResourceError as problem:
            self.tell(f"engine: native: {problem}")
            return
        same = self._same(engine)
        if same == SAMPLE:
            self.engine = engine
            self.tell("engine: ctranslate2, float32: the same outputs in less time")
        else:
            self.tell(f"engine: native: ctranslate2 writes {SAMPLE - same} of {SAMPLE} sentences otherwise")

    def _same(self, engine: CTranslate2) -> int:
        """How many of the sample have the same outputs: as the run remembers it, else measured."""
        folder = self.material.loaded_from.engines / "ctranslate2-float32"
        kept, about = _receipt(folder) == _wanted(self.material), {"ctranslate2": version("ctranslate2")}
        saved = _json(folder / _VERDICT) if kept else None
        if isinstance(saved, dict) and about.items() <= saved.items():
            return SAMPLE if saved.get("same") == saved.get("sentences") else 0
        same = len(self.sample) - len(_others(Searcher.of(self.material.models), engine, self.sample))
        if kept:
            with suppress(OSError), new_file(folder / _VERDICT) as file:
                file.write(json.dumps(about | {"sentences": len(self.sample), "same": same}, indent=2).encode() + b"\n")
        return same


def settle(translator: Translator, texts: Sequence[str], options: Options) -> None:
    """Let `auto` decide by these texts, once and for all: processes that share a file must search with one engine."""
    engine = translator.search.searcher.engine
    if not isinstance(engine, Auto):
        return
    if not engine.refuses(options):
        parts = [part for text in texts for part in translator.search.parts(text)]
        sources = [translator.tokenizers.read(part) for part in parts]
        engine.look_at(sources, [int(options.longest * (len(source) - 1)) + SLACK for source in sources])
    engine.decided = True


def _others(own: Searcher, engine: CTranslate2, sample: dict[tuple[int, ...], int]) -> set[int]:
    """The numbers of the sentences that an engine writes otherwise than our own loop, greedy or with a beam of 5."""
    sources, limits = list(sample), list(sample.values())
    others: set[int] = set()
    for rule in (Beam(1), Beam(5)):
        theirs, writer = engine.search(sources, limits, rule, CPU_BUDGET), own.writer(rule)
        for group in of_like_length([len(source) for source in sources], CPU_BUDGET // rule.width):
            rows = pad_sequence([torch.tensor(sources[row]) for row in group], batch_first=True, padding_value=PAD)
            with torch.inference_mode():
                first, state = writer.start(rows)
            ours = search(writer, first, state, torch.tensor([limits[row] for row in group]), rule=rule)
            for row, (best, *_) in zip(group, ours, strict=True):
                found = theirs[row]  # None goes to our own loop in any case
                if found is not None and found[0].tokens != best.tokens:
                    others.add(row)
    return others


def _not_known(options: Options) -> str:
    """The first of these that CTranslate2 does not have, or has in another way."""
    rule = options.rule
    if not isinstance(rule, Beam):
        return "sampling by seed"
    asked = {
        "coverage": rule.coverage_penalty > 0,
        "groups": rule.groups > 1,
        "a least length": options.shortest > 0,
        "repeated pieces": options.no_repeat > 0,
        "forbidden words": bool(options.forbidden),
        "a prefix": bool(options.prefix),
        "a glossary": options.glossary is not None,
        "copied words": options.copy_unknown or rule.unknown,
    }
    return next((name for name, wanted in asked.items() if wanted), "")
