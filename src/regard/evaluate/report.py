"""The report of one run: how it learned, how good it is, where it fails, its attention, how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from regard.data.shards import Shards, open_shards
from regard.decode.options import Options
from regard.device import pick_device
from regard.errors import DataError
from regard.evaluate import evaluate as evaluation
from regard.evaluate.compare import (
    COUNTED,
    DECODE,
    MEASURE,
    check_numbers,
    conditions,
    fitting_edges,
    labelled_material,
    qualities,
    remarks,
    test_material,
)
from regard.evaluate.comparison import Conditions
from regard.evaluate.evaluate import Texts, check_measures
from regard.evaluate.run_report import (
    CorpusCard,
    Learning,
    Recipe,
    RunReport,
    SideCard,
)
from regard.evaluate.sentences import beam_tree, examples, looks, reading
from regard.metrics.forecast import ForecastResult
from regard.runs.folder import SETTINGS, Run, best_checkpoint, digest, manifest
from regard.runs.listing import summarise
from regard.runs.log import Moment, Validation, read_log
from regard.settings.call import DecodeSettings, MeasureSettings
from regard.settings.loading import overrides_of
from regard.tasks.load import evaluate as evaluate_labels
from regard.tasks.load import load, task_of
from regard.tasks.translator import Translation, Translator
from regard.text.sentences import one_line
from regard.text.tokenizers import Tokenizers

PINNED = (
    "The black cat ate the mouse.",
    "The bear ate the honey because it was hungry.",
    "The bear ate the honey because it was delicious.",
)
POINTS = 200  # of a curve

Tell = Callable[[str], None]


def report(
    run: Run | str | Path,
    source: str = "",
    target: str = "",
    *,
    decode: DecodeSettings = DECODE,
    measure: MeasureSettings = MEASURE,
    pins: Sequence[str] | None = None,
    device: str = "auto",
    tell: Tell | None = None,
) -> RunReport:
    """Measure a run and look into it.

    Without ``source`` and ``target`` the test is the held-out part of the built-in corpus, or the validation text.
    ``pins`` are sentences that are always shown; a run of the built-in corpus has three.
    """
    opened = run if isinstance(run, Run) else Run.open(Path(run))
    chosen, say = pick_device(device), tell or (lambda _: None)
    if opened.settings.task != "translate":
        return _of_labels(opened, source, target, chosen, say)
    options = Options.of(decode)
    check_numbers(("limit", measure.limit, 0))
    check_measures(measure)
    material = test_material([opened], source, target, measure.limit or None)
    translator = load(opened.folder, device=str(chosen), engine=decode.engine)
    say(f"translating {len(material.sources):,} sentences: {material.name}")
    began = perf_counter()
    found = list(translator.stream(material.sources, options))
    spent = 1000 * (perf_counter() - began) / max(1, len(found))
    test = replace(
        conditions(material, chosen, measure, decode), learned=remarks([opened], material, say, source, target)
    )
    given = [*overrides_of("decode", decode), *overrides_of("measure", measure), *_flags(source, target, pins or ())]
    plain = replace(_plain_report(opened, test, given), milliseconds=spent)
    measured = _measured(plain, opened, material, found, measure)
    shown = pins if pins is not None else PINNED if opened.settings.data.is_built_in else ()
    return _with_sentences(measured, translator, found, material.references, shown, options=options)


def _measured(
    plain: RunReport, run: Run, material: Texts, found: Sequence[Translation], how: MeasureSettings
) -> RunReport:
    """All numbers about the whole test."""
    outputs = [one_line(each.text) for each in found]
    counts = evaluation.training_counts(run, material.sources)
    fitted = how.model_copy(update={"edges": how.edges or tuple(fitting_edges(material.sources))})
    result = evaluation.evaluate(material, outputs, counts, fitted)
    return replace(
        plain,
        scores=tuple(result.qualities),
        lengths=tuple(bucket for bucket in result.lengths if bucket.count),
        rarities=tuple(bucket for bucket in result.rarities if bucket.count),
        counts=result.counts,
        habits=result.habits,
        tokenised=result.tokenised,
    )


def _with_sentences(
    measured: RunReport,
    translator: Translator,
    found: Sequence[Translation],
    references: Sequence[str],
    pins: Sequence[str],
    *,
    options: Options,
) -> RunReport:
    """The same with sentences and what went on inside."""
    assert translator.run is not None
    pinned = [one for one in translator.stream(pins, options) if one.source.strip()]
    shown = examples(translator, found, references, pinned, measured.test.seed)
    lines = [one.line for one in shown if one.chosen == "random" and one.line is not None]
    candidates = [*pinned, *(found[line - 1] for line in lines)]
    return replace(
        measured,
        examples=shown,
        links=reading(translator),
        looks=looks(translator, candidates),
        tree=beam_tree(translator, candidates, options),
    )


# Any task


def _plain_report(run: Run, test: Conditions, given: Sequence[str]) -> RunReport:
    """What every run has: its summary, curves, corpus, and how to repeat it."""
    known = replace(summarise(run.folder, run.folder.resolve().name), folder=run.place)
    used = best_checkpoint(run).name
    return RunReport(known, used, learning(run), test, (), corpus_card(run), _recipe(run, test, given))


def learning(run: Run) -> Learning:
    """The curves, thinned to what can be seen."""
    events = read_log(run.log)
    steps = [event for event in events if event["event"] == "step"]
    checks = [event for event in events if event["event"] == "validation"]
    return Learning(
        tuple(_moment(group) for group in _groups(steps)),
        tuple(Validation(**_known(Validation, each)) for each in checks),
        float(steps[-1]["seconds"]) if steps else None,
        int(steps[-1]["tokens"]) if steps else None,
    )


def _known(kind: type, event: dict[str, Any]) -> dict[str, Any]:
    """What a record has of an event, but for samples."""
    return {each.name: event[each.name] for each in fields(kind) if each.name in event and each.name != "samples"}


def _groups(steps: Sequence[dict[str, Any]]) -> list[Sequence[dict[str, Any]]]:
    """At most `POINTS` groups of neighbours."""
    count = min(POINTS, len(steps))
    edges = [len(steps) * place // count for place in range(count + 1)] if count else []
    return [steps[begin:end] for begin, end in pairwise(edges)]


def _moment(group: Sequence[dict[str, Any]]) -> Moment:
    means = {name: sum(event[name] for event in group) / len(group) for name in ("loss", "norm", "rate")}
    return Moment(**_known(Moment, group[-1]) | means)


def corpus_card(run: Run) -> CorpusCard:
    """The training text, as far as the encoded copy in the run tells."""
    data, text = run.settings.data, run.settings.text
    name = data.corpus or " and ".join(side for side in (data.source, data.target) if side)
    if data.is_built_in:
        name = f"{data.corpus}, the built-in corpus, sentences of up to {data.words} words"
    tokenizer = "none" if run.settings.task == "forecast" else text.tokenizer
    kind = f"{tokenizer}{', one for both sides' if text.joint and run.settings.task == 'translate' else ''}"
    train, valid = _shards(run, "train"), _shards(run, "valid")
    if train is None:
        return CorpusCard(name, None, None, kind, (), "")
    sides = tuple(_side(column, train) for column in train.manifest.columns if column not in ("vectors", "futures"))
    rows = None if valid is None else valid.manifest.rows
    return CorpusCard(name, train.manifest.rows, rows, kind, sides, train.manifest.fingerprint)


def _shards(run: Run, part: str) -> Shards | None:
    try:
        return open_shards(run.data / part, verify=False)
    except DataError:
        return None


def _side(name: Any, shards: Shards) -> SideCard:
    summary, lengths = shards.manifest.columns[name], shards.columns[name].lengths()
    middle = int(np.median(lengths)) if len(lengths) else 0
    mean = summary.numbers / max(1, shards.manifest.rows)
    return SideCard(name, summary.numbers, mean, middle, summary.longest, summary.size, summary.unknown_share)


def _recipe(run: Run, test: Conditions, given: Sequence[str]) -> Recipe:
    tokenizers, checkpoint = Tokenizers.load(run.tokenizer), best_checkpoint(run)
    weights = {name: value for name, value in manifest(checkpoint).items() if name.endswith(".safetensors")}
    used = {name: weights[name] for name in ("average.safetensors", "weights.safetensors") if name in weights}
    hashes = {f"{checkpoint.name}/{name}": value for name, value in used.items()}
    hashes |= {SETTINGS: digest(run.folder / SETTINGS), "source tokenizer": tokenizers.source.fingerprint()}
    if not tokenizers.joint:
        hashes["target tokenizer"] = tokenizers.target.fingerprint()
    hashes["test text"] = test.sha256
    again = shlex.join(["regard", "report", run.place, *given, "--out", "report.html"])
    return Recipe(
        ("regard train settings.toml --out again", again), run.settings.to_toml(), run.settings.train.seed, hashes
    )


def _flags(source: str, target: str, pins: Sequence[str] = ()) -> list[str]:
    named = (("--source", source), ("--target", target), *(("--pin", pin) for pin in pins))
    return [word for name, value in named if value for word in (name, value)]


# Other tasks


def _of_labels(run: Run, source: str, target: str, device: torch.device, say: Tell) -> RunReport:
    """Taggers, classifiers and language models: curves, scores, confusion, settings."""
    material = labelled_material([run], task_of(run.settings.task), source, target)
    test = conditions(material, device, COUNTED)
    say(f"reading {test.sentences:,} rows: {material.name}")
    result = evaluate_labels(run.folder, material, str(device))
    plain = _plain_report(run, test, _flags(source, target))
    forecasts = result.scores if isinstance(result, ForecastResult) else ()
    return replace(plain, scores=qualities(result.numbers()), confusions=result.confusions(), forecasts=forecasts)
