"""Write constraints.lock: what the wheel needs, at the tested versions, with the hashes of every file of them.

    python bench/lock.py [--index https://pypi.org/simple]

pip says which packages are needed, with the versions of constraints.txt; the index says what its files hash to, for all
systems and Pythons. torch is left out, with what only its GPU builds need: it comes from one of several indexes, each
with files of its own. Needs the network.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "constraints.lock"
HEADER = """\
# What the wheel needs, with the hashes of all files of these versions. Made by make lock; torch is not among them: it
# comes from the index that suits the machine.
#
#   pip install torch=={torch}
#   pip install --no-deps --require-hashes -r constraints.lock
#   pip install --no-deps regard-….whl
"""
_APART = re.compile(r"torch|triton|nvidia-.*|cuda-.*|regard")
_FILE = re.compile(r'href="[^"#]*/(?P<file>[^"#/]+)#sha256=(?P<hash>[0-9a-f]{64})"')


def normal(name: str) -> str:
    """A name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed() -> dict[str, str]:
    """Names and versions of all that the wheel pulls in here."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*pip, "--report", str(report), "--constraint", str(CONSTRAINTS), str(ROOT)], check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {normal(each["metadata"]["name"]): each["metadata"]["version"] for each in found}


def hashes(page: str, name: str, version: str) -> list[str]:
    """The hashes of all files of a version, by the page that an index has of a package."""
    spelled = "[-_.]+".join(map(re.escape, name.split("-")))
    begin = re.compile(rf"{spelled}-{re.escape(version)}(-|\.tar\.gz|\.zip)", re.IGNORECASE)
    return sorted({each["hash"] for each in _FILE.finditer(html.unescape(page)) if begin.match(each["file"])})


def written(versions: dict[str, str], pages: dict[str, str]) -> str:
    """The whole file."""
    lines = [HEADER.format(torch=versions["torch"].partition("+")[0])]
    for name, version in sorted(versions.items()):
        if _APART.fullmatch(name):
            continue
        known = hashes(pages[name], name, version)
        if not known:
            raise SystemExit(f"{name} = {version}: the index has no file of it; choose another version, or index")
        lines.append(" \\\n".join((f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in known))) + "\n")
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write constraints.lock.")
    parser.add_argument("--index", default="https://pypi.org/simple")
    given = parser.parse_args()
    versions = needed()
    pages = {}
    for name in versions:
        if not _APART.fullmatch(name):
            with urllib.request.urlopen(f"{given.index}/{name}/", timeout=60) as answer:
                pages[name] = answer.read().decode()
    LOCK.write_text(written(versions, pages), encoding="utf-8")
    print(f"{LOCK.name}: {len(pages)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
