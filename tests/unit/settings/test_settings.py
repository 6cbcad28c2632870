"""Settings: presets, overrides, round trips."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.errors import SettingsError
from regard.settings import LuongDecoderSettings, RecurrentModel, TransformerModel
from regard.settings.reading import read

every_preset = pytest.mark.parametrize("preset", regard.preset_names())


def test_the_ladder_is_complete_and_in_order() -> None:
    assert regard.preset_names() == [
        *("rnn", "gru", "lstm", "lstm-reversed", "lstm-deep", "bahdanau", "conditional"),
        *("luong-dot", "luong-general", "luong-concat", "luong-local", "luong-hard"),
        *("transformer-tiny", "transformer-ssru", "transformer-student"),
        *("transformer-small", "transformer-base", "transformer-big"),
    ]


@every_preset
def test_a_preset_survives_toml(preset: str) -> None:
    settings = regard.load_settings(preset)
    assert read(regard.Settings, tomllib.loads(settings.to_toml()), "round trip") == settings


@every_preset
def test_a_preset_says_what_it_is(preset: str) -> None:
    about = regard.load_settings(preset).about
    assert about.endswith(".")
    assert len(about) <= 110


@settings(max_examples=23)
@given(
    width=st.integers(1, 64),
    heads=st.integers(1, 8),
    dropout=st.floats(0, 0.99),
    norm=st.sampled_from(["layer", "rms", "batch"]),
    reach=st.integers(1, 9),
)
def test_any_settings_survive_toml(width: int, heads: int, dropout: float, norm: str, reach: int) -> None:
    settings = regard.load_settings(
        "transformer-tiny",
        *(f"model.width={width * heads}", f"model.heads={heads}", f"model.dropout={dropout}", f"model.norm={norm}"),
        f"model.cross_attention.window={{kind='monotonic', reach={reach}}}",
    )
    assert read(regard.Settings, tomllib.loads(settings.to_toml()), "round trip") == settings


def test_overrides_reach_any_depth_and_later_ones_win() -> None:
    settings = regard.load_settings(
        "lstm", "model.decoder.kind=luong", "model.decoder.attention.score=dot", "model.depth=2", "model.depth=3"
    )
    assert isinstance(settings.model, RecurrentModel)
    assert isinstance(settings.model.decoder, LuongDecoderSettings)
    assert (settings.model.decoder.attention.score, settings.model.depth) == ("dot", 3)


def test_a_file_is_read_as_a_preset_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(regard.load_settings("gru").to_toml())
    assert regard.load_settings(path) == regard.load_settings("gru")


def test_settings_cannot_be_changed() -> None:
    settings = regard.load_settings("gru")
    with pytest.raises(ValueError, match="frozen"):
        settings.about = "other"  # type: ignore[misc]


def test_base_and_big_are_the_papers() -> None:
    expected = {"transformer-base": (512, 8, 2048, 0.1), "transformer-big": (1024, 16, 4096, 0.3)}
    for name, sizes in expected.items():
        model = regard.load_settings(name).model
        assert isinstance(model, TransformerModel)
        assert (model.width, model.heads, model.hidden, model.dropout) == sizes
        assert (model.encoder_depth, model.decoder_depth, model.norm_place) == (6, 6, "after")
        assert (model.positions, model.activation) == ("sinusoidal", "relu")


def test_base_has_the_papers_number_of_parameters() -> None:
    """65 million over 37,000 shared pieces (Vaswani et al., 2017, table 3)."""
    model = regard.encoder_decoder(regard.load_settings("transformer-base").model, 37_000, 37_000)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert 62e6 < count < 66e6


@pytest.mark.parametrize(
    "override",
    [
        f"model.width={10**18}",
        f"model.width={10**30}",
        "model.depth=100000000",
        f"model.hidden={1 << 30}",
        f"train.steps={10**30}",
    ],
)
def test_what_no_machine_has_room_for_is_refused_before_it_is_tried(override: str) -> None:
    name, _, value = override.partition("=")
    with pytest.raises(SettingsError, match=rf"{name} = {value}: not valid; should be less than or equal to \d+$"):
        regard.load_settings("luong-dot", override)


def test_what_is_nested_too_deep_is_refused(tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"model\.depth=\[\[.*…: nested too deep to be a setting"):
        regard.load_settings("lstm", "model.depth=" + "[" * 20_000)
    (tmp_path / "deep.toml").write_text("x = " + "[" * 20_000)
    with pytest.raises(SettingsError, match=r"deep\.toml: not settings; tables and lists are nested too deep"):
        regard.load_settings(tmp_path / "deep.toml")


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000])
def test_a_number_of_thousands_of_digits_is_refused(number: str, tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"train\.steps = '\w+': not valid; should be a valid integer"):
        regard.load_settings("lstm", f"train.steps={number}")
    (tmp_path / "long.toml").write_text(f"[train]\nsteps = {number}\n")
    with pytest.raises(SettingsError, match=r"long\.toml: not settings; a number has thousands of digits"):
        regard.load_settings(tmp_path / "long.toml")
