"""A report by hand: small, with every part, and with texts that a page may trip over."""

from __future__ import annotations

from dataclasses import replace

from regard.evaluate.comparison import Conditions
from regard.evaluate.run_report import (
    CorpusCard,
    Learning,
    Look,
    Recipe,
    ReportExample,
    RunReport,
    SideCard,
)
from regard.explain.beam import Searched, SearchNode
from regard.explain.heatmap import HeatMap, reaching
from regard.explain.look import WordLink
from regard.metrics.groups import Bucket, Habits
from regard.metrics.labels import Confusion
from regard.metrics.translation import Quality
from regard.runs.listing import Summary
from regard.runs.log import Moment, Validation

NASTY = "<script>document.title='caught'</script>"
ARABIC, HINDI = "القط الأسود أكل الفأر", "काली बिल्ली ने चूहा खाया"
TEST = Conditions(
    data="a test",
    sentences=191,
    sha256="00ff",
    beam=5,
    device="cpu",
    threads=1,
    resamples=1000,
    trials=10_000,
    seed=12345,
    versions={"regard": "0"},
    how=("beam 5",),
)
GOOD = Habits(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def quality(score: float, margin: float | None = 1.0, name: str = "BLEU") -> Quality:
    low, high = (None, None) if margin is None else (score - margin, score + margin)
    return Quality(name, score, "nrefs:1", low, high)


def bucket(name: str, score: float | None, count: int = 61, margin: float = 1.0) -> Bucket:
    return Bucket(name, count, None if score is None else quality(score, margin))


def moment(step: int, loss: float, norm: float, rate: float) -> Moment:
    return Moment(step, 0, loss, norm, rate, 3, 3.0, 1.0, 0.5, 1)


def learning(*losses: float, score: str = "BLEU", scores: tuple[float, ...] = (), rate: float = 1.0) -> Learning:
    """One validation every 100 steps, with a training loss that always falls."""
    values = scores or tuple(10.0 * number for number, _ in enumerate(losses))
    lowest = min(losses, default=0.0)
    return Learning(
        tuple(
            moment(100 * number, 9.0 / number, 1.0, 1.0 if number == 1 else rate)
            for number in range(1, len(losses) + 1)
        ),
        tuple(
            Validation(100 * number, 0, 1.0, loss, value, score, loss == lowest)
            for number, (loss, value) in enumerate(zip(losses, values, strict=True), start=1)
        ),
        83.0,
        7919,
    )


def sentence(source: str, output: str, *, reference: str | None = None, weight: float | None = 0.9) -> ReportExample:
    """Each word linked with the one at its place."""
    words = tuple(source.split()), tuple(output.split())
    links = tuple(WordLink(place, place, weight) for place in range(min(map(len, words))))
    return ReportExample("pinned", None, source, reference, output, None, -1.5, *words, links)


def tree() -> Searched:
    """A beam of two over three steps."""
    nodes = (
        SearchNode(0, None, 0, 7, 0.0, 0.0, "kept", "", "<start>", ""),
        SearchNode(1, 0, 1, 7, -0.1, -0.1, "kept", "", "le", ""),
        SearchNode(2, 0, 1, 7, -2.3, -2.3, "kept", "", "la", ""),
        SearchNode(3, 0, 1, 7, -9.0, -9.0, "pruned", "beam", NASTY, ""),
        SearchNode(4, 1, 2, 7, -0.3, -0.15, "kept", "", "chat", ""),
        SearchNode(5, 2, 2, 7, -2.9, -1.45, "kept", "beaten", "القط", ""),
        SearchNode(6, 1, 2, 7, -8.0, -4.0, "pruned", "beam", "<end>", ""),
        SearchNode(7, 4, 3, 7, -0.31, -0.1033, "finished", "output", "<end>", ""),
    )
    return Searched("the cat", "le chat", 2, 1.0, nodes, (7,))


def by_hand() -> RunReport:
    rows, columns = ("le", "chat", NASTY), ("the", "cat", "الفأر")
    weights = ((0.9, 0.1, 0.0), (0.1, 0.8, 0.1), (0.0, 0.25, 0.75))
    title, masked = "layer 1, head 1", "effect of masking"
    attention = HeatMap(title, rows, columns, weights, title, "source", sums=True)
    effects = HeatMap(masked, rows, columns, ((2.0, -1.0, 0.0),) * 3, masked, "source", "diverging", unit="nats")
    effect = reaching(effects)
    head = HeatMap(title, rows, columns, weights, title)
    return RunReport(
        run=Summary(
            "small",
            "runs/small",
            "finished",
            task="translate",
            architecture="a model",
            about="By hand.",
            parameters=1013,
            steps=400,
            of_steps=400,
        ),
        checkpoint="step-400",
        learning=learning(4.0, 2.0, 1.0, 0.5, scores=(11.0, 43.0, 71.0, 79.0)),
        test=TEST,
        scores=(quality(80.0), quality(90.0, name="chrF2")),
        corpus=CorpusCard("a corpus", 997, 101, "word", (SideCard("source", 7919, 7.9, 7, 23, 877, 0.01),), "ab"),
        recipe=Recipe(("regard train settings.toml",), f"about = '{NASTY}'\n", 1, {"test text": "00ff"}),
        lengths=(bucket("up to 10", 82.0), bucket("11 to 20", 79.0), bucket("over 20", None, 7)),
        rarities=(bucket("1 to 9", 78.0), bucket("10 to 99", 81.0)),
        counts="the run's source vocabulary",
        habits=GOOD,
        milliseconds=21.0,
        examples=(
            sentence("the black cat", "le chat noir", reference="le chat noir dort"),
            sentence("the black cat ate the mouse", ARABIC),
            sentence("the black cat ate the mouse", HINDI),
            sentence(f"the {NASTY}", f"le {NASTY}", reference=NASTY),
            replace(sentence("x", "y"), chosen="random", line=7, reference="z", score=13.0, links=()),
            replace(sentence("nothing comes", ""), chosen="worst", line=11, reference="w", score=0.0, links=()),
        ),
        links="weights: by hand",
        looks=(Look("the cat", f"le chat {NASTY}", (attention, effect), (head, head), 2),),
        tree=tree(),
    )


def labelled() -> RunReport:
    """The same for labels."""
    pairs = {("a", "a"): 71, ("a", "b"): 3, ("b", "a"): 29, ("b", "b"): 11, (NASTY, "a"): 1}
    confusion = Confusion(tuple(sorted(pairs.items())))
    known = by_hand()
    return RunReport(
        run=replace(known.run, task="tag"),
        checkpoint=known.checkpoint,
        learning=known.learning,
        test=replace(known.test, held_out=False, beam=None, how=()),
        scores=(quality(71.3, None, "accuracy"),),
        corpus=replace(known.corpus, rows=None),
        recipe=known.recipe,
        confusions=(confusion, confusion),
    )
