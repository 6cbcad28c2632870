"""Every verb of the command line: its help, and what it answers about the small runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commands
from models import RUNS
from plain import Plain, markup_of, words_of

CAT, RIVER = "the black cat ate the mouse", "the old man sees the river"
FEW = ["--source", "few.en", "--target", "few.fr", "measure.resamples=50"]
EVERY = ["demo", *(f"runs/{name}" for name in RUNS)]
LOOKED_INTO = ["demo", "runs/attentive"]
# Asked about every run; where it does not apply, the complaint is the answer.
ABOUT_RUNS: dict[str, list[list[str]]] = {
    "translate": [[CAT, RIVER, "a zzyzx sleeps"]],
    "predict": [[CAT, RIVER, "decode.length=7"]],
    "score": [["--source", "few.en", "--target", "few.fr"]],
    "evaluate": [["--source", "few.en", "--target", "few.fr", "measure.resamples=50"]],
    "explain": [[CAT]],
    "walk": [[CAT]],
    "beam": [[CAT, "decode.beam=3"]],
    "meaning": [["the", CAT, RIVER]],
    "card": [[]],
    "doubt": [["--source", "few.en"]],
    "runs show": [[]],
    "runs verify": [[]],
}
ABOUT_SOME: dict[str, list[list[str]]] = {
    "translate": [
        *([CAT, RIVER, "--show", kind] for kind in ("align", "scores")),
        [CAT, "--beam", "4", "--nbest", "3", "decode.length_penalty=0.6"],
        [CAT, "decode.sample=true", "--nbest", "2", "decode.seed=7"],
        [CAT, "--beam", "4", "decode.groups=2", "--nbest", "2"],
        [CAT, "decode.prefix=un", "decode.forbid=chat", "decode.no_repeat=2"],
        [CAT, "decode.risk=4"],
    ],
    "explain": [
        [CAT, "--pieces", "--head", "all"],
        [CAT, "--target", "le chat dort", "--edit", '{"kind": "mask-word", "word": 1}'],
    ],
    "walk": [[CAT, "--word", "2", "--side", "cross"]],
}
# Asked once, in this order: some change the folder.
ONCE: dict[str, list[list[str]]] = {
    "train": [["lstm", "--corpus", "nowhere.tsv"], ["no-such-preset"]],
    "demo": [["--time", "soon"]],  # what it does is done by others, in seconds
    "import": [["nowhere"], ["few.en"], ["runs"]],  # what it makes of real models is compared with them in tests
    "backtranslate": [["runs/plain", "--file", "few.fr", "--out", "back"]],
    "distil": [["runs/plain", "--source", "-", "--out", "student"]],
    "compare": [["runs/attentive", "runs/transformer", *FEW, "measure.trials=50"], ["runs/plain", "runs/tagger"]],
    "report": [["runs/attentive", *FEW], ["runs/nowhere"]],
    "faithful": [["runs/attentive", "--source", "few.en", "measure.limit=3", "measure.resamples=50"]],
    "serve": [[], ["runs/nowhere"]],
    "studio": [["runs", "serve.token=short"]],
    "doctor": [[]],
    "docs": [["no-such-page"]],  # a page that is there would be opened
    "cite": [[], ["runs/attentive"]],
    "help": [[], ["train"], ["data", "check"], ["nonsense"]],
    "data make": [["fable", "made", "--pairs", "20", "--held-out", "5"]],
    "data check": [["fable/train.en", "fable/train.fr"], ["few.en", "fable/train.fr"]],
    "data clean": [["fable/train.en", "fable/train.fr", "--out", "clean"]],
    "data stats": [["fable/train.en", "fable/train.fr", "--run", "runs/plain"]],
    "data split": [["fable/train.en", "fable/train.fr", "--out", "split", "--valid", "7", "--test", "5"]],
    "settings show": [["bahdanau", "model.width=8"], ["runs/tagger"], ["bahdanau", "model.wdith=8"]],
    "settings explain": [["train.rate"], ["model"], ["train.rtae"]],
    "settings schema": [[]],
    "settings presets": [[]],
    "runs ls": [["runs"]],
    "runs export": [["runs/plain", "plain.tar.gz"]],
    "runs import": [["plain.tar.gz", "--out", "runs/imported"]],
    "runs rename": [["runs/imported", "renamed"]],
    "runs rm": [["runs/renamed"]],
    "runs restore": [["runs/renamed"]],
    "runs sweep": [["runs", "--yes"]],
}
MAKES = (
    "data make",
    "data clean",
    "data split",
    "runs export",
    "runs import",
    "runs rename",
    "runs rm",
    "runs restore",
)


def every_help(folder: Path) -> dict[str, str]:
    """The help of every verb, found by reading the help above it."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop(0)
        text = commands.run([*words, "--help"], folder).out
        found[" ".join(words)] = text
        _, _, below = text.partition("\nCommands:\n")
        waiting += [(*words, name) for name in re.findall(r"^  (\S+)  ", below, re.MULTILINE)]
    return found


def check_known(helps: dict[str, str]) -> None:
    """A verb that nobody knows how to ask would be forgotten."""
    verbs = {verb for verb, text in helps.items() if "\nCommands:\n" not in text}
    if unknown := verbs - {*ABOUT_RUNS, *ONCE}:
        raise SystemExit(f"verbs that are not asked anything: {', '.join(sorted(unknown))}; add them to verbs.py")


def answers(work: Path, helps: dict[str, str], plain: Plain) -> Iterator[tuple[str, dict[str, Any]]]:
    """What every verb says, in plain and as JSON."""
    for verb, text in helps.items():
        asked = [[run, *words] for words in ABOUT_RUNS.get(verb, []) for run in EVERY]
        asked += [[run, *words] for words in ABOUT_SOME.get(verb, []) for run in LOOKED_INTO]
        asked += ONCE.get(verb, [])
        both = "--json" in text and verb not in MAKES
        forms = [[], ["--json"]] if both else [["--json"]] if "--json" in text else [[]]
        found = {}
        for words in (words + form for words in asked for form in forms):
            found[" ".join(words)] = _answer(commands.run([*verb.split(), *words], work), plain)
        if found:
            yield verb, found


def _answer(said: commands.Said, plain: Plain) -> dict[str, Any]:
    return {"code": said.code, "out": _output(said.out, plain), "err": plain.lines(said.err)}


def _output(text: str, plain: Plain) -> Any:
    """As JSON if it is that, be it one object or one a line."""
    for whole in (text, f"[{','.join(text.splitlines())}]"):
        try:
            return plain.value(json.loads(whole))
        except ValueError:
            continue
    return plain.lines(text)


def pages(work: Path, plain: Plain) -> Iterator[tuple[str, str]]:
    """Reports and comparisons: the words of each page, and its markup."""
    made = {f"report-{Path(run).name}": ["report", run, *FEW] for run in EVERY[:4]}
    made |= {f"report-{name}": ["report", f"runs/{name}"] for name in ("tagger", "classifier", "writer")}
    made["compare-built-in"] = [
        "compare",
        "demo",
        "runs/attentive",
        "measure.limit=12",
        "measure.resamples=50",
        "measure.trials=50",
    ]
    made["compare-files"] = ["compare", "runs/transformer", "runs/plain", "measure.resamples=50", "measure.trials=50"]
    made["compare-classifiers"] = ["compare", "runs/classifier"]
    made |= {f"explain-{Path(run).name}": ["explain", run, CAT] for run in LOOKED_INTO}
    made["beam-demo"] = ["beam", "demo", CAT]
    made["meaning-demo"] = ["meaning", "demo", "bank", "the bank is old", "he sat on the bank"]
    for name, words in made.items():
        kept = words[0] == "report" and words[1] != "demo"  # where the service looks for it
        file = work / words[1] / "report.html" if kept else work / "pages" / f"{name}.html"
        said = commands.run([*words, "--out", str(file)], work)
        if not file.exists():
            yield f"{name}.txt", plain.text(said.err)
            continue
        page = plain.text(file.read_text(encoding="utf-8"))
        yield f"{name}.html", markup_of(page)
        yield f"{name}.txt", words_of(page)
