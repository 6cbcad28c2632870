"""Gates, the filling context vector, and the vanishing gradient."""

from __future__ import annotations

import pytest
import torch

import tiny
from regard.errors import ModelError
from regard.explain.attribution import word_map
from regard.explain.recurrent import filling, gates, saliency, states
from regard.explain.replay import replay
from regard.explain.trace import spell
from regard.nn.recurrent import ELMAN, GRU, LSTM, Cell, Stack
from regard.text.vocabulary import END

SOURCE, TARGET = [5, 9, 7, 11, END], [8, 11, 6, END]


@pytest.mark.parametrize(
    ("preset", "names"),
    [("lstm", {"input", "forget", "output"}), ("bahdanau", {"reset", "update"}), ("conditional", {"reset", "update"})],
)
def test_gates_lie_between_zero_and_one_in_every_layer(preset: str, names: set[str]) -> None:
    views = gates(replay(tiny.translator(preset), SOURCE, TARGET))
    assert {view.name.rpartition(".")[2] for view in views} == names
    for view in views:
        steps = len(SOURCE) if view.name.startswith("encoder") else len(TARGET)
        assert view.values.shape == (steps, 11)
        assert ((view.values > 0) & (view.values < 1)).all()
        torch.testing.assert_close(view.mean, view.values.mean(1))
        assert (view.opened + view.closed <= 1).all()


def test_an_ssru_has_a_forget_gate_and_a_state_in_every_decoder_layer() -> None:
    trace = replay(tiny.translator("transformer-ssru"), SOURCE, TARGET)
    assert [view.name for view in gates(trace)] == [f"decoder.{level}.cell.forget" for level in range(2)]
    names = [f"decoder.{level}.cell.{name}" for level in range(2) for name in ("cell", "hidden")]
    assert [view.name for view in states(trace)] == names
    assert all(view.values.shape == (len(TARGET), 15) for view in states(trace))


def test_opened_and_closed_count_units() -> None:
    trace = replay(tiny.translator("lstm"), SOURCE, TARGET)
    trace.tensors["encoder.0.cell.forget"][0] = torch.tensor([0.95] * 4 + [0.05] * 2 + [0.5] * 5)  # type: ignore[index]
    view = next(view for view in gates(trace) if view.name == "encoder.0.cell.forget")
    assert view.opened[0] == pytest.approx(4 / 11)
    assert view.closed[0] == pytest.approx(2 / 11)


@pytest.mark.parametrize(
    ("preset", "reason"), [("rnn", "a plain RNN has no gates"), ("transformer-tiny", "no recurrent")]
)
def test_what_has_no_gates_says_so(preset: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        gates(replay(tiny.translator(preset), SOURCE, TARGET))


@pytest.mark.parametrize("preset", ["rnn", "lstm", "lstm-reversed", "bahdanau"])
def test_the_context_vector_is_itself_when_the_last_word_is_read(preset: str) -> None:
    for found in filling(replay(tiny.translator(preset), SOURCE, TARGET)):
        last = 0 if found.name.endswith("backward") or preset == "lstm-reversed" else -1
        assert found.likeness[last] == pytest.approx(1.0)
        assert float(found.change.sum()) == pytest.approx(1.0)
        assert found.length.shape == (len(SOURCE),)
        first = -1 if last == 0 else 0
        assert found.likeness[first] < 1


def test_what_has_no_context_vector_says_so() -> None:
    with pytest.raises(ModelError, match="holds no states of a recurrent encoder"):
        filling(replay(tiny.translator("transformer-tiny"), SOURCE, TARGET))


def reaches(cell: Cell, steps: int = 51) -> torch.Tensor:
    """``‖∂ h_T / ∂ x_{T−k}‖`` of one direction of the last state, for k = 0 … T−1, mean over rows."""
    torch.manual_seed(3)
    stack = Stack(cell, 64, 64).double()
    leaf = torch.randn(5, steps, 64, dtype=torch.float64).requires_grad_()
    direction = torch.randn(64, generator=torch.Generator().manual_seed(0)).double()
    (found,) = torch.autograd.grad((stack(leaf)[0][:, -1] @ direction).sum(), leaf)
    return found.norm(dim=-1).mean(0).flip(0)


def test_the_gradient_of_a_plain_rnn_vanishes_a_million_times_faster_than_an_lstm_s() -> None:
    """Over 50 steps, untrained, with forget bias 1."""
    plain, gated = reaches(ELMAN), reaches(LSTM)
    fall = (plain[50] / plain[0]) / (gated[50] / gated[0])
    assert fall <= 1e-6
    assert gated[50] / gated[0] > reaches(GRU)[50] / reaches(GRU)[0] > plain[50] / plain[0]


@pytest.mark.parametrize("preset", ["rnn", "lstm-reversed", "transformer-tiny"])
def test_saliency_has_a_number_for_every_pair_of_tokens(preset: str) -> None:
    model = tiny.translator(preset)
    found = saliency(model, SOURCE, TARGET)
    assert found.shape == (len(TARGET), len(SOURCE))
    assert (found > 0).all()
    bound = found[:-1, :-1] * replay(model, SOURCE, TARGET).tensors["encoder.embedded"][:-1].norm(dim=-1)
    found = word_map(model, spell(SOURCE), spell(TARGET), "gradient", of="log-odds")
    assert (found.weights.abs() <= bound + 1e-12).all()  # Cauchy and Schwarz
