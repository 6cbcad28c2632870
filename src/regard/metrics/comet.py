"""COMET (Rei et al., 2020), a learned metric, through the program that the user has installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from regard.errors import ResourceError
from regard.metrics.translation import Quality

PROGRAM = "comet-score"
_SCORE = re.compile(r"\bscore: (-?\d+(?:\.\d+)?)")


def comet(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], model: str, *, gpus: int = 0
) -> Quality:
    """The system score that ``comet-score --model MODEL`` gives; it may fetch the model, unless REGARD_OFFLINE=1."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise ResourceError(f"measure.comet = {model}: no {PROGRAM} on PATH; install it with pip install unbabel-comet")
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, texts in (("sources", sources), ("hypotheses", hypotheses), ("references", references)):
            path = Path(folder, f"{name}.txt")
            path.write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8", newline="\n")
            files.append(str(path))
        flags = ["--model", model, "--gpus", str(gpus)]
        command = [program, "-s", files[0], "-t", files[1], "-r", files[2], *flags]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=_environment())
    found = _SCORE.findall(done.stdout)  # segments first, the system last
    if done.returncode or not found:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise ResourceError(
            f"measure.comet = {model}: {PROGRAM} ended with code {done.returncode}; its last line: {last[:200]}"
        )
    return Quality("COMET", float(found[-1]), f"model:{model}")


def _environment() -> dict[str, str]:
    """REGARD_OFFLINE=1 also forbids downloads by the hub's client."""
    offline = os.environ.get("REGARD_OFFLINE") == "1"
    return {**os.environ, **({"HF_HUB_OFFLINE": "1"} if offline else {})}
