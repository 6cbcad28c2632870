"""Corpora that are sent to the studio: streamed, limited, checked, and never anywhere else."""

from __future__ import annotations

import gzip
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect, Request

import corpora_for_tests as small
import studios
from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError
from regard.runs.folder import occupied
from regard.runs.listing import find
from regard.serve.corpora import Corpora
from regard.serve.jobs import Commands
from regard.serve.limits import BusyError, LateError, Limits
from regard.serve.trainings import asked_for
from regard.settings import load_settings
from regard.settings.demo import demo_settings
from regard.trainer.preflight import Preflight
from regard.trainer.start import start
from regard.trainer.teaching import settings_of

SOURCE = "the cat sleeps\nthe dog eats\na bird sings\nthe old man sees a house\nshe reads\n"
TARGET = "le chat dort\nle chien mange\nun oiseau chante\nle vieil homme voit une maison\nelle lit\n"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "runs").mkdir()
    with studios.client(tmp_path / "runs", limits=Limits(upload=1000)) as client:
        yield client


def send(service: TestClient, **files: str | bytes) -> None:
    for name, text in files.items():
        assert service.put(f"/api/v1/corpora/mine/{name.replace('_', '.')}", content=text).status_code == 200


def listed(service: TestClient, name: str = "mine") -> dict[str, Any]:
    found = service.get("/api/v1/corpora").json()["corpora"]
    return next(each for each in found if each["name"] == name)


def test_the_built_in_corpora_come_first(service: TestClient) -> None:
    found = service.get("/api/v1/corpora").json()["corpora"]
    assert [(each["name"], each["built_in"], each["state"]) for each in found] == [
        ("fable:fr", True, "built in"),
        ("fable:hi", True, "built in"),
    ]


def test_files_are_kept_among_the_runs_as_they_are(service: TestClient, tmp_path: Path) -> None:
    send(service, train_source=SOURCE, train_target=TARGET)
    assert (tmp_path / "runs" / "corpora" / "mine" / "train.source").read_text() == SOURCE
    assert sorted(path.name for path in (tmp_path / "runs/corpora/mine").iterdir()) == [
        "train.source",
        "train.target",
    ]
    assert listed(service)["parts"] == {"train": ["train.source", "train.target"]}
    assert listed(service)["state"] == "unchecked"  # a training holds out some pairs by itself
    send(service, valid_source_gz=gzip.compress(b"the cat\n"))
    assert listed(service)["state"] == "incomplete"
    send(service, valid_target_gz=gzip.compress(b"le chat\n"))
    assert listed(service)["state"] == "unchecked"


def test_a_corpus_is_one_thing_at_a_time(service: TestClient, tmp_path: Path) -> None:
    """A table takes the place of two files, a packed file of a plain one; what another part has stays."""
    send(service, train_source=SOURCE, train_target=TARGET, valid_tsv="a\tb\n")
    send(service, train_source_gz=gzip.compress(SOURCE.encode()))
    assert listed(service)["parts"]["train"] == ["train.source.gz", "train.target"]
    send(service, train_tsv="a\tb\n")
    assert listed(service)["parts"] == {"train": ["train.tsv"], "valid": ["valid.tsv"]}
    found = Corpora(tmp_path / "runs" / "corpora").settings("mine")
    assert {name: Path(path).name for name, path in found.items()} == {
        "corpus": "train.tsv",
        "valid_corpus": "valid.tsv",
    }


@pytest.mark.parametrize(
    "path",
    [
        "../x/train.source",
        "%2e%2e/train.source",
        "..%2fx/train.source",
        ".hidden/train.source",
        "a%00b/train.source",
        "a%20b/train.source",
        "mine/..%2ftrain.source",
        "mine/%2e%2e",
        "mine/train.exe",
        "mine/settings.toml",
        "mine/check.json",
        "mine/train.source.zip",
        "mine/TRAIN.source",
        "mine/train.safetensors",
    ],
)
def test_no_name_leads_out_of_the_folder_or_to_another_kind_of_file(
    service: TestClient, tmp_path: Path, path: str
) -> None:
    answer = service.put(f"/api/v1/corpora/{path}", content=b"x\n")
    assert 400 <= answer.status_code < 500
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_another_kind_of_file_is_named_with_what_would_be_right(service: TestClient) -> None:
    answer = service.put("/api/v1/corpora/mine/train.safetensors", content=b"x")
    assert (answer.status_code, "one of source, target" in answer.json()["error"]) == (415, True)


def test_what_is_too_large_is_refused_by_its_word_and_by_its_weight(service: TestClient, tmp_path: Path) -> None:
    assert service.put("/api/v1/corpora/mine/train.source", content=b"x" * 1001).status_code == 413
    pieces = iter([b"x" * 400] * 3)  # sent in pieces, without a word on how many
    answer = service.put("/api/v1/corpora/mine/train.source", content=pieces)
    assert answer.status_code == 413
    assert "too large; send at most 1,000" in answer.json()["error"]
    deadline = time.monotonic() + 60  # the answer does not wait for what is removed beside it
    while [each for each in tmp_path.rglob("*") if each.is_file()]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sender_that_leaves_leaves_nothing(
    service: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stream(_: Request) -> AsyncIterator[bytes]:
        yield b"half a li"
        raise ClientDisconnect

    monkeypatch.setattr(Request, "stream", stream)
    answer = service.put("/api/v1/corpora/mine/train.source", content=b"half a line\n")
    assert (answer.status_code, "disconnected before the end" in answer.json()["error"]) == (400, True)
    assert not (tmp_path / "runs" / "corpora" / "mine").exists()


def test_an_empty_file_is_refused_and_leaves_nothing(service: TestClient, tmp_path: Path) -> None:
    answer = service.put("/api/v1/corpora/mine/train.source", content=b"")
    assert (answer.status_code, "is empty" in answer.json()["error"]) == (400, True)
    assert not (tmp_path / "runs" / "corpora" / "mine").exists()


def test_a_link_among_the_corpora_is_not_followed(service: TestClient, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs" / "corpora").mkdir(parents=True)
    (tmp_path / "runs" / "corpora" / "mine").symlink_to(tmp_path / "elsewhere")
    assert service.put("/api/v1/corpora/mine/train.source", content=b"x\n").status_code == 400
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert service.delete("/api/v1/corpora/mine").status_code == 404


def test_a_check_finds_what_the_command_finds_with_its_line(service: TestClient) -> None:
    send(
        service,
        train_source=SOURCE,
        train_target=TARGET,
        valid_source="the cat sleeps\n",
        valid_target="le chat dort\n",
    )
    found = service.post("/api/v1/corpora/mine/check").json()
    (leak,) = found["parts"]["train"]["findings"]
    assert not found["clean"]
    assert (leak["kind"], leak["count"], leak["examples"][0]["line"]) == ("leak", 1, 1)
    assert found["parts"]["train"]["files"] == ["train.source", "train.target"]
    assert (listed(service)["state"], listed(service)["pairs"]) == ("findings", 5)
    send(service, valid_source="the horse runs\n")
    assert listed(service)["state"] == "unchecked"


def test_sides_that_do_not_pair_are_told_in_the_line_of_the_command(service: TestClient) -> None:
    send(service, train_source=SOURCE, train_target=TARGET[:40])
    (finding,) = service.post("/api/v1/corpora/mine/check", json={"task": "translate"}).json()["parts"]["train"][
        "findings"
    ]
    assert finding["kind"] == "mismatch"
    assert finding["examples"][0]["note"].startswith("train.target: 3 lines but train.source has 5")


def test_what_cannot_be_read_is_told_as_the_command_tells_it(service: TestClient) -> None:
    send(service, train_source=SOURCE)
    answer = service.post("/api/v1/corpora/mine/check")
    assert (answer.status_code, "plain text has one column" in answer.json()["error"]) == (400, True)
    assert service.post("/api/v1/corpora/fable:fr/check").json() == {"clean": True, "parts": {}}
    assert service.post("/api/v1/corpora/none/check").status_code == 404


def test_a_corpus_without_files_has_nothing_to_check(service: TestClient, tmp_path: Path) -> None:
    (tmp_path / "runs" / "corpora" / "bare").mkdir(parents=True)
    answer = service.post("/api/v1/corpora/bare/check")
    assert (answer.status_code, "has no files yet" in answer.json()["error"]) == (400, True)


def test_pairs_are_held_out_so_that_no_source_is_in_two_parts(service: TestClient, tmp_path: Path) -> None:
    send(service, train_source=SOURCE, train_target=TARGET)
    found = service.post("/api/v1/corpora/mine/split", json={"valid": 2}).json()
    assert found["parts"] == {"train": ["train.source", "train.target"], "valid": ["valid.source", "valid.target"]}
    lines = [
        (tmp_path / "runs/corpora/mine" / f"{part}.source").read_text().splitlines() for part in ("train", "valid")
    ]
    assert (len(lines[0]), len(lines[1])) == (3, 2)
    assert sorted(lines[0] + lines[1]) == sorted(SOURCE.splitlines())
    assert service.post("/api/v1/corpora/mine/split", json={"valid": 1}).status_code == 400
    assert not [path for path in (tmp_path / "runs" / "corpora").iterdir() if path.name.startswith(".")]


def test_more_than_there_is_cannot_be_held_out(service: TestClient) -> None:
    send(service, train_source=SOURCE, train_target=TARGET)
    answer = service.post("/api/v1/corpora/mine/split", json={"valid": 7})
    assert (answer.status_code, "leave no training pair" in answer.json()["error"]) == (400, True)


def test_a_corpus_is_deleted_unless_a_training_reads_it(service: TestClient, tmp_path: Path) -> None:
    send(service, train_source=SOURCE, train_target=TARGET)
    place = (tmp_path / "runs" / "corpora" / "mine" / "train.source").resolve()
    run = studios.run_folder(tmp_path / "runs", "one", f"{studios.SETTINGS}[data]\nsource = '{place}'\n")
    with occupied(run):
        answer = service.delete("/api/v1/corpora/mine")
        assert (answer.status_code, "one is being trained on it" in answer.json()["error"]) == (400, True)
    deleted = service.delete("/api/v1/corpora/mine")
    assert deleted.json() == {"corpus": "mine", "restore": "/api/v1/corpora/mine/restore"}
    assert not place.parent.exists()
    assert [each["name"] for each in service.get("/api/v1/corpora").json()["corpora"]] == ["fable:fr", "fable:hi"]
    assert service.post(deleted.json()["restore"]).json()["parts"] == {"train": ["train.source", "train.target"]}
    assert place.read_text() == SOURCE
    assert service.post("/api/v1/corpora/mine/restore").status_code == 404
    assert service.post("/api/v1/corpora/.trash/restore").status_code == 404
    assert service.delete("/api/v1/corpora/fable:fr").status_code == 400


def test_a_corpus_beside_the_runs_where_they_used_to_be_is_still_read(service: TestClient, tmp_path: Path) -> None:
    older = tmp_path / "corpora"
    (older / "mine").mkdir(parents=True)
    (older / "photographs").mkdir()  # not ours
    (older / "mine" / "train.source").write_text(SOURCE)
    send(service, train_target=TARGET)
    assert sorted(path.name for path in (older / "mine").iterdir()) == ["train.source", "train.target"]
    assert [each["name"] for each in service.get("/api/v1/corpora").json()["corpora"]][2:] == ["mine"]
    service.delete("/api/v1/corpora/mine")
    assert service.post("/api/v1/corpora/mine/restore").status_code == 200
    assert (older / "mine" / "train.source").read_text() == SOURCE
    assert service.put("/api/v1/corpora/other/train.source", content=SOURCE).status_code == 200
    assert (tmp_path / "runs" / "corpora" / "other").is_dir()


def test_corpora_are_not_taken_for_runs_and_no_run_takes_their_name(service: TestClient, tmp_path: Path) -> None:
    send(service, train_source=SOURCE, train_target=TARGET)
    assert service.get("/api/v1/runs").json()["runs"] == []
    assert list(find(tmp_path / "runs")) == []
    answer = service.post("/api/v1/trainings", json={"name": "corpora", "preset": "lstm", "corpus": "fable:fr"})
    assert (answer.status_code, "is the name of the folder of corpora" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("train.en", "train.de"), "en-de"),
        (("/home/me/my.news.en.gz", "my.news.de.gz"), "en-de"),
        (("de.txt", "en.txt"), "de-en"),
        (("English.txt", "French.txt"), "en-fr"),
        (("my_corpus-en.txt", "my_corpus-de.txt"), "en-de"),
        (("one.txt", "two.txt"), ""),
        (("train.en", "train.en"), ""),
        (("train.en", "dev.de"), "en-de"),
        (("one.en.txt", "two.de.txt"), ""),
        (("train.en", ""), ""),
    ],
)
def test_a_corpus_keeps_the_names_of_its_files_and_its_languages(
    service: TestClient, tmp_path: Path, names: tuple[str, str], expected: str
) -> None:
    for side, text, called in (("source", SOURCE, names[0]), ("target", TARGET, names[1])):
        service.put(f"/api/v1/corpora/mine/train.{side}", params={"called": called}, content=text)
    found = listed(service)
    assert found["names"].get("train.source", "") == Path(names[0]).name
    source, _, target = expected.partition("-")
    assert found["languages"] == ({"source": source, "target": target} if expected else None)
    corpora = Corpora(tmp_path / "runs" / "corpora")
    assert load_settings(*asked_for(corpora, "lstm", "mine", [])).data.languages == expected
    said = asked_for(corpora, "lstm", "mine", [], languages="fr-hi")
    assert load_settings(*said).data.languages == "fr-hi"


@pytest.mark.parametrize(("called", "expected"), [("/home/me/my.news.en.gz", "en-de"), ("one.txt", "")])
def test_what_is_split_from_a_corpus_has_its_names_and_its_languages(
    service: TestClient, tmp_path: Path, called: str, expected: str
) -> None:
    for side, text, name in (("source", SOURCE, called), ("target", TARGET, "my.news.de.gz")):
        service.put(f"/api/v1/corpora/mine/train.{side}", params={"called": name}, content=text)
    service.post("/api/v1/corpora/mine/split", json={"valid": 1})
    assert listed(service)["names"]["valid.source"] == Path(called).name
    assert bool(listed(service)["languages"]) == bool(expected)
    found = asked_for(Corpora(tmp_path / "runs" / "corpora"), "lstm", "mine", [])
    assert load_settings(*found).data.languages == expected


@pytest.mark.parametrize(
    ("step", "other", "kept"),
    [
        ("regard.serve.corpora.Corpora._call", "talks.fr", {"train.source": "talks.en", "train.target": "talks.fr"}),
        ("regard.files._beside", "", {"train.source": "talks.en"}),  # the folder is made, and nothing in it
    ],
)
def test_an_upload_in_the_middle_of_another_takes_neither_its_name_nor_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, other: str, kept: dict[str, str]
) -> None:
    corpora, begun = Corpora(tmp_path), list[threading.Thread]()
    before = resolve_name(step)

    def receive(file: str, called: str) -> None:
        with suppress(ClientDisconnect), corpora.receive("mine", file, called) as opened:
            opened.write(b"x")
            if not called:
                raise ClientDisconnect

    def meanwhile(*arguments: Any) -> Any:
        if not begun:
            begun.append(threading.Thread(target=receive, args=("train.target", other)))
            begun[0].start()
            begun[0].join(0.2)  # it goes as far as it may
        return before(*arguments)

    monkeypatch.setattr(step, meanwhile)
    receive("train.source", "talks.en")
    begun[0].join(60)
    assert corpora.called("mine") == kept


def test_the_header_of_a_table_says_its_languages_where_it_can_be_read(service: TestClient) -> None:
    table = b"German;French\nein Hund;un chien\n"
    service.put("/api/v1/corpora/mine/train.csv", params={"called": "list.csv"}, content=table)
    assert listed(service)["languages"] == {"source": "de", "target": "fr"}
    service.put("/api/v1/corpora/cut/train.csv.gz", content=gzip.compress(table)[:12])
    assert listed(service, "cut")["languages"] is None


@pytest.mark.parametrize(("called", "header"), [("list.csv", "German;French\n"), ("list.de-fr.csv", "")])
def test_a_table_that_is_split_keeps_its_languages(called: str, header: str, service: TestClient) -> None:
    rows = "".join(f"ein Hund {number};un chien {number}\n" for number in range(40))
    service.put("/api/v1/corpora/mine/train.csv", params={"called": called}, content=f"{header}{rows}".encode())
    assert service.post("/api/v1/corpora/mine/split", json={"valid": 3, "test": 3}).status_code == 200
    assert listed(service)["languages"] == {"source": "de", "target": "fr"}


def test_a_table_may_name_both_languages_and_damaged_names_are_none(service: TestClient, tmp_path: Path) -> None:
    service.put("/api/v1/corpora/mine/train.tsv", params={"called": "europarl.de-en.tsv"}, content="a\tb\n")
    assert listed(service)["languages"] == {"source": "de", "target": "en"}
    service.put("/api/v1/corpora/mine/train.tsv", params={"called": "up-to-date.tsv"}, content="a\tb\n")
    assert listed(service)["languages"] is None
    (tmp_path / "runs" / "corpora" / "mine" / "names.json").write_text("[")
    assert listed(service)["names"] == {}


# Without routes


def test_what_a_training_needs_of_a_corpus_is_complained_of_when_missing(tmp_path: Path) -> None:
    corpora = Corpora(tmp_path)
    with corpora.receive("mine", "train.source") as file:
        file.write(SOURCE.encode())
    with pytest.raises(DataError, match=r"train\.source has no train\.target beside it"):
        corpora.settings("mine")
    with corpora.receive("mine", "train.text") as file:
        file.write(SOURCE.encode())
    assert {name: Path(path).name for name, path in corpora.settings("mine").items()} == {"source": "train.text"}
    with pytest.raises(DataError, match="neither a test nor a validation part"):
        corpora.pairs("mine", 7)
    with corpora.receive("mine", "valid.text") as file:
        file.write(SOURCE.encode())
    assert {name: Path(path).name for name, path in corpora.settings("mine").items()} == {
        "source": "train.text",
        "valid_source": "valid.text",
    }
    with corpora.receive("tests", "test.text") as file:
        file.write(SOURCE.encode())
    with pytest.raises(DataError, match="has no train part to learn from"):
        corpora.settings("tests")
    assert [Path(path).name for path in corpora.test_files("tests")] == ["test.text"]
    with corpora.receive("half", "train.source") as file:
        file.write(SOURCE.encode())
    with pytest.raises(DataError, match=r"train\.source has no test\.target beside it"):
        corpora.test_files("half")
    with pytest.raises(ModelError, match="no such corpus here; did you mean 'mine'"):
        corpora.settings("mime")


def test_a_test_is_taken_from_its_own_part_first(tmp_path: Path) -> None:
    corpora = Corpora(tmp_path)
    for file, text in (("valid.tsv", "a\tb\n"), ("test.source", SOURCE), ("test.target", TARGET)):
        with corpora.receive("mine", file) as opened:
            opened.write(text.encode())
    assert corpora.pairs("mine", 2) == (["the cat sleeps", "the dog eats"], ["le chat dort", "le chien mange"])
    assert len(corpora.pairs("fable:hi", 3)[0]) == 3


def test_a_disk_that_cannot_be_written_is_a_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = Corpora(tmp_path)

    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"), corpora.receive("mine", "train.tsv"):
        full()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("regard.serve.corpora.MOST", 0)
    with pytest.raises(ResourceError, match="the limit; delete one"), corpora.receive("mine", "train.tsv"):
        pass


def test_a_server_without_a_folder_takes_no_corpus() -> None:
    with pytest.raises(SettingsError, match="no folder for corpora"), Corpora(None).receive("mine", "train.tsv"):
        pass
    assert [each.built_in for each in Corpora(None).all()] == [True, True]


# Commands and estimates


class Asking:
    """Whoever asks, and may leave."""

    def __init__(self, *, left: bool = False) -> None:
        self.left = left

    async def is_disconnected(self) -> bool:
        return self.left


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_command_ends_when_its_time_is_up_or_nobody_waits(
    tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert anyio_backend == "asyncio"
    stay: Any = Asking()
    gone: Any = Asking(left=True)
    with pytest.raises(LateError, match="time = 0 s: was not enough"):
        await Commands(seconds=0.0)(stay, ["--version"], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("regard.serve.jobs.PROGRAM", (sys.executable, "-c", "import time; time.sleep(60)"))
        with pytest.raises(LateError, match="has disconnected"):
            await Commands()(gone, [], tmp_path)
    full = Commands()
    full._waiting = 4
    with pytest.raises(BusyError, match="too many are waiting"):
        await full(stay, ["--version"], tmp_path)
    with pytest.raises(SettingsError, match=r"^preset = lstn: no such preset; did you mean 'lstm'\?$"):
        await Commands()(stay, ["settings", "show", "lstn"], tmp_path)


ESTIMATE = {
    "parameters": 7,
    "examples": 11,
    "too_long": 0,
    "batches_per_epoch": 3,
    "padding": [0.1, 0.2],
    "unknown": 0.0,
    "longest": 13,
    "memory": 1013,
    "seconds": 5.5,
    "steps": 17,
    "within": 17,
    "disk": 19,
    "free": 23,
}


def test_an_estimate_is_made_by_the_command_and_remembered(service: TestClient) -> None:
    asked: list[list[str]] = []

    async def command(_: object, arguments: list[str], __: Path) -> dict[str, int]:
        asked.append(arguments)
        return ESTIMATE

    service.app.state.commands = command  # type: ignore[attr-defined]
    body = {"preset": "lstm", "corpus": "fable:fr", "overrides": ["train.steps=17"]}
    for _ in range(2):
        found = service.post("/api/v1/estimate", json=body).json()
        assert {name: found[name] for name in ESTIMATE} == ESTIMATE
        assert "for 17 steps" in found["words"]
    chosen = ['data.corpus="fable:fr"', "train.steps=17"]
    assert asked == [["train", "lstm", *chosen, "--out", "run", "--dry-run", "--json"]]


def test_an_estimate_complains_as_the_command_does(
    service: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"{tmp_path.resolve()}/corpora/x: size = 8,000: too large for this corpus\n  a hint\n"
    own = f"import sys; sys.stderr.write({line!r}); sys.exit(3)"
    monkeypatch.setattr("regard.serve.jobs.PROGRAM", (sys.executable, "-c", own))
    answer = service.post("/api/v1/estimate", json={"preset": "lstm", "corpus": "fable:fr"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "corpora/x: size = 8,000: too large for this corpus", "hint": "a hint"}


def test_no_more_estimates_are_remembered_than_there_is_room_for(
    service: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def command(*_: object) -> dict[str, int]:
        return ESTIMATE

    monkeypatch.setattr("regard.serve.routes.presets.REMEMBERED", 2)
    service.app.state.commands = command  # type: ignore[attr-defined]
    for steps in (7, 11, 13):
        body = {"preset": "lstm", "corpus": "fable:fr", "overrides": [f"train.steps={steps}"]}
        assert service.post("/api/v1/estimate", json=body).status_code == 200
    assert len(service.app.state.estimates) == 2  # type: ignore[attr-defined]


def test_presets_say_how_large_they_are(service: TestClient) -> None:
    found = {each["name"]: each for each in service.get("/api/v1/presets").json()["presets"]}
    assert list(found)[:2] == ["demo", "rnn"]
    assert found["transformer-tiny"]["parameters"] > 1e6
    assert found["transformer-tiny"]["sizes"]["model.heads"] == 4
    assert found["lstm"]["sizes"] == {"model.width": 256, "model.hidden": 256, "model.depth": 1}
    assert SimpleNamespace(**found["demo"]).train["steps"] == demo_settings().train.steps


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "About 2 minutes here for 1,000 steps, in which each of the 2,500 examples is seen about 28 times."),
        (
            {"seconds": 33.0, "within": 36},
            "About 30 seconds here for 36 steps, in which each of",
        ),
        (
            {"seconds": 9000.0, "steps": 3},
            "About 2.5 hours here for 3 steps",
        ),
        ({"too_long": 7, "memory": 3 << 30}, "takes about 3.0 GiB of memory. 7 are too long and are left out."),
        (
            {"parameters": 1_250_000, "within": 40},
            "seen about once. The model has 1.2 million parameters",
        ),
    ],
)
def test_an_estimate_is_told_in_words(changes: dict[str, Any], expected: str) -> None:
    known = {"parameters": 73_679, "examples": 2500, "too_long": 0, "batches_per_epoch": 36, "padding": (0.0, 0.0)}
    known |= {"unknown": 0.0, "longest": 57, "memory": 150 << 20, "seconds": 119.0, "steps": 1000, "within": 1000}
    assert expected in Preflight(**known | {"disk": 0, "free": 0} | changes).words


def test_a_client_may_begin_with_a_run_and_keep_watching_a_corpus(tmp_path: Path) -> None:
    """And with no folder or file of its own choice."""
    mine = tmp_path / "runs" / "mine"
    start(mine, small.settings("gru", "train.steps=1"), small.Notes(), device="cpu")
    corpora = Corpora(tmp_path / "runs" / "corpora")
    settings = settings_of(asked_for(corpora, "", "fable:fr", [], base=mine, general="fable:fr", time="1m"))
    assert settings.train.base == str(mine)
    assert settings.data.general == ("fable:fr",)
    assert settings.model == small.settings("gru").model
    for preset, overrides, chosen, problem in (
        ("lstm", ["train={base='/etc'}"], {}, "train.base: is set by the field base"),
        ("lstm", [f"train.base={mine}"], {}, "train.base: is set by the field base; leave it out of the overrides"),
        ("lstm", ["data.general=/etc/passwd"], {}, "data.general: is set by keep_watching"),
        ("lstm", [], {"base": mine}, "preset = lstm: a base run has its own settings; give only one of the two"),
        ("lstm", [], {"general": "nothing"}, "corpus = nothing: "),
    ):
        with pytest.raises(RegardError, match=problem):
            asked_for(corpora, preset, "fable:fr", overrides, **chosen)  # type: ignore[arg-type]
