"""A run is what was written, or says what is not; what is left over is found, and a full disk is found out early."""

from __future__ import annotations

import errno
import gzip
import importlib.util
import json
import os
import shutil
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import corpora_for_tests as small
from regard import files
from regard.cli.main import run as cli
from regard.data.check import check
from regard.data.clean import clean
from regard.data.lines import LONGEST_LINE, CorpusProblem, read_lines
from regard.data.readers import Corpus
from regard.data.shards import open_shards
from regard.decode.cancel import cancellable
from regard.errors import DataError, ModelError, ResourceError
from regard.files import locked, new_file, new_folder
from regard.runs import listing as runs
from regard.runs.archive import pack, unpack
from regard.runs.folder import (
    BELONGS,
    MANIFEST,
    Progress,
    Run,
    belonging,
    belongs,
    best_checkpoint,
    load_progress,
    manifest,
    occupied,
    seal,
    steps,
)
from regard.runs.listing import find, leftovers, portray, summarise, trash_run
from regard.runs.log import Log, Moment, read_log
from regard.settings import load_settings
from regard.tasks.corpus import Files, materials
from regard.tasks.load import load
from regard.text.tokenizers import load as load_tokenizer
from regard.trainer import preflight
from regard.trainer import start as training
from regard.trainer.loop import Outcome
from regard.trainer.start import resume, start
from regard.trainer.workers import ALONE, Workers

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "runs" / "small"
    before = os.umask(0o027)
    start(folder, small.settings("transformer-tiny", "train.steps=3"), small.Notes(), device="cpu")
    os.umask(before)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "runs" / "small")


def unsealed(run: Path) -> None:
    """As older versions wrote it."""
    for path in steps(run / "checkpoints"):
        (path / BELONGS).unlink()
        hashes = json.loads((path / MANIFEST).read_text())
        del hashes[BELONGS]
        (path / MANIFEST).write_text(json.dumps(hashes))


def swap(path: Path) -> None:
    """Two words change places."""
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[8], lines[9] = lines[9], lines[8]
    path.write_text("\n".join(lines), encoding="utf-8")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


# Hashes

DAMAGE = {
    "two words": (lambda run: swap(run / "tokenizer/target/vocabulary.tsv"), "vocabulary.tsv: is not what the weights"),
    "a kind": (lambda run: change(run / "tokenizer/source/tokenizer.json", "word", "space"), "is not what the weights"),
    "a file gone": (lambda run: (run / "tokenizer/tokenizers.json").unlink(), "tokenizers.json"),
    "heads": (lambda run: change(run / "settings.toml", "heads = 2", "heads = 4"), "model.heads = 4: the weights were"),
    "a width": (lambda run: change(run / "settings.toml", "width = 16", "width = 1000000"), "width = 1000000: the"),
    "a length": (lambda run: change(run / "settings.toml", "longest = 200", "longest = 9"), "data.longest = 9: the"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_tokenizers_and_settings_of_other_weights_are_refused(name: str, run: Path, capsys: Capture) -> None:
    damage, words = DAMAGE[name]
    damage(run)
    for verb in (["translate", str(run), "the cat"], ["train", "--resume", str(run), "--steps", "+1"]):
        assert cli(verb) == 4
        assert words in capsys.readouterr().err.strip().splitlines()[-1]
    with pytest.raises(ModelError, match=words):
        pack(run, run.parent / "x.tar")


def test_a_run_of_before_the_hashes_is_opened(run: Path, tmp_path: Path) -> None:
    unsealed(run)
    assert load(run).translate("the cat").text == load(run).translate("the cat").text
    pack(run, tmp_path / "x.tar")
    assert not belongs(unpack(tmp_path / "x.tar", tmp_path / "again"), best_checkpoint(Run.open(tmp_path / "again")))
    resume(run, small.Notes(), device="cpu", more="+1")
    assert belongs(Run.open(run), steps(run / "checkpoints")[-1])


def forged(run: Path) -> None:
    """Let every checkpoint say that it belongs to what is there now, and that its files are as they are now."""
    for path in steps(run / "checkpoints"):
        seal(path, belonging(Run.open(run)))


@pytest.mark.parametrize("pretend", [unsealed, forged])
def test_settings_that_do_not_fit_the_weights_say_so_before_memory_is_taken(
    pretend: Callable[[Path], None], run: Path, capsys: Capture
) -> None:
    change(run / "settings.toml", "width = 16", "width = 1000000")  # petabytes
    pretend(run)
    for verb in (["translate", str(run), "the cat"], ["train", "--resume", str(run), "--steps", "+1"]):
        assert cli(verb) == 4
        assert "the settings do not belong to these weights" in capsys.readouterr().err.strip().splitlines()[-1]


def _header(content: bytes, size: int | None = None) -> bytes:
    """A safetensors file with this header and eight bytes of numbers."""
    return (len(content) if size is None else size).to_bytes(8, "little") + content + bytes(8)


def _tensor(shape: object, offsets: object) -> bytes:
    return _header(json.dumps({"model.x": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}).encode())


HEADERS = {
    "a header longer than the file": _header(b"{}", 1 << 62),
    "a header that would fill the memory": _header(b"[" + b"[]," * (1 << 21) + b"[]]"),
    "a tensor larger than the file": _tensor([1 << 40], [0, 1 << 42]),
    "a tensor larger than its place": _tensor([1 << 40], [0, 8]),
    "numbers of thousands of digits": _tensor([10**4000, 10**4000], [0, 8]),
    "very many axes": _tensor([1] * 100_000, [0, 4]),
    "an end before the beginning": _tensor([2], [8, 0]),
    "an axis that is none": _tensor([True, 2.0], [0, 8]),
    "no places": _tensor([2], [0]),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_of_weights_that_claims_too_much_is_refused_before_memory_is_taken(
    name: str, run: Path, capsys: Capture
) -> None:
    for path in steps(run / "checkpoints"):
        (path / "weights.safetensors").write_bytes(HEADERS[name])
    forged(run)
    tracemalloc.start()
    for verb in ("translate", "runs show", "runs export"):
        words = ["x.tar"] if verb == "runs export" else []
        assert cli([*verb.split(), str(run), *(words or ["the cat"] * (verb == "translate"))]) == 4, verb
        said = capsys.readouterr()
        assert said.err.strip().splitlines()[-1].endswith("is not a safetensors file, or a damaged one")
    assert cli(["train", "--resume", str(run), "--steps", "+1"]) == 4
    assert "no other is whole" in capsys.readouterr().err.strip().splitlines()[-1]
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


NO_NUMBERS = {
    "none": (lambda tensor: tensor.index_fill(0, torch.tensor([1]), torch.nan), "that are infinite or NaN"),
    "infinite": (lambda tensor: tensor.index_fill(0, torch.tensor([0]), -torch.inf), "that are infinite or NaN"),
    "of 8 bits": (lambda tensor: tensor.to(torch.float8_e4m3fn), "of a kind that no run has"),
}


@pytest.mark.parametrize("part", ["weights", "optimizer"])
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_checkpoint_without_numbers_is_damaged(kind: str, part: str, run: Path, capsys: Capture) -> None:
    file = steps(run / "checkpoints")[-1] / f"{part}.safetensors"
    tensors = load_file(file)
    name = next(name for name, tensor in tensors.items() if tensor.dim())
    change, words = NO_NUMBERS[kind]
    save_file(tensors | {name: change(tensors[name])}, file)
    seal(file.parent, belonging(Run.open(run)))
    with cancellable(at_most(5000)):
        assert cli(["train", "--resume", str(run), "--steps", "+1"]) == 4
        assert f"{part}.safetensors: {name} has numbers {words}; it is damaged" in capsys.readouterr().err
        assert cli(["translate", str(run), "the cat"]) == (4 if part == "weights" else 0)


def test_an_optimizer_that_leads_to_infinite_weights_ends_in_a_line(run: Path, capsys: Capture) -> None:
    """The step is one of finite numbers, and what it makes is not: what is validated next is a model without any."""
    file = steps(run / "checkpoints")[-1] / "optimizer.safetensors"
    tensors = load_file(file)
    for name, tensor in tensors.items():
        if tensor.dim():
            tensor.fill_(3e38 if name.endswith("exp_avg") else 0.0)
    save_file(tensors, file)
    seal(file.parent, belonging(Run.open(run)))
    change(run / "settings.toml", "validate_every = ", "validate_every = 1 # ")
    with cancellable(at_most(5000)):
        assert cli(["train", "--resume", str(run), "--steps", "+1"]) == 4
    assert "the model's probabilities are infinite, or no numbers" in capsys.readouterr().err


def at_most(times: int) -> Callable[[], None]:
    taken = iter(range(times))

    def check() -> None:
        assert next(taken, None) is not None, "the search has no end"

    return check


def test_what_may_change_about_a_run_may_change(run: Path) -> None:
    change(run / "settings.toml", 'about = "', 'about = "mine: ')
    change(run / "settings.toml", "steps = 3", "steps = 4")
    resume(run, small.Notes(), device="cpu")
    assert load_progress(steps(run / "checkpoints")[-1]).step == 4


@pytest.mark.parametrize(("old", "new"), [("[model]", "[mod"), ("width = 16", "width = 18")])
def test_settings_that_change_while_a_run_trains_are_not_those_of_its_weights(old: str, new: str, run: Path) -> None:
    class Editor(small.Notes):
        def moment(self, moment: Moment) -> None:
            super().moment(moment)
            change(run / "settings.toml", old, new)

    kept = Run.open(run).settings
    resume(run, Editor(), device="cpu", more="+1")
    assert new in (run / "settings.toml").read_text()
    assert belongs(Run(run, kept), steps(run / "checkpoints")[-1])


class Second(Workers):
    """The second of two processes, of which the first has lost its patience."""

    def sum(self, *values: float) -> list[float]:
        return [*values[:-1], values[-1] + 1]

    def wait(self) -> None: ...


def test_all_processes_know_that_a_run_has_lost_its_patience(run: Path) -> None:
    settings = load_settings(run / "settings.toml", "train.patience=1", "train.steps=9")
    trainer = training.open_run(Run(run, settings), torch.device("cpu"), Second(1, 2))
    trainer.progress = Progress(step=3, judged=3, stale=1)
    assert trainer.run() == Outcome(trainer.progress, "patience")


def test_the_slow_first_steps_of_a_training_say_how_much_is_left(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.trainer.pace.LOG_EVERY", 0.0)
    notes = small.Notes()
    settings = load_settings(run / "settings.toml", "train.steps=4")
    trainer = training.open_run(Run(run, settings), torch.device("cpu"), ALONE, notes)
    trainer.captures = 2  # as on a GPU
    trainer.run()
    assert [moment.left > 0 for moment in notes.moments] == [True, True, True, False]


def test_what_a_checkpoint_belongs_to_may_be_damaged_too(run: Path) -> None:
    best = best_checkpoint(Run.open(run))
    for content in (b"[]", b"[" * 100_000, b'{"files": 3}', b'{"files": {}, "settings": 3}', b"\xff"):
        (best / BELONGS).write_bytes(content)
        with pytest.raises(ModelError, match=r"run\.json: is damaged"):
            belongs(Run.open(run), best)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"../../x.json": "0"}', b"3", b"\xff", b'{"/dev/zero": "0"}'])
def test_a_manifest_names_files_of_its_checkpoint_alone(content: bytes, run: Path) -> None:
    (best_checkpoint(Run.open(run)) / MANIFEST).write_bytes(content)
    with pytest.raises(ModelError, match=r"manifest\.json: missing or damaged"):
        manifest(best_checkpoint(Run.open(run)))


@pytest.mark.parametrize("content", [b"[" * 100_000, b"3", b'{"step": "x"}', b'{"x": 1}', b'{"seconds": NaN}', b"\xff"])
def test_damaged_progress_is_called_so(content: bytes, run: Path) -> None:
    (best_checkpoint(Run.open(run)) / "progress.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"progress\.json: missing or damaged"):
        load_progress(best_checkpoint(Run.open(run)))


def test_verify_checks_every_part_and_names_the_damaged(run: Path, capsys: Capture) -> None:
    assert cli(["runs", "verify", str(run)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("whole") == len(shown.splitlines()) == len(steps(run / "checkpoints")) + 3
    swap(run / "tokenizer" / "source" / "vocabulary.tsv")
    numbers = run / "data" / "train" / "source.numbers"
    numbers.write_bytes(bytes([numbers.read_bytes()[0] ^ 1]) + numbers.read_bytes()[1:])
    (best_checkpoint(Run.open(run)) / "weights.safetensors").write_bytes(b"")
    assert cli(["runs", "verify", str(run), "--json"]) == 4
    shown = capsys.readouterr()
    parts = {part["name"]: part["state"] for part in json.loads(shown.out)}
    assert [name for name, state in parts.items() if state == "damaged"] == [
        f"checkpoints/{best_checkpoint(Run.open(run)).name}",
        "tokenizer, labels, settings",
        "data/train",
    ]
    assert "3 of" in shown.err


def test_verify_says_what_it_cannot_know(run: Path, capsys: Capture) -> None:
    unsealed(run)
    assert cli(["runs", "verify", str(run)]) == 0
    assert "unknown: written by an older Regard, which kept no hashes" in capsys.readouterr().out
    shutil.rmtree(run / "checkpoints")
    shutil.rmtree(run / "data")
    assert cli(["runs", "verify", str(run)]) == 0
    assert "nothing to check" in capsys.readouterr().err


@pytest.mark.usefixtures("with_demo")
def test_the_run_in_the_package_is_whole(capsys: Capture) -> None:
    assert cli(["runs", "verify", "demo"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("whole") == len(shown.splitlines()) == 2


@pytest.mark.parametrize("sampling", [b'"x"', b"1e400", b"[]", b"[" * 9999])
def test_a_damaged_tokenizer_is_called_so(sampling: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b'{"kind": "bpe", "sampling": ' + sampling + b"}")
    with pytest.raises(ModelError, match="is the file damaged"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("value", [[], "x", None, -1, 10**400, True, {}])
@pytest.mark.parametrize("name", ["rows", "numbers", "checksums", "version", "fingerprint", "columns"])
def test_a_damaged_manifest_of_a_corpus_is_called_so(name: str, value: object, run: Path) -> None:
    path = run / "data" / "train" / "manifest.json"
    content = json.loads(path.read_bytes())
    holder = content["columns"]["source"] if name in ("numbers", "checksums") else content
    holder[name] = value
    path.write_text(json.dumps(content))
    if (name, value) not in (("fingerprint", "x"), ("columns", {})):  # these may be
        with pytest.raises(DataError) as problem:
            open_shards(run / "data" / "train")
        assert "none" not in str(problem.value)


@pytest.mark.parametrize("damage", [lambda data: bytes([data[0] ^ 1]) + data[1:], lambda data: data[:-1]])
def test_a_corpus_that_was_damaged_in_the_run_is_encoded_anew_and_that_is_said(
    damage: Callable[[bytes], bytes], run: Path
) -> None:
    file = run / "data" / "train" / "source.numbers"
    whole = file.read_bytes()
    notes = small.Notes()
    resume(run, notes, device="cpu", more="+1")
    assert not [line for line in notes.lines if "encoded again" in line]
    file.write_bytes(damage(whole))
    resume(run, notes, device="cpu", more="+1")
    said = "the train corpus was damaged in the folder of the run, and was encoded again"
    assert [line for line in notes.lines if "encoded again" in line] == [said]
    assert file.read_bytes() == whole


def test_a_corpus_of_a_run_that_lost_a_column_is_encoded_anew(run: Path) -> None:
    path = run / "data" / "train" / "manifest.json"
    whole = path.read_bytes()
    content = json.loads(whole)
    del content["columns"]["target"]
    path.write_text(json.dumps(content))
    notes = small.Notes()
    resume(run, notes, device="cpu", more="+1")
    assert "the train corpus was damaged in the folder of the run, and was encoded again" in notes.lines
    assert path.read_bytes() == whole


def test_sealing_twice_changes_nothing(run: Path) -> None:
    best = best_checkpoint(Run.open(run))
    before = (best / MANIFEST).read_bytes()
    seal(best, belonging(Run.open(run)))
    assert (best / MANIFEST).read_bytes() == before


def test_weights_have_the_permissions_that_the_user_wants(trained: Path) -> None:
    modes = {path.stat().st_mode & 0o777 for path in best_checkpoint(Run.open(trained)).iterdir()}
    assert modes == {0o640}


# What is left over


def left_behind(place: Path) -> None:
    """As of a process that was killed long ago."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.suffix == ".txt":
        place.write_text("half")
    else:
        place.mkdir()
        (place / "half").write_text("half")
    os.utime(place, (time.time() - 1000,) * 2)


HEX = "0123456789ab"


def test_leftovers_are_listed_and_swept(run: Path, capsys: Capture) -> None:
    folder = run.parent
    left = [
        *(folder / f".imported.{HEX}", folder / ".gone.removed.a_b1c2d3", run / "data" / f".train.{HEX}"),
        *(run / "checkpoints" / f".step-5.{HEX}", folder / "corpora" / "mine" / f".x.txt.{HEX}"),
        folder.parent / "corpora" / "old" / f".y.{HEX}",
    ]
    for path in left:
        left_behind(path)
    kept = folder / f".step-9.{HEX}x"
    left_behind(kept)
    assert cli(["runs", "sweep", str(folder)]) == 0
    shown = capsys.readouterr()
    assert {line.split()[-1] for line in shown.out.splitlines()} == set(map(str, left))
    assert "6 things" in shown.err
    assert "add --yes" in shown.err
    assert all(path.exists() for path in left)
    assert cli(["runs", "sweep", str(folder), "--yes", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["removed"]) == 6
    assert not any(path.exists() for path in left)
    assert kept.exists()
    assert cli(["runs", "sweep", str(folder), "--yes"]) == 0
    assert "nothing is left over" in capsys.readouterr().err


def test_an_old_folder_that_stepped_aside_for_nothing_is_put_back(tmp_path: Path) -> None:
    left_behind(tmp_path / f".run.{HEX}.old")
    assert not files.sweep(tmp_path / f".run.{HEX}.old")
    assert (tmp_path / "run" / "half").exists()
    left_behind(tmp_path / f".run.{HEX}.old")
    assert files.sweep(tmp_path / f".run.{HEX}.old")
    assert (tmp_path / "run" / "half").exists()


def test_a_leftover_that_is_gone_meanwhile_is_gone(tmp_path: Path) -> None:
    for name in (f".run.{HEX}", f".run.{HEX}.old"):
        assert files.sweep(tmp_path / name)


@pytest.mark.parametrize("closed", ["theirs", "corpora", ".trash"])
def test_a_folder_that_may_not_be_looked_into_hides_no_leftover(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    (run.parent / closed).mkdir()
    left_behind(run / "data" / f".train.{HEX}")
    small.forbid(monkeypatch, run.parent / closed)
    assert cli(["runs", "sweep", str(run.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["leftovers"] == [str(run / "data" / f".train.{HEX}")]


def test_what_is_in_use_is_never_left_over(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_behind(run / "data" / f".train.{HEX}")
    with occupied(run):
        assert leftovers(run.parent) == []
    assert len(leftovers(run.parent)) == 1
    monkeypatch.setattr(files, "_VERY_YOUNG", 0.0)
    with new_file(run.parent / "file"), new_folder(run.parent / "folder"):
        assert len(leftovers(run.parent)) == 1
    left_behind(run.parent / ".work.abcd1234")  # a scratch folder has no lock
    assert len(leftovers(run.parent)) == 1
    monkeypatch.setattr(files, "lock", lambda *_, **__: None)
    assert leftovers(run.parent) == []


def test_the_trash_is_emptied_where_that_is_asked_for(run: Path, capsys: Capture) -> None:
    place = trash_run(run)
    assert cli(["runs", "sweep", str(run.parent), "--yes"]) == 0
    assert "the trash holds 1 more" in capsys.readouterr().err
    assert cli(["runs", "sweep", str(run.parent), "--trash"]) == 0
    assert place.exists()
    assert cli(["runs", "sweep", str(run.parent), "--trash", "--yes"]) == 0
    assert not place.exists()


def test_sweeping_asks_first(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_behind(run.parent / f".x.{HEX}")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert cli(["runs", "sweep", str(run.parent)]) == 0
    assert (run.parent / f".x.{HEX}").exists()


def test_the_doctor_tells_of_leftovers_and_of_what_cannot_be_read(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(run.parent.parent)
    left_behind(run.parent / f".x.{HEX}")
    (run.parent / "bad").mkdir()
    (run.parent / "bad" / "settings.toml").write_text("model = 3")
    assert cli(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"]
    assert found.startswith("2 in runs; not readable: bad;")
    assert "1 leftover of killed processes" in found
    monkeypatch.chdir(run)
    assert cli(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == "none here"


# The disk


def test_a_disk_too_small_for_the_checkpoints_is_found_out_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Path, capsys: Capture
) -> None:
    settings = small.settings("gru", "train.keep=2")
    found = training.preflight(tmp_path / "fits", settings, small.Notes(), device="cpu")
    written = sum(path.stat().st_size for path in best_checkpoint(Run.open(run)).glob("*.safetensors"))
    of_run = training.preflight(tmp_path / "like", Run.open(run).settings, small.Notes(), device="cpu").disk
    assert of_run / (Run.open(run).settings.train.keep + 2) == pytest.approx(written, rel=0.2)
    assert f"disk            about {found.disk / 2**20:,.0f} MiB of checkpoints" in str(found)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage._replace(free=found.disk - 1))
    with pytest.raises(ResourceError, match="of the disk are free; free some space"):
        start(tmp_path / "run", settings, small.Notes(), device="cpu")
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage._replace(free=0))
    before = Run.open(run), weights_times(run)
    assert cli(["train", "--resume", str(run), "--steps", "+1", "--device", "cpu"]) == 5
    told = capsys.readouterr().err
    assert "checkpoints take" in told
    assert "--out" not in told
    assert (Run.open(run), weights_times(run)) == before


def weights_times(run: Path) -> list[int]:
    return [path.stat().st_mtime_ns for path in sorted(run.rglob("*.safetensors"))]


def test_the_disk_has_room_for_an_average_and_for_what_is_not_trained(run: Path) -> None:
    settings = load_settings(run / "settings.toml", "train.keep=2", "train.average={kind='last', count=3}")
    trainer = training.open_run(Run(run, settings), torch.device("cpu"))
    before = preflight.preflight(trainer, Run(run, settings)).disk
    trainer.weights["fixed"] = torch.zeros(1000)
    after = preflight.preflight(trainer, Run(run, settings)).disk
    assert after - before == (2 + 3 + 1 + 1) * 2 * 4000  # kept, averaged, best, being written; weights and average


def test_a_run_that_the_disk_has_no_room_to_prepare_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("regard.data.shards._ColumnWriter.write", full)
    with pytest.raises(OSError, match="full"):
        start(tmp_path / "run", small.settings("gru"), small.Notes(), device="cpu")
    assert list(tmp_path.iterdir()) == []


# One bad run, log or line harms no other

STRANGE = {
    "a step without its numbers": b'{"event": "step", "step": 3}\n',
    "a validation without its name": b'{"event": "validation", "step": 1, "epoch": 0, "seconds": 1, "loss": 1,'
    b' "score": 1}\n',
    "numbers that are none": b'{"event": "validation", "step": 4, "epoch": 0, "seconds": 1, "loss": NaN,'
    b' "score": Infinity, "name": "BLEU", "best": true}\n',
    "large numbers": b'{"event": "step", "step": ' + b"9" * 400 + b"}\n",
    "samples of another kind": b'{"event": "validation", "step": 1, "epoch": 0, "seconds": 1, "loss": 1, "score": 1, '
    b'"name": "BLEU", "best": true, "samples": [3]}\n',
    "no text": b"\xff\xfe\n",
    "depth": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_line_in_a_log_is_passed_over(name: str, run: Path, capsys: Capture) -> None:
    with (run / "log.jsonl").open("ab") as file:
        file.write(STRANGE[name])
    summary = summarise(run)
    assert (summary.state, summary.steps) == ("finished", 3)
    assert portray(run).validations
    assert cli(["runs", "ls", str(run.parent), "--json"]) == 0
    assert "NaN" not in capsys.readouterr().out


def test_a_log_of_line_ends_takes_no_memory_for_each(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"event": "note"}' + b"\n" * 3_000_000)
    assert read_log(tmp_path / "log") == [{"event": "note"}]


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"event": "note", "te')
    Log(tmp_path / "log.jsonl").tell("again")
    assert [event["text"] for event in read_log(tmp_path / "log.jsonl")] == ["again"]


@pytest.mark.parametrize("where", ["is_file", "iterdir"])
def test_a_folder_of_somebody_else_is_listed_as_one_that_cannot_be_read(
    where: str, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (run.parent / "theirs").mkdir()
    real = getattr(Path, where)

    def closed(path: Path) -> object:
        if "theirs" in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, where, closed)
    assert [path.name for path in find(run.parent)] == ["small", "theirs"]
    assert cli(["runs", "ls", str(run.parent)]) == 0
    assert "unreadable" in capsys.readouterr().out


def test_a_pointer_that_is_no_text_points_nowhere(run: Path) -> None:
    (run / "best").write_bytes(b"\xff\xfe" * 1000)
    assert best_checkpoint(Run.open(run)) == steps(run / "checkpoints")[-1]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(suffix: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"train.{side}{suffix}" for side in ("source", "target")]
    for path in paths:
        with (gzip.open if suffix else open)(path, "wb") as file:
            file.write(b"one\n" + b"x" * (3 * LONGEST_LINE) + b"\nthree\n")
    with pytest.raises(DataError, match="line 2: longer than 1,048,576 bytes"):
        list(read_lines(paths[0]))
    corpus = Corpus(tuple(map(str, paths)))
    found = check(corpus)
    assert (found.pairs, {finding.kind: finding.count for finding in found.findings}["format"]) == (3, 2)
    outcome = clean(corpus, *(tmp_path / name for name in ("a", "b", "dropped.tsv")), keep=("identical",))
    assert outcome.kept == 2


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_end_of_a_line_is_no_part_of_it(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "most").write_bytes(b"x" * LONGEST_LINE + end)
    assert [len(line) for line in read_lines(tmp_path / "most")] == [LONGEST_LINE]
    (tmp_path / "more").write_bytes(b"x" * (LONGEST_LINE + 1) + end)
    with pytest.raises(DataError, match="line 1: longer than 1,048,576 bytes"):
        list(read_lines(tmp_path / "more"))


ENDLESS = {
    "<seg>" + "x" * (1 << 21): "a unit of more than 1,048,576 characters",
    "<seg " + "x" * (1 << 21): "a tag of more than 1,048,576 bytes",
    "<tuv><seg>x</seg></tuv>" * 4: "a unit of more than 3 characters",
}


@pytest.mark.parametrize("body", ENDLESS, ids=ENDLESS.get)
def test_a_unit_or_tag_without_end_is_refused(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if len(body) < 1000:
        monkeypatch.setattr("regard.data.tables.LONGEST_LINE", 3)
    (tmp_path / "x.tmx").write_text(f"<tmx><body><tu><tuv>{body}")
    corpus, columns = Corpus((str(tmp_path / "x.tmx"),)), ("source", "target")
    with pytest.raises(DataError, match=ENDLESS[body]):
        list(corpus.rows(columns))
    told: list[CorpusProblem] = []
    assert list(corpus.rows(columns, told.append)) == []
    assert [ENDLESS[body] in problem.message for problem in told] == [True]


def test_a_file_whose_name_begins_like_the_built_in_corpus_is_a_file(tmp_path: Path) -> None:
    settings = load_settings("gru", f"data.corpus='{tmp_path}/../fables.tsv'", "data.valid_corpus='fable.tsv'")
    assert not settings.data.is_built_in
    plain = load_settings("gru", "data.corpus=fables.tsv")
    assert isinstance(materials(plain)[0], Files)
    assert load_settings("gru", "data.corpus='fable:fr'").data.is_built_in


def test_a_system_without_fcntl_has_files_and_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("files_elsewhere", files.__file__)
    assert spec is not None
    assert spec.loader is not None
    elsewhere = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(elsewhere)
    with elsewhere.new_file(tmp_path / "file") as file, elsewhere.new_folder(tmp_path / "folder"):
        file.write(b"x")
    with elsewhere.locked(tmp_path) as free:
        assert free is None
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_lock_is_had_by_one(tmp_path: Path) -> None:
    with locked(tmp_path) as first, locked(tmp_path) as second:
        assert (first, second) == (True, False)
    with locked(tmp_path, shared=True) as first, locked(tmp_path, shared=True) as second:
        assert (first, second) == (True, True)


def test_a_file_has_a_size_as_a_folder_has(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    assert runs.size(tmp_path / "a") == runs.size(tmp_path) == 3
