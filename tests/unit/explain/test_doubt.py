"""Doubt: its signals are those of a plain replay, its weights are learned, and every way to ask gives it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

import corpora_for_tests as small
import tiny
from regard.cli.main import run as cli
from regard.errors import DataError, ModelError
from regard.evaluate.evaluate import doubted
from regard.explain import doubt
from regard.explain.doubt import DAMAGES, DETACHED, SIGNALS, Calibration, Watch
from regard.explain.replay import replay
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.text.vocabulary import END
from regard.trainer.start import start

SOURCES, TARGETS = [[5, 7, 11, 6, END], [9, END], [4, 4, 8, END]], [[6, 9, 5], [4, 4, 8, 13, 21], []]
EVEN = Calibration("", 0.0, (0.0,) * 8, (1.0,) * 8, (1.0,) * 8, 0.0, -1.0, 10)


@pytest.mark.parametrize("preset", ["transformer-tiny", "transformer-ssru", "bahdanau", "luong-general", "gru"])
def test_a_batched_replay_measures_what_each_replay_shows(preset: str) -> None:
    model = tiny.translator(preset)
    found = doubt.replay_all(model, SOURCES, TARGETS)
    for source, target, (own, entropy, share, cross) in zip(SOURCES, TARGETS, found, strict=True):
        trace = replay(model, source, [*target, END], detail="all", logits=True)
        torch.testing.assert_close(own, trace.log_probability, check_dtype=False, atol=1e-5, rtol=1e-5)
        logs = trace.tensors["logits"].log_softmax(-1)
        torch.testing.assert_close(entropy, -(logs.exp() * logs).sum(1), check_dtype=False, atol=1e-5, rtol=1e-4)
        if preset.startswith("transformer"):
            parts = []
            for layer in range(len(trace.cross)):
                before, after = (trace.tensors[f"decoder.{layer}.{name}"] for name in ("attended", "crossed"))
                added = (after - before).norm(dim=1)
                parts.append(added / (added + before.norm(dim=1)))
            expected = torch.stack(parts).mean(0)
        else:
            alone = replay(model, [5, END], [*target, END])  # an empty source has nothing to look into
            assert alone.log_probability.shape == share.shape
            expected = trace.log_probability - without_source(model, target)
        torch.testing.assert_close(share, expected, check_dtype=False, atol=1e-5, rtol=1e-4)
        assert (cross is None) == (preset == "gru")
        if cross is not None:
            torch.testing.assert_close(cross, trace.cross, check_dtype=False, atol=1e-6, rtol=1e-5)


def without_source(model: torch.nn.Module, target: list[int]) -> torch.Tensor:
    with torch.no_grad():
        logits = model(torch.tensor([[END]]), torch.tensor([[model.first, *target]]))[0]  # type: ignore[arg-type]
    return logits.log_softmax(-1).gather(1, torch.tensor([*target, END])[:, None]).squeeze(1)


def test_cross_attention_alone_is_written_out() -> None:
    inside = Watch().at("decoder").at(1)
    assert not inside.active
    assert inside.at("cross").active
    assert not inside.at("self").active
    assert not Watch().at("encoder").active


def test_logistic_regression_finds_what_made_the_labels() -> None:
    chance = np.random.default_rng(1)
    x = chance.normal(size=(4000, 2))
    y = chance.random(4000) < 1 / (1 + np.exp(-(2 * x[:, 0] - x[:, 1])))
    (first, second), offset = doubt.logistic(x, y)
    assert (round(first), round(second), round(offset)) == (2, -1, 0)


def test_repetition_is_the_share_of_couples_that_were_there_before() -> None:
    assert doubt.repetition(["a", "b", "a", "b"]) == pytest.approx(1 / 3)
    assert doubt.repetition([]) == 0.0


def test_inputs_are_damaged_by_chance_alone() -> None:
    source, target = "the black cat ate the mouse", "le chat noir a mangé la souris"
    for damage in DAMAGES.values():
        assert damage(source, target, Random(1)) == damage(source, target, Random(1)) != source
    assert sorted(DAMAGES["shuffled"](source, target, Random(1)).split()) == sorted(source.split())
    assert len(DAMAGES["thinned"](source, target, Random(1)).split()) == 3
    own, other = (4, 5, 6, 7, 8), (9, 10)
    assert DETACHED["another"](own, other, Random(1)) == other
    assert DETACHED["truncated"](own, other, Random(1)) == (4, 5)
    assert len(DETACHED["repeated"](own, other, Random(1))) > len(own)


def test_the_heaviest_reason_is_named_first_and_none_where_there_is_no_doubt() -> None:
    values = dict.fromkeys(SIGNALS, 0.0)
    assert EVEN.value(values) == (0.5, ())
    value, reasons = EVEN.value(values | {"unknown": 1.0, "length": 2.0})
    assert (round(value, 3), reasons) == (0.953, (SIGNALS["length"], SIGNALS["unknown"]))
    assert EVEN.value(values | {"unknown": 1.0, "source": -4.0})[1] == ()


def test_a_calibration_comes_back_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert Calibration.load(tmp_path) is None
    EVEN.save(tmp_path)
    assert Calibration.load(tmp_path) == EVEN
    content = json.loads((tmp_path / "doubt.json").read_text())
    for wrong in ({"means": [0.0]}, {"usual": math.nan}, {"word": "much"}, {"scales": None}):
        (tmp_path / "doubt.json").write_text(json.dumps(content | wrong))
        with pytest.raises(ModelError, match="is not a calibration of doubt"):
            Calibration.load(tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doubt") / "run"
    start(folder, small.settings("transformer-tiny", "train.steps=30"), small.Notes())
    return folder


@pytest.fixture
def translator(run: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.setattr(doubt, "LEARNED_ON", 12)
    return load(run)


def test_what_is_learned_is_kept_for_the_weights_it_was_learned_for(translator: Translator, run: Path) -> None:
    learned = translator.calibration
    assert learned is not None
    assert learned.sentences == 12
    assert doubt.known_calibration(translator) == learned == load(run).calibration
    Calibration(**{**vars(learned), "weights": "others"}).save(run)
    assert doubt.known_calibration(translator) is None
    assert doubt.calibration_of(translator) == learned
    with pytest.raises(DataError, match="too few to calibrate doubt"):
        doubt.calibrate(translator, [("a", "b")], "")


def test_a_run_that_writes_nothing_has_no_value_of_doubt(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt, "FILE", "other.json")
    monkeypatch.setattr(doubt, "_written", lambda _, texts: [()] * len(texts))
    assert doubt.calibration_of(translator) is None
    with pytest.raises(DataError, match="outputs = 0: the run translates nothing of its validation text"):
        doubt.calibrate(translator, [("the cat", "le chat")] * 10, "")


def test_every_output_has_its_doubt_and_the_links_of_the_same_replay(translator: Translator) -> None:
    found = translator.translate(["The cat sleeps. The dog eats!", "", "The bear"])
    doubts, links = translator.doubts_and_links([each.outputs[0] for each in found])
    for one, other in zip(links, translator.links([each.outputs[0] for each in found]), strict=True):
        assert [link.weight for link in one] == pytest.approx([link.weight for link in other], abs=1e-5)
        assert [link[3:] for link in one] == [link[3:] for link in other]
    assert (doubts[1].value, doubts[1].words, doubts[1].signals) == (None, (), {})
    for each, one in zip(found, doubts, strict=True):
        words = each.text.split()
        assert all(words[word.place] == word.word and word.probability < 0.5 for word in one.words)
    assert doubts[0].value is not None
    assert found[0].doubt == doubts[0]


def test_a_corpus_is_sorted_most_doubtful_first(translator: Translator) -> None:
    rows = [("the cat sleeps", "le chat dort"), ("the cat sleeps", ""), ("the bear eats honey", "l'ours")]
    found = doubted(translator, rows)
    assert sorted(number for number, *_ in found) == [1, 3]
    values = [each.value for *_, each in found]
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert [written for _, _, written, _ in doubted(translator, [("the cat", None)])] == [
        translator.translate("the cat").text
    ]


def test_the_verbs_show_it(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli(["translate", str(run), "the cat sleeps", "--show", "doubt"]) == 0
    assert "  doubt " in capfd.readouterr().out
    assert cli(["translate", str(run), "the cat sleeps", "--show", "doubt", "--json"]) == 0
    assert set(json.loads(capfd.readouterr().out)["doubt"]) == {"value", "reasons", "words", "signals"}
    (tmp_path / "a.en").write_text("the cat\tsleeps\nthe bear eats\n")
    texts = str(tmp_path / "a.en")
    assert cli(["doubt", str(run), "--source", texts]) == 0
    lines = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert sorted(line[1] for line in lines) == ["1", "2"]
    assert {len(line) for line in lines} == {5}  # a tab in a text makes no column
    assert float(lines[0][0]) >= float(lines[1][0])
    (tmp_path / "gaps.en").write_text("the cat sleeps\n\nthe bear eats\n\n")
    assert cli(["doubt", str(run), "--source", str(tmp_path / "gaps.en")]) == 0
    answered = capfd.readouterr()
    assert sorted(line.split("\t")[1] for line in answered.out.splitlines()) == ["1", "3"]
    assert "2 lines were left out" in answered.err
    assert cli(["doubt", str(run), "--source", texts, "--target", texts, "--json"]) == 0
    assert {json.loads(line)["line"] for line in capfd.readouterr().out.splitlines()} == {1, 2}
    (tmp_path / "empty").write_text("")
    assert cli(["doubt", str(run), "--source", str(tmp_path / "empty")]) == 3
    assert "has no sentence; give at least one" in capfd.readouterr().err
