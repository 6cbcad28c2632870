"""Meaning in a browser: one word in two sentences and more, with the service's own numbers at every layer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest

RUN = "transformer-tiny"
SENTENCES = ["the duck slept on the bank", "the banker counted the money in the bank"]
PLANE = """() => {
  const {picture} = document.querySelector('.meaning .plane');
  return Array.from({length: picture.layers}, (_, layer) => picture.marks.map((_, mark) => picture.at(layer, mark)));
}"""
DOTS = "[...document.querySelectorAll('.plane circle')].map(dot => [dot.cx.baseVal.value, dot.cy.baseVal.value])"


def address(run: str = RUN, word: str = "bank", sentences: list[str] = SENTENCES, **more: Any) -> str:
    return "/#meaning?" + urlencode({"run": run, "word": word, "sentences": "\n".join(sentences), **more})


def asked(page: Any, run: str = RUN, sentences: list[str] = SENTENCES, control: str | None = None) -> dict[str, Any]:
    body = {"run": run, "word": "bank", "sentences": sentences, "control": control, "neighbours": 5}
    answer = page.request.post("/api/v1/meaning", data=body)
    assert answer.ok, answer.text()
    found: dict[str, Any] = answer.json()
    return found


def unpacked(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), "<f4").reshape(packed["shape"])


def opened(page: Any, where: str) -> None:
    page.goto(where)
    page.wait_for_selector(".meaning .figures dd")


def figures(page: Any) -> dict[str, float]:
    rows = (
        "rows => rows.map(row => [row.querySelector('dt').textContent, Number(row.querySelector('dd').dataset.value)])"
    )
    return dict(page.eval_on_selector_all(".figures > div", rows))


def at_layer(page: Any, layer: int) -> None:
    page.get_by_role("slider", name="Layer", exact=True).fill(str(layer))


@pytest.mark.parametrize("run", [RUN, "lstm"])
def test_two_sentences_show_the_services_numbers_at_every_layer(page: Any, run: str) -> None:
    found, alone = asked(page, run, control="the"), asked(page, run)
    cosines, points = unpacked(found["cosines"]), unpacked(alone["points"])
    opened(page, address(run, control="the"))
    chart = page.evaluate("document.querySelector('.meaning .chart').shown")
    assert [point["y"] for point in chart[0]["points"]] == pytest.approx(cosines[:, 0, 1].clip(max=1).tolist())
    assert [point["y"] for point in chart[1]["points"]] == pytest.approx(cosines[:, 2, 3].clip(max=1).tolist())
    assert np.allclose(page.evaluate(PLANE), points)
    for layer, name in enumerate(found["layers"]):
        at_layer(page, layer)
        assert name in page.locator(".level").inner_text()
        shown = page.evaluate("document.querySelector('.meaning .heatmap').shown.values")
        values = [shown[str(place)] for place in range(4)] if isinstance(shown, dict) else shown
        assert values == pytest.approx(cosines[layer, :2, :2].flatten().tolist())
        told = figures(page)
        assert told["Control: the"] == pytest.approx(float(cosines[layer, 2, 3]))
        assert next(iter(told.values())) == pytest.approx(float(cosines[layer, 0, 1]))
        near = page.eval_on_selector_all(".near .number", "spans => spans.map(span => Number(span.dataset.value))")
        words = page.eval_on_selector_all(".near li b", "words => words.map(word => word.textContent)")
        wanted = [one for own in found["neighbours"][layer][:2] for one in own]
        assert near == pytest.approx([one["cosine"] for one in wanted])
        assert words == [one["word"] for one in wanted]


def test_the_points_of_a_layer_move_on_axes_that_stay(page: Any) -> None:
    opened(page, address(layer=0))
    first = page.evaluate(DOTS)
    at_layer(page, 1)
    assert page.evaluate(DOTS) != first  # at once: the page was asked for less motion
    page.wait_for_url(lambda url: "layer=1" in url)
    at_layer(page, 0)
    assert page.evaluate(DOTS) == first


def test_with_motion_the_points_travel_and_arrive(page: Any) -> None:
    page.emulate_media(reduced_motion="no-preference")
    opened(page, address(layer=0))
    first = page.evaluate(DOTS)
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.get_by_role("button", name="Play", exact=True).wait_for()
    last = page.evaluate(DOTS)
    assert last != first
    page.emulate_media(reduced_motion="reduce")
    at_layer(page, 0)
    at_layer(page, 1)
    assert np.allclose(page.evaluate(DOTS), last)


def test_each_occurrence_is_shown_with_its_translation_and_links(page: Any) -> None:
    found = asked(page)
    answer = page.request.post("/api/v1/translate", data={"run": RUN, "texts": SENTENCES, "beam": 1}).json()
    opened(page, address())
    for number, one in enumerate(answer["translations"]):
        row = page.locator(".translated li").nth(number)
        assert row.locator(".tokens").first.inner_text().split() == SENTENCES[number].split()
        assert row.locator(".tokens").last.inner_text().split() == one["outputs"][0]["words"]
        assert row.locator(".tokens").first.locator(".found").inner_text() == "bank"
        linked = {
            link["target"]
            for link in one["outputs"][0]["links"]
            if link["source"] == found["occurrences"][number]["place"]
        }
        assert row.locator(".tokens").last.locator(".found").count() == len(linked)
        became = found["occurrences"][number]["translation"] or "no link"
        assert row.locator(".became").inner_text() == f"bank → {became}"


def test_sentences_are_added_changed_removed_and_back_undoes(page: Any) -> None:
    opened(page, address())
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("button", name="Add a sentence", exact=True).click()
    page.keyboard.type("the bank slept")
    page.keyboard.press("Enter")
    page.locator(".translated li").nth(2).wait_for()
    page.wait_for_url(lambda url: "the+bank+slept" in url)
    page.get_by_label("Sentence 3", exact=True).fill("a bank")
    page.keyboard.press("Enter")
    page.locator(".translated li", has_text="a bank").wait_for()
    page.get_by_role("button", name="Remove sentence 1", exact=True).click()
    page.locator(".translated li").nth(2).wait_for(state="detached")
    assert page.get_by_label("Sentence 1", exact=True).input_value() == SENTENCES[1]
    page.go_back()
    page.locator(".translated li").nth(2).wait_for()
    assert page.get_by_label("Sentence 1", exact=True).input_value() == SENTENCES[0]
    page.go_back()
    page.go_back()
    page.locator(".translated li").nth(2).wait_for(state="detached")
    assert page.locator(".sentences li").count() == 2


def test_a_sentence_without_the_word_says_so_and_keeps_its_number(page: Any) -> None:
    opened(page, address(sentences=["nothing here", *SENTENCES]))
    page.get_by_role("button", name="Edit", exact=True).click()
    assert "bank does not stand" in page.locator(".sentences li").first.inner_text()
    assert page.locator(".translated .dot").all_inner_texts() == ["2", "3"]
    page.get_by_label("Word", exact=True).fill("nowhere")
    page.keyboard.press("Enter")
    page.get_by_text("Write two sentences or more with the word nowhere").wait_for()


def test_an_example_is_taken_and_the_chart_begins_where_it_is_told(page: Any) -> None:
    page.goto(f"/#meaning?run={RUN}")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("button", name="bat animal or sport", exact=True).click()
    page.locator(".translated li", has_text="the owl chased").wait_for()
    page.wait_for_url(lambda url: "word=bat" in url)
    page.locator(".segmented label").nth(2).click()
    page.wait_for_url(lambda url: "from=2" in url)
    names = [one["name"].split()[1] for one in page.evaluate("document.querySelector('.meaning .chart').shown")]
    assert names[:3] == ["1", "2", "4"]


def test_another_word_that_is_not_asked_for_yet_marks_the_result_as_old(page: Any) -> None:
    opened(page, address())
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Word", exact=True).press_sequentially("er")
    assert "What stands below is of “bank”" in page.locator(".meaning > .warning:visible").inner_text()
    assert page.locator(".results.old").count() == 1
    page.get_by_label("Word", exact=True).fill("bank")
    assert page.locator(".meaning > .warning:visible").count() == 0
    assert page.locator(".results.old").count() == 0


def test_a_word_that_the_run_has_never_seen_is_said_and_not_measured(page: Any) -> None:
    unknown = [{"start": 0, "end": 4, "word": "bank"}]

    def answer(route: Any) -> None:
        given = route.fetch()
        route.fulfill(response=given, json={**given.json(), "unknown": unknown})

    page.route("**/api/v1/meaning", answer)
    page.goto(address())
    page.get_by_text("has never seen the word").wait_for()
    assert page.locator(".figures").count() == 0
    page.get_by_role("button", name="Choose another word", exact=True).click()
    assert page.evaluate("document.activeElement.value") == "bank"


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_how_each_is_translated_comes_first_and_above_the_fold(page: Any, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    opened(page, address())
    assert page.locator(".results h2").first.inner_text() == "How each is translated"
    assert page.locator(".translated").bounding_box()["y"] < 600


def test_a_problem_is_said_where_it_happened(page: Any, heard: list[str]) -> None:
    page.goto(address(control="elephant"))
    page.get_by_role("alert").wait_for()
    assert "control = elephant" in page.get_by_role("alert").inner_text()
    assert len(heard) == 1  # the browser notes the status
    heard.clear()


def test_markup_in_a_sentence_is_text(page: Any) -> None:
    opened(page, address(sentences=["<script>document.title='caught'</script> bank", "the <img src=x> bank"]))
    assert page.title() == "Meaning · Regard"
    assert "<img" in page.locator(".translated").inner_text()


def test_without_a_run_the_page_says_what_to_do(empty_page: Any) -> None:
    empty_page.goto("/#meaning")
    empty_page.get_by_role("link", name="Train the demo", exact=True).wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (380, "dark")])
def test_meaning_fits_and_is_accessible(
    page: Any, accessible: Callable[[Any], None], fits: Callable[[Any], None], width: int, scheme: str
) -> None:
    def endless(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        body["occurrences"][0]["translation"] = "il" * 97
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/meaning", endless)
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, address(sentences=[*SENTENCES, "a very long sentence " * 9 + "bank", "lacks it"], control="the"))
    fits(page)
    accessible(page)


def test_a_run_of_the_persons_own_text_begins_with_a_word_of_that_text(page: Any) -> None:
    page.goto("/#meaning")
    texts = ["Ein Hund rennt.", "Der Hund, so rot.", "Mein Hund!", "Kein Hund bellt.", "Menschen warten.", "Menschen"]
    page.route("**/examples?count=50", lambda route: route.fulfill(json={"examples": [{"text": one} for one in texts]}))
    found = page.evaluate(
        """async () => {
          const {ownExamples} = await import('/studio/panels/meaning/examples.js');
          const own = await ownExamples({name: 'mine', corpus: 'train.de and train.en'});
          return [own, await ownExamples({name: 'demo', corpus: 'fable:fr'})];
        }"""
    )
    own = {"word": "Hund", "about": "in this run's own text", "control": "", "sentences": texts[:4]}
    assert found == [[own], []]


def test_a_word_is_named_without_the_marks_around_it(eight_page: Any) -> None:
    sentences = "The duck slept on the bank.\nThe bank fell."
    eight_page.goto(f"/#meaning?run=tagger&word=bank&control=the&sentences={quote(sentences)}")
    eight_page.get_by_text("Each point is bank in one sentence.").wait_for()


def test_examples_are_in_the_language_that_the_run_reads(page: Any) -> None:
    page.goto("/#meaning")
    found = page.evaluate(
        """async (codes) => {
          const {examplesFor} = await import('/studio/panels/meaning/examples.js');
          const {has} = await import('/studio/panels/meaning/sentences.js');
          return codes.map(code => {
            const languages = code ? {source: code, target: 'en'} : null;
            const examples = examplesFor({task: code === null ? 'tag' : 'translate', languages});
            const whole = ({word, control, sentences}) => sentences.every(
              one => has(one, word) && (!control || has(one, control))) && sentences.length > 1;
            return [examples[0]?.word ?? '', examples.every(whole)];
          });
        }""",
        [None, "", "en", "eng_Latn", "zh", "pt_BR", "de", "fr", "es", "sw"],
    )
    words = ["bank", "", "bank", "bank", "苹果", "banco", "Bank", "avocat", "banco", ""]
    assert found == [[word, True] for word in words]
