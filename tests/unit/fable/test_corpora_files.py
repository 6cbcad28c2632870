"""The corpus on disk: whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.errors import DataError, SettingsError
from regard.fable import files as files_module
from regard.fable import generate, write


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_files_say_what_the_stream_says(tmp_path: Path) -> None:
    folder = write(tmp_path / "deep" / "fable", "fr", train=20, valid=5, test=5, seed=3, maximum_words=15)
    for split, count in (("train", 20), ("valid", 5), ("test", 5)):
        sentences = list(generate("fr", count=count, split=split, seed=3, maximum_words=15))
        assert lines(folder / f"{split}.en") == [sentence.source for sentence in sentences]
        assert lines(folder / f"{split}.fr") == [sentence.target for sentence in sentences]
        assert lines(folder / f"{split}.tokens") == [" ".join(sentence.tokens) for sentence in sentences]
        assert lines(folder / f"{split}.tags") == [" ".join(sentence.tags) for sentence in sentences]
        assert lines(folder / f"{split}.sentiment") == [sentence.sentiment for sentence in sentences]
        for file, links in (
            ("align", [sentence.alignment for sentence in sentences]),
            ("referents", [sentence.referents for sentence in sentences]),
        ):
            read = [
                tuple(tuple(map(int, pair.split("-"))) for pair in line.split())
                for line in lines(folder / f"{split}.{file}")
            ]
            assert read == links
    assert len(list(folder.iterdir())) == 21


def test_an_empty_folder_may_be_filled_but_no_other(tmp_path: Path) -> None:
    write(tmp_path / "fable", "hi", train=2, valid=1, test=1)
    with pytest.raises(DataError, match=r"^folder = .*fable: is there already and not empty; a new name"):
        write(tmp_path / "fable", "hi", train=2, valid=1, test=1)
    (tmp_path / "empty").mkdir()
    assert len(lines(write(tmp_path / "empty", "hi", train=2, valid=1, test=1) / "train.hi")) == 2


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "fable").write_text("mine")
    with pytest.raises(DataError, match="is there already"):
        write(tmp_path / "fable", "fr")
    assert (tmp_path / "fable").read_text() == "mine"


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(files_module, "pharaoh", broken)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path / "fable", "fr", train=2, valid=1, test=1)
    assert list(tmp_path.iterdir()) == []


def test_wrong_settings_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="count = -2"):
        write(tmp_path / "fable", "fr", test=-2)
    assert list(tmp_path.iterdir()) == []
