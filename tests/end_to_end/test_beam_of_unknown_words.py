"""A word that the packaged run has never seen: the page Beam says the same of it as Translate."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.explain.beam import search_tree
from regard.serve.app import create_app
from regard.serve.library import Library
from regard.tasks.load import load
from regard.tasks.translator import Translator


@pytest.mark.usefixtures("with_demo")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The zorgle's blicket sleeps.", id="in another order than the source has them"),
        pytest.param("The cat can’t see a zorgle.", id="beside a word that is read with a straight quote"),
    ],
)
def test_a_search_writes_unknown_words_where_the_translator_does(text: str) -> None:
    translator = load("demo")
    assert isinstance(translator, Translator)
    found = search_tree(translator, text, Beam(3, best=3), others=(1, 3, 5))
    outputs = translator.translate(text, Options(Beam(3, best=3))).outputs
    assert [found.nodes[number].text for number in found.outputs] == [output.text for output in outputs]
    assert [other.text for other in found.others] == [translator.translate(text, beam=beam).text for beam in (1, 5)]
    assert "n’t" not in "".join(node.text for node in found.nodes)


@pytest.mark.usefixtures("with_demo")
def test_a_search_copies_the_unknown_word_and_does_not_call_it_left_out(tmp_path: Path) -> None:
    with TestClient(create_app(Library(tmp_path)), base_url="http://127.0.0.1") as client:
        wish = {"run": "demo", "text": "The wizard loves Zorblax."}
        found = client.post("/api/v1/beam", json=wish, headers={"X-Regard": "studio"}).json()
    assert found["text"] == "Le sorcier aime Zorblax."
    assert found["others"][0]["text"] == found["text"]
    assert "Zorblax (copied)" in found["warning"]
    assert "left out" not in found["warning"]
