"""Whatever the disk refuses and whenever the process is killed: the old state is there or the new one, never a third.

Not by chance: every call that changes the disk is let fail once, in each of three ways.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

import corpora_for_tests as small
from benches import scripts
from importing import imported, small_run
from regard.convert.to_huggingface import export
from regard.errors import RegardError, failure
from regard.explain.alignment import Aligner
from regard.files import is_leftover
from regard.runs.archive import pack, unpack, verify_run
from regard.runs.folder import Run, best_checkpoint, steps
from regard.runs.log import Log, read_log
from regard.tasks.load import open_translator
from regard.trainer.loop import Trainer
from regard.trainer.start import last_good, open_run, start
from reports import by_hand

State = dict[str, bytes]


(DISK,) = scripts("failing_disk")


def state(folder: Path) -> State:
    """Everything under its real name, with its bytes; what was never finished does not count."""
    found = {}
    for path in sorted(folder.rglob("*")):
        names = path.relative_to(folder).parts
        if not any(is_leftover(name) for name in names):
            found["/".join(names)] = path.read_bytes() if path.is_file() else b"folder"
    return found


def enumerated(kind: str, act: Callable[[], object], again: Callable[[], object], look: Callable[[str], object]) -> int:
    """Let every call fail once: `act`, `look` at what is there now, and make everything as it was before `again`.

    The number of calls that there were.
    """
    for number in range(1, 10_000):
        again()
        with DISK.failing(number, kind) as disk:
            try:
                act()
            except DISK.Killed:
                assert kind == "killed"
            except (OSError, SafetensorError, RegardError) as error:
                if (known := failure(error)) is None or known.exit_code != 5:
                    raise
        look(f"{kind}, call {number}: {disk.named}")
        if not disk.failed:
            return number - 1
    raise AssertionError


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "small"
    corpus = small.animals(tmp_path_factory.mktemp("corpus"))
    wanted = small.settings("gru", *corpus, "train.steps=3", "train.validate_every=1", "train.keep=1", "model.width=4")
    start(folder, wanted, small.Notes(), device="cpu")
    return folder


def either(folder: Path, old: State, new: State) -> Callable[[str], None]:
    def look(where: str) -> None:
        assert state(folder) in (old, new), where

    return look


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_an_export_is_the_old_one_or_the_new_one(kind: str, trained: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    pack(trained, place / "run.tar")
    new = state(place)

    def again() -> None:
        shutil.rmtree(place)
        place.mkdir()
        (place / "run.tar").write_bytes(b"old")

    again()
    calls = enumerated(kind, lambda: pack(trained, place / "run.tar"), again, either(place, state(place), new))
    assert calls > 5


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_an_imported_run_is_whole_or_not_there(kind: str, trained: Path, tmp_path: Path) -> None:
    pack(trained, tmp_path / "run.tar")
    place = tmp_path / "runs"
    unpack(tmp_path / "run.tar", place / "mine")
    new = state(place)

    def again() -> None:
        shutil.rmtree(place)
        place.mkdir()

    calls = enumerated(kind, lambda: unpack(tmp_path / "run.tar", place / "mine"), again, either(place, {}, new))
    assert calls > 20


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_a_model_for_or_from_another_library_is_whole_or_not_there(kind: str, tmp_path: Path) -> None:
    """Written for transformers, and what was written taken back as a run."""
    shape = ("model.norm_place=after", "model.tie=all", "model.encoder_depth=1", "model.decoder_depth=1")
    material, place = open_translator(small_run(tmp_path / "run", *shape)), tmp_path / "x"
    model = export(material, tmp_path / "model")
    assert {path.stat().st_mode & 0o777 for path in model.iterdir()} == {
        (tmp_path / "run" / "best").stat().st_mode & 0o777
    }

    def again() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()

    for act in (lambda: export(material, place / "new"), lambda: imported(model, place / "new")):
        again()
        act()
        new = state(place)

        def look(where: str, new: State = new) -> None:
            found = state(place)
            assert found.keys() in (set(), new.keys()), where
            assert all(content == new[name] for name, content in found.items() if name != "new/log.jsonl"), where

        assert enumerated(kind, act, again, look) > 15


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_a_report_is_the_old_one_or_the_new_one(kind: str, tmp_path: Path) -> None:
    made, aligner = by_hand(), Aligner()

    def act() -> None:
        made.save(tmp_path / "run" / "report.html")
        aligner.save(tmp_path / "run")

    act()
    new = state(tmp_path / "run")
    old = dict.fromkeys(new, b"old")

    def again() -> None:
        shutil.rmtree(tmp_path / "run")
        (tmp_path / "run").mkdir()
        for name in old:
            (tmp_path / "run" / name).write_bytes(b"old")

    def look(where: str) -> None:
        found = state(tmp_path / "run")
        assert found.keys() == new.keys(), where
        assert all(found[name] in (old[name], new[name]) for name in new), where

    assert enumerated(kind, act, again, look) > 10


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_a_run_is_prepared_part_by_part_and_each_is_whole(kind: str, trained: Path, tmp_path: Path) -> None:
    """Settings, tokenizers and encoded text: there as they must be, or not at all; and the same command goes on."""
    place, whole, settings = tmp_path / "run", state(trained), Run.open(trained).settings
    seen: State = {}

    def act() -> Trainer:
        return open_run(Run.create(place, settings), torch.device("cpu"))

    def look(where: str) -> None:
        found = state(place) if place.exists() else {}
        assert all(content == whole[name] for name, content in found.items() if name != "log.jsonl"), where
        for name in ("tokenizer", "data/train", "data/valid"):
            parts = {each for each in whole if each.startswith(f"{name}/")}
            assert parts & found.keys() in (set(), parts), where
        if len(found) != len(seen):  # something more is there than the last time: go on from here
            seen.clear()
            seen.update(found)
            with DISK.failing(0, kind):  # never, and without waiting for a real disk
                act()

    assert enumerated(kind, act, lambda: shutil.rmtree(place, ignore_errors=True), look) > 60


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_a_checkpoint_is_there_whole_or_the_one_before_is(kind: str, trained: Path, tmp_path: Path) -> None:
    """Writing it, pointing to it and dropping the one before: whenever that ends, all that is there is whole."""
    place = tmp_path / "run"
    shutil.copytree(trained, place)
    run = Run.open(place)
    trainer = open_run(run, torch.device("cpu"))
    saved = last_good(run, str)
    assert saved is not None
    trainer.resume(saved)
    now = trainer.progress
    trainer.progress = replace(now, step=now.step + 1, best_step=now.step + 1)
    before, after = f"step-{now.step}", f"step-{now.step + 1}"

    def again() -> None:
        shutil.rmtree(place)
        shutil.copytree(trained, place)

    def look(where: str) -> None:
        there = [path.name for path in steps(place / "checkpoints")]
        assert there in ([before], [before, after], [after]), where
        assert {state for _, state, _ in verify_run(place)} == {"whole"}, where
        assert best_checkpoint(run).name in there, where
        assert (last_good(run, pytest.fail) or saved).progress.step in (now.step, now.step + 1)

    assert enumerated(kind, trainer._save, again, look) > 25


@pytest.mark.parametrize("kind", DISK.KINDS)
def test_a_line_of_a_log_is_there_or_half_of_it_and_harms_no_other(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def again() -> None:
        path.unlink(missing_ok=True)
        Log(path).tell("first")

    def look(where: str) -> None:
        Log(path).tell("last")
        texts = [event["text"] for event in read_log(path)]
        assert texts in (["first", "last"], ["first", "second", "last"]), where

    assert enumerated(kind, lambda: Log(path).tell("second"), again, look) == 2


def test_the_disk_counts_whatever_writes(tmp_path: Path) -> None:
    with DISK.failing(3, "full") as disk:
        (tmp_path / "a").write_text("123456")
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "b").write_text("123456")
    assert (disk.named, disk.calls, (tmp_path / "a").read_text()) == ("open", 3, "123456")
    with DISK.failing(2, "killed"), pytest.raises(DISK.Killed):
        (tmp_path / "c").write_text("123456")
    assert (tmp_path / "c").read_text() == "123"


@pytest.mark.parametrize("verb", ["train", "report"])
def test_whatever_the_disk_refuses_of_a_whole_verb_is_one_line_and_leaves_nothing_half_there(
    verb: str, tmp_path: Path
) -> None:
    """Some calls; `make faults` refuses every one."""
    (verbs,) = scripts("failing_verbs")
    every = {"train": 61, "report": 11}[verb]
    found = list(verbs.enumerated(verbs.verbs(tmp_path)[verb], first=3, every=every))
    assert len(found) >= 3
    assert not any(found), "\n".join(found)
