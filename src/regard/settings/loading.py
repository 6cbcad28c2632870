"""Settings from a preset or a file, with overrides."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

from regard.errors import SettingsError, did_you_mean
from regard.settings.call import TAKEN, CallSettings
from regard.settings.reading import Frozen, read
from regard.settings.whole import Settings


def preset_names() -> list[str]:
    """The architectures that are built in, simplest first."""
    folder = resources.files("regard.settings.presets")
    return sorted(
        (entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=_LADDER.index,
    )


_LADDER = [
    *("rnn", "gru", "lstm", "lstm-reversed", "lstm-deep", "bahdanau"),
    *("luong-dot", "luong-general", "luong-concat", "luong-local", "luong-hard"),
    *("transformer-tiny", "transformer-small", "transformer-base", "transformer-big"),
]


def load_settings(name: str | Path, *overrides: str) -> Settings:
    """Settings from a preset's name or a TOML file, with overrides such as ``model.depth=4``."""
    if Path(name).suffix == ".toml":
        path = Path(name)
        if not path.is_file():
            raise SettingsError(f"{path}: no such file; give a TOML file or one of: {', '.join(preset_names())}")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise SettingsError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    elif str(name) in preset_names():
        text = resources.files("regard.settings.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise SettingsError(f"preset = {name}: no such preset; {did_you_mean(str(name), preset_names())}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name}: not TOML; {error}") from None
    except RecursionError:
        raise SettingsError(f"{name}: not settings; tables and lists are nested too deep") from None
    for override in overrides:
        _override(values, override)
    return read(Settings, values, str(name))


def load_call(verb: str, *overrides: str) -> CallSettings:
    """What is set for a call of a verb: ``decode.beam=3``."""
    values: dict[str, Any] = {}
    for override in overrides:
        _override(values, override)
    call = read(CallSettings, values, verb)
    for section in values:
        getattr(call, section).only(TAKEN[verb].get(section, ()), f"regard {verb}")
    return call


def _override(values: dict[str, Any], override: str) -> None:
    """Set ``a.b=c`` in nested tables. The value is TOML if it can be, else a plain string."""
    path, equals, text = override.partition("=")
    if not equals or not all(path.split(".")):
        raise SettingsError(f"{override}: not an override; write it as model.depth=4")
    try:
        value = _value(text)
    except RecursionError:
        raise SettingsError(f"{override[:60]}…: nested too deep to be a setting") from None
    if path.strip() == "model.depth" and values.get("model", {}).get("kind") == "transformer":
        values["model"] |= {"encoder_depth": value, "decoder_depth": value}  # a Transformer has two, and both are meant
        return
    *tables, last = path.strip().split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise SettingsError(f"{override}: '{table}' is a value, not a table, and has nothing inside it to set")
    values[last] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def overrides_of(section: str, settings: Frozen) -> list[str]:
    """What to write for settings that are not as usual: the inverse of an override."""
    usual = type(settings)()
    return [f"{section}.{name}={written(value)}" for name, value in settings if value != getattr(usual, name)]


def written(value: Any) -> str:
    """A value as an override has it."""
    match value:
        case None:
            return ""
        case str():
            return value if _value(value) == value else json.dumps(value, ensure_ascii=False)
        case tuple():
            return ",".join(map(str, value))
        case dict():
            pairs = (f"{json.dumps(name)} = {json.dumps(each)}" for name, each in value.items())
            return f"{{{', '.join(pairs)}}}" if value else ""
        case _:
            return tomli_w.dumps({"value": value}, multiline_strings=False).removeprefix("value = ").strip()
