"""Write docs/reference, the limits in docs/serving.md, the lines that docs/architecture.md links to and the studio's
colours from the code, docs/benchmarks.md from the ledger: so they agree.

python docs/generate.py
"""

from __future__ import annotations

import ast
import re
import sys
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import torch

import regard
from regard.explain import edits, looked, replay
from regard.explain.walkthrough.example import example
from regard.explain.walkthrough.render import markdown
from regard.serve import corpora, jobs, limits, markup
from regard.serve.limits import Limits
from regard.settings import (
    AttentionSettings,
    BahdanauDecoderSettings,
    ConditionalDecoderSettings,
    ContextDecoderSettings,
    DataSettings,
    LastAverage,
    LuongDecoderSettings,
    MonotonicWindowSettings,
    MovingAverageSettings,
    NoWindow,
    PredictedWindowSettings,
    RecurrentAttention,
    RecurrentModel,
    ReinforceSettings,
    Settings,
    TextSettings,
    TrainSettings,
    TransformerModel,
    VectorSettings,
)
from regard.settings.call import DecodeSettings, MeasureSettings, ServeSettings
from regard.settings.loading import written
from regard.settings.reading import Frozen
from regard.show import colours

sys.path.append(str(Path(__file__).parent))  # for the file beside this one, however this one was loaded
import measurements

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
STUDIO_COLOURS = DOCS.parent / "src" / "regard" / "studio" / "pieces" / "colours.js"
SOURCE = "<!-- made by `make docs`; change the code, not this file -->\n"

# Where each kind of settings stands in the file, outermost first.
TABLES: list[tuple[str, type[Frozen]]] = [
    ("", Settings),
    ("model, kind = recurrent", RecurrentModel),
    ("model.decoder, kind = context", ContextDecoderSettings),
    ("model.decoder, kind = bahdanau", BahdanauDecoderSettings),
    ("model.decoder, kind = luong", LuongDecoderSettings),
    ("model.decoder, kind = conditional", ConditionalDecoderSettings),
    ("model.decoder.attention", RecurrentAttention),
    ("model, kind = transformer", TransformerModel),
    ("model.encoder_attention, model.decoder_attention, model.cross_attention", AttentionSettings),
    ("….window, kind = none", NoWindow),
    ("….window, kind = monotonic", MonotonicWindowSettings),
    ("….window, kind = predicted", PredictedWindowSettings),
    ("model.vectors", VectorSettings),
    ("text", TextSettings),
    ("data", DataSettings),
    ("train", TrainSettings),
    ("train.average, kind = moving", MovingAverageSettings),
    ("train.average, kind = last", LastAverage),
    ("train.reinforce", ReinforceSettings),
    ("decode", DecodeSettings),
    ("measure", MeasureSettings),
    ("serve", ServeSettings),
]


def kind(annotation: Any) -> str:
    """A type as a person would name it."""
    if get_origin(annotation) is Literal:
        return " · ".join(f"`{value}`" for value in get_args(annotation))
    if annotation == (bool | None):
        return "`true` · `false`"
    if get_origin(annotation) is tuple:
        return "whole numbers, with commas" if int in get_args(annotation) else "text, with commas"
    if get_origin(annotation) in (Union, types.UnionType):
        return "a table told apart by `kind`"
    if get_origin(annotation) is dict or (isinstance(annotation, type) and issubclass(annotation, Frozen)):
        return "a table"
    return {int: "whole number", float: "number", bool: "`true` · `false`", str: "text"}[annotation]


def default(value: Any) -> str:
    if isinstance(value, Frozen):
        return (
            ", ".join(f"{name} = {inner}" for name, inner in value.model_dump(exclude_defaults=True).items())
            or "as below"
        )
    return "required" if repr(value) == "PydanticUndefined" else f"`{shown}`" if (shown := written(value)) else "none"


def settings_page() -> str:
    lines = [
        SOURCE,
        "# Settings\n",
        "Every knob, as it stands in a TOML file or an override such as `model.depth=4`. `decode`, `measure` and\n"
        "`serve` belong to a call and not to a run: they are written behind a verb, `decode` also in requests.\n",
    ]
    for place, table in TABLES:
        lines.append(f"## {f'`[{place}]`' if place else 'Top level'}\n")
        if table.__doc__ and not table.__doc__.startswith("!!!"):
            lines.append(f"{table.__doc__.splitlines()[0]}\n")
        lines.append("| name | takes | default | meaning |\n|---|---|---|---|")
        for name, field in table.model_fields.items():
            meaning = " ".join((field.description or "").split()).replace("|", "\\|")
            lines.append(f"| `{name}` | {kind(field.annotation)} | {default(field.default)} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def presets_page() -> str:
    lines = [SOURCE, "# Presets\n", "Parameters are counted over vocabularies of 8,000 pieces a side.\n"]
    lines.append("| preset | parameters | what it is |\n|---|---:|---|")
    for name in regard.preset_names():
        settings = regard.load_settings(name)
        with torch.device("meta"):  # sizes without numbers
            model = regard.encoder_decoder(settings.model, 8000, 8000)
        count = sum(p.numel() for p in model.parameters())
        lines.append(f"| `{name}` | {count / 1e6:.1f} M | {settings.about} |")
    return "\n".join([*lines, ""])


ATTENTION = """\
Three words with four features each ask one another. Queries, keys and values are the words' own vectors (every learned
map is the identity), so that all of it can be checked by hand. `regard walk RUN "TEXT"` shows the same, and all that
comes before and after it, with the numbers of a trained run; [Looking inside](../looking-inside.md) has the rest.
"""


def attention_page() -> str:
    title, _, steps = markdown(example(), "Attention, step by step").partition("\n")
    return "\n".join([SOURCE, title, "", ATTENTION.rstrip(), steps])


def limits_table() -> str:
    """What one request may ask for."""
    own = Limits()
    rows = [
        ("a body", f"{own.body >> 20} MiB", 413),
        ("a file of a corpus, as it is sent", f"{own.upload >> 30} GiB", 413),
        ("corpora that were sent", f"{corpora.MOST}", 503),
        ("head and body of a request, until they have arrived", f"{own.reading:g} s", 408),
        ("lists and objects of JSON inside each other", f"{own.depth}", 400),
        ("a number in JSON", f"{own.digits} digits", 400),
        ("fields of a form", f"{own.fields:,}", 400),
        ("texts of one request", f"{own.texts}", "413, `/translate` 400"),
        ("a text", f"{own.text:,} characters", "413, `/translate` 400"),
        ("a prefix, a sentence among several, an override", f"{limits.LINE:,} characters", 400),
        ("a word", f"{limits.WORD} characters", 400),
        ("a name: run, checkpoint, corpus, preset, language", f"{limits.NAME} characters", 400),
        ("elements of HTML inside each other, in one sentence", f"{markup.DEEPEST}", 400),
        ("hypotheses of a beam, outputs", f"{limits.BEAM}", 400),
        ("pieces that a language model adds", f"{limits.LENGTH}", 400),
        ("edits at once", f"{edits.MOST}", 400),
        ("a string or a list in an edit", f"{edits.LONGEST:,} long", 400),
        ("a text or an output that is looked into", f"{replay.MOST_PIECES:,} pieces", 400),
        ("attention weights of one trace", f"{replay.MOST_NUMBERS:,}", 400),
        ("pieces written × all pieces, where each has a gradient", f"{looked.MOST_STEPS:,}", 400),
        ("sentences in which a word is looked at", f"{limits.SENTENCES}", 400),
        ("overrides of a training", f"{limits.OVERRIDES}", 400),
        ("runs that are compared at once", f"{limits.COMPARED}", 400),
        ("trainings at once; comparisons", f"{jobs.TRAININGS}; {jobs.COMPARISONS}", 429),
        ("texts and calls that wait for one model (`serve.queue`)", f"{own.queue:,}", 429),
        ("seconds that a request may take (`serve.timeout`)", f"{own.seconds:g}", 504),
        ("weights in memory, engines included (`serve.memory`)", f"{own.memory >> 30} GiB", 503),
        ("requests at once; of connections, those that have asked for nothing go first", f"{own.connections}", 503),
    ]
    lines = [f"| {what} | {most} | {status} |" for what, most, status in rows]
    return "\n".join(["| what | at the most | else |", "|---|---:|---|", *lines, ""])


MARKS = "<!-- limits: made by `make docs` -->\n", "<!-- /limits -->"


def serving_page() -> str:
    """The page about serving, with the table of limits as it is now."""
    before, _, rest = (DOCS / "serving.md").read_text(encoding="utf-8").partition(MARKS[0])
    return f"{before}{MARKS[0]}{limits_table()}{MARKS[1]}{rest.partition(MARKS[1])[2]}"


_LINK = re.compile(r"(\[`([\w.]+)`\]\(\.\./(src/regard/[\w/]+\.py)#L)\d+\)")


def architecture_page() -> str:
    """The page about the house, whose links lead to the lines where things are now."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    return _LINK.sub(lambda link: f"{link[1]}{line_of(DOCS.parent / link[3], link[2])})", text)


def line_of(file: Path, name: str) -> int:
    """Where a function, a class or a method is defined."""
    found: ast.AST = ast.parse(file.read_text(encoding="utf-8"))
    for part in name.split("."):
        found = next(each for each in ast.iter_child_nodes(found) if getattr(each, "name", "") == part)
    assert isinstance(found, ast.stmt)
    return found.lineno


PAGES = {"settings.md": settings_page, "presets.md": presets_page, "attention.md": attention_page}


def benchmarks() -> dict[str, str]:
    """The page of measurements and its figures, by their places under docs."""
    lines = measurements.read_ledger()
    drawn = {f"figures/{name}": svg for name, svg in measurements.figures(lines).items()}
    return {"benchmarks.md": SOURCE + measurements.page(lines)} | drawn


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
    STUDIO_COLOURS.write_text(colours.module(), encoding="utf-8")
    written = {"serving.md": serving_page(), "architecture.md": architecture_page()}
    for name, text in {**benchmarks(), **written}.items():
        (DOCS / name).write_text(text, encoding="utf-8")
