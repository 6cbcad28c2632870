"""Measuring which map to believe for a run: ``regard faithful``. `regard.explain.faithful` defines the figures.

The words that a map puts first are blanked out (their embedding is zero). Masking does the same to one word at a time,
so the measurement favours it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from regard.decode.cancel import check_cancelled
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner, attend, sides
from regard.explain.attribution import word_map
from regard.explain.faithful import KNOWN, MEAN, RANDOM, Faithfulness, Figure, MapQuality, method_and_head, weights_of
from regard.explain.look import look
from regard.explain.passes import PREFIX, Subject, masking
from regard.explain.replay import Model
from regard.explain.trace import Side, members, so_far
from regard.fable.corpus import pronoun_riddles
from regard.metrics.alignment import Gold, Links
from regard.models.generator import EncoderDecoder
from regard.runs.folder import Run
from regard.settings.call import MeasureSettings
from regard.tasks.load import Trained, task_of
from regard.tasks.translator import attends
from regard.text.tokenizers import Tokenizers

LIMIT = 50  # sentences, unless more are asked for
SHARES = (0.1, 0.2, 0.3, 0.5)  # of the words read that are taken away, or left: at least one
ROWS = 8  # output words of a sentence that are measured, drawn by chance
LONGEST = 60  # words of a sentence, read or written
REDRAWN = 20  # sentences whose maps are also made of the model drawn anew
RIDDLES = 30
UNCHANGED = 0.5  # a higher rank correlation with the map of re-drawn weights is suspicious
JUDGE = "masking"  # agreement is measured with this method
Pair = tuple[Side, Side]  # what was read and what was written
Numbers = NDArray[np.float64]


@dataclass
class Tally:
    """The figures of one method, a number for each sentence."""

    comprehensiveness: list[float] = field(default_factory=list)
    sufficiency: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)
    redrawn: list[float] = field(default_factory=list)
    links: list[Links] = field(default_factory=list)
    seconds: float = 0.0


def faithful(
    predictor: Trained,
    texts: Sequence[tuple[str, str | None]],
    golds: Sequence[Gold] | None = None,
    *,
    named: str = "",
    how: MeasureSettings | None = None,
    tell: Callable[[int, int], object] = lambda *_: None,
) -> Faithfulness:
    """Every method that a run has, on some of the texts; what has no translation yet is translated. Gold links are of
    the given translations. Nothing is remembered: `Faithfulness.save` does that."""
    how, run = how or MeasureSettings(limit=LIMIT), predictor.run
    _check(predictor, run, texts, golds, how)
    assert run is not None
    numbers, pairs = _pairs(predictor, texts, how.limit or len(texts))
    kept = None if golds is None else [golds[number] for number in numbers]
    aligner = predictor.aligner if predictor.task == "translate" and attends(predictor.model) else None
    chance = np.random.default_rng(how.seed)
    found = Measured(predictor.model, _drawn_anew(run, predictor.model, how.seed), aligner, chance)
    for done, pair in enumerate(pairs, start=1):
        found.add(pair)
        tell(done, len(pairs))
    draws = _draws(len(pairs), how.resamples, chance)
    own = None
    if kept is not None and aligner is not None:
        assert isinstance(predictor.model, EncoderDecoder)
        own = error_rates([aligner.align(each) for each in attend(predictor.model, pairs)], kept, draws)
    riddles = dict[str, Numbers]()
    if predictor.task == "translate" and run.settings.data.corpus == "fable:fr":
        riddles = found.riddles(predictor.tokenizers, how.limit)
    methods = _ranked(found.tallies, kept, riddles, draws)
    best = next(each.method for each in methods if each.method != RANDOM)
    given = texts[0][1] is not None if predictor.task == "translate" else None
    what = {None: "", True: ", given translations", False: ", its own translations"}[given]
    return Faithfulness(
        run=run.folder.name,
        weights=weights_of(run),
        measured_on=f"{named or 'the texts given'}{what}",
        sentences=len(pairs),
        left_out=len(texts) - len(pairs),
        words=found.words,
        methods=methods,
        refused=found.refused,
        best=best,
        aligner=None if own is None else _figure(own),
        links=_links(methods, own),
        resamples=how.resamples,
        seed=how.seed,
    )


def _check(
    predictor: Trained,
    run: Run | None,
    texts: Sequence[tuple[str, str | None]],
    golds: Sequence[Gold] | None,
    how: MeasureSettings,
) -> None:
    if run is None:
        raise ModelError("faithful: this model has no run, so its weights cannot be drawn anew; load it from one")
    for name, value, least, usual in (("resamples", how.resamples, 2, 1000), ("limit", how.limit, 0, LIMIT)):
        if value < least:
            raise SettingsError(f"{name} = {value}: too few; {usual:,} is usual, {least} the least")
    if golds is not None and (predictor.task != "translate" or any(target is None for _, target in texts)):
        raise DataError("alignment: gold links are of given translations; give --target too")


def _pairs(predictor: Trained, texts: Sequence[tuple[str, str | None]], limit: int) -> tuple[list[int], list[Pair]]:
    """The first texts that are neither empty nor too long, by number, as what was read and what was written."""
    numbers, pairs = list[int](), list[Pair]()
    for number, (text, target) in enumerate(texts):
        if len(pairs) == limit:
            break
        if not 2 <= len(text.split()) <= LONGEST or (target is not None and not target.split()):
            continue
        check_cancelled()
        if predictor.task == "translate":
            written = predictor.translate(text).text if target is None else target
            pair = sides(predictor.tokenizers, text, written)
        else:
            trace = look(predictor, text).trace
            pair = trace.source, trace.target
        if 1 <= len(pair[1].words) <= LONGEST:
            numbers.append(number)
            pairs.append(pair)
    if not pairs:
        raise DataError(f"texts = {len(texts):,}: none has 2 to {LONGEST} words; give sentences")
    return numbers, pairs


def _drawn_anew(run: Run, model: Model, seed: int) -> Model:
    """The model with newly drawn weights, as before training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = task_of(run.settings.task).build(run, Tokenizers.load(run.tokenizer))
    like = next(model.parameters())
    return found.to(like.device, like.dtype).eval()  # type: ignore[return-value]


# One sentence


@dataclass
class Measured:
    """All methods, sentence by sentence."""

    model: Model
    again: Model  # with weights drawn anew
    aligner: Aligner | None
    chance: np.random.Generator
    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in KNOWN})
    refused: dict[str, str] = field(default_factory=dict)
    words: int = 0

    def add(self, pair: Pair) -> None:
        """Measure every method on one sentence."""
        place, groups, rows = _axes(self.model, pair)
        drawn = sorted(self.chance.choice(len(rows), min(ROWS, len(rows)), replace=False).tolist())
        columns = {row: several for row in drawn if len(several := readable(place, groups, rows[row])) > 1}
        found, anew = dict[str, Numbers](), dict[str, Numbers]()
        for name, tally in list(self.tallies.items()):
            begun = time.perf_counter()
            try:
                found[name] = self.map(self.model, pair, name)
            except (ModelError, DataError) as problem:
                self.refused[name] = str(problem)
                del self.tallies[name]
                continue
            tally.seconds += time.perf_counter() - begun
            if len(tally.redrawn) < REDRAWN:
                anew[name] = self.map(self.again, pair, name)
        curves = _curves(self.model, pair, found, list(columns))
        for name, values in found.items():
            tally = self.tallies[name]
            tally.comprehensiveness.append(curves[name][0])
            tally.sufficiency.append(curves[name][1])
            tally.agreement.append(_alike(values, found[JUDGE], columns))
            tally.redrawn.append(_alike(values, anew[name], columns) if name in anew else math.nan)
            tally.links.append(heaviest(values))
        self.words += len(columns)

    def map(self, model: Model, pair: Pair, name: str) -> Numbers:
        """Of the words read to the words written, (T words, S words)."""
        if name == RANDOM:
            _, groups, rows = _axes(model, pair)
            return self.chance.random((len(rows), len(groups)))
        if name == MEAN and self.aligner is None:
            raise ModelError("there is no cross-attention whose heads could be averaged")
        method, head = method_and_head(name)
        values = word_map(model, *pair, method, aligner=self.aligner, head=head).weights
        return values.detach().cpu().double().numpy()

    def riddles(self, tokenizers: Tokenizers, limit: int) -> dict[str, Numbers]:
        """Of every method, 1 where the noun that a pronoun stands for counts more for its translation than the other
        one: in French fables the sentence alone says which is meant."""
        hits: dict[str, list[float]] = {name: [] for name in self.tallies}
        for sentence in pronoun_riddles(max(2, min(RIDDLES, limit or RIDDLES))):
            pair = sides(tokenizers, sentence.source, sentence.target)
            ((_, meant),) = sentence.referents
            (other,) = {at for at, tag in enumerate(sentence.tags) if tag == "NOUN"} - {meant}
            row = next(at for at, word in enumerate(pair[1].words) if word.startswith("qu'"))
            for name, several in hits.items():
                values = self.map(self.model, pair, name)
                several.append(float(values[row, meant] > values[row, other]))
        return {name: np.array(several) for name, several in hits.items()}


def _axes(model: Model, pair: Pair) -> tuple[str, list[list[int]], list[list[int]]]:
    """Where words are read, the pieces of each of them, and those of each word written."""
    place = Subject(model, (), ()).places[0]
    side = so_far(pair[1]) if place == PREFIX else pair[0]
    return place, members(side, special=False)[0], members(pair[1], special=False)[0]


def readable(place: str, groups: Sequence[Sequence[int]], row: Sequence[int]) -> list[int]:
    """The words that were read before a word was written: of a source all, of a prefix those before it."""
    return [number for number, group in enumerate(groups) if place != PREFIX or max(group) <= row[0]]


def heaviest(values: Numbers) -> Links:
    """Each word written with the word read that counts most for it."""
    return frozenset((int(column), row) for row, column in enumerate(values.argmax(1)))


def _curves(
    model: Model, pair: Pair, maps: Mapping[str, Numbers], chosen: Sequence[int]
) -> dict[str, tuple[float, float]]:
    """Comprehensiveness and sufficiency of each map, means over the rows chosen. The same words are
    masked only once for all maps."""
    place, groups, rows = _axes(model, pair)
    wanted = dict[tuple[int, ...], int]()  # pieces taken away, and the number of that pass
    asked: dict[str, list[tuple[int, int, int]]] = {name: [] for name in maps}  # row, and the two passes
    for name, values in maps.items():
        for row in chosen:
            columns = readable(place, groups, rows[row])
            order = sorted(columns, key=lambda column: -values[row, column])
            for count in counts(len(order)):
                passes = [
                    wanted.setdefault(tuple(sorted(piece for word in words for piece in groups[word])), len(wanted))
                    for words in (order[:count], order[count:])
                ]
                asked[name].append((row, *passes))  # type: ignore[arg-type]
    subject = Subject(model, () if model.task == "language" else pair[0].rows, pair[1].ids)
    before = subject.values().cpu().double().numpy()  # (T,)
    less = masking(subject, place, list(wanted)).cpu().double().numpy()  # (T, passes)
    usual = [math.exp(before[row].sum()) for row in rows]

    def fall(row: int, number: int) -> float:
        return usual[row] - math.exp((before[rows[row]] - less[rows[row], number]).sum())

    return {
        name: (
            _mean([fall(row, without) for row, without, _ in several]),
            _mean([fall(row, alone) for row, _, alone in several]),
        )
        for name, several in asked.items()
    }


def counts(words: int) -> list[int]:
    """How many of so many words are masked: at least one, never all."""
    return sorted({min(max(1, math.ceil(share * words)), words - 1) for share in SHARES})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _alike(ones: Numbers, others: Numbers, columns: Mapping[int, Sequence[int]]) -> float:
    """The mean rank correlation of rows; of those with three words or more, since two cannot say much."""
    found = [
        rank_correlation(ones[row, list(several)], others[row, list(several)])
        for row, several in columns.items()
        if len(several) > 2
    ]
    return _mean([each for each in found if not math.isnan(each)])


def rank_correlation(ones: Numbers, others: Numbers) -> float:
    """Spearman's, equal values sharing their mean rank; not a number where one side is all the same."""
    first, second = (_ranks(each) for each in (ones, others))
    if first.std() == 0 or second.std() == 0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Numbers) -> Numbers:
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    last = count.cumsum()
    means: Numbers = last - (count - 1) / 2
    return means[inverse]


# Figures


def _draws(size: int, resamples: int, chance: np.random.Generator) -> Numbers:
    """How often each of so many sentences is in each resample, (R + 1, N); in the first, each is there once."""
    drawn = chance.multinomial(size, np.full(size, 1 / size), resamples)
    return np.concatenate((np.ones((1, size)), drawn))


def _means(values: Sequence[float] | Numbers, draws: Numbers) -> Numbers:
    """Of each resample, (R + 1,); what is not a number does not count."""
    array = np.asarray(values, float)
    there = ~np.isnan(array)
    sums, sizes = draws @ np.where(there, array, 0.0), draws @ there.astype(float)
    return np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)


def error_rates(links: Sequence[Links], golds: Sequence[Gold], draws: Numbers) -> Numbers:
    """The alignment error rate of each resample, (R + 1,)."""
    pairs = list(zip(links, golds, strict=True))
    right = np.array([len(found & gold.sure) + len(found & gold.possible) for found, gold in pairs], float)
    total = np.array([len(found) + len(gold.sure) for found, gold in pairs], float)
    sums = draws @ total
    return 1 - np.divide(draws @ right, sums, out=np.ones_like(sums), where=sums > 0)


def _figure(values: Numbers) -> Figure:
    low, high = np.quantile(values[1:], (0.025, 0.975))
    return float(values[0]), float(low), float(high)


def _ranked(
    tallies: Mapping[str, Tally], golds: Sequence[Gold] | None, riddles: Mapping[str, Numbers], draws: Numbers
) -> tuple[MapQuality, ...]:
    """All methods, the most faithful first."""
    both = {
        name: (_means(tally.comprehensiveness, draws), _means(tally.sufficiency, draws))
        for name, tally in tallies.items()
    }
    scores = {name: first - second for name, (first, second) in both.items()}
    order = sorted(scores, key=lambda name: -scores[name][0])
    best = next(name for name in order if name != RANDOM)
    some = draws if not riddles else _draws(len(riddles[RANDOM]), len(draws) - 1, np.random.default_rng(1))
    found = []
    for name in order:
        tally, redrawn = tallies[name], _figure(_means(tallies[name].redrawn, draws))
        chance = _figure(scores[name] - scores[RANDOM])
        found.append(
            MapQuality(
                method=name,
                comprehensiveness=_figure(both[name][0]),
                sufficiency=_figure(both[name][1]),
                faithfulness=_figure(scores[name]),
                agreement=_figure(_means(tally.agreement, draws)),
                redrawn=redrawn,
                error_rate=None if golds is None else _figure(error_rates(tally.links, golds, draws)),
                riddles=_figure(_means(riddles[name], some)) if name in riddles else None,
                seconds=tally.seconds / max(1, len(tally.links)),
                as_good=_figure(scores[best] - scores[name])[1] <= 0,
                caution="" if name == RANDOM else _caution(chance, redrawn),
            )
        )
    return tuple(found)


def _caution(above_random: Figure, redrawn: Figure) -> str:
    """Why a map misleads; else empty."""
    if above_random[1] <= 0:
        return "misleads here: the words that it puts first matter no more than words in random order"
    if redrawn[1] > UNCHANGED:
        return (
            f"may mislead: with weights drawn anew it is much the same (rank correlation {redrawn[0]:.2f}), so that it "
            "shows the text more than what was learned"
        )
    return ""


def _links(methods: Sequence[MapQuality], own: Numbers | None) -> str:
    """The method whose links have the fewest errors, if they are fewer than those of the run's own."""
    rated = [(each.error_rate[0], each.method) for each in methods if each.error_rate and each.method != RANDOM]
    if not rated or (own is not None and min(rated)[0] >= own[0]):
        return ""
    return min(rated)[1]
