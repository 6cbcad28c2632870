"""The engine that searches with a run, chosen when the run is loaded; and the folders of converted models.

RUN/engines/ctranslate2-float32/  model.bin, config.json, vocabularies; regard.json: the weights it was made of;
                                  same.json: how many of its outputs are those of our own loop, once measured
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.decode.constraints import Constraint
from regard.decode.engines.captured import Captured
from regard.decode.engines.ctranslate2 import CTranslate2, ends_plainly, to_ctranslate2, unfit, unsupported
from regard.decode.engines.engine import Engine, Searcher
from regard.decode.engines.pooled import Pooled
from regard.decode.options import SLACK, Options
from regard.decode.rules import Beam, Sample
from regard.decode.search import Hypothesis, of_like_length, search
from regard.decode.texts import CPU_BUDGET
from regard.errors import ModelError, ResourceError, SettingsError, did_you_mean, optional
from regard.files import new_file, new_folder, read_object
from regard.nn.embeddings import Learned
from regard.runs.folder import best_checkpoint, manifest
from regard.tasks.translator import Translator
from regard.text.vocabulary import PAD
from regard.text.words import SpaceTokenizer, WordTokenizer

ENGINES = ("native", "native-bfloat16", "auto", "ctranslate2", "ctranslate2-int8")
FORMAT = 1  # of the converted models; one of another format is made again
MANY = 1000  # sentences, for which converting the model and comparing outputs takes about as long as it saves
SAMPLE = 50  # different ones, of the first that come, on which outputs are compared
_RECEIPT, _VERDICT = "regard.json", "same.json"
_MOST_PLACES = 4096  # positions of a converted model; our own loop searches what is longer

Tell = Callable[[str], object]


def silent(line: str) -> None:
    """Discard the line."""


def check(name: str) -> None:
    """Refuse a name that no engine has."""
    if name not in ENGINES:
        raise SettingsError(f"engine = {name}: no such engine; {did_you_mean(name, ENGINES)}")


def choose(name: str, translator: Translator, tell: Tell = silent) -> Searcher:
    """The searcher with the engine of this name. ``tell`` gets the choice of `auto`, and what goes to our own loop.

    On a GPU, `native` searches in captured steps with models that fit, which find the same outputs.
    """
    check(name)
    return Searcher.of(translator.models, _engine(name, translator, tell))


def _engine(name: str, translator: Translator, tell: Tell) -> Engine | None:
    """The engine of a name; None: our own loop alone."""
    if name == "native":
        return _native(translator)
    if name == "auto":
        return Auto(translator, tell) if _may_agree(translator) else _native(translator)
    if len(translator.models) > 1:
        raise SettingsError(f"engine = {name}: translates with one run, and here are several; use the engine native")
    if name == "native-bfloat16":
        return _bfloat16(translator)
    if translator.device.type != "cpu":
        raise SettingsError(f"engine = {name}: computes on the CPU here; add --device cpu, or use the engine native")
    if problem := unfit(translator.models[0]):
        raise ModelError(problem)
    return _ctranslate2(translator, "int8" if name.endswith("int8") else "float32", tell)


def _native(translator: Translator) -> Captured | None:
    """Captured steps, on a GPU and for models that they fit."""
    fitting = translator.device.type == "cuda" and Captured.fits(translator.models)
    return Captured(translator.models) if fitting else None


def _bfloat16(translator: Translator) -> Captured:
    """The same with weights and activations of 16 bits."""
    name = "engine = native-bfloat16"
    if translator.device.type != "cuda":
        raise SettingsError(f"{name}: computes on a GPU; add --device cuda, or use the engine native")
    if not all(map(Pooled.fits, translator.models)):
        raise ModelError(f"{name}: is for Transformers with plain attention; use the engine native")
    return Captured(translator.models, torch.bfloat16, name="native-bfloat16")


def _may_agree(translator: Translator) -> bool:
    """Whether CTranslate2 can compute this on a CPU, without `<unk>` as in a vocabulary of words: it never writes that,
    so the other words share its probability."""
    alone = len(translator.models) == 1 and translator.device.type == "cpu"
    words = isinstance(translator.tokenizers.target, WordTokenizer | SpaceTokenizer)
    return alone and not words and not unfit(translator.models[0]) and find_spec("ctranslate2") is not None


# Converted models


def export(translator: Translator, folder: Path | None, quantization: str) -> Path:
    """A converted model with its tokenizers in a new folder; without one, where `choose` looks for it."""
    from regard.runs.card import CARD, card

    if folder is None:
        return _cached(translator, quantization)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder}: is there already; choose another folder")
    with new_folder(folder) as beside:
        _convert(translator, beside, quantization)
        shutil.copytree(translator.loaded_from.tokenizer, beside / "tokenizer")
        (beside / CARD).write_text(card(translator.loaded_from.folder, "ctranslate2"), encoding="utf-8")
    return folder


def _cached(translator: Translator, quantization: str, *, anew: bool = False) -> Path:
    """RUN/engines/ctranslate2-…, made again when the best checkpoint has changed."""
    folder = translator.loaded_from.engines / f"ctranslate2-{quantization}"
    if anew or read_object(folder / _RECEIPT) != _wanted(translator):
        with new_folder(folder) as beside:
            _convert(translator, beside, quantization)
    return folder


def _convert(translator: Translator, folder: Path, quantization: str) -> None:
    sides = (translator.tokenizers.source, translator.tokenizers.target)
    source, target = ([side.token(number) for number in range(side.size)] for side in sides)
    to_ctranslate2(
        translator.models[0],
        source,
        target,
        folder,
        end=ends_plainly(translator.tokenizers),
        quantization=quantization,
        places=_places(translator),
        aligner=None if translator.run is None else translator.run.settings.guided_head,
    )
    (folder / _RECEIPT).write_text(json.dumps(_wanted(translator), indent=2) + "\n", encoding="utf-8")


def _wanted(translator: Translator) -> dict[str, Any]:
    """The receipt of a converted model: what it is made of."""
    best = best_checkpoint(translator.loaded_from)
    return {"format": FORMAT, "checkpoint": best.name, "places": _places(translator), "files": manifest(best)}


def _places(translator: Translator) -> int:
    """Positions of a converted model: enough for the longest source and an output of twice its length."""
    positions = getattr(translator.models[0].encoder, "positions", None)
    if isinstance(positions, Learned):
        return len(positions.weight)
    return min(2 * translator.longest + SLACK, _MOST_PLACES)


# CTranslate2


def _ctranslate2(translator: Translator, quantization: str, tell: Tell) -> CTranslate2:
    package = optional("ctranslate2", "engine = ctranslate2")
    try:
        folder = _cached(translator, quantization)
        try:
            program, size = _open(package, folder, quantization)
        except ResourceError:  # damaged; it is only a copy
            program, size = _open(package, _cached(translator, quantization, anew=True), quantization)
    except OSError:  # a run that may only be read
        with tempfile.TemporaryDirectory() as elsewhere:
            _convert(translator, Path(elsewhere), quantization)
            program, size = _open(package, Path(elsewhere), quantization)
    name = "ctranslate2" if quantization == "float32" else f"ctranslate2-{quantization}"
    return CTranslate2(program, translator.tokenizers, _places(translator), name, tell, size)


def _open(package: Any, folder: Path, quantization: str) -> tuple[Any, int]:
    """The program with a converted model, and the bytes of that."""
    try:
        program = package.Translator(
            str(folder), "cpu", compute_type=quantization, intra_threads=torch.get_num_threads()
        )
    except (RuntimeError, ValueError) as problem:
        line = f"{folder}: ctranslate2 cannot use it ({problem}); remove the folder and try again"
        raise ResourceError(line) from None
    return program, sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


# Auto


class Auto:
    """CTranslate2, once there is much to translate and if its outputs are those of our own loop; else that loop.

    After `MANY` sentences the model is converted, and the outputs for `SAMPLE` of them are compared, greedy and with a
    beam of 5. If all are the same, CTranslate2 searches from then on. The result is kept in the run.
    """

    def __init__(self, translator: Translator, tell: Tell) -> None:
        self.translator, self.tell = translator, tell
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
        return unsupported(options) if self.engine is None else self.engine.refuses(options)

    def search(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        rule: Beam | Sample,
        budget: int,
        *,
        constraints: Sequence[Constraint] = (),
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        if not self.decided:
            self.look_at(sources, limits)
        if self.engine is None:
            return [[] for _ in sources]
        return self.engine.search(sources, limits, rule, budget, constraints=constraints, numbers=numbers)

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
            engine = _ctranslate2(self.translator, "float32", self.tell)
        except ResourceError as problem:
            self.tell(f"engine: native: {problem}")
            return
        same = self._same(engine)
        if same == SAMPLE:
            self.engine = engine
            self.tell("engine: ctranslate2, float32: the same outputs in less time")
        else:
            self.tell(f"engine: native: ctranslate2 has other outputs for {SAMPLE - same} of {SAMPLE} sentences")

    def _same(self, engine: CTranslate2) -> int:
        """How many of the sample have the same outputs: as measured before, else measured now."""
        folder = self.translator.loaded_from.engines / "ctranslate2-float32"
        kept = read_object(folder / _RECEIPT) == _wanted(self.translator)
        about = {"ctranslate2": version("ctranslate2")}
        saved = read_object(folder / _VERDICT) if kept else None
        if saved is not None and about.items() <= saved.items():
            return SAMPLE if saved.get("same") == saved.get("sentences") else 0
        same = len(self.sample) - len(_others(Searcher.of(self.translator.models), engine, self.sample))
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
    """The numbers of the sentences whose outputs are not those of our own loop, greedy or with a beam of 5."""
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
                if theirs[row] and theirs[row][0].tokens != best.tokens:  # without outputs, our own loop searches
                    others.add(row)
    return others
