"""One run, looked at from all sides: what `regard report` found, as JSON and as a page. No torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.evaluate.comparison import Conditions
from regard.evaluate.saving import plain, save
from regard.explain.heatmap import HeatMap
from regard.metrics.groups import Bucket, Habits
from regard.metrics.labels import Confusion
from regard.metrics.translation import Quality
from regard.runs.listing import Summary
from regard.runs.log import Moment, Validation

if TYPE_CHECKING:
    from regard.explain.beam import Searched
    from regard.explain.look import WordLink

Chosen = Literal["pinned", "random", "worst"]


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
    """How to do it again."""

    commands: tuple[str, ...]
    settings: str  # TOML
    seed: int
    hashes: dict[str, str]


@dataclass(frozen=True)
class RunReport:
    """Everything about one run. What does not belong to its task, or could not be found out, is empty."""

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
    examples: tuple[ReportExample, ...] = ()
    links: str = ""  # how the links of the examples were read
    looks: tuple[Look, ...] = ()
    tree: Searched | None = None

    def as_json(self) -> dict[str, Any]:
        """All numbers, as `json` can write them; what is not a number is null."""
        from regard.evaluate.verdict import verdict  # noqa: PLC0415 - it judges what is defined here

        findings = [asdict(finding) for finding in verdict(self)]
        numbers = asdict(replace(self, tree=None))
        for look in numbers["looks"]:
            look |= {name: [_map(one) for one in look[name]] for name in ("maps", "heads")}
        if self.tree is not None:
            tree = self.tree.numbers()
            numbers["tree"] = {"twigs": tree.pop("nodes"), **tree, "name": self.tree.name}
        return {"format": "regard report 1", "verdict": findings, **plain(numbers)}

    def save(self, path: str | Path) -> None:
        """Write a page (``.html``) or the numbers alone (``.json``)."""
        from regard.show.run_page import run_page  # noqa: PLC0415 - it draws what is defined here

        save(Path(path), self.as_json(), lambda: run_page(self))

    def __str__(self) -> str:
        """The headline and the verdict."""
        from regard.evaluate.verdict import headline, verdict  # noqa: PLC0415

        return "\n".join([headline(self), *(f"  {one.sign} {one.claim}: {one.evidence}" for one in verdict(self))])


def _map(one: dict[str, Any]) -> dict[str, Any]:
    """What the numbers of a report hold of a heat map."""
    kind = "effect" if one["scale"] == "diverging" else "attention"
    return {"title": one["title"], "kind": kind, **{name: one[name] for name in ("rows", "columns", "values", "unit")}}
