"""Write from the code docs/reference, the lines that docs/architecture.md links to, the studio's colours and the words
that shells complete; from docs/glossary.md the studio's glossary, from the ledger docs/benchmarks.md: so they agree.

python docs/generate.py
"""

from __future__ import annotations

import ast
import json
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import torch
import typer

import regard
from regard.cli import completion
from regard.cli.main import app
from regard.cli.verb import fields_of
from regard.convert import foreign, package
from regard.data import lines, parquet, tables, vectors
from regard.evaluate import evaluate
from regard.explain import edits, look, replay
from regard.explain.walkthrough.example import example
from regard.explain.walkthrough.render import markdown
from regard.runs import archive, folder, log
from regard.runs import card as cards
from regard.serve import corpora, jobs, limits, markup
from regard.serve.limits import Limits
from regard.settings import (
    AdaptSettings,
    AttentionSettings,
    AverageSettings,
    BahdanauDecoderSettings,
    ConditionalDecoderSettings,
    ContextDecoderSettings,
    DataSettings,
    LuongDecoderSettings,
    RecurrentAttention,
    RecurrentModel,
    ReinforceSettings,
    Settings,
    SourceSettings,
    TextSettings,
    TrainSettings,
    TransformerModel,
    VectorSettings,
    WindowSettings,
)
from regard.settings.call import CallSettings, DecodeSettings, MeasureSettings, ServeSettings
from regard.settings.help import all_fields
from regard.settings.loading import written
from regard.settings.reading import Frozen
from regard.show import colours

sys.path.append(str(Path(__file__).parent))  # for the file beside this one, however this one was loaded
import measurements

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
STUDIO_PIECES = DOCS.parent / "src" / "regard" / "studio" / "pieces"
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
    ("….window", WindowSettings),
    ("model.vectors", VectorSettings),
    ("text", TextSettings),
    ("text.source", SourceSettings),
    ("data", DataSettings),
    ("train", TrainSettings),
    ("train.average", AverageSettings),
    ("train.adapt", AdaptSettings),
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


def bytes_of(count: int) -> str:
    """For people; all limits are powers of two."""
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size:
            return f"{count // size:,} {name}"
    return f"{count:,} bytes"


LIMITS_PAGE = """# Limits

Everything that comes from outside is bounded, and checked before memory is taken or anything is computed. What is over
its limit is refused in one line: a verb ends with an exit code ([Runs](../runs.md#failures)), a request is answered
with a status ([Serving](../serving.md#when-there-is-too-much)).
"""


def limits_page() -> str:
    """One table of all limits: what files hold, what a request asks for."""
    files = ((what, most, f"exit code {end}" if end.isdigit() else end) for what, most, end in file_limits())
    requests = ((what, most, f"status {status}") for what, most, status in request_limits())
    rows = [f"| {what} | {most} | {answer} |" for what, most, answer in (*files, *requests)]
    return "\n".join([SOURCE, LIMITS_PAGE, "| what | at most | otherwise |", "|---|---:|---|", *rows, ""])


def file_limits() -> Iterator[tuple[str, str, str]]:
    """What is read of a file, and the exit code."""
    expanded = f"{package._SWELLS} times its size and {bytes_of(package._SLACK)}, {package._MEMBERS:,} files"
    yield "a line of text, also of stdin; a unit of a TMX file; a text in Parquet", bytes_of(lines.LONGEST_LINE), "3"
    yield "a record of CSV", f"{tables.LARGEST_RECORD:,} characters", "3"
    yield "a column in a row group of Parquet, uncompressed", bytes_of(parquet.LARGEST_PART), "3"
    yield "a word in a file of word vectors", bytes_of(vectors._LONGEST_WORD), "3"
    yield "a line that is scored", f"{evaluate.LONGEST:,} pieces", "3"
    yield "a file of scores", bytes_of(cards._LARGEST), "3"
    yield "a log", f"{bytes_of(log.LONGEST)}, {log.MOST:,} events", "only its end is read"
    yield "a line of a log", bytes_of(log.LONGEST_LINE), "the line is skipped"
    yield "a file other than weights, in an archive or an imported model", bytes_of(archive._LARGEST_TEXT), "4"
    yield "the list of contents of an archive", bytes_of(archive._LARGEST_CONTENTS), "4"
    yield "the tar header of one file", bytes_of(archive._LARGEST_HEADER), "4"
    yield "the header of a safetensors file", bytes_of(folder._HEADER), "4"
    yield "the archive of an imported model, unpacked", expanded, "4"
    yield "archives inside archives, of an imported model", f"{package._NESTED} deep", "they are not opened"
    yield "the vocabulary of an imported model", f"{foreign.MOST_PIECES:,} pieces", "4"


def request_limits() -> Iterator[tuple[str, str, str]]:
    """What one request may ask for, and the status."""
    own = Limits()
    yield "the body of a request", f"{own.body >> 20} MiB", "413"
    yield "an uploaded file of a corpus", f"{own.upload >> 30} GiB", "413"
    yield "uploaded corpora", f"{corpora.MOST}", "503"
    yield "time until head and body of a request have arrived", f"{own.reading:g} s", "408"
    yield "depth of nested lists and objects in JSON", f"{own.depth}", "400"
    yield "a number in JSON", f"{own.digits} digits", "400"
    yield "fields of a form", f"{own.fields:,}", "400"
    yield "texts in one request", f"{own.texts}", "413, `/translate` 400"
    yield "a text", f"{own.text:,} characters", "413, `/translate` 400"
    yield "vectors: numbers, a picture, a sound", f"{own.vectors >> 20} MiB as text", "413"
    yield "a prefix, a sentence in a list, an override", f"{limits.LINE:,} characters", "400"
    yield "a word", f"{limits.WORD} characters", "400"
    yield "a name: run, checkpoint, corpus, preset, language", f"{limits.NAME} characters", "400"
    yield "depth of nested HTML elements in one sentence", f"{markup.DEEPEST}", "400"
    yield "hypotheses of a beam; outputs", f"{limits.BEAM}", "400"
    yield "pieces that a language model adds", f"{limits.LENGTH}", "400"
    yield "edits at once", f"{edits.MOST}", "400"
    yield "the length of a string or list in an edit", f"{edits.LONGEST:,}", "400"
    yield "a text or output to look into", f"{replay.MOST_PIECES:,} pieces", "400"
    yield "attention weights of one trace", f"{replay.MOST_NUMBERS:,}", "400"
    yield "pieces written × all pieces, where each has a gradient", f"{look.MOST_STEPS:,}", "400"
    yield "sentences for the meaning of one word", f"{limits.SENTENCES}", "400"
    yield "overrides of a training", f"{limits.OVERRIDES}", "400"
    yield "runs in one comparison", f"{limits.COMPARED}", "400"
    yield "trainings at once; comparisons at once", f"{jobs.TRAININGS}; {jobs.COMPARISONS}", "429"
    yield "texts and calls waiting for one model (`serve.queue`)", f"{own.queue:,}", "429"
    yield "the time of a request (`serve.timeout`)", f"{own.seconds:g} s", "504"
    yield "weights in memory, engines included (`serve.memory`)", f"{own.memory >> 30} GiB", "503"
    yield "requests at once; idle connections are closed first", f"{own.connections}", "503"


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


def glossary_terms() -> list[tuple[str, str]]:
    """The terms of the field in docs/glossary.md, each with its meaning."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8").partition("## Terms of the field")[2]
    return re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE)[1:]  # without the table's head


def words_module() -> str:
    """Those terms, for the studio."""
    rows = glossary_terms()
    lines = "\n".join(f"  [{json.dumps(term)}, {json.dumps(meaning, ensure_ascii=False)}]," for term, meaning in rows)
    return (
        "// Made by `make docs` from docs/glossary.md; change that, not this file.\n\n"
        f"// prettier-ignore\nexport const TERMS = [\n{lines}\n];\n"
    )


# Values of options that are words; of others the shell completes files, and of these runs.
VALUES = {
    "--device": "auto|cpu|cuda",
    "--show": "text|align|scores|doubt",
    "--side": "cross|encoder|decoder",
    "--head": "best|mean|all",
    "--task": "translate|tag|classify|language",
    "--to": "archive|ctranslate2|ctranslate2-int8|ctranslate2-float16|huggingface",
    "--corpus": "fable:fr|fable:hi",
}
RUNS = {"--from", "--resume", "--with", "--run"}


def completion_table() -> str:
    """All that `regard.cli.completion` offers but runs, which are where it is asked."""
    root = typer.main.get_command(app)
    settings = {}
    for path, field in (*all_fields(Settings), *all_fields(CallSettings)):
        values = completed_values(field.annotation, None if field.is_required() else field.default)
        known = settings.setdefault(path, {"about": brief(field.description), "values": []})
        known["values"] += [value for value in values if value not in known["values"] and " " not in value]
    table = {
        "presets": {name: regard.load_settings(name).about for name in regard.preset_names()},
        "groups": {name: brief(each.help) for name, each in root.commands.items() if hasattr(each, "commands")},
        "verbs": {name: verb_words(name, command) for name, command in commands(root)},
        "settings": settings,
    }
    return json.dumps(table, ensure_ascii=False, indent=1) + "\n"


def completed_values(annotation: Any, usual: Any) -> list[str]:
    """All values of a setting where they are few, else the usual one."""
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if annotation in (bool, bool | None):
        return ["true", "false"]
    return [shown] if isinstance(usual, int | float | str) and (shown := written(usual)).isprintable() else []


def brief(text: str | None) -> str:
    """The beginning of an explanation, on one line."""
    words = " ".join((text or "").split())
    return words if len(words) <= 80 else words[:80].rpartition(" ")[0] + " …"


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in group.commands.items():
        yield from commands(each, f"{before}{name} ") if hasattr(each, "commands") else [(before + name, each)]


def verb_words(name: str, command: Any) -> dict[str, Any]:
    """What may stand behind a verb."""
    parameters = command.get_params(typer.Context(command))
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    training = [path for path, _ in all_fields(Settings)]
    words = [[kind for kind, sign in SIGNS.items() if re.search(sign, each.metavar or each.name)] for each in arguments]
    return {
        "about": brief(command.help),
        "words": words,
        "more": bool(arguments) and arguments[-1].nargs == -1,
        "settings": list(dict.fromkeys(training if name in ("train", "settings show") else dict(fields_of(name)))),
        "options": {
            option: {
                "about": brief(each.help),
                "takes": "" if each.is_flag else "run" if option in RUNS else f"={VALUES.get(option, '')}",
            }
            for each in parameters
            if each.param_type_name == "option"
            for option in each.opts
        },
    }


SIGNS = {"run": r"RUN|^runs?$", "preset": "PRESET", "setting": "SETTING=VALUE", "name": "^setting$", "verb": "VERB"}

PAGES = {
    "settings.md": settings_page,
    "presets.md": presets_page,
    "attention.md": attention_page,
    "limits.md": limits_page,
}


def benchmarks() -> dict[str, str]:
    """The page of measurements and its figures, by their places under docs."""
    lines = measurements.read_ledger()
    drawn = {f"figures/{name}": svg for name, svg in measurements.figures(lines).items()}
    return {"benchmarks.md": SOURCE + measurements.page(lines)} | drawn


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
    completion.TABLE.write_text(completion_table(), encoding="utf-8")
    (STUDIO_PIECES / "colours.js").write_text(colours.module(), encoding="utf-8")
    (STUDIO_PIECES / "words.js").write_text(words_module(), encoding="utf-8")
    pages = {"architecture.md": architecture_page()}
    for name, text in {**benchmarks(), **pages}.items():
        (DOCS / name).write_text(text, encoding="utf-8")
