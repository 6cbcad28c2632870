"""Which run is used where nobody names one; and runs renamed, put into the trash, taken back, shown and tried."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from starlette.types import Message, Send

import regard
import serving
import studios
from importing import small_run
from regard.errors import ModelError, SettingsError
from regard.fable.corpus import generate
from regard.runs.archive import unpack
from regard.runs.folder import occupied
from regard.serve.library import Library
from regard.serve.pairs import check_pins, current_pairs, pairs
from regard.serve.routes.runs import ArchiveResponse
from regard.settings.call import MeasureSettings
from regard.tasks.load import load_predictor
from serving import CAT, EIGHT


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return serving.eight_runs(tmp_path_factory.mktemp("eight") / "runs")


@pytest.fixture(scope="module")
def client(eight: Path) -> Iterator[TestClient]:
    with serving.client(eight) as found:
        yield found


def used(client: TestClient, target: str, source: str = "en") -> str:
    """The run that answers a client of LibreTranslate."""
    answer = client.post("/translate", json={"q": CAT, "source": source, "target": target})
    assert answer.status_code == 200, answer.text
    return answer.headers["X-Regard-Run"]


def listed(client: TestClient) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in client.get("/api/v1/runs").json()["runs"]}


# Eight runs of all tasks and qualities


def test_of_eight_runs_the_best_of_each_task_and_pair_is_marked(client: TestClient) -> None:
    found = listed(client)
    assert list(found) == list(EIGHT)
    assert [name for name in found if found[name]["best"]] == [
        *("classifier", "german", "hindi", "tagger", "writer", "zebra")
    ]
    for name, (what, score_name, score) in EIGHT.items():
        task, _, pair = what.partition(" ")
        one = found[name]
        assert (one["task"], one["score"]) == (task, score)
        assert one["score_name"] == (score_name if score is not None else "")
        assert one["languages"] == (dict(zip(("source", "target"), pair.split("-"), strict=True)) if pair else None)
    assert (found["bahdanau"]["preset"], found["zebra"]["preset"]) == ("bahdanau", "luong-dot")
    assert found["bahdanau"]["architecture"] == "GRU, both ways, Bahdanau attention (additive), 1 layer, width 16"


def test_of_eight_runs_clients_get_the_best_and_hear_which(client: TestClient) -> None:
    assert {target: used(client, target) for target in ("fr", "de", "hi")} == {
        "fr": "zebra",
        "de": "german",
        "hi": "hindi",
    }
    assert used(client, "fr", "auto") == "zebra"
    languages = {each["code"]: each["targets"] for each in client.get("/languages").json()}
    assert languages == {"en": ["fr", "de", "hi"], "fr": [], "de": [], "hi": []}
    assert client.get("/frontend/settings").json()["language"]["target"]["code"] == "fr"


def test_a_run_on_own_text_comes_before_better_ones_on_the_built_in_corpus(tmp_path: Path, eight: Path) -> None:
    for name in ("german", "zebra"):
        shutil.copytree(eight / name, tmp_path / name)
    settings = tmp_path / "german" / "settings.toml"
    settings.write_text(
        settings.read_text().replace("[data]\n", '[data]\nlanguages = "en-fr"\n', 1).replace('languages = ""\n', "", 1)
    )
    library = Library(tmp_path)
    with serving.client_of(library) as client:
        assert used(client, "fr") == "german"
    library.close()


def test_a_plain_language_finds_the_one_run_that_has_a_fuller_code(tmp_path: Path, eight: Path) -> None:
    for name, pair in {"german": "eng_Latn-pt_BR", "hindi": "zh-Hans-en"}.items():
        shutil.copytree(eight / name, tmp_path / name)
        settings = tmp_path / name / "settings.toml"
        settings.write_text(re.sub(r"languages = .*\n", "", settings.read_text()))
        settings.write_text(settings.read_text().replace("[data]\n", f'[data]\nlanguages = "{pair}"\n', 1))
    shutil.copytree(tmp_path / "german", tmp_path / "portugal")
    library = Library(tmp_path)
    with serving.client_of(library) as client:
        languages = {each["code"]: each["name"] for each in client.get("/languages").json()}
        assert languages["pt_BR"] == "Portuguese (BR)"
        assert languages["zh-Hans"] == "Chinese (Hans)"
        for source, target in (("eng_Latn", "pt_BR"), ("en", "pt"), ("auto", "pt-br")):
            assert used(client, target, source) in ("german", "portugal")
        settings = tmp_path / "portugal" / "settings.toml"
        settings.write_text(settings.read_text().replace("pt_BR", "pt_PT"))
        answer = client.post("/translate", json={"q": CAT, "source": "en", "target": "pt"})
        assert answer.status_code == 400
        assert answer.json()["error"].endswith("are ambiguous: eng_Latn to pt_BR, eng_Latn to pt_PT; choose one")
    library.close()


def test_several_texts_in_several_languages_name_every_run(client: TestClient) -> None:
    answer = client.post("/translate", json={"q": [CAT, CAT], "source": "en", "target": "fr"})
    assert answer.headers["X-Regard-Run"] == "zebra"


def test_a_pinned_run_comes_before_a_better_one(eight: Path) -> None:
    library = Library(eight, pinned=["middling", "writer"])
    check_pins(library)
    with serving.client_of(library) as client:
        assert used(client, "fr") == "middling"
        found = listed(client)
        assert [name for name in found if found[name]["pinned"]] == ["middling", "writer"]
        assert not found["zebra"]["best"]
    library.close()


def test_pins_that_cannot_be_meant_are_refused_at_the_start(eight: Path) -> None:
    with pytest.raises(ModelError, match="run = zbra: no such run here; did you mean 'zebra'"):
        check_pins(Library(eight, pinned=["zbra"]))
    with pytest.raises(SettingsError, match=r"serve\.pin = middling, zebra: are for the same task and languages"):
        check_pins(Library(eight, pinned=["middling", "zebra"]))


def test_runs_named_one_by_one_are_the_only_candidates_for_what_they_do(eight: Path) -> None:
    library = Library(eight, [eight / "bahdanau", eight / "middling"])
    with serving.client_of(library) as client:
        assert used(client, "fr") == "middling"  # the better of those two, and not the best of the folder
        assert used(client, "hi") == "hindi"
    library.close()


def test_of_named_runs_only_those_that_changed_are_read_again(
    tmp_path: Path, eight: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [shutil.copytree(eight / name, tmp_path / name) for name in ("bahdanau", "zebra")]
    library, looks = Library(named=named), list[int]()
    monkeypatch.setattr("regard.serve.pairs.pairs", lambda of: looks.append(1) or pairs(of))  # type: ignore[func-returns-value]
    assert list(asyncio.run(current_pairs(library)).values()) == ["zebra"]
    assert asyncio.run(current_pairs(library)) == pairs(library)
    assert len(looks) == 1
    (named[1] / "settings.toml").write_text("damaged", encoding="utf-8")
    for _ in range(2):  # what cannot be read now may be the next time
        assert list(asyncio.run(current_pairs(library)).values()) == ["bahdanau"]
    assert len(looks) == 3


def test_a_new_score_changes_the_choice_at_once(tmp_path: Path, eight: Path) -> None:
    for name in ("zebra", "middling"):
        shutil.copytree(eight / name, tmp_path / name)
    with serving.client(tmp_path) as client:
        assert used(client, "fr") == "zebra"
        serving.rescore(tmp_path / "middling", "BLEU", 99.5, 2_000_000_000)
        assert used(client, "fr") == "middling"
        serving.rescore(tmp_path / "zebra", "BLEU", 99.5, 2_000_000_001)
        assert used(client, "fr") == "zebra"  # of equals the newer
        serving.rescore(tmp_path / "zebra", "BLEU", None, 2_000_000_002)
        assert used(client, "fr") == "middling"


# Renaming, removing and taking back


@pytest.fixture
def mine(eight: Path, tmp_path: Path) -> Path:
    """A folder of three of them, to be changed."""
    for name in ("zebra", "tagger", "german"):
        shutil.copytree(eight / name, tmp_path / "runs" / name)
    return tmp_path / "runs"


@pytest.fixture
def own(mine: Path) -> Iterator[TestClient]:
    with serving.client(mine) as found:
        yield found


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def test_a_run_gets_another_name_and_answers_to_it(own: TestClient, mine: Path) -> None:
    before = own.post("/api/v1/translate", json={"run": "zebra", "texts": [CAT]}).json()["translations"]
    answer = own.post("/api/v1/runs/zebra/rename", json={"to": "lion"})
    assert (answer.status_code, answer.json()) == (200, {"run": "lion"})
    assert used(own, "fr") == "lion"
    assert own.post("/api/v1/translate", json={"run": "lion", "texts": [CAT]}).json()["translations"] == before
    assert own.post("/api/v1/translate", json={"run": "zebra", "texts": [CAT]}).status_code == 404
    assert list(own.app.state.library.loaded) == ["lion"]  # type: ignore[attr-defined]
    assert sorted(path.name for path in mine.iterdir() if not path.name.startswith(".")) == ["german", "lion", "tagger"]


@pytest.mark.parametrize(
    ("name", "to", "expected"),
    [
        ("zebra", "tagger", (400, "name = tagger: is taken; choose another")),
        ("zebra", "../x", (400, "name = ../x: not a name for a run; use letters, digits, '.', '_' and '-'")),
        ("zbra", "x", (404, "run = zbra: no such run here; did you mean 'zebra'?")),
    ],
)
def test_a_name_that_cannot_be_had_is_refused(own: TestClient, name: str, to: str, expected: tuple[int, str]) -> None:
    assert refusal(own.post(f"/api/v1/runs/{name}/rename", json={"to": to})) == expected


def test_a_removed_run_is_gone_from_everywhere_and_comes_back_whole(own: TestClient, mine: Path) -> None:
    assert used(own, "fr") == "zebra"
    answer = own.delete("/api/v1/runs/zebra")
    assert answer.json() == {"run": "zebra", "restore": "/api/v1/runs/zebra/restore"}
    assert "zebra" not in listed(own)
    assert [each["run"] for each in own.get("/api/v1/trainings").json()["trainings"]] == ["german", "tagger"]
    assert {each["code"] for each in own.get("/languages").json()} == {"en", "de"}
    assert len(list((mine / ".trash").iterdir())) == 1
    assert own.post(answer.json()["restore"]).json() == {"run": "zebra"}
    assert used(own, "fr") == "zebra"
    assert refusal(own.post("/api/v1/runs/zebra/restore")) == (404, "zebra: is not in the trash; it is empty")
    assert refusal(own.post("/api/v1/runs/.trash/restore"))[0] == 404
    assert refusal(own.delete("/api/v1/runs/nobody"))[0] == 404


def test_a_run_in_training_is_neither_renamed_nor_removed(own: TestClient, mine: Path) -> None:
    with occupied(mine / "zebra"):
        expected = 400, "run = zebra: is being trained; stop it first"
        assert refusal(own.post("/api/v1/runs/zebra/rename", json={"to": "x"})) == expected
        assert refusal(own.delete("/api/v1/runs/zebra")) == expected


def test_runs_that_were_named_or_come_with_the_package_stay(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(mine, [mine / "zebra"])
    with serving.client_of(library) as client:
        assert {name: each["fixed"] for name, each in listed(client).items()} == {
            "zebra": True,
            "german": False,
            "tagger": False,
        }
        status, line = refusal(client.delete("/api/v1/runs/zebra"))
        assert (status, "comes with Regard or was named at the start, and cannot be changed here" in line) == (
            400,
            True,
        )
        monkeypatch.setattr("regard.runs.folder.PACKAGED", mine / "tagger")
        assert refusal(client.post("/api/v1/runs/tagger/rename", json={"to": "x"}))[0] == 400
    alone = Library(None, [mine / "zebra"])
    with serving.client_of(alone) as client:
        assert "has no folder of runs, and so no trash" in refusal(client.post("/api/v1/runs/x/restore"))[1]


def test_a_training_goes_with_its_run_and_one_that_failed_can_be_removed(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = studios.Children()
    monkeypatch.setattr("regard.serve.jobs.spawn", children.spawn)
    with serving.client(mine) as client:
        body = {"name": "failed", "preset": "lstm", "corpus": "fable:fr"}
        assert client.post("/api/v1/trainings", json=body).status_code == 201
        assert refusal(client.delete("/api/v1/runs/failed")) == (400, "run = failed: is being trained; stop it first")
        client.post("/api/v1/trainings/zebra/resume")
        children.end()
        wait_for(lambda: not client.app.state.jobs.is_training("failed"))  # type: ignore[attr-defined]
        assert client.delete("/api/v1/runs/failed").status_code == 200
        assert client.get("/api/v1/trainings/failed").status_code == 404
        assert client.post("/api/v1/runs/failed/restore").json() == {"run": "failed"}
        assert client.get("/api/v1/trainings/failed").json()["state"] == "failed"
        assert "is taken" in refusal(client.post("/api/v1/runs/zebra/rename", json={"to": "failed"}))[1]
        client.post("/api/v1/runs/zebra/rename", json={"to": "lion"})
        names = {each["run"] for each in client.get("/api/v1/trainings").json()["trainings"]}
        assert names == {"failed", "german", "lion", "tagger"}
        client.delete("/api/v1/runs/lion")
        client.post("/api/v1/runs/lion/restore")
        assert {each["run"] for each in client.get("/api/v1/trainings").json()["trainings"]} == names


def wait_for(true: Callable[[], bool]) -> None:
    last = time.monotonic() + 60
    while not true():
        assert time.monotonic() < last
        time.sleep(0.01)


# Showing and trying


def test_settings_are_told_as_text_and_values_and_of_files_only_their_names(client: TestClient, tmp_path: Path) -> None:
    found = client.get("/api/v1/runs/german/settings").json()
    assert found["settings"]["data"]["source"] == "train.en"
    assert found["settings"]["train"]["steps"] == 2
    (tmp_path / "settings.toml").write_text(found["toml"])
    assert regard.load_settings(tmp_path / "settings.toml").model_dump(mode="json") == found["settings"]


def test_examples_are_validation_sentences_of_the_run_itself(client: TestClient) -> None:
    def tried(run: str, **options: int) -> list[tuple[str, str]]:
        found = client.get(f"/api/v1/runs/{run}/examples", params=options).json()["examples"]
        return [(each["text"], each["reference"]) for each in found]

    fable = {each.source: each for each in generate("fr", count=101, split="valid", maximum_words=8)}
    assert len(tried("zebra")) == 5
    assert all(fable[text].target == reference for text, reference in tried("zebra", count=20))
    tags = {" ".join(each.tokens): " ".join(each.tags) for each in fable.values()}  # marks apart: each has a tag
    assert tried("tagger")
    assert all(tags[text] == reference for text, reference in tried("tagger"))
    assert all(fable[text].sentiment == reference for text, reference in tried("classifier"))
    assert all(whole in fable and whole.startswith(text) and whole != text for text, whole in tried("writer"))
    assert ("the cat sleeps", "die Katze schläft") in tried("german", count=20)
    assert client.get("/api/v1/runs/zebra/examples", params={"count": 0}).status_code == 400


def test_examples_are_there_when_the_corpus_and_the_log_are_gone(own: TestClient, mine: Path, eight: Path) -> None:
    settings = (mine / "german" / "settings.toml").read_text()
    (mine / "german" / "settings.toml").write_text(settings.replace(str(eight.parent), "/nowhere"))
    expected = own.get("/api/v1/runs/german/examples").json()
    assert expected["examples"]
    (mine / "german" / "log.jsonl").unlink()
    encoded = own.get("/api/v1/runs/german/examples").json()
    assert {each["text"] for each in encoded["examples"]} == {each["text"] for each in expected["examples"]}
    shutil.rmtree(mine / "german" / "data")
    assert own.get("/api/v1/runs/german/examples").json()["examples"] == []


@pytest.mark.parametrize(
    ("languages", "first"),
    [
        ("zh-en", {"text": "银行在河边。", "reference": "The bank is near the river."}),
        ("por_Latn-xx", {"text": "O banco fica perto do rio.", "reference": ""}),
        ("xx-en", None),
        ("", None),
    ],
)
def test_an_imported_run_has_everyday_sentences_of_its_languages(
    languages: str, first: dict[str, str] | None, own: TestClient, mine: Path
) -> None:
    small_run(mine / "foreign", f"data.languages={languages}")
    found = own.get("/api/v1/runs/foreign/examples", params={"count": 3}).json()["examples"]
    assert (found[0] if found else None) == first
    assert len(found) == (3 if first else 0)


def test_an_exported_run_can_be_imported(client: TestClient, tmp_path: Path) -> None:
    answer = client.get("/api/v1/runs/zebra/export")
    assert answer.status_code == 200
    assert 'filename="zebra.tar.gz"' in answer.headers["Content-Disposition"]
    (tmp_path / "zebra.tar.gz").write_bytes(answer.content)
    run = unpack(tmp_path / "zebra.tar.gz", tmp_path / "again")
    assert run.settings.data.corpus == "fable:fr"
    whole = client.get("/api/v1/runs/zebra/export", params={"everything": True})
    assert len(whole.content) > len(answer.content)


def test_what_cannot_be_exported_leaves_nothing_behind(
    own: TestClient, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shutil.rmtree(mine / "zebra" / "checkpoints")
    assert own.get("/api/v1/runs/zebra/export").status_code == 404
    assert not list(tmp_path.glob("regard-export-*"))

    sent = StreamingResponse.stream_response

    async def looked_at(answer: StreamingResponse, send: Send) -> None:
        """Nothing is left to remove before the first byte is sent: whoever breaks off leaves nothing either."""
        assert not list(tmp_path.glob("regard-export-*"))
        await sent(answer, send)

    monkeypatch.setattr(StreamingResponse, "stream_response", looked_at)
    assert own.get("/api/v1/runs/tagger/export").status_code == 200


def test_the_archive_for_a_client_that_has_gone_is_closed(tmp_path: Path) -> None:
    (tmp_path / "run.tar.gz").write_bytes(b"content")
    file = (tmp_path / "run.tar.gz").open("rb")

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def never(_: Message) -> None:
        await asyncio.Event().wait()

    asyncio.run(ArchiveResponse(file, "run.tar.gz")({"type": "http"}, gone, never))
    assert file.closed


def test_a_report_is_made_once_and_says_nothing_of_folders(own: TestClient, mine: Path, eight: Path) -> None:
    answer = own.get("/api/v1/runs/german/report")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert "die Katze" in answer.text
    for place in (mine, mine.resolve(), eight.parent):
        assert str(place) not in answer.text
    kept = mine / ".jobs" / "reports" / "german.html"
    kept.write_text("kept")
    assert own.get("/api/v1/runs/german/report").text == "kept"
    serving.rescore(mine / "german", "BLEU", 1.0, 2_100_000_000)
    (mine / "german" / "report.html").write_text("by hand")
    os.utime(mine / "german" / "report.html", (2_200_000_000, 2_200_000_000))
    assert own.get("/api/v1/runs/german/report").text == "by hand"
    shutil.rmtree(mine / "tagger" / "checkpoints")
    assert own.get("/api/v1/runs/tagger/report").status_code == 404


# /api/v1/predict


def predicted(client: TestClient, run: str, *texts: str, **more: Any) -> list[dict[str, Any]]:
    answer = client.post("/api/v1/predict", json={"run": run, "texts": texts, **more})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["predictions"])


def test_a_tagger_tags_every_word(client: TestClient, eight: Path) -> None:
    found, empty = predicted(client, "tagger", CAT, "")
    (expected,) = load_predictor(eight / "tagger").tag([CAT])  # type: ignore[union-attr]
    assert [(each["word"], each["tag"]) for each in found["tags"]] == list(
        zip(expected.words, expected.tags, strict=True)
    )
    assert all(0 < each["probability"] <= 1 for each in found["tags"])
    assert (empty["tags"], empty["classes"], empty["continuation"]) == ([], [], "")


@pytest.mark.parametrize("run", ["tagger", "classifier", "writer"])
def test_words_that_a_run_has_never_seen_are_told(client: TestClient, run: str) -> None:
    (found,) = predicted(client, run, "the qwertyuiop")
    assert {"start": 4, "end": 14, "word": "qwertyuiop"} in found["unknown"]
    assert "never seen: " in found["warning"]
    assert "qwertyuiop" in found["warning"]


def test_a_classifier_gives_every_class_the_likeliest_first(client: TestClient) -> None:
    (found,) = predicted(client, "classifier", CAT)
    shares = [each["probability"] for each in found["classes"]]
    assert {each["label"] for each in found["classes"]} == {"positive", "negative", "neutral"}
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-4)


def test_a_language_model_goes_on(client: TestClient, eight: Path) -> None:
    found, empty = predicted(client, "writer", "the black cat", " ", length=7)
    (expected,) = load_predictor(eight / "writer").write(["the black cat"], length=7)  # type: ignore[union-attr]
    assert (found["continuation"], found["score"]) == (expected.added, pytest.approx(expected.score, abs=1e-4))
    assert (empty["continuation"], empty["score"]) == ("", None)
    drawn = [predicted(client, "writer", "the", sample=True, seed=seed)[0]["continuation"] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_translator_is_not_asked_to_predict(client: TestClient) -> None:
    answer = client.post("/api/v1/predict", json={"run": "zebra", "texts": [CAT]})
    assert refusal(answer) == (404, "run = zebra: translates; ask /api/v1/translate")
    answer = client.post("/api/v1/predict", json={"run": "tagger", "texts": ["a"] * 300})
    assert refusal(answer)[0] == 413


# Comparing


def test_a_comparison_of_labels_takes_no_more_texts_than_it_was_asked_for(eight: Path) -> None:
    found = regard.compare([eight / "classifier"], measure=MeasureSettings(limit=7))
    assert found.conditions.sentences == 7
    assert all(row.scores for row in found.rows)
