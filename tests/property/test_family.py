"""Every member of the attention family, as recurrent attention and inside a Transformer."""

from __future__ import annotations

import copy
from itertools import product

import pytest
import torch

import tiny
from regard.errors import SettingsError
from regard.nn.observe import Recorder
from regard.text.vocabulary import END, START

SCORES = ("dot", "scaled_dot", "general", "additive", "concat", "cosine")
NORMALISERS = ("softmax", "relu")
SELECTIONS = ("soft", "hard")
WINDOWS = ('{kind="none"}', '{kind="monotonic", reach=1}', '{kind="predicted", reach=2}')
MEMBERS = [member for member in product(SCORES, NORMALISERS, SELECTIONS, WINDOWS) if member[1:3] != ("relu", "hard")]
every_member = pytest.mark.parametrize("member", MEMBERS, ids="-".join)

SOURCE = tiny.rows([7, 3, 1], tiny.SOURCE_SIZE, 3)
TARGET = tiny.rows([4, 6, 5], tiny.TARGET_SIZE, 4, first=1)


def overrides(where: str, member: tuple[str, str, str, str]) -> list[str]:
    return [
        f"{where}.{name}={value}"
        for name, value in zip(("score", "normaliser", "selection", "window"), member, strict=True)
    ]


def check(preset: str, *changes: str) -> None:
    """Steps, the forward pass and the written-out pass agree; a padded source changes nothing."""
    model = tiny.translator(preset, *changes)
    with torch.no_grad():
        whole = model(SOURCE, TARGET)
        assert whole.isfinite().all()
        _, state = model.start(SOURCE)
        for time in range(TARGET.shape[1]):
            logits, state = model.step(TARGET[:, time], state)
            torch.testing.assert_close(logits, whole[:, time], atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(model(SOURCE, TARGET, observer=Recorder()), whole, atol=1e-9, rtol=1e-9)
        padded = torch.nn.functional.pad(SOURCE, (0, 3))
        torch.testing.assert_close(model(padded, TARGET), whole, atol=1e-9, rtol=1e-9)


@every_member
@pytest.mark.parametrize("order", ["bahdanau", "luong", "conditional"])
def test_in_a_recurrent_decoder(order: str, member: tuple[str, str, str, str]) -> None:
    changes = overrides("model.decoder.attention", member)
    check("luong-dot", f"model.decoder={{kind='{order}'}}", *changes)


@every_member
@pytest.mark.parametrize("place", ["encoder_attention", "decoder_attention", "cross_attention"])
def test_in_a_transformer(place: str, member: tuple[str, str, str, str]) -> None:
    changes = overrides(f"model.{place}", member)
    if place == "decoder_attention" and "predicted" in member[3]:
        with pytest.raises(SettingsError, match="still growing"):
            tiny.settings("transformer-tiny", *changes)
        return
    check("transformer-tiny", *changes)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("preset", "where"), [("luong-dot", "model.decoder.attention"), ("transformer-tiny", "model.cross_attention")]
)
def test_a_beam_may_read_several_tokens_at_once(preset: str, where: str, window: str) -> None:
    """Hypotheses that share a source ask from their own places, and read as copies of the source would."""
    model = tiny.translator(preset, f"{where}.window={window}")
    beam, prefix = 2, TARGET[:, :1]
    more = tiny.rows([4] * (beam * len(SOURCE)), tiny.TARGET_SIZE, 5)
    with torch.no_grad():
        _, state = model.start(SOURCE)
        _, state = model.advance(prefix, state)
        shared, _ = model.advance(more, state.select(torch.arange(len(SOURCE))[:, None].expand(-1, beam)))
        whole = torch.cat((prefix.repeat_interleave(beam, 0), more), 1)
        copied = model(SOURCE.repeat_interleave(beam, 0), whole)[:, 1:]
    torch.testing.assert_close(model.project(shared), copied, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("projected", ["true", "false"])
def test_a_recurrent_decoder_may_have_several_heads(score: str, projected: str) -> None:
    attention = f"{{score='{score}', heads=4, projected={projected}}}"
    check("luong-dot", "model.hidden=12", f"model.decoder.attention={attention}")


@pytest.mark.parametrize("score", SCORES)
def test_projections_let_any_score_read_a_bidirectional_encoder(score: str) -> None:
    attention = f"{{score='{score}', projected=true}}"
    check("bahdanau", f"model.decoder.attention={attention}")


@pytest.mark.parametrize("cell", ["elman", "lstm", "gru"])
@pytest.mark.parametrize(
    "decoder",
    [
        *("{kind='context'}", "{kind='bahdanau'}", "{kind='luong'}", "{kind='luong', feeding=false}"),
        *("{kind='conditional'}", "{kind='conditional', second='layer'}"),
    ],
)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_cell_under_every_decoder(cell: str, decoder: str, bidirectional: bool) -> None:
    both = ("model.bidirectional=true", "model.bridge=dense") if bidirectional else ()
    check("lstm", f"model.cell={cell}", f"model.decoder={decoder}", "model.depth=2", *both)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bridge", ["dense", "mean", "zero"])
@pytest.mark.parametrize("annotations", ["plain", "dense"])
@pytest.mark.parametrize("order", ["bahdanau", "luong", "conditional"])
def test_every_bridge_to_every_order(cell: str, bridge: str, annotations: str, order: str) -> None:
    ends = (f"model.bridge={bridge}", f"model.annotations={annotations}", "model.bidirectional=true")
    check("lstm", f"model.cell={cell}", f"model.decoder={{kind='{order}'}}", "model.depth=2", *ends)


POSITIONS, ACTIVATIONS = ("sinusoidal", "learned", "rotary", "none"), ("relu", "gelu", "silu", "swiglu")
NORMS = list(product(("layer", "rms", "batch"), ("before", "after")))
BLOCKS = [  # any two values of different columns meet
    (positions, norm, place, ACTIVATIONS[(row + column) % len(ACTIVATIONS)])
    for row, positions in enumerate(POSITIONS)
    for column, (norm, place) in enumerate(NORMS)
]


@pytest.mark.parametrize(("positions", "norm", "place", "activation"), BLOCKS)
def test_every_transformer_block(positions: str, norm: str, place: str, activation: str) -> None:
    check(
        "transformer-tiny",
        "model.heads=5",
        "model.width=30",
        f"model.positions={positions}",
        f"model.norm={norm}",
        f"model.norm_place={place}",
        f"model.activation={activation}",
    )


FOREIGN = {  # what models from elsewhere have, one by one and as they come
    "halves": ("model.interleaved=false",),
    "frequencies": ("model.frequencies=marian",),
    "first position": ("model.first_position=2",),
    "no scale": ("model.embedding_scale=false",),
    "embedding norm": ("model.embedding_norm=true",),
    "epsilon": ("model.norm_epsilon=0.01",),
    "final norm": ("model.norm_place=after", "model.final_norm=yes"),
    "no final norm": ("model.final_norm=no",),
    "zero start": ("model.start=zero", "model.tie=target"),
    "ssru": ("model.autoregression=ssru",),
    "ssru, rotary": ("model.autoregression=ssru", "model.positions=rotary", "model.width=24"),
    "fairseq": ("model.interleaved=false", "model.frequencies=marian", "model.first_position=2"),
    "student": (
        *("model.interleaved=false", "model.frequencies=marian", "model.start=zero", "model.tie=all"),
        *("model.norm_place=after", "model.norm_epsilon=1e-6", "model.autoregression=ssru"),
    ),
}


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
def test_what_models_from_elsewhere_have(changes: tuple[str, ...]) -> None:
    check("transformer-tiny", *changes)


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
def test_every_member_is_another_function(changes: tuple[str, ...]) -> None:
    """With the same weights it says something else: no setting is without effect."""
    plain = tiny.translator("transformer-tiny", *(each for each in changes if "tie" in each or "width" in each))
    other = tiny.translator("transformer-tiny", *changes)
    shared = {name: value for name, value in plain.state_dict().items() if name in other.state_dict()}
    copied = copy.deepcopy(other)
    copied.load_state_dict(shared, strict=False)
    with torch.no_grad():
        assert (copied(SOURCE, TARGET) - plain(SOURCE, TARGET)).abs().max() > 1e-3


@pytest.mark.parametrize("preset", ["gru", "transformer-tiny"])
def test_a_zero_start_reads_nothing_of_its_row(preset: str) -> None:
    model = copy.deepcopy(tiny.translator(preset, "model.start=zero"))
    with torch.no_grad():
        before = model(SOURCE, TARGET)
        model.decoder.embedding.weight[START] += 1.0
        torch.testing.assert_close(model(SOURCE, TARGET)[..., END:], before[..., END:], atol=0, rtol=0)


@pytest.mark.parametrize("score", ["dot", "general", "cosine"])
def test_rotary_positions_go_with_every_inner_product(score: str) -> None:
    changes = [f"model.{place}.score={score}" for place in ("encoder_attention", "decoder_attention")]
    check("transformer-tiny", "model.width=30", "model.heads=5", "model.positions=rotary", *changes)
