"""Comparing runs: the same text through each, then scores, paired tests, lengths, sentences and cost."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import cast

import numpy as np
import torch
from torch import nn

from regard import __version__
from regard.data.encoding import PairEncoder
from regard.data.readers import Corpus
from regard.decode.options import Options, how
from regard.decode.rules import Beam
from regard.device import pick_device
from regard.errors import ModelError, ResourceError, SettingsError
from regard.evaluate.comparison import Comparison, Conditions, Cost, Row
from regard.evaluate.evaluate import Texts, check_measures, learned, misnamed, translate
from regard.fable.sentence import Language
from regard.files import new_file
from regard.metrics.baselines import baselines
from regard.metrics.forecast import ForecastResult
from regard.metrics.groups import EDGES, by_length, most_differing
from regard.metrics.paired import paired
from regard.metrics.translation import Quality
from regard.metrics.translation import measure as measured
from regard.runs.folder import Run, best_checkpoint
from regard.runs.log import read_log
from regard.settings import RecurrentModel, Settings, TaskName
from regard.settings.call import DecodeSettings, MeasureSettings
from regard.settings.languages import languages_of
from regard.tasks.corpus import Fable, Files, columns_of, materials
from regard.tasks.load import evaluate, load, open_predictor, task_of
from regard.tasks.predictor import Rows
from regard.tasks.task import Task
from regard.text.sentences import one_line

HELD_OUT = 500  # sentences of the built-in corpus, by default
ROUND = 64  # sentences that a system translates before it is the next one's turn
ALONE = 20  # sentences translated one by one
WARM = 4  # sentences that are not timed

DECODE, MEASURE = DecodeSettings(), MeasureSettings()  # as usual
COUNTED = MeasureSettings(resamples=0, trials=0)  # of labels: nothing is drawn

Tell = Callable[[str], None]
System = tuple[Row, list[str]]  # a run, and its outputs for the material
Translate = Callable[[list[str]], list[str]]
Progress = Callable[[int, int], None]  # sentences done, of all


def check_numbers(*numbers: tuple[str, int, int]) -> None:
    for name, value, least in numbers:
        if value < least:
            raise SettingsError(f"{name} = {value}: is too small; {least} or more would be right")


def compare(
    runs: Sequence[Run | str | Path],
    source: str = "",
    target: str = "",
    *,
    decode: DecodeSettings = DECODE,
    measure: MeasureSettings = MEASURE,
    others: Sequence[Row] = (),
    device: str = "auto",
    texts: str | Path = "",
    tell: Tell | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Translate a test with every run: which is better, where, by how much and at what cost.

    Without `source` and `target` the test is what all runs share: the held-out part of the built-in corpus, or the
    validation files. `others` are rows from elsewhere. `texts` is a folder that gets every text, a sentence a line.
    """
    options = Options.of(decode)
    check_measures(measure)
    check_numbers(("limit", measure.limit, 0))
    check_numbers(("resamples", measure.resamples, 2), ("trials", measure.trials, 1), ("examples", measure.examples, 0))
    say: Tell = tell or (lambda _: None)
    opened = open_runs(runs)
    if (task := shared_task(list(opened.values()))) != "translate":
        labelled = labelled_material(list(opened.values()), task_of(task), source, target, measure.limit or None)
        return _compare_labels(opened, labelled, others, pick_device(device), say)
    material = test_material(list(opened.values()), source, target, measure.limit or None)
    say(f"{len(material.sources):,} sentences: {material.name}")
    chosen = pick_device(device)
    systems = _systems(opened, material, options, decode.engine, chosen, tell=say, progress=progress)
    if texts:
        save_texts(Path(texts), material, systems)
    say(f"testing every pair: {measure.resamples:,} resamples, {measure.trials:,} randomisations")
    facts = replace(
        conditions(material, chosen, measure, decode), learned=remarks(opened.values(), material, say, source, target)
    )
    return judged(systems, material, measure, facts, others)


def remarks(runs: Iterable[Run], material: Texts, say: Tell, *files: str) -> tuple[str, ...]:
    """About runs that were trained on some of the test, or are for other languages, which is also told."""
    found = tuple(each for run in runs for each in (misnamed(run, *files), learned(run, material.sources)) if each)
    for remark in found:
        say(remark)
    return found


def conditions(
    material: Texts | LabelledSet, device: torch.device, measure: MeasureSettings, decode: DecodeSettings | None = None
) -> Conditions:
    """How the numbers were made; `decode` is None where there is no search."""
    sha256, count = material.fingerprint()
    rule = None if decode is None else Options.of(decode).rule
    versions = {"regard": __version__, "sacrebleu": version("sacrebleu"), "torch": torch.__version__}
    versions |= {"numpy": np.__version__, "python": platform.python_version()}
    return Conditions(
        data=material.name,
        sentences=count,
        sha256=sha256,
        beam=rule.width if isinstance(rule, Beam) else None,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
        threads=torch.get_num_threads(),
        resamples=measure.resamples,
        trials=measure.trials,
        seed=measure.seed,
        versions=versions,
        how=() if decode is None else how(decode),
        held_out=material.held_out,
    )


def _compare_labels(
    opened: dict[str, Run], material: LabelledSet, others: Sequence[Row], device: torch.device, say: Tell
) -> Comparison:
    """Taggers, classifiers or language models: scores and cost, and for classes what counting words would reach."""
    facts = conditions(material, device, COUNTED)
    say(f"{facts.sentences:,} texts: {material.name}")
    predictors = [open_predictor(run.folder, str(device)) for run in opened.values()]
    calls, texts = [predictor.read for predictor in predictors], material.sample()
    (_, together), alone = take_turns(calls, texts), one_by_one(calls, texts)
    results = [evaluate(run.folder, material, str(device)) for run in opened.values()]
    rows = [
        Row(name, qualities(result.numbers()), cost(run, predictor.model, *spent), origin=origin(run))
        for (name, run), result, predictor, *spent in zip(
            opened.items(), results, predictors, together, alone, strict=True
        )
    ]
    first = next(iter(opened.values())).settings
    counted = baseline_rows(first, material, say) if material.task.counting else []
    if isinstance(results[0], ForecastResult):
        naive = (each for each in results[0].scores if "naive" in each.name)
        counted = [Row(each.name, qualities(each.numbers()), origin="no model") for each in naive]
    return Comparison((*rows, *counted, *others), (), (), facts)


def judged(
    systems: Sequence[System],
    material: Texts,
    how: MeasureSettings,
    facts: Conditions,
    others: Sequence[Row] = (),
) -> Comparison:
    """Outputs as scores, paired tests and the sentences that tell them apart; rows from elsewhere come last."""
    verdicts = paired([(row.name, outputs) for row, outputs in systems], material.references, how)
    differing = most_differing(
        material.sources,
        material.references,
        [outputs for _, outputs in systems],
        count=how.examples,
        seed=how.seed,
    )
    rows = [_scored(row, outputs, material, how) for row, outputs in systems]
    return Comparison((*rows, *others), tuple(verdicts), tuple(differing), facts)


def _scored(row: Row, outputs: list[str], material: Texts, how: MeasureSettings) -> Row:
    """With its scores on the material, whole and by length; lengths without sentences are left out."""
    scores = measured(outputs, material.references, how)
    how = how.model_copy(update={"edges": how.edges or tuple(fitting_edges(material.sources))})
    buckets = by_length(material.sources, outputs, material.references, how)
    filled = tuple(bucket for bucket in buckets if bucket.count)
    return replace(row, scores=tuple(scores), lengths=filled)


def fitting_edges(sources: Sequence[str]) -> Sequence[int]:
    """The usual edges; smaller steps where no sentence is long."""
    longest = max((len(source.split()) for source in sources), default=0)
    return EDGES if longest > 30 else tuple(range(5, max(6, longest), 5))


def open_runs(runs: Sequence[Run | str | Path]) -> dict[str, Run]:
    """Runs under names that tell them apart: the folder's, with as much before it as that takes."""
    opened = [run if isinstance(run, Run) else Run.open(Path(run)) for run in runs]
    folders = [run.folder.resolve() for run in opened]
    counting = bool(opened) and all(task_of(run.settings.task).counting for run in opened)
    least = 1 if counting else 2  # one is compared with what counting words reaches
    if len(set(folders)) < max(least, len(folders)):
        given = ", ".join(str(run.folder) for run in opened) or "none"
        raise SettingsError(f"runs = {given}: a comparison takes at least two, and none of them twice")
    return dict(zip(_short_names(folders), opened, strict=True))


def shared_task(runs: Sequence[Run]) -> TaskName:
    """The task that all runs are for; translators are for the same languages, where those are known."""
    found = sorted({run.settings.task for run in runs})
    if len(found) > 1:
        each = ", ".join(f"{run.folder} for {run.settings.task}" for run in runs)
        raise ModelError(f"runs = {each}: are for different tasks; compare runs of one task")
    pairs = [(run, pair) for run in runs if (pair := languages_of(run.settings))]
    if len({pair.codes for _, pair in pairs}) > 1:
        each = ", ".join(f"{run.place} for {pair}" for run, pair in pairs)
        raise ModelError(f"runs = {each}: translate between different languages; compare runs of one pair")
    return found[0]


def _short_names(folders: Sequence[Path]) -> list[str]:
    """Of each folder the fewest last parts that no other ends in."""
    names = []
    for folder in folders:
        endings = (folder.parts[-count:] for count in range(1, len(folder.parts) + 1))
        others = [other.parts for other in folders if other != folder]
        names.append("/".join(next(end for end in endings if all(one[-len(end) :] != end for one in others))))
    return names


# What is translated


def test_material(runs: Sequence[Run], source: str, target: str, limit: int | None) -> Texts:
    """The files that are given, else what all runs can be tested on."""
    names = PairEncoder.names
    if source and target:
        vectors = runs[0].settings.text.source.kind == "vectors"
        rows = Files(Corpus((source, target)), vectors=vectors).rows(names)
        return _material(f"{source} and {target}", rows, limit)
    if source or target:
        raise SettingsError(f"--source = {source}, --target = {target}: one is missing; give both or neither")
    settings = [run.settings for run in runs]
    corpus = settings[0].data.corpus
    if {one.data.corpus for one in settings} == {corpus} and settings[0].data.is_built_in:
        words = min(one.data.words for one in settings)
        _, _, language = corpus.partition(":")
        fable = Fable(cast("Language", language), "test", limit or HELD_OUT, words)
        return _material(f"{corpus}, the test part, up to {words} words", fable.rows(names), limit)
    data = [one.data for one in settings]
    files = {(one.valid_corpus, one.valid_source, one.valid_target) for one in data}
    files = files if files != {("", "", "")} else {(one.corpus, one.source, one.target) for one in data}
    if len(files) == 1 and (given := [name for name in files.pop() if name]):
        rows = materials(settings[0])[1].rows(names)
        part = "" if any((data[0].valid_corpus, data[0].valid_source)) else "held out of "
        who = "the run" if len(runs) == 1 else "each run"
        name = f"{part}{' and '.join(given)}, by which {who} chose its best checkpoint"
        return _material(name, rows, limit, held_out=False)
    raise SettingsError("--source, --target: missing, and the runs share no test; name the two files of one")


def _material(
    name: str, rows: Iterator[tuple[int, tuple[str, ...]]], limit: int | None, *, held_out: bool = True
) -> Texts:
    pairs = [texts for _, texts in islice(rows, limit)]
    return Texts([source for source, _ in pairs], [target for _, target in pairs], name=name, held_out=held_out)


def save_texts(folder: Path, material: Texts, systems: Sequence[System]) -> None:
    """``source.txt``, ``reference.txt`` and a file for each system: what the `sacrebleu` command takes."""
    texts = {"source": material.sources, "reference": material.references}
    texts |= {row.name.replace("/", "-"): outputs for row, outputs in systems}
    for name, lines in texts.items():
        path = folder / f"{name}.txt"
        with new_file(path) as file:
            file.write("".join(f"{line}\n" for line in map(one_line, lines)).encode("utf-8", "replace"))


# The systems


def _systems(
    runs: dict[str, Run],
    material: Texts,
    options: Options,
    engine: str,
    device: torch.device,
    *,
    tell: Tell,
    progress: Progress | None,
) -> list[System]:
    """Every run's cost and outputs, all models in this process and taking turns."""
    translators = [load(run.folder, device=str(device), engine=engine) for run in runs.values()]
    calls = [partial(translate, translator, options=options) for translator in translators]
    tell(f"translating with {', '.join(runs)}, in turns")
    outputs, each = take_turns(calls, material.sources, progress)
    alone = one_by_one(calls, material.sources)
    return [
        (Row(name, (), cost(run, translator.model, milliseconds, single), origin=origin(run)), texts)
        for (name, run), translator, texts, milliseconds, single in zip(
            runs.items(), translators, outputs, each, alone, strict=True
        )
    ]


def take_turns(
    calls: Sequence[Translate], sources: Sequence[str], progress: Progress | None = None
) -> tuple[list[list[str]], list[float]]:
    """Each system's outputs, and its milliseconds a sentence.

    A machine is not equally fast at all times. So the systems translate a part of the test each in turn, parts of
    like lengths, and another one begins every time.
    """
    rounds = max(1, len(sources) // ROUND)
    outputs = [[""] * len(sources) for _ in calls]
    seconds = [0.0] * len(calls)
    for call in calls:
        call(list(sources[:WARM]))
    for turn in range(rounds):
        part = list(sources[turn::rounds])
        for place in _order(turn, len(calls)):
            began = perf_counter()
            outputs[place][turn::rounds] = calls[place](part)
            seconds[place] += perf_counter() - began
        if progress is not None:
            progress(len(sources) * (turn + 1) // rounds, len(sources))
    return outputs, [1000 * spent / max(1, len(sources)) for spent in seconds]


def one_by_one(calls: Sequence[Translate], sources: Sequence[str]) -> list[float]:
    """Each system's milliseconds for a sentence by itself: the median over some, drawn with a fixed seed."""
    drawn = Random(MEASURE.seed).sample(list(sources), min(ALONE, len(sources)))
    spent: list[list[float]] = [[] for _ in calls]
    for turn, text in enumerate(drawn):
        for place in _order(turn, len(calls)):
            began = perf_counter()
            calls[place]([text])
            spent[place].append(perf_counter() - began)
    return [1000 * median(times or [0.0]) for times in spent]


def _order(turn: int, count: int) -> list[int]:
    return [(turn + place) % count for place in range(count)]


def cost(run: Run, model: nn.Module, milliseconds: float, alone: float) -> Cost:
    """What a run took to train, by its log, and what it takes now."""
    steps = [event for event in read_log(run.log) if event["event"] == "step"]
    seconds = float(steps[-1]["seconds"]) if steps else None
    return Cost(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens_per_second=steps[-1]["tokens"] / seconds if seconds else None,
        seconds=seconds,
        milliseconds=milliseconds,
        alone=alone,
    )


def origin(run: Run) -> str:
    """Which checkpoint of which run, and what kind of model it is."""
    model, tokenizer = run.settings.model, run.settings.text.tokenizer
    kind = model.cell if isinstance(model, RecurrentModel) else model.kind
    return f"{run.place}, {best_checkpoint(run).name}, {kind} of width {model.width}, {tokenizer} tokenizer"


# Runs of the other tasks side by side: taggers, classifiers and language models on one corpus.

TIMED = 256  # texts that every run labels, in turns, while the clock runs


@dataclass(frozen=True)
class LabelledSet:
    """What is labelled, with the right answers, and where it comes from."""

    name: str
    task: type[Task]
    whole: Rows
    limit: int | None  # of the rows, the first of which are used
    held_out: bool  # False: by this text checkpoints were chosen

    def rows(self, names: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        return islice(self.whole.rows(names), self.limit)

    def fingerprint(self) -> tuple[str, int]:
        """Of all rows, and how many there are."""
        digest, count = hashlib.sha256(), 0
        for _, row in self.rows(self.task.columns):
            digest.update("\t".join(row).encode("utf-8", "surrogatepass") + b"\n")
            count += 1
        return digest.hexdigest(), count

    def sample(self) -> list[str]:
        """The first texts, for the clock."""
        return [row[0] for _, row in islice(self.rows(self.task.columns), TIMED)]


def labelled_material(
    runs: Sequence[Run], task: type[Task], source: str, target: str, limit: int | None = None
) -> LabelledSet:
    """The files that are given (one that holds all columns, or two), else the validation text that all runs share."""
    given = tuple(name for name in (source, target) if name)
    settings = [run.settings for run in runs]
    one = _of_all(settings)
    if given:
        columns = columns_of(one.data) if one.task == "forecast" else ()
        files = Files(Corpus(given, columns), vectors=one.text.source.kind == "vectors")
        return LabelledSet(" and ".join(given), task, task.material(files, one), limit, held_out=True)
    fields = [f"{part}{side}" for part in ("", "valid_") for side in ("corpus", "source", "target")]
    shared = {(each.forecast.held_out, *(getattr(each.data, field) for field in fields)) for each in settings}
    if len(shared) > 1:
        raise SettingsError("--source: missing, and the runs share no validation text; name a file with the answers")
    name = f"the validation text, by which {'the run' if len(settings) == 1 else 'each run'} chose its best checkpoint"
    return LabelledSet(name, task, materials(one)[1], limit, held_out=False)


def _of_all(settings: Sequence[Settings]) -> Settings:
    """The first run's settings; of forecasters with the longest context, so that all forecast the same moments."""
    cuts = [one.forecast for one in settings]
    if settings[0].task == "forecast" and len({(cut.horizon, cut.season) for cut in cuts}) > 1:
        each = ", ".join(f"{cut.horizon} of {cut.season}" for cut in cuts)
        raise SettingsError(f"forecast.horizon of forecast.season = {each}: differ; compare runs that have the same")
    cut = cuts[0].model_copy(update={"context": max(cut.context for cut in cuts)})
    return settings[0].model_copy(update={"forecast": cut})


def qualities(numbers: Sequence[tuple[str, float]]) -> tuple[Quality, ...]:
    """What the task is measured by, the first number deciding."""
    return tuple(Quality(name, score, "") for name, score in numbers)


def baseline_rows(settings: Settings, material: LabelledSet, tell: Tell) -> list[Row]:
    """What counting words reaches after the same training text; nothing where scikit-learn is not installed."""
    names = material.task.columns
    train = ((row[0], row[1]) for _, row in materials(settings)[0].rows(names))
    held_out = ((row[0], row[1]) for _, row in material.rows(names))
    try:
        known = baselines(train, held_out)
    except ResourceError as problem:
        tell(f"baselines left out: {problem}")
        return []
    return [
        Row(
            name,
            (Quality("accuracy", 100 * found.accuracy, ""), Quality("macro F1", 100 * found.macro_f1, "")),
            origin="scikit-learn",
        )
        for name, found in known.items()
    ]
