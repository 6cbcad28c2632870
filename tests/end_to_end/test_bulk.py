"""A file in shards: the merged output is that of one process, byte for byte, whatever is killed."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from regard.cli.main import run
from regard.data.lines import read_lines
from regard.evaluate import evaluate as evaluation
from regard.fable.corpus import generate
from regard.settings.call import BulkSettings
from regard.tasks import translator

PAIRS = [(pair.source, pair.target) for pair in generate("fr", count=53, split="test", maximum_words=9)]
Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("with_demo")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bulk")
    lines = [source for source, _ in PAIRS[:30]] + ["", "Zorblax sees it. The cat sleeps."] + [s for s, _ in PAIRS[30:]]
    targets = [target for _, target in PAIRS[:30]] + ["", "Le chat dort."] + [target for _, target in PAIRS[30:]]
    with gzip.open(folder / "in.en.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    (folder / "in.fr").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    return folder


def translate(texts: Path, out: Path, *more: str) -> int:
    return run(["translate", "demo", "--file", str(texts / "in.en.gz"), "--out", str(out), "--device", "cpu", *more])


@pytest.fixture
def sevens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven lines go through the model together, as in a block: then scores are equal to the last digit, too."""
    monkeypatch.setattr("regard.tasks.translator.CHUNK", 7)
    monkeypatch.setattr("regard.evaluate.evaluate.CHUNK", 7)


def test_the_batches_of_a_block_are_those_of_one_process() -> None:
    chunks = (translator.CHUNK, translator.GPU_CHUNK, evaluation.CHUNK)
    assert all(BulkSettings().lines % together == 0 for together in chunks)


@pytest.mark.usefixtures("sevens")
@pytest.mark.parametrize("how", [("decode.beam=1",), ("--json", "--nbest", "2"), ("decode.sample=true",)])
def test_three_shards_write_what_one_process_writes(how: tuple[str, ...], texts: Path, tmp_path: Path) -> None:
    assert translate(texts, tmp_path / "one", *how) == 0
    for number in (3, 1, 2):
        assert not (tmp_path / "many").exists()
        assert translate(texts, tmp_path / "many", *how, "bulk.lines=7", "--shard", f"{number}/3") == 0
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.usefixtures("sevens")
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_an_output_is_packed_as_its_name_says(ending: str, texts: Path, tmp_path: Path) -> None:
    one, many = tmp_path / f"one{ending}", tmp_path / f"many{ending}"
    assert translate(texts, one, "decode.beam=1") == 0
    for number in (2, 1):
        assert translate(texts, many, "decode.beam=1", "bulk.lines=7", "--shard", f"{number}/2") == 0
    assert many.read_bytes() == one.read_bytes()
    assert translate(texts, tmp_path / "plain", "decode.beam=1") == 0
    assert list(read_lines(many)) == list(read_lines(tmp_path / "plain"))
    assert one.stat().st_size < (tmp_path / "plain").stat().st_size


@pytest.mark.parametrize("shard", [(), ("--shard", "1/1")])
@pytest.mark.parametrize("verb", ["translate", "score", "evaluate"])
def test_a_file_that_is_read_is_not_written_over(
    verb: str, shard: tuple[str, ...], texts: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "in.fr"
    before = file.write_bytes((texts / "in.fr").read_bytes())
    (tmp_path / "out").symlink_to(file)
    pair = ["--source", str(texts / "in.en.gz"), "--target", str(file)]
    words = ["--file", str(file)] if verb == "translate" else pair
    assert run([verb, "demo", *words, "--out", str(tmp_path / "out"), *shard]) == 2
    assert "is a file that is read here" in capsys.readouterr().err
    assert file.stat().st_size == before


@pytest.mark.usefixtures("sevens")
@pytest.mark.parametrize("count", [1, 13])
def test_who_merges_makes_the_remarks_of_one_process(count: int, texts: Path, tmp_path: Path, capsys: Capture) -> None:
    """The first in full and the number of the others, whoever has done the lines; the other processes make none."""
    with gzip.open(texts / "in.en.gz", "rt", encoding="utf-8") as file:
        lines = [f"Zorblax {line}" if 5 < place <= 5 + count else line for place, line in enumerate(file)]
    (tmp_path / "in.txt").write_text("".join(lines), encoding="utf-8")
    words = ["translate", "demo", "--file", str(tmp_path / "in.txt"), "--device", "cpu", "decode.beam=1"]
    assert run([*words, "--out", str(tmp_path / "one")]) == 0
    one = capsys.readouterr().err.splitlines()
    assert one[0].startswith("line 7: ")
    assert one[-1].endswith("more lines; --json has them all") == (count > 10)
    for number in (2, 1, 2):
        assert run([*words, "--out", str(tmp_path / "many"), "bulk.lines=7", "--shard", f"{number}/2"]) == 0
    said = capsys.readouterr().err.splitlines()
    missing, merged, *rest = said
    assert "blocks missing" in missing
    assert rest == [*one, merged, *one]


@pytest.mark.usefixtures("sevens")
def test_words_that_are_left_out_are_said_in_shards_too(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.explain.omission.LIKELIER", -100.0)
    how = ("--json", "--show", "doubt", "decode.beam=1")
    assert translate(texts, tmp_path / "one", *how) == 0
    assert translate(texts, tmp_path / "many", *how, "bulk.lines=7", "--shard", "1/1") == 0
    assert '"omitted": [{' in (tmp_path / "one").read_text(encoding="utf-8")
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.usefixtures("sevens")
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_pairs_are_scored_in_shards_as_by_one_process(
    how: tuple[str, ...], texts: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The sums, too: said by who merges."""
    files = ["--source", str(texts / "in.en.gz"), "--target", str(texts / "in.fr"), "--device", "cpu", *how]
    assert run(["score", "demo", *files, "--out", str(tmp_path / "one")]) == 0
    sums = capsys.readouterr()
    for number in (1, 2):
        shard = ["--shard", f"{number}/2", "bulk.lines=7", "--out", str(tmp_path / "many")]
        assert run(["score", "demo", *files, *shard]) == 0
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()
    said = capsys.readouterr()
    assert said.err.splitlines()[2:] == sums.err.splitlines()
    assert bool(said.out) == bool(how)
    for name, value in json.loads(sums.out or "{}").items():
        assert json.loads(said.out)[name] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("how", [(), ("--shard", "1/1")])
def test_nothing_to_score_is_refused_in_shards_as_by_one_process(
    how: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "empty").touch()
    files = ["--source", str(tmp_path / "empty"), "--target", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]
    assert run(["score", "demo", *files, "--device", "cpu", *how]) == 3
    assert "empty: is empty; give at least one sentence" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("decode", ["decode.beam=1", "decode.best=2"])
def test_a_test_set_is_measured_in_shards_as_by_one_process(
    decode: str, texts: Path, tmp_path: Path, capsys: Capture
) -> None:
    """All figures with their intervals, and the translations; only who merges measures."""
    files = ["--source", str(texts / "in.en.gz"), "--target", str(texts / "in.fr"), "--device", "cpu", "--json", decode]
    assert run(["evaluate", "demo", *files, "--out", str(tmp_path / "one")]) == 0
    one, shown = capsys.readouterr().out, []
    for number in (2, 1, 2):
        shard = ["--shard", f"{number}/2", "bulk.lines=7", "--out", str(tmp_path / "many")]
        assert run(["evaluate", "demo", *files, *shard]) == 0
        shown.append(capsys.readouterr().out)
    assert shown == ["", one, one]
    assert '"low"' in one
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.parametrize("words", [["--hypotheses", "in.fr", "--out", "x"], []])
def test_what_is_not_translated_is_not_divided(words: list[str], texts: Path, capsys: Capture) -> None:
    files = ["--source", str(texts / "in.en.gz"), "--target", str(texts / "in.fr"), *words]
    assert run(["evaluate", "demo", *files, "--shard", "1/2"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_is_started_again_and_does_the_rest(
    number: signal.Signals, texts: Path, tmp_path: Path, capsys: Capture
) -> None:
    out, done = tmp_path / "many", tmp_path / "many.blocks"
    words = [
        *("--file", str(texts / "in.en.gz"), "--out", str(out), "--device", "cpu"),
        "bulk.lines=2",
        "--shard",
        "1/1",
    ]
    command = [sys.executable, "-m", "regard", "translate", "demo", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not done.is_dir() or len(list(done.glob("0*"))) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    said = process.communicate()[1].splitlines()
    assert (process.returncode, said[-1:]) == ((130, ["interrupted"]) if number == signal.SIGINT else (-9, []))
    before = {path.name: path.stat().st_mtime_ns for path in done.glob("0*")}
    assert not out.exists()
    assert translate(texts, out, "bulk.lines=2", "--shard", "1/1") == 0
    assert before.items() <= {path.name: path.stat().st_mtime_ns for path in done.glob("0*")}.items()
    assert f"{len(PAIRS) // 2 + 2} blocks merged" in capsys.readouterr().err
    assert translate(texts, tmp_path / "one") == 0
    assert out.read_bytes() == (tmp_path / "one").read_bytes()


def test_one_command_with_other_settings_is_refused(texts: Path, tmp_path: Path, capsys: Capture) -> None:
    assert translate(texts, tmp_path / "out", "decode.beam=1", "--shard", "1/9") == 0
    assert translate(texts, tmp_path / "out", "decode.beam=2", "--shard", "2/9") == 2
    assert "decode.beam = 1, here 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--shard", "1/2"],
        ["--shard", "1/2", "--file", "in.txt"],
        ["--on", "ray", "--file", "in.po", "--out", "x"],
        ["--shard", "1/2", "--file", "-", "--out", "x"],
        ["--shard", "1/2", "--file", "in.txt", "--out", "-"],
        ["--shard", "one", "--file", "in.txt", "--out", "x"],
        ["--shard", "3/2", "--file", "in.txt", "--out", "x"],
        ["--on", "spark", "--file", "in.txt", "--out", "x"],
    ],
)
def test_what_cannot_be_divided_is_refused_in_one_line(
    words: list[str], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["translate", "demo", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_file_that_is_not_there_leaves_nothing_behind(tmp_path: Path, capsys: Capture) -> None:
    files = ["--file", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    assert run(["translate", "demo", *files, "--shard", "1/2"]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_ray_cluster_of_two_workers_writes_the_same(texts: Path, tmp_path: Path) -> None:
    assert translate(texts, tmp_path / "one", "decode.beam=1") == 0
    assert translate(texts, tmp_path / "many", "decode.beam=1", "bulk.lines=7", "--on", "ray", "bulk.workers=2") == 0
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_an_actor_that_is_killed_changes_nothing_and_stdout_stays_empty(texts: Path, tmp_path: Path) -> None:
    """Ray says who has died; that is for people, and stdout is for data."""
    assert translate(texts, tmp_path / "one") == 0
    words = ["--file", str(texts / "in.en.gz"), "--out", str(tmp_path / "many"), "--device", "cpu", "bulk.lines=1"]
    command = [sys.executable, "-m", "regard", "translate", "demo", *words, "--on", "ray", "bulk.workers=2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (actors := [each for each in below(process.pid) if named(each).startswith("ray::_Actor.work")]):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(actors[0], signal.SIGKILL)
    out, said = process.communicate()
    assert (process.returncode, out) == (0, "")
    assert "55 blocks merged" in said
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()


def below(process: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for each in map(int, task.read_text().split()):
            yield each
            yield from below(each)


def named(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""
