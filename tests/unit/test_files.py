"""Files and folders appear whole or not at all."""

import pytest

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
