"""Damage, as files meet it: bytes turned, lost, doubled or cut off, large numbers, values of another kind, depth."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

DEEP = b"[" * 3000
WORDS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\x1b[31m",
        b"\xed\xa0\x80",
        b"\xe2\x80\xa8",
        b"\r\n",
        b"\t\t",
        b'"',
        b"{",
        b"}",
        b"<",
        b"&x;",
    ),
    *(DEEP, b"9" * 5000, b"-1", b"1e999", b"NaN", b"null", b"../" * 20, b"/dev/zero", b"x" * 100_000, b"\n" * 50_000),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", "x", "x" * 5000, [], {}),
    *([[[[[[]]]]]], {"a": {"a": {"a": 1}}}, ["x"], [1, "x"], {"kind": "none"}, "\ud800", "../..", 1.5, -0.0),
)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """The same bytes with some damage."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        data = _once(data, chance)
    return data


def _once(data: bytes, chance: random.Random) -> bytes:  # noqa: PLR0911
    begin, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    match chance.randrange(8):
        case 0 if data:
            place = chance.randrange(len(data))
            return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
        case 1:
            return data[:begin]
        case 2:
            return data[:begin] + data[end:]
        case 3:
            return data[:end] + data[begin:end][:100_000] + data[end:]
        case 4:
            return data[:begin] + chance.choice(WORDS) + data[begin:]
        case 5:
            return data[:begin] + chance.randbytes(chance.randrange(1, 200)) + data[end:]
        case 6:
            return chance.choice((b"", b"\n", DEEP, b"{}", b"[]", b"3", b'"x"', chance.randbytes(300)))
        case _:
            lines = data.split(b"\n")
            chance.shuffle(lines)
            return b"\n".join(lines)


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """JSON with a value of another kind, or without one; what is none is damaged as bytes are."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return mutate(data, chance)
    holders = _holders(content)
    if not holders:
        return mutate(data, chance)
    holder, key = chance.choice(holders)
    if chance.random() < 0.2:
        del holder[key]
    else:
        holder[key] = chance.choice(VALUES)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def mutate_numbers(data: bytes, chance: random.Random) -> bytes:
    """Tensors of the same shapes with other numbers; what holds none is damaged as bytes are."""
    try:
        tensors = load(data)
    except SafetensorError:
        return mutate(data, chance)
    floats = [name for name, tensor in tensors.items() if tensor.is_floating_point() and tensor.numel()]
    if not floats:
        return mutate(data, chance)
    value = chance.choice((float("nan"), float("inf"), float("-inf"), 0.0, 1e38, -1e38, 1e-40, 1e4))
    for name in chance.sample(floats, chance.choice((1, len(floats)))):
        flat = tensors[name].reshape(-1)
        flat[chance.randrange(len(flat)) if chance.random() < 0.5 else slice(None)] = value
    return save(tensors)


def _holders(content: Any) -> list[tuple[Any, Any]]:
    """Every place of a value, however deep."""
    keys = list(content) if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    return [place for key in keys for place in ((content, key), *_holders(content[key]))]


def mutate_toml(data: bytes, chance: random.Random) -> bytes:
    """Settings with another value somewhere."""
    lines = data.decode("utf-8", "replace").split("\n")
    places = [number for number, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    if not places:
        return mutate(data, chance)
    place = chance.choice(places)
    value = chance.choice(
        ("0", "-1", "1", "7", "1000000", "9" * 30, "1e400", "nan", "inf", "true", '""', '"x"', "[]", "{}", "[" * 2000)
    )
    lines[place] = f"{lines[place].partition(' = ')[0]} = {value}"
    return "\n".join(lines).encode()


def damage(path: Path, chance: random.Random) -> str:  # noqa: PLR0911
    """Damage a file where it lies; what was done, in a word."""
    way = chance.randrange(10)
    if way == 0:
        path.unlink()
        return "missing"
    if way == 1:
        path.unlink()
        path.mkdir()
        return "a folder instead"
    if way == 2:
        path.unlink()
        path.symlink_to(path)
        return "a link to itself"
    data = path.read_bytes()
    if path.suffix == ".json" and way < 7:
        path.write_bytes(mutate_json(data, chance))
        return "other values"
    if path.suffix == ".toml" and way < 8:
        path.write_bytes(mutate_toml(data, chance))
        return "other settings"
    if path.suffix == ".jsonl" and way < 7:
        lines = data.split(b"\n")
        place = chance.randrange(len(lines))
        lines[place] = mutate_json(lines[place], chance)
        path.write_bytes(b"\n".join(lines))
        return "another event"
    path.write_bytes(mutate(data, chance))
    return "other bytes"
