"""The studio's files: one source for every colour, nothing from elsewhere, nothing that its policy would refuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import regard
from regard.show import colours
from regard.show.svg import style

STUDIO = Path(regard.__file__).parent / "studio"
FILES = sorted(path for path in STUDIO.rglob("*") if path.suffix in {".js", ".css", ".html", ".svg"})
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
LONGEST = 400  # lines of a file, as the formatter breaks them


def test_the_colours_of_the_studio_are_those_of_the_report() -> None:
    assert (STUDIO / "pieces" / "colours.js").read_text(encoding="utf-8") == colours.module(), "run `make docs`"


def test_the_tokens_of_the_studio_are_those_of_the_report() -> None:
    """On light and on dark paper; what the studio has beyond them is its own."""
    sheet = (STUDIO / "style.css").read_text(encoding="utf-8")
    studio = {name: pair for name, *pair in re.findall(r"(--[\w-]+): light-dark\((#\w+), (#\w+)\);", sheet)}
    for file in ("pictures", "page"):
        light, _, rest = style(file).partition("@media (prefers-color-scheme:dark)")
        dark = rest.partition("}}")[0]
        both = [dict(re.findall(r"(--[\w-]+):(#\w+)", part.partition("}\n")[0])) for part in (light, dark)]
        assert both[0].keys() == both[1].keys()
        for name, colour in both[0].items():
            assert studio[name] == [colour, both[1][name]], name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(STUDIO)))
def test_a_file_of_the_studio_is_short_and_asks_for_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[\w./-]*", text)
    assert all(address.startswith("http://www.w3.org/") for address in addresses)  # names of SVG and MathML


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(STUDIO)))
def test_a_script_writes_text_and_never_markup(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\""
    assert not re.search(forbidden, text)


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    """All of it is in files: the security policy allows nothing else."""
    text = (STUDIO / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
