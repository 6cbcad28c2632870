"""The recurrent decoders against the papers' equations, written once more with torch's cells and a plain loop.

A step that agrees with the forward pass may still attend at the wrong time; here the order is held.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tiny
from regard.models.generator import EncoderDecoder
from regard.models.recurrent import BahdanauDecoder, Bridge, Cells, ConditionalDecoder, LuongDecoder
from regard.nn.attention import AdditiveScore, GeneralScore
from regard.nn.recurrent import Stack

SOURCE = tiny.rows([7, 3, 1], tiny.SOURCE_SIZE, 3)
TARGET = tiny.rows([4, 6, 5], tiny.TARGET_SIZE, 4, first=1)
Hidden = list[tuple[Tensor, Tensor]]  # h and c, one pair a layer


def bridged(bridge: Bridge | None, final: Cells) -> Hidden:
    """``s_0 = tanh(W h + b)`` and ``c_0 = W' c + b'`` for each layer, or the encoder's own."""
    states = []
    for level, state in enumerate(final):
        assert state.cell is not None
        if bridge is None:
            states.append((state.hidden, state.cell))
        else:
            states.append((bridge.hidden[level](state.hidden).tanh(), bridge.cell[level](state.cell)))
    return states


def step(stack: Stack, x: Tensor, states: Hidden) -> Hidden:
    """One step up through torch's LSTM cells."""
    after = []
    for layer, state in zip(stack.layers, states, strict=True):
        kernel = layer.kernel
        weights = (kernel.weight_ih_l0, kernel.weight_hh_l0, kernel.bias_ih_l0, kernel.bias_hh_l0)
        after.append(torch.lstm_cell(x, state, *weights))
        x = after[-1][0]
    return after


def attend(scores: Tensor, states: Tensor) -> Tensor:
    """``c = Σ_j softmax(e)_j h_j`` over the real tokens; scores (B, S), states (B, S, D)."""
    weights = scores.masked_fill(SOURCE == 0, -float("inf")).softmax(-1)
    return (weights[:, :, None] * states).sum(1)


def concat(score: AdditiveScore, query: Tensor, states: Tensor) -> Tensor:
    """``vᵀ tanh(W [s; h_j] + b)``"""
    joined = torch.cat((query[:, None].expand(-1, states.shape[1], -1), states), -1)
    hidden = joined @ torch.cat((score.query_weight[0], score.key_weight[0]))
    return (hidden if score.bias is None else hidden + score.bias[0]).tanh() @ score.combine[0]


def randomised(preset: str, *changes: str) -> EncoderDecoder:
    """A model of its own whose biases have values, or a wrong one would not show."""
    torch.manual_seed(0)
    model = tiny.translator.__wrapped__(preset, "model.cell=lstm", "model.depth=2", *changes)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


@torch.no_grad()
def test_bahdanau_attends_with_the_previous_state_and_feeds_the_context_to_the_cell() -> None:
    model = randomised("bahdanau")
    decoder, encoded = model.decoder, model.encode(SOURCE)
    assert isinstance(decoder, BahdanauDecoder)
    assert isinstance(decoder.attention.score, AdditiveScore)
    assert encoded.final is not None
    states, logits = bridged(decoder.bridge, encoded.final), []
    for time in range(TARGET.shape[1]):
        word = decoder.embedding(TARGET[:, time])
        context = attend(concat(decoder.attention.score, states[-1][0], encoded.states), encoded.states)
        states = step(decoder.stack, torch.cat((word, context), -1), states)
        readout = decoder.readout(torch.cat((states[-1][0], context, word), -1)).tanh()
        logits.append(decoder.output(readout))
    torch.testing.assert_close(model(SOURCE, TARGET), torch.stack(logits, 1), atol=1e-10, rtol=0)


def luong_scores(decoder: LuongDecoder, query: Tensor, states: Tensor) -> Tensor:
    score = decoder.attention.score
    if isinstance(score, AdditiveScore):
        return concat(score, query, states)
    mapped = query @ score.weight[0] if isinstance(score, GeneralScore) else query
    return (mapped[:, None] * states).sum(-1)


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("preset", ["luong-dot", "luong-general", "luong-concat"])
@torch.no_grad()
def test_luong_attends_with_the_current_state_and_may_feed_its_answer_back(preset: str, feeding: bool) -> None:
    both = () if preset == "luong-dot" else ("model.bidirectional=true", "model.bridge=dense")
    model = randomised(preset, f"model.decoder.feeding={str(feeding).lower()}", *both)
    decoder, encoded = model.decoder, model.encode(SOURCE)
    assert isinstance(decoder, LuongDecoder)
    assert encoded.final is not None
    states, logits = bridged(decoder.bridge, encoded.final), []
    attentional = torch.zeros(len(SOURCE), decoder.stack.width, dtype=torch.float64)
    for time in range(TARGET.shape[1]):
        word = decoder.embedding(TARGET[:, time])
        states = step(decoder.stack, torch.cat((word, attentional), -1) if feeding else word, states)
        context = attend(luong_scores(decoder, states[-1][0], encoded.states), encoded.states)
        attentional = decoder.combine(torch.cat((context, states[-1][0]), -1)).tanh()
        logits.append(decoder.output(attentional))
    torch.testing.assert_close(model(SOURCE, TARGET), torch.stack(logits, 1), atol=1e-10, rtol=0)


@pytest.mark.parametrize("second", ["transition", "layer"])
@torch.no_grad()
def test_conditional_steps_attends_and_steps_again(second: str) -> None:
    model = randomised("conditional", f"model.decoder.second={second}")
    decoder, encoded = model.decoder, model.encode(SOURCE)
    assert isinstance(decoder, ConditionalDecoder)
    assert isinstance(decoder.attention.score, AdditiveScore)
    real = (SOURCE != 0)[:, :, None]
    mean = (encoded.states * real).sum(1) / real.sum(1)
    states = [(decoder.bridge.hidden[level](mean).tanh(), decoder.bridge.cell[level](mean)) for level in range(2)]
    own, logits = (torch.zeros_like(states[0][0]),) * 2, []
    kernel = decoder.second.kernel
    weights = (kernel.weight_ih_l0, kernel.weight_hh_l0, kernel.bias_ih_l0, kernel.bias_hh_l0)
    for time in range(TARGET.shape[1]):
        word = decoder.embedding(TARGET[:, time])
        states = step(decoder.stack, word, states)
        first = states[-1][0]
        context = attend(concat(decoder.attention.score, first, encoded.states), encoded.states)
        if second == "transition":
            states[-1] = torch.lstm_cell(context, states[-1], *weights)
            features = decoder.readout(torch.cat((states[-1][0], context, word), -1)).tanh()
        else:
            own = torch.lstm_cell(torch.cat((first, context), -1), own, *weights)
            features = own[0]
        logits.append(decoder.output(features))
    torch.testing.assert_close(model(SOURCE, TARGET), torch.stack(logits, 1), atol=1e-10, rtol=0)


@torch.no_grad()
def test_annotations_are_a_map_of_the_states() -> None:
    plain, dense = (randomised("bahdanau", f"model.annotations={kind}") for kind in ("plain", "dense"))
    dense.encoder.stack.load_state_dict(plain.encoder.stack.state_dict())
    dense.encoder.embedding.load_state_dict(plain.encoder.embedding.state_dict())
    states, annotate = plain.encode(SOURCE).states, dense.encoder.annotate
    expected = torch.tanh(states @ annotate.weight.T + annotate.bias)
    torch.testing.assert_close(dense.encode(SOURCE).states, expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_without_attention_the_context_vector_is_the_first_state() -> None:
    model = randomised("lstm", "model.bidirectional=true", "model.bridge=dense")
    decoder, encoded = model.decoder, model.encode(SOURCE)
    assert encoded.final is not None
    states, logits = bridged(decoder.bridge, encoded.final), []
    for time in range(TARGET.shape[1]):
        states = step(decoder.stack, decoder.embedding(TARGET[:, time]), states)
        logits.append(decoder.output(states[-1][0]))
    torch.testing.assert_close(model(SOURCE, TARGET), torch.stack(logits, 1), atol=1e-10, rtol=0)
