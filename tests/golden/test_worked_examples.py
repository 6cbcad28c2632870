"""The worked examples, to four decimals, with the arithmetic beside them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

import regard
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.nn import masks
from regard.nn.attention import Attention, InnerScore, softmax
from regard.nn.embeddings import OneHotEmbedding, Sinusoidal, sinusoid
from regard.nn.layers import LayerNorm, layer_norm
from regard.nn.observe import Recorder
from regard.text.vocabulary import END, PAD, START, Vocabulary


def equal(actual: Tensor, expected: list[object]) -> None:
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=actual.dtype), atol=5e-5, rtol=0)


def rounds(actual: float, expected: float) -> None:
    assert round(actual, 4) == expected


THE_CAT_SAT = torch.tensor([[[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]]], dtype=torch.float64)


def test_1_self_attention_with_identity_projections() -> None:
    attention = Attention(InnerScore(4**-0.5))
    watch = Recorder()
    outputs = attention(THE_CAT_SAT, attention.remember(THE_CAT_SAT), observer=watch)
    # q·k: The·The = 1+1 = 2, The·cat = 0, The·sat = 1+1 = 2, cat·sat = 2, sat·sat = 4
    equal(watch["products"][0, 0], [[2, 0, 2], [0, 2, 2], [2, 2, 4]])
    # ÷ √4: [1, 0, 1] → e¹ = 2.71828, e⁰ = 1 → 2.71828 / 6.43656 = .4223, 1 / 6.43656 = .1554
    rounds(math.e / (2 * math.e + 1), 0.4223)
    rounds(1 / (2 * math.e + 1), 0.1554)
    # [1, 1, 2] → e / (2 e + e²) = .2119, e² / (2 e + e²) = .5761
    rounds(math.e / (2 * math.e + math.e**2), 0.2119)
    rounds(math.e**2 / (2 * math.e + math.e**2), 0.5761)
    equal(
        watch["weights"][0, 0],
        [[0.4223, 0.1554, 0.4223], [0.1554, 0.4223, 0.4223], [0.2119, 0.2119, 0.5761]],
    )
    # The: feature 1 = .4223·1 + .1554·0 + .4223·1 = .8446; feature 2 = .4223·0 + .1554·1 + .4223·1 = .5777
    equal(outputs[0], [[0.8446, 0.5777, 0.8446, 0.5777], [0.5777, 0.8446, 0.5777, 0.8446], [0.7881] * 4])


def test_1_the_fused_path_gives_the_same_outputs() -> None:
    attention = Attention(InnerScore(4**-0.5))
    outputs = attention(THE_CAT_SAT, attention.remember(THE_CAT_SAT))
    equal(outputs[0], [[0.8446, 0.5777, 0.8446, 0.5777], [0.5777, 0.8446, 0.5777, 0.8446], [0.7881] * 4])


def test_2_scaling_keeps_the_softmax_from_saturating() -> None:
    # e⁶ / (e⁶ + e⁴) = 1 / (1 + e⁻²) = .8808; scaled by √4: 1 / (1 + e⁻¹) = .7311
    equal(softmax(torch.tensor([6.0, 4.0])), [0.8808, 0.1192])
    equal(softmax(torch.tensor([6.0, 4.0]) / math.sqrt(4)), [0.7311, 0.2689])
    # 1 / (1 + e⁹) = .0001; a difference of 1 instead of 9: 1 / (1 + e) = .2689
    equal(softmax(torch.tensor([1.0, 10.0])), [0.0001, 0.9999])
    equal(softmax(torch.tensor([4.0, 5.0])), [0.2689, 0.7311])


def test_3_masked_attention_with_a_padded_row() -> None:
    x = torch.tensor(
        [[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2], [0, 0, 0, 0]]], dtype=torch.float64
    )
    attention = Attention(InnerScore(4**-0.5))
    watch = Recorder()
    memory = attention.remember(x, torch.tensor([[True, True, True, False]]))
    outputs = attention(x, memory, causal=True, observer=watch)
    # e.g. row 1 · row 1 = .01 + .04 + .09 + .16 = .30; row 1 · row 2 = .05 + .12 + .21 + .32 = .70
    equal(
        watch["products"][0, 0],
        [[0.30, 0.70, 1.10, 0], [0.70, 1.74, 2.78, 0], [1.10, 2.78, 4.46, 0], [0, 0, 0, 0]],
    )
    # row 2: scores .70 and 1.74, scaled .35 and .87 → 1 / (1 + e^.52) = .3729
    rounds(1 / (1 + math.exp(0.52)), 0.3729)
    third = 1 / 3
    equal(
        watch["weights"][0, 0],
        [[1, 0, 0, 0], [0.3729, 0.6271, 0, 0], [0.1152, 0.2668, 0.6180, 0], [third, third, third, 0]],
    )
    kept = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]], dtype=torch.bool)
    assert torch.equal(watch["weights"][0, 0] > 0, kept)
    torch.testing.assert_close(attention(x, memory, causal=True), outputs)


def test_4_layer_norm_of_two_four_six_eight() -> None:
    x = torch.tensor([[[2.0, 4.0, 6.0, 8.0]]], dtype=torch.float64)
    # mean 5, variance (9 + 1 + 1 + 9) / 4 = 5; (2 − 5) / √5.00001 = −1.3416
    expected = [-1.3416, -0.4472, 0.4472, 1.3416]
    equal(LayerNorm(4).double()(x)[0, 0], expected)
    equal(layer_norm(x, torch.ones(4), torch.zeros(4), 1e-5)[0, 0], expected)


def test_5_sinusoidal_positions() -> None:
    # width 4: angles p / 10000⁰ = p and p / 10000^(2/4) = p / 100
    expected = [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995], [0.9093, -0.4161, 0.0200, 0.9998]]
    equal(sinusoid(torch.arange(3), 4), expected)
    equal(Sinusoidal(4)(torch.zeros(1, 3, 4))[0], expected)
    equal(Sinusoidal(4)(torch.zeros(1, 1, 4), first=2)[0], expected[2:])


def test_6_masks_of_a_padded_sequence() -> None:
    ids = torch.tensor([[4, 5, PAD]])
    padding = masks.padding(ids)
    assert padding.tolist() == [[True, True, False]]
    positions = torch.arange(3)
    ahead = masks.causal(positions, positions)
    assert ahead.int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    both = masks.combine(masks.over_keys(padding), ahead)
    assert both is not None
    assert both[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_7_words_to_ids_to_one_hot() -> None:
    words = Vocabulary(("a", "am", "I", "thanks", "student", "<eos>"))
    assert words.ids(words.tokens) == [0, 1, 2, 3, 4, 5]
    one_hot = OneHotEmbedding(len(words), len(words))
    with torch.no_grad():
        one_hot.weight.copy_(torch.eye(len(words)))  # times the identity: the one-hot vector itself
    assert one_hot(torch.tensor([[words.id("am")]]))[0, 0].tolist() == [0, 1, 0, 0, 0, 0]


def test_7_merci_becomes_thanks() -> None:
    """Two pairs, one-hot input, a plain encoder-decoder, a moment of training: *merci* → *thanks*."""
    pairs = [("merci", "thanks"), ("je suis étudiant", "I am a student")]
    sides = [Vocabulary.count(word for pair in pairs for word in pair[side].split()) for side in (0, 1)]
    source = torch.tensor([[*sides[0].ids(["merci"]), END, PAD, PAD], [*sides[0].ids(pairs[1][0].split()), END]])
    thanks, student = (sides[1].ids(pair[1].split()) for pair in pairs)
    target = torch.tensor([[START, *thanks, END, PAD, PAD, PAD], [START, *student, END]])
    settings = regard.load_settings("gru", "model.width=8", "model.hidden=16", "model.embedding=one_hot")
    model = regard.encoder_decoder(settings.model, len(sides[0]), len(sides[1]))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    first, state = model.start(source)
    found = search(model, first, state, torch.tensor([9, 9]), rule=Beam(2))
    texts = [" ".join(map(sides[1].token, best.tokens)) for (best,) in found]
    assert texts == ["thanks", "I am a student"]
