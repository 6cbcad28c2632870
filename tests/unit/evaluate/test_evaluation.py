"""``regard evaluate`` and ``regard score``: what they print, where, and how they end."""

from __future__ import annotations

import gzip
import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora_for_tests as small
from regard.cli.main import run
from regard.cli.streams import LineCounter, set_quiet
from regard.data.encoding import Ragged
from regard.errors import DataError, SettingsError
from regard.evaluate import evaluate as evaluation
from regard.evaluate.evaluate import Texts, alignment_of, check_measures, score, training_counts
from regard.evaluate.report import report
from regard.fable.corpus import generate
from regard.metrics.alignment import flipped
from regard.metrics.groups import by_length
from regard.metrics.translation import measure
from regard.runs.folder import Run
from regard.settings.call import DecodeSettings, MeasureSettings
from regard.show.run_page import limits
from regard.tasks.load import load
from regard.text.words import split_words
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
HELD_OUT = generate("fr", count=90, split="test", minimum_words=5, maximum_words=8)
PAIRS = [(pair.source, pair.target) for pair in HELD_OUT if len(pair.target.split()) > 3][:61]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned next to nothing, beside its test set."""
    folder = tmp_path_factory.mktemp("evaluation")
    start(folder / "run", small.settings("gru"), small.Notes(), device="cpu")
    write(folder / "test.en", [source for source, _ in PAIRS])
    write(folder / "test.fr", [target for _, target in PAIRS])
    worse = [target.replace("le", "la", 1) for _, target in PAIRS]
    write(folder / "worse.fr", worse)
    return folder


def arguments(folder: Path, *flags: str, verb: str = "evaluate") -> list[str]:
    files = ["--source", str(folder / "test.en"), "--target", str(folder / "test.fr")]
    return [verb, str(folder / "run"), *files, "--device", "cpu", *flags]


def told(folder: Path, capsys: Capture, *flags: str) -> dict[str, object]:
    assert run(arguments(folder, "--json", *flags)) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


# Evaluate


def test_a_run_translates_and_what_it_wrote_is_measured(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    found = told(trained, capsys, "--out", str(tmp_path / "out.fr"), "decode.beam=2", "measure.resamples=11")
    written = (tmp_path / "out.fr").read_text(encoding="utf-8").split("\n")[:-1]
    found_again = load(trained / "run").translate([source for source, _ in PAIRS], beam=2)
    assert written == [each.text for each in found_again]
    assert found["sentences"] == len(PAIRS)
    assert found["output"] == "beam 2"
    expected = measure(
        written, [target for _, target in PAIRS], MeasureSettings(metrics=("bleu", "chrf", "ter"), resamples=11)
    )
    assert found["qualities"] == [vars(quality) for quality in expected]


def test_it_says_what_the_sacrebleu_command_says_of_the_same_files(trained: Path, capsys: Capture) -> None:
    found = told(trained, capsys, "--hypotheses", str(trained / "worse.fr"))
    files = [str(trained / "test.fr"), "-i", str(trained / "worse.fr")]
    flags = ["-m", "bleu", "chrf", "ter", "--confidence", "--format", "json", "-w", "10", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *files, *flags], check=True, timeout=300, capture_output=True
    )
    for quality, said in zip(found["qualities"], json.loads(done.stdout), strict=True):
        assert (quality["name"], quality["signature"]) == (said["name"], said["signature"])
        assert quality["score"] == pytest.approx(said["score"], abs=1e-9)
        assert (quality["low"] + quality["high"]) / 2 == pytest.approx(said["confidence_mean"], abs=1e-9)
        assert (quality["high"] - quality["low"]) / 2 == pytest.approx(said["confidence_var"], abs=1e-9)


def test_an_output_that_is_there_needs_no_model(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.tasks.load.load", None)
    flags = ("measure.edges=6,7", "measure.metrics=chrf++,bleu", "measure.resamples=0", "measure.rarity=mean")
    found = told(trained, capsys, "--hypotheses", str(trained / "worse.fr"), *flags)
    assert [quality["name"] for quality in found["qualities"]] == ["chrF2++", "BLEU"]
    worse = (trained / "worse.fr").read_text(encoding="utf-8").split("\n")[:-1]
    sources, references = zip(*PAIRS, strict=True)
    expected = by_length(sources, worse, references, MeasureSettings(metrics=("chrf++",), edges=(6, 7), resamples=0))
    assert found["lengths"] == [asdict(bucket) for bucket in expected]
    assert sum(bucket["count"] for bucket in found["rarities"]) == len(worse) == 61
    assert found["counts"] == "the run's source vocabulary"
    assert 0.9 < found["habits"]["length_ratio"] < 1.1


def test_people_get_a_table_on_stderr_and_nothing_on_stdout(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(arguments(trained, "--hypotheses", str(trained / "worse.fr"), "measure.resamples=0")) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "61 sentences" in captured.err
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in captured.err
    assert "BLEU by words of the source\n  up to 10              61 sentences  " in captured.err
    assert "over 40                0 sentences  too few" in captured.err
    assert "of the rarest word of the source in the run's source vocabulary" in captured.err
    assert "copied sentences        0.0%" in captured.err
    assert "\x1b" not in captured.err


def test_output_that_looks_tokenised_is_noted(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = write(tmp_path / "marked", [f"{target} ." for _, target in PAIRS])
    flags = ["--hypotheses", marked, "measure.resamples=0"]
    assert run(arguments(trained, *flags)) == 0
    assert "tokenised" not in capsys.readouterr().err  # a few may be right
    monkeypatch.setattr("regard.cli.evaluate.TOKENISED", 61)
    assert run(arguments(trained, *flags)) == 0
    assert "61 outputs end in ' .': is the text tokenised?" in capsys.readouterr().err


def test_packed_files_are_read(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    for name in ("test.en", "test.fr", "worse.fr"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((trained / name).read_bytes()))
    files = [f"--{side}={tmp_path / name}.gz" for side, name in (("source", "test.en"), ("target", "test.fr"))]
    assert run(["evaluate", str(trained / "run"), *files, "--hypotheses", f"{tmp_path}/worse.fr.gz", "--json"]) == 0
    packed = json.loads(capsys.readouterr().out)
    plain = told(trained, capsys, "--hypotheses", str(trained / "worse.fr"))
    assert packed["qualities"] == plain["qualities"]


def test_alignments_are_held_against_gold(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    gold = write(tmp_path / "gold", ["0-0 1-1 2?2"] * 61)
    links = write(tmp_path / "links", ["0-0 2-2"] * 61)
    reverse = write(tmp_path / "reverse", ["0-0 1-1 3-3"] * 61)
    flags = [
        "--hypotheses",
        str(trained / "worse.fr"),
        "measure.resamples=0",
        f"measure.alignment={gold}",
        f"measure.links={links}",
    ]
    alone = told(trained, capsys, *flags)["alignment"]
    assert alone == pytest.approx(
        {"error_rate": 1 / 4, "precision": 1.0, "recall": 1 / 2, "predicted": 122, "sure": 122, "possible": 183}
    )
    joined = told(trained, capsys, *flags, f"measure.reverse_links={reverse}", "measure.symmetrise=union")["alignment"]
    assert joined["predicted"] == 4 * 61
    assert joined["recall"] == 1.0
    assert run(arguments(trained, *flags)) == 0
    assert "error rate 0.250, precision 1.000, recall 0.500 (122 links; gold 122 sure" in capsys.readouterr().err


def test_comet_stands_beside_the_others(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    flags = ["--hypotheses", str(trained / "worse.fr"), "measure.resamples=0", "measure.comet=some/model"]
    assert run(arguments(trained, *flags)) == 5
    assert "no comet-score on PATH" in capsys.readouterr().err
    program = tmp_path / "comet-score"
    program.write_text(f"#!{sys.executable}\nprint('x\\tscore: 0.8125')\n")
    program.chmod(0o755)
    assert told(trained, capsys, *flags)["qualities"][-1]["score"] == 0.8125
    assert run(arguments(trained, *flags)) == 0
    assert "COMET   0.8125        model:some/model" in capsys.readouterr().err


def test_links_are_read_from_attention_and_joined_with_those_of_a_reverse_run(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path / "luong", small.settings("luong-dot", "train.steps=3"), small.Notes(), device="cpu")
    gold = write(tmp_path / "gold", ["0-0 1-1"] * len(PAIRS))
    files = ["--source", str(trained / "test.en"), "--target", str(trained / "test.fr"), f"measure.alignment={gold}"]
    flags = [*files, "--device", "cpu", "decode.beam=1", "measure.resamples=0", "--json"]

    def found(*more: str) -> dict[str, float]:
        assert run(["evaluate", str(tmp_path / "luong"), *flags, *more]) == 0
        shown = capsys.readouterr()
        assert shown.err.startswith("links: cross-attention, ")
        alignment: dict[str, float] = json.loads(shown.out)["alignment"]
        return alignment

    alone, joined = found(), found(f"measure.reverse={tmp_path}/luong", "measure.symmetrise=intersection")
    translator = load(tmp_path / "luong")
    sources, references = zip(*PAIRS, strict=True)
    links = evaluation.aligned(translator, sources, references)
    back = [flipped(each) for each in evaluation.aligned(translator, references, sources)]
    monkeypatch.setattr(evaluation, "ALIGNED", 2)
    assert evaluation.aligned(translator, sources, references) == links
    assert alone["predicted"] == sum(map(len, links))
    assert joined["predicted"] == sum(len(one & other) for one, other in zip(links, back, strict=True))


MISTAKES = {
    "an empty beam": (["decode.beam=0"], 2, "beam = 0: a beam holds"),
    "an unknown metric": (["measure.metrics=bleu,tre"], 2, "metrics = tre: no such metric; did you mean 'ter'?"),
    "no metric": (["measure.metrics=,"], 2, "metrics = none"),
    "edges that are no numbers": (["measure.edges=10,x"], 2, "measure.edges.1 = 'x': not valid"),
    "edges that fall": (["measure.edges=20,10"], 2, "edges = 20,10: must be growing"),
    "another rarity": (["measure.rarity=median"], 2, "measure.rarity = median: not known"),
    "fewer resamples than none": (["measure.resamples=-1"], 2, "resamples = -1: cannot be negative"),
    "another way to join": (
        ["measure.symmetrise=unite"],
        2,
        "symmetrise = unite: not known; did you mean 'union'?",
    ),
    "links without gold": (
        ["measure.links={tmp}/short"],
        2,
        "measure.alignment: missing; links are compared with gold ones",
    ),
    "one side of links": (
        ["measure.alignment={tmp}/short", "measure.reverse_links={tmp}/short"],
        2,
        "short: joins measure.links; give measure.links=FILE too",
    ),
    "a model without attention": (["measure.alignment={tmp}/none"], 4, "this model attends to no source"),
    "too few hypotheses": (["--hypotheses", "{tmp}/short"], 3, "short: 2 lines but"),
    "a missing file": (["--hypotheses", "{tmp}/no"], 3, "no: cannot be read"),
    "bytes that are no text": (["--hypotheses", "{tmp}/bytes"], 3, "bytes line 1: not UTF-8"),
    "gold outside": (
        ["measure.alignment={tmp}/gold", "measure.links={tmp}/gold"],
        3,
        "gold sentence 1 = 0-99: points",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line_and_its_exit_code(name: str, trained: Path, tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "short", ["une", "deux"])
    write(tmp_path / "none", [""] * 61)
    write(tmp_path / "gold", ["0-0 0-99"] * 61)
    (tmp_path / "bytes").write_bytes(b"\xff\xff\n" * 61)
    flags, code, expected = MISTAKES[name]
    assert run(arguments(trained, *(flag.replace("{tmp}", str(tmp_path)) for flag in flags))) == code
    captured = capsys.readouterr()
    assert expected in captured.err
    assert len([line for line in captured.err.splitlines() if not line.startswith("  ")]) == 1  # and a hint
    assert captured.out == ""


@pytest.mark.parametrize("verb", ["evaluate", "score"])
def test_empty_files_and_files_that_do_not_pair_are_named(
    verb: str, trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    empty, short = write(tmp_path / "empty", []), write(tmp_path / "short", ["one", "two"])
    assert run([verb, str(trained / "run"), "--source", empty, "--target", empty]) == 3
    assert "empty: is empty; give at least one sentence" in capsys.readouterr().err
    assert run([verb, str(trained / "run"), "--source", short, "--target", empty]) == 3
    assert "empty: 0 lines but" in capsys.readouterr().err
    assert run([verb, str(trained / "run"), "--source", short]) == 2
    assert "--target" in capsys.readouterr().err


def test_only_translators_score_translations(tmp_path: Path, capsys: Capture) -> None:
    tagger = Run.create(tmp_path / "tagger", small.settings("gru", "task=tag"))
    assert run(["score", str(tagger.folder), "--source", "a", "--target", "b"]) == 4
    assert run(["evaluate", str(tmp_path / "nowhere"), "--source", "a", "--target", "b"]) == 4
    assert "nowhere: no such folder" in capsys.readouterr().err


def test_directions_that_do_not_pair_are_refused() -> None:
    with pytest.raises(DataError, match="alignments = 0 backward: there are 1 forward"):
        alignment_of([frozenset()], [], [])


def test_measures_complain_before_any_work() -> None:
    with pytest.raises(SettingsError, match="metrics = blue"):
        check_measures(MeasureSettings(metrics=("blue",)))


# What a run has learned is no test, nor is another language


def test_a_test_whose_files_are_named_after_other_languages_is_told(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    opened = Run.open(trained / "run")
    swapped = [write(tmp_path / f"test.{language}", ["the yeti", "a yeti"]) for language in ("fr", "en")]
    told = f"by their names French to English, but {opened.place} translates English to French: its scores say nothing"
    assert run(["evaluate", str(trained / "run"), "--source", swapped[0], "--target", swapped[1], "decode.beam=1"]) == 0
    assert told in capsys.readouterr().err
    made = report(opened, *swapped, decode=DecodeSettings(beam=1), measure=MeasureSettings(resamples=2))
    assert any(told in each for each in limits(made))
    for right in (("a.en", "a.fr"), ("a.txt", "b.txt"), ("", "")):
        assert evaluation.misnamed(opened, *right) == ""


def test_a_test_that_the_run_was_trained_on_is_told(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    known = [(each.source, each.target) for each in generate("fr", count=2, split="train", maximum_words=8)]
    pairs = [*known, (known[0][0] + " yeti", "x"), ("the yeti", "y"), ("", "")]
    texts = [
        write(tmp_path / f"test.{side}", lines) for side, lines in zip("ab", zip(*pairs, strict=True), strict=True)
    ]
    opened = Run.open(trained / "run")
    remark = f"2 of the 5 test sources are in the training text of {opened.place}: scores on these say nothing about "
    assert evaluation.learned(opened, [source for source, _ in pairs]).startswith(remark)
    assert evaluation.learned(opened, [known[0][0]]).startswith("1 of 1 test sources is in the training text")
    assert evaluation.learned(opened, ["the yeti"]) == ""
    files = ["--source", texts[0], "--target", texts[1]]
    assert run(["evaluate", str(trained / "run"), *files, "decode.beam=1"]) == 0
    assert remark in capsys.readouterr().err
    assert run(["evaluate", str(trained / "run"), *files, "--hypotheses", texts[1]]) == 0
    assert remark not in capsys.readouterr().err
    made = report(opened, *texts, decode=DecodeSettings(beam=1), measure=MeasureSettings(resamples=2))
    assert any(remark in each for each in limits(made))
    shutil.copytree(trained / "run", tmp_path / "run", ignore=shutil.ignore_patterns("data"))
    assert evaluation.learned(Run.open(tmp_path / "run"), [known[0][0]]) == ""  # not known any more


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=9),
    st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=9),
)
def test_rows_are_found_among_others(held: list[list[int]], asked: list[list[int]]) -> None:
    assert Ragged.of(held).has(asked) == [row in held for row in asked]


# Where counts of words come from


def counted(folder: Path, *overrides: str) -> Run:
    """A run that was only prepared."""
    return Run.create(folder, small.settings("gru", *overrides))


def test_a_word_tokenizer_of_the_source_has_counted(trained: Path) -> None:
    found = training_counts(Run.open(trained / "run"), ["the cat"])
    lines = [pair.source for pair in generate("fr", count=300, split="train", maximum_words=8)]
    expected = Counter(word for line in lines for word in split_words(line))
    assert found[0] is not None
    assert {word: found[0][word] for word in expected} == expected


def test_words_are_cut_as_they_were_counted_marks_for_capitals_included(tmp_path: Path) -> None:
    prepared = counted(tmp_path / "run")
    evaluation.Tokenizers.learn("word", ["The cat", "the cat"], ["le", "le"], joint=False, case="mark").save(
        prepared.tokenizer
    )
    words, _, cut = training_counts(prepared, [])
    assert words is not None
    assert cut("THE Cat") == ["⇪", "the", "⇧", "cat"]
    assert [words.get(word, 0) for word in cut("THE Cat")] == [1, 2, 1, 2]
    assert [words.get(word, 0) for word in cut("The yeti")] == [1, 2, 0]


def test_else_the_training_text_is_read_once_more(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", ["the bear", "the bear, old", "x"]), write(tmp_path / "b", ["l'", "l'", "x"])
    files = {"source": source, "target": target, "valid_source": source, "valid_target": target}
    corpus = ("data.corpus=''", *(f"data.{name}={path}" for name, path in files.items()))
    prepared = counted(tmp_path / "run", *corpus, "text.joint=true")
    evaluation.Tokenizers.learn("word", ["the"], ["le"], joint=True).save(prepared.tokenizer)
    found = training_counts(prepared, ["the yeti, bear"])
    assert found == ({"the": 2, "yeti": 0, "￭,": 1, "bear": 2}, f"the training text, {source}", split_words)
    Path(source).unlink()
    gone = training_counts(prepared, ["the yeti"])
    assert gone[0] is None
    assert "the training text is not there" in gone[1]


def test_a_hub_is_not_asked_again(tmp_path: Path) -> None:
    prepared = counted(tmp_path / "run", "data.corpus='hf://some/set'", "text.joint=true")
    evaluation.Tokenizers.learn("byte", [], [], joint=True).save(prepared.tokenizer)
    found = training_counts(prepared, ["the"])
    assert found == (None, "hf://some/set is not read again for counts", split_words)
    texts = Texts(["a"] * 3, ["b"] * 3)
    result = evaluation.evaluate(texts, ["b"] * 3, found, MeasureSettings(resamples=0))
    assert result.rarities == []


def test_people_are_told_why_rare_words_are_not_measured(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "training_counts", lambda *_: (None, "the text is gone", split_words))
    assert run(arguments(trained, "--hypotheses", str(trained / "worse.fr"), "measure.resamples=0")) == 0
    assert "BLEU by rare words: not measured, the text is gone" in capsys.readouterr().err


# Score


def test_scores_come_line_by_line_with_sums_for_people(trained: Path, capsys: Capture) -> None:
    assert run(arguments(trained, verb="score")) == 0
    captured = capsys.readouterr()
    numbers = [float(line) for line in captured.out.split("\n")[:-1]]
    assert len(numbers) == 61
    pieces = sum(len(split_words(target)) + 1 for _, target in PAIRS)
    said = [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*(?:\.\d+)?", captured.err)]
    mean = sum(numbers) / pieces
    assert said == pytest.approx([61, pieces, sum(numbers), mean, math.exp(-mean)], rel=1e-3)


def test_every_piece_has_its_log_probability(trained: Path, capsys: Capture) -> None:
    assert run(arguments(trained, "--json", verb="score")) == 0
    row = json.loads(capsys.readouterr().out.split("\n")[0])
    assert [token["piece"] for token in row["tokens"]][-1] == "<end>"
    assert sum(token["log_probability"] for token in row["tokens"]) == pytest.approx(row["log_probability"], abs=1e-3)


def test_scores_as_json_are_those_of_python(trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "CHUNK", 7)  # several chunks, and one that is not full
    assert run(arguments(trained, "--json", verb="score")) == 0
    *rows, sums = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    monkeypatch.setattr(evaluation, "CHUNK", 1000)
    expected = list(score(load(trained / "run"), PAIRS))
    for number, (row, scored) in enumerate(zip(rows, expected, strict=True), start=1):
        assert row["line"] == number
        assert row["log_probability"] == pytest.approx(sum(value for _, value in scored), abs=1e-4)
        assert [token["piece"] for token in row["tokens"]] == [piece for piece, _ in scored]
    assert sums["lines"] == 61
    assert sums["perplexity"] == pytest.approx(math.exp(-sums["log_probability"] / sums["pieces"]))


def test_a_line_that_is_no_sentence_is_named(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "LONGEST", 5)
    monkeypatch.setattr(evaluation, "CHUNK", 2)
    found = score(load(trained / "run"), [("a", "b"), ("a", "b"), ("a", "b " * 7)])
    assert len([next(found), next(found)]) == 2
    with pytest.raises(DataError, match="line 3 = 7 pieces: too long to score; at most 5"):
        next(found)


# Progress


def test_progress_is_a_counter_in_a_terminal_and_a_line_now_and_then_in_a_log(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = LineCounter("translated")
    lines(1024, 3000)
    assert capsys.readouterr().err == ""  # too soon
    lines = LineCounter("translated", every=0.0)
    lines(2048, 3000)
    assert capsys.readouterr().err == "2,048 of 3,000 lines translated\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lines(3000, 3000)
    assert capsys.readouterr().err == "\r3,000 of 3,000 lines translated\n"
    set_quiet(quiet=True)
    lines = LineCounter("translated", every=0.0)
    set_quiet(quiet=False)
    lines(3000, 3000)
    assert capsys.readouterr().err == ""
