"""A word that the packaged run has never seen: the page Beam says the same of it as Translate."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from regard.serve.app import Service, create_app
from regard.serve.library import Library


@pytest.mark.usefixtures("with_demo")
def test_a_search_copies_the_unknown_word_and_does_not_call_it_left_out(tmp_path: Path) -> None:
    with TestClient(create_app(Service(Library(tmp_path))), base_url="http://127.0.0.1") as client:
        wish = {"run": "demo", "text": "The wizard loves Zorblax."}
        found = client.post("/api/v1/beam", json=wish, headers={"X-Regard": "studio"}).json()
    assert found["text"] == "Le sorcier aime Zorblax."
    assert found["others"][0]["text"] == found["text"]
    assert "Zorblax (copied)" in found["warning"]
    assert "left out" not in found["warning"]
