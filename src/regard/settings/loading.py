"""Settings from a preset or a file, with overrides."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import tomli_w

from regard.errors import SettingsError, did_you_mean
from regard.settings.call import TAKEN, CallSettings, check_drawn, listed
from regard.settings.reading import Frozen, read
from regard.settings.schema import Settings


def preset_names() -> list[str]:
    """The built-in presets, simplest first."""
    folder = resources.files("regard.settings.presets")
    return sorted(
        (entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=_LADDER.index,
    )


_LADDER = [
    *("rnn", "gru", "lstm", "lstm-reversed", "lstm-deep", "bahdanau", "conditional"),
    *("luong-dot", "luong-general", "luong-concat", "luong-local", "luong-hard"),
    *("transformer-tiny", "transformer-ssru", "transformer-student"),
    *("transformer-small", "transformer-base", "transformer-big"),
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
        raise SettingsError(f"preset = {name}: no such preset; {did_you_mean(str(name), [*preset_names(), 'auto'])}")
    try:
        values = _parse(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name}: not TOML; {error}") from None
    except ValueError:
        raise SettingsError(f"{name}: not settings; a number has thousands of digits") from None
    except RecursionError:
        raise SettingsError(f"{name}: not settings; tables and lists are nested too deep") from None
    return read_settings(values, *overrides, origin=str(name))


def read_settings(values: dict[str, Any], *overrides: str, origin: str) -> Settings:
    """Settings from nested tables, which the overrides change; errors begin with ``origin``."""
    for override in overrides:
        _override(values, override)
    return read(Settings, values, origin)


def load_call(verb: str, *overrides: str) -> CallSettings:
    """The settings of a call of a verb, from overrides such as ``decode.beam=3``."""
    values: dict[str, Any] = {}
    for override in overrides:
        _override(values, override, as_text=_text_fields())
    call = read(CallSettings, values, verb)
    for section in values:
        getattr(call, section).only(TAKEN[verb].get(section, ()), f"regard {verb}")
    if verb not in ("serve", "studio"):  # whose requests may ask for samples
        check_drawn(call.decode.model_fields_set, call.decode)
    return call


@cache
def _text_fields() -> dict[str, tuple[type, ...]]:
    """The settings of a call that are a text or a list of texts, with the TOML types that they accept."""
    accepted: dict[str, tuple[type, ...]] = {}
    for section, part in CallSettings():
        for name, field in type(part).model_fields.items():
            if field.annotation is str:
                accepted[f"{section}.{name}"] = (str,)
            elif isinstance(field.default, tuple) and int not in get_args(field.annotation):
                accepted[f"{section}.{name}"] = (str, list)
    return accepted


def _override(values: dict[str, Any], override: str, as_text: Mapping[str, tuple[type, ...]] | None = None) -> None:
    """Set ``a.b=c`` in nested tables. The value is TOML if it can be and the field accepts it, else a plain string."""
    path, equals, text = override.partition("=")
    if not equals or not all(path.split(".")):
        raise SettingsError(f"{override}: not an override; write it as model.depth=4")
    try:
        value = _value(text, (as_text or {}).get(path.strip(), (object,)))
    except RecursionError:
        raise SettingsError(f"{override[:60]}…: nested too deep to be a setting") from None
    if path.strip() == "model.depth" and values.get("model", {}).get("kind") == "transformer":
        values["model"] |= {"encoder_depth": value, "decoder_depth": value}  # a Transformer has two depths
        return
    *tables, last = path.strip().split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise SettingsError(f"{override}: '{table}' is a value, not a table, and has nothing inside it to set")
    values[last] = value


def _value(text: str, kinds: tuple[type, ...] = (object,)) -> Any:
    """A text as TOML, or as it is if it is not TOML of one of these kinds."""
    try:
        value = _parse(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, kinds) else text


def _parse(text: str) -> dict[str, Any]:
    """TOML without numbers that are too long to be written in an error message."""
    values = tomllib.loads(text)
    repr(values)  # a ValueError if a number has more digits than Python converts
    return values


def overrides_of(section: str, settings: Frozen) -> list[str]:
    """The overrides from which these settings come: the inverse of reading them."""
    default = type(settings)()
    return [f"{section}.{name}={written(value)}" for name, value in settings if value != getattr(default, name)]


def written(value: Any) -> str:
    """A value as it is written in an override."""
    match value:
        case None:
            return ""
        case str():
            return value if _reads_back(value, value) else _quoted(value)
        case tuple():
            joined = ",".join(map(str, value))
            plain = not all(isinstance(each, str) for each in value) or _reads_back(joined, value)
            return joined if plain else f"[{', '.join(map(_quoted, value))}]"
        case dict():
            pairs = (f"{_quoted(name)} = {_quoted(each)}" for name, each in value.items())
            return f"{{{', '.join(pairs)}}}" if value else ""
        case _:
            return tomli_w.dumps({"value": value}, multiline_strings=False).removeprefix("value = ").strip()


def _reads_back(text: str, value: str | tuple[str, ...]) -> bool:
    """Whether a text without quotes is read as this value."""
    try:
        read_value = _value(text)
    except RecursionError:
        return False
    if isinstance(value, str):
        return bool(read_value == value)
    return isinstance(read_value, str) and listed(read_value) == value


def _quoted(text: str) -> str:
    """A TOML string in one line: like JSON, but TOML does not allow the character 7f either."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
