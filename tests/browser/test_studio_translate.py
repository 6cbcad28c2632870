"""The page Translate in a real browser: it follows the typing, and words light up both ways."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install playwright")
Check = Callable[[Any], None]
Ask = Callable[[str, dict[str, Any]], Any]
RUN, TEXT = "bahdanau", "the black cat ate"


def translated(ask: Ask, text: str = TEXT, run: str = RUN) -> dict[str, Any]:
    """What the service says of the same text, once it knows which attention shows the links."""
    for _ in range(600):
        found = ask("/api/v1/translate", {"run": run, "texts": [text], "beam": 2, "best": 2})["translations"][0]
        if "until the best is found" not in found["aligner"]:
            return found
        time.sleep(0.2)
    raise AssertionError("no aligner was chosen")


def address(text: str = TEXT, run: str = RUN, **more: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in more.items())
    return f"/#translate?run={run}&beam=2&text={text.replace(' ', '+')}&{query}"


def words(page: Any, pane: int = 0) -> Any:
    """The words of an output, once they are there."""
    found = page.locator(".pane.output").nth(pane).locator(".word")
    found.first.wait_for()
    return found


def test_a_text_is_translated_while_it_is_written(page: Any, ask: Ask) -> None:
    page.goto(f"/#translate?run={RUN}&beam=2")
    page.locator("textarea").press_sequentially(TEXT)
    expected = translated(ask)["outputs"][0]["text"]
    page.wait_for_function("(text) => document.querySelector('.written').innerText.trim() === text", arg=expected)
    page.wait_for_url(lambda url: url.endswith("text=the+black+cat+ate"))
    page.reload()
    assert words(page).all_inner_texts() == expected.split()


def test_an_earlier_question_is_stopped_by_a_later_one(page: Any, ask: Ask) -> None:
    page.goto(f"/#translate?run={RUN}&beam=2")
    page.locator("textarea").fill("the cat")
    page.locator("textarea").fill(TEXT)
    expected = translated(ask)["outputs"][0]["text"]
    page.wait_for_function("(text) => document.querySelector('.written').innerText.trim() === text", arg=expected)
    page.wait_for_timeout(300)  # whatever might still come
    assert words(page).all_inner_texts() == expected.split()


def test_what_is_written_before_the_example_has_come_stays(page: Any) -> None:
    waiting: list[Any] = []
    page.route("**/examples", lambda route: waiting.append(route))  # noqa: PLW0108
    page.goto("/")
    page.locator("textarea").press_sequentially(TEXT)
    page.wait_for_function("() => document.querySelectorAll('.pane.output .word').length > 0")
    for route in waiting:
        route.fulfill(json={"examples": [{"text": "the dog slept"}]})
    page.wait_for_timeout(200)
    assert page.locator("textarea").input_value() == TEXT


def test_pointing_at_a_word_lights_its_source_with_its_weight(page: Any, ask: Ask) -> None:
    found = translated(ask)
    link = found["outputs"][0]["links"][0]
    page.goto(address())
    words(page).nth(link["target"]).hover()
    assert page.locator(".mirror .lit").all_inner_texts() == [found["source_words"][link["source"]]]
    reading = page.locator(".reading").inner_text()
    target, source = found["outputs"][0]["words"][link["target"]], found["source_words"][link["source"]]
    assert reading.startswith(f"{target} ← {source} {percent(link['weight'])}")
    assert page.locator(".reading bdi").all_inner_texts()[:2] == [
        target,
        source,
    ]  # each by itself
    page.locator(".others summary").click()
    assert found["aligner"] in page.locator(".others .weights").inner_text()
    page.get_by_role("button", name="Clear", exact=True).click()
    assert page.locator(".reading").inner_text().startswith("Tap or point at a word")  # the word is gone


def percent(probability: float) -> str:
    """As the page has it."""
    share = 100 * probability
    if share >= 99.95:
        return "100 %" if share >= 99.9999 else "> 99.9 %"
    return "< 0.1 %" if share < 0.1 else f"{share:.1f} %" if share < 9.95 or share > 99 else f"{share:.0f} %"


def test_how_sure_it_is_stands_in_percent_and_logarithms_behind_details(page: Any, ask: Ask) -> None:
    best = translated(ask)["outputs"][0]
    page.goto(address())
    words(page)
    assert page.locator(".alternative .sure").first.inner_text() == f"{percent(math.exp(best['log_probability']))} sure"
    shown = f"{best['log_probability']:.2f}".replace("-", "−")
    assert not page.get_by_text(shown).first.is_visible()
    page.locator(".others summary").click()
    assert page.get_by_text(f"1: {shown}").is_visible()


def test_pointing_at_a_source_word_or_writing_there_lights_what_it_became(page: Any, ask: Ask) -> None:
    found = translated(ask)
    links = found["outputs"][0]["links"]
    looked = links[0]["source"]
    became = [found["outputs"][0]["words"][link["target"]] for link in links if link["source"] == looked]
    page.goto(address())
    words(page)
    box = page.locator(".mirror .word").nth(looked).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator(".output .lit").all_inner_texts() == became
    page.mouse.move(5, 5)
    page.locator("textarea").blur()
    assert page.locator(".output .lit").count() == 0
    page.locator("textarea").focus()
    page.evaluate("(place) => document.querySelector('textarea').setSelectionRange(place, place)", _start(TEXT, looked))
    page.wait_for_function("(count) => document.querySelectorAll('.output .lit').length === count", arg=len(became))


def _start(text: str, word: int) -> int:
    return len(" ".join([*text.split()[:word], ""]))


def test_the_keyboard_reaches_every_word(page: Any, ask: Ask) -> None:
    found = translated(ask)["outputs"][0]
    page.goto(address())
    words(page).first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.innerText") == found["words"][1]
    assert page.locator("#announced").inner_text().startswith(f"{found['words'][1]} ←")


def test_the_text_behind_the_field_lies_letter_upon_letter(page: Any) -> None:
    """Else the wrong word would light up: same width, same height, same breaks, whatever the text."""
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill(f"{TEXT}\n\n{'a-very-long-word' * 9} القط " + "word " * 61)
    sizes = "node => [node.clientWidth, node.clientHeight, getComputedStyle(node).font, getComputedStyle(node).padding]"
    assert page.locator(".mirror").evaluate(sizes) == page.locator("textarea").evaluate(sizes)
    assert page.locator("textarea").evaluate("node => node.scrollHeight <= node.clientHeight")


def test_another_of_the_best_can_be_chosen_and_back_undoes_it(page: Any, ask: Ask) -> None:
    found = translated(ask)["outputs"]
    page.goto(address())
    words(page)
    options = page.locator(".alternative .words")
    assert options.all_inner_texts() == [output["text"] or "(nothing)" for output in found]
    page.locator(".alternative").nth(1).click()
    page.wait_for_url(lambda url: "picks=0%3A1" in url)
    assert page.locator(".alternative").nth(1).get_attribute("aria-pressed") == "true"
    assert words(page).all_inner_texts() == found[1]["words"]
    page.go_back()
    page.wait_for_selector(".alternatives li:first-child .alternative[aria-pressed=true]")
    assert words(page).all_inner_texts() == found[0]["words"]


def test_two_models_stand_side_by_side(page: Any, ask: Ask) -> None:
    page.goto(address())
    words(page)
    page.get_by_label("Compare with", exact=True).select_option("transformer-tiny")
    expected = translated(ask, run="transformer-tiny")["outputs"][0]["words"]
    assert words(page, 1).all_inner_texts() == expected
    first, second = (page.locator(".pane.output").nth(number).bounding_box() for number in (0, 1))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]
    page.go_back()
    page.wait_for_function("() => document.querySelectorAll('.pane.output')[1].hidden")


def test_a_model_without_attention_translates_and_has_no_links(page: Any) -> None:
    page.goto(address(run="lstm"))
    words(page).first.hover()
    assert page.locator(".mirror .lit").count() == 0
    assert page.locator(".reading p").count() == 0
    assert page.locator(".others .weights").count() == 0


def test_sentences_and_lines_keep_their_places_and_only_what_is_new_is_asked(page: Any) -> None:
    asked: list[list[str]] = []
    page.on("request", lambda one: one.url.endswith("/translate") and asked.append(one.post_data_json["texts"]))
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("the cat slept. the dog ate.\n\n- a bird sang. 🙂")
    page.wait_for_function("() => document.querySelectorAll('.written .tokens').length === 3")
    written = page.locator(".written").first.evaluate("node => node.textContent")
    assert written.split("\n")[1] == ""
    assert written.split("\n")[2].startswith("- ")
    assert written.endswith(" 🙂")
    page.locator("textarea").fill("the cat slept. the dog ate.\n\n- a bird sang. 🙂 the cat came.")
    page.wait_for_function("() => document.querySelectorAll('.written .tokens').length === 4")
    assert asked == [["the cat slept.", "the dog ate.", "a bird sang."], ["the cat came."]]


def test_the_page_cuts_where_the_service_cuts(page: Any, ask: Ask) -> None:
    text = "Mr. Smith paid 3.50. 🙂 He left! “Did he?” she asked. Yes"
    expected = [each["text"] for each in ask("/api/v1/sentences", {"text": text, "run": RUN})["sentences"]]
    asked: list[list[str]] = []
    page.on("request", lambda one: one.url.endswith("/translate") and asked.append(one.post_data_json["texts"]))
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill(text)
    page.wait_for_function(
        "(count) => document.querySelectorAll('.written .tokens').length === count", arg=len(expected)
    )
    assert asked == [expected]


def doubt_all(page: Any) -> None:
    """Every translation is doubtful, whatever the run thinks of it."""

    def reply(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        assert route.request.post_data_json["doubt"]
        for each in body["translations"]:
            output = each["outputs"][0]
            words = [{"place": 1, "word": output["words"][1], "probability": 0.04}]
            output["doubt"] = {"value": 0.83, "reasons": ["it repeats itself"], "words": words, "signals": {}}
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/translate", reply)


def test_improbable_words_have_dots_and_a_doubtful_sentence_is_named(page: Any) -> None:
    doubt_all(page)
    page.goto(address("the cat sleeps."))
    words(page)
    assert page.locator(".output .doubtful").count() == 1
    dots = page.locator(".output .doubtful").evaluate("node => getComputedStyle(node).textDecorationStyle")
    assert dots == "dotted"
    said = page.locator(".output .notes").first.inner_text()
    assert "Doubtful translation (83 %): it repeats itself." in said.replace("\u202f", " ").replace("\xa0", " ")


def test_words_that_the_run_has_never_seen_are_underlined_and_counted(page: Any) -> None:
    """By the places that the service gives, which counts an emoji as one character."""
    strange = ("wizard", "unicorn")

    def reply(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        for each in body["translations"]:
            text = each["source"]
            found = [(text.index(word), word) for word in strange if word in text]
            each["unknown"] = [{"start": at, "end": at + len(word), "word": word} for at, word in found]
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/translate", reply)
    page.goto(address("the 🙂 wizard ate. the cat saw the unicorn."))
    words(page)
    assert page.locator(".mirror .unknown").all_inner_texts() == list(strange)
    wave = page.locator(".mirror .unknown").first.evaluate("node => getComputedStyle(node).textDecorationStyle")
    assert wave == "wavy"
    said = page.locator(".output .notes").first.inner_text()
    assert said.startswith("2 words this run has never seen: wizard, unicorn.")


def test_words_that_a_translation_leaves_out_have_dots_and_are_named(page: Any) -> None:
    def reply(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        assert route.request.post_data_json["omitted"]
        for each in body["translations"]:
            at = each["source"].index("black")
            each["omitted"] = [{"start": at, "end": at + 5, "word": "black"}]
            each["unknown"] = [{"start": at + 6, "end": at + 9, "word": "cat"}]
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/translate", reply)
    page.goto(address("the black cat."))
    words(page)
    assert page.locator(".mirror .omitted").all_inner_texts() == ["black"]
    assert page.locator(".mirror .unknown").all_inner_texts() == ["cat"]
    dots = page.locator(".mirror .omitted").evaluate("node => getComputedStyle(node).textDecorationStyle")
    assert dots == "dotted"
    assert "The translation seems to leave out: black." in page.locator(".output .notes").first.inner_text()


def test_how_a_text_was_read_and_what_is_the_matter_is_said(page: Any) -> None:
    """Whatever the service says of a text is on the page."""

    def reply(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        body["translations"][0] |= {"read_as": "the black cat", "warning": "This text is in another script."}
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/translate", reply)
    page.goto(address("the BLACK cat"))
    words(page)
    said = page.locator(".output .notes").first.inner_text()
    assert "This text is in another script." in said
    assert "Read as" in said
    assert "the black cat" in said


def test_while_an_answer_is_awaited_the_old_one_looks_old(page: Any) -> None:
    page.goto(address())
    words(page)
    waiting: list[Any] = []
    page.route("**/api/v1/translate", lambda route: waiting.append(route))  # noqa: PLW0108
    page.locator("textarea").fill("the dog slept")
    page.locator(".written.old").first.wait_for()
    assert page.locator(".output .time").first.inner_text() == "translating…"
    page.wait_for_function("() => document.querySelector('.written').classList.contains('old')")
    for _ in range(1500):
        if waiting:
            break
        page.wait_for_timeout(20)
    waiting[0].continue_()
    page.locator(".written:not(.old) .word").first.wait_for()
    assert page.locator(".output .time").first.inner_text().endswith((" ms", " s"))


def test_an_answer_to_the_text_before_is_not_mixed_with_what_is_written_now(page: Any) -> None:
    page.goto(address("the cat"))
    words(page)
    translations: list[Any] = []
    cuts: list[Any] = []
    page.route("**/api/v1/translate", lambda route: translations.append(route))  # noqa: PLW0108
    page.locator("textarea").fill("the dog slept")
    until(page, translations)
    page.route("**/api/v1/sentences", lambda route: cuts.append(route))  # noqa: PLW0108
    page.locator("textarea").fill("the dog slept yesterday")
    until(page, cuts)
    translations[0].continue_()
    page.wait_for_timeout(500)  # whatever might still come
    assert "yesterday" not in page.locator(".written").first.inner_text()
    assert page.locator(".written.old").count() == 1


def until(page: Any, waiting: list[Any]) -> None:
    """A request was held."""
    for _ in range(1500):
        if waiting:
            return
        page.wait_for_timeout(20)


def test_a_sentence_that_was_left_as_it_is_is_not_called_sure(page: Any) -> None:
    page.goto(address("एक आदमी"))
    page.locator(".others:visible .alternative").wait_for()
    assert page.locator(".others:visible .sure").all_inner_texts() == ["not translated"]
    assert page.locator(".others:visible a").count() == 0  # no search to watch, nothing to look into
    assert [each.split(" (")[0] for each in page.locator(".pane .warning:visible").all_inner_texts()] == [
        "No word of this sentence was in the training text"  # and they are not listed once more
    ]


def test_sentences_to_try_are_the_runs_own(page: Any) -> None:
    page.goto(f"/#translate?run={RUN}&beam=1")
    own = [each["text"] for each in page.request.get(f"/api/v1/runs/{RUN}/examples").json()["examples"]]
    page.locator(".examples button").first.wait_for()
    assert page.locator(".examples button").all_inner_texts() == own[:3]
    page.locator(".examples button").first.click()
    words(page)
    assert page.locator("textarea").input_value() == own[0]


def test_the_studio_opens_on_an_example_with_a_link_lit(page: Any) -> None:
    page.goto("/studio/icon.svg")
    page.evaluate(f"localStorage.setItem('regard.runs.folder.translate', '{RUN}')")  # one with attention
    page.goto("/")
    words(page)
    assert page.locator("textarea").input_value()
    page.locator(".mirror .lit").first.wait_for()
    assert page.locator(".output .own").count() == 1
    page.wait_for_url(lambda url: "run=" in url)
    page.wait_for_url(lambda url: "text=" in url)


def test_languages_have_names_and_are_swapped_only_where_a_run_goes_back(page: Any) -> None:
    page.goto(address())
    words(page)
    assert page.locator(".pane-title").all_inner_texts()[:2] == ["English", "French"]
    assert not page.get_by_role("button", name="Swap the languages", exact=True).is_visible()

    def both(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        for run in body["runs"]:
            if run["name"] == "lstm":
                run["languages"] = {"source": "fr", "target": "en"}
        route.fulfill(response=answer, json=body)

    page.route("**/api/v1/runs", both)
    page.reload()
    words(page)
    before = page.locator(".written").first.inner_text()
    page.get_by_role("button", name="Swap the languages", exact=True).click()
    page.wait_for_function("() => location.hash.includes('run=lstm')")
    page.locator(".pane-title", has_text="French").first.wait_for()
    assert page.locator(".pane-title").all_inner_texts()[:2] == ["French", "English"]
    assert page.locator("textarea").input_value() == before


def test_a_script_in_the_text_is_text(page: Any) -> None:
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("<img src=x onerror=document.title='caught'> cat")
    words(page)
    assert page.title() == "Translate · Regard"
    assert page.locator(".mirror img").count() == 0


def test_a_text_that_is_too_long_is_said_before_it_is_sent(page: Any) -> None:
    page.goto(f"/#translate?run={RUN}&beam=1")
    asked: list[str] = []
    page.on("request", lambda one: "/api/" in one.url and one.method == "POST" and asked.append(one.url))
    page.locator("textarea").fill("cat " * 1300)
    page.get_by_text("5,200 characters: at most 5,000 are translated at once; shorten the text by 200.").wait_for()
    page.wait_for_timeout(300)
    assert asked == []
    assert page.get_by_role("button", name="Try again", exact=True).count() == 0
    page.locator("textarea").fill("the cat")
    words(page)
    assert page.locator("main .warning:visible", has_text="characters").count() == 0


def test_a_long_text_scrolls_in_its_pane_and_leaves_the_rest_in_reach(page: Any) -> None:
    doubt_all(page)
    page.goto(f"/#translate?run={RUN}&beam=1")
    page.locator("textarea").fill("the cat ate.\n" * 60)
    words(page)
    assert page.locator(".lists").bounding_box()["y"] < 1250
    page.get_by_text("57 more sentences are doubtful.").wait_for()
    assert page.locator(".source-field").evaluate("node => node.scrollHeight > node.clientHeight")


def test_a_problem_stands_where_it_happened_and_goes_when_it_is_mended(page: Any, heard: list[str]) -> None:
    page.route("**/api/v1/translate", lambda route: route.fulfill(status=503, json={"error": "run: busy; ask again"}))
    page.goto(address("the cat"))
    page.locator(".output").get_by_role("alert").wait_for()
    assert "busy" in page.get_by_role("alert").inner_text()
    heard.clear()  # the browser tells of the status
    page.unroute("**/api/v1/translate")
    page.get_by_role("button", name="Try again", exact=True).click()
    words(page)
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (380, "dark")])
def test_the_page_fits_and_is_accessible(page: Any, accessible: Check, fits: Check, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(address(other="transformer-tiny"))
    words(page, 1)
    words(page).first.hover()
    fits(page)
    accessible(page)
