"""Children that outlive the server: told apart, found again, stopped, and never too many."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import studios
from regard.errors import ModelError, SettingsError
from regard.runs.folder import occupied
from regard.runs.log import append, read_log
from regard.serve.jobs import Job, Jobs, _started_by_ps, is_alive, send, spawn, started
from regard.serve.library import Library
from regard.serve.limits import BusyError
from regard.serve.trainings import Trainings, explained
from regard.settings import Extent, Machine, fit, load_settings
from regard.settings.call import DecodeSettings

ASKED = ["lstm", "data.corpus='fable:fr'"]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[studios.Children]:
    found = studios.Children()
    monkeypatch.setattr("regard.serve.jobs.spawn", found.spawn)
    yield found
    found.end()


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    (tmp_path / "runs").mkdir()
    return Jobs(Library(tmp_path / "runs"))


def again(jobs: Jobs) -> Jobs:
    """Another server over the same folder."""
    return Jobs(Library(jobs.library.folder))


def gone(pid: int, began: str) -> None:
    """Wait until a process has ended."""
    last = time.monotonic() + 60
    while is_alive(pid, began):
        assert time.monotonic() < last, pid


def said(jobs: Jobs, job: str, *events: tuple[str, dict[str, object]]) -> None:
    """What a child writes into its log."""
    for event, values in events:
        append(jobs.folder / job / "log.jsonl", event, values)


def ended(jobs: Jobs, run: str, *events: tuple[str, dict[str, object]]) -> None:
    """Its process has died, with these last words."""
    job = jobs.training(run)
    assert job is not None
    os.kill(job.pid, signal.SIGKILL)
    gone(job.pid, job.started)
    said(jobs, job.name, *events)


def test_a_process_is_known_by_its_number_and_its_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = started(child.pid)
    assert is_alive(child.pid, began)
    assert not is_alive(child.pid, "another time")
    assert not is_alive(child.pid, "")
    assert not send(child.pid, "another time", signal.SIGKILL)
    assert child.poll() is None
    assert send(child.pid, began, signal.SIGKILL)
    child.communicate()
    assert not is_alive(child.pid, began)
    assert not send(child.pid, began, signal.SIGKILL)


def test_a_child_that_nobody_has_waited_for_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    began = started(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid, began)
    child.wait()


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not installed")
def test_where_processes_are_no_files_the_system_is_asked() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert _started_by_ps(child.pid) == _started_by_ps(child.pid) != ""
    child.kill()
    child.communicate()
    assert _started_by_ps(child.pid) == ""


def test_without_handles_a_signal_is_sent_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert send(child.pid, started(child.pid), signal.SIGKILL)
    child.communicate()


def test_a_child_is_regard_in_a_session_of_its_own(tmp_path: Path) -> None:
    pid, began = spawn(["--version"], tmp_path)
    assert os.getsid(pid) == pid
    gone(pid, began)
    assert (tmp_path / "result.json").read_text().strip()
    assert [(event["event"], event["code"]) for event in read_log(tmp_path / "log.jsonl")] == [("end", 0)]


def test_what_a_child_says_is_in_its_log(tmp_path: Path) -> None:
    gone(*spawn(["compare", str(tmp_path / "a"), str(tmp_path / "b")], tmp_path))
    error, end = read_log(tmp_path / "log.jsonl")
    assert (error["event"], error["hint"], end["code"]) == ("error", "", 4)
    assert (tmp_path / "output.txt").read_text().startswith(error["text"].partition(";")[0])


def test_a_training_is_started_with_what_was_chosen_and_found_by_the_next_server(
    jobs: Jobs, children: studios.Children
) -> None:
    jobs.train("one", ASKED)
    ((verb, *asked, option, place),) = children.asked
    assert (verb, asked, option, Path(place).name) == ("train", ASKED, "--out", "one")
    found = Trainings(again(jobs)).one("one")
    assert (found.state, found.stage, found.ours, found.is_run) == ("running", "starting", True, False)
    assert (found.of_steps, found.task) == (load_settings(*ASKED).train.steps, "translate")
    assert again(jobs).is_training("one")


@pytest.mark.usefixtures("children")
def test_a_training_that_failed_keeps_what_was_asked_for_and_says_which_setting_is_to_blame(jobs: Jobs) -> None:
    jobs.train("one", ["bahdanau", "about='regard demo'", "data.corpus='fable:fr'"], {"preset": "x"})
    line = "size = 1,000: too large for this corpus; bpe can have at most 625 pieces"
    ended(jobs, "one", ("error", {"text": line, "hint": "regard train … text.size=625"}), ("end", {"code": 2}))
    found = Trainings(again(jobs)).one("one")
    assert (found.state, found.request, found.note) == ("failed", {"preset": "x"}, line)
    assert found.error == {"line": line, "setting": "text.size", "right": "text.size=625"}
    assert (found.preset, found.languages) == ("bahdanau", "en-fr")
    assert found.architecture == "GRU, both ways, Bahdanau attention (additive), 1 layer, width 256"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "train.batch = 7: is too small; 8 or more",
            ("train.batch = 7: is too small; 8 or more", "train.batch"),
        ),
        ("corpora/x: time = 1s: is over; give more", ("corpora/x: time = 1s: is over; give more", "time")),
        ("--source: missing; use regard data check", ("the source file: missing", "")),
        ("x: is cut short; see x --find-shift", ("x: is cut short", "")),
        ("see regard train --help", ("see regard train --help", "")),
    ],
)
def test_a_complaint_is_told_without_flags_and_commands(line: str, expected: tuple[str, str]) -> None:
    assert tuple(explained(line).values()) == (*expected, "")


@pytest.mark.usefixtures("children")
def test_what_was_asked_for_survives_going_on(jobs: Jobs) -> None:
    jobs.train("one", ASKED, {"preset": "lstm"})
    ended(jobs, "one", ("end", {"code": 130}))
    studios.run_folder(jobs.library.folder or Path(), "one")
    jobs.resume("one")
    assert Trainings(again(jobs)).one("one").request == {"preset": "lstm"}
    (jobs.folder / "train-one" / "request.json").write_text("[")
    assert Trainings(again(jobs)).one("one").request is None


def test_stopping_sends_one_signal_to_the_right_process_and_a_second_only_when_asked(
    jobs: Jobs, children: studios.Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.train("one", ASKED)
    sent: list[tuple[int, signal.Signals]] = []
    monkeypatch.setattr(Job, "send", lambda self, number: sent.append((self.pid, number)))
    other = again(jobs)
    other.stop("one")
    other.stop("one")
    assert sent == [(children.children[0].pid, signal.SIGINT)]
    assert Trainings(other).one("one").stage == "stopping"
    other.stop("one", now=True)
    assert sent[1:] == [(children.children[0].pid, signal.SIGTERM)]


def test_what_is_not_trained_here_cannot_be_stopped_here(jobs: Jobs, children: studios.Children) -> None:
    folder = studios.run_folder(jobs.library.folder or Path(), "elsewhere")
    with pytest.raises(SettingsError, match="elsewhere: is not being trained"):
        jobs.stop("elsewhere")
    with occupied(folder):
        assert Trainings(jobs).one("elsewhere").state == "running"
        with pytest.raises(SettingsError, match="was not started here; stop it where it was"):
            jobs.stop("elsewhere")
        with pytest.raises(SettingsError, match="is being trained already"):
            jobs.resume("elsewhere")
    jobs.resume("elsewhere")
    assert children.asked == [["train", "--resume", str(folder.resolve())]]


def test_only_so_many_at_once(jobs: Jobs, children: studios.Children) -> None:
    jobs.train("one", ASKED)
    jobs.train("two", ASKED)
    with pytest.raises(BusyError, match="one, two: are running, and 2 at once is the limit"):
        jobs.train("three", ASKED)
    assert len(children.asked) == 2


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 101, "ä", "a b"])
def test_a_name_is_no_path(jobs: Jobs, name: str) -> None:
    with pytest.raises(SettingsError, match="not a name for a run"):
        jobs.train(name, ASKED)
    assert jobs.training(name) is None


def test_a_name_that_is_taken_is_refused(jobs: Jobs, children: studios.Children) -> None:
    studios.run_folder(jobs.library.folder or Path(), "one")
    with pytest.raises(SettingsError, match="there is a run of this name"):
        jobs.train("one", ASKED)
    assert not children.asked


def test_without_a_folder_nothing_new_is_trained() -> None:
    with pytest.raises(SettingsError, match="no folder for new runs"):
        Jobs(Library()).train("one", ASKED)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("PLACE/x.txt: no such file; look", "x.txt: no such file; look"),
        ("", "the process ended without an error message: it was killed, or"),
    ],
)
def test_a_training_that_died_says_why(jobs: Jobs, children: studios.Children, line: str, note: str) -> None:
    assert not children.asked
    jobs.train("one", ASKED)
    place = str((jobs.library.folder or Path()).resolve())
    ended(jobs, "one", *([("error", {"text": line.replace("PLACE", place), "hint": "a hint"})] if line else []))
    found = Trainings(again(jobs)).one("one")
    assert found.state == "failed"
    assert found.note.startswith(note)


def test_one_that_was_asked_to_end_has_not_failed(jobs: Jobs, children: studios.Children) -> None:
    jobs.train("one", ASKED)
    run_folder = studios.run_folder(jobs.library.folder or Path(), "one")
    ended(jobs, "one", ("end", {"code": 130}))
    assert Trainings(jobs).one("one").state == "prepared"
    assert run_folder.exists()
    assert len(children.asked) == 1


def test_what_has_ended_can_be_forgotten_and_what_runs_cannot(jobs: Jobs, children: studios.Children) -> None:
    jobs.train("one", ASKED)
    with pytest.raises(SettingsError, match="is being trained; stop it first"):
        jobs.forget("one")
    ended(jobs, "one")
    jobs.forget("one")
    assert Trainings(jobs).all() == []
    with pytest.raises(ModelError, match="no training of this name"):
        jobs.forget("one")
    with pytest.raises(ModelError, match="no such run"):
        Trainings(jobs).one("one")
    assert len(children.asked) == 1


def test_a_record_that_cannot_be_read_is_no_job(jobs: Jobs, children: studios.Children) -> None:
    jobs.train("one", ASKED)
    (jobs.folder / "train-one" / "job.json").write_text("{")
    assert jobs.trainings() == {}
    assert len(children.asked) == 1


def test_a_comparison_tells_how_far_it_is_and_what_it_found(jobs: Jobs, children: studios.Children) -> None:
    job = jobs.compare(["a", "b"], [("source", ["the cat"]), ("target", ["le chat"])], "a test by hand")
    arguments = children.asked[0]
    assert arguments[:3] == ["compare", "a", "b"]
    assert Path(arguments[arguments.index("--target") + 1]).read_text(encoding="utf-8") == "le chat\n"
    assert (jobs.status(job.name).state, jobs.status(job.name).progress) == ("running", 0.0)
    said(jobs, job.name, ("note", {"text": "97 sentences: a test"}))
    assert jobs.status(job.name).progress == 0.05
    said(jobs, job.name, ("progress", {"text": "1,000 of 2,000 lines translated", "done": 1000, "of": 2000}))
    assert jobs.status(job.name).progress == pytest.approx(0.45)
    said(jobs, job.name, ("note", {"text": "testing every pair: 10 resamples"}))
    assert jobs.status(job.name).line.startswith("testing every pair")
    with pytest.raises(BusyError, match="one is running"):
        jobs.compare(["a", "b"])
    found = {"rows": [], "conditions": {"data": f"{jobs.folder}/source"}}
    (jobs.folder / job.name / "result.json").write_text(json.dumps(found))
    children.end()
    gone(job.pid, job.started)
    expected = {"rows": [], "conditions": {"data": "a test by hand"}}
    assert (jobs.status(job.name).state, jobs.status(job.name).result) == ("done", expected)


def test_a_comparison_that_went_wrong_says_why_and_one_that_was_stopped_does_not_fail(
    jobs: Jobs, children: studios.Children
) -> None:
    job = jobs.compare(["a", "b"])
    said(jobs, job.name, ("error", {"text": "a: no such folder; known: b", "hint": "regard runs ls"}))
    children.end()
    gone(job.pid, job.started)
    assert (jobs.status(job.name).state, jobs.status(job.name).line) == ("failed", "a: no such folder; known: b")
    other = jobs.compare(["a", "b"])
    jobs.cancel(other.name)
    gone(other.pid, other.started)
    assert jobs.status(other.name).state == "stopped"


@pytest.mark.parametrize("name", ["../runs", "compare-xyz", "compare-0011223344556677", "train-one"])
def test_a_job_is_known_by_its_number_alone(jobs: Jobs, name: str) -> None:
    with pytest.raises(ModelError, match="no such job"):
        jobs.status(name)


def test_old_comparisons_are_put_away(jobs: Jobs, children: studios.Children) -> None:
    for _ in range(11):
        jobs.compare(["a", "b"])
        children.end()
        children.children.clear()
    assert len(list(jobs.folder.glob("compare-*"))) <= 9


# Through the routes


@pytest.fixture
def service(tmp_path: Path, children: studios.Children) -> Iterator[TestClient]:
    assert not children.asked
    (tmp_path / "runs").mkdir()
    with studios.client(tmp_path / "runs") as client:
        yield client


WISH = {"name": "one", "preset": "lstm", "corpus": "fable:fr", "overrides": ["train.steps=7"], "watch": "the cat"}


def test_a_training_is_started_listed_stopped_and_forgotten(service: TestClient, children: studios.Children) -> None:
    assert service.post("/api/v1/trainings", json=WISH).json() == {"run": "one"}
    settings = load_settings(*children.asked[0][1:-2])
    assert (settings.train.steps, settings.train.watch, settings.data.corpus) == (7, "the cat", "fable:fr")
    (listed,) = service.get("/api/v1/trainings").json()["trainings"]
    assert (listed["run"], listed["state"], listed["stage"]) == ("one", "running", "starting")
    assert service.post("/api/v1/trainings/one/stop").status_code == 202
    children.end()
    assert service.delete("/api/v1/trainings/one").status_code == 204
    assert service.get("/api/v1/trainings/one").status_code == 404
    assert service.post("/api/v1/trainings/one/stop").status_code == 404


def test_too_many_trainings_are_answered_with_a_time_to_come_back(service: TestClient) -> None:
    for name in ("one", "two"):
        assert service.post("/api/v1/trainings", json={**WISH, "name": name}).status_code == 201
    answer = service.post("/api/v1/trainings", json={**WISH, "name": "three"})
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0


def test_a_finished_run_is_resumed_only_with_more_time_or_steps(
    service: TestClient, children: studios.Children, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studios.run_folder(tmp_path / "runs", "done")
    monkeypatch.setattr("regard.runs.listing._state", lambda *_: "finished")
    answer = service.post("/api/v1/trainings/done/resume")
    assert (answer.status_code, "has finished; give time or steps" in answer.json()["error"]) == (400, True)
    assert service.post("/api/v1/trainings/done/resume", json={"time": "soon"}).status_code == 400
    assert service.post("/api/v1/trainings/done/resume", json={"time": "10m", "steps": "+50"}).status_code == 202
    assert children.asked[-1][3:] == ["--time", "10m", "--steps", "+50"]


def test_an_interrupted_run_is_resumed(service: TestClient, children: studios.Children, tmp_path: Path) -> None:
    studios.run_folder(tmp_path / "runs", "half")
    assert service.post("/api/v1/trainings/half/resume").json()["state"] == "running"
    assert children.asked[0][:2] == ["train", "--resume"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"preset": "/etc/x.toml"}, "no such preset"),
        ({"preset": "lstn"}, "did you mean 'lstm'?"),
        ({"corpus": "../../etc"}, "no such corpus"),
        ({"name": "../x"}, "not a name"),
        ({"overrides": ["data.source=/etc/passwd"]}, "data.source = /etc/passwd: is set by the corpus"),
        ({"overrides": ["data.corpus=hf://some/thing"]}, "is set by the corpus"),
        ({"overrides": ["model.vectors.file=/etc/passwd"]}, "on the command line"),
        ({"overrides": ["model.head=8"]}, "no such setting"),
        ({"overrides": ["nothing"]}, "not an override"),
        ({"time": "soon"}, "not a time"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_nothing_that_a_client_sends_leaves_the_folders(
    service: TestClient, children: studios.Children, change: dict[str, object], complaint: str
) -> None:
    answer = service.post("/api/v1/trainings", json={**WISH, **change})
    assert answer.status_code in {400, 404}
    assert complaint in answer.json()["error"]
    assert not children.asked


def test_the_demo_is_the_one_of_the_command_line(service: TestClient, children: studios.Children) -> None:
    from regard.settings.demo import demo_settings  # noqa: PLC0415

    body = {"name": "demo", "preset": "demo", "corpus": "fable:fr"}
    assert service.post("/api/v1/trainings", json=body).status_code == 201
    assert load_settings(*children.asked[0][1:-2]) == demo_settings()
    assert fit(demo_settings(), Extent(100, 1000, 20), Machine(gpu=False, threads=2))[0] == demo_settings()


def test_runs_are_compared_by_name_on_a_part_of_a_corpus(
    service: TestClient, children: studios.Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        studios.run_folder(tmp_path / "runs", name)
    body = {"runs": ["one", "two"], "corpus": "fable:fr", "limit": 7}
    usual = DecodeSettings(beam=2, length=7)  # a length is of language models, and nothing to a comparison
    monkeypatch.setattr(service.app.state.library, "decode", usual)  # type: ignore[attr-defined]
    job = service.post("/api/v1/compare", json=body).json()["job"]
    command = children.asked[0]
    assert [Path(word).name for word in command[1:3]] == ["one", "two"]
    assert [word for word in command if word.startswith("decode.")] == ["decode.beam=2"]
    source, target = (Path(command[command.index(option) + 1]) for option in ("--source", "--target"))
    assert len(source.read_text().splitlines()) == len(target.read_text().splitlines()) == 7
    assert service.get(f"/api/v1/jobs/{job}").json()["state"] == "running"
    assert service.delete(f"/api/v1/jobs/{job}").status_code == 204
    children.end()


@pytest.mark.parametrize(
    ("body", "status", "complaint"),
    [
        ({"runs": ["one", "one"]}, 400, "one is named twice"),
        ({"runs": ["one", "three"]}, 404, "no such run"),
        ({"runs": ["../one"]}, 404, "no such run"),
        ({"runs": []}, 400, "runs"),
        ({"runs": ["one"], "limit": 1}, 400, "limit"),
        ({"runs": ["tags", "more"], "decode": {"length": 7}}, 400, "decode.length: not for translations"),
        ({"runs": ["tags", "more"], "corpus": "fable:fr"}, 400, "on the validation text that they share"),
        ({"runs": ["one", "two"], "corpus": "nothing"}, 404, "no such corpus"),
        ({"runs": ["one"]}, 400, "runs = one: a comparison needs two or more; name another run"),
        (
            {"runs": ["one", "tags"]},
            400,
            "runs = one for translate, tags for tag: are for different tasks; choose",
        ),
        ({"runs": ["one", "two"]}, 400, "runs = one on fable:fr, two on fable:hi: were trained on different corpora"),
        ({"runs": ["tags", "more"]}, 400, "share no test; choose runs of one corpus, or name a corpus whose test part"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(
    service: TestClient, tmp_path: Path, body: dict[str, object], status: int, complaint: str
) -> None:
    for name, corpus in (("one", "fable:fr"), ("two", "fable:hi")):
        studios.run_folder(tmp_path / "runs", name, f"{studios.SETTINGS}[data]\ncorpus = '{corpus}'\n")
    for name in ("tags", "more"):
        studios.run_folder(tmp_path / "runs", name, f"task = 'tag'\n{studios.SETTINGS}")
    answer = service.post("/api/v1/compare", json=body)
    assert answer.status_code == status
    assert complaint in answer.json()["error"]
    assert "--" not in answer.json()["error"]  # in a browser there are no flags


def test_runs_that_share_a_test_say_so(service: TestClient, children: studios.Children, tmp_path: Path) -> None:
    places = {"a": "corpus = 'fable:fr'", "b": "corpus = 'fable:fr'", "c": "corpus = 'fable:hi'"}
    files = "source = '/x/corpora/news/train.source'\ntarget = '/x/corpora/news/train.target'\n"
    held = "valid_source = '/x/{0}/v.en'\nvalid_target = '/x/{0}/v.de'\n"
    places |= {"d": files + held.format("y"), "e": files + held.format("y"), "f": files + held.format("z"), "g": files}
    places |= {"h": files, "i": files.replace("news", "other")}
    for name, data in places.items():
        studios.run_folder(tmp_path / "runs", name, f"{studios.SETTINGS}[data]\n{data}")
    studios.run_folder(tmp_path / "runs", "t", f"task = 'tag'\n{studios.SETTINGS}[data]\ncorpus = 'fable:fr'\n")
    found = {each["name"]: each for each in service.get("/api/v1/runs").json()["runs"]}
    tests = {name: each["test"] for name, each in found.items()}
    assert tests["a"] == tests["b"] != tests["c"]
    assert tests["d"] == tests["e"] != tests["f"]
    assert "" != tests["g"] == tests["h"] not in (tests["i"], tests["d"])  # held out of the same files
    assert tests["a"] != tests["t"]
    assert (found["a"]["corpus"], found["d"]["corpus"]) == ("fable:fr", "news")
    assert service.post("/api/v1/compare", json={"runs": ["d", "e"]}).status_code == 202
    children.end()


def test_labellers_are_compared_on_the_files_of_a_corpus(
    service: TestClient, children: studios.Children, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        studios.run_folder(tmp_path / "runs", name, f"task = 'tag'\n{studios.SETTINGS}")
    place = tmp_path / "runs" / "corpora" / "mine"
    place.mkdir(parents=True)
    body = {"runs": ["one", "two"], "corpus": "mine"}
    answer = service.post("/api/v1/compare", json=body)
    assert (answer.status_code, "neither a test nor a validation part" in answer.json()["error"]) == (400, True)
    (place / "test.conllu").write_text("1\tcat\n")
    assert service.post("/api/v1/compare", json=body).status_code == 202
    command = children.asked[0]
    assert command[command.index("--source") + 1] == str((place / "test.conllu").resolve())
    assert "--target" not in command


def test_a_service_that_ends_may_ask_every_training_of_its_own_to_end(
    jobs: Jobs, children: studios.Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        jobs.train(name, ASKED)
    sent: list[int] = []
    monkeypatch.setattr(Job, "send", lambda self, _: sent.append(self.pid))
    jobs.stop_all()
    assert sorted(sent) == sorted(child.pid for child in children.children)
