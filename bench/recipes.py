"""What recipes are worth: many trainings at once on one GPU, each measured on its test set as soon as it ends.

    python bench/recipes.py run DATA OUT --suite multi30k-ablation [--seeds 1] [--processes 8] [--deadline 580]
    python bench/recipes.py run DATA OUT --suite multi30k-timed --processes 1 --seeds 1 2 3
    python bench/recipes.py run DATA OUT --suite multi30k-decay --device cpu --processes 2 --deadline 9000
    python bench/recipes.py table OUT [--ledger]
    python bench/recipes.py alone TEACHER STUDENT --source test.de.gz --target test.en.gz

DATA has the folders multi30k and europarl-de-en with `train`, `val` or `dev` and `test_2016_flickr`, packed. A suite is
a list of jobs (`suites`); a job is a training from a settings file with changes, or a verb that ends in one. What a
corpus and a vocabulary need is prepared once, beforehand, and copied into the run folders: the seconds of a result are
those of training, with capture and compilation, without validations. A job in a suite whose name ends with `timed` or
is `speed` compiles with an empty cache. Each result is a line of OUT/results.jsonl as soon as it is known: BLEU of the
test set (beam 5) with its interval and signature, at the default length penalty and at that which is best on the
validation text; BLEU of the validation text, by which recipes are to be chosen. A job that fails leaves its last lines
there. At the deadline all that still runs is stopped, and the table is printed with what there is.

`alone` translates one sentence after another on a CPU with both runs in turn, and prints how many times faster the
second is. `--smoke` is a trial of a suite with few pairs and steps on a CPU.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

CONFIGS = Path(__file__).parent.parent / "configs"
PENALTIES = (0.6, 1.0, 1.4, 2.0, 3.0)  # of length, of which the best is chosen on the validation text
IN_TURN = 3  # processes at once where the GPU serves them in turn: more would only end later
STARTS, MEASURES = 12.0, 15.0  # seconds that a process needs before its first step, and a measurement, at the most
MANY, FEW = 300, 8  # pairs for training, and for measuring, of a trial
SMOKE = (
    *("model.width=32", "model.heads=2", "model.hidden=64", "model.encoder_depth=1", "model.decoder_depth=1"),
    *("text.size=600", "train.steps=20", "train.batch=512", "train.warmup=5", "train.validate_every=0"),
    *("train.time=''", "train.step=auto", "data.longest=60"),
)


@dataclass(frozen=True)
class Corpus:
    """Files of a parallel corpus, of which some are made for it."""

    name: str
    files: dict[str, str]  # data.source, …; test_source, test_target

    def settings(self) -> list[str]:
        return [f"data.{name}={json.dumps(path)}" for name, path in self.files.items() if not name.startswith("test")]


@dataclass(frozen=True)
class Job:
    """One training, and what is done before and after it."""

    suite: str
    name: str
    recipe: str  # a file in configs/, a preset, or `auto`
    settings: tuple[str, ...] = ()
    corpus: str = "multi30k"
    seconds: float = 0.0  # limit of the training; 0 where steps are the limit
    seed: int = 1
    verb: Literal["train", "distil", "backtranslate"] = "train"
    after: str = ""  # the job whose run this one needs
    against: str = ""  # the job whose output this one is compared with

    @property
    def key(self) -> str:
        return f"{self.suite}-{self.name}-{self.seed}"


# The suites.

RDROP = "train.consistency={kind='rdrop', weight=2.0}"
ROTARY = ("model.positions=rotary", "model.activation=swiglu", "model.hidden=704")
MUON = ("train.optimizer=muon", "train.momentum=0.95")
PAPER = ("model.positions=sinusoidal", "model.activation=relu", "model.hidden=1024")  # Vaswani et al., 2017
ABLATION: dict[str, tuple[bool, tuple[str, ...]]] = {  # whether a row is read twice, and what is changed
    "plain": (False, PAPER),
    "rdrop": (True, (*PAPER, RDROP)),
    "rotary": (False, ROTARY),
    "rotary-rdrop": (True, (*ROTARY, RDROP)),
    "sampling": (False, (*PAPER, "text.sampling=true")),
    "simcut": (True, (*PAPER, "train.consistency={kind='simcut', weight=1.0}")),
    "muon": (False, (*PAPER, *MUON, "train.weight_decay=0.2")),
    "small-vocabulary": (False, (*PAPER, "text.size=4000")),
    "attention-dropout": (False, (*PAPER, "model.attention_dropout=0.1")),
}
SHARE = 0.6  # of the steps, where every row is read twice: about the same time


def ablation(steps: int) -> list[Job]:
    """One recipe after another in about equal time."""
    made = []
    for name, (twice, more) in ABLATION.items():
        limit = round(steps * (SHARE if twice else 1.0))
        how = ("train.time=''", f"train.steps={limit}", f"train.validate_every={limit}")
        made.append(Job("multi30k-ablation", name, "multi30k-de-en.toml", (*how, *more)))
    return made


def speed() -> list[Job]:
    """Steps in some seconds, one training at a time; nothing is measured but that."""
    plain = Job("speed", "graph", "multi30k-de-en.toml", ("train.shapes=12", "train.time=20s"), seconds=20)
    compiled = ("train.shapes=12", "train.time=45s", "train.step=compiled-graph", RDROP)
    europarl = ("train.time=75s", "train.validate_every=100000", RDROP)
    return [
        plain,
        replace(plain, name="muon", settings=(*plain.settings, *MUON)),
        replace(plain, name="rdrop", settings=(*plain.settings, RDROP)),
        replace(plain, name="rdrop-compiled", settings=compiled, seconds=45),
        Job("speed", "europarl-rdrop", "europarl-de-en.toml", europarl, "europarl-de-en", 75),
    ]


QUICK = ("train.shapes=12", "train.warmup=300", "train.average.decay=0.997", "train.validate_every=100000")


def timed() -> list[Job]:
    """Trainings of some seconds, each with the recipe for so many."""
    whole = Job("multi30k-timed", "150s", "multi30k-de-en-150s.toml", ("train.time=150s",), seconds=150)
    short = replace(whole, seconds=35)
    europarl = replace(whole, suite="europarl-timed", recipe="europarl-de-en.toml", corpus="europarl-de-en")
    return [
        replace(short, name="35s", recipe="multi30k-de-en.toml", settings=("train.time=35s", *QUICK)),
        replace(short, name="35s-rdrop", settings=("train.time=35s", *QUICK)),
        whole,
        *(
            replace(
                europarl,
                name=name,
                settings=(f"train.time={seconds}s", "train.validate_every=100000", *more),
                seconds=seconds,
            )
            for name, (seconds, more) in EUROPARL.items()
        ),
        replace(europarl, name="590s", recipe="europarl-de-en-590s.toml", settings=LONG, seconds=590),
    ]


LONG = ("train.time=590s", "train.validate_every=100000")
ADAMW = ("train.optimizer=adamw", "train.rate=1e-3", "train.weight_decay=0.0")
EUROPARL: dict[str, tuple[int, tuple[str, ...]]] = {
    "200s": (200, ()),
    "200s-batch": (200, ("model.dropout=0.2", "train.batch=12288", "train.warmup=700")),
    "200s-rdrop": (200, ("train.batch=6144", RDROP)),
    "200s-adamw": (200, ADAMW),
}


def europarl_ablation(steps: int) -> list[Job]:
    """What may raise the quality of Europarl's recipe, in equal steps."""
    how = ("train.time=''", f"train.steps={steps}", f"train.validate_every={steps // 2}")
    changes = {
        "plain": ("model.dropout=0.2", *ADAMW),
        "less-dropout": ("model.dropout=0.1", *ADAMW),
        "muon-2e-3": ("model.dropout=0.2", "train.weight_decay=0.0"),
        "muon-4e-3": ("model.dropout=0.2", "train.weight_decay=0.0", "train.rate=4e-3"),
    }
    return [
        Job("europarl-ablation", name, "europarl-de-en.toml", (*how, *more), "europarl-de-en")
        for name, more in changes.items()
    ]


DECAYS = {"adamw": (0.0, 0.3), "muon": (0.0, 0.1, 0.3)}


def decayed() -> list[Job]:
    """Weight decay with both optimizers, small enough for one core of a CPU: a quarter of an hour each."""
    rates = {"adamw": ("train.rate=3e-3",), "muon": ("train.rate=4e-3", *MUON)}
    model = ("model.width=128", "model.heads=4", *ROTARY, "model.hidden=352", "model.tie=all", "text.size=4000")
    learn = ("train.batch=2048", "train.steps=2500", "train.warmup=200", "train.validate_every=1250")
    more = ("train.schedule=cosine", "train.average={kind='moving', decay=0.995}", "train.metric=loss")
    return [
        Job("multi30k-decay", f"{kind}-{decay}", "transformer-small",
            (*model, *learn, *more, f"train.optimizer={kind}", *rates[kind], f"train.weight_decay={decay}"))
        for kind, tried in DECAYS.items()
        for decay in tried
    ]  # fmt: skip


PRESETS = ("bahdanau", "transformer-tiny", "transformer-small", "transformer-base")


def fitted(seconds: int) -> list[Job]:
    """`auto` beside the presets, on a part of the corpus and on all of it."""
    made, limit = [], f"train.time={seconds}s"
    for pairs in (2000, 10_000, 29_000):
        job = Job("auto", f"{pairs}-auto", "auto", (limit,), f"multi30k-{pairs}", seconds)
        made += [job, replace(job, name=f"{pairs}-auto-muon", settings=(limit, *MUON))]
        made += [replace(job, name=f"{pairs}-{preset}", recipe=preset) for preset in PRESETS]
    return made


def distilled(seconds: int) -> list[Job]:
    limit = f"train.time={seconds}s"
    teacher = Job("distil", "teacher", "multi30k-de-en-150s.toml", (limit,), seconds=seconds)
    student = replace(teacher, name="student", recipe="transformer-student", verb="distil", after="teacher")
    how = (*ROTARY, "model.tie=all", "model.dropout=0.2", "train.word_dropout=0.1", limit)
    return [
        teacher,
        replace(student, settings=how),
        replace(student, name="student-one-layer", settings=(*how, "model.decoder_depth=1")),
    ]


def backtranslated(steps: int) -> list[Job]:
    """As many steps with synthetic pairs as without."""
    limit = (f"train.steps={steps}", f"train.validate_every={steps}", "train.step=compiled-graph")
    how = (*limit, *ROTARY, "model.tie=all", "model.dropout=0.3", "train.word_dropout=0.1")
    plain = Job("backtranslate", "without", "transformer-small", how, "europarl-20k")
    reverse = replace(plain, name="reverse", corpus="europarl-20k-reverse")
    return [
        reverse,
        plain,
        replace(plain, name="pairs", verb="backtranslate", after="reverse"),
        replace(plain, name="with", corpus="europarl-20k-synthetic", after="pairs", against="without"),
    ]


def suites(asked: argparse.Namespace) -> dict[str, list[Job]]:
    return {
        "multi30k-ablation": ablation(asked.steps),
        "speed": speed(),
        **{name: [job for job in timed() if job.suite == name] for name in ("multi30k-timed", "europarl-timed")},
        "europarl-ablation": europarl_ablation(asked.steps),
        "multi30k-decay": decayed(),
        "auto": fitted(asked.seconds or 30),
        "distil": distilled(asked.seconds or 100),
        "backtranslate": backtranslated(asked.steps),
    }


# Corpora, and what is prepared of them.


def lines_of(path: Path) -> list[str]:
    opened = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return opened.decode().removesuffix("\n").split("\n")


def write(path: Path, lines: Sequence[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path.absolute())


MONOLINGUAL, START = 100_000, 20_000  # lines of one language, and pairs to begin with
HELD_OUT = 1000  # pairs at the end of Europarl that are validated on: its dev set is the test set


def open_corpus(name: str, data: Path, out: Path, *, smoke: bool) -> Corpus:
    """The corpus of a name, with the files that it needs written into WORK/texts."""
    folder = out / "texts" / name
    if name.startswith("multi30k"):
        parts = {"": "multi30k/train", "valid_": "multi30k/val", "test_": "multi30k/test_2016_flickr"}
        read = {
            f"{part}{side}": lines_of(data / f"{file}.{code}.gz")
            for part, file in parts.items()
            for side, code in (("source", "de"), ("target", "en"))
        }
        pairs = int(name.partition("-")[2] or 29_000)
        read |= {side: read[side][:pairs] for side in ("source", "target")}
    else:
        read = _europarl(name, data, out)
    if smoke:
        read = {each: lines[: FEW if "_" in each else MANY] for each, lines in read.items()}
    return Corpus(name, {each: write(folder / f"{each}.txt", lines) for each, lines in read.items()})


def _europarl(name: str, data: Path, out: Path) -> dict[str, list[str]]:
    sides = {
        side: [lines_of(data / f"europarl-de-en/{part}.{code}.gz") for part in ("train", "dev")]
        for side, code in (("source", "de"), ("target", "en"))
    }
    read = {}
    for side, (train, test) in sides.items():
        first = train[: START if "20k" in name else -HELD_OUT]
        read |= {side: first, f"valid_{side}": train[-HELD_OUT:], f"test_{side}": test}
    if name.endswith("reverse"):
        other = {"source": "target", "target": "source"}
        return {part + other[side]: read[part + side] for part in ("", "valid_", "test_") for side in other}
    if name.endswith("synthetic"):
        for side in ("source", "target"):
            synthetic = lines_of(out / "texts" / "synthetic" / f"{side}.txt")
            read[side] = 2 * read[side] + synthetic  # real pairs twice: one in 3.5
    return read


def monolingual(data: Path, out: Path, *, smoke: bool) -> str:
    """English text whose German nobody has seen."""
    lines = lines_of(data / "europarl-de-en/train.en.gz")[START : START + (FEW if smoke else MONOLINGUAL)]
    return write(out / "texts" / "monolingual.en", lines)


def settings_of(job: Job, corpus: Corpus, device: str, *, smoke: bool) -> Any:
    """The settings of a training, absolute, as `regard train` would make them."""
    from regard.trainer.start import absolute, fitted  # noqa: PLC0415  torch only where it is used

    recipe = str(CONFIGS / job.recipe) if job.recipe.endswith(".toml") else "" if job.recipe == "auto" else job.recipe
    small = SMOKE if smoke else ()
    words = (*corpus.settings(), *job.settings, f"train.seed={job.seed}", *small)
    return absolute(fitted(recipe, *words, device=device)[0])


def prepare(folder: Path, settings: Any, work: Path) -> None:
    """A run folder that is ready to be trained. Tokenizers and encoded text are those of an earlier run, if there is
    one with the same text and vocabulary."""
    from regard.runs.folder import Run  # noqa: PLC0415
    from regard.trainer.start import open_task  # noqa: PLC0415

    text = settings.text.model_dump(exclude={"sampling"}) | settings.data.model_dump()
    kept = work / "prepared" / hashlib.sha256(json.dumps(text, default=str).encode()).hexdigest()[:12]
    if not (kept / "data").exists():
        plain = settings.model_copy(update={"text": settings.text.model_copy(update={"sampling": False})})
        open_task(Run.create(kept, plain), lambda line: print(f"  {line}", flush=True))
    Run.create(folder, settings)
    for part in ("tokenizer", "data"):
        shutil.copytree(kept / part, folder / part, dirs_exist_ok=True)


# One job: its commands, one after another, each a process.


@dataclass
class Running:
    """A job that has begun."""

    job: Job
    folder: Path
    commands: list[list[str]]
    process: subprocess.Popen[bytes] | None = None
    measuring: bool = False
    began: float = field(default_factory=time.monotonic)
    errors: list[Path] = field(default_factory=list)


class Driver:
    """Runs the jobs of a suite, some at a time, until all are done or time is over."""

    def __init__(self, asked: argparse.Namespace, jobs: list[Job]) -> None:
        self.asked, self.waiting, self.ready = asked, jobs, dict[str, tuple[Path, list[list[str]]]]()
        self.running, self.done = list[Running](), dict[str, bool]()
        self.out: Path = asked.out
        self.work: Path = asked.work
        self.over = asked.began + asked.deadline
        self.corpora = dict[str, Corpus]()
        self.environment = {"OMP_NUM_THREADS": "2"} | dict(os.environ) | {"PYTHONUNBUFFERED": "1"}

    def run(self) -> None:
        self._prepare_all()
        self.say(f"{len(self.waiting)} jobs, {self.asked.processes} at once, prepared")
        while (self.waiting or self.running) and time.monotonic() < self.over:
            self._begin_some()
            for one in list(self.running):
                self._look_after(one)
            time.sleep(0.1)
        for one in self.running:
            stop(one)
            self._enter(one, "stopped at the deadline")
        for job in self.waiting:
            self.write({"suite": job.suite, "name": job.name, "seed": job.seed, "failed": "not begun: no time left"})

    def say(self, line: str) -> None:
        print(f"[{time.monotonic() - self.asked.began:5.0f} s] {line}", flush=True)

    def _prepare_all(self) -> None:
        """Everything that needs no result of another job."""
        for job in list(self.waiting):
            if not job.after:
                self._prepare(job)

    def _prepare(self, job: Job) -> None:
        try:
            self.ready[job.key] = self._commands(job)
        except Exception as error:
            self.waiting.remove(job)
            self.done[job.key] = False
            self.write({"suite": job.suite, "name": job.name, "seed": job.seed, "failed": f"preparing: {error}"})

    def corpus(self, name: str) -> Corpus:
        if name not in self.corpora:
            self.corpora[name] = open_corpus(name, self.asked.data, self.work, smoke=self.asked.smoke)
        return self.corpora[name]

    def _commands(self, job: Job) -> tuple[Path, list[list[str]]]:
        """The run folder, and the commands of a job. The folder is made here, so that a training begins at once."""
        folder, device = self.work / "runs" / job.key, ["--device", self.asked.device]
        regard, here = [sys.executable, "-m", "regard"], [sys.executable, str(Path(__file__).absolute())]
        first = self.work / "runs" / replace(job, name=job.after).key
        if job.verb == "backtranslate":
            texts = monolingual(self.asked.data, self.work, smoke=self.asked.smoke)
            more = ["--file", texts, "--out", str(self.work / "texts" / "synthetic"), "decode.beam=1", *device]
            return folder, [[*regard, "backtranslate", str(first), *more]]
        corpus = self.corpus(job.corpus)
        measure = [*here, "measure", str(folder), *device, "--out", str(self.out / "outputs" / job.key)]
        measure += [f"--{name.replace('_', '-')}={path}" for name, path in corpus.files.items() if "_" in name]
        if job.against:
            other = replace(job, name=job.against).key
            measure += ["--against", str(self.out / "outputs" / f"{other}.txt")]
        if job.verb == "train":
            prepare(folder, settings_of(job, corpus, self.asked.device, smoke=self.asked.smoke), self.work)
            train = [*regard, "train", "--resume", str(folder), *device, "--quiet"]
            return folder, [train] if job.suite == "speed" else [train, measure]
        small = [each for each in SMOKE if not each.startswith("train.time")] if self.asked.smoke else []
        words = ["--source", corpus.files["source"], "--out", str(folder), "--preset", job.recipe, "--quiet"]
        changes = [each for each in job.settings if not (self.asked.smoke and each.startswith("train.time"))]
        return folder, [[*regard, "distil", str(first), *changes, *small, *words, *device], measure]

    def _begin_some(self) -> None:
        for job in list(self.waiting):
            if sum(not one.measuring for one in self.running) >= self.asked.processes:
                return
            needed = replace(job, name=job.after).key if job.after else ""
            if needed and needed not in self.done:
                if any(each.key == needed for each in self.waiting) or any(o.job.key == needed for o in self.running):
                    continue
                self.done[needed] = (self.work / "runs" / needed).exists()  # the run of an earlier call
            self._begin(job, needed)

    def _begin(self, job: Job, needed: str) -> None:
        left = self.over - time.monotonic()
        failed = ""
        if needed and not self.done[needed]:
            failed = f"{job.after} failed"
        elif not self.asked.smoke and job.seconds and job.seconds + STARTS + MEASURES > left:
            failed = f"not begun: needs {job.seconds + STARTS + MEASURES:.0f} s, and {left:.0f} s are left"
        if not failed and job.after:
            self._prepare(job)
        if failed:
            self.write({"suite": job.suite, "name": job.name, "seed": job.seed, "failed": failed})
            self.done[job.key] = False
        if job in self.waiting:
            self.waiting.remove(job)
        if job.key in self.ready and not failed:
            folder, commands = self.ready[job.key]
            self.running.append(Running(job, folder, list(commands)))

    def _look_after(self, one: Running) -> None:
        code = one.process.poll() if one.process else 0
        if code is None:
            return
        if code == 0 and one.commands:
            self._start(one)
            return
        self.running.remove(one)
        self.done[one.job.key] = code == 0
        self._enter(one, "" if code == 0 else f"exit code {code}")

    def _start(self, one: Running) -> None:
        """The next command of a job, in a group of processes of its own."""
        path = self.out / "errors" / f"{one.job.key}-{len(one.errors)}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        one.errors.append(path)
        environment = dict(self.environment)
        if one.job.suite.endswith("timed") or one.job.suite == "speed":
            environment["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor")
            environment["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton")
        command = one.commands.pop(0)
        one.measuring = command[2] == "measure"
        with path.open("wb") as errors:
            one.process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=errors, env=environment, start_new_session=True
            )
        self.say(f"{one.job.key}: {' '.join(command[1:4]).replace(str(self.work), 'WORK')} …")

    def _enter(self, one: Running, failed: str) -> None:
        """The result of a job, or what is known of one that failed."""
        job, result = one.job, self.out / "outputs" / f"{one.job.key}.json"
        found = {"suite": job.suite, "name": job.name, "seed": job.seed, "recipe": job.recipe}
        found |= {"settings": list(job.settings), "wall": round(time.monotonic() - one.began)}
        found["together"] = self.asked.processes
        found |= trained(one.folder)
        if failed:
            lines = one.errors[-1].read_text(errors="replace").splitlines()[-12:] if one.errors else []
            found |= {"failed": failed, "errors": lines}
        elif result.exists():
            found |= json.loads(result.read_text(encoding="utf-8"))
        self.write(found)

    def write(self, result: dict[str, Any]) -> None:
        with (self.out / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(result, ensure_ascii=False) + "\n")
        self.say(json.dumps(result, ensure_ascii=False))


def stop(one: Running) -> None:
    if one.process is not None and one.process.poll() is None:
        os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()


MOMENTS = (5, 10, 15, 20, 25, 30, 40, 60)  # seconds: what was done by then shows what capture and compilation take


def trained(folder: Path) -> dict[str, Any]:
    """What the log of a run tells: steps, seconds, speed, and the validation that was best."""
    path = folder / "log.jsonl"
    if not path.exists():
        return {}
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    steps = [event for event in events if event["event"] == "step"]
    judged = [event for event in events if event["event"] == "validation"]
    if not steps:
        return {}
    last = steps[-1]
    reached = {at: max((event["step"] for event in steps if event["seconds"] <= at), default=0) for at in MOMENTS}
    reached = {at: step for at, step in reached.items() if at <= last["seconds"]}
    found = {"steps": last["step"], "seconds": round(last["seconds"], 1), "epochs": last["epoch"], "steps_at": reached}
    found["tokens_per_second"] = round(statistics.median(event["tokens_per_second"] for event in steps))
    curve = [[event["step"], round(event["loss"], 3), round(event["score"], 1)] for event in judged]
    best = [event for event in judged if event["best"]]
    if best:
        found |= {"best_step": best[-1]["step"], "best_seconds": round(best[-1]["seconds"], 1)}
        found |= {"valid_loss": round(best[-1]["loss"], 4), "validations": curve[-5:]}
    return found


# Measuring: a process of its own, that loads a run once.


def measure(asked: argparse.Namespace) -> None:
    """BLEU of a run on its test set, at the usual length penalty and at the one that is best on the validation text."""
    from regard.decode.options import Options  # noqa: PLC0415
    from regard.decode.rules import Beam  # noqa: PLC0415
    from regard.device import pick_device  # noqa: PLC0415
    from regard.metrics.translation import bleu  # noqa: PLC0415
    from regard.metrics.translation import measure as measured  # noqa: PLC0415
    from regard.settings.call import MeasureSettings  # noqa: PLC0415
    from regard.tasks.load import load  # noqa: PLC0415

    translator = load(asked.run, device=str(pick_device(asked.device)))

    def translated(lines: list[str], penalty: float = 1.0, beam: int = 5) -> list[str]:
        return [each.text for each in translator.translate(lines, Options(Beam(beam, penalty)))]

    valid, test = ([lines_of(getattr(asked, f"{part}_{side}")) for side in ("source", "target")] for part in PARTS)
    by_penalty = {penalty: bleu(translated(valid[0], penalty), valid[1]).score for penalty in PENALTIES}
    chosen = max(by_penalty, key=lambda penalty: (round(by_penalty[penalty], 2), -abs(penalty - 1)))
    outputs = translated(test[0])
    how = MeasureSettings(metrics=("bleu", "chrf"))
    quality, chrf = measured(outputs, test[1], how)
    tuned = outputs if chosen == 1.0 else translated(test[0], chosen)
    result = {
        "bleu": round(quality.score, 2), "interval": round(quality.margin or 0.0, 2), "signature": quality.signature,
        "chrf": round(chrf.score, 2), "greedy": round(bleu(translated(test[0], beam=1), test[1]).score, 2),
        "valid_bleu": {str(penalty): round(score, 2) for penalty, score in by_penalty.items()},
        "length_penalty": chosen, "bleu_at_penalty": round(bleu(tuned, test[1]).score, 2),
        "parameters": sum(each.numel() for each in translator.model.parameters()),
        "words_to_reference": round(words(outputs) / words(test[1]), 3), **place(),
    }  # fmt: skip
    write(Path(f"{asked.out}.txt"), outputs)
    if asked.against and asked.against.exists():
        result |= compared(lines_of(asked.against), outputs, test[1])
    Path(f"{asked.out}.json").write_text(json.dumps(result), encoding="utf-8")


PARTS = ("valid", "test")


def words(lines: list[str]) -> int:
    return sum(len(line.split()) for line in lines)


def place() -> dict[str, str]:
    """What computes here, for the ledger, which may be written on another machine."""
    import torch  # noqa: PLC0415

    found = {"torch": torch.__version__}
    return found | {"device": torch.cuda.get_device_name()} if torch.cuda.is_available() else found


def compared(first: list[str], second: list[str], references: list[str]) -> dict[str, Any]:
    """How much better the second is: the difference with its 95 % interval by paired bootstrap, and p."""
    from random import Random  # noqa: PLC0415

    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415

    from regard.metrics.paired import paired  # noqa: PLC0415
    from regard.settings.call import MeasureSettings  # noqa: PLC0415

    (verdict,) = paired([("first", first), ("second", second)], references, MeasureSettings(metrics=("bleu",)))
    metric, draw = BLEU(), Random(12345)
    tables = [metric._extract_corpus_statistics(outputs, [references]) for outputs in (first, second)]
    gains = []
    for _ in range(1000):
        rows = [draw.randrange(len(references)) for _ in references]
        scores = [metric._aggregate_and_compute([table[row] for row in rows]).score for table in tables]
        gains.append(scores[1] - scores[0])
    gains.sort()
    return {"gain": round(verdict.difference, 2), "gain_interval": [round(gains[25], 2), round(gains[974], 2)],
            "p": verdict.bootstrap}  # fmt: skip


def alone(asked: argparse.Namespace) -> None:
    """Two runs on one sentence at a time on a CPU, in turn: milliseconds, and how many times faster the second is."""
    import torch  # noqa: PLC0415

    from regard.decode.options import Options  # noqa: PLC0415
    from regard.decode.rules import Beam  # noqa: PLC0415
    from regard.errors import ModelError  # noqa: PLC0415
    from regard.evaluate.compare import one_by_one  # noqa: PLC0415
    from regard.metrics.translation import bleu  # noqa: PLC0415
    from regard.tasks.load import load  # noqa: PLC0415

    torch.set_num_threads(asked.threads)
    sources, references = lines_of(asked.source), lines_of(asked.target)

    def call(run: Path, engine: str, beam: int) -> Callable[[list[str]], list[str]]:
        translator = load(run, engine=engine)
        return lambda texts: [each.text for each in translator.translate(texts, Options(Beam(beam)))]

    ways, calls = list[tuple[Path, str, int]](), list[Callable[[list[str]], list[str]]]()
    for way in product((asked.teacher, asked.student), asked.engines, (5, 1)):
        with suppress(ModelError):  # an engine that cannot search with this run
            calls.append(call(*way))
            ways.append(way)
    rounds = [one_by_one(calls, sources) for _ in range(asked.rounds)]
    for place, (run, engine, beam) in enumerate(ways):
        times = [found[place] for found in rounds]
        base = [found[0] for found in rounds]
        faster = [round(one / other, 2) for one, other in zip(base, times, strict=True)]
        score = bleu(calls[place](sources), references).score
        row = {"run": run.name, "engine": engine, "beam": beam, "milliseconds": round(statistics.median(times), 2)}
        row |= {"times_teacher_beam_5": statistics.median(faster), "spread": [min(faster), max(faster)]}
        print(json.dumps(row | {"bleu": round(score, 2)}), flush=True)


# NVIDIA's multi-process service, so that small trainings run side by side and not in turn.


@contextmanager
def sharing(asked: argparse.Namespace) -> Iterator[dict[str, str]]:
    """The environment of processes that share the GPU, where that service can be started; else an empty one."""
    if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:  # somebody has started it
        yield {"CUDA_MPS_PIPE_DIRECTORY": os.environ["CUDA_MPS_PIPE_DIRECTORY"]}
        return
    control = shutil.which("nvidia-cuda-mps-control")
    if asked.device != "cuda" or asked.processes == 1 or control is None or asked.no_service:
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="mps")
    environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    whole = dict(os.environ) | environment
    try:
        subprocess.run([control, "-d"], env=whole, check=True, timeout=20, capture_output=True)
        trial = "import torch; print(torch.ones(8, device='cuda').sum().item())"
        subprocess.run([sys.executable, "-c", trial], env=whole, check=True, timeout=90, capture_output=True)
        print("processes share the GPU by its multi-process service", flush=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"no multi-process service: {error}", flush=True)
        environment = {}
    try:
        yield environment
    finally:
        subprocess.run([control], input=b"quit\n", env=whole, capture_output=True, check=False, timeout=20)


# The table.


SAME = ("recipe", "settings", "together", "interval", "signature", "device", "torch")  # of the first seed


def table(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds, by suite and name."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        rows.setdefault((result["suite"], result["name"]), []).append(result)
    summary = []
    for (suite, name), found in rows.items():
        good = [each for each in found if "failed" not in each]
        row: dict[str, Any] = {"suite": suite, "name": name, "seeds": [each["seed"] for each in good]}
        for figure in ("bleu", "bleu_at_penalty", "valid_loss", "steps", "seconds", "tokens_per_second", "parameters"):
            values = [each[figure] for each in good if figure in each]
            if values:
                row[figure] = round(statistics.mean(values), 3 if figure == "valid_loss" else 2)
        if good and "valid_bleu" in good[0]:
            row["valid_bleu"] = round(statistics.mean(each["valid_bleu"]["1.0"] for each in good), 2)
        row["bleu_by_seed"] = [each["bleu"] for each in good if "bleu" in each]
        row |= {figure: good[0][figure] for figure in SAME if good and figure in good[0]}
        row |= {figure: found[-1][figure] for figure in ("gain", "gain_interval", "p") if figure in found[-1]}
        row |= {"failed": [each["failed"] for each in found if "failed" in each]} if len(good) < len(found) else {}
        summary.append(row)
    return summary


def print_table(out: Path, *, ledger: bool = False) -> None:
    path = out / "results.jsonl"
    results = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    rows = table(results)
    (out / "table.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        f"{'suite':18} {'name':26} {'seeds':>5} {'valid':>6} {'BLEU':>6} {'tuned':>6} {'loss':>6} {'steps':>7} {'s':>5}"
    )
    for row in rows:
        figures = [
            row.get(name) for name in ("valid_bleu", "bleu", "bleu_at_penalty", "valid_loss", "steps", "seconds")
        ]
        cells = [
            f"{'' if value is None else value:>{wide}}" for value, wide in zip(figures, (6, 6, 6, 6, 7, 5), strict=True)
        ]
        note = "; ".join(row.get("failed", [])) or (
            f"gain {row['gain']} {row['gain_interval']}" if "gain" in row else ""
        )
        print(f"{row['suite']:18} {row['name']:26} {len(row['seeds']):>5} {' '.join(cells)} {note}")
    if ledger:
        from ledger import enter  # noqa: PLC0415

        for row in rows:
            if row["bleu_by_seed"]:
                enter("recipes", entry(row), f"python bench/recipes.py run DATA OUT --suite {row['suite']}")


def entry(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the ledger has it."""
    kept = {
        name: value for name, value in row.items() if name not in ("name", "recipe", "settings", "failed", "together")
    }
    kept |= {"seeds": len(row["seeds"]), "steps": round(row["steps"])}
    what = f"{row['name']} ({row['recipe']})"
    return {"suite": row["suite"], "recipe": what, "beam": 5, "trainings_at_once": row.get("together")} | kept


def main() -> None:
    asked = arguments()
    match asked.do:
        case "measure":
            measure(asked)
        case "alone":
            alone(asked)
        case "table":
            print_table(asked.out, ledger=asked.ledger)
        case _:
            drive(asked)


def drive(asked: argparse.Namespace) -> None:
    asked.began = time.monotonic()
    asked.out = asked.out.absolute()
    asked.out.mkdir(parents=True, exist_ok=True)
    asked.work = (asked.work or Path(tempfile.mkdtemp(prefix="recipes"))).absolute()
    known = suites(asked)
    jobs = [replace(job, seed=seed) for suite in asked.suite for seed in asked.seeds for job in known[suite]]
    jobs = [job for job in jobs if not asked.only or job.name in asked.only]
    with sharing(asked) as environment:
        if asked.device == "cuda" and not environment:
            asked.processes = min(asked.processes, IN_TURN)
        driver = Driver(asked, jobs)
        driver.environment |= environment
        signal.signal(signal.SIGTERM, lambda *_: setattr(driver, "over", 0.0))
        try:
            driver.run()
        finally:
            for one in driver.running:
                stop(one)
            print_table(asked.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What recipes are worth, measured.")
    verbs = parser.add_subparsers(dest="do", required=True)
    run = verbs.add_parser("run")
    run.add_argument("data", type=Path)
    run.add_argument("out", type=Path)
    run.add_argument("--suite", nargs="+", required=True)
    run.add_argument("--only", nargs="*", default=[], metavar="NAME", help="of the suite's jobs")
    run.add_argument("--seeds", nargs="+", type=int, default=[1])
    run.add_argument("--processes", type=int, default=8)
    run.add_argument("--deadline", type=float, default=580.0, help="seconds, from the start of this process")
    run.add_argument(
        "--steps", type=int, default=10_000, help="of the ablation, where a row is read once, and of backtranslate"
    )
    run.add_argument("--seconds", type=int, default=0, help="of a training in the suites auto and distil")
    run.add_argument("--device", default="cuda")
    run.add_argument("--no-service", action="store_true", help="do not start the multi-process service")
    run.add_argument("--work", type=Path, help="a folder for runs and texts, which another call may go on with")
    run.add_argument("--smoke", action="store_true", help="few pairs and steps, to try a suite out on a CPU")
    one = verbs.add_parser("measure")
    one.add_argument("run", type=Path)
    for name in ("valid-source", "valid-target", "test-source", "test-target", "out"):
        one.add_argument(f"--{name}", type=Path, required=True)
    one.add_argument("--against", type=Path)
    one.add_argument("--device", default="auto")
    pair = verbs.add_parser("alone")
    for name in ("teacher", "student"):
        pair.add_argument(name, type=Path)
    for name in ("source", "target"):
        pair.add_argument(f"--{name}", type=Path, required=True)
    pair.add_argument("--engines", nargs="+", default=["native"])
    pair.add_argument("--threads", type=int, default=2)
    pair.add_argument("--rounds", type=int, default=3)
    shown = verbs.add_parser("table")
    shown.add_argument("out", type=Path)
    shown.add_argument("--ledger", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
