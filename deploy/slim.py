"""All that a service needs, in a folder that becomes the image: an environment, its interpreter, their libraries.

    python deploy/slim.py /opt/regard /image

Left out are compilers' files, tests, and CTranslate2, which searches no faster than Regard does. Symbols are stripped.
Of the system there are the libraries that something links to, and nothing else: no shell, no package manager.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

UNUSED = (
    *("pip", "setuptools", "ctranslate2*", "functorch", "yaml", "_yaml", "networkx", "*.dist-info/RECORD"),
    *("torch/include", "torch/test", "torch/share", "torch/onnx", "torch/lib/*test*.so"),
    *(f"torch/testing/_internal/{name}" for name in ("common_methods*", "distributed", "generated", "opinfo")),
    *("torch/lib/libbackend_with_compiler.so", "torch/lib/libaoti_custom_ops.so"),
    *("lxml/objectify*", "lxml/html", "sympy/physics", "numpy/f2py", "numpy/_core/_simd*"),
)
STANDARD = (
    *("test", "idlelib", "ensurepip", "tkinter", "lib2to3", "turtledemo", "site-packages", "config-*", "pydoc_data"),
    "lib-dynload/_tkinter*",
)
ANYWHERE = ("__pycache__", "tests", "*.a", "*.pyi", "*.pxd", "*.h")
KEPT = "torch_shm_manager"  # of torch/bin: torch asks for it when it is imported
PROGRAMS = ("python*", "regard")  # of the environment


def copied(source: Path, target: Path, left_out: tuple[str, ...]) -> None:
    """A folder without some of what is in it; links stay links."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(source)
        return {
            name
            for name in names
            if any(Path(name).match(pattern) for pattern in ANYWHERE)
            or any(_is(inside / name, pattern) for pattern in left_out)
            or (inside.as_posix() == "torch/bin" and name != KEPT)
        }

    shutil.copytree(source, target, symlinks=True, ignore=ignored)


def _is(path: Path, pattern: str) -> bool:
    """Whether a path below the folder, from its beginning on, is of a pattern."""
    return len(path.parts) == len(Path(pattern).parts) and path.match(pattern)


def binaries(folder: Path) -> Iterator[Path]:
    """Programs and libraries."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def linked(path: Path) -> set[Path]:
    """The libraries that a program or a library links to, where the system finds them."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in re.findall(r"(/\S+) \(0x", said)}


def copy_target(link: Path, image: Path) -> None:
    """The file that a link leads to, and all links on the way: `python3` is often one to `python3.11`."""
    while link.is_symlink():
        link = Path(os.path.normpath(link.parent / link.readlink()))
        place = image / link.relative_to("/")
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(link, place, follow_symlinks=False)


def main(environment: Path, image: Path) -> None:
    standard = Path(sysconfig.get_path("stdlib"))
    packages = next(environment.glob("lib/python3*/site-packages"))
    programs = image / environment.relative_to("/") / "bin"
    programs.mkdir(parents=True)
    for path in (found for pattern in PROGRAMS for found in (environment / "bin").glob(pattern)):
        shutil.copy2(path, programs, follow_symlinks=False)
    shutil.copy2(environment / "pyvenv.cfg", programs.parent)
    copied(packages, image / packages.relative_to("/"), UNUSED)
    copied(standard, image / standard.relative_to("/"), STANDARD)
    copy_target(environment / "bin" / "python3", image)
    needed = {found for path in binaries(image) for found in linked(Path("/") / path.relative_to(image))}
    for path in sorted(needed):
        place = image / path.relative_to("/")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)  # the file that a link points to, under the link's name
    for folder in (standard.parent, packages / "torch" / "lib"):  # the libraries of other wheels do not stand it
        for path in binaries(image / folder.relative_to("/")):
            subprocess.run(["strip", "--strip-unneeded", path], check=True)
    for name in ("tmp", "etc", "runs"):
        (image / name).mkdir(exist_ok=True)
    (image / "tmp").chmod(0o1777)
    (image / "etc" / "passwd").write_text("regard:x:10001:10001::/tmp:/nologin\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
