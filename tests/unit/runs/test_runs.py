"""Runs as a crowd: listed, shown, removed, packed and unpacked."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import corpora_for_tests as small
from regard.cli.main import run as cli
from regard.errors import ModelError, ResourceError, SettingsError
from regard.files import locked
from regard.runs import archive
from regard.runs import listing as runs
from regard.runs.archive import CONTENTS, pack, unpack
from regard.runs.folder import Run, is_occupied, occupied, packaged, shapes, steps
from regard.settings import load_settings, preset_names
from regard.tasks.load import load
from regard.trainer.start import preflight, resume, start

Capture = pytest.CaptureFixture[str]
TEXTS = ["the cat sleeps", "the old man eats the apple"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that all tests of this file read and none changes."""
    folder = tmp_path_factory.mktemp("trained") / "runs" / "small"
    start(folder, small.settings("gru", "train.average={kind='moving'}"), small.Notes(), device="cpu")
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(trained, tmp_path / "runs" / "small")


# Listing and showing


def test_a_run_is_summed_up_without_torch(trained: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from regard.runs.listing import summarise;"
        f"print(summarise(Path({str(trained)!r})).state); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout.strip(), done.returncode) == ("finished", 0)


def test_a_summary_says_what_the_run_is_and_how_far_it_came(trained: Path) -> None:
    summary = runs.summarise(trained)
    assert (summary.name, summary.task, summary.preset) == ("small", "translate", "gru")
    assert (summary.steps, summary.of_steps, summary.state) == (12, 12, "finished")
    assert (summary.score_name, summary.best_step) == ("BLEU", 12)
    assert summary.parameters == sum(parameter.numel() for parameter in load(trained).model.parameters())
    assert summary.bytes == sum(path.stat().st_size for path in trained.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("preset", "changes", "expected"),
    [
        ("bahdanau", ("about='regard demo'",), "bahdanau"),  # the first line says nothing of it
        ("transformer-base", ("model.dropout=0.3", "model.heads=4", "model.width=256", "model.hidden=1024"), None),
        ("lstm", ("model.cell=gru",), "gru"),
        ("luong-general", ("model.decoder.attention.score=dot",), "luong-dot"),
        ("luong-local", ("model.decoder.attention.score=concat",), ""),
        ("transformer-tiny", ("model.positions=rotary", "model.activation=swiglu"), ""),
    ],
)
def test_a_preset_is_told_by_the_model_and_not_by_what_somebody_wrote_about_it(
    preset: str, changes: tuple[str, ...], expected: str | None
) -> None:
    found = runs.preset_of(load_settings(preset, *changes).model)
    assert found == (expected if expected is not None else "transformer-small")


def test_every_preset_is_its_own() -> None:
    assert [runs.preset_of(load_settings(name).model) for name in preset_names()] == list(preset_names())


def test_an_architecture_is_told_in_words() -> None:
    def words(preset: str, task: str = "translate") -> str:
        return runs.architecture(load_settings(preset).model, task)

    assert words("lstm") == "LSTM, no attention, 1 layer, width 256"
    assert words("luong-dot") == "LSTM, Luong attention (dot), 2 layers, width 256"
    assert words("bahdanau", "language") == "GRU, 1 layer, width 256"
    assert words("gru", "tag") == "GRU, 1 layer, width 256"
    assert words("transformer-small") == "Transformer, 3+3 layers, 4 heads, width 256"
    assert words("transformer-small", "language") == "Transformer, 3 layers, 4 heads, width 256"
    recent = load_settings("transformer-tiny", "model.positions=rotary", "model.activation=swiglu").model
    assert runs.architecture(recent).endswith(", width 128, rotary positions, SwiGLU")


def test_the_best_run_is_the_one_with_the_best_score_and_of_equals_the_newer() -> None:
    def run(name: str, score: float | None, score_name: str, changed: float) -> runs.Summary:
        return runs.Summary(name, "", "finished", score=score, score_name=score_name, changed=changed)

    found = [run("a", 1.0, "BLEU", 5), run("b", None, "", 9), run("c", 7.0, "BLEU", 1), run("d", 7.0, "BLEU", 2)]
    assert "".join(each.name for each in runs.best_first([*found, run("e", float("nan"), "BLEU", 99)])) == "dcaeb"
    own = [replace(each, name=each.name.upper()) for each in found]
    built_in = [replace(each, built_in=True) for each in found]
    assert "".join(each.name for each in runs.best_first([*built_in, *own])) == "DCAdcaBb"
    along = replace(built_in[3], name="demo", folder=str(packaged()))
    assert [each.name for each in runs.best_first([along, *built_in])][:3] == ["d", "c", "demo"]
    lower = [run("f", 30.0, "perplexity", 3), run("g", 3.0, "perplexity", 2), run("h", None, "", 4)]
    assert "".join(each.name for each in runs.best_first(lower)) == "gfh"


STATES = {
    "finished by time": ("time = ''", "time = '1s'", '"seconds": ', '"seconds": 9'),
    "finished by patience": ("patience = 0", "patience = 2", '"stale": 0', '"stale": 2'),
}


@pytest.mark.parametrize("name", STATES)
def test_a_run_that_ended_before_its_last_step_is_finished_if_it_had_a_reason(name: str, run: Path) -> None:
    settings, newest = run / "settings.toml", steps(run / "checkpoints")[-1] / "progress.json"
    settings.write_text(settings.read_text().replace("steps = 12", "steps = 100"))
    assert runs.summarise(run).state == "interrupted"
    old_setting, new_setting, old, new = STATES[name]
    text = settings.read_text().replace(old_setting.replace("'", '"'), new_setting.replace("'", '"'))
    settings.write_text(text)
    newest.write_text(newest.read_text().replace(old, new, 1))
    assert runs.summarise(run).state == "finished"


def test_a_run_in_training_is_running_and_is_held_by_one_process_alone(run: Path) -> None:
    assert not is_occupied(run)
    with occupied(run):
        assert runs.summarise(run).state == "running"
        with pytest.raises(ResourceError, match="is being trained by another process"), occupied(run):
            pass
        with pytest.raises(ResourceError, match="is being trained by another process"):
            resume(run, small.Notes(), device="cpu")
        with pytest.raises(ModelError, match="is being trained by another process; stop it first"):
            runs.remove_run(run)
    assert runs.summarise(run).state == "finished"


def test_a_training_may_start_in_the_moment_in_which_somebody_looks(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, slept = locked(run, shared=True), list[float]()
    assert looking.__enter__() is True

    def look_away(seconds: float) -> None:
        slept.append(seconds)
        looking.__exit__(None, None, None)

    monkeypatch.setattr("regard.runs.folder.time.sleep", look_away)
    with occupied(run):
        assert is_occupied(run)
    assert len(slept) == 1


def test_where_there_are_no_locks_nobody_is_kept_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", without_locks)
    with occupied(run):
        assert not is_occupied(run)


def test_runs_are_found_in_folders_inside_but_not_through_links_nor_in_runs(run: Path) -> None:
    root = run.parent
    shutil.copytree(run, root / "deep" / "er" / "other")
    shutil.copytree(run, run / "inside")
    shutil.copytree(run, root / ".hidden")
    (root / "link").symlink_to(run)
    assert list(runs.find(root)) == [root / "deep" / "er" / "other", run]
    assert list(runs.find(run)) == [run]
    with pytest.raises(ModelError, match="no such folder; regard train makes"):
        next(runs.find(root / "nowhere"))


def test_a_broken_run_is_listed_and_named(run: Path, capsys: Capture) -> None:
    (steps(run / "checkpoints")[-1] / "progress.json").write_text("{")
    (run.parent / "bad").mkdir()
    (run.parent / "bad" / "settings.toml").write_text("model = 3")
    assert cli(["runs", "ls", str(run.parent), "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert {entry["state"] for entry in found.values()} == {"unreadable"}
    assert "settings.toml: model" in found["bad"]["note"]
    assert cli(["runs", "show", str(run)]) == 4


def test_ls_prints_a_table_that_fits(run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli(["runs", "ls", str(run.parent)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "run",
        "state",
        "task",
        "languages",
        "preset",
        "parameters",
        "steps",
        "best",
        "changed",
        "size",
    ]
    assert row.split()[:5] == ["small", "finished", "translate", "en-fr", "gru"]
    monkeypatch.setattr("regard.cli.runs._width", lambda: 60)
    assert cli(["runs", "ls", str(run.parent)]) == 0
    narrow = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in narrow)
    assert narrow[0].split() == ["run", "state", "preset", "steps", "best"]
    assert cli(["runs", "ls", str(run / "tokenizer")]) == 0
    assert "no runs in here" in capsys.readouterr().err


def test_show_draws_curves_and_names_checkpoints(run: Path, capsys: Capture) -> None:
    assert cli(["runs", "show", str(run)]) == 0
    shown = capsys.readouterr().out
    for word in ("finished", "gru", "fable:fr, 300 pairs", "valid loss", "█", "step-12", "best: BLEU"):
        assert word in shown, word
    assert cli(["runs", "show", str(run), "--json"]) == 0
    portrait = json.loads(capsys.readouterr().out)
    assert [step for step, _, _ in portrait["validations"]] == [5, 10, 12]
    assert [kept["best"] for kept in portrait["checkpoints"]] == [False, False, True]


def test_a_run_that_is_only_prepared_can_be_shown(tmp_path: Path, capsys: Capture) -> None:
    Run.create(tmp_path / "new", small.settings("transformer-tiny", "data.corpus=''", "data.source=a", "data.target=b"))
    assert cli(["runs", "show", str(tmp_path / "new")]) == 0
    shown = capsys.readouterr().out
    assert "prepared" in shown
    assert "1+1 layers" in shown
    assert "corpus        a b" in shown


def test_a_curve_goes_from_its_lowest_to_its_highest_block() -> None:
    assert runs.sparkline([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == "▁▂▃▄▅▆▇█"
    assert runs.sparkline([5.0] * 3) == "▁▁▁"
    assert runs.sparkline([float("nan")]) == ""
    assert len(runs.sparkline([float(number) for number in range(1000)], width=40)) == 40
    assert runs.sparkline([0.0, 2.0, 9.0, 11.0], width=2) == "▁█"


def test_a_file_that_goes_while_a_folder_is_measured_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stays").write_bytes(b"seven..")
    (tmp_path / "link").symlink_to("stays")
    monkeypatch.setattr("os.walk", lambda folder: [(str(folder), [], ["gone", "link", "stays"])])
    assert runs.size(tmp_path) == 7


def test_sizes_are_written_for_people() -> None:
    from regard.cli.runs import _bytes, _count  # noqa: PLC0415

    assert [_bytes(number) for number in (7, 2048, 3 << 20, 5 << 30)] == ["7 B", "2 KiB", "3 MiB", "5.0 GiB"]
    assert [_count(number) for number in (999, 1_250_000)] == ["999", "1.2 M"]


# Removing


def test_rm_puts_a_run_into_the_trash_and_says_how_to_take_it_back(run: Path, capsys: Capture) -> None:
    before = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert cli(["runs", "rm", str(run)]) == 0
    assert capsys.readouterr().err == f"removed {run}; undo: regard runs restore {run}\n"
    assert not run.exists()
    assert list(runs.find(run.parent)) == []
    assert cli(["runs", "restore", str(run)]) == 0
    assert capsys.readouterr().err == f"{run}: is back\n"
    assert {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_the_trash_keeps_every_run_of_a_name_and_gives_the_last_one_back_first(run: Path, capsys: Capture) -> None:
    for content in ("one", "two", "three"):
        if not run.exists():
            Run.create(run, small.settings("lstm"))
        (run / "notes.md").write_text(content)
        runs.trash_run(run)
    assert cli(["runs", "restore", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": str(run)}
    assert (run / "notes.md").read_text() == "three"
    assert cli(["runs", "restore", str(run)]) == 4
    assert "is there again; rename that first" in capsys.readouterr().err
    runs.rename_run(run, "three")
    assert (runs.put_back(run.parent, "small") / "notes.md").read_text() == "two"
    assert runs.trashed(run.parent).keys() == {"small"}


def test_what_is_not_in_the_trash_cannot_be_taken_back(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing: is not in the trash; it is empty"):
        runs.put_back(tmp_path, "nothing")
    runs.trash_run(run)
    with pytest.raises(ModelError, match="smal: is not in the trash; did you mean 'small'"):
        runs.put_back(run.parent, "smal")


def test_a_run_gets_another_name(run: Path, capsys: Capture) -> None:
    assert cli(["runs", "rename", str(run), "better"]) == 0
    assert capsys.readouterr().err == f"{run}: is {run.parent / 'better'} now\n"
    assert cli(["runs", "rename", str(run.parent / "better"), "best", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": str(run.parent / "best")}
    assert load(run.parent / "best").translate(TEXTS[0]).text


@pytest.mark.parametrize(
    ("name", "expected"), [("../away", "not a name for a run"), (".hidden", "not a name"), ("taken", "is taken")]
)
def test_a_name_that_cannot_be_had_is_refused(run: Path, name: str, expected: str) -> None:
    (run.parent / "taken").mkdir()
    with pytest.raises(SettingsError, match=expected):
        runs.rename_run(run, name)
    assert run.exists()


def test_a_run_in_training_keeps_its_name_and_its_place(run: Path) -> None:
    with occupied(run):
        for change in (lambda: runs.rename_run(run, "other"), lambda: runs.trash_run(run)):
            with pytest.raises(ModelError, match="is being trained by another process; stop it first"):
                change()


def test_the_run_that_comes_with_the_package_stays_as_it_is(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.runs.folder.PACKAGED", run)
    for change in (lambda: runs.rename_run(run, "other"), lambda: runs.trash_run(run), lambda: runs.remove_run(run)):
        with pytest.raises(ModelError, match="small: comes with Regard, and is neither renamed nor removed"):
            change()


def test_rm_now_asks_and_takes_no_for_an_answer(run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (run / "notes.md").write_text("mine")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    asked: list[str] = []
    answers = iter([False, True])

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("typer.confirm", confirm)
    assert cli(["runs", "rm", str(run), "--now", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": []}
    assert run.exists()
    assert "also notes.md, which Regard did not make" in asked[0]
    assert cli(["runs", "rm", str(run), "--now"]) == 0
    assert list(run.parent.iterdir()) == []


def test_rm_now_without_anybody_to_ask_needs_yes(run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert cli(["runs", "rm", str(run), "--now"]) == 2
    assert "there is no terminal to answer in; add --yes" in capsys.readouterr().err
    assert cli(["runs", "rm", str(run), "--now", "--yes"]) == 0
    assert not run.exists()


def test_rm_removes_a_link_inside_and_not_what_it_points_to(run: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("mine")
    (run / "data" / "link").symlink_to(tmp_path / "precious")
    assert cli(["runs", "rm", str(run), "--now", "--yes"]) == 0
    assert (tmp_path / "precious" / "thesis.txt").exists()


def test_rm_refuses_what_is_not_a_run_before_anything_is_gone(run: Path, tmp_path: Path, capsys: Capture) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "settings.toml").write_text("[server]\nport = 80\n")
    assert cli(["runs", "rm", str(run), str(project), "--yes"]) == 2
    assert cli(["runs", "rm", str(run), str(tmp_path), "--yes"]) == 4
    (tmp_path / "link").symlink_to(run)
    assert cli(["runs", "rm", str(tmp_path / "link"), "--yes"]) == 4
    assert "is a link to" in capsys.readouterr().err
    assert run.exists()
    assert project.exists()


# Packing and unpacking


@pytest.mark.parametrize("suffix", archive.SUFFIXES)
def test_an_imported_run_translates_the_same(suffix: str, run: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / f"run{suffix}"
    assert cli(["runs", "export", str(run), str(file)]) == 0
    assert "weights only; --to archive-all takes the optimizer too" in capsys.readouterr().err
    assert cli(["runs", "import", str(file), "--out", str(tmp_path / "again")]) == 0
    assert "again: imported; try: regard translate" in capsys.readouterr().err
    assert load(tmp_path / "again").translate(TEXTS) == load(run).translate(TEXTS)
    assert not (tmp_path / "again" / "data").exists()
    assert runs.summarise(tmp_path / "again").score == runs.summarise(run).score
    assert runs.summarise(tmp_path / "again").parameters == runs.summarise(run).parameters


def test_weights_alone_are_the_averaged_ones_and_cannot_be_resumed(run: Path, tmp_path: Path) -> None:
    (run / "labels.tsv").write_text("good\t3\n")
    packed = pack(run, tmp_path / "run.tar")
    again = unpack(tmp_path / "run.tar", tmp_path / "again")
    assert packed.checkpoints == ["step-12"]
    assert again.labels.read_text() == "good\t3\n"
    names = {path.name for path in steps(again.checkpoints)[0].iterdir()}
    assert names == {"manifest.json", "progress.json", "run.json", "average.safetensors"}
    with pytest.raises(
        ModelError, match="holds weights alone and cannot be resumed; where it was trained, use --to archive-all"
    ):
        resume(again.folder, small.Notes(), device="cpu")


def test_a_run_exported_whole_goes_on_where_it_was(run: Path, tmp_path: Path) -> None:
    for folder in (run, tmp_path / "again"):
        if folder != run:
            pack(run, tmp_path / "run.tar", everything=True)
            unpack(tmp_path / "run.tar", folder)
    for folder in (run, tmp_path / "again"):
        text = (folder / "settings.toml").read_text()
        (folder / "settings.toml").write_text(text.replace("\nsteps = 12", "\nsteps = 15"))
        assert resume(folder, small.Notes(), device="cpu").progress.step == 15
    assert small.weights(tmp_path / "again") == small.weights(run)


def test_the_same_run_gives_the_same_bytes_and_a_default_name(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    first = pack(run, Path("a.tar.gz"))
    pack(run, Path("b.tar.gz"))
    assert Path("a.tar.gz").read_bytes() == Path("b.tar.gz").read_bytes()
    assert len(first.files) == len(members(Path("a.tar.gz"))) - 1
    assert cli(["runs", "import", "a.tar.gz"]) == 4
    assert "runs/small: is there already; choose another --out" in capsys.readouterr().err
    shutil.rmtree(run)
    assert cli(["runs", "import", "a.tar.gz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": "runs/small", "task": "translate"}
    assert cli(["runs", "export", "runs/small", "c.tar", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoints"] == ["step-12"]


def test_a_damaged_checkpoint_is_not_exported(run: Path, tmp_path: Path) -> None:
    broken = run / "checkpoints" / "step-12" / "average.safetensors"
    broken.write_bytes(broken.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelError, match=r"average\.safetensors: is not what was written"):
        pack(run, tmp_path / "run.tar")
    assert not (tmp_path / "run.tar").exists()


def test_only_archives_that_are_known_are_written(run: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"run\.zip: not a kind of archive .* use \.tar, \.tar\.gz, \.tgz"):
        pack(run, tmp_path / "run.zip")


Members = list[tuple[tarfile.TarInfo, bytes]]
Change = Callable[[Members], object]


def members(file: Path) -> Members:
    with tarfile.open(file) as tar:
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def rewrite(file: Path, change: Change, *, again: bool = False) -> None:
    """Change an archive's members; `again` writes honest hashes over what is there then, as an attacker would."""
    found = members(file)
    change(found)
    if again:
        contents = json.loads(found[0][1])
        contents["files"] = {
            member.name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for member, data in found[1:]
        }
        found[0] = (found[0][0], json.dumps(contents).encode())
    with tarfile.open(file, "w") as tar:
        for member, data in found:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))


def add(name: str, data: bytes = b"x", kind: bytes = tarfile.REGTYPE) -> Change:
    def change(found: Members) -> None:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        found.append((member, data))

    return change


def replaced(name: str, data: bytes) -> Change:
    def change(found: Members) -> None:
        place = next(number for number, (member, _) in enumerate(found) if member.name.endswith(name))
        found[place] = (found[place][0], data)

    return change


def drop(found: Members) -> None:
    found.pop(next(number for number, (member, _) in enumerate(found) if member.name.endswith("progress.json")))


def rename(found: Members) -> None:
    found[0] = (found[0][0], found[0][1].replace(b'"name": "small"', b'"name": "../../x"'))


HOSTILE: dict[str, tuple[Change, bool, str]] = {
    "a path up": (add("../evil.json"), True, r"\.\./evil\.json: would leave the run's folder"),
    "a path up inside": (add("tokenizer/../../evil.json"), True, "would leave the run's folder"),
    "an absolute path": (add("/tmp/evil.json"), True, "/tmp/evil.json: would leave the run's folder"),
    "a link": (add("tokenizer/evil.json", b"", tarfile.SYMTYPE), True, "is a link, a folder or a device"),
    "a hard link": (add("tokenizer/evil.json", b"", tarfile.LNKTYPE), True, "is a link, a folder or a device"),
    "a pickle": (add("checkpoints/step-12/model.pkl", pickle.dumps(1)), True, "never a pickle"),
    "a pickle in disguise": (
        replaced("average.safetensors", pickle.dumps([1] * 100)),
        True,
        r"step-12/average\.safetensors: is not what was written",
    ),
    "a stranger": (add("tokenizer/extra.json"), False, f"extra.json: is not in {CONTENTS}"),
    "one file twice": (add("best", b"step-12\n"), False, "or is there twice"),
    "other bytes": (replaced("best", b"step-13\n"), False, "best: is not what was packed"),
    "more bytes": (replaced("best", b"step-1222\n"), False, "best: has 10 bytes, not 8"),
    "a file less": (drop, False, r"is half an archive: checkpoints/step-12/progress\.json is missing"),
    "no contents": (lambda found: found.pop(0), False, f"it does not begin with {CONTENTS}"),
    "contents cut": (replaced(CONTENTS, b"{"), False, f"{CONTENTS} is damaged"),
    "contents of another kind": (replaced(CONTENTS, b'{"regard": 2}'), False, "regard = 2: not known"),
    "a name that leaves": (rename, False, r"name = '\.\./\.\./x': not a name for a run"),
    "contents nested too deep": (replaced(CONTENTS, b"[" * 100_000), False, f"{CONTENTS} is damaged"),
    "a size below zero": (
        lambda found: found.__setitem__(0, (found[0][0], found[0][1].replace(b'"size": ', b'"size": -'))),
        False,
        f"{CONTENTS} is damaged",
    ),
    "a name of 300 letters": (add(f"tokenizer/{'x' * 300}.json"), True, "is no part of a run"),
    "many folders": (add(f"tokenizer/{'x/' * 2000}x.json"), True, "is no part of a run"),
    "settings of something else": (replaced("settings.toml", b"x = 1"), True, r"settings\.toml"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_is_not_what_it_should_be_is_refused_and_leaves_nothing(
    name: str, run: Path, tmp_path: Path
) -> None:
    pack(run, tmp_path / "run.tar")
    change, again, expected = HOSTILE[name]
    rewrite(tmp_path / "run.tar", change, again=again)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ModelError, match=expected) as error:
        unpack(tmp_path / "run.tar", tmp_path / "again")
    assert str(error.value).startswith(f"{tmp_path / 'run.tar'}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_remark_of_an_archive_is_not_read_if_it_is_huge(
    kind: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 3 << 30
    with gzip.open(tmp_path / "x.tar.gz", "wb") as file:
        file.write(header.tobuf() + bytes(1 << 20))  # it need not even be there
    monkeypatch.setattr(tarfile.TarInfo, "_proc_member", lambda *_: pytest.fail("would be read into memory"))
    with pytest.raises(ModelError, match="a header of 3,221,225,472 bytes; 65,536 are the most"):
        unpack(tmp_path / "x.tar.gz", tmp_path / "again")


def test_a_log_of_an_archive_that_would_fill_the_memory_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(run, tmp_path / "run.tar")
    rewrite(tmp_path / "run.tar", replaced("log.jsonl", b"\n" * 5000), again=True)
    monkeypatch.setattr(archive, "_LARGEST_TEXT", 4999)
    with pytest.raises(ModelError, match=r"log\.jsonl: has 5,000 bytes; 4,999 are the most that are taken"):
        unpack(tmp_path / "run.tar", tmp_path / "again")


def test_a_pickle_with_honest_hashes_is_still_no_safetensors(run: Path, tmp_path: Path) -> None:
    weights = run / "checkpoints" / "step-12" / "average.safetensors"
    weights.write_bytes(pickle.dumps(list(range(100))))
    with pytest.raises(ModelError, match="is not a safetensors file"):
        shapes(weights)
    header = b'{"w": {"shape": [-1]}}'
    (tmp_path / "negative").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelError, match="is not a safetensors file"):
        shapes(tmp_path / "negative")
    hashes = json.loads((weights.parent / "manifest.json").read_text())
    hashes[weights.name] = hashlib.sha256(weights.read_bytes()).hexdigest()
    (weights.parent / "manifest.json").write_text(json.dumps(hashes))
    with pytest.raises(ModelError, match="is not a safetensors file"):
        pack(run, tmp_path / "run.tar")


@pytest.mark.parametrize("suffix", archive.SUFFIXES)
def test_an_archive_cut_short_is_refused_wherever_it_was_cut(suffix: str, run: Path, tmp_path: Path) -> None:
    file = tmp_path / f"run{suffix}"
    pack(run, file)
    whole = file.read_bytes()
    for share in (0.02, 0.3, 0.6, 0.85):
        file.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(ModelError, match=r"cut short, damaged or no archive|half an archive|does not begin"):
            unpack(file, tmp_path / "again")
        assert not (tmp_path / "again").exists()


def test_what_is_no_archive_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"hello" * 1000)
    with pytest.raises(ModelError, match="is cut short, damaged or no archive"):
        unpack(tmp_path / "x.tar")
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(b"hello" * 1000))
    with pytest.raises(ModelError, match="is cut short, damaged or no archive"):
        unpack(tmp_path / "x.tar.gz")
    with pytest.raises(ModelError, match=r"no\.tar: cannot be read \(No such file"):
        unpack(tmp_path / "no.tar")


def test_an_archive_too_large_for_the_disk_is_refused_first(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(run, tmp_path / "run.tar")
    monkeypatch.setattr(archive, "_free", lambda _: 10)
    with pytest.raises(ResourceError, match="again has room for 10; make room first"):
        unpack(tmp_path / "run.tar", tmp_path / "again")


# Beginning a run


def test_a_new_run_that_cannot_be_prepared_is_taken_away(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the training corpus is missing"):
        start(tmp_path / "run", small.settings("lstm", "data.corpus=''"), small.Notes())
    with pytest.raises(SettingsError, match="the training corpus is missing"):
        preflight(tmp_path / "run", small.settings("lstm", "data.corpus=''"), small.Notes())
    assert list(tmp_path.iterdir()) == []


def test_a_prepared_run_is_taken_up_by_the_same_settings_alone(tmp_path: Path) -> None:
    settings = small.settings("lstm", "train.steps=1")
    preflight(tmp_path / "run", settings, small.Notes(), device="cpu")
    with pytest.raises(ModelError, match="holds a run already"):
        start(tmp_path / "run", small.settings("lstm", "train.steps=2"), small.Notes(), device="cpu")
    assert start(tmp_path / "run", settings, small.Notes(), device="cpu").reason == "steps"


def test_a_mistyped_run_gets_its_nearest_neighbour(run: Path, capsys: Capture) -> None:
    assert cli(["translate", str(run.parent / "smal"), "x"]) == 4
    line, hint = capsys.readouterr().err.splitlines()
    assert line == f"{run.parent}/smal: no such folder; did you mean '{run}'?"
    assert hint == f"  regard runs ls {run.parent}"


def test_a_neighbour_that_is_called_demo_is_named_by_its_path(run: Path) -> None:
    """The name alone is the run of the package."""
    shutil.copytree(run, run.parent / "demo")
    try:
        with pytest.raises(ModelError, match=r"runs/dmo: no such folder; did you mean '\S+/runs/demo'\?"):
            Run.open(run.parent / "dmo")
    finally:
        shutil.rmtree(run.parent / "demo")


def test_a_run_is_found_by_its_name_alone_and_in_its_folder(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.parent.name == "runs"
    monkeypatch.chdir(run.parent.parent)
    assert cli(["translate", "small", "x"]) == 4
    assert capsys.readouterr().err == "small: no such folder; did you mean 'runs/small'?\n"
    assert cli(["translate", "runs", "x"]) == 4
    line, hint = capsys.readouterr().err.splitlines()
    assert line == "runs: is not a run: it has no settings.toml; name a run in it: runs/small"
    assert hint == "  regard runs ls runs"


def test_a_folder_that_may_not_be_read_is_passed_over(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.parent / "lost+found").mkdir()
    stat = Path.stat

    def refused(path: Path, **how: bool) -> os.stat_result:
        if path.parent.name == "lost+found":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(ModelError, match=r"name a run in it: .*small"):
        Run.open(run.parent)


def test_best_is_only_ever_the_name_of_a_checkpoint(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "checkpoints" / "step-5", tmp_path / "step-5")
    (run / "best").write_text(f"..{os.sep}..{os.sep}..{os.sep}step-5\n")
    assert runs.parameters(Run.open(run)) == runs.summarise(run).parameters
    assert load(run).translate(TEXTS)
