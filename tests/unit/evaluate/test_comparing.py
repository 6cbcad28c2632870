"""Comparing: the same text through every run, and what a terminal, a file and a page then say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import corpora_for_tests as small
import regard
from pages import asks_for_nothing, read
from regard.cli.main import run as cli
from regard.errors import DataError, SettingsError
from regard.evaluate import compare as comparing
from regard.evaluate.compare import (
    fitting_edges,
    judged,
    one_by_one,
    open_runs,
    take_turns,
)
from regard.evaluate.comparison import Comparison, Conditions, Cost, Row, sign
from regard.evaluate.evaluate import Texts
from regard.fable.corpus import generate
from regard.metrics.paired import Verdict
from regard.metrics.translation import Quality, measure
from regard.runs.folder import Run
from regard.settings import load_settings
from regard.settings.call import DecodeSettings, MeasureSettings
from regard.show.comparison_page import comparison_page, headline
from regard.show.sentences import wrong_words
from regard.tasks.load import task_of
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
VERSIONS = {"regard": "0", "sacrebleu": "2"}
FACTS = Conditions("a test", 61, "00ff", 5, "cpu", 1, 1000, 10_000, 12345, VERSIONS, ("beam 5",))
STEPS = ("train.steps=3", "train.validate_every=3")
QUICK = ["measure.limit=37", "measure.resamples=20", "measure.trials=20", "decode.beam=1", "--device", "cpu"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs, hardly trained."""
    folder = tmp_path_factory.mktemp("runs")
    for preset in ("gru", "transformer-tiny"):
        start(folder / preset, small.settings(preset, "data.pairs=97", *STEPS), small.Notes(), device="cpu")
    return [folder / "gru", folder / "transformer-tiny"]


@pytest.fixture(scope="module")
def comparison(runs: list[Path]) -> Comparison:
    measure = MeasureSettings(limit=37, resamples=20, trials=20, examples=3)
    found = regard.compare([Run.open(runs[0]), runs[1]], decode=DecodeSettings(beam=1), measure=measure, device="cpu")
    assert isinstance(found, Comparison)
    return found


@pytest.mark.parametrize(
    ("decode", "beam", "how"),
    [
        (DecodeSettings(risk=3), None, ("drawn", "decode.risk=3")),
        (DecodeSettings(beam=2, length_penalty=0.5), 2, ("beam 2", "decode.length_penalty=0.5")),
    ],
)
def test_a_comparison_says_how_the_outputs_were_made(
    runs: list[Path], decode: DecodeSettings, beam: int | None, how: tuple[str, ...]
) -> None:
    found = regard.compare(runs, decode=decode, measure=MeasureSettings(limit=3, resamples=2, trials=2), device="cpu")
    assert isinstance(found, Comparison)
    assert (found.conditions.beam, found.conditions.how) == (beam, how)
    assert f"Measured with: {', '.join(how)}, cpu" in read(comparison_page(found)).shown


def test_a_comparison_on_text_that_a_run_has_learned_says_so(runs: list[Path], tmp_path: Path) -> None:
    pairs = list(generate("fr", count=3, split="train", maximum_words=8))
    (tmp_path / "a").write_text("".join(f"{each.source}\n" for each in pairs))
    (tmp_path / "b").write_text("".join(f"{each.target}\n" for each in pairs))
    told: list[str] = []
    found = regard.compare(
        runs,
        str(tmp_path / "a"),
        str(tmp_path / "b"),
        decode=DecodeSettings(beam=1),
        measure=MeasureSettings(resamples=2, trials=2),
        device="cpu",
        tell=told.append,
    )
    assert isinstance(found, Comparison)
    assert [each.split(" are ")[0] for each in found.conditions.learned] == ["3 of the 3 test sources"] * len(runs)
    assert set(found.conditions.learned) <= set(told)
    assert found.conditions.learned[0] in read(comparison_page(found)).shown


def row(name: str, bleu: float, margin: float | None = 0.8, cost: Cost | None = None) -> Row:
    low, high = (None, None) if margin is None else (bleu - margin, bleu + margin)
    return Row(name, (Quality("BLEU", bleu, "", low, high),), cost or Cost())


def by_hand(*chances: float) -> Comparison:
    """The example of the manual: three rows, and how sure each difference is."""
    rows = (
        row("lstm", 12.1, cost=Cost(7_100_000, 9000.0, 2400.0, 21.0, 40.0)),
        row("bahdanau", 19.8),
        row("transformer", 22.4),
    )
    pairs = [("lstm", "bahdanau", 7.7), ("lstm", "transformer", 10.3), ("bahdanau", "transformer", 2.6)]
    verdicts = [Verdict("BLEU", *pair, chance, chance) for pair, chance in zip(pairs, chances, strict=False)]
    return Comparison(rows, tuple(verdicts), (), FACTS)


# From runs


def test_scores_are_those_of_the_runs_own_translations(comparison: Comparison, runs: list[Path]) -> None:
    material = comparing.test_material([Run.open(folder) for folder in runs], "", "", 37)
    for folder, found in zip(runs, comparison.rows, strict=True):
        outputs = [each.text for each in regard.load(folder).translate(material.sources, beam=1)]
        expected = measure(outputs, material.references, MeasureSettings(resamples=20))
        assert found.scores == tuple(expected)
        assert sum(bucket.count for bucket in found.lengths) == 37
    assert comparison.metrics == ("BLEU", "chrF2")
    assert [verdict.metric for verdict in comparison.verdicts] == ["BLEU", "chrF2"]
    assert len(comparison.differing) == 3
    assert comparison.conditions.data == "fable:fr, the test part, up to 8 words"


def test_cost_is_counted_and_read_from_the_log(comparison: Comparison, runs: list[Path], tmp_path: Path) -> None:
    for folder, found in zip(runs, comparison.rows, strict=True):
        model = regard.load(folder).model
        assert found.cost.parameters == sum(one.numel() for one in model.parameters())
        last = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        step = [event for event in last if event["event"] == "step"][-1]
        assert found.cost.seconds == step["seconds"]
        assert found.cost.tokens_per_second == pytest.approx(step["tokens"] / step["seconds"])
        assert f"{folder}, step-" in found.origin
    without = Run.create(tmp_path / "no-log", Run.open(runs[0]).settings)
    cost = comparing.cost(without, regard.load(runs[0]).model, 1.0, 2.0)
    assert (cost.tokens_per_second, cost.seconds, cost.alone) == (None, None, 2.0)


def test_a_page_is_whole_asks_for_nothing_and_holds_all_numbers(comparison: Comparison, tmp_path: Path) -> None:
    comparison.save(tmp_path / "new" / "compare.html")
    comparison.save(str(tmp_path / "compare.json"))
    html = (tmp_path / "new" / "compare.html").read_text()
    asks_for_nothing(html)
    page = read(html)
    numbers = json.loads((tmp_path / "compare.json").read_text())
    assert json.loads(page.scripts[0]) == numbers == comparison.as_json()
    assert numbers["rows"][0]["scores"][0]["name"] == "BLEU"
    for title in (
        "Scores",
        "BLEU by length",
        "Paired tests",
        "Cost",
        "Where they differ most",
        "How this was measured",
    ):
        assert title in page.shown
    assert "Groups of fewer than 30 sentences have no score." in page.shown  # and no chart, which would be empty
    assert len(html) < 200_000


def test_the_command_prints_a_table_for_people_and_json_for_programs(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    out = [str(tmp_path / "compare.html"), str(tmp_path / "compare.json")]
    texts = tmp_path / "texts"
    arguments = [*map(str, runs), *QUICK, "--out", out[0], "--out", out[1], f"measure.texts={texts}", "--json"]
    assert cli(["compare", *arguments, "measure.edges=6,7", "measure.metrics=chrf,bleu"]) == 0
    captured = capsys.readouterr()
    numbers = json.loads(captured.out)
    assert numbers["metrics"] == ["chrF2", "BLEU"]
    assert {bucket["name"] for bucket in numbers["rows"][0]["lengths"]} == {"up to 6", "7 to 7", "over 7"}
    assert numbers == json.loads(Path(out[1]).read_text())
    assert "gru" in captured.err
    assert "ms/sentence" in captured.err
    assert "(paired bootstrap, 20)" in captured.err
    assert f"written: {out[0]}" in captured.err
    assert {path.name for path in texts.iterdir()} == {"source.txt", "reference.txt", "gru.txt", "transformer-tiny.txt"}
    assert len((texts / "gru.txt").read_text().splitlines()) == 37


def test_the_users_own_files_are_translated_line_by_line(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.en").write_text("the cat sleeps\n\n<script>alert(1)</script>\n")
    (tmp_path / "a.fr").write_text("le chat dort\n\n<script>alert(1)</script>\n")
    files = ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.fr")]
    assert cli(["compare", *map(str, runs), *QUICK, *files, "--out", str(tmp_path / "c.html")]) == 0
    assert "3 sentences: " in capsys.readouterr().err
    html = (tmp_path / "c.html").read_text()
    asks_for_nothing(html)
    assert cli(["compare", *map(str, runs), *QUICK, *files]) == 0
    assert "add --out compare.html" in capsys.readouterr().err
    assert cli(["compare", *map(str, runs), "--source", str(tmp_path / "a.en"), "--target", str(runs[0] / "best")]) == 3


MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "one run only": (["{0}"], 2, "a comparison takes at least two"),
    "the same run twice": (["{0}", "{0}/../gru"], 2, "none of them twice"),
    "no run at all": ([], 2, "runs = none: a comparison takes at least two"),
    "a folder that is no run": (["{0}", "{tmp}"], 4, "is not a run: it has no settings.toml"),
    "a folder that is not there": (["{0}", "{tmp}/no"], 4, "no such folder"),
    "different tasks": (["{0}", "{tmp}/tag"], 4, "are for different tasks"),
    "different languages": (["{0}", "{tmp}/hindi"], 4, "hindi for en-hi: translate between different languages"),
    "taggers without a corpus to share": (["{tmp}/tag", "{tmp}/tag2"], 2, "the runs share no validation text"),
    "a tagger that is not trained": (["{tmp}/tag", "{tmp}/tag3"], 4, "tag/"),
    "one side of the test": (["{0}", "{1}", "--source", "a"], 2, "one is missing; give both or neither"),
    "an unknown suffix": (["{0}", "{1}", "--out", "x.pdf"], 2, "out = x.pdf: written as a page or as numbers"),
    "an empty beam": (["{0}", "{1}", "decode.beam=0"], 2, "beam = 0: a beam holds at least one"),
    "no sentences": (["{0}", "{1}", "measure.limit=-1"], 2, "limit = -1: is too small"),
    "one resample": (["{0}", "{1}", "measure.resamples=1"], 2, "resamples = 1: is too small; 2 or more"),
    "an unknown metric": (["{0}", "{1}", "measure.metrics=blue"], 2, "did you mean 'bleu'?"),
    "edges that fall": (["{0}", "{1}", "measure.edges=9,5"], 2, "must be growing numbers"),
    "edges that are words": (
        ["{0}", "{1}", "measure.edges=a"],
        2,
        "measure.edges.0 = 'a': not valid",
    ),
    "no shared test": (["{0}", "{tmp}/files"], 2, "the runs share no test"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line_and_its_exit_code(
    name: str, runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    for folder, language in (("tag", "fr"), ("tag2", "hi"), ("tag3", "fr")):
        Run.create(tmp_path / folder, small.settings("gru", "task=tag", f"data.corpus='fable:{language}'"))
    files = ("data.corpus=''", "data.source=a", "data.target=b", "data.valid_source=c", "data.valid_target=d")
    Run.create(tmp_path / "hindi", small.settings("gru", "data.corpus='fable:hi'"))
    Run.create(tmp_path / "files", small.settings("gru", *files))
    arguments, code, expected = MISTAKES[name]
    places = {"tmp": str(tmp_path)}
    assert cli(["compare", *(word.format(*map(str, runs), **places) for word in arguments)]) == code
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.out == ""


def test_what_cannot_be_written_is_named(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file"):
        comparison.save(tmp_path / "file" / "compare.html")
    with pytest.raises(NotADirectoryError, match="file"):
        comparing.save_texts(tmp_path / "file", Texts(["a"], ["b"]), [])


def test_runs_are_called_by_the_shortest_name_that_tells_them_apart(tmp_path: Path) -> None:
    for name in ("a/gru", "b/gru", "b/lstm"):
        Run.create(tmp_path / name, small.settings("gru"))
    assert list(open_runs([tmp_path / name for name in ("a/gru", "b/gru", "b/lstm")])) == ["a/gru", "b/gru", "lstm"]


# What is tested on


def test_the_built_in_corpus_is_tested_at_lengths_that_all_runs_know(tmp_path: Path) -> None:
    made = [Run.create(tmp_path / str(words), small.settings("gru", f"data.words={words}")) for words in (7, 13)]
    material = comparing.test_material(made, "", "", None)
    assert len(material.sources) == comparing.HELD_OUT
    assert max(len(source.split()) for source in material.sources) <= 7
    assert material.name == "fable:fr, the test part, up to 7 words"


def test_shared_validation_files_are_a_test_and_called_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "v.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "v.fr").write_text("un\ndeux\ntrois\n")
    names = (f"data.valid_source='{tmp_path}/v.en'", f"data.valid_target='{tmp_path}/v.fr'")
    files = ("data.corpus=''", "data.source=a", "data.target=b", *names)
    made = [Run.create(tmp_path / name, small.settings("gru", *files)) for name in ("x", "y")]
    material = comparing.test_material(made, "", "", 2)
    assert (material.sources, material.references) == (["one", "two"], ["un", "deux"])
    assert material.name.endswith("v.fr, by which each run chose its best checkpoint")
    assert comparing.test_material(made[:1], "", "", 2).name.endswith("by which the run chose its best checkpoint")
    other = Run.create(tmp_path / "z", small.settings("gru", "data.corpus='fable:hi'"))
    with pytest.raises(SettingsError, match="the runs share no test"):
        comparing.test_material([*made, other], "", "", 2)
    another = Run.create(tmp_path / "w", small.settings("gru"))
    with pytest.raises(SettingsError, match="the runs share no test"):
        comparing.test_material([another, other], "", "", 2)


# Turns


def test_systems_take_turns_and_every_output_comes_back_to_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "ROUND", 5)
    turns: list[tuple[str, int]] = []

    def system(name: str) -> Callable[[list[str]], list[str]]:
        def call(sources: list[str]) -> list[str]:
            turns.append((name, len(sources)))
            return [f"{name} {source}" for source in sources]

        return call

    sources = [str(number) for number in range(17)]
    outputs, milliseconds = take_turns([system("a"), system("b"), system("c")], sources)
    assert outputs == [[f"{name} {source}" for source in sources] for name in "abc"]
    assert len(milliseconds) == 3
    assert "".join(name for name, _ in turns) == "abc" + "abc" + "bca" + "cab"  # warm, then another begins every time
    assert [count for _, count in turns[3::3]] == [6, 6, 5]
    turns.clear()
    assert len(one_by_one([system("a"), system("b")], sources)) == 2
    assert {count for _, count in turns} == {1}
    assert "".join(name for name, _ in turns).startswith("abba")
    assert one_by_one([system("a")], []) == [0.0]


# Tables, headlines and pages


def test_the_table_is_the_one_in_the_manual() -> None:
    assert str(by_hand(0.001, 0.004, 0.02)).splitlines() == [
        "             BLEU          params  train   tokens/s  ms/sentence",
        "lstm         12.1 ±0.8     7.1 M   40 min  9,000     21",
        "bahdanau     19.8 ±0.8 *   –       –       –         –",
        "transformer  22.4 ±0.8 *†  –       –       –         –",
        "* better than lstm p<0.01   † better than bahdanau p=0.02   (paired bootstrap, 1,000)",
    ]


def test_a_difference_that_may_be_chance_gets_no_sign() -> None:
    assert str(by_hand(0.3, 0.05, 0.9)).splitlines()[-1] == (
        "no difference in BLEU is significant   (paired bootstrap, 1,000)"
    )
    assert "paired" not in str(by_hand())
    assert by_hand(0.3, 0.01, 0.9).signs("transformer") == "*"


def test_signs_do_not_run_out() -> None:
    assert len({sign(place) for place in range(99)}) == 99


def test_the_headline_says_who_is_best_and_whether_that_can_be_told() -> None:
    start_of = "transformer scores best: BLEU 22.4"
    assert headline(by_hand()) == f"{start_of}. Whether the difference is significant was not tested."
    assert headline(by_hand(0.001, 0.001, 0.02)) == (
        f"{start_of}, better than each of the 2 others by more than chance would give (p=0.02)."
    )
    assert headline(by_hand(0.5, 0.06, 0.5)) == (
        f"{start_of}, but its lead over lstm and bahdanau may be chance (p=0.06)."
    )
    two = by_hand(0.001)
    assert headline(replace(two, rows=two.rows[:2])).startswith(
        "bahdanau scores best: BLEU 19.8, better than the other"
    )
    ter = Comparison((Row("a", (Quality("TER", 50.0, ""),)), Row("b", (Quality("TER", 40.0, ""),))), (), (), FACTS)
    assert headline(ter).startswith("b scores best: TER 40.0")
    same = replace(ter, rows=(ter.rows[1], replace(ter.rows[1], name="c"), ter.rows[0]))
    assert headline(same) == "b and c score the same: TER 40.0."


def test_a_row_that_is_no_run_stands_in_the_table_with_what_is_known_of_it() -> None:
    base = by_hand(0.001, 0.001, 0.02)
    rows = (*(replace(one, scores=(Quality("accuracy", 80.0, ""),)) for one in base.rows), Row("TF-IDF", ()))
    comparison = Comparison(
        (*rows, Row("words", (Quality("macro F1", 61.2, ""),))), (), (), replace(FACTS, beam=None, how=())
    )
    assert comparison.metrics == ("accuracy", "macro F1")
    assert str(comparison).splitlines()[-2:] == [
        "TF-IDF       –         –         –       –       –         –",
        "words        –         61.2      –       –       –         –",
    ]
    page = read(comparison_page(comparison))
    assert "TF-IDF" in page.shown
    assert "Measured with: cpu, 1 thread." in page.shown
    assert "Paired tests" not in page.shown
    assert "by length" not in page.shown


def judge(sources: list[str], references: list[str], *outputs: list[str]) -> Comparison:
    how = MeasureSettings(resamples=20, trials=20, examples=5, seed=1)
    systems = [(Row(f"run {number}", ()), texts) for number, texts in enumerate(outputs)]
    return judged(systems, Texts(sources, references), how, FACTS, (row("extra", 3.0, None),))


def test_a_line_of_the_corpus_is_shown_and_never_obeyed() -> None:
    nasty = '<script>alert("x")</script> & \x00'
    comparison = judge([nasty] * 2, ["le chat", nasty], [nasty, "le chat"], ["", "autre"])
    html = comparison_page(comparison)
    asks_for_nothing(html)
    page = read(html)
    assert '<script>alert("x")</script> & ␀' in page.shown
    assert "(nothing)" in page.shown
    assert json.loads(page.scripts[0])["differing"][0]["source"] == nasty


def test_three_systems_get_a_correction_for_many_tests_and_two_do_not() -> None:
    lines = [f"le chat numéro {number} dort" for number in range(31)]
    worse, worst = ([line.replace(word, "x") for line in lines] for word in ("dort", "chat"))
    assert "p, Holm" not in comparison_page(judge(lines, lines, lines, worse))
    html = comparison_page(judge(lines, lines, lines, worse, worst))
    assert "p, Holm" in html
    assert "not drawn" not in html


def test_a_group_with_few_sentences_is_counted_but_not_drawn() -> None:
    lines = ["a b c"] * 31 + ["a b c d e f g"] * 29
    html = comparison_page(judge(lines, lines, lines, ["a b x"] * 60))
    assert "Groups of fewer than 30 are not drawn." in html
    assert html.count('class="interval"') == 2 * 2  # two systems in one group, wide and narrow
    assert '<td data-head="6 to 10">29</td>' in html or '<td data-head="over 5">29</td>' in html


def test_groups_of_lengths_fit_the_text() -> None:
    assert fitting_edges(["a " * 41]) == (10, 20, 30, 40)
    assert fitting_edges(["a " * 18, "a"]) == (5, 10, 15)
    assert fitting_edges(["a"]) == (5,)
    assert fitting_edges([]) == (5,)


def test_words_that_the_reference_does_not_have_there_are_marked() -> None:
    assert wrong_words("le chien noir dort", "le chat noir dort") == [False, True, False, False]
    assert wrong_words("", "le chat") == []


def test_nothing_to_translate_is_refused() -> None:
    with pytest.raises(DataError):
        judge([], [], [], [])


def test_forecasters_of_other_horizons_are_not_compared(tmp_path: Path) -> None:
    runs = [
        Run.create(tmp_path / str(horizon), load_settings("gru", "task=forecast", f"forecast.horizon={horizon}"))
        for horizon in (3, 5)
    ]
    with pytest.raises(SettingsError, match=r"= 3 of \d+, 5 of \d+: differ; compare runs that have the same"):
        comparing.labelled_material(runs, task_of("forecast"), "", "", None)


def test_forecasters_that_hold_out_other_shares_share_no_test(tmp_path: Path) -> None:
    """One would be tested on what it has learned."""
    runs = [
        Run.create(tmp_path / str(share), load_settings("gru", "task=forecast", f"forecast.held_out={share}"))
        for share in (0.1, 0.2)
    ]
    with pytest.raises(SettingsError, match="the runs share no validation text; name a file"):
        comparing.labelled_material(runs, task_of("forecast"), "", "", None)
