"""The generated reference says what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
specification = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
assert specification is not None
assert specification.loader is not None
generate = importlib.util.module_from_spec(specification)
specification.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == generate.PAGES[name](), "run `make docs`"


def test_the_architecture_page_links_to_where_things_are() -> None:
    assert (DOCS / "architecture.md").read_text(encoding="utf-8") == generate.architecture_page(), "run `make docs`"


def test_the_page_of_measurements_and_its_figures_say_what_the_ledger_says() -> None:
    for name, content in generate.benchmarks().items():
        assert (DOCS / name).read_text(encoding="utf-8") == content, f"{name}: run `make docs`"


def test_the_studio_explains_words_as_the_glossary_does() -> None:
    written = (DOCS.parent / "src" / "regard" / "studio" / "pieces" / "words.js").read_text(encoding="utf-8")
    assert written == generate.words_module(), "run `make docs`"
    assert '["BLEU", ' in written
    assert written.count("\n  [") == len(generate.glossary_terms())


def test_shells_complete_what_the_verbs_and_settings_are() -> None:
    assert generate.completion.TABLE.read_text(encoding="utf-8") == generate.completion_table(), "run `make docs`"
