"""What is set for a call: the same names as flags, behind a verb and in requests."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

import corpora_for_tests as small
import serving
from regard.cli.completion import answer
from regard.cli.demo import TESTED, _report
from regard.cli.main import run
from regard.cli.translate import _glossary
from regard.cli.verb import apart
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.errors import DataError, SettingsError
from regard.explain.beam import search_tree
from regard.explain.look import UNSEARCHED
from regard.serve.app import create_app
from regard.serve.library import Library
from regard.settings.call import TAKEN, DecodeSettings, MeasureSettings
from regard.settings.help import explain
from regard.settings.loading import load_call, overrides_of, written
from regard.settings.reading import read
from regard.tasks.load import load
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
CAT = "the black cat ate the mouse"
ASKED = {"beam": 2, "prefix": "la le", "no_repeat": 2, "forbid": ["un"], "longest": 1.0}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return serving.runs(tmp_path_factory) / "attentive"


# Reading


def test_an_override_becomes_what_decoding_takes() -> None:
    words = ("decode.coverage=0.2", "decode.best=7", "decode.forbid=a,b", "decode.glossary={Bank='rive'}")
    options = Options.of(load_call("translate", *words).decode)
    assert options.rule == Beam(7, coverage_penalty=0.2, best=7)
    assert options.forbidden == ("a", "b")
    assert options.glossary == {"bank": "rive"}
    drawn = Options.of(DecodeSettings(risk=3, temperature=0.5, seed=9))
    assert (drawn.rule, drawn.risk) == (Sample(3, 0.5, seed=9), True)


@pytest.mark.parametrize(
    "asked",
    [
        DecodeSettings(beam=3, prefix="true", forbid=("a", "3"), coverage=0.25, copy_unknown=False, sample=True),
        DecodeSettings(prefix='le "petit" = chat', glossary={"the bank": 'la "rive"', "é": "3"}),
        DecodeSettings(),
    ],
    ids=str,
)
def test_settings_are_written_as_overrides_and_read_again(asked: DecodeSettings) -> None:
    assert load_call("translate", *overrides_of("decode", asked)).decode == asked


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
ODD = TEXTS | st.sampled_from(["7", "true", "a,b", " a", "2024-01-01", "[[", "[" * 3000, '"', "\x7f\r\n", "😀", ""])


@given(ODD, st.lists(ODD, max_size=3).map(tuple), st.dictionaries(ODD, ODD, max_size=2))
@settings(max_examples=100, deadline=None)
def test_every_text_that_is_written_is_read_again(prefix: str, forbid: tuple[str, ...], terms: dict[str, str]) -> None:
    words = [f"decode.prefix={written(prefix)}", f"decode.forbid={written(forbid)}"]
    words += [f"decode.glossary={written(terms)}"] if terms else []
    found = load_call("translate", *words).decode
    assert (found.prefix, found.forbid, found.glossary) == (prefix, forbid, terms)


@pytest.mark.parametrize(
    ("verb", "override", "expected"),
    [
        ("translate", "decode.prefix=2024", "2024"),
        ("translate", "decode.prefix=['a']", "['a']"),
        ("translate", "decode.prefix=[b", "[b"),
        ("translate", "decode.forbid=2024", ("2024",)),
        ("translate", "decode.forbid=['a,b', '7']", ("a,b", "7")),
        ("serve", "serve.pin=7", ("7",)),
        ("serve", "serve.memory=4000000000", "4000000000"),
        ("serve", "serve.admin_token=1234567890123456", "1234567890123456"),
        ("evaluate", "measure.edges=10", (10,)),
    ],
)
def test_a_text_that_looks_like_a_number_stays_a_text(verb: str, override: str, expected: object) -> None:
    section, name = override.partition("=")[0].split(".")
    assert getattr(getattr(load_call(verb, override), section), name) == expected


@pytest.mark.parametrize("override", ["serve.admin_tokn=hunter2", "serve.admin_token.a=hunter2"])
def test_a_token_is_never_printed(override: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_call("serve", override)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("asked", [{"prefix": "a\0"}, {"forbid": ("\0",)}, {"glossary": {"a": "\0"}}, {"engine": "\0"}])
def test_no_text_has_a_character_that_no_command_can_have(asked: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="should match pattern"):
        read(DecodeSettings, asked, "decode")


MISTAKES = {
    "a mistyped setting": ("translate", "decode.bean=3", "decode.bean = 3: no such setting; did you mean 'beam'?"),
    "no number": ("translate", "decode.beam=many", "decode.beam = 'many': not valid; should be a valid integer"),
    "nothing finite": ("translate", "decode.temperature=nan", "decode.temperature = nan: not valid"),
    "nothing negative": ("translate", "decode.risk=-3", "decode.risk = -3: not valid; should be greater than or equal"),
    "no samples": (
        "translate",
        "decode.epsilon=0.02",
        "decode.epsilon = 0.02: is about samples; add decode.sample=true",
    ),
    "another section": ("translate", "measure.limit=3", "measure.limit: not for regard translate"),
    "a part of it": ("predict", "decode.prefix=a", "decode.prefix: not for regard predict; there are: beam,"),
    "of one run alone": ("compare", "measure.comet=m", "measure.comet: not for regard compare"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_cannot_be_set_gets_one_line(name: str) -> None:
    verb, override, line = MISTAKES[name]
    with pytest.raises(SettingsError) as raised:
        load_call(verb, override)
    assert line in str(raised.value)


def test_what_shapes_samples_is_taken_where_samples_are_drawn_or_may_be_asked_for() -> None:
    for verb, *more in (("translate", "decode.sample=true"), ("evaluate", "decode.risk=8"), ("serve",), ("studio",)):
        assert load_call(verb, "decode.epsilon=0.02", *more).decode.epsilon == 0.02


def test_a_table_is_explained_by_the_settings_in_it() -> None:
    lines = explain("train")
    assert lines[0] == "train: a table"
    assert "train.steps: Updates at the most. (a whole number; default 10000)" in lines
    assert any(line.startswith("train.consistency.weight: ") for line in lines)
    assert not any("\n" in line or "Settings(" in line for line in lines)
    assert explain("text.source.patch") == [line for line in explain("text") if line.startswith("text.source.patch:")]


def test_a_setting_that_is_named_without_its_table_is_found() -> None:
    with pytest.raises(SettingsError, match=r"^rate: no such setting; did you mean train\.rate\?$"):
        explain("rate")
    with pytest.raises(SettingsError, match=r"did you mean data\.source, .*text\.source\?$"):
        explain("source")


def test_a_term_without_a_translation_is_refused() -> None:
    with pytest.raises(DataError, match="glossary = 'bank': '': must be a term and its translation"):
        Options.of(DecodeSettings(glossary={"bank": ""}))


def test_texts_are_told_from_settings() -> None:
    assert apart(["a=b", "decode.beam=3", "I decode.beam=3", "model.depth=4"]) == (
        ["decode.beam=3"],
        ["a=b", "I decode.beam=3", "model.depth=4"],
    )


# The command line


SEARCH = "length-penalty coverage-penalty groups diversity temperature top-k nucleus seed risk min-ratio max-ratio"
WORDS = "no-repeat forbid prefix copy-unknown no-copy-unknown engine"
MEASURE = "beam metrics tokenize edges resamples"
SERVE = "token read-only pin admin-token allow-host allow-origin queue timeout memory engine"
EXAMPLES = ("true", "false", "N", "N,N", "TEXT", "TEXT,TEXT", "FILE", "FOLDER", "RUN", "mean", "intersection")
GONE = {
    "demo": "preset",
    "score": "tokens",
    "train": "valid-source valid-target valid-corpus task watch",
    "translate": f"{SEARCH} {WORDS} sample",
    "predict": "length beam sample temperature nucleus seed",
    "evaluate": f"{MEASURE} rarity alignment reverse links reverse-links symmetrise comet engine",
    "compare": f"{MEASURE} limit trials examples seed every texts",
    "report": f"{MEASURE} limit seed",
    "explain": "html svg png save special",
    "faithful": "alignment",
    "walk": "markdown",
    "serve": f"{SERVE} batch gather",
    "studio": f"{SERVE} stop-trainings log browser no-browser",
    "beam": "beam length-penalty html",
    "meaning": "html svg",
    "data make": "target min-words max-words",
    "runs export": "all half quantization out",
}


@pytest.mark.parametrize("verb", GONE)
def test_a_flag_of_earlier_versions_is_answered_with_what_to_write(verb: str, capsys: Capture) -> None:
    for name in GONE[verb].split():
        assert run([*verb.split(), f"--{name}", "x"]) == 2
        found = re.match(
            rf"--{name}: is (a setting|another verb|another option); write (\S.*)", capsys.readouterr().err
        )
        assert found, name
        if found[2].startswith(("decode.", "measure.", "serve.")):
            setting, _, example = found[2].partition("=")
            assert explain(setting)
            assert example in EXAMPLES, found[2]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("predict --sample", "decode.sample=true"),
        ("studio --log", "serve.log=true"),
        ("translate --risk", "decode.risk=N"),
        ("translate --forbid", "decode.forbid=TEXT,TEXT"),
        ("translate --seed", "decode.seed=N"),
        ("compare --seed", "measure.seed=N"),
        ("report --seed", "measure.seed=N"),
        ("evaluate --links", "measure.links=FILE"),
        ("evaluate --reverse", "measure.reverse=RUN"),
        ("evaluate --rarity", "measure.rarity=mean"),
    ],
)
def test_a_flag_of_earlier_versions_is_answered_with_an_example(words: str, answer: str, capsys: Capture) -> None:
    assert run(words.split()) == 2
    assert f"write {answer}\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["translate --watch", "evaluate --html", "settings explain --beam", "serve --task"])
def test_a_verb_answers_only_for_flags_that_it_had(words: str, capsys: Capture) -> None:
    assert run(words.split()) == 2
    assert f"--{words.partition('--')[2]}: no such option; " in capsys.readouterr().err


def test_only_a_verb_itself_lists_settings(capsys: Capture) -> None:
    for words, listed in ((["explain"], True), (["help", "explain"], True), (["settings", "explain"], False)):
        assert run(words if "help" in words else [*words, "--help"]) == 0
        assert ("Settings, for example" in capsys.readouterr().out) == listed, words


def test_every_verb_has_the_flags_of_all_and_help_lists_its_settings(capsys: Capture) -> None:
    for words in (["translate"], ["runs", "ls"], ["data", "check"], ["serve"], ["walk"]):
        assert run([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(flag in shown for flag in ("--json", "--quiet", "--device")), words
        for section, names in TAKEN.get(words[0], {}).items():
            assert all(f"  {section}.{name}=" in shown for name in names), words


def test_the_shell_completes_settings(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(os.environ, "_REGARD_COMPLETE", "complete_bash")
    monkeypatch.setitem(os.environ, "COMP_WORDS", "regard beam demo x decode.l")
    monkeypatch.setitem(os.environ, "COMP_CWORD", "4")
    assert answer(os.environ) == 0
    assert capsys.readouterr().out.split() == ["decode.length_penalty=", "decode.length_penalty=1.0"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["beam", "demo", CAT, "--out", "tree.txt"],
            "--out = tree.txt: not a format that is written; end its name in .html",
        ),
        (["explain", "demo", CAT, "--out", "x"], "end its name in .html or .svg or .png or .safetensors"),
        (["studio", "a", "b"], "FOLDER = b: the studio shows one folder of runs"),
        (["data", "make", "fable", "x", "--words", "20"], "--words = 20: not a range of lengths"),
        (["beam", "demo", CAT, "decode.sample=true"], "decode.sample: not for regard beam"),
        (["beam", "demo", "decode.beam=2"], "TEXT: missing, in quotes where it has spaces"),
        (["report", "decode.beam=3"], "RUN: missing; name a run folder"),
        (["report", "decode.beam=3", "--out", "x.html"], "RUN: missing; name a run folder"),
        (["explain", "demo", "the", "cat"], "TEXT: 2 of them; give one, in quotes"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_a_verb_cannot_do_gets_one_line(words: list[str], line: str, capsys: Capture) -> None:
    assert run(words) == 2
    assert line in capsys.readouterr().err


def test_quiet_keeps_remarks_back_in_every_verb(tmp_path: Path, capsys: Capture) -> None:
    for flags, remarks in (([], True), (["--quiet"], False), ([], True)):
        assert run(["runs", "ls", str(tmp_path), *flags]) == 0
        assert bool(capsys.readouterr().err) == remarks


def test_quiet_keeps_back_what_was_done_to_a_run(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(trained, tmp_path / "a")
    there = str(tmp_path / "b")
    for words in (["rename", str(tmp_path / "a"), "b"], ["rm", there], ["restore", there], ["rm", there, "--now"]):
        flags = ["--yes"] if words[0] == "rm" else []
        assert run(["runs", *words, *flags, "--quiet"]) == 0
        assert capsys.readouterr().err == "", words
    assert not (tmp_path / "b").exists()


# The same everywhere


def test_a_request_and_a_service_decode_as_the_command_line_does(trained: Path, capsys: Capture) -> None:
    words = [*(f"decode.{name}={value}" for name, value in ASKED.items() if name != "forbid"), "decode.forbid=un"]
    assert run(["translate", str(trained), CAT, *words, "--json", "--device", "cpu"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert expected["target"].lower().startswith("la le")
    usual = load_call("serve", *words).decode
    for decode, body in ((None, {"decode": ASKED}), (usual, {}), (usual, {"beam": 2, "prefix": "la le"})):
        library = Library(None, [trained], decode=decode)
        with TestClient(create_app(library), "http://localhost") as client:
            answer = client.post("/api/v1/translate", json={"run": "attentive", "texts": [CAT], **body}).json()
            output = answer["translations"][0]["outputs"][0]
            assert (output["text"], output["score"]) == (expected["target"], pytest.approx(expected["score"]))
            plain = {"q": CAT, "source": "en", "target": "fr"}
            libre = client.post("/translate", json=plain).json()["translatedText"]
            assert (libre == expected["target"]) == (decode is usual)


def test_terms_of_a_file_and_terms_that_are_set_are_one_glossary(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("cat\tle chat\nBank\tbanque\n")
    assert _glossary(file, None) == {"cat": "le chat", "bank": "banque"}
    assert _glossary(file, {"bank": "rive"}) == {"cat": "le chat", "bank": "rive"}


def test_a_trace_is_written_under_the_name_that_was_given(trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.json.safetensors"
    assert run(["explain", str(trained), CAT, "--out", str(file), "--device", "cpu"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.json", "a.json.safetensors"]


def test_the_report_of_the_demo_computes_where_it_was_trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def report(_: Path, measure: MeasureSettings, device: str) -> None:
        asked.append(f"{device} {measure.limit}")
        raise DataError("enough")

    monkeypatch.setattr("regard.evaluate.report.report", report)
    with pytest.raises(DataError, match="enough"):
        _report(tmp_path, "cuda")
    assert asked == [f"cuda {TESTED}"]


def test_a_service_looks_into_what_it_would_translate(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = DecodeSettings(beam=2, prefix="la le", coverage=0.5, length=7, seed=3)
    with TestClient(create_app(Library(None, [trained], decode=usual)), "http://localhost") as client:

        def ask(route: str, **more: object) -> dict[str, Any]:
            answer = client.post(f"/api/v1/{route}", json={"run": "attentive", "text": CAT, **more})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        body = {"run": "attentive", "texts": [CAT]}
        expected = client.post("/api/v1/translate", json=body).json()["translations"][0]["outputs"][0]["text"]
        assert expected.lower().startswith("la le")
        assert [ask(route)["output"] for route in ("trace", "gates")] == [expected] * 2
        words = ask("trace")["target"]["words"]
        assert (ask("importance")["rows"], ask("walkthrough")["target"]["words"]) == (words, words)
        assert ask("trace", target="le chat")["target"]["words"] == ["le", "chat"]
        assert ask("trace", edits=[{"kind": "mask-word", "word": 1}])["output"]
        assert client.post("/api/v1/trace", json={"run": "attentive", "text": CAT, "rank": 2}).status_code == 400
        assert ask("trace", rank=2, beam=3)
        assert ask("beam")["text"] == expected
        assert ask("beam", prefix="")["text"] != expected

        asked: list[list[str]] = []

        async def command(_request: object, words: list[str], _folder: Path) -> None:
            asked.append(words)
            Path(words[words.index("--out") + 1]).write_text("made")

        monkeypatch.setattr(client.app.state, "commands", command)  # type: ignore[attr-defined]
        assert client.get("/api/v1/runs/attentive/report").text == "made"
        settings = [word for word in asked[0] if word.startswith("decode.")]
        assert settings == overrides_of("decode", usual.model_copy(update={"length": 40}))


def test_a_service_whose_own_settings_it_would_refuse_does_not_start(trained: Path) -> None:
    with pytest.raises(SettingsError, match=r"decode.beam = 30: too much for one request; at most 20"):
        Library(None, [trained], decode=DecodeSettings(beam=30))
    with pytest.raises(SettingsError, match=r"decode.length = 201: too much"):
        Library(None, [trained], decode=DecodeSettings(length=201))


def test_other_beams_are_searched_by_the_same_rule(trained: Path) -> None:
    translator, rule = load(trained), Beam(4, 0.5, 3.0, best=4, groups=2, diversity=2.0)
    found = search_tree(translator, CAT, rule, others=(2, 3)).others
    for other, same in zip(found, (replace(rule, width=2, best=1), Beam(3, 0.5, 3.0)), strict=True):
        expected = search_tree(translator, CAT, same, others=())
        assert other.text == expected.text
        assert other.score == pytest.approx(expected.best.score)


def test_looking_and_walking_search_as_they_are_told(trained: Path, capsys: Capture) -> None:
    for verb in ("explain", "walk"):
        shown = []
        for words in ([], ["decode.prefix=la le"]):
            assert run([verb, str(trained), CAT, *words, "--json", "--device", "cpu"]) == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] != shown[1], verb


@pytest.mark.parametrize(
    ("decode", "line"),
    [
        ({"engine": "native"}, "decode.engine: is chosen when a run is loaded"),
        ({"beam": 21}, "decode.beam = 21: too much for one request; at most 20"),
        ({"temperature": 2.0}, "decode.temperature = 2.0: is about samples; add decode.sample=true"),
        ({"longest": 21}, "decode.longest = 21.0: too much for one request"),
        ({"glossary": {"a": "b" * 1000}}, "decode.glossary = 1,001 characters: too long"),
        ({"bean": 2}, "decode.bean: Extra inputs"),
        ({"length": 7}, "decode.length: not for translations; there are: beam, best"),
        ({"coverage": -1}, "coverage"),
        ({"prefix": "a\0"}, "decode.prefix: String should match pattern"),
    ],
    ids=str,
)
def test_a_request_that_asks_for_too_much_is_refused(trained: Path, decode: dict[str, object], line: str) -> None:
    with TestClient(create_app(Library(None, [trained])), "http://localhost") as client:
        answer = client.post("/api/v1/translate", json={"run": "attentive", "texts": [CAT], "decode": decode})
        assert answer.status_code == 400
        assert line in answer.text


def test_a_language_model_takes_what_counts_for_it(tmp_path: Path, capsys: Capture) -> None:
    tiny = small.settings("transformer-tiny", "task=language", "train.steps=2", "train.validate_every=2")
    start(tmp_path / "writer", tiny, small.Notes(), device="cpu")
    flags = ["decode.length=3", "decode.sample=true", "decode.seed=4", "--json", "--device", "cpu"]
    assert run(["predict", str(tmp_path / "writer"), "the cat", *flags]) == 0
    said = json.loads(capsys.readouterr().out)
    usual = DecodeSettings(prefix="le")  # of translations, and nothing to a language model
    with TestClient(create_app(Library(tmp_path, decode=usual)), "http://localhost") as client:
        body = {"run": "writer", "texts": ["the cat"], "decode": {"length": 3, "sample": True, "seed": 4}}
        found = client.post("/api/v1/predict", json=body).json()["predictions"][0]
        assert found["continuation"] in json.dumps(said, ensure_ascii=False)
        assert found["score"] == pytest.approx(said["score"])
        refused = client.post("/api/v1/predict", json=body | {"decode": {"prefix": "a"}})
        assert (refused.status_code, "decode.prefix: not for" in refused.text) == (400, True)
    for verb in ("walk", "explain"):
        assert run([verb, str(tmp_path / "writer"), "the cat", "decode.beam=2", "--device", "cpu"]) == 4
        assert UNSEARCHED in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--target", "le chat"], ["--edit", '{"kind": "mask-word", "word": 1}']])
def test_where_nothing_is_searched_for_explain_takes_no_decode(
    trained: Path, given: list[str], capsys: Capture
) -> None:
    asked = ["explain", str(trained), CAT, *given, "--json", "--device", "cpu"]
    assert run(asked) == 0
    capsys.readouterr()
    assert run([*asked, "decode.beam=2"]) == 2
    assert UNSEARCHED in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["explain", "walk"])
@pytest.mark.parametrize("override", ["decode.best=2", "decode.engine=native"])
def test_what_has_no_effect_on_a_look_is_refused(verb: str, override: str) -> None:
    with pytest.raises(SettingsError, match=rf"{override.partition('=')[0]}: not for"):
        load_call(verb, override)
