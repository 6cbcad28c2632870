"""A whole training and a whole report, each call that changes the disk refused once: full, broken, no permission.

    PYTHONPATH=src:tests python bench/failing_verbs.py [--minutes 10] [--every 1] [--first 1]

Whatever is refused, the verb says so in one line with exit code 5, or does without it and ends well; and nothing that
has its final name is half there. The verbs are run as from the command line, in this process. Findings are printed with
the call that brought them about; ``--first N --every 10000`` tries that one again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import corpora_for_tests as small
from failing_disk import WHOLE, Kind, failing
from regard.cli.main import run as regard
from regard.files import is_leftover
from regard.runs.archive import verify_run
from regard.trainer.start import start

SIZES = ("train.steps=2", "train.validate_every=1", "train.keep=1", "model.width=4", "data.pairs=53")


@dataclass(frozen=True)
class Verb:
    """A verb that writes, where it writes to, and what is wrong with that afterwards; empty if nothing is."""

    words: tuple[str, ...]
    place: Path
    wrong: Callable[[], str]


def verbs(folder: Path) -> dict[str, Verb]:
    """Both of them, over a small corpus and a run that has learned from it."""
    settings = small.settings("gru", *small.animals(folder), *SIZES)
    (folder / "small.toml").write_text(settings.to_toml(), encoding="utf-8")
    start(folder / "whole", settings, small.Notes(), device="cpu")
    new, out = folder / "new", folder / "out"
    command = ("train", str(folder / "small.toml"), "--out", str(new / "run"), "--device", "cpu")
    page = ("report", str(folder / "whole"), "--out", str(out / "page.html"))
    return {
        "train": Verb(command, new, lambda: damaged(new / "run", folder / "whole")),
        "report": Verb(page, out, lambda: half(out / "page.html")),
    }


def damaged(run: Path, whole: Path) -> str:
    """What is in a run and is not as it must be."""
    if not (run / "settings.toml").exists():
        there = [path.name for path in run.rglob("*") if not is_leftover(path.name)] if run.exists() else []
        return f"no settings, but {', '.join(there)}" if there else ""
    if (run / "settings.toml").read_bytes() != (whole / "settings.toml").read_bytes():
        return "settings.toml is not what it must be"
    return "; ".join(f"{name}: {note}" for name, state, note in verify_run(run) if state == "damaged")


def half(page: Path) -> str:
    there = page.read_text(encoding="utf-8") if page.exists() else "</html>"
    return "" if there.rstrip().endswith("</html>") else f"{page.name} ends with {there[-20:]!r}"


def tried(verb: Verb, number: int, kind: Kind) -> tuple[bool, str]:
    """Let one call fail: whether there was so late a one, and what was wrong."""
    shutil.rmtree(verb.place, ignore_errors=True)
    verb.place.mkdir()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), failing(number, kind) as disk:
        code = regard(list(verb.words))
    said = [line for line in err.getvalue().splitlines() if line.strip() and not line.startswith(" ")]
    wrong = ""
    if code not in ((0, 5) if disk.failed else (0,)):
        wrong = f"exit code {code}: {err.getvalue()}"
    elif code and (not said or ": " not in said[-1] or "Traceback" in err.getvalue()):
        wrong = f"not one clear line: {err.getvalue()}"
    wrong = wrong or verb.wrong()
    return disk.failed, wrong and f"{kind} at call {number} ({disk.named}): {wrong}"


def enumerated(verb: Verb, *, first: int = 1, every: int = 1) -> Iterator[str]:
    """Let every call, or one in so many, fail once in each way: what was wrong each time, mostly nothing."""
    for number in range(first, 100_000, every):
        for kind in WHOLE:
            failed, wrong = tried(verb, number, kind)
            if not failed and not wrong:
                return
            yield wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Refuse every call to the disk of a whole training and a whole report."
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="no case begins after so many")
    parser.add_argument("--every", type=int, default=1, help="one call in so many")
    parser.add_argument("--first", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    began, findings = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name, verb in verbs(Path(folder)).items():
            cases, whole = 0, True
            for wrong in enumerated(verb, first=given.first, every=given.every):
                cases += 1
                if wrong:
                    findings += 1
                    print(f"{name}: {wrong}", flush=True)
                if time.monotonic() - began > 60 * given.minutes:
                    whole = False
                    break
            print(f"{name}: {cases:,} cases{'' if whole else ', and the time was up'}", flush=True)
    print(f"{findings} findings in {time.monotonic() - began:,.0f} s")
    return min(1, findings)


if __name__ == "__main__":
    sys.exit(main())
