"""The page of one run."""

from __future__ import annotations

from collections.abc import Sequence

from regard.evaluate.run_report import RunReport
from regard.evaluate.verdict import Finding, headline, verdict
from regard.metrics import numbers
from regard.show import heatmap_svg, sentences, tree
from regard.show.markup import Html, element
from regard.show.page import items, more, page, paragraph, section, table, verbatim
from regard.show.run_inside import attends, beam_part, inside_part
from regard.show.run_learning import learning_part
from regard.show.run_scores import confusion_part, lengths_part, rarities_part, scores_part
from regard.show.run_sentences import sentences_part

STYLE = """
:root{--lit:#cfe6fb}
@media (prefers-color-scheme:dark){:root{--lit:#1d4a72}}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:1rem 0 0;font-size:.9rem}
nav a{display:inline-block;padding:.2rem 0}
.verdict{list-style:none;padding:0;max-width:46rem}
.verdict li{display:grid;grid-template-columns:1.6rem 1fr;padding:.3rem 0;border-bottom:1px solid var(--grid)}
.verdict .sign{font-weight:700;text-align:center}
.verdict .bad .sign{color:var(--s1)}.verdict .good .sign{color:var(--s2)}.verdict .open .sign{color:var(--s0)}
.verdict .note{display:block;overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.6rem 0 .3rem}
.missing{background:none;border-bottom:2px dotted var(--under)}
.card p{margin:.25rem 0}.card details{margin:0}
.maps{display:flex;flex-wrap:wrap;gap:0 2rem;align-items:flex-start}.maps figure{max-width:100%;min-width:0}
.maps figcaption{max-width:22rem}
.scroll>svg{max-width:none}
@media print{:root{--lit:#fff}nav,details.screen{display:none}.scroll>svg{max-width:100%;height:auto}}
"""


def run_page(report: RunReport) -> str:
    """Everything on one page; what there is nothing to say about is left out."""
    parts = [
        ("learning", "Learning", learning_part(report)),
        ("scores", "Scores", scores_part(report)),
        ("length", "By length", lengths_part(report)),
        ("rarity", "By rare words", rarities_part(report)),
        ("confusion", "Confusion", confusion_part(report)),
        ("sentences", "Sentences", sentences_part(report)),
        ("inside", "Inside the model", inside_part(report)),
        ("beam", "The beam", beam_part(report)),
        ("corpus", "Corpus", corpus_part(report)),
        ("again", "Do it again", recipe_part(report)),
        ("limits", "Limits", [items(*limits(report))]),
    ]
    kept = [(name, title, children) for name, title, children in parts if children]
    body = [
        element("h1", {}, headline(report)),
        paragraph("lead", _lead(report)),
        paragraph("note", _about(report)),
        _verdict(verdict(report)),
        _contents([(name, title) for name, title, _ in kept]),
        *(section(title, *children, name=name) for name, title, children in kept),
    ]
    longest = max((len(one.target_words) for one in report.examples), default=0)
    style = f"{heatmap_svg.STYLE}{tree.STYLE}{sentences.STYLE}{STYLE}{sentences.lighting(longest)}"
    return page(f"Regard: {report.run.name}", body, report.as_json(), style=style)


def _lead(report: RunReport) -> str:
    test, what = report.test, "sentences" if report.run.task == "translate" else "texts"
    beam = "" if test.beam is None else f", beam {test.beam}"
    return f"{report.run.architecture}, on {test.sentences:,} {what} ({test.name}{beam})."


def _about(report: RunReport) -> str:
    run, spent = report.run, report.learning.seconds
    size = f"{numbers.count(run.parameters)} parameters, {run.steps:,} steps"
    time = "" if spent is None else f" in {numbers.duration(spent)}"
    about = f" Settings: {run.about.rstrip('.')}." if run.about else ""
    return f"Task {run.task}; {size}{time}; weights of {run.checkpoint}.{about}"


def _verdict(findings: Sequence[Finding]) -> Html:
    """Claims, each with its numbers."""
    tones = {"good": "good", "bad": "bad", "open": "worth knowing"}
    rows = [
        element(
            "li",
            {"class": one.tone},
            element("span", {"class": "sign", "role": "img", "aria-label": tones[one.tone]}, one.sign),
            element("span", {}, element("strong", {}, one.claim), element("span", {"class": "note"}, one.evidence)),
        )
        for one in findings
    ]
    return element("ul", {"class": "verdict"}, *rows)


def _contents(names: Sequence[tuple[str, str]]) -> Html:
    links = [element("li", {}, element("a", {"href": f"#{name}"}, title)) for name, title in names]
    return element("nav", {"aria-label": "Contents"}, element("ul", {}, *links))


# Where it comes from


def corpus_part(report: RunReport) -> list[Html]:
    card = report.corpus
    if card.rows is None:
        return [paragraph("", f"Trained on: {card.name}. The encoded text is no longer in the run.")]
    checked = "" if card.validation_rows is None else f", {card.validation_rows:,} for validation"
    head = ["", "pieces", "mean", "median", "longest", "vocabulary", "unknown"]
    rows = [
        [
            side.name,
            f"{side.tokens:,}",
            f"{side.mean:.1f}",
            f"{side.median:,}",
            f"{side.longest:,}",
            f"{side.vocabulary:,}",
            numbers.percent(side.unknown),
        ]
        for side in card.sides
    ]
    return [
        paragraph("", f"{card.rows:,} rows{checked}: {card.name}. Tokenizer: {card.tokenizer}."),
        table(head, rows),
        paragraph("note", "Pieces of the training text as the model reads them; mean, median, longest: of a row."),
    ]


def recipe_part(report: RunReport) -> list[Html]:
    recipe = report.recipe
    hashes = [[name, element("code", {}, value)] for name, value in recipe.hashes.items()]
    known = ", ".join(f"{name} {version}" for name, version in recipe.versions.items())
    return [
        paragraph("", "The first command trains again from the settings below; the second makes this page."),
        verbatim("\n".join(recipe.commands)),
        items(
            f"seed of the training: {recipe.seed}; of the tests and drawings: {report.test.seed}",
            f"versions: {known}",
            f"run folder: {report.run.folder}, {report.run.checkpoint}",
        ),
        more("Settings, as resolved", verbatim(recipe.settings)),
        more("SHA-256", table(["", "hash"], hashes, left=(1,))),
    ]


def limits(report: RunReport) -> list[str]:
    """What these numbers do not say."""
    said = ["One test says nothing about other kinds of text, and one training nothing about other seeds."]
    if not report.test.held_out:
        said.append("By this text the best checkpoint was chosen, so that the scores flatter.")
    if "built-in corpus" in report.corpus.name:
        said.append("The built-in corpus is made by rules: scores on it are higher than on what people write.")
    if report.run.task == "translate":
        said += [
            "BLEU and chrF count what is like the reference; a good translation in other words scores low.",
            "Scores of groups by length or rarity are of different sentences: compare a group between runs, rather "
            "than groups of one run.",
        ]
    if attends(report):
        said.append("Attention is where the model looked, which need not be what decided.")
    if report.tokenised >= 100:
        said.append(f"{report.tokenised:,} outputs end in ' .': is the text tokenised? Scores expect it as written.")
    if report.run.task == "language":
        said.append("Perplexities compare only where the text is the same; those per byte also between tokenizers.")
    return said
