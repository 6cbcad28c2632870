"""Tours show what they say, with the run of the package; and every page can be taken along: link, picture, page."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MONEY = ["The thief found the coin in the bank.", "The banker counted the money in the bank."]
RIVER = ["The duck slept on the bank.", "The turtle walked on the bank."]
TEXT = "the black cat ate the mouse"
TOUR = "document.querySelector('.tour-say').textContent"


@pytest.fixture
def own(request: pytest.FixtureRequest, page_of: Callable[[Path], Any], tmp_path: Path) -> Any:
    """A studio as a stranger meets it: the run of the package is the only one."""
    request.getfixturevalue("with_demo")
    return page_of(tmp_path)


def begin(page: Any, name: str) -> None:
    page.goto(f"/#tour?name={name}")
    page.wait_for_selector(".tour")


def forward(page: Any) -> None:
    said = page.evaluate(TOUR)
    page.locator(".tour button.primary").click()
    page.locator(".tour-say", has_not_text=said).wait_for()


def unpacked(tensor: dict[str, Any]) -> tuple[list[int], list[float]]:
    data = base64.b64decode(tensor["data"])
    return tensor["shape"], list(struct.unpack(f"<{len(data) // 4}f", data))


def looked(page: Any) -> dict[str, str]:
    """For each word written, the one it looks at most, by the lines of Look inside."""
    page.wait_for_selector(".sentence .lines path")
    shown = page.evaluate("document.querySelector('.sentence .lines').shown")
    best: dict[int, Any] = {}
    for link in shown["links"]:
        if link["weight"] > best.get(link["row"], {"weight": 0})["weight"]:
            best[link["row"]] = link
    return {shown["rows"][row]: shown["columns"][link["column"]] for row, link in best.items()}


def test_why_attention_shows_lines_that_cross_and_a_word_that_goes(own: Any) -> None:
    begin(own, "why-attention")  # no run without attention is here: that stop is left out
    own.wait_for_selector("svg.wires .wire", state="attached")
    assert "looks at all vectors of the encoder" in own.evaluate(TOUR)
    assert own.locator("svg.wires .wire").count() == own.locator(".part.layer[data-part^=decoder]").count() > 0
    forward(own)
    found = looked(own)
    assert (found["chat"], found["noir"]) == ("cat", "black")
    order = list(found)
    assert order.index("chat") < order.index("noir")
    forward(own)
    own.wait_for_selector(".what-if .after")
    assert "noir" in own.locator(".what-if .before").inner_text()
    assert "noir" not in own.locator(".what-if .after").inner_text()
    forward(own)
    own.wait_for_selector("article.step")
    assert re.search(r"of 1[0-4]\b", own.locator(".step .where").inner_text())


def test_bank_is_translated_by_its_company_and_its_vectors_part(own: Any) -> None:
    begin(own, "bank")
    assert "banque" in " ".join(looked(own))
    forward(own)
    own.locator(".lines", has_text="rive").wait_for()
    assert "banque" not in " ".join(looked(own))
    forward(own)
    own.wait_for_selector(".meaning .results .figures")
    body = {"run": "demo", "word": "bank", "sentences": MONEY + RIVER}
    answer = own.request.post("/api/v1/meaning", data=body).json()
    shape, cosines = unpacked(answer["cosines"])
    layer, count = shape[0] - 1, shape[1]

    def cosine(one: int, other: int) -> float:
        return cosines[(layer * count + one) * count + other]

    alike = [cosine(0, 1), cosine(2, 3)]
    apart = [cosine(one, other) for one in (0, 1) for other in (2, 3)]
    assert min(alike) > max(apart)


def test_a_wider_beam_finds_a_more_probable_translation(own: Any) -> None:
    begin(own, "beam")
    own.wait_for_selector(".tree svg")
    text = own.evaluate("import('/studio/tours.js').then(({BEAMED}) => BEAMED)")
    outputs = {}
    for beam in (1, 5):
        answer = own.request.post("/api/v1/translate", data={"run": "demo", "texts": [text], "beam": beam}).json()
        [output] = answer["translations"][0]["outputs"][:1]
        outputs[beam] = output
    assert "la lettre d'Anna" in outputs[1]["text"]
    assert "frère" not in outputs[1]["text"]
    assert "la lettre au frère d'Anna" in outputs[5]["text"]
    traces = [
        own.request.post("/api/v1/trace", data={"run": "demo", "text": text, "target": outputs[beam]["text"]}).json()
        for beam in (1, 5)
    ]
    assert traces[1]["log_probability"] > traces[0]["log_probability"]
    forward(own)
    own.locator(".result", has_text="au frère d'Anna").wait_for()


def test_somebody_elses_model_says_how_it_comes_here(own: Any) -> None:
    begin(own, "import")
    assert "regard import" in own.evaluate(TOUR)
    own.locator(".tour button.primary", has_text="Done").click()  # no model from elsewhere is here: the tour is short
    own.wait_for_selector(".tour", state="detached")


def test_tours_are_offered_in_the_help_and_can_be_ended(own: Any, accessible: Callable[[Any], None]) -> None:
    own.goto("/#runs")
    own.get_by_role("button", name="Help", exact=True).click()
    own.locator("dialog a", has_text="Why attention").click()
    own.wait_for_selector(".tour")
    own.wait_for_selector("main h1")
    accessible(own)
    own.locator(".tour button", has_text="End").click()
    assert own.locator(".tour").count() == 0


def share(page: Any, words: str) -> None:
    page.locator(".share > button").click()
    page.get_by_role("menuitem", name=words, exact=True).click()


@pytest.mark.parametrize("name", ["translate", "look", "map", "beam", "learn"])
def test_a_page_is_saved_as_one_file_that_needs_nothing(page: Any, tmp_path: Path, name: str) -> None:
    page.goto(f"/#{name}?run=transformer-tiny&text={TEXT}")
    page.wait_for_load_state("networkidle")
    with page.expect_download() as waited:
        share(page, "Save as page")
    assert waited.value.suggested_filename.endswith(".html")
    file = tmp_path / "saved.html"
    waited.value.save_as(file)
    written = file.read_text(encoding="utf-8")
    assert "<script" not in written
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|/)""", written)
    shown = page.locator("main h1").inner_text()
    other = page.context.new_page()
    asked: list[str] = []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(file.as_uri())
    assert other.locator("main h1").inner_text() == shown
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    other.close()


def test_a_page_is_saved_as_a_picture_of_its_size(page: Any, tmp_path: Path) -> None:
    page.goto(f"/#map?run=transformer-tiny&text={TEXT}")
    page.wait_for_selector(".scene .part")
    width, height = page.evaluate(
        "(() => {const box = document.querySelector('main').getBoundingClientRect(); return [box.width, box.height]})()"
    )
    with page.expect_download() as waited:
        share(page, "Save as picture")
    file = tmp_path / "saved.png"
    waited.value.save_as(file)
    from PIL import Image  # noqa: PLC0415

    picture = Image.open(file)
    assert picture.size == (pytest.approx(2 * width, abs=2), pytest.approx(2 * height, abs=2))
    assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 50  # words, boxes and colours, not an empty page


def test_the_link_is_copied(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/#map?run=lstm&text={TEXT}")
    page.wait_for_selector(".scene .part")
    share(page, "Copy link")
    page.locator(".toast").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_presenting_hides_forms_and_ends_with_escape(page: Any) -> None:
    page.goto(f"/#look?run=transformer-tiny&text={TEXT}")
    page.wait_for_selector(".sentence .lines path")
    before = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    page.keyboard.press("p")
    assert page.locator("header.frame").is_hidden()
    assert page.locator(".question-fold").is_hidden()
    assert page.locator(".sentence .lines").is_visible()
    assert page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") > before
    page.keyboard.press("Escape")
    assert page.locator("header.frame").is_visible()


def test_the_menu_is_used_by_keyboard(page: Any, accessible: Callable[[Any], None]) -> None:
    page.goto("/#runs")
    page.wait_for_selector("table.all-runs")
    page.locator(".share > button").focus()
    page.keyboard.press("Enter")
    accessible(page)
    heights = [item.bounding_box()["height"] for item in page.locator(".share-list button").all()]
    assert max(heights) < 45  # each on one line
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "Save as picture"
    page.keyboard.press("Escape")
    assert page.locator(".share-list").is_hidden()
    assert page.evaluate("document.activeElement.textContent") == "Share"
