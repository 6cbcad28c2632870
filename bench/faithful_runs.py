"""Every figure about maps and links that needs trained runs, in one command: trains them, measures them, makes a table.

    python bench/faithful_runs.py DATA --out OUT [--work WORK] [--limit 560] [--at-once 3] [--only NAME …]

DATA has europarl-de-en/, alignment/ and greek/ (``bench/faithful.py --greek``). Of the built-in corpus three runs are
trained (bahdanau, transformer-tiny, transformer-small), on Europarl those of ``bench/guided.py``, of the Greek New
Testament one on all verses but every fiftieth; on these it is measured. Every run is then measured by
``bench/faithful.py``. A job is a process; ``--at-once`` of them run at a time, and one that fails stops only those that
need it. After ``--limit`` seconds what still runs is stopped; the same command goes on from there, because
runs and results stay in WORK. OUT gets results.json with all figures, table.md, weights.npz (what guided heads look
at, from which links can be read again) and log.txt, also when it was stopped. ``--set`` gives settings to the trainings
on Europarl and Greek; ``--variant`` adds models of ``bench/guided.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guided import read_golds, summary

HERE = Path(__file__).parent
FABLE = ("bahdanau", "transformer-tiny", "transformer-small")
GRACE = 15.0  # seconds to save and stop
EVERY = 50  # of the Greek verses, one is held out
GREEK = (
    *("text.size=4000", "text.joint=false", "text.case=mark", "text.sampling=true", "model.dropout=0.3"),
    *("train.batch=8192", "train.rate=0.001", "train.warmup=400", "train.schedule=cosine", "train.smoothing=0.1"),
    *("train.validate_every=500", "train.average={kind='moving', decay=0.998}"),
)
FIGURES = ("faithfulness", "comprehensiveness", "sufficiency", "agreement", "redrawn", "error_rate", "riddles")
HEADS = ("method", "faithfulness", "comprehens.", "sufficiency", "as masking", "redrawn", "AER", "riddles")


@dataclass
class Job:
    """A process, what it needs before it, and the file that says that it is done."""

    name: str
    command: list[str]
    result: Path
    after: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    state: str = "waits"


def main() -> None:
    parser = argparse.ArgumentParser(description="All runs and figures of maps and links.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("scratch/faithful"))
    parser.add_argument("--limit", type=float, default=560)
    parser.add_argument("--at-once", type=int, default=3, help="processes")
    parser.add_argument("--threads", type=int, default=4, help="of each of them")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=6000, help="of Europarl")
    parser.add_argument("--lines", type=int, default=10**9, help="of Europarl at the most")
    parser.add_argument("--fable-steps", type=int, default=3300)
    parser.add_argument("--greek-steps", type=int, default=2500)
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--guided", nargs="*", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME+SETTING=VALUE")
    parser.add_argument("--only", nargs="*", help="jobs whose names begin so, and what they need")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="SETTING=VALUE")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    given.out.mkdir(parents=True, exist_ok=True)
    every = {job.name: job for job in jobs(given)}
    chosen = [job for job in every.values() if wanted(job, every, given.only)]
    try:
        run(chosen, given)
    finally:
        collect(chosen, given)


def wanted(job: Job, every: dict[str, Job], only: list[str] | None) -> bool:
    if not only:
        return True
    if any(job.name.startswith(name) for name in only):
        return True
    return any(job.name in other.after and wanted(other, every, only) for other in every.values())


# What there is to do


def jobs(given: argparse.Namespace) -> Iterator[Job]:
    """In the order in which they begin."""
    work, data = given.work, given.data
    yield Job("text", guided(given, "links"), work / "guided" / "links.json")
    yield from of_fable(given, FABLE[:2])
    names = ["de-en", plus("de-en-guided", given.guided), plus("en-de-guided", given.guided), *given.variant]
    for name in names:
        yield Job(name, guided(given, name), work / "guided" / f"{name}.json", after=("text",))
    yield from of_fable(given, FABLE[2:])
    gold = [str(data / "alignment" / f"de-en.{side}") for side in ("de", "en", "align")]
    for name in names[:2]:
        run = work / "guided" / name
        yield Job(f"{name}-maps", faithful(given, run, gold), result(given, run), after=(name,))
    greek(data / "greek", work / "greek")
    run = work / "greek" / "grc-en"
    yield Job("greek", trained(given, run), run / "trained")
    yield Job("greek-maps", faithful(given, run, held(work / "greek")), result(given, run), after=("greek",))


def of_fable(given: argparse.Namespace, presets: tuple[str, ...]) -> Iterator[Job]:
    for preset in presets:
        run, more = given.work / "fable" / preset, ["--train", preset, "--steps", str(given.fable_steps)]
        yield Job(f"fable-{preset}", faithful(given, run, [], more), result(given, run))


def plus(name: str, settings: list[str]) -> str:
    return "+".join((name, *settings))


def python(script: str, *words: object) -> list[str]:
    return [sys.executable, str(HERE / script), *map(str, words)]


def guided(given: argparse.Namespace, name: str) -> list[str]:
    limits = ("--steps", given.steps, "--lines", given.lines, "--device", given.device)
    more = ("--set", *given.settings) if given.settings else ()
    return python("guided.py", given.data, "--model", name, "--out", given.work / "guided", *limits, *more)


def faithful(given: argparse.Namespace, run: Path, files: list[str], more: list[str] | None = None) -> list[str]:
    named = [word for pair in zip(("--source", "--target", "--alignment"), files, strict=False) for word in pair]
    limits = ("--sentences", given.sentences, "--device", given.device, "--out", given.work / "maps")
    return python("faithful.py", run, *named, *limits, *(more or ()))


def result(given: argparse.Namespace, run: Path) -> Path:
    return Path(given.work / "maps" / f"{run.name}.json")


def trained(given: argparse.Namespace, run: Path) -> list[str]:
    """The Greek run."""
    files = [f"--source={run.parent}/train.grc", f"--target={run.parent}/train.en"]
    valid = [f"data.valid_{side}='{(run.parent / file).absolute()}'" for side, file in HELD]
    words = ["transformer-small", *GREEK, *valid, f"train.steps={given.greek_steps}", *given.settings]
    return [sys.executable, "-m", "regard", "train", *words, *files, f"--out={run}", "--continue",
            f"--device={given.device}"]  # fmt: skip


HELD = (("source", "held.grc"), ("target", "held.en"))


def greek(data: Path, work: Path) -> None:
    """Divide the verses: those to train on, and every fiftieth with its links."""
    if not (data / "grc.txt").exists():
        return
    work.mkdir(parents=True, exist_ok=True)
    for name, out in (("grc.txt", "grc"), ("en.txt", "en"), ("grc-en.align", "align")):
        lines = (data / name).read_text(encoding="utf-8").splitlines()
        for part, here in (("train", False), ("held", True)):
            some = [line for number, line in enumerate(lines) if (number % EVERY == 0) == here]
            (work / f"{part}.{out}").write_text("".join(f"{line}\n" for line in some), encoding="utf-8")


def held(folder: Path) -> list[str]:
    return [str(folder / f"held.{side}") for side in ("grc", "en", "align")]


# Running


def run(chosen: list[Job], given: argparse.Namespace) -> None:
    """Until all are done, or the time is over."""
    end, known = time.monotonic() + given.limit, {job.name: job for job in chosen}
    (given.work / "logs").mkdir(exist_ok=True)
    for job in chosen:
        if job.result.exists():
            job.state = "done before"
    while any(job.state in ("waits", "runs") for job in chosen) and time.monotonic() < end:
        for job in chosen:
            watch(job)
            needed = [known[name].state for name in job.after if name in known]
            if job.state == "waits" and any(state.startswith(("failed", "not")) for state in needed):
                tell(job, "not begun: what it needs failed")
            ready = all(state.startswith("done") for state in needed)
            if job.state == "waits" and ready and sum(each.state == "runs" for each in chosen) < given.at_once:
                begin(job, given)
        time.sleep(0.5)
    for job in chosen:
        if job.state == "runs" and job.process is not None:
            job.process.terminate()
            tell(job, "stopped: the time was over; the same command goes on")
        elif job.state == "waits":
            job.state = "not begun: the time was over"
    for job in chosen:
        if job.process is not None:
            try:
                job.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                job.process.kill()


def begin(job: Job, given: argparse.Namespace) -> None:
    path = os.pathsep.join(filter(None, (str(HERE.parent / "src"), str(HERE), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(given.threads)}
    with (given.work / "logs" / f"{job.name}.txt").open("ab") as log:
        job.process = subprocess.Popen(job.command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    job.began = time.monotonic()
    tell(job, "runs")


def watch(job: Job) -> None:
    """Whether it has ended."""
    if job.state != "runs" or job.process is None or job.process.poll() is None:
        return
    seconds = f"{time.monotonic() - job.began:.0f} s"
    if job.process.returncode:
        tell(job, f"failed with {job.process.returncode} after {seconds}")
    else:
        job.result.touch()
        tell(job, f"done in {seconds}")


def tell(job: Job, state: str) -> None:
    job.state = state
    print(f"{time.strftime('%H:%M:%S')} {job.name}: {state}", flush=True)


# What was found


def collect(chosen: list[Job], given: argparse.Namespace) -> None:
    """Write what there is so far."""
    maps = {path.stem: json.loads(path.read_text()) for path in sorted((given.work / "maps").glob("*.json"))}
    links = summary(given.work / "guided", read_golds(given.data)) if (given.work / "guided").exists() else {}
    states = {job.name: job.state for job in chosen}
    given_words = {name: str(value) for name, value in vars(given).items()}
    whole = {"command": given_words, "jobs": states, "maps": maps, "links": links}
    (given.out / "results.json").write_text(json.dumps(whole) + "\n", encoding="utf-8")
    table = [*(line for name, found in maps.items() for line in table_of(name, found)), *lines_of(links)]
    (given.out / "table.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    weights = {
        f"{path.stem}/{name}": values
        for path in sorted((given.work / "guided").glob("*.npz"))
        for name, values in np.load(path).items()
    }
    np.savez_compressed(given.out / "weights.npz", **weights)
    logs = [f"== {path.stem}\n{tail(path)}" for path in sorted((given.work / "logs").glob("*.txt"))]
    (given.out / "log.txt").write_text("\n".join(logs), encoding="utf-8")
    print("\n".join(table), json.dumps(states, indent=1), sep="\n", flush=True)


def tail(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-6000:]


def table_of(name: str, found: dict[str, Any]) -> list[str]:
    """One run's methods, a row each, as docs/looking-inside.md has them."""
    lines = [f"\n**{name}**, {found['sentences']} sentences of {found['measured_on']}, {found['words']} words\n"]
    lines += ["| " + " | ".join(HEADS) + " |", "|---|" + "---:|" * (len(HEADS) - 1)]
    for each in found["methods"]:
        figures = [figure(each[key]) for key in FIGURES]
        lines.append("| " + " | ".join((each["method"], *figures)) + " |")
    if found["aligner"]:
        lines.append(f"\nthe run's own links: AER {figure(found['aligner'])}")
    rates = {each["method"]: each["error_rate"][0] for each in found["methods"] if each["error_rate"]}
    mean = rates.get("attention, mean")
    best = min((rate, method) for method, rate in rates.items())
    if mean:
        lines.append(f"fewest errors: {best[1]}, {1 - best[0] / mean:.0%} fewer than the mean of all heads")
    return lines


def figure(ends: list[float] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.2f} ±{(ends[2] - ends[1]) / 2:.2f}"


def lines_of(links: dict[str, Any]) -> list[str]:
    lines = ["\n| model | AER, own reading | chosen on dev | BLEU | steps |", "|---|---:|---:|---:|---:|"]
    for name, row in links.items():
        rates, bleu = row["aer"], (row.get("bleu") or {}).get("score", "")
        joined = "grow-diag-final-and"
        shown = [rates.get(how, rates.get(f"{how}, {joined}", "")) for how in ("own", "chosen")]
        lines.append(f"| {name} | {shown[0]} | {shown[1]} | {bleu} | {row.get('steps', '')} |")
    return lines


if __name__ == "__main__":
    main()
