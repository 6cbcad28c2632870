"""The report of one run as data, JSON and a page, and its verdict. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.evaluate.comparison import Conditions, plain, save
from regard.explain.heatmap import HeatMap
from regard.metrics import numbers
from regard.metrics.forecast import INTERVALS, ForecastScore
from regard.metrics.groups import FEWEST, Bucket, Habits
from regard.metrics.labels import Confusion
from regard.metrics.translation import Quality
from regard.runs.listing import Summary
from regard.runs.log import Moment, Validation

if TYPE_CHECKING:
    from regard.explain.beam import Searched
    from regard.explain.look import WordLink

Chosen = Literal["pinned", "random", "worst"]
Tone = Literal["good", "bad", "open"]
SIGNS: dict[Tone, str] = {"good": "+", "bad": "−", "open": "•"}

RECENT = 0.75  # the last quarter of a training is "lately"
MOVING = 0.01  # of the loss: less is no change
SMALL_RATE = 0.02  # of the highest
OVERFIT = 0.02  # above the lowest loss
BROKEN, WEAK = 0.5, 0.8  # of the best score of the groups before
HARDLY, SOLVED = 5.0, 90.0  # BLEU
COPIES, EMPTY, REPEATS, UNTRANSLATED, LENGTH = 0.01, 0.005, 0.02, 0.05, 0.1
MISSED = 0.5  # recall
ROUGHLY = 0.05  # by which the share that intervals hold may be off


@dataclass(frozen=True)
class Learning:
    """How the training went, by the run's own log."""

    moments: tuple[Moment, ...] = ()  # loss, norm and rate are means over the steps since the one before
    validations: tuple[Validation, ...] = ()  # without samples
    seconds: float | None = None
    tokens: int | None = None

    @property
    def score(self) -> str:
        """What the validations' score is."""
        return self.validations[-1].name if self.validations else ""


@dataclass(frozen=True)
class ReportExample:
    """A sentence with its translation; a pinned one may have no reference."""

    chosen: Chosen
    line: int | None  # of the test, from 1
    source: str
    reference: str | None
    output: str
    score: float | None  # chrF2 of the sentence alone
    log_probability: float
    source_words: tuple[str, ...] = ()
    target_words: tuple[str, ...] = ()
    links: tuple[WordLink, ...] = ()


@dataclass(frozen=True)
class Look:
    """One sentence from inside."""

    source: str
    output: str
    maps: tuple[HeatMap, ...]  # of attention, a distribution in each row, or of effects, which go both ways
    heads: tuple[HeatMap, ...] = ()  # every head, small, or as many as there is room for
    of_heads: int = 0


@dataclass(frozen=True)
class SideCard:
    """One column of the training text, in the model's pieces, ``<end>`` not counted."""

    name: str
    tokens: int
    mean: float
    median: int
    longest: int
    vocabulary: int
    unknown: float  # share of the pieces


@dataclass(frozen=True)
class CorpusCard:
    """What the run learned from."""

    name: str
    rows: int | None  # None where the encoded text is no longer there
    validation_rows: int | None
    tokenizer: str
    sides: tuple[SideCard, ...]
    fingerprint: str


@dataclass(frozen=True)
class Recipe:
    """How to repeat it."""

    commands: tuple[str, ...]
    settings: str  # TOML
    seed: int
    hashes: dict[str, str]


@dataclass(frozen=True)
class RunReport:
    """Everything about one run. What its task does not have, or is unknown, is empty."""

    run: Summary
    checkpoint: str  # the one that is used
    learning: Learning
    test: Conditions
    scores: tuple[Quality, ...]
    corpus: CorpusCard
    recipe: Recipe
    lengths: tuple[Bucket, ...] = ()
    rarities: tuple[Bucket, ...] = ()
    counts: str = ""  # where the counts of words come from, or why there are none
    habits: Habits | None = None
    tokenised: int = 0
    milliseconds: float | None = None  # for a sentence, translated together with others
    confusions: tuple[Confusion, ...] = ()  # of all labels, then of words that the training text does not have
    forecasts: tuple[ForecastScore, ...] = ()  # the run's own, then others and the naive ones
    examples: tuple[ReportExample, ...] = ()
    links: str = ""  # how the links of the examples were read
    looks: tuple[Look, ...] = ()
    tree: Searched | None = None

    def as_json(self) -> dict[str, Any]:
        """All numbers, as `json` can write them; what is not a number is null."""
        findings = [asdict(finding) for finding in verdict(self)]
        found = asdict(replace(self, tree=None))
        for look in found["looks"]:
            look |= {name: [_map(one) for one in look[name]] for name in ("maps", "heads")}
        if self.tree is not None:
            tree = self.tree.numbers()
            found["tree"] = {"twigs": tree.pop("nodes"), **tree, "name": self.tree.name}
        return {"format": "regard report 1", "verdict": findings, **plain(found)}

    def save(self, path: str | Path) -> None:
        """Write a page (``.html``) or the numbers alone (``.json``)."""
        from regard.show.run_page import run_page  # noqa: PLC0415 - it draws what is defined here

        save(Path(path), self.as_json(), lambda: run_page(self))

    def __str__(self) -> str:
        """The headline and the verdict."""
        return "\n".join([headline(self), *(f"  {one.sign} {one.claim}: {one.evidence}" for one in verdict(self))])


def _map(one: dict[str, Any]) -> dict[str, Any]:
    """What the numbers of a report hold of a heat map."""
    kind = "effect" if one["scale"] == "diverging" else "attention"
    return {"title": one["title"], "kind": kind, **{name: one[name] for name in ("rows", "columns", "values", "unit")}}


# The verdict: what the numbers mean, in plain words, each claim with the numbers it follows from. A rule is a function
# from a part of the report to claims; without data it makes none. Bounds are conventions, so they are constants above.


@dataclass(frozen=True)
class Claim:
    """A claim and the numbers it follows from."""

    claim: str
    evidence: str
    tone: Tone = "open"

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


def verdict(report: RunReport) -> list[Claim]:
    """All claims, problems first."""
    metric = report.scores[0].name
    found = [
        *completeness(report.run),
        *trend(report.learning),
        *level(report.scores[0]),
        *promise(report.learning, report.scores[0]),
        *by_length(report.lengths, metric),
        *by_rarity(report.rarities, metric),
        *(habits(report.habits) if report.habits else []),
        *(guessing(report.confusions[0]) if report.confusions else []),
        *(missed(report.confusions[0]) if report.confusions else []),
        *forecasting(report.forecasts),
        *fairness(report.test),
    ]
    order: tuple[Tone, ...] = ("bad", "open", "good")
    return sorted(found, key=lambda finding: order.index(finding.tone))


def headline(report: RunReport) -> str:
    """The run and its first score."""
    first = report.scores[0]
    return f"{report.run.name}: {first.name} {numbers.score(first.score, first.margin)}"


def completeness(run: Summary) -> list[Claim]:
    """Whether the training came to its end."""
    steps = f"step {run.steps:,} of {run.of_steps:,}"
    match run.state:
        case "running":
            return [Claim("is still in training", f"this is how it stands at {steps}")]
        case "interrupted":
            return [Claim("was stopped before its end", f"the newest checkpoint is of {steps}", "bad")]
        case _:
            return []


def trend(learning: Learning) -> list[Claim]:
    """Still improving, levelled off, or overfitting: the validation loss lately against before."""
    seen = learning.validations
    if len(seen) < 3:
        return [
            Claim(
                "has too few validations to judge its progress",
                f"validations = {len(seen)}; 3 are needed",
            )
        ]
    last, lowest = seen[-1], min(seen, key=lambda one: one.loss)
    if last.loss > lowest.loss * (1 + OVERFIT) and lowest is not last:
        return [_overfitting(learning, lowest, last)]
    before = [one for one in seen if one.step <= RECENT * last.step] or [seen[0]]
    earlier = min(before, key=lambda one: one.loss)
    change = (earlier.loss - last.loss) / earlier.loss if earlier.loss > 0 else 0.0
    steps = f"validation loss {_loss(earlier)} at step {earlier.step:,}, {_loss(last)} at step {last.step:,}"
    if change > MOVING:
        return [Claim("still improving when it stopped", f"{steps}: {_percent(change)} lower{_spent(learning)}")]
    more = "; more of the same training would change little"
    return [Claim("has levelled off", f"{steps}{_spent(learning) or more}")]


def _spent(learning: Learning) -> str:
    """A schedule that ends at zero makes the last steps small: going on needs a longer one."""
    rates = [moment.rate for moment in learning.moments]
    if not rates or rates[-1] > SMALL_RATE * max(rates):
        return ""
    return "; the learning rate had come down to zero, so more steps need a longer schedule"


def _overfitting(learning: Learning, lowest: Validation, last: Validation) -> Claim:
    trained = [moment.loss for moment in learning.moments if moment.step >= lowest.step]
    fell = ", while the training loss fell" if len(trained) > 1 and trained[-1] < trained[0] else ""
    claim = "has begun to overfit" if fell else "became worse again"
    rise = last.loss / lowest.loss - 1
    evidence = f"validation loss {_loss(lowest)} at step {lowest.step:,}, {_percent(rise)} higher at step {last.step:,}"
    return Claim(claim, evidence + fell, "bad")


def _loss(one: Validation) -> str:
    return f"{one.loss:.3g}"


def level(quality: Quality) -> list[Claim]:
    """The two ends of BLEU's scale, where it says little else."""
    shown = f"{quality.name} {numbers.score(quality.score, quality.margin)}"
    if quality.name == "BLEU" and quality.score < HARDLY:
        return [Claim("has hardly learned to translate", f"{shown}, below {HARDLY:g}", "bad")]
    if quality.name == "BLEU" and quality.score > SOLVED:
        return [Claim("has all but solved this test", f"{shown}; what is better still needs a harder test", "good")]
    return []


def promise(learning: Learning, quality: Quality) -> list[Claim]:
    """Whether the score is anywhere near what the training's own validations gave."""
    known = [one for one in learning.validations if one.best] if learning.score == quality.name == "BLEU" else []
    if not known or known[-1].score < HARDLY or quality.score >= BROKEN * known[-1].score:
        return []
    evidence = f"BLEU {known[-1].score:.1f} in validation at step {known[-1].step:,}, {quality.score:.1f} here"
    doubt = "another kind of text, or not the code, tokenizer or weights that it was trained with"
    return [Claim("falls far short of its own validations", f"{evidence}: {doubt}", "bad")]


def by_length(buckets: Sequence[Bucket], metric: str) -> list[Claim]:
    """From which length on the score breaks down."""
    counted = [bucket for bucket in buckets if bucket.quality is not None]
    if len(counted) < 2:
        return []
    if (found := _drop(counted, metric)) is not None:
        number, tone, evidence = found
        verb = "fails" if tone == "bad" else "is weaker"
        return [Claim(f"{verb} {_above(counted[number].name)} words", evidence, tone)]
    ends = [f"{bucket.name} words: {bucket.quality.score:.1f}" for bucket in counted if bucket.quality]
    untested = [bucket.name for bucket in buckets if bucket.quality is None]
    rest = f"; too few sentences to say: {', '.join(untested)}" if untested else ""
    return [Claim("holds for all lengths tested", f"{metric} {ends[0]}, {ends[-1]}{rest}", "good")]


def by_rarity(buckets: Sequence[Bucket], metric: str) -> list[Claim]:
    """How rare a word may be before the score breaks down. Buckets come from the rarest; here, common words first."""
    counted = [bucket for bucket in reversed(buckets) if bucket.quality is not None]
    if len(counted) < 2 or (found := _drop(counted, metric)) is None:
        return []
    number, tone, evidence = found
    name = counted[number].name
    verb = "fails" if tone == "bad" else "is weaker"
    words = "words it has never seen" if name == "unseen" else f"words it has seen {_at_most(name)} times"
    return [Claim(f"{verb} on sentences with {words}", evidence, tone)]


def _drop(buckets: Sequence[Bucket], metric: str) -> tuple[int, Tone, str] | None:
    """The first bucket from which on all are clearly below the best before it: half of it, or four fifths.

    The interval's better end counts, so that chance is not taken for failure. TER, where lower is better, is left
    alone.
    """
    if metric == "TER":
        return None
    for share, tone in ((BROKEN, "bad"), (WEAK, "open")):
        for place in range(1, len(buckets)):
            best = max((one for one in buckets[:place]), key=_score)
            if all(_upper(one) < share * _score(best) for one in buckets[place:]):
                one = buckets[place]
                shown = f"{metric} {one.name}: {_score(one):.1f} ({one.count:,} sentences)"
                return place, tone, f"{shown}; {best.name}: {_score(best):.1f} ({best.count:,})"  # type: ignore[return-value]
    return None


def _score(bucket: Bucket) -> float:
    return bucket.quality.score if bucket.quality is not None else 0.0


def _upper(bucket: Bucket) -> float:
    quality = bucket.quality
    return _score(bucket) if quality is None or quality.high is None else quality.high


def _above(name: str) -> str:
    """``31 to 40`` and ``over 30`` are both above 30."""
    if name.startswith("over "):
        return f"above {name.removeprefix('over ')}"
    return f"above {int(name.split(maxsplit=1)[0].replace(',', '')) - 1:,}"


def _at_most(name: str) -> str:
    """``1 to 9``: at most 9."""
    return f"at most {name.rsplit(maxsplit=1)[-1]}"


def habits(rate: Habits) -> list[Claim]:
    """Copies, empty outputs, repetitions, untranslated words, wrong lengths."""
    extra = rate.repeated - rate.repeated_in_reference
    rules = (
        (rate.copied >= COPIES, f"copies {_percent(rate.copied)} of inputs", "the output is the source as it was"),
        (rate.empty >= EMPTY, f"writes nothing for {_percent(rate.empty)} of inputs", "the reference has words"),
        (
            extra >= REPEATS,
            "repeats itself",
            f"{_percent(rate.repeated)} of its trigrams are repetitions, {_percent(rate.repeated_in_reference)} of "
            "the reference's",
        ),
        (
            rate.untranslated >= UNTRANSLATED,
            f"leaves {_percent(rate.untranslated)} of words untranslated",
            "in the source, not in the reference",
        ),
        (
            abs(rate.length_ratio - 1) >= LENGTH,
            "writes too little" if rate.length_ratio < 1 else "writes too much",
            f"{rate.length_ratio:.2f} words for each word of the reference",
        ),
    )
    found = [Claim(claim, evidence, "bad") for holds, claim, evidence in rules if holds]
    if found:
        return found
    quiet = f"copied {_percent(rate.copied)}, empty {_percent(rate.empty)}, untranslated {_percent(rate.untranslated)}"
    return [Claim("shows no bad habit", f"{quiet}, length {rate.length_ratio:.2f} of the reference's", "good")]


def guessing(confusion: Confusion) -> list[Claim]:
    """Against always giving the most frequent label."""
    if not confusion.count:
        return []
    common = max(confusion.scores(), key=lambda score: score.count)
    share = common.count / confusion.count
    shown = f"accuracy {_percent(confusion.accuracy)}; always '{common.label}' gives {_percent(share)}"
    if confusion.accuracy <= share:
        return [Claim("is no better than a constant guess", shown, "bad")]
    return [Claim("has learned more than the most frequent label", shown, "good")]


def missed(confusion: Confusion) -> list[Claim]:
    """Labels that are mostly not found, the most frequent first, where there are enough to say."""
    low = [one for one in confusion.scores() if one.count >= FEWEST and one.recall < MISSED]
    if not low:
        return []
    low.sort(key=lambda one: -one.count)
    named = ", ".join(f"'{one.label}' {_percent(one.recall)} of {one.count:,}" for one in low[:5])
    return [Claim("misses most of " + " and ".join(f"'{one.label}'" for one in low[:2]), f"found: {named}", "bad")]


def forecasting(scores: Sequence[ForecastScore]) -> list[Claim]:
    """Against the better of the naive forecasts, and whether intervals hold as often as they say."""
    if not scores:
        return []
    own, naive = scores[0], min((one for one in scores if "naive" in one.name), key=lambda one: one.mase)
    shown = f"MASE {own.mase:.3f}; the {naive.name} forecast has {naive.mase:.3f}"
    held = ", ".join(
        f"{100 * share:.0f} % hold {100 * found:.0f} %" for share, found in zip(INTERVALS, own.coverage, strict=True)
    )
    far = max(zip(INTERVALS, own.coverage, strict=True), key=lambda pair: abs(pair[0] - pair[1]))
    good = Claim("has intervals that hold what they say", held, "good")
    bad = Claim(f"has intervals that are too {'narrow' if far[1] < far[0] else 'wide'}", held, "bad")
    return [
        Claim("forecasts better than the past repeated", shown, "good")
        if own.mase < naive.mase
        else Claim("forecasts no better than the past repeated", shown, "bad"),
        good if abs(far[0] - far[1]) <= ROUGHLY else bad,
    ]


def fairness(test: Conditions) -> list[Claim]:
    """Whether the test was used to choose the checkpoint."""
    if test.held_out:
        return []
    return [Claim("is measured on the text that chose its checkpoint", "scores on what is new are usually worse")]


def _percent(share: float) -> str:
    """``4.2 %``, ``12 %``, ``0 %``."""
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.1 else f"{100 * share:.0f} %"
