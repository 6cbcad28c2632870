"""Which map to believe: its figures are those of passes made by hand, and every way to look shows what was found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
import tiny
from pages import asks_for_nothing
from regard.cli.faithful import remarks_on
from regard.cli.main import run as cli
from regard.errors import DataError, ModelError, SettingsError
from regard.evaluate import faithful as measure
from regard.evaluate.faithful import Measured, counts, error_rates, heaviest, rank_correlation, readable
from regard.evaluate.sentences import looks
from regard.explain.attribution import word_map
from regard.explain.faithful import KNOWN, MEAN, RANDOM, Faithfulness, MapQuality, remembered
from regard.explain.importance import attribute, most_faithful
from regard.explain.look import look
from regard.explain.passes import PREFIX, SOURCE
from regard.explain.replay import Model
from regard.explain.trace import Folded, Side, spell
from regard.explain.views import View
from regard.metrics.alignment import Gold, alignment_quality
from regard.settings.call import MeasureSettings
from regard.tasks.load import load, load_predictor
from regard.tasks.translator import Translator
from regard.text.vocabulary import END
from regard.trainer.start import start

READ, WRITTEN = [5, 9, 7, 11, END], [8, 11, 6, 20, END]
QUICK = MeasureSettings(limit=2, resamples=50)
TEXTS = [("the black cat sleeps", None), ("", None), ("the dog eats", None), ("the bear sees the cat", None)]


def test_ranks_are_shared_by_equal_values() -> None:
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    # ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5 / 4, variances 4.5 / 4 and 5 / 4
    assert rank_correlation(np.array([0, 1, 1, 2.0]), np.array([0, 5, 3, 9.0])) == pytest.approx(4.5 / math.sqrt(22.5))
    assert math.isnan(rank_correlation(np.zeros(3), np.arange(3.0)))


def test_one_word_is_taken_away_at_the_least_and_never_all() -> None:
    assert counts(2) == [1]
    assert counts(10) == [1, 2, 3, 5]
    assert counts(30) == [3, 6, 9, 15]


def test_of_a_prefix_only_what_came_before_is_readable() -> None:
    groups = [[1], [2, 3], [4]]
    assert readable(SOURCE, groups, [2]) == [0, 1, 2]
    assert [readable(PREFIX, groups, [at]) for at in (0, 1, 3)] == [[], [0], [0, 1]]


def measured(model: Model) -> Measured:
    return Measured(model, model, None, np.random.default_rng(1))


def without(pieces: list[int], row: int) -> float:
    """The probability of a word of one piece with others blanked out, through a hook."""
    model = tiny.translator("transformer-tiny")
    kept = torch.ones(1, len(READ), 1)
    kept[:, pieces] = 0
    hook = model.encoder.embedding.register_forward_hook(lambda *given: given[-1] * kept)  # type: ignore[operator]
    try:
        logits = model(torch.tensor([READ]), torch.tensor([[model.first, *WRITTEN[:-1]]]))[0]
    finally:
        hook.remove()
    return float(logits.detach().softmax(-1)[row, WRITTEN[row]])


def test_curves_are_those_of_passes_made_by_hand() -> None:
    model, chance = tiny.translator("transformer-tiny"), np.random.default_rng(3)
    pair = spell(READ), spell(WRITTEN)
    maps = {"one": chance.random((4, 4)), "other": chance.random((4, 4))}
    found = measure._curves(model, pair, maps, [0, 2])
    for name, values in maps.items():
        falls: tuple[list[float], list[float]] = ([], [])
        for row in (0, 2):
            order = np.argsort(-values[row]).tolist()
            for count in counts(4):
                for kind, pieces in enumerate((order[:count], order[count:])):
                    falls[kind].append(without([], row) - without(pieces, row))
        assert found[name] == pytest.approx([np.mean(each) for each in falls], abs=1e-9)


def test_no_map_is_more_comprehensive_than_the_order_that_was_searched_for() -> None:
    """Masking puts the word first whose loss costs most, so that no other order does better with one word."""
    model, pair = tiny.translator("transformer-tiny"), (spell(READ), spell(WRITTEN))
    effect = measured(model).map(model, pair, "masking")
    orders = {str(order): np.tile(-np.argsort(order), (4, 1)).astype(float) for order in permutations(range(4))}
    alone = pytest.MonkeyPatch()
    with alone.context() as patch:
        patch.setattr(measure, "SHARES", (0.1,))
        found = measure._curves(model, pair, {**orders, "masking": effect}, [0, 1, 2, 3])
    assert max(one for one, _ in found.values()) == pytest.approx(found["masking"][0])


def test_the_error_rate_of_all_sentences_is_the_usual_one() -> None:
    links = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 1), (2, 0)})]
    golds = [Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)})), Gold(frozenset({(0, 1)}), frozenset({(0, 1)}))]
    draws = measure._draws(2, 100, np.random.default_rng(1))
    rates = error_rates(links, golds, draws)
    assert rates[0] == pytest.approx(alignment_quality(links, golds).error_rate)
    both = [alignment_quality(links[at : at + 1] * 2, golds[at : at + 1] * 2).error_rate for at in (0, 1)]
    assert min(both) <= rates.min() <= rates.max() <= max(both)
    assert heaviest(np.array([[0.1, 0.9], [0.7, 0.3]])) == {(1, 0), (0, 1)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faithful") / "run"
    start(folder, small.settings("transformer-tiny", "train.steps=30"), small.Notes())
    return folder


@pytest.fixture
def translator(run: Path) -> Translator:
    return load(run)


@pytest.fixture(scope="module")
def found(run: Path) -> Faithfulness:
    told: list[tuple[int, int]] = []
    made = measure.faithful(load(run), TEXTS, named="a.en", how=QUICK, tell=lambda *each: told.append(each))
    assert told == [(1, 2), (2, 2)]
    return made


def test_every_method_is_measured_and_the_most_faithful_is_best(found: Faithfulness) -> None:
    assert {each.method for each in found.methods} == set(KNOWN)
    assert (found.sentences, found.left_out, found.refused, found.aligner, found.links) == (2, 2, {}, None, "")
    assert found.measured_on == "a.en, its own translations"
    values = [each.faithfulness[0] for each in found.methods]
    assert values == sorted(values, reverse=True)
    assert found.best == next(each.method for each in found.methods if each.method != RANDOM)
    for each in found.methods:
        assert each.faithfulness[0] == pytest.approx(each.comprehensiveness[0] - each.sufficiency[0])
        for value, low, high in (each.comprehensiveness, each.faithfulness):
            assert low - 1e-9 <= value <= high + 1e-9
        assert each.error_rate is None
    assert found["masking"].agreement[0] == pytest.approx(1)
    assert found[found.best].as_good
    assert found.told.startswith("the most faithful map of this run")


def test_riddles_are_of_french_fables(found: Faithfulness, run: Path) -> None:
    language = load(run).loaded_from.settings.data.corpus
    assert all((each.riddles is not None) == (language == "fable:fr") for each in found.methods)


def test_gold_links_say_whose_links_to_show(translator: Translator) -> None:
    texts = [("the cat sleeps", "le chat dort"), ("the dog", "le chien")]
    pairs = [measure.sides(translator.tokenizers, *each) for each in texts]
    masked = [measured(translator.model).map(translator.model, pair, "masking") for pair in pairs]
    golds = [Gold(heaviest(each), heaviest(each)) for each in masked]
    found = measure.faithful(translator, texts, golds, how=QUICK)
    assert found["masking"].error_rate == (0.0, 0.0, 0.0)
    assert found.aligner is not None
    assert found.links == (
        ""
        if found.aligner[0] == 0
        else min((each.error_rate, each.method) for each in found.methods if each.error_rate)[1]
    )
    assert found.measured_on == "the texts given, given translations"
    with pytest.raises(DataError, match="gold links are of given translations"):
        measure.faithful(translator, TEXTS, golds, how=QUICK)


def test_a_map_that_weights_do_not_change_is_cautioned(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_drawn_anew", lambda *_: translator.model)
    found = measure.faithful(translator, TEXTS, how=QUICK)
    assert found["alti"].redrawn[0] == pytest.approx(1)
    sure = [each for each in found.methods if each.method != RANDOM and "random order" not in each.caution]
    assert all("drawn anew" in each.caution for each in sure)
    assert not found[RANDOM].caution


def test_a_map_that_is_no_better_than_chance_is_cautioned(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = measure.word_map

    def turned(model: object, read: Side, written: Side, method: str, **more: object) -> Folded:
        found = real(model, read, written, method, **more)  # type: ignore[arg-type]
        return replace(found, weights=-found.weights) if method == "norm" else found

    monkeypatch.setattr(measure, "word_map", turned)
    monkeypatch.setattr(
        measure, "_curves", lambda _, __, maps, ___: {name: (name not in ("norm", RANDOM), 0.0) for name in maps}
    )
    found = measure.faithful(translator, TEXTS, how=QUICK)
    assert "random order" in found["norm"].caution
    assert found.caution("norm").startswith("caution, norm misleads here")
    assert found.caution("masking") == "" == found.caution("nothing")


def test_what_cannot_be_measured_is_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="none has 2 to 60 words"):
        measure.faithful(translator, [("", None), ("one", None)], how=QUICK)
    for wrong in ("resamples=1", "limit=-1"):
        name, _, value = wrong.partition("=")
        with pytest.raises(SettingsError, match=f"{name} = {value}: too few"):
            measure.faithful(translator, TEXTS, how=MeasureSettings(**{name: int(value)}))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="has no run"):
        measure.faithful(replace(translator, run=None), TEXTS, how=QUICK)


@pytest.mark.parametrize(
    ("preset", "task"), [("bahdanau", "translate"), ("gru", "language"), ("transformer-tiny", "tag")]
)
def test_other_runs_have_the_methods_that_make_sense(preset: str, task: str, tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings(preset, f"task={task}", "train.steps=3"), small.Notes())
    found = measure.faithful(load_predictor(tmp_path / "run"), TEXTS, how=QUICK)
    measured = {each.method for each in found.methods}
    assert {"masking", "gradient", "saliency", "integrated-gradients", RANDOM} <= measured
    assert measured | set(found.refused) == set(KNOWN)
    assert measured & {"alti", "rollout"} == ({"alti", "rollout"} if preset.startswith("transformer") else set())
    assert (MEAN in measured) == (preset == "bahdanau")
    assert all(found.refused.values())


def test_what_was_found_is_remembered_for_these_weights(run: Path, found: Faithfulness, tmp_path: Path) -> None:
    opened = load(run).run
    assert Faithfulness.load(tmp_path) is None is remembered(None)
    found.save(run)
    assert remembered(opened) == found
    assert json.loads((run / "faithful.json").read_bytes())["told"] == found.told
    replace(found, weights="others").save(run)
    assert remembered(opened) is None
    (run / "faithful.json").unlink()
    found.save(tmp_path)
    content = json.loads((tmp_path / "faithful.json").read_bytes())
    for wrong in ({"best": "guess"}, {"methods": []}, {"sentences": "many"}, {"links": "guess"}):
        (tmp_path / "faithful.json").write_text(json.dumps(content | wrong))
        with pytest.raises(ModelError, match="is not a measurement of maps"):
            Faithfulness.load(tmp_path)


def test_a_figure_has_the_fields_that_pages_show(found: Faithfulness) -> None:
    assert isinstance(found["alti"], MapQuality)
    assert set(json.loads(found.to_json())["methods"][0]) >= {"method", "faithfulness", "caution", "as_good"}


def test_maps_that_mislead_alike_are_told_of_together(found: Faithfulness) -> None:
    first, second, third, *others = (replace(each, caution="") for each in found.methods)
    alike = (replace(each, caution="misleads here") for each in (first, second))
    told = remarks_on(replace(found, methods=(*alike, replace(third, caution="may mislead"), *others)))
    assert [line for line in told if line.startswith("caution")] == [
        f"caution, {first.method}; {second.method}: each misleads here",
        f"caution, {third.method} may mislead",
    ]


# Every way to look shows it


@pytest.fixture
def kept(run: Path, found: Faithfulness) -> Iterator[Faithfulness]:
    """The run with a measurement that has another best than the usual one, and better links than its own."""
    rated = tuple(replace(each, error_rate=(0.1, 0.0, 0.2), caution="misleads") for each in found.methods)
    chosen = replace(found, best="alti", methods=rated, links="norm", aligner=(0.2, 0.1, 0.3))
    chosen.save(run)
    yield chosen
    (run / "faithful.json").unlink()


def test_links_are_those_of_the_method_with_the_fewest_errors(run: Path, kept: Faithfulness) -> None:
    looked = look(load(run), "the cat sleeps")
    assert looked.measured == kept
    expected = word_map(looked.model, looked.trace.source, looked.trace.target, "norm").weights.argmax(1).tolist()
    assert looked.word_links == {(source, target) for target, source in enumerate(expected)}
    assert [(link.source, link.weight) for link in looked.links] == [(source, None) for source in expected]
    assert looked.links_origin == "the heaviest word by norm (measured: AER 0.10, the best of this run)"


def test_explain_shows_the_best_first_and_says_so(
    run: Path, kept: Faithfulness, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "one.html"
    assert cli(["explain", str(run), "the cat sleeps", "--out", str(page), "--json"]) == 0
    content = json.loads(capfd.readouterr().out)
    assert content["attribution"]["method"] == "alti" == content["measured"]["best"]
    assert content["caution"] == "caution, alti misleads"
    assert "What each word did: alti" in page.read_text()
    assert kept.told in page.read_text()
    assert cli(["explain", str(run), "the cat sleeps"]) == 0
    assert f"alti: {kept.told}" in capfd.readouterr().err
    assert cli(["explain", str(run), "the cat sleeps", "--head", "mean"]) == 0
    said = capfd.readouterr().err
    assert "alti" not in said
    assert "caution, attention misleads" in said


def test_notebooks_and_reports_show_the_best_first_and_name_it(run: Path, kept: Faithfulness) -> None:
    translator = load(run)
    one = translator.translate("the cat sleeps")
    shown = one._repr_html_()
    assert "alti, the most faithful map of this run" in shown
    first, *others = looks(translator, [one])[0].maps
    assert first.title == f"alti, {kept.told}"
    expected = attribute(translator, "the cat sleeps", "alti").source
    assert expected is not None
    np.testing.assert_allclose(first.values, expected, atol=1e-5)
    (run / "faithful.json").rename(run / "away.json")
    try:
        assert "most faithful" not in load(run).translate("the cat sleeps")._repr_html_()
        assert [each.title for each in looks(load(run), [one])[0].maps] == [each.title for each in others]
    finally:
        (run / "away.json").rename(run / "faithful.json")


def test_a_report_whose_best_map_is_masking_shows_it_once(run: Path, kept: Faithfulness) -> None:
    replace(kept, best="masking").save(run)
    try:
        translator = load(run)
        titles = [each.title for each in looks(translator, [translator.translate("the cat sleeps")])[0].maps]
    finally:
        kept.save(run)
    assert sum("masking" in title for title in titles) == 1


def test_what_is_too_long_for_the_best_is_shown_as_attention(
    run: Path, kept: Faithfulness, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(run)
    looked = look(model, "the cat sleeps")
    assert most_faithful(model, looked, View()) is not None
    monkeypatch.setattr("regard.explain.look.MOST_STEPS", 0)
    assert most_faithful(model, replace(looked, measured=replace(kept, best="saliency")), View()) is None
    assert most_faithful(model, replace(looked, measured=None), View()) is None


def test_many_sentences_are_one_page(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    corpus, page = tmp_path / "a.en", tmp_path / "many.html"
    corpus.write_text("the cat sleeps\n\nthe dog eats\n")
    assert cli(["explain", str(run), "--corpus", str(corpus), "--out", str(page)]) == 0
    assert page.read_text().count("<figure>") == 2
    numbers = page.read_text().partition('id="data">')[2].partition("</script>")[0]
    assert [each["source"][-1] for each in json.loads(numbers)] == ["sleeps", "eats"]
    asks_for_nothing(page.read_text())
    assert cli(["explain", str(run), "--corpus", str(corpus), "--json"]) == 0
    assert [json.loads(line)["source"] for line in capfd.readouterr().out.splitlines()] == [
        ["the", "cat", "sleeps"],
        ["the", "dog", "eats"],
    ]
    corpus.write_text(f"the cat sleeps\n{'the ' * 2100}\n")
    assert cli(["explain", str(run), "--corpus", str(corpus), "--json"]) == 0
    answered = capfd.readouterr()
    assert len(answered.out.splitlines()) == 1
    assert "left out: " in answered.err
    (tmp_path / "long").write_text(f"{'the ' * 2100}\n")
    (tmp_path / "empty").write_text("\n")
    for arguments, problem in (
        (["--corpus", str(tmp_path / "long"), "--out", str(page)], "has no sentence that can be looked into"),
        (["a text", "--corpus", str(corpus)], "replaces TEXT and --target"),
        (["--corpus", str(corpus), "--out", "a.svg"], "a corpus makes one page"),
        (["--corpus", str(tmp_path / "empty")], "has no sentence; give at least one"),
    ):
        assert cli(["explain", str(run), *arguments]) in (2, 3)
        assert problem in capfd.readouterr().err


def test_the_verb_measures_shows_and_keeps(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, lines in (("a.en", "the cat sleeps\nthe dog eats\n"), ("a.fr", "le chat dort\nle chien mange\n")):
        (tmp_path / name).write_text(lines)
    (tmp_path / "a.align").write_text("0-0 1-1 2-2\n0-0 1?1\n")
    files = [
        f"--source={tmp_path / 'a.en'}",
        f"--target={tmp_path / 'a.fr'}",
        f"measure.alignment={tmp_path / 'a.align'}",
    ]
    page = tmp_path / "page.html"
    assert cli(["faithful", str(run), *files, f"--out={page}", "measure.resamples=20"]) == 0
    out, said = capfd.readouterr()
    found = remembered(load(run).run)
    assert found is not None
    rows = out.splitlines()
    assert [row[2:24].strip() for row in rows[1:]] == [each.method for each in found.methods]
    assert "AER" in rows[0]
    assert "measuring 2 lines; nothing is saved" in said
    assert "the run's own links have an AER" in said
    assert f"Which map to believe: {found.best}" in page.read_text()
    asks_for_nothing(page.read_text())
    assert cli(["runs", "verify", str(run)]) == 0
    capfd.readouterr()
    assert cli(["faithful", str(run), *files[:1], "measure.resamples=20", "measure.limit=1", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["sentences"] == 1
    assert cli(["faithful", str(run), files[0], files[2]]) == 2
    assert "aligns given translations" in capfd.readouterr().err
    (run / "faithful.json").unlink()
