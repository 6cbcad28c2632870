"""Build what a release would be, check it, install it alone in a fresh environment, and try it there. Uploads nothing.

    python bench/release.py [--wheel FILE] [--folder .release] [--keep]

Steps: the wheel and the sdist are built; their contents, size and metadata are checked; pip installs the wheel with
constraints.txt and no extra into a new environment; there, in an empty folder, the first commands and the first Python
of the README run, the studio is served and asked, completion is timed and the documentation is found. Each step prints
a line; the first that fails ends it with exit code 1. Needs an index of Python packages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 6_000_000  # bytes of the wheel
SEARCH = "manual/search/search_index.js"
NEEDED = ("demo/best", "studio/index.html", "manual/index.html", SEARCH, "cli/completion.json", "py.typed")
ELSEWHERE = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="?(?:https?:)?//')
FORBIDDEN = re.compile(r"__pycache__|\.pyc$|/\.|^(?!regard/|regard-)")
SENTENCE = "The black cat ate the mouse."
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "_REGARD"))}


class NotReadyError(Exception):
    """A step that did not do what a release must."""


def must(condition: object, complaint: str) -> None:
    if not condition:
        raise NotReadyError(complaint)


def run(command: list[str], where: Path, **more: str) -> str:
    done = subprocess.run(
        command, cwd=where, env=CLEAN | more, capture_output=True, text=True, check=False, timeout=1800
    )
    must(done.returncode == 0, f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, and the sdist beside it."""
    tools = folder / "tools"
    run([sys.executable, "-m", "venv", str(tools)], folder)
    pip = [str(tools / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--constraint", str(ROOT / "constraints.txt"), "build", "twine"], folder)
    dist = folder / "dist"
    run([str(tools / "bin" / "python"), "-m", "build", "--outdir", str(dist), str(ROOT)], folder)
    made = sorted(map(str, dist.iterdir()))
    run([str(tools / "bin" / "twine"), "check", "--strict", *made], folder)
    (wheel,) = dist.glob("*.whl")
    return wheel


def check(wheel: Path) -> str:
    """Size, contents and metadata."""
    size = wheel.stat().st_size
    must(size <= LARGEST, f"{wheel.name}: {size:,} bytes; {LARGEST:,} at the most")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(place).decode()
        pages = {name: archive.read(name).decode() for name in names if "/manual/" in name and name.endswith(".html")}
    strange = [name for name in names if FORBIDDEN.search(name)]
    must(not strange, f"{wheel.name}: has {', '.join(strange[:5])}, which nobody needs")
    missing = [name for name in NEEDED if f"regard/{name}" not in names]
    must(not missing, f"{wheel.name}: has no {', '.join(missing)}; `make site` writes the manual")
    asking = [name for name, page in pages.items() if ELSEWHERE.search(page)]
    must(not asking, f"{wheel.name}: {', '.join(asking[:5])} load something from another host")
    version = re.search(r"^Version: (.+)$", metadata, re.MULTILINE)
    must(version, f"{wheel.name}: no version")
    assert version is not None
    must(f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "CHANGELOG.md: no such version")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    must(f"\nversion: {version[1]}\n" in citation, "CITATION.cff: another version")
    return f"{size / 1e6:.2f} MB, {len(names)} files, version {version[1]}"


def install(wheel: Path, folder: Path) -> Path:
    """A new environment with the wheel and what it needs, and nothing else."""
    place = folder / "fresh"
    run([sys.executable, "-m", "venv", str(place)], folder)
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], folder)
    return place / "bin"


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def first_commands(bin_: Path, where: Path) -> str:
    """The README's first block; the studio, which does not end by itself, has a step of its own."""
    lines = [shlex.split(line, comments=True) for line in blocks("sh")[0].splitlines()]
    asked = [words[1:] for words in lines if words and words[0].endswith("regard")]
    must(["studio"] in asked, "README.md: the first block no longer has the studio")
    said = [run([str(bin_ / "regard"), *words], where) for words in asked if words != ["studio"]]
    must(all(said), "README.md: a command of the first block says nothing")
    return said[0].strip()


def first_python(bin_: Path, where: Path) -> str:
    script = blocks("python")[0] + "\nprint(result.text, tuple(result.attention.cross.shape))\n"
    return run([str(bin_ / "python"), "-c", script], where).strip()


@contextmanager
def studio(bin_: Path, where: Path) -> Iterator[str]:
    """The address of a studio that runs meanwhile."""
    command = [str(bin_ / "regard"), "studio", "--port", "0", "--json", "serve.browser=false"]
    process = subprocess.Popen(
        command, cwd=where, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = ""
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = process.stdout.readline()
            must(line, f"regard studio: ended before it served\n{said}")
            said += line
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    must(process.returncode in (0, 130), f"regard studio: exit code {process.returncode}")


def served(bin_: Path, where: Path) -> str:
    """The page, its scripts, a translation and a look inside over HTTP."""
    with studio(bin_, where) as address:
        page = _get(address)
        must("<script" in page, "the studio's page has no script")
        for script in re.findall(r'<script[^>]+src="([^"]+)"', page):
            must(_get(f"{address}/{script.lstrip('./')}"), f"{script}: is empty")
        answer = json.loads(_get(f"{address}/api/v1/translate", {"run": "demo", "texts": [SENTENCE]}))
        trace = json.loads(_get(f"{address}/api/v1/trace", {"run": "demo", "text": SENTENCE}))
    must(trace, "the trace is empty")
    return json.dumps(answer, ensure_ascii=False)[:100]


def _get(address: str, body: object = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"} if data else {})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.read().decode())


def completed(bin_: Path, where: Path) -> str:
    """Ten times Tab; times are told and not judged: another machine has others."""
    asking = {"COMP_WORDS": "regard\ntranslate\ndemo\ndecode.b", "COMP_CWORD": "3", "_REGARD_COMPLETE": "complete_bash"}
    seconds = []
    for _ in range(10):
        began = time.perf_counter()
        said = run([str(bin_ / "regard")], where, **asking)
        seconds.append(time.perf_counter() - began)
    must(said.split() == ["decode.beam=", "decode.best="], f"completion says {said!r}")
    return f"{sorted(seconds)[5] * 1000:.0f} ms, median of ten ({min(seconds) * 1000:.0f} the least)"


def told(bin_: Path, where: Path) -> str:
    """What tells about the program: its documentation, how to cite it, and the machine."""
    manual = json.loads(run([str(bin_ / "regard"), "docs", "--json"], where))["path"]
    must(Path(manual).is_file(), f"{manual}: is not there")
    must("@software" in run([str(bin_ / "regard"), "cite"], where), "regard cite: no BibTeX")
    run([str(bin_ / "regard"), "doctor"], where)
    return Path(manual).name


def main() -> int:
    parser = argparse.ArgumentParser(description="Build, check, install and try a release. Nothing is uploaded.")
    parser.add_argument("--wheel", type=Path, help="try this wheel and build none")
    parser.add_argument("--folder", type=Path, default=ROOT / ".release")
    parser.add_argument("--keep", action="store_true", help="keep the fresh environment")
    given = parser.parse_args()
    folder: Path = given.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    (empty := folder / "empty").mkdir(parents=True)
    try:
        wheel = given.wheel.absolute() if given.wheel else build(folder)
        _step("wheel", wheel.name)
        _step("contents", check(wheel))
        bin_ = install(wheel, folder)
        steps: dict[str, Callable[[Path, Path], str]] = {
            "the README's first commands": first_commands,
            "the README's first Python": first_python,
            "the studio": served,
            "completion": completed,
            "docs, cite, doctor": told,
        }
        for name, step in steps.items():
            _step(name, step(bin_, empty))
    except NotReadyError as problem:
        print(f"not ready: {problem}", file=sys.stderr)
        return 1
    finally:
        if not given.keep:
            shutil.rmtree(folder / "fresh", ignore_errors=True)
            shutil.rmtree(folder / "tools", ignore_errors=True)
    print("ready; nothing was uploaded")
    return 0


def _step(name: str, found: str) -> None:
    print(f"{name + ':':30}{found}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
