"""Files and folders appear whole or not at all."""

import errno
import os
import threading
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from regard import files
from regard.files import new_file, new_folder


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path) -> None:
    path = tmp_path / "a" / "file"
    with new_file(path) as file:
        file.write(b"old")
    with pytest.raises(ZeroDivisionError), new_file(path) as file:
        file.write(bytes(1 // 0))
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_folder_replaces_the_old_one_whole(tmp_path) -> None:
    path = tmp_path / "folder"
    with new_folder(path) as beside:
        (beside / "old").write_text("1", encoding="utf-8")
    with new_folder(path) as beside:
        (beside / "new").write_text("2", encoding="utf-8")
    assert [entry.name for entry in path.iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_fails_half_way_leaves_the_old_one(tmp_path) -> None:
    path = tmp_path / "folder"
    with new_folder(path) as beside:
        (beside / "old").write_text("1", encoding="utf-8")
    with pytest.raises(KeyError), new_folder(path) as beside:
        raise KeyError
    assert [entry.name for entry in path.iterdir()] == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_folder_that_cannot_be_renamed_into_place_leaves_the_old_one(tmp_path) -> None:
    path = tmp_path / "folder"
    with new_folder(path) as beside:
        (beside / "old").write_text("1", encoding="utf-8")
    with pytest.raises(FileNotFoundError), new_folder(path) as beside:
        beside.rename(tmp_path / "elsewhere")
    assert [entry.name for entry in path.iterdir()] == ["old"]


def test_new_files_have_the_usual_permissions(tmp_path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with new_file(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_is_followed_and_stays_a_link(tmp_path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    with new_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"


def test_what_is_replaced_keeps_its_permissions(tmp_path) -> None:
    (tmp_path / "secret").write_bytes(b"old")
    (tmp_path / "secret").chmod(0o600)
    with new_file(tmp_path / "secret") as file:
        file.write(b"new")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with new_file(pipe) as file:
        file.write(b"through")
    reader.join(60)
    assert read == [b"through"]
    assert pipe.is_fifo()


def test_a_device_stays_a_device() -> None:
    with new_file(files.Path(os.devnull)) as file:
        file.write(b"nothing")
    assert files.Path(os.devnull).is_char_device()


def test_the_name_of_an_open_file_is_written_through(tmp_path) -> None:
    """`--out /dev/stdout > file` must not put another file into the place of the one that the shell has opened."""
    with (tmp_path / "file").open("wb") as opened:
        with new_file(files.Path(f"/dev/fd/{opened.fileno()}")) as file:
            file.write(b"through")
        assert os.fstat(opened.fileno()).st_ino == (tmp_path / "file").stat().st_ino
    assert (tmp_path / "file").read_bytes() == b"through"


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory here")  # noqa: PTH112
def test_a_file_system_in_memory_is_one_like_others() -> None:
    """It is below /dev, and holds no devices."""
    with TemporaryDirectory(dir="/dev/shm") as place:
        with new_file(files.Path(place) / "new" / "file") as file:
            file.write(b"whole")
            assert not (files.Path(place) / "new" / "file").exists()
        assert (files.Path(place) / "new" / "file").read_bytes() == b"whole"


def test_permissions_of_the_process_are_never_touched(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("another thread's file would be world-writable"))
    with new_file(tmp_path / "file"), new_folder(tmp_path / "folder"):
        pass


def test_a_folder_steps_aside_where_two_cannot_change_places(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_exchange", lambda *_: False)
    test_a_folder_replaces_the_old_one_whole(tmp_path)


def test_an_overwritten_folder_is_never_away(tmp_path, monkeypatch) -> None:
    """Between the old and the new one there is no moment in which neither has the name."""
    path = tmp_path / "folder"
    with new_folder(path) as beside:
        (beside / "old").write_text("1", encoding="utf-8")
    monkeypatch.setattr(files.Path, "rename", lambda *_: pytest.fail("two renames leave a moment between them"))
    with new_folder(path) as beside:
        (beside / "new").write_text("2", encoding="utf-8")
    assert [entry.name for entry in path.iterdir()] == ["new"]


def test_a_system_without_exchange_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files.ctypes, "CDLL", lambda _: object())
    assert not files._exchange(tmp_path, tmp_path)


def test_of_several_writers_the_first_is_kept(tmp_path: Path) -> None:
    for number in (1, 2):
        files.write_first(tmp_path / "new" / "work.json", {"number": number})
    assert files.read_object(tmp_path / "new" / "work.json") == {"number": 1}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["work.json"]


@pytest.mark.parametrize(("kind", "written"), [(errno.EPERM, {"number": 1}), (errno.ENOSPC, None)])
def test_a_disk_without_hard_links_is_written_to_all_the_same(
    kind: int, written: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(kind, "no link")

    monkeypatch.setattr(os, "link", link)
    with nullcontext() if written else pytest.raises(OSError, match="no link"):
        files.write_first(tmp_path / "work.json", {"number": 1})
    assert files.read_object(tmp_path / "work.json") == written
    assert len(list(tmp_path.iterdir())) == bool(written)
