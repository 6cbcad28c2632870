"""What becomes the image of the service: its interpreter can be found there."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_links_to_the_interpreter_are_in_the_image(tmp_path: Path) -> None:
    environment, system, image = tmp_path / "env" / "bin", tmp_path / "system", tmp_path / "image"
    for folder in (environment, system):
        folder.mkdir(parents=True)
    (system / "python3.11").write_bytes(b"program")
    (system / "python3").symlink_to("python3.11")
    (environment / "python").symlink_to(system / "python3")
    (environment / "python3").symlink_to("python")
    inside = image / environment.relative_to("/")
    inside.mkdir(parents=True)
    (inside / "python").symlink_to(system / "python3")
    runpy.run_path(str(ROOT / "deploy" / "slim.py"))["copy_target"](environment / "python3", image)
    copied = image / system.relative_to("/")
    assert (copied / "python3").readlink() == Path("python3.11")
    assert (copied / "python3.11").read_bytes() == b"program"
    assert (inside / "python").readlink() == system / "python3"


def test_what_a_service_does_not_use_is_left_out_where_it_is_and_nowhere_else(tmp_path: Path) -> None:
    packages, image = tmp_path / "packages", tmp_path / "image"
    kept = ["torch/testing/_internal/common_dtype.py", "other/yaml/part.py", "torch/bin/torch_shm_manager", "a/RECORD"]
    left = [
        "torch/testing/_internal/common_methods.py",
        "yaml/part.py",
        "torch/bin/protoc",
        "a.dist-info/RECORD",
        "a/x.h",
    ]
    for name in (*kept, *left):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).touch()
    slim = runpy.run_path(str(ROOT / "deploy" / "slim.py"))
    slim["copied"](packages, image, slim["UNUSED"])
    assert sorted(path.relative_to(image).as_posix() for path in image.rglob("*") if path.is_file()) == sorted(kept)
