"""The small parts of the mathematics, one sentence each."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.models.transformer import TransformerDecoder
from regard.nn import masks, recurrent
from regard.nn.attention import (
    NORMALISERS,
    AdditiveScore,
    Attention,
    CosineScore,
    GeneralScore,
    InnerScore,
    Memory,
    MonotonicWindow,
    PredictedWindow,
    Projections,
    one_hot_choice,
    relu,
    softmax,
)
from regard.nn.embeddings import (
    Embedding,
    Learned,
    OneHotEmbedding,
    OutputLayer,
    Rotary,
    Sinusoidal,
    Unplaced,
    sinusoid,
)
from regard.nn.layers import GatedFeedForward
from regard.nn.observe import UNOBSERVED, Recorder
from regard.nn.recurrent import ELMAN, LSTM, Layer, Stack
from regard.nn.state import Cache
from regard.settings import AttentionSettings

# Embeddings


def test_a_one_hot_product_is_a_look_up() -> None:
    look_up, product = Embedding(11, 5, scale=3.0), OneHotEmbedding(11, 5, scale=3.0)
    product.load_state_dict(look_up.state_dict())
    ids = torch.randint(0, 11, (2, 7))
    assert torch.equal(product(ids), look_up(ids))
    gradients = [torch.autograd.grad(module(ids).square().sum(), module.weight)[0] for module in (look_up, product)]
    torch.testing.assert_close(*gradients)


def test_an_embedding_may_begin_with_word_vectors() -> None:
    embedding = Embedding(11, 5, scale=3.0)
    before = embedding.weight.detach().clone()
    vectors = torch.randn(2, 5)
    embedding.load_vectors(vectors, torch.tensor([4, 6]))
    torch.testing.assert_close(embedding(torch.tensor([[4, 6]]))[0], vectors)
    others = [0, 1, 2, 3, 5, 7, 8, 9, 10]
    assert torch.equal(embedding.weight[others], before[others])
    assert embedding.weight.requires_grad


def test_a_tied_output_is_the_embedding() -> None:
    embedding = Embedding(11, 5)
    output = OutputLayer(5, 11, embedding)
    assert output.weight is embedding.weight
    x = torch.randn(3, 5)
    torch.testing.assert_close(output(x), x @ embedding.weight.T)


@pytest.mark.parametrize(("tie", "shared"), [("none", 3), ("target", 2), ("all", 1)])
def test_tying_says_how_many_matrices_there_are(tie: str, shared: int) -> None:
    settings = regard.load_settings("transformer-tiny", f"model.tie={tie}")
    model = regard.encoder_decoder(settings.model, 37, 37)
    matrices = {id(p) for p in model.parameters() if p.shape == (37, 128)}
    assert len(matrices) == shared


# Masks


@settings(max_examples=23)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_reversing_twice_changes_nothing(lengths: list[int]) -> None:
    mask = masks.from_lengths(torch.tensor(lengths), 7)
    values = torch.randn(len(lengths), 7, 3)
    mirrored = masks.reverse(values, mask)
    for row, length in enumerate(lengths):
        assert torch.equal(mirrored[row, :length], values[row, :length].flip(0))
        assert torch.equal(mirrored[row, length:], values[row, length:])
    assert torch.equal(masks.reverse(mirrored, mask), values)


def test_no_mask_at_all_is_none() -> None:
    assert masks.combine(None, None) is None


# Normalisers and choices


def test_relu_weights_sum_to_one_where_any_is_positive_and_are_zero_elsewhere() -> None:
    scores = torch.tensor([[1.0, 3.0, -2.0], [-1.0, -1.0, -1.0]])
    torch.testing.assert_close(relu(scores), torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))


def test_settings_name_every_normaliser() -> None:
    assert get_args(AttentionSettings.model_fields["normaliser"].annotation) == tuple(NORMALISERS)


@pytest.mark.parametrize("normaliser", [softmax, relu])
def test_a_row_that_sees_nothing_weighs_nothing_and_has_finite_gradients(normaliser: object) -> None:
    assert callable(normaliser)
    scores = torch.randn(2, 3, requires_grad=True)
    weights = normaliser(scores, torch.tensor([[False] * 3, [True] * 3]))
    assert weights[0].eq(0).all()
    weights.square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("watched", [True, False])
def test_attention_over_nothing_visible_is_zero(watched: bool) -> None:
    attention = Attention(InnerScore())
    memory = Memory(torch.randn(1, 1, 3, 5), torch.randn(1, 1, 3, 5), torch.zeros(1, 3, dtype=torch.bool))
    context = attention(torch.randn(1, 2, 5), memory, observer=Recorder() if watched else UNOBSERVED)
    assert context.eq(0).all()


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_newest_queries_see_their_past_however_few_they_are(length: int) -> None:
    attention, x, watch = Attention(InnerScore()), torch.randn(1, 5, 4), Recorder()
    memory, first = attention.remember(x), 5 - length
    whole = attention(x, memory, causal=True)[:, first:]
    torch.testing.assert_close(attention(x[:, first:], memory, first=first, causal=True), whole)
    torch.testing.assert_close(attention(x[:, first:], memory, first=first, causal=True, observer=watch), whole)
    assert torch.equal(watch["weights"][0, 0] > 0, torch.ones(5, 5).tril().bool()[first:])


@pytest.mark.parametrize("first", [0, 2])
def test_as_many_queries_as_keys_need_not_begin_where_the_keys_do(first: int) -> None:
    """Torch's own causal mask is square; from a later position on a query sees more."""
    attention, x, watch = Attention(InnerScore()), torch.randn(2, 5, 4), Recorder()
    memory = attention.remember(x)
    fused = attention(x, memory, first=first, causal=True)
    torch.testing.assert_close(attention(x, memory, first=first, causal=True, observer=watch), fused)
    assert torch.equal(watch["weights"][0, 0] > 0, torch.ones(5, 5).tril(first).bool())


@pytest.mark.parametrize("watched", [True, False])
def test_hypotheses_that_share_a_memory_stand_at_their_own_positions(watched: bool) -> None:
    attention = Attention(InnerScore(0.5), heads=2, projections=Projections(8, 8, 8), rotary=Rotary(4))
    source, queries = torch.randn(2, 7, 8), torch.randn(6, 3, 8)  # three hypotheses a sentence
    shared, own = attention.remember(source), attention.remember(source.repeat_interleave(3, 0))
    observer = Recorder() if watched else UNOBSERVED
    torch.testing.assert_close(attention(queries, shared, first=2, observer=observer), attention(queries, own, first=2))


def test_hard_attention_takes_the_likeliest_at_inference_and_samples_in_training() -> None:
    weights = torch.tensor([0.2, 0.5, 0.3]).expand(1, 1, 5000, 3)
    best, log_probability = one_hot_choice(weights, sample=False)
    assert torch.equal(best, torch.tensor([0.0, 1.0, 0.0]).expand_as(best))
    torch.testing.assert_close(log_probability, torch.full_like(log_probability, math.log(0.5)))
    drawn, _ = one_hot_choice(weights, sample=True)
    torch.testing.assert_close(drawn.mean(2)[0, 0], torch.tensor([0.2, 0.5, 0.3]), atol=0.04, rtol=0)


def test_hard_attention_never_draws_a_masked_position() -> None:
    weights = softmax(torch.zeros(1, 1, 2000, 4), torch.tensor([True, True, False, False]))
    drawn, _ = one_hot_choice(weights, sample=True)
    assert drawn[..., 2:].eq(0).all()


# Windows


def test_a_monotonic_window_walks_along_and_stays_at_the_end() -> None:
    mask, focus = MonotonicWindow(1)(torch.zeros(1, 5, 2), torch.arange(5), torch.tensor([3]), 4)
    expected = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    assert mask[0, 0].int().tolist() == expected
    assert focus is None


def test_a_predicted_window_is_centred_where_it_says_with_luongs_gaussian() -> None:
    window, watch = PredictedWindow(3, reach=2), Recorder()
    mask, focus = window(torch.randn(1, 1, 3), torch.zeros(1), torch.tensor([6]), 6, watch)
    centre = watch["centre"].item()
    assert 0 < centre < 6
    for position in range(6):
        assert mask[0, 0, 0, position].item() == (abs(position - centre) <= 2)
        # σ = reach / 2 = 1
        assert focus[0, 0, 0, position].item() == pytest.approx(math.exp(-((position - centre) ** 2) / 2))


def test_a_predicted_window_finds_its_centre_as_in_the_paper() -> None:
    window, query, watch = PredictedWindow(3, reach=2), torch.randn(2, 4, 3), Recorder()
    lengths = torch.tensor([6, 3])
    window(query, torch.arange(4), lengths, 6, watch)
    # p = S · sigmoid(vᵀ tanh(W q))
    share = torch.sigmoid(torch.tanh(query @ window.hidden.weight.T) @ window.centre.weight[0])
    torch.testing.assert_close(watch["centre"][:, 0, :, 0], lengths[:, None] * share)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_predicted_window_stands_exactly_in_half_precision_too(dtype: torch.dtype) -> None:
    window, query, watch = PredictedWindow(3, reach=2).to(dtype), torch.randn(1, 9, 3, dtype=dtype), Recorder()
    mask, focus = window(query, torch.arange(9), torch.tensor([3000]), 3000, watch)
    share = torch.sigmoid(window.centre(torch.tanh(window.hidden(query))))[0, :, 0]
    torch.testing.assert_close(watch["centre"][0, 0, :, 0], share.float() * 3000)
    assert focus is not None
    assert focus.dtype == dtype
    assert mask.sum(-1).ge(4).all()  # 2 · reach, or one more


# Dropout


@pytest.mark.parametrize("watched", [True, False])
def test_attention_drops_weights_in_training_only(watched: bool) -> None:
    attention, observer = Attention(InnerScore(), dropout=0.5), Recorder() if watched else UNOBSERVED
    query = torch.randn(1, 4000, 3)
    memory = Memory(torch.randn(1, 1, 5, 3), torch.ones(1, 1, 5, 1))  # the context is the sum of the weights
    torch.testing.assert_close(attention.eval()(query, memory, observer=observer), torch.ones(1, 4000, 1))
    sums = attention.train()(query, memory, observer=observer)
    assert sums.eq(0).any()
    assert sums.mean().item() == pytest.approx(1, abs=0.05)  # what is left is scaled up


@pytest.mark.parametrize("preset", ["lstm-deep", "bahdanau", "luong-dot", "transformer-tiny"])
def test_dropout_reaches_every_room(preset: str) -> None:
    """With (all but) everything dropped, nothing is left of a source or of a target."""
    settings = regard.load_settings(preset, "model.width=12", "model.hidden=12", "model.dropout=0.9999999999")
    model, watch = regard.encoder_decoder(settings.model, 11, 13).train(), Recorder()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    if settings.model.kind == "recurrent":
        dropped = ("encoder.embedded", "encoder.states", "decoder.embedded", "decoder.features")
    else:
        dropped = (
            "encoder.0.attended",
            "encoder.1.states",
            "decoder.0.attended",
            "decoder.0.crossed",
            "decoder.1.states",
        )
    model(torch.randint(4, 11, (2, 5)), torch.randint(4, 13, (2, 3)), observer=watch)
    for name in dropped:
        assert watch[name].eq(0).all(), name


# Feed-forward


def test_swiglu_gates_with_silu() -> None:
    gated, x = GatedFeedForward(3, 7), torch.randn(2, 5, 3)
    gate = x @ gated.gate.weight.T
    hidden = gate * torch.sigmoid(gate) * (x @ gated.expand.weight.T)  # silu(z) = z · sigmoid(z)
    torch.testing.assert_close(gated(x), hidden @ gated.contract.weight.T)


# Positions


def test_positions_beyond_those_kept_ready_are_computed() -> None:
    few, many = Sinusoidal(6, ready=3), Sinusoidal(6, ready=50)
    x = torch.zeros(1, 4, 6)
    torch.testing.assert_close(few(x, first=20), many(x, first=20))
    few_turns, many_turns = Rotary(6, ready=3), Rotary(6, ready=50)
    queries = torch.randn(1, 2, 4, 6)
    torch.testing.assert_close(few_turns(queries, first=20), many_turns(queries, first=20))


def test_an_odd_width_has_one_sine_more() -> None:
    assert sinusoid(torch.arange(3), 5).shape == (3, 5)


def test_rotary_products_depend_on_distance_alone() -> None:
    rotary, query, key = Rotary(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    near = (rotary(query, 5) * rotary(key, 2)).sum()
    far = (rotary(query, 105) * rotary(key, 102)).sum()
    torch.testing.assert_close(near, far, atol=1e-5, rtol=0)
    other = (rotary(query, 5) * rotary(key, 3)).sum()
    assert not torch.isclose(near, other)


def test_learned_positions_are_added_from_where_the_sequence_stands() -> None:
    learned, x = Learned(5, 9), torch.randn(2, 3, 5)
    torch.testing.assert_close(learned(x, first=4) - x, learned.weight[4:7].expand(2, 3, 5))
    assert Unplaced()(x, first=4) is x


# Why the scale: the variance of q·k grows with d_k, and softmax saturates


def test_scaling_keeps_the_variance_of_scores_at_one_and_the_softmax_soft() -> None:
    largest = {}
    for width in (4, 64, 1024):
        query, keys = torch.randn(2000, 1, width), torch.randn(2000, 8, width)
        products = (query @ keys.transpose(1, 2)).squeeze(1)
        assert products.var().item() == pytest.approx(width, rel=0.1)
        assert (products / math.sqrt(width)).var().item() == pytest.approx(1, rel=0.1)
        largest[width] = [softmax(s).amax(-1).mean().item() for s in (products, products / math.sqrt(width))]
    assert largest[1024][0] > 0.95  # without the scale, one key takes everything
    assert abs(largest[1024][1] - largest[4][1]) < 0.05  # with it, the width does not matter


# Recurrent layers


def test_an_untrained_lstm_remembers() -> None:
    """The two biases of the forget gate add up to one."""
    layer = Layer(LSTM, 3, 5, bidirectional=True)
    for direction in ("", "_reverse"):
        parts = [getattr(layer.kernel, f"bias_{part}_l0{direction}")[5:10] for part in ("ih", "hh")]
        assert (parts[0] + parts[1]).eq(1).all()


@pytest.mark.parametrize("variational", [True, False])
def test_variational_dropout_keeps_its_mask_over_time(variational: bool) -> None:
    stack = Stack(ELMAN, 3, 64, 2, dropout=0.5, variational=variational).train()
    noise = stack.noise(torch.ones(2, 9, 64))
    assert noise is not None
    steady = (noise == noise[:, :1]).all()
    assert bool(steady) == variational
    assert set(noise.unique().tolist()) == {0.0, 2.0}
    assert stack.eval().noise(torch.ones(2, 9, 64)) is None


def test_a_loop_and_a_fused_stack_drop_the_same_way() -> None:
    """With the same masks drawn, steps are the forward pass in training too."""
    stack = Stack(LSTM, 3, 7, 3, dropout=0.5).train()
    x = torch.randn(2, 5, 3)
    torch.manual_seed(1)
    expected, _ = stack(x)
    torch.manual_seed(1)
    noises = stack.noises(x)
    projected, states, outputs = stack.layers[0].project(x), stack.zero_state(2, x), []
    for time in range(5):
        states = stack.step(projected[:, time], states, noises, time)
        outputs.append(states[-1].hidden)
    torch.testing.assert_close(torch.stack(outputs, 1), expected)


# The cache


def test_a_cache_grows_in_place_and_older_ones_stay_true() -> None:
    pieces = torch.randn(7, 2, 3, 1, 5)  # seven steps of (B, H, 1, K)
    caches = [Cache(least=4)]
    for piece in pieces:
        caches.append(caches[-1].append(piece, -piece))
    for length, cache in enumerate(caches[1:], 1):
        keys, values = cache.view()
        assert torch.equal(keys, torch.cat(list(pieces[:length]), 2))
        assert torch.equal(values, -keys)
    assert caches[3].buffer is caches[4].buffer  # no copy as long as there is room
    assert caches[1].buffer is not caches[4].buffer


def test_a_second_continuation_moves_into_its_own_room() -> None:
    pieces = torch.randn(4, 2, 3, 1, 5)
    stem = Cache().append(pieces[0], pieces[0]).append(pieces[1], pieces[1])
    one, two = stem.append(pieces[2], pieces[2]), stem.append(pieces[3], pieces[3])
    assert one.buffer is stem.buffer
    assert two.buffer is not stem.buffer
    assert torch.equal(one.view()[0][:, :, 2:], pieces[2])
    assert torch.equal(two.view()[0][:, :, 2:], pieces[3])


@pytest.mark.parametrize("trained", [(True, False), (False, True)], ids=["keys", "values"])
def test_a_cache_is_not_written_in_place_under_a_gradient(trained: tuple[bool, bool]) -> None:
    """Neither when only the keys learn, nor when only the values do, nor when only the first step does."""
    first = [torch.randn(1, 1, 1, 3, requires_grad=learns) for learns in trained]
    cache, total = Cache().append(*first), torch.zeros(())
    for _ in range(3):
        cache = cache.append(torch.randn(1, 1, 1, 3), torch.randn(1, 1, 1, 3))
        total = total + sum(part.square().sum() for part in cache.view())
    (leaf,) = (part for part in first if part.requires_grad)
    torch.testing.assert_close(torch.autograd.grad(total, leaf)[0], 6 * leaf.detach())


# Observing


def test_an_observer_may_change_what_it_sees() -> None:
    class Blind(Recorder):
        def see(self, name: str, value: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(value) if name == "weights" else value

    attention, x = Attention(InnerScore()), torch.randn(1, 3, 4)
    assert attention(x, attention.remember(x), observer=Blind()).eq(0).all()


@pytest.mark.parametrize("window", [MonotonicWindow(1), PredictedWindow(2, 1)], ids=["monotonic", "predicted"])
def test_an_observer_may_move_a_window(window: MonotonicWindow | PredictedWindow) -> None:
    class Mover(Recorder):
        def see(self, name: str, value: torch.Tensor) -> torch.Tensor:
            return torch.full_like(value, 4) if name == "centre" else value

    mask, _ = window(torch.zeros(1, 1, 2), torch.arange(1), torch.tensor([7]), 7, Mover())
    assert mask[0, 0, 0].int().tolist() == [0, 0, 0, 1, 1, 1, 0]


def test_names_say_where_a_value_was_seen() -> None:
    watch = Recorder()
    watch.at("decoder").at(2).at("cross").see("weights", torch.ones(1, 1, 1, 3))
    watch.at("decoder").at(2).at("cross").see("weights", torch.zeros(1, 1, 1, 3))
    assert watch.names() == ["decoder.2.cross.weights"]
    assert "decoder.2.cross.weights" in watch
    assert watch["decoder.2.cross.weights"].shape == (1, 1, 2, 3)


def test_additive_is_concat_with_a_bias() -> None:
    additive, concat = AdditiveScore(1, 3, 4, 5), AdditiveScore(1, 3, 4, 5, bias=False)
    concat.load_state_dict({k: v for k, v in additive.state_dict().items() if k != "bias"})
    query, keys = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 6, 4)
    torch.testing.assert_close(additive(query, additive.prepare(keys)), concat(query, concat.prepare(keys)))
    # e = vᵀ tanh(W [q; k] + b), with W = [W_q; W_k], written as it stands in the paper
    with torch.no_grad():
        assert additive.bias is not None
        additive.bias.normal_()
        joined = torch.cat((query[0, 0, 1], keys[0, 0, 4])) @ torch.cat(
            (additive.query_weight[0], additive.key_weight[0])
        )
        expected = torch.tanh(joined + additive.bias[0, 0]) @ additive.combine[0]
        torch.testing.assert_close(additive(query, additive.prepare(keys))[0, 0, 1, 4], expected)


def test_the_general_score_is_the_product_with_its_matrix() -> None:
    general = GeneralScore(2, 3, 4)
    query, keys = torch.randn(1, 2, 5, 3), torch.randn(1, 2, 6, 4)
    expected = query[0, 1, 2] @ general.weight[1] @ keys[0, 1, 4]  # qᵀ W k
    torch.testing.assert_close(general(query, general.prepare(keys))[0, 1, 2, 4], expected)


def test_the_cosine_score_is_its_sharpness_times_the_cosine() -> None:
    cosine = CosineScore(2, 3)
    torch.testing.assert_close(cosine.sharpness, torch.full((2, 1, 1), math.sqrt(3)))
    with torch.no_grad():
        cosine.sharpness.copy_(torch.tensor([2.0, 5.0])[:, None, None])
    query, keys = torch.randn(1, 2, 5, 3), torch.randn(1, 2, 6, 3)
    expected = 5 * torch.cosine_similarity(query[0, 1, 2], keys[0, 1, 4], dim=0)
    torch.testing.assert_close(cosine(query, cosine.prepare(keys))[0, 1, 2, 4], expected)


@pytest.mark.parametrize(
    ("name", "kind", "scale", "biased"),
    [
        ("dot", InnerScore, 1.0, None),
        ("scaled_dot", InnerScore, 0.5, None),  # heads of width 4: 1 / √4
        ("general", GeneralScore, 1.0, None),
        ("cosine", CosineScore, 1.0, None),
        ("additive", AdditiveScore, None, True),
        ("concat", AdditiveScore, None, False),
    ],
)
def test_a_score_is_what_its_name_says(name: str, kind: type, scale: float | None, biased: bool | None) -> None:
    settings = regard.load_settings(
        "transformer-tiny", "model.width=8", "model.heads=2", f"model.cross_attention.score={name}"
    )
    decoder = regard.encoder_decoder(settings.model, 11, 13).decoder
    assert isinstance(decoder, TransformerDecoder)
    for layer in decoder.layers:
        assert layer.cross is not None
        score = layer.cross.score
        assert type(score) is kind
        assert getattr(score, "scale", None) == scale
        assert biased is None or (score.bias is not None) == biased


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("watched", [True, False])
def test_a_key_of_zeros_has_no_direction_and_does_no_harm(dtype: torch.dtype, watched: bool) -> None:
    """A recurrent encoder's states are zero on padding."""
    attention, source = Attention(CosineScore(1, 4)).to(dtype), torch.randn(1, 3, 4, dtype=dtype)
    source[0, 2] = 0
    memory = attention.remember(source, torch.tensor([[True, True, False]]))
    context = attention(torch.randn(1, 2, 4, dtype=dtype), memory, observer=Recorder() if watched else UNOBSERVED)
    assert context.isfinite().all()


# Reading the source


def test_a_reversed_encoder_reads_back_to_front_and_answers_in_order() -> None:
    settings = [regard.load_settings(name, "model.width=5", "model.hidden=7") for name in ("lstm", "lstm-reversed")]
    torch.manual_seed(0)
    plain = regard.encoder_decoder(settings[0].model, 11, 13).eval()
    mirrored = regard.encoder_decoder(settings[1].model, 11, 13).eval()
    mirrored.load_state_dict(plain.state_dict())
    source = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
    turned = torch.tensor([[7, 6, 5, 4], [9, 8, 0, 0]])
    there, here = mirrored.encode(source), plain.encode(turned)
    assert there.final is not None
    assert here.final is not None
    torch.testing.assert_close(there.final[0].hidden, here.final[0].hidden)
    torch.testing.assert_close(there.states[0], here.states[0].flip(0))
    torch.testing.assert_close(there.states[1, :2], here.states[1, :2].flip(0))


def test_a_cache_begun_in_inference_mode_may_go_on_outside_of_it() -> None:
    pieces = torch.randn(3, 2, 1, 1, 5).unbind()
    with torch.inference_mode():
        begun = Cache(least=4).append(pieces[0], pieces[0]).append(pieces[1], pieces[1])
    grown = begun.append(pieces[2], pieces[2])
    torch.testing.assert_close(grown.view()[0], torch.cat(pieces, 2))
    torch.testing.assert_close(begun.view()[1], torch.cat(pieces[:2], 2))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_positions_stay_exact_when_the_model_is_cast(kind: torch.dtype) -> None:
    for make in (Sinusoidal, Rotary):
        exact = make(6)
        for (name, table), again in zip(exact.named_buffers(), make(6).to(kind).buffers(), strict=True):
            assert again.dtype == torch.float32, name
            assert torch.equal(again, table)
    x = torch.randn(1, 1, 9, 6, dtype=kind)
    assert Rotary(6).to(kind)(x).dtype == kind
    torch.testing.assert_close(Rotary(6).to(kind)(x), Rotary(6)(x.float()).to(kind))


def test_lengths_are_asked_for_once_however_deep_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(recurrent, "row_lengths", lambda x, mask, observer: asked.append(1) or mask.sum(1))  # noqa: ARG005
    stack = Stack(LSTM, 3, 5, depth=3)
    mask = masks.from_lengths(torch.tensor([4, 2]), 4)
    outputs, _ = stack(torch.randn(2, 4, 3), None, mask)
    assert outputs[1, 2:].eq(0).all()
    assert len(asked) == 1


class Silences:
    """Sets what it is shown under one name to zero."""

    active = True

    def __init__(self, name: str, place: str = "") -> None:
        self.name, self.place = name, place

    def at(self, place: str | int) -> Silences:
        return Silences(self.name, f"{self.place}{place}.")

    def see(self, name: str, value: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(value) if self.place + name == self.name else value


def test_a_step_goes_on_with_the_states_that_an_observer_returns() -> None:
    stack = Stack(LSTM, 3, 5, depth=2)
    x = torch.randn(2, 1, 3)
    projected, noises = stack.layers[0].project(x)[:, 0], stack.noises(x)
    cells = stack.step(projected, stack.zero_state(2, x), noises, 0, Silences("0.states"))
    assert cells[0].hidden.eq(0).all()
    assert not cells[0].cell.eq(0).all()
    expected, _ = stack.layers[1](torch.zeros(2, 1, 5))
    torch.testing.assert_close(cells[1].hidden, expected[:, 0])
