"""The report of a run: from small runs of every task, and by hand."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import corpora_for_tests as small
import regard
from pages import asks_for_nothing, read
from regard.cli.main import run as cli
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.errors import DataError, SettingsError
from regard.evaluate.report import PINNED, POINTS, learning, report
from regard.evaluate.run_report import Learning, Look, RunReport
from regard.evaluate.sentences import LOOKS, MOST_CELLS, RANDOM, WORST
from regard.explain.beam import search_tree
from regard.explain.heatmap import HeatMap
from regard.fable.corpus import generate
from regard.metrics.translation import sentence_scores
from regard.runs.folder import Run
from regard.settings.call import DecodeSettings, MeasureSettings
from regard.show.page import beam_page
from regard.show.pictures import logarithmic
from regard.show.run_page import limits, run_page
from regard.show.sentences import lighting, linked_output, linked_source
from regard.show.svg import svg
from regard.show.svg_tree import PRUNED, drawn_nodes, way_to, written
from regard.trainer.start import start
from reports import ARABIC, HINDI, NASTY, by_hand, labelled, moment, sentence, tree

Capture = pytest.CaptureFixture[str]
Runs = Callable[[str], Path]
STEPS = ("data.pairs=97", "train.steps=3", "train.validate_every=3")
LIMIT = 37
BEAM = DecodeSettings(beam=2)
MOST = 2_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Runs of every kind, hardly trained, each when it is first asked for."""
    folder = tmp_path_factory.mktemp("runs")
    sentences = list(generate("fr", count=97, split="train", minimum_words=5, maximum_words=8))
    (folder / "words").write_text("".join(f"{' '.join(each.tokens)}\n" for each in sentences))
    (folder / "french").write_text("".join(f"{each.target}\n" for each in sentences))
    (folder / "tags").write_text("".join(f"{' '.join(each.tags)}\n" for each in sentences))
    (folder / "classes.tsv").write_text("".join(f"{each.source}\t{each.sentiment}\n" for each in sentences))
    kinds = {
        "transformer": ("transformer-tiny", "model.encoder_depth=2"),
        "gru": ("gru", *_files(folder, source="words", target="french")),
        "tag": ("bahdanau", "task=tag", *_files(folder, source="words", target="tags")),
        "classify": ("transformer-tiny", "task=classify", *_files(folder, corpus="classes.tsv")),
        "language": ("gru", "task=language", *_files(folder, source="words")),
    }

    @cache
    def run(name: str) -> Path:
        preset, *overrides = kinds[name]
        start(folder / name, small.settings(preset, *overrides, *STEPS), small.Notes(), device="cpu")
        return folder / name

    return run


def _files(folder: Path, *, corpus: str = "", source: str = "", target: str = "") -> list[str]:
    """The same files for training and validation."""
    named = {"corpus": corpus, "source": source, "target": target}
    paths = {key: f"'{folder / name}'" if name else "''" for key, name in named.items()}
    return [f"data.{prefix}{key}={path}" for prefix in ("", "valid_") for key, path in paths.items()]


@pytest.fixture(scope="module")
def made(runs: Runs) -> RunReport:
    return report(runs("transformer"), decode=BEAM, measure=MeasureSettings(limit=LIMIT, resamples=20), device="cpu")


# From runs


def test_scores_are_those_of_the_runs_own_translations(made: RunReport, runs: Runs) -> None:
    translator = regard.load(runs("transformer"))
    lines = [one for one in made.examples if one.line is not None]
    assert made.test.sentences == LIMIT
    assert made.test.data == "fable:fr, the test part, up to 8 words"
    for one in lines:
        found = next(translator.stream([one.source], Options(Beam(2))))
        assert one.output == found.text
        assert one.reference is not None
        assert one.score == pytest.approx(sentence_scores([one.output], [one.reference])[0])
    assert [quality.name for quality in made.scores] == ["BLEU", "chrF2"]
    assert sum(bucket.count for bucket in made.lengths) == LIMIT


def test_the_numbers_are_those_of_the_measures(made: RunReport, runs: Runs) -> None:
    again = report(
        runs("transformer"), decode=BEAM, measure=MeasureSettings(limit=LIMIT, resamples=20, seed=7), device="cpu"
    )
    assert [one.score for one in again.scores] == [one.score for one in made.scores]  # intervals are drawn anew
    assert [one.count for one in again.lengths] == [one.count for one in made.lengths]
    assert again.examples != made.examples  # others are drawn
    assert [one for one in again.examples if one.chosen == "pinned"] == [
        one for one in made.examples if one.chosen == "pinned"
    ]


def test_a_report_says_how_the_outputs_were_made_and_draws_that_search(runs: Runs) -> None:
    pins = ("the cat ate",)
    searched, drawn = (
        report(
            runs("transformer"), decode=decode, measure=MeasureSettings(limit=3, resamples=2), pins=pins, device="cpu"
        )
        for decode in (DecodeSettings(beam=4, groups=2, length_penalty=0.5, prefix="le"), DecodeSettings(risk=3))
    )
    how = ("beam 4", "decode.length_penalty=0.5", "decode.groups=2", "decode.prefix=le")
    assert (searched.test.beam, searched.test.how) == (4, how)
    assert f"up to 8 words, {', '.join(how)})" in read(run_page(searched)).shown
    assert searched.tree is not None
    assert searched.tree == search_tree(
        regard.load(runs("transformer")),
        searched.tree.source,
        Beam(4, 0.5, groups=2, diversity=0.5),
        prefix="le",
        others=(),
    )
    assert (drawn.test.beam, drawn.test.how, drawn.tree) == (None, ("drawn", "decode.risk=3"), None)
    assert "drawn, decode.risk=3)" in read(run_page(drawn)).shown


def test_sentences_are_pinned_drawn_and_worst(made: RunReport) -> None:
    kinds = [one.chosen for one in made.examples]
    assert kinds == ["pinned"] * len(PINNED) + ["random"] * RANDOM + ["worst"] * WORST
    worst = [one.score for one in made.examples if one.chosen == "worst"]
    assert worst == sorted(worst, key=lambda score: score or 0.0)
    assert max(score or 0.0 for score in worst) <= min(
        one.score or 0.0 for one in made.examples if one.chosen == "random" and one.score not in worst
    )


def test_links_lie_inside_both_sentences_and_carry_their_weight(made: RunReport, runs: Runs) -> None:
    assert "cross-attention" in made.links
    parts = regard.load(runs("transformer")).search.parts  # none where no word was ever seen, and nothing is read
    assert [bool(one.source_words) for one in made.examples] == [bool(parts(one.source)) for one in made.examples]
    for one in (one for one in made.examples if one.source_words):
        assert " ".join(one.source_words) == one.source
        for link in one.links:
            assert 0 <= link.source < len(one.source_words)
            assert 0 <= link.target < len(one.target_words)
            assert link.weight is not None
            assert 0 <= link.weight <= 1


def test_a_look_shows_the_weights_that_the_trace_has(made: RunReport, runs: Runs) -> None:
    look = made.looks[0]
    assert look.source == PINNED[0]
    translator = regard.load(runs("transformer"))
    trace = next(translator.stream([look.source], Options(Beam(2)))).trace()
    assert len(look.heads) == trace.cross.shape[0] * trace.cross.shape[1]
    assert all(math.isclose(sum(row), 1, abs_tol=1e-3) for one in look.heads for row in one.values)
    assert len(made.looks) <= LOOKS
    assert [one.scale for one in look.maps] == ["sequential", "diverging"]
    (kept, *_) = made.as_json()["looks"]
    assert [one["kind"] for one in (*kept["maps"], *kept["heads"][:1])] == ["attention", "effect", "attention"]
    assert kept["maps"][1].keys() == {"title", "kind", "rows", "columns", "values", "unit"}


def test_the_tree_ends_in_the_output(made: RunReport) -> None:
    assert made.tree is not None
    first = made.tree.nodes[made.tree.outputs[0]]
    assert first.reason == "output"
    assert first.piece == "<end>"
    assert made.tree.source == PINNED[0]
    assert written(made.tree, first.number)[-1] == "<end>"


def test_a_model_without_attention_shows_masking_and_gradients(runs: Runs) -> None:
    made = report(
        runs("gru"), decode=BEAM, measure=MeasureSettings(limit=11, resamples=2), device="cpu", pins=("the cat ate",)
    )
    html = run_page(made)
    assert "this model has no attention" in made.links
    assert [one.scale for look in made.looks for one in look.maps[:2]] == ["diverging"] * 2 * len(made.looks)
    assert "has no attention" in read(html).shown
    assert "Attention shows where the model looked" not in read(html).shown
    assert made.run.architecture == "GRU, no attention, 1 layer, width 16"
    assert all(link.weight is None for one in made.examples for link in one.links)


@pytest.mark.parametrize(
    ("task", "score"), [("tag", "accuracy"), ("classify", "accuracy"), ("language", "perplexity/word")]
)
def test_other_tasks_have_curves_scores_and_confusion(runs: Runs, task: str, score: str) -> None:
    made = report(runs(task), device="cpu")
    html = run_page(made)
    asks_for_nothing(html)
    page = read(html)
    assert made.scores[0].name == score
    assert (made.confusions == ()) == (task == "language")
    assert ("row = truth" in page.shown) == (task != "language")
    assert not made.test.held_out
    assert "attention" not in made.run.architecture
    for title in ("Learning", "Scores", "Corpus", "How to reproduce it", "Limits"):
        assert title in page.shown
    assert "Sentences" not in page.shown


def test_given_files_are_held_out_and_may_be_long_or_empty(runs: Runs, tmp_path: Path) -> None:
    long = " ".join(["the cat ate the mouse and"] * 40)
    (tmp_path / "test.en").write_text(f"the cat ate\n{long}\n\nthe cat ate\n")
    (tmp_path / "test.fr").write_text("le chat a mangé\nle chat\n\nle chat a mangé\n")
    files = [str(tmp_path / name) for name in ("test.en", "test.fr")]
    made = report(
        runs("transformer"),
        *files,
        decode=DecodeSettings(beam=1),
        measure=MeasureSettings(resamples=2),
        device="cpu",
        pins=(),
    )
    html = run_page(made)
    assert made.test.held_out
    assert made.test.sentences == 4
    assert " …" in read(html).shown
    assert {one.chosen for one in made.examples} == {"random", "worst"}
    assert sorted(one.source for one in made.examples if one.chosen == "worst") == sorted(["the cat ate", long])
    assert not next(one for one in made.examples if one.source == long).links


def test_a_run_that_was_moved_without_its_text_says_so(runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(runs("classify"), tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved" / "data")
    (tmp_path / "moved" / "log.jsonl").unlink()
    made = report(tmp_path / "moved", device="cpu")
    assert made.corpus.rows is None
    assert made.learning == Learning()
    page = read(run_page(made))
    assert "The encoded text is no longer in the run." in page.shown
    assert "Loss by training step" not in page.shown


def test_a_long_log_is_thinned_to_what_can_be_seen(runs: Runs, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "long", Run.open(runs("gru")).settings)
    rest = {"epoch": 0, "norm": 1.0, "rate": 0.5, "seconds": 1.0, "tokens": 3, "tokens_per_second": 3.0}
    rest |= {"progress": 0.5, "memory": 1}
    steps = [{"event": "step", "step": step, "loss": float(step), **rest} for step in range(1, 1010)]
    run.log.write_text("".join(json.dumps(step) + "\n" for step in steps))
    found = learning(run)
    assert len(found.moments) == POINTS
    assert found.moments[-1].step == 1009
    assert found.moments[0] == moment(5, 3.0, 1.0, 0.5)
    assert found.validations == ()


# The command


def test_the_command_writes_a_page_beside_the_run_and_prints_json(runs: Runs, capsys: Capture) -> None:
    folder = runs("transformer")
    options = ["measure.limit=11", "decode.beam=1", "measure.resamples=2", "--device", "cpu", "--pin", "the cat"]
    assert cli(["report", str(folder), *options, "--json"]) == 0
    shown = capsys.readouterr()
    numbers = json.loads(shown.out)
    html = (folder / "report.html").read_text()
    assert json.loads(read(html).scripts[0]) == numbers
    assert numbers["format"] == "regard report 1"
    assert numbers["verdict"][0]["claim"]
    assert [one["source"] for one in numbers["examples"] if one["chosen"] == "pinned"] == ["the cat"]
    assert f"written: {folder / 'report.html'}" in shown.err
    again = numbers["recipe"]["commands"][1]
    measured = "measure.resamples=2 measure.limit=11"
    assert again == f"regard report {folder} decode.beam=1 {measured} --pin 'the cat' --out report.html"


def test_several_runs_are_compared(runs: Runs, tmp_path: Path) -> None:
    both = [runs("transformer"), runs("gru")]
    texts = ["--source", str(both[0].parent / "words"), "--target", str(both[0].parent / "french")]
    quick = ["measure.limit=11", "decode.beam=1", "measure.resamples=2", "--device", "cpu"]
    assert cli(["report", *map(str, both), *texts, *quick, "--out", str(tmp_path / "two.html")]) == 0
    assert "Paired tests" in (tmp_path / "two.html").read_text()


WRONG = {
    "no file for several": (["{gru}", "{transformer}"], 2, "--out: missing"),
    "a kind of file": (["{gru}", "--out", "report.pdf"], 2, "end it in .html or .json"),
    "no run": (["{gru}x"], 4, "did you mean"),
    "a beam": (["{gru}", "decode.beam=0"], 2, "beam = 0: a beam holds"),
    "edges": (["{gru}", "measure.edges=a"], 2, "measure.edges.0 = 'a': not valid"),
    "a metric": (["{gru}", "measure.metrics=blau"], 2, "metrics = blau: no such metric"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_one_line(name: str, runs: Runs, capsys: Capture) -> None:
    arguments, code, words = WRONG[name]
    assert (
        cli(["report", *(each.format(gru=runs("gru"), transformer=runs("transformer")) for each in arguments)]) == code
    )
    assert words in capsys.readouterr().err


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file"):
        by_hand().save(tmp_path / "file" / "report.html")
    with pytest.raises(SettingsError, match="end it in"):
        by_hand().save(tmp_path / "report.txt")


def test_sentence_scores_need_as_many_references() -> None:
    with pytest.raises(DataError, match=r"lines = 1 hypotheses, 2 references"):
        sentence_scores(["a"], ["a", "b"])
    assert sentence_scores(["the cat", "x"], ["the cat", "the cat"]) == [100.0, 0.0]


# The page, by hand


def test_the_page_of_a_real_run_is_whole_small_and_asks_for_nothing(made: RunReport, tmp_path: Path) -> None:
    made.save(tmp_path / "report.html")
    made.save(str(tmp_path / "report.json"))
    html = (tmp_path / "report.html").read_text()
    asks_for_nothing(html)
    page = read(html)
    assert len(html.encode()) < MOST
    assert json.loads(page.scripts[0]) == json.loads((tmp_path / "report.json").read_text()) == made.as_json()
    for title in (
        "Learning",
        "Scores",
        "By length",
        "By rare words",
        "Sentences",
        "Inside the model",
        "The beam",
        "Corpus",
    ):
        assert title in page.shown
    for fact in (made.test.sha256, "regard train settings.toml", "torch 2", "seed of the training: 1", "nrefs:1"):
        assert fact in page.shown
    assert [attributes["href"] for _, attributes in page.seen if "href" in attributes] == [
        f"#{attributes['id']}" for tag, attributes in page.seen if tag == "section"
    ]


def test_a_large_model_and_long_sentences_stay_below_the_limit() -> None:
    """As many small maps as there is room for, dense as attention gets, and twenty sentences of a hundred words."""
    words, known = tuple(f"word{place}" for place in range(26)), by_hand()
    heads = [
        HeatMap(
            f"layer {layer}, head {head}",
            words,
            words,
            tuple(tuple(round((row * column + head) % 23 / 290, 5) for column in range(26)) for row in range(26)),
            "",
        )
        for layer in range(6)
        for head in range(8)
    ][: MOST_CELLS // 26**2]
    look = Look("a", "b", tuple(heads[:2]), tuple(heads), 48)
    looks = (look, replace(look, heads=()), replace(look, heads=()))
    long = sentence(" ".join(["internationalisation"] * 100), " ".join(["internationalisation"] * 100))
    large = replace(known, looks=looks, examples=(long,) * 20)
    html = run_page(large)
    assert len(html.encode()) < MOST
    assert "23 of 48 heads" in html


def test_a_script_in_a_corpus_shows_as_text() -> None:
    for one in (by_hand(), labelled()):
        html = run_page(one)
        asks_for_nothing(html)
        assert "<script>document" not in html
        assert NASTY in read(html).shown


def test_texts_run_in_their_own_direction() -> None:
    html = run_page(by_hand())
    arabic, hindi = (sentence("the black cat ate the mouse", words) for words in (ARABIC, HINDI))
    assert str(linked_output(arabic)) in html
    assert str(linked_output(hindi)) in html
    assert linked_output(arabic).startswith('<span dir="auto">')
    assert all(word in html for word in HINDI.split())  # no word is cut


def test_linked_words_share_a_class_and_say_what_they_belong_to() -> None:
    one = sentence("the cat", "le chat")
    assert 'class="word l1" title="cat → chat 0.90"' in linked_source(one)
    assert 'class="word l1" title="chat ← cat 0.90"' in linked_output(one)
    assert ".pair:has(.l1:is(:hover,:focus)) .l1" in lighting(2)
    assert ".l2:" not in lighting(2)
    assert lighting(0) == ""


def test_numbers_that_json_does_not_have_are_null_and_leave_gaps() -> None:
    known = by_hand()
    moments = (moment(1, math.nan, math.inf, 1.0), *known.learning.moments)
    broken = replace(known, learning=replace(known.learning, moments=moments))
    first = broken.as_json()["learning"]["moments"][0]
    assert (first["step"], first["loss"], first["norm"], first["rate"]) == (1, None, None, 1.0)
    assert "nan" not in run_page(broken).lower().replace("nano", "")


def test_what_a_taught_model_forgets_is_drawn_beside_what_it_learns() -> None:
    known = by_hand()
    losses = (2.5, 2.625)
    checks = tuple(
        replace(one, general_loss=loss, general_score=30.0 - number)
        for number, (one, loss) in enumerate(zip(known.learning.validations, losses, strict=False))
    )
    assert len(checks) == 2
    page = read(run_page(replace(known, learning=replace(known.learning, validations=checks))))
    assert "On the general test it changed by +0.125." in page.shown
    assert "general test 2.62 at step" in page.shown
    assert "general test 29 at step" in page.shown
    assert "general test" not in read(run_page(known)).shown


def test_what_a_report_does_not_have_is_left_out() -> None:
    bare = replace(by_hand(), lengths=(), rarities=(), counts="it is gone", examples=(), looks=(), tree=None)
    page = read(run_page(bare))
    assert "Not measured: it is gone." in page.shown
    for title in ("By length", "Sentences", "Inside the model", "The beam"):
        assert title not in page.shown


def test_limits_name_what_the_numbers_do_not_say() -> None:
    said = " ".join(limits(replace(by_hand(), tokenised=191)))
    assert "191 outputs end in ' .'" in said
    assert "scores are too optimistic" in " ".join(limits(labelled()))
    language = replace(labelled(), run=replace(labelled().run, task="language"))
    assert "Perplexities compare" in " ".join(limits(language))


# The tree


def test_a_tree_shows_every_fate_with_percent_first_and_its_steps() -> None:
    drawn = str(svg(tree()))
    shown = read(drawn).shown
    assert "90 % · 90 %" in shown
    assert all(f"step {step}" in shown for step in (1, 2, 3))
    assert "cannot win" in shown
    assert "✓ output" in shown
    assert "le chat <end>: log-probability −0.310, normalised −0.103; finished: this is the output" in shown
    assert drawn.count('class="edge way"') == 3
    assert 'direction="rtl"' in drawn
    assert way_to(tree(), 7) == {0, 1, 4, 7}


def test_only_one_of_what_finished_is_the_output() -> None:
    known = tree()
    other = replace(known.nodes[7], number=50, score=-0.9)
    drawn = svg(replace(known, nodes=(*known.nodes, other)))
    assert str(drawn).count("✓ output") == 1
    assert "finished, but others were better" in str(drawn)


def test_of_what_was_pruned_the_best_are_drawn_and_all_are_in_the_table() -> None:
    known = tree()
    more = tuple(replace(known.nodes[3], number=100 + place, score=-9.0 - place) for place in range(7))
    crowded = replace(known, nodes=(*known.nodes, *more))
    assert [len(step) for step in drawn_nodes(crowded)] == [1, 2 + PRUNED, 3, 1]
    assert [node.score for node in drawn_nodes(crowded)[1]] == [-0.1, -2.3, -9.0, -9.0, -10.0]
    table = read(beam_page(crowded).partition("Every candidate</summary>")[2].partition("</details>")[0])
    assert len([tag for tag, _ in table.seen if tag == "tr"]) == len(crowded.nodes)
    assert "pruned: others were better" in table.shown


# Charts


def test_a_scale_of_powers_holds_all_values() -> None:
    axis = logarithmic("loss", [0.03, 8.0])
    assert [label for _, label in axis.ticks] == ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"]
    assert axis.low <= math.log10(0.03)
    assert axis.high >= math.log10(8.0)
    assert [label for _, label in logarithmic("loss", [0.001, 900.0]).ticks] == [
        *("0.001", "0.01", "0.1", "1", "10", "100", "1,000"),
    ]
    alone = logarithmic("loss", [1.0])
    assert alone.low < alone.high
