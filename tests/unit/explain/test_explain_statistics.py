"""Numbers of heads, rollout, and importance beside attention."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import tiny
from regard.errors import DataError, ModelError
from regard.explain.attribution import gradient, masking
from regard.explain.replay import replay
from regard.explain.side import Side, spell
from regard.explain.statistics import HeadStatistics, rollout, rollout_to_source, statistics
from regard.explain.trace import Trace
from regard.text.special import END, UNK

SOURCE, TARGET = [5, 9, 7, END], [8, 11, 6, 20, END]
EMPTY = torch.zeros(0)


def trace_of(weights: Tensor, kind: str, source: Side, target: Side) -> Trace:
    side, what = ("decoder", "cross") if kind == "cross" else kind.split("_")
    tensors = {f"{side}.{layer}.{what}.weights": layer_weights for layer, layer_weights in enumerate(weights)}
    return Trace("translate", source, target, tensors, EMPTY, EMPTY, EMPTY, EMPTY)


def one(rows: list[list[float]], kind: str = "encoder_self", ids: tuple[int, ...] = (5, 6, 7, END)) -> HeadStatistics:
    side = spell(ids)
    (found,) = statistics(trace_of(torch.tensor(rows, dtype=torch.float64)[None, None], kind, side, side), kind)
    return found


def identity(size: int = 4, shift: int = 0) -> list[list[float]]:
    return torch.eye(size).roll(shift, 1).tolist()


def test_a_straight_head_has_no_entropy_full_coverage_and_no_distance() -> None:
    found = one(identity(), "cross")
    assert (found.entropy, found.coverage, found.distance) == (0.0, 1.0, 0.0)
    assert found.diagonality == pytest.approx(1.0)
    assert found.end == pytest.approx(1 / 4)


def test_an_even_head_knows_nothing() -> None:
    found = one([[0.25] * 4] * 4, "cross")
    assert found.entropy == pytest.approx(math.log(4))
    assert found.diagonality == pytest.approx(0.0)
    assert found.role == ""


def test_a_reversed_head_runs_against_the_diagonal() -> None:
    assert one(torch.eye(4).flip(1).tolist(), "cross").diagonality == pytest.approx(-1.0)


def test_a_head_that_looks_at_one_word_covers_little() -> None:
    found = one([[0.0, 1.0, 0.0, 0.0]] * 4, "cross")
    assert found.coverage == pytest.approx(1 / 3)  # of three words; <end> does not count
    assert found.diagonality == 0.0
    assert found.distance == pytest.approx((1 + 0 + 1 + 2) / 4)


def test_roles_are_named() -> None:
    assert one(identity()).role == "copies its own place"
    before = torch.tensor(identity(shift=-1))
    before[0] = torch.tensor([1.0, 0, 0, 0])
    assert one(before.tolist()).role == "shifts by one: looks at the token before"
    after = torch.tensor(identity(shift=1))
    after[3] = torch.tensor([0, 0, 0, 1.0])
    assert one(after.tolist()).role == "shifts by one: looks at the token after"
    assert one([[0.1, 0.1, 0.1, 0.7]] * 4, "cross").role == "looks at <end>"
    twice = [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert one(twice, ids=(5, 6, 5, 6)).role == "copies: looks at the same token elsewhere"


def test_a_roll_does_not_look_around_the_corner() -> None:
    assert one(identity(shift=-1)).previous == pytest.approx(3 / 4)
    assert one(identity(shift=1)).following == pytest.approx(3 / 4)


@pytest.mark.parametrize("kind", ["cross", "encoder_self", "decoder_self"])
def test_every_head_of_a_model_has_numbers(kind: str) -> None:
    model = tiny.translator("transformer-tiny")
    first, second = (replay(model, SOURCE[start:], TARGET) for start in (0, 1))
    both = statistics([first, second], kind)
    assert [(found.layer, found.head) for found in both] == [(layer, head) for layer in range(2) for head in range(3)]
    means = [
        (one.entropy + two.entropy) / 2
        for one, two in zip(statistics(first, kind), statistics(second, kind), strict=True)
    ]
    assert [found.entropy for found in both] == pytest.approx(means)


def test_an_attention_that_does_not_exist_is_named() -> None:
    with pytest.raises(ModelError, match="kind = sideways: no such attention"):
        statistics(replay(tiny.translator("transformer-tiny"), SOURCE, TARGET), "sideways")


def test_rollout_is_the_product_of_layers_with_their_residuals() -> None:
    weights = torch.rand(2, 3, 5, 5, dtype=torch.float64).softmax(-1)
    eye = torch.eye(5, dtype=torch.float64)
    found = rollout(weights)
    first, second = ((weights[layer].mean(0) + eye) / 2 for layer in range(2))
    torch.testing.assert_close(found, torch.stack((first, second @ first)))
    torch.testing.assert_close(found.sum(-1), torch.ones(2, 5, dtype=torch.float64))


def test_rollout_to_the_source_shares_each_row_between_source_and_past() -> None:
    source, read = rollout_to_source(replay(tiny.translator("transformer-tiny"), SOURCE, TARGET))
    assert source.shape == (5, 4)
    torch.testing.assert_close(source.sum(-1) + read.sum(-1), torch.ones(5, dtype=torch.float64))
    assert read.triu(1).eq(0).all()


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_masking_is_the_fall_in_log_probability_without_the_word(preset: str) -> None:
    model = tiny.translator(preset)
    found = masking(model, SOURCE, TARGET, how="unknown")
    before = replay(model, SOURCE, TARGET).log_probability
    for place in range(3):
        changed = [UNK if place == at else number for at, number in enumerate(SOURCE)]
        torch.testing.assert_close(found.weights[:, place], before - replay(model, changed, TARGET).log_probability)
    assert (found.rows, found.columns) == (("8", "11", "6", "20", "<end>"), ("5", "9", "7"))


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_a_blank_word_is_an_embedding_of_zeros(preset: str) -> None:
    model = tiny.translator(preset)
    found = masking(model, SOURCE, TARGET).weights
    before = replay(model, SOURCE, TARGET).log_probability
    embedding = model.encoder.embedding
    kept = embedding.weight.data[9].clone()
    try:
        embedding.weight.data[9] = 0  # the word at place 1; tied output rows hold it too, so only untied models compare
        if embedding is not getattr(model.decoder, "embedding", None):
            torch.testing.assert_close(found[:, 1], before - replay(model, SOURCE, TARGET).log_probability)
    finally:
        embedding.weight.data[9] = kept
    assert found.abs().sum() > 0


def test_a_removed_word_leaves_a_shorter_source() -> None:
    model = tiny.translator("bahdanau")
    found = masking(model, SOURCE, TARGET, how="remove").weights
    before = replay(model, SOURCE, TARGET).log_probability
    shorter = replay(model, [5, 7, END], TARGET).log_probability
    torch.testing.assert_close(found[:, 1], before - shorter)


def test_effects_are_the_same_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.translator("gru")
    whole = masking(model, SOURCE, TARGET).weights
    monkeypatch.setattr("regard.explain.attribution._NUMBERS", 1)
    torch.testing.assert_close(masking(model, SOURCE, TARGET).weights, whole)


@pytest.mark.parametrize("preset", ["lstm-reversed", "bahdanau", "transformer-tiny"])
def test_gradient_times_input_is_the_slope_of_fading_a_word_out(preset: str) -> None:
    """Compared with a difference quotient: the embedding of one word, scaled a little."""
    model, step = tiny.translator(preset), 1e-6
    found = gradient(model, SOURCE, TARGET).weights
    assert found.shape == (5, 3)

    class Faded:
        active = True

        def __init__(self, by: float, here: str = "") -> None:
            self.by, self.here = by, here

        def at(self, place: str | int) -> Faded:
            return Faded(self.by, f"{self.here}{place}.")

        def see(self, name: str, value: Tensor) -> Tensor:
            if self.here + name != "encoder.embedded":
                return value
            value = value.clone()
            value[:, 2 if preset == "lstm-reversed" else 1] *= self.by
            return value

    def log_odds(by: float) -> Tensor:
        odds = replay(model, SOURCE, TARGET, Faded(by)).log_probability
        return odds - torch.log1p(-odds.exp())

    quotient = (log_odds(1 + step) - log_odds(1 - step)) / (2 * step)
    torch.testing.assert_close(found[:, 1], quotient, atol=1e-6, rtol=1e-5)


def test_language_models_and_labellers_have_importance_too() -> None:
    written = masking(tiny.writer("gru"), target_ids=TARGET)
    assert written.columns == ("8", "11", "6", "20")
    assert written.weights[0].eq(0).all()  # nothing was read yet but <start>
    assert written.weights[1, 0] != 0
    torch.testing.assert_close(written.weights.triu(1)[:4], torch.zeros(4, 4, dtype=torch.float64).triu(1))
    assert gradient(tiny.writer("gru"), target_ids=TARGET).weights.shape == (5, 4)
    assert masking(tiny.tagger("bahdanau"), [5, 6, 7]).weights.shape == (3, 3)
    assert masking(tiny.tagger("bahdanau", "mean"), [5, 6, 7], how="unknown").weights.shape == (1, 3)
    assert gradient(tiny.tagger("transformer-tiny", "mean"), [5, 6, 7]).weights.shape == (1, 3)


def test_what_would_change_the_output_too_is_refused() -> None:
    with pytest.raises(DataError, match="how = unknown: would change what is written too"):
        masking(tiny.writer("gru"), target_ids=TARGET, how="unknown")
    with pytest.raises(DataError, match="how = remove: would change what is written too"):
        masking(tiny.tagger("gru"), [5, 6], how="remove")
    with pytest.raises(DataError, match="an empty sentence"):
        masking(tiny.translator("gru"), [END], TARGET)
