"""A long file in blocks: cut alike by every process, finished whole, merged in order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.blocks import Block, BlockFolder, Done, Shard, blocks
from regard.errors import SettingsError
from regard.files import read_object

ROWS = [(f"line {number}",) for number in range(23)]


def upper(block: Block) -> bytes:
    return "".join(f"{block.first + place}\t{row[0].upper()}\n" for place, row in enumerate(block.rows)).encode()


@given(st.lists(st.text(max_size=5), max_size=40), st.integers(1, 50), st.integers(1, 7))
def test_the_shards_have_every_line_once_and_in_order(lines: list[str], size: int, count: int) -> None:
    rows = [(line,) for line in lines]
    shards = [[b for b in blocks(rows, size) if Shard(number, count).has(b)] for number in range(1, count + 1)]
    joined = sorted((block for shard in shards for block in shard), key=lambda block: block.number)
    assert [row for block in joined for row in block.rows] == rows
    assert [block.first for block in joined] == [block.number * size for block in joined]


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "a/2", "1/0", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="not a shard; 3/16"):
        Shard.read(text)


def test_processes_that_die_at_any_block_leave_the_output_of_one(tmp_path: Path) -> None:
    chance, whole = random.Random(3), b"".join(upper(block) for block in blocks(ROWS, 2))
    out = tmp_path / "out"
    left = -1
    for _ in range(100):
        shard, finished, names = Shard(chance.randint(1, 3), 3), BlockFolder(out, {"what": "upper"}), list[str]()
        for block in blocks(ROWS, 2):
            names.append(block.name)
            if shard.has(block) and not finished.has(block) and chance.random() < 0.5:
                finished.write(block, Done(upper(block), {}))
        left = finished.merge(names)
        assert out.exists() == (not left)
        if not left:
            break
    assert not left
    assert out.read_bytes() == whole


def test_a_line_that_has_changed_is_done_again(tmp_path: Path) -> None:
    finished = BlockFolder(tmp_path / "out", {})
    one, other = Block(0, 0, [("a", "b")]), Block(0, 0, [("a", "c")])
    finished.write(one, Done(b"x", {}))
    assert finished.has(one)
    assert not finished.has(other)


def test_blocks_of_other_work_are_not_mixed_in(tmp_path: Path) -> None:
    BlockFolder(tmp_path / "out", {"decode.beam": 5, "decode.forbid": ("a",)})
    BlockFolder(tmp_path / "out", {"decode.beam": 5, "decode.forbid": ["a"]})
    with pytest.raises(SettingsError, match=r"other work, with decode\.beam = 5, here 4"):
        BlockFolder(tmp_path / "out", {"decode.beam": 4, "decode.forbid": ["a"]})
    with pytest.raises(SettingsError, match=r"blocks of other work, with other decode\.forbid; go on as before"):
        BlockFolder(tmp_path / "out", {"decode.beam": 5, "decode.forbid": []})


def test_of_two_that_begin_at_once_with_other_work_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[Path]()

    def read(path: Path) -> dict[str, Any] | None:
        if begun:
            return read_object(path)
        begun.append(path)
        BlockFolder(tmp_path / "out", {"decode.beam": 5})  # the other comes between looking and writing
        return None

    monkeypatch.setattr("regard.data.blocks.read_object", read)
    with pytest.raises(SettingsError, match=r"other work, with decode\.beam = 5, here 4"):
        BlockFolder(tmp_path / "out", {"decode.beam": 4})
    assert [path.name for path in (tmp_path / "out.blocks").iterdir()] == ["work.json"]
