"""Damage everything that Regard reads, refuse everything that it writes, and look how it takes it.

    python bench/faults.py [--seed 1] [--cases 8000] [--minutes 6] [--kind NAME] [--case N]

Every case is a verb of the command line, run in this process, on something damaged: the exit code must be one of those
that are documented and not 1, which is a bug; nothing may take more than a gigabyte beyond what an idle process has.
Disks fail at the n-th call; processes are killed, and must go on as if nothing had happened; some verbs run in a
process of their own, on bombs, where their memory is measured. A finding is printed with what tries it again.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import torch

import regard
from failing_disk import KINDS, Killed, failing
from mutations import damage, mutate, mutate_json, mutate_numbers, mutate_toml
from regard.cli import main as verbs
from regard.errors import failure
from regard.runs.archive import CONTENTS, pack, verify_run
from regard.runs.folder import BELONGS, MANIFEST, Run, belonging, best_checkpoint, seal, steps
from regard.trainer.start import resume, start

CODES = (0, 2, 3, 4, 5)
ABOVE_IDLE = 1 << 30  # bytes
LONGEST = 240  # seconds that a case may take; one that takes longer has no end
LARGE = 160 << 20  # bytes that a bomb unfolds to: more of them would only take longer to write
MANY = 2 << 20  # lines: what takes long is no bomb
SIZES = ("model.width=8", "model.hidden=8", "train.steps=2", "train.validate_every=1", "train.batch=64", "train.keep=1")
HEADS = ("model.heads=2", "model.encoder_depth=1", "model.decoder_depth=1")
RUNS = {
    "words": ("gru", "text.tokenizer=word"),
    "pieces": ("transformer-tiny", "text.tokenizer=bpe", "text.size=300", *HEADS),
    "tags": ("lstm", "task=tag", "text.tokenizer=word"),
}
ANIMALS = ("cat", "dog", "bird", "bear", "mouse")
OTHERS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)
CORPORA = ("source", "tsv", "csv", "jsonl", "tmx", "conllu", "gz")


class FindingError(Exception):
    """Something that must not be."""


class EndlessError(BaseException):
    """A case that goes on and on; no ``except Exception`` may take it for a failure of its own."""


def too_long(*_: object) -> None:
    raise EndlessError


@dataclass
class Bench:
    """What all cases share: runs that are whole, an archive, corpora, and a place to work in."""

    folder: Path
    runs: dict[str, Path] = field(default_factory=dict)
    archive: Path = Path()
    corpora: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    place: Path = Path()  # empty, and of one case alone


def prepare(folder: Path) -> Bench:
    """Small runs of three kinds, trained here."""
    bench = Bench(folder)
    sides = folder / "train.en", folder / "train.fr"
    texts = [f"the {one} sees the {other}" for one in ANIMALS for other in ANIMALS]
    for path, the in zip(sides, ("the", "le"), strict=True):
        path.write_text("".join(f"{text.replace('the', the)}\n" for text in texts), encoding="utf-8")
    tagged = folder / "tagged.tsv"
    tagged.write_text("".join(f"{text}\tD N V D N\n" for text in texts), encoding="utf-8")
    for name, (preset, *changes) in RUNS.items():
        data = f"data.corpus={tagged}" if name == "tags" else f"data.source={sides[0]}"
        also = () if name == "tags" else (f"data.target={sides[1]}",)
        settings = regard.load_settings(preset, *SIZES, *changes, data, *also)
        bench.runs[name] = folder / "whole" / name
        start(bench.runs[name], settings, device="cpu")
    bench.archive = folder / "words.tar.gz"
    pack(bench.runs["words"], bench.archive, everything=True)
    bench.corpora = corpora(folder / "corpora", texts)
    return bench


def corpora(folder: Path, texts: list[str]) -> dict[str, tuple[Path, ...]]:
    """The same text in every format."""
    folder.mkdir()
    pairs = [(text, text.replace("the", "le")) for text in texts]
    contents = {
        "a.source": "".join(f"{one}\n" for one, _ in pairs),
        "a.target": "".join(f"{other}\n" for _, other in pairs),
        "a.tsv": "".join(f"{one}\t{other}\n" for one, other in pairs),
        "a.csv": "source,target\n" + "".join(f'"{one}","{other}"\n' for one, other in pairs),
        "a.jsonl": "".join(json.dumps({"source": one, "target": other}) + "\n" for one, other in pairs),
        "a.tmx": "<tmx><body>"
        + "".join(
            f'<tu><tuv xml:lang="en"><seg>{one}</seg></tuv><tuv xml:lang="fr"><seg>{other}</seg></tuv></tu>\n'
            for one, other in pairs
        )
        + "</body></tmx>",
        "a.conllu": "".join("1\tcat\tcat\tNOUN\t_\t_\t_\t_\t_\t_\n\n" for _ in pairs),
    }
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
    for side in ("source", "target"):
        (folder / f"b.{side}.gz").write_bytes(gzip.compress((folder / f"a.{side}").read_bytes(), mtime=0))
    found = {name: (folder / f"a.{name}",) for name in ("tsv", "csv", "jsonl", "tmx", "conllu")}
    found["source"] = folder / "a.source", folder / "a.target"
    return found | {"gz": (folder / "b.source.gz", folder / "b.target.gz")}


def call(*words: object) -> int:
    """A verb; what it says is looked at only if it is wrong."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = verbs.run([str(word) for word in words])
    if code not in CODES:
        raise FindingError(f"regard {' '.join(map(str, words))}: exit code {code}\n{err.getvalue()}")
    said = err.getvalue()
    if code and words[0] != "data" and not said.strip():
        raise FindingError(f"regard {' '.join(map(str, words))}: exit code {code} without a word")
    return code


def uses(run: Path, place: Path) -> list[tuple[object, ...]]:
    """What people do with a run."""
    return [
        ("runs", "ls", run.parent),
        ("runs", "show", run),
        ("runs", "verify", run),
        ("runs", "export", run, place / "x.tar", "--to", "archive-all"),
        ("predict", run, "the cat") if run.name == "tags" else ("translate", run, "the cat sees"),
        ("train", "--resume", run, "--steps", "+1", "--device", "cpu"),
    ]


def use(run: Path, chance: random.Random, place: Path) -> None:
    for verb in chance.sample(uses(run, place), 3):
        call(*verb)


def reads(paths: Sequence[Path], out: Path) -> list[tuple[object, ...]]:
    """What people do with a corpus, besides checking it."""
    small = ("--valid", 3, "--test", 3)
    return [
        ("data", "stats", *paths),
        ("data", "clean", *paths, "--out", out),
        ("data", "split", *paths, "--out", out, *small),
    ]


def check_whole(bench: Bench) -> None:
    """Without damage all of it works: a mistyped verb is always refused, and would try nothing."""
    bench.place = bench.folder / "check"
    for run in bench.runs.values():
        here = shutil.copytree(run, bench.place / "runs" / run.name)
        for verb in uses(here, bench.place):
            if code := call(*verb):
                raise SystemExit(f"{verb}: exit code {code} without any damage")
    for kind, paths in bench.corpora.items():
        for verb in reads(paths, bench.place / kind) if kind != "conllu" else ():
            if code := call(*verb):
                raise SystemExit(f"{verb}: exit code {code} without any damage")


# The kinds of cases


def run_folder(bench: Bench, chance: random.Random) -> None:
    """A file of a run is damaged, or several are."""
    run = copied(bench, chance)
    files = sorted(path for path in run.rglob("*") if path.is_file())
    for path in chance.sample(files, chance.choice((1, 1, 1, 2, 4))):
        damage(path, chance)
    use(run, chance, bench.place)


def checkpoints(bench: Bench, chance: random.Random) -> None:
    """A file of a checkpoint is another one, and all hashes are right: somebody meant it."""
    run = copied(bench, chance)
    best = best_checkpoint(Run.open(run))
    path = chance.choice(sorted(best.iterdir()))
    if path.name == MANIFEST:
        path.write_bytes(mutate_json(path.read_bytes(), chance))
    else:
        change = mutate_json if path.suffix == ".json" else chance.choice((mutate, mutate_numbers))
        path.write_bytes(change(path.read_bytes(), chance))
        kept = path.read_bytes()
        seal(best, None if path.name == BELONGS else belonging(Run.open(run)))
        path.write_bytes(kept)
    use(run, chance, bench.place)


def logs(bench: Bench, chance: random.Random) -> None:
    """Anything in a log."""
    run = copied(bench, chance)
    log = run / "log.jsonl"
    for _ in range(chance.choice((1, 3, 10))):
        lines = log.read_bytes().split(b"\n")
        place = chance.randrange(len(lines))
        lines[place] = chance.choice((mutate_json, mutate))(lines[place], chance)
        log.write_bytes(b"\n".join(lines))
    call("runs", "ls", run.parent)
    call("runs", "show", run, "--json")
    call("train", "--resume", run, "--steps", "+1", "--device", "cpu")


def settings(bench: Bench, chance: random.Random) -> None:
    """Settings of any kind."""
    path = bench.place / "x.toml"
    data = (bench.runs[chance.choice(list(RUNS))] / "settings.toml").read_bytes()
    for _ in range(chance.choice((1, 1, 3))):
        data = chance.choice((mutate_toml, mutate))(data, chance)
    path.write_bytes(data)
    call("settings", "show", path)
    line = data.decode("utf-8", "replace").split("\n")[chance.randrange(data.count(b"\n") + 1)]
    call("settings", "show", "gru", line.replace(" = ", "=") or "x")


def archives(bench: Bench, chance: random.Random) -> None:
    """An archive with other bytes, or with other files and names in it."""
    file = bench.place / "x.tar"
    if chance.random() < 0.3:
        file.write_bytes(mutate(bench.archive.read_bytes(), chance))
    elif chance.random() < 0.4:
        file.write_bytes(mutate(gzip.decompress(bench.archive.read_bytes()), chance))
    else:
        rewrite(bench.archive, file, chance)
    before = sorted(path.name for path in bench.place.iterdir())
    code = call("runs", "import", file, "--out", bench.place / "runs" / "mine")
    if code:
        left = [path for path in bench.place.rglob("*") if path.is_file() and path.name not in before]
        if left:
            raise FindingError(f"{left[0]}: was left behind by an import that was refused")
    else:
        use(bench.place / "runs" / "mine", chance, bench.place)


def rewrite(archive: Path, file: Path, chance: random.Random) -> None:
    """The same archive with one member damaged, renamed, doubled or of another kind; perhaps with hashes that fit."""
    with tarfile.open(archive) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    place = chance.randrange(len(members))
    member, data = members[place]
    way = chance.randrange(6)
    if way < 3:
        data = (mutate_json if member.name.endswith(".json") else mutate)(data, chance)
    elif way == 3:
        member.name = chance.choice(("../x", "/tmp/x", "x" * 300, "tokenizer/" + "a/" * 50 + "x.json", "x.pickle", ""))
    elif way == 4:
        member.type = chance.choice(OTHERS)
        member.linkname = "/etc/passwd"
    else:
        members.insert(place, members[chance.randrange(len(members))])
    members[place] = (member, data)
    if way < 3 and member.name != CONTENTS and chance.random() < 0.7:
        members[0] = (members[0][0], listed(members))
    with tarfile.open(file, "w") as tar:
        for each, content in members:
            each.size = len(content) if each.isreg() else 0
            tar.addfile(each, io.BytesIO(content))


def listed(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """The contents of an archive as they are, whatever was done to them."""
    known = json.loads(members[0][1])
    known["files"] = {
        member.name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for member, data in members[1:]
    }
    return json.dumps(known).encode()


def uploads(bench: Bench, chance: random.Random) -> None:
    """A corpus of any format, damaged."""
    kind = chance.choice(CORPORA)
    paths = []
    for path in bench.corpora[kind]:
        paths.append(bench.place / path.name)
        data = path.read_bytes()
        if kind == "gz" and chance.random() < 0.5:
            paths[-1].write_bytes(gzip.compress(mutate(gzip.decompress(data), chance)))
        elif kind == "jsonl" and chance.random() < 0.5:
            lines = data.split(b"\n")
            number = chance.randrange(len(lines))
            lines[number] = mutate_json(lines[number], chance)
            paths[-1].write_bytes(b"\n".join(lines))
        else:
            paths[-1].write_bytes(mutate(data, chance))
    task = ("--task", "tag") if kind == "conllu" else ()
    call("data", "check", *paths, *task)
    if kind != "conllu":
        call(*chance.choice(reads(paths, bench.place / "out")))


def disk(bench: Bench, chance: random.Random) -> None:
    """The disk fails at some call of an action; what is there afterwards is whole, and the action can be done again."""
    run = copied(bench, chance, "words", "pieces")
    imported, trained = bench.place / "runs" / "mine", bench.place / "runs" / "new"
    before = Run.open(run).settings
    actions: dict[str, tuple[object, ...]] = {
        "export": ("runs", "export", run, bench.place / "x.tar"),
        "import": ("runs", "import", bench.archive, "--out", imported),
        "resume": ("train", "--resume", run, "--steps", "+1", "--device", "cpu"),
        "translate": ("translate", run, "the cat", "--out", bench.place / "x.txt"),
        "page": ("explain", run, "the cat", "--out", bench.place / "x.html"),
        "remove": ("runs", "rm", run),
    }
    name = chance.choice((*actions, "train", "train"))
    kind, number = chance.choice(KINDS), chance.randrange(1, 150 if name in ("train", "resume") else 40)
    with failing(number, kind), contextlib.suppress(Killed):
        if name == "train":
            with contextlib.redirect_stderr(io.StringIO()):
                regard_train(trained, before)
        else:
            call(*actions[name])
    if name == "train":
        if (trained / "settings.toml").exists():
            resume(trained, device="cpu")
        else:
            start(trained, before, device="cpu")
        if last_weights(trained) != last_weights(bench.runs[run.name]):
            raise FindingError(f"{kind} at call {number} of a training: it ended with other weights")
    for path in (run, imported, trained):
        if path.exists() and (path / "settings.toml").exists():
            bad = [note for _, state, note in verify_run(path) if state == "damaged"]
            if bad:
                raise FindingError(f"{kind} at call {number} of {name}: {bad[0]}")
        elif path.exists() and name == "import":
            raise FindingError(f"{kind} at call {number} of {name}: {path} is half there")


def regard_train(folder: Path, wanted: regard.Settings) -> None:
    """As the command does it: what the disk refuses has a name."""
    try:
        start(folder, wanted, device="cpu")
    except Exception as error:
        known = failure(error)
        if known is None or known.exit_code not in CODES:
            raise FindingError(f"training: {error!r}") from error


def last_weights(run: Path) -> dict[str, bytes]:
    last = steps(run / "checkpoints")[-1]
    return {name: (last / f"{name}.safetensors").read_bytes() for name in ("weights", "optimizer")}


def killed(bench: Bench, chance: random.Random) -> None:
    """A training in a process of its own is killed at random moments until it is done."""
    run, wanted = bench.place / "run", bench.runs["words"]
    file = bench.place / "x.toml"
    shutil.copy(wanted / "settings.toml", file)
    for attempt in count():
        begin = ["--resume", str(run)] if (run / "settings.toml").exists() else [str(file), "--out", str(run)]
        process = subprocess.Popen(
            [sys.executable, "-m", "regard", "train", *begin, "--device", "cpu"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # as here: two threads add in another order
        )
        try:
            _, said = process.communicate(timeout=chance.uniform(1.0, 8.0) if attempt < 4 else None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            continue
        if process.returncode:
            raise FindingError(f"killed {attempt} times, then exit code {process.returncode}\n{said}")
        break
    if last_weights(run) != last_weights(wanted):
        raise FindingError(f"killed {attempt} times: it ended with other weights")


# Bombs: in a process of their own, whose memory is measured

_IDLE: dict[str, int] = {}


def measured(*words: object) -> tuple[int, int, str]:
    """Exit code and highest memory of a verb."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30));"
        "from regard.cli.main import run; end = run(sys.argv[1:]);"
        "print('KIB', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(end)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=300, check=False
    )
    said, _, memory = done.stderr.rpartition("KIB")
    return done.returncode, int(memory) * 1024 if memory.strip().isdecimal() else 0, said


def bombs(bench: Bench, chance: random.Random) -> None:
    """Something small that unfolds to something large, or asks for a lot."""
    run = copied(bench, chance, "pieces")
    makers: dict[str, Callable[[], tuple[object, ...]]] = {
        "a log of line ends": lambda: fill(run / "log.jsonl", b"\n", ("runs", "ls", run.parent)),
        "a log of small events": lambda: fill(run / "log.jsonl", b'{"event": "x"}\n', ("runs", "show", run)),
        "a vocabulary": lambda: fill(
            run / "tokenizer" / "joint" / "sentencepiece.model", b"\n", ("translate", run, "x")
        ),
        "a best pointer": lambda: fill(run / "best", b"9", ("runs", "show", run)),
        "a manifest": lambda: fill(best_checkpoint(Run.open(run)) / MANIFEST, b"[", ("runs", "verify", run)),
        "an endless line": lambda: zipped(bench.place, b"x", LARGE),
        "endless empty lines": lambda: zipped(bench.place, b"\n", MANY),
        "a long name in an archive": lambda: long_name(bench.place, tarfile.GNUTYPE_LONGNAME),
        "a long header in an archive": lambda: long_name(bench.place, tarfile.XHDTYPE),
        "a wide beam": lambda: ("translate", run, "the cat", "--beam", 100_000),
        "a wide model": lambda: wide(run),
        "deep settings": lambda: fill(run / "settings.toml", b"[", ("runs", "show", run)),
    }
    name = chance.choice(list(makers))
    if "idle" not in _IDLE:
        _IDLE["idle"] = measured("translate", bench.runs["pieces"], "the cat")[1]
    code, memory, said = measured(*makers[name]())
    if code not in CODES:
        raise FindingError(f"{name}: exit code {code}\n{said}")
    if memory > _IDLE["idle"] + ABOVE_IDLE:
        raise FindingError(f"{name}: {memory / 2**20:,.0f} MiB, and idle are {_IDLE['idle'] / 2**20:,.0f}")


def fill(path: Path, unit: bytes, verb: tuple[object, ...]) -> tuple[object, ...]:
    """A file of one thing over and over, and what reads it."""
    with path.open("wb") as file:
        block = unit * (1 << 20)
        for _ in range(LARGE // len(block) or 1):
            file.write(block)
    return verb


def zipped(place: Path, unit: bytes, times: int) -> tuple[object, ...]:
    data = gzip.compress(unit * times, 1)
    for side in ("source", "target"):
        (place / f"x.{side}.gz").write_bytes(data)
    return ("data", "check", place / "x.source.gz", place / "x.target.gz")


def long_name(place: Path, kind: bytes) -> tuple[object, ...]:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, LARGE
    with gzip.open(place / "x.tar.gz", "wb", 1) as file:
        file.write(header.tobuf())
        file.write(b"x" * LARGE)
    return ("runs", "import", place / "x.tar.gz", "--out", place / "mine")


def wide(run: Path) -> tuple[object, ...]:
    """Settings that ask for petabytes, in a run that does not say what its weights belong to."""
    best = best_checkpoint(Run.open(run))
    (best / "run.json").unlink()
    hashes = json.loads((best / MANIFEST).read_text())
    del hashes["run.json"]
    (best / MANIFEST).write_text(json.dumps(hashes))
    path = run / "settings.toml"
    path.write_text(path.read_text().replace("width = 8", "width = 1000000"))
    return ("translate", run, "the cat")


def copied(bench: Bench, chance: random.Random, *names: str) -> Path:
    run = bench.runs[chance.choice(names or tuple(bench.runs))]
    return shutil.copytree(run, bench.place / "runs" / run.name)


# In so many of a hundred cases; the slow ones are few, and spread over the whole.
SHARES: dict[Callable[[Bench, random.Random], None], int] = {
    uploads: 34,
    settings: 20,
    archives: 16,
    run_folder: 14,
    checkpoints: 7,
    logs: 5,
    disk: 4,
}
RARE = {killed: 1500, bombs: 400}  # one in so many


def kind_of(number: int, seed: int) -> Callable[[Bench, random.Random], None]:
    for kind, every in RARE.items():
        if number % every == every - 1:
            return kind
    chance = random.Random(f"{seed}/{number}/kind")
    return chance.choices(list(SHARES), list(SHARES.values()))[0]


def one(bench: Bench, number: int, seed: int, kind: Callable[[Bench, random.Random], None]) -> str:
    """Run a case; what is wrong, or nothing."""
    bench.place = Path(tempfile.mkdtemp(dir=bench.folder, prefix=f"case-{number}-"))
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LONGEST)
    try:
        kind(bench, random.Random(f"{seed}/{number}"))
    except FindingError as finding:
        return str(finding)
    except (Exception, EndlessError):
        return traceback.format_exc()
    finally:
        signal.alarm(0)
        shutil.rmtree(bench.place, ignore_errors=True)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Damage what Regard reads, refuse what it writes.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=8000)
    parser.add_argument("--minutes", type=float, default=6.0, help="no case begins after so many")
    parser.add_argument(
        "--kind", default="", help=f"only these: {', '.join(kind.__name__ for kind in (*SHARES, *RARE))}"
    )
    parser.add_argument("--case", type=int, default=None, help="this one alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    began, findings, tried = time.monotonic(), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        bench = prepare(Path(folder))
        check_whole(bench)
        idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        for number in range(given.cases) if given.case is None else (given.case,):
            kind = kind_of(number, given.seed)
            if given.kind and kind.__name__ != given.kind:
                continue
            if time.monotonic() - began > 60 * given.minutes:
                break
            tried[kind.__name__] += 1
            if wrong := one(bench, number, given.seed, kind):
                findings += 1
                again = f"python bench/faults.py --seed {given.seed} --case {number}"
                print(f"\n{kind.__name__}, again with: {again}\n{wrong}", flush=True)
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if highest - idle > ABOVE_IDLE:
        findings += 1
        print(f"memory: {(highest - idle) / 2**20:,.0f} MiB more than idle; the most is {ABOVE_IDLE / 2**20:,.0f}")
    kinds = ", ".join(f"{name} {number:,}" for name, number in tried.most_common())
    seconds = time.monotonic() - began
    print(
        f"seed {given.seed}: {tried.total():,} cases in {seconds:,.0f} s, {findings} findings; {kinds}; "
        f"memory {idle / 2**20:,.0f} MiB idle, {highest / 2**20:,.0f} at the highest"
    )
    return min(1, findings)


if __name__ == "__main__":
    sys.exit(main())
