"""Which run is used where nobody names one; and runs renamed, put into the trash, taken back, shown and tried."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import serving
from regard.errors import ModelError, SettingsError
from regard.serve.library import Library
from regard.serve.pairs import check_pins
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
    with pytest.raises(SettingsError, match="--pin = middling, zebra: are for the same task and languages"):
        check_pins(Library(eight, pinned=["middling", "zebra"]))


def test_runs_named_one_by_one_are_the_only_candidates_for_what_they_do(eight: Path) -> None:
    library = Library(eight, [eight / "bahdanau", eight / "middling"])
    with serving.client_of(library) as client:
        assert used(client, "fr") == "middling"  # the better of those two, and not the best of the folder
        assert used(client, "hi") == "hindi"
    library.close()


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
