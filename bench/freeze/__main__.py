"""What users see, written down before a change and compared after it.

    python bench/freeze write FOLDER      write it
    python bench/freeze compare FOLDER    write it again elsewhere and list what is different; 1 if anything is

Only what users have is asked: verbs, routes and the public Python names. So the same script runs before and after
modules are moved. Numbers may differ by 1e-4 of their size; times, dates and places are left out (`plain.py`).
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "80", "NO_COLOR": "1"}  # before torch is imported

import commands
import models
import python_names
import routes
import verbs
from differences import differences
from plain import Plain

_NUMBERS = re.compile(r"\[\s+((?:-?[\d.]+(?:e[+-]?\d+)?,?\s+)+)\]")


def write(folder: Path) -> None:
    """Ask for everything and write the answers."""
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"{folder}: is not empty; remove it, or choose another")
    commands.warm_up()
    with TemporaryDirectory(prefix="regard-freeze-") as corner:
        work = Path(corner).resolve()
        (work / "pages").mkdir()
        plain = Plain(work=work)
        _write_answers(folder, work, plain)


def _write_answers(folder: Path, work: Path, plain: Plain) -> None:
    helps = verbs.every_help(work)
    verbs.check_known(helps)
    for verb, text in helps.items():
        _keep(folder / "help" / f"{verb.replace(' ', '-') or 'regard'}.txt", text)
    _tell("help")
    models.make_corpus(work)
    _keep(folder / "translations.json", models.translations(work))
    _tell("translations")
    _keep(folder / "training.json", models.train_runs(work, plain))
    _tell("runs")
    _keep(folder / "losses.json", models.losses(work))
    _tell("losses")
    for verb, found in verbs.answers(work, helps, plain):
        _keep(folder / "verbs" / f"{verb.replace(' ', '-')}.json", found)
        _tell(verb)
    for name, text in verbs.pages(work, plain):
        _keep(folder / "pages" / name, text)
    _tell("pages")
    for name, answer in routes.answers(work, plain):
        _keep(folder / f"{name}.json", answer)
    _tell("routes")
    _keep(folder / "names.json", python_names.names())


def _keep(file: Path, content: Any) -> None:
    """Text as it is; values one a line, but numbers beside each other."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str):
        text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
        content = _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"
    file.write_text(content, encoding="utf-8")


def _tell(what: str) -> None:
    print(f"{time.process_time() + sum(os.times()[2:4]):6.1f} s  {what}", file=sys.stderr, flush=True)


def compare(before: Path) -> int:
    """List what is different now."""
    if not before.is_dir():
        raise SystemExit(f"{before}: is not there; write it first")
    with TemporaryDirectory(prefix="regard-frozen-") as corner:
        after = Path(corner, "after")
        write(after)
        found = list(differences(before, after))
    for where, old, new in found:
        print(f"{where}\n  - {_clipped(old)}\n  + {_clipped(new)}")
    print(f"{len(found)} differences" if found else "nothing is different")
    return int(bool(found))


def _clipped(text: str, most: int = 400) -> str:
    shown = text if len(text) <= most else f"{text[:most]}…"
    return shown.replace("\n", "\n    ")


def main() -> int:
    match sys.argv[1:]:
        case ["write", folder]:
            write(Path(folder))
            return 0
        case ["compare", folder]:
            return compare(Path(folder))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
