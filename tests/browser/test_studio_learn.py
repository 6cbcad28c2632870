"""Learn in a browser: what each step shows is what the walkthrough says, for every kind of model."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from regard.explain.alignment import Aligner
from regard.explain.walkthrough.prose import PROSE
from regard.explain.walkthrough.walk import walkthrough
from regard.text.vocabulary import END

TEXT = "the black cat ate the mouse"
SHOWN = """() => {
  const step = document.querySelector('article.step');
  return {
    name: step.dataset.step,
    title: step.querySelector('h2').textContent,
    idea: step.querySelector('.idea').textContent,
    plain: step.querySelector('math')?.getAttribute('alttext'),
    values: [...step.querySelectorAll('.numbers [data-place]')].map(cell => {
      const written = cell.dataset.value ?? cell.getAttribute('value');
      return written === null ? null : Number(written);
    }),
    cells: [...step.querySelectorAll('.numbers [data-place]')].map(cell => cell.textContent),
    row: [...step.querySelectorAll('.numbers tbody tr')].findIndex(row => row.className === 'walked'),
    places: step.querySelectorAll('.made dt').length,
    snippet: step.querySelector('.snippet').textContent,
    current: document.querySelector('.guide [aria-current]').textContent,
  };
}"""


def asked(page: Any, run: str, **places: Any) -> dict[str, Any]:
    """The walkthrough as the service tells it."""
    answer = page.request.post("/api/v1/walkthrough", data={"run": run, "text": TEXT, **places})
    assert answer.ok, answer.text()
    found: dict[str, Any] = answer.json()
    return found


def opened(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("article.step")


def flat(value: Any) -> list[Any]:
    return [number for row in value for number in flat(row)] if isinstance(value, list) else [value]


def written(cell: str) -> float | None:
    return None if cell == "−∞" else float(cell.replace("−", "-"))


@pytest.mark.parametrize("run", ["transformer-tiny", "bahdanau", "luong-general", "lstm"])
def test_every_step_shows_the_walkthroughs_numbers(page: Any, run: str) -> None:
    steps = asked(page, run)["steps"]
    opened(page, f"/#learn?run={run}&text={TEXT}&word=0")
    for number, step in enumerate(steps, start=1):
        shown = page.evaluate(SHOWN)
        assert shown["name"] == step["name"]
        assert (shown["title"], shown["idea"], shown["snippet"]) == (step["title"], step["idea"], step["snippet"])
        assert shown["plain"] == step["formula"]
        assert shown["values"] == flat(step["shown"]), step["name"]
        for cell, value in zip(shown["cells"], shown["values"], strict=True):
            said = written(cell)
            assert (said is None) == (value is None)
            assert value is None or said == pytest.approx(value, abs=0.006, rel=0.06)
        marked = step["row"] if len(step["axes"]) == 2 and step["row"] is not None else -1
        assert shown["row"] == marked
        assert shown["places"] == len(step["inputs"])
        assert shown["current"] == f"{number}{step['title']}"
        page.keyboard.press("ArrowRight")
    assert page.evaluate(SHOWN)["name"] == steps[-1]["name"]  # the last one has no next
    assert page.locator(".turning .primary").is_hidden()


@pytest.mark.parametrize("run", ["transformer-tiny", "bahdanau", "luong-general", "lstm"])
def test_the_arithmetic_that_is_told_gives_the_number_it_explains(page: Any, run: str) -> None:
    walk = asked(page, run)
    opened(page, f"/#learn?run={run}&text={TEXT}&word=0")
    told = page.evaluate(
        """async ({steps}) => {
          const {reason} = await import('/studio/panels/learn/reasons.js');
          const byName = new Map(steps.map(step => [step.name, step]));
          const places = (value, place = []) => Array.isArray(value) ? value.flatMap((one, index) => places(one, [...place, index])) : [[place, value]];
          return steps.flatMap(step => places(step.shown).map(([place, value]) => ({kind: step.kind, value, ...(({text, value}) => ({text, again: value}))(reason(step, byName, place))})));
        }""",  # noqa: E501
        walk,
    )
    again = [one for one in told if one["again"] is not None]
    for one in again:
        assert math.isclose(one["value"], one["again"], rel_tol=1e-3, abs_tol=1e-4), one
    assert all(one["text"] for one in told)
    kinds = {one["kind"] for one in again}
    wanted = {
        "transformer-tiny": {"sinusoidal", "placed", "scaled", "masked", "softmax", "context", "sum", "probability"},
        "bahdanau": {"softmax", "both_ways", "probability"},
        "luong-general": {"softmax", "with_fed", "lstm_hidden"},
        "lstm": {"lstm_hidden", "probability"},
    }
    assert wanted[run] <= kinds


def test_the_waves_that_are_told_are_those_of_the_model(page: Any) -> None:
    page.goto("/#learn")
    for interleaved, frequencies, begin in itertools.product(("true", "false"), ("paper", "marian"), (0, 2)):
        how = f"model.interleaved={interleaved}", f"model.frequencies={frequencies}", f"model.first_position={begin}"
        walk = walkthrough(tiny.translator("transformer-tiny", *how), [5, 9, 7, END], [8, 21, END])
        step = walk["encoder.positions"].to_dict()
        told = page.evaluate(
            """async (step) => {
              const {reason} = await import('/studio/panels/learn/reasons.js');
              return step.shown.map((row, p) => row.map((_, column) => reason(step, new Map(), [p, column]).value));
            }""",
            step,
        )
        assert len(told) == 4
        for shown, again in zip(itertools.chain(*step["shown"]), itertools.chain(*told), strict=True):
            assert math.isclose(shown, again, abs_tol=1e-4), how


def test_every_formula_of_every_preset_is_typeset(page: Any) -> None:
    source, target = [5, 9, 7, END], [8, 21, END]
    formulas = {step.tex for preset in tiny.PRESETS for step in walkthrough(tiny.translator(preset), source, target)}
    formulas |= {tex for _, _, _, tex in PROSE.values()}
    page.goto("/#learn")
    found = page.evaluate(
        r"""async (formulas) => {
          const {formula} = await import('/studio/panels/learn/tex.js');
          const sizes = {mfrac: 2, msub: 2, msup: 2, msubsup: 3, munder: 2, munderover: 3, mover: 2};
          return formulas.map(tex => {
            const math = document.body.appendChild(formula(tex));
            const wrong = [...math.querySelectorAll(Object.keys(sizes).join())].filter(node => node.children.length !== sizes[node.localName]);
            const {width, height} = math.getBoundingClientRect();
            return {tex, text: math.textContent, wrong: wrong.length, width, height};
          });
        }""",  # noqa: E501
        sorted(formulas),
    )
    assert len(found) == len(formulas) > 40
    for one in found:
        assert one["wrong"] == 0, one
        assert one["width"] > 10, one
        assert not set("\\{}_^&$") & set(one["text"]), one


def test_what_is_not_known_of_tex_is_an_error_and_the_plain_formula_is_shown(page: Any) -> None:
    page.goto("/#learn")
    refused = page.evaluate(
        r"""async (formulas) => {
          const {formula} = await import('/studio/panels/learn/tex.js');
          return formulas.map(tex => { try { formula(tex); return ''; } catch (problem) { return problem.message; } });
        }""",
        [r"\foo", r"\frac{1}", r"\sqrt{x", r"x # y", r"\begin{matrix} x \end{matrix}", r"\left( x"],
    )
    assert all(refused), refused

    def newer(route: Any) -> None:
        answer = route.fetch()
        walk = answer.json()
        walk["steps"][0]["tex"] = r"\unheardof{x}"
        route.fulfill(response=answer, json=walk)

    page.route("**/api/v1/walkthrough", newer)
    opened(page, f"/#learn?run=lstm&text={TEXT}&step=encoder.pieces")
    assert page.locator(".tex").inner_text() == PROSE["pieces"][2]


@pytest.mark.parametrize(
    ("run", "step"),
    [
        ("transformer-tiny", "decoder.0.cross.weights"),
        ("luong-general", "decoder.cross.scores"),
        ("lstm", "decoder.0.cell.cell"),
        ("bahdanau", "encoder.pieces"),
    ],
)
def test_the_code_that_is_copied_runs_and_gives_the_number(page: Any, runs: Path, run: str, step: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, f"/#learn?run={run}&text={TEXT}&step={step}")
    page.get_by_role("button", name="Copy", exact=True).click()
    code = page.evaluate("navigator.clipboard.readText()")
    namespace: dict[str, Any] = {}
    exec(code.replace(f"runs/{run}", (runs / run).as_posix()), namespace)  # it ends with a comparison
    shown = [number for number in page.evaluate(SHOWN)["values"] if number is not None]
    assert namespace["step"].name == step
    assert shown[0] == pytest.approx(float(namespace["result"].flatten()[0]), rel=1e-4)


def test_word_head_layer_and_part_are_chosen_and_undone(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&step=encoder.0.self.weights")
    first = page.evaluate(SHOWN)["values"]
    page.get_by_label("Head", exact=True).select_option(index=1)
    wanted = asked(page, "transformer-tiny", head=1)
    page.locator(".headline", has_text="head 2").wait_for()
    assert page.evaluate(SHOWN)["values"] == flat(named(wanted, "encoder.0.self.weights")["shown"]) != first
    page.go_back()
    page.locator(".headline", has_text="head 1").wait_for()
    assert page.evaluate(SHOWN)["values"] == first
    page.get_by_label("Encoder", exact=True).check()
    page.locator(".guide h2", has_text="Decoder").first.wait_for(state="detached")
    page.wait_for_url(lambda url: "side=encoder" in url)
    page.locator(".words button", has_text="cat").click()
    page.locator(".headline", has_text="We follow cat").wait_for()
    wanted = asked(page, "transformer-tiny", side="encoder", word=2)
    shown = page.evaluate(SHOWN)
    assert shown["values"] == flat(named(wanted, shown["name"])["shown"])
    assert shown["row"] == 2


def named(walk: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(step for step in walk["steps"] if step["name"] == name)
    return found


def test_a_step_of_another_layer_is_the_same_step_there(page: Any) -> None:
    opened(page, f"/#learn?run=luong-general&text={TEXT}&step=encoder.0.cell.forget")
    page.get_by_label("Layer", exact=True).select_option(index=1)
    page.wait_for_selector("[data-step='encoder.1.cell.forget']")
    wanted = asked(page, "luong-general", layer=1)
    assert page.evaluate(SHOWN)["values"] == flat(named(wanted, "encoder.1.cell.forget")["shown"])


def test_an_input_links_to_the_step_that_made_it_and_back_returns(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&step=encoder.0.self.weights")
    page.locator(".made a").first.click()
    page.wait_for_selector("[data-step='encoder.0.self.scores']")
    page.go_back()
    page.wait_for_selector("[data-step='encoder.0.self.weights']")
    page.locator(".guide a", has_text="Keys K").first.click()
    page.wait_for_selector("[data-step='encoder.0.self.keys']")


def test_pointing_at_a_number_says_where_it_comes_from_and_keys_do_too(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&step=encoder.0.self.weights")
    page.locator("td[data-place='1,3']").hover()
    assert page.locator(".reason strong").inner_text() == "black · ate"
    assert "exp(" in page.locator(".reason").inner_text()
    page.locator("td[data-place='0,0']").focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowRight", "ArrowUp", "Home"):
        page.keyboard.press(key)
    assert page.locator(".reason strong").inner_text() == "the · the"
    assert page.evaluate(SHOWN)["name"] == "encoder.0.self.weights"  # the arrows stayed in the table


def test_another_sentence_and_another_run_are_walked_through(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=0")
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Sentence", exact=True).fill("the dog saw &amp it")
    page.keyboard.press("Enter")
    page.locator(".words .token", has_text="&amp").first.wait_for()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Run", exact=True).select_option("lstm")
    page.locator(".guide", has_text="Forget gate").wait_for()
    page.wait_for_url(lambda url: "run=lstm" in url)
    assert page.locator(".words").inner_text().count("dog") == 1


def test_it_begins_with_a_content_word_and_the_head_that_aligns_best(page: Any, runs: Path) -> None:
    if Aligner.load(runs / "transformer-tiny") is None:  # to choose one takes seconds
        Aligner(((0, 1),), error_rate=0.25, chosen_on="valid").save(runs / "transformer-tiny")

    def trace(route: Any) -> None:
        answer = route.fetch()
        found = answer.json()
        found["aligner"] = {"heads": [{"layer": 0, "head": 1}], "late": False, "description": "layer 1, head 2"}
        route.fulfill(response=answer, json=found)

    page.route("**/api/v1/trace", trace)
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}")
    chosen = page.locator(".words button[aria-pressed=true]")
    lengths = [len(word.split("'")[-1]) for word in page.locator(".words button").all_inner_texts()]
    assert len(chosen.inner_text().split("'")[-1]) == max(lengths)
    assert "head 2" in page.locator(".headline").inner_text()
    page.wait_for_url(lambda url: "head=1" in url)
    page.wait_for_url(lambda url: "word=" in url)


def test_after_the_last_step_comes_a_summary_and_the_next_word(page: Any) -> None:
    walk = asked(page, "transformer-tiny", word=1)
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=1&step={walk['steps'][-2]['name']}")
    assert page.locator(".ending").count() == 0
    page.keyboard.press("ArrowRight")
    ending = page.locator(".ending")
    assert f"{len(walk['steps'])} steps" in ending.inner_text()
    assert "got a probability of" in ending.inner_text()
    ending.get_by_role("button", name=f"Now the next word: {walk['target']['words'][2]} →", exact=True).click()
    page.wait_for_function("() => location.hash.includes('word=2')")
    page.wait_for_selector(f"[data-step='{walk['steps'][0]['name']}']")
    page.locator(".words button[aria-pressed=true]", has_text=walk["target"]["words"][2]).wait_for()


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
@pytest.mark.parametrize("run", ["transformer-tiny", "lstm"])
def test_the_step_begins_above_the_fold(page: Any, run: str, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.route("**/api/v1/walkthrough", short_output)
    opened(page, f"/#learn?run={run}&text={TEXT}&word=0")
    assert page.locator("article.step :is(.opening, .idea)").first.bounding_box()["y"] < 600


def short_output(route: Any) -> None:
    """A model that has learned for a moment writes for ever, and words of any length; one that translates does not."""
    answer = route.fetch()
    walk = answer.json()
    walk["target"]["words"] = ["Le", "chat", "noir", "a", "mangé", "la", "souris."][: len(walk["target"]["words"])]
    route.fulfill(response=answer, json=walk)


def test_heading_levels_are_in_order(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=0")
    levels = page.evaluate("[...document.querySelectorAll('main :is(h1, h2, h3, h4)')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize(
    ("run", "words"),
    [("tagger", "What a tagger computes"), ("classifier", "What a classifier"), ("writer", "What a language model")],
)
def test_titles_are_those_of_the_task(eight_page: Any, run: str, words: str) -> None:
    page = eight_page
    opened(page, f"/#learn?run={run}&text={TEXT}")
    assert words in page.locator(".lead").inner_text()
    said = page.locator("main").inner_text().lower()
    assert "translat" not in said
    page.locator(".guide a").last.click()
    title = page.locator("#step-title")
    title.filter(has_text="Probability of").wait_for()
    assert title.inner_text() == (
        "Probability of the next word" if run == "writer" else "Probability of the label given"
    )


def test_every_step_of_the_list_can_be_scrolled_to(page: Any) -> None:
    page.goto("/#learn?run=transformer-tiny&text=the+cat&layer=0&head=0&word=0&step=probability")
    page.locator(".guide [aria-current]").wait_for()
    inside = """() => {
      const [list, link] = ['.guide', '.guide [aria-current]'].map((each) => document.querySelector(each));
      const [outer, inner] = [list, link].map((each) => each.getBoundingClientRect());
      return inner.top >= outer.top && inner.bottom <= outer.bottom + 1;
    }"""
    page.wait_for_function(inside)
    page.locator(".guide").hover()
    page.mouse.wheel(0, -10_000)
    page.wait_for_function("() => document.querySelector('.guide').scrollTop === 0")


def test_rows_of_a_decoder_are_named_after_the_word_predicted_as_in_look_inside(page: Any) -> None:
    walk = asked(page, "transformer-tiny")
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=0&step=decoder.0.cross.weights")
    heads = page.locator(".numbers tbody th").all_inner_texts()
    assert heads == [piece.replace("￭", "‿") for piece in walk["target"]["pieces"]]
    assert "named after the word that is predicted" in page.locator(".figures").inner_text()
    page.get_by_role("link", name="This head in Look inside", exact=True).click()
    page.wait_for_selector(".picture .heatmap")
    rows = page.evaluate("document.querySelector('.picture .heatmap').shown.rows")
    assert rows == walk["target"]["words"]


def test_a_place_that_is_not_there_is_said_where_it_happened(page: Any, heard: list[str]) -> None:
    page.goto(f"/#learn?run=lstm&text={TEXT}&word=99")
    page.get_by_role("alert").wait_for()
    assert "word = 99" in page.get_by_role("alert").inner_text()
    assert len(heard) == 1  # the browser notes the status
    heard.clear()


def test_without_a_run_the_page_says_what_to_do(empty_page: Any) -> None:
    empty_page.goto("/#learn")
    empty_page.get_by_role("link", name="Train the demo", exact=True).wait_for()


@pytest.mark.parametrize(
    ("width", "scheme", "run", "step"),
    [
        (1440, "light", "transformer-tiny", "decoder.0.self.masked"),
        (1440, "dark", "bahdanau", "decoder.features"),
        (380, "light", "lstm", "probabilities"),
        (380, "dark", "luong-general", "decoder.cross.weights"),
    ],
)
def test_learn_fits_and_is_accessible(
    page: Any,
    accessible: Callable[[Any], None],
    fits: Callable[[Any], None],
    width: int,
    scheme: str,
    run: str,
    step: str,
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, f"/#learn?run={run}&text={TEXT}&word=0")
    for _ in range(12):
        fits(page)
        page.keyboard.press("ArrowRight")
    opened(page, f"/#learn?run={run}&text={TEXT}&step={step}")
    page.wait_for_selector(f"[data-step='{step}']")
    fits(page)
    accessible(page)


@pytest.mark.parametrize(("run", "most"), [("transformer-tiny", 13), ("bahdanau", 14), ("lstm", 14)])
def test_the_short_way_has_about_twelve_steps_of_the_whole_in_its_order(page: Any, run: str, most: int) -> None:
    names = [step["name"] for step in asked(page, run)["steps"]]
    opened(page, f"/#learn?run={run}&text={TEXT}")
    page.wait_for_url(lambda url: "way=short" in url)
    links = page.eval_on_selector_all(
        ".guide a", "links => links.map(a => new URLSearchParams(a.hash.split('?')[1]).get('step'))"
    )
    plain = [re.sub(r"\.\d+\.", ".0.", name) for name in links]
    places = [names.index(name) for name in plain]
    assert places == sorted(places)
    assert 8 <= len(links) <= most
    for _ in links[1:]:
        page.keyboard.press("ArrowRight")
    page.wait_for_selector(".ending")
    page.locator(".ending button", has_text=f"All {len(names)} steps").click()
    page.locator(".step .where", has_text=f"of {len(names)}").wait_for()
    assert page.locator(".guide a").count() == len(names)


def test_a_step_off_the_short_way_is_on_the_full_one(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=0&way=short&step=encoder.0.self.products")
    page.locator(".made a", has_text="Queries").click()
    page.wait_for_selector("article.step[data-step='encoder.0.self.queries']")
    assert "way=short" not in page.url


@pytest.mark.parametrize("run", ["transformer-tiny", "bahdanau", "lstm"])
def test_a_chapter_ends_with_a_question_that_its_numbers_answer(page: Any, run: str) -> None:
    opened(page, f"/#learn?run={run}&text={TEXT}&word=0")
    chapters = page.evaluate(
        """async (walk) => {
          const {chapters} = await import('/studio/panels/learn/chapters.js');
          const {questionOf} = await import('/studio/panels/learn/questions.js');
          return chapters(walk.steps).map(chapter => ({
            last: chapter.steps.at(-1).step.name, names: chapter.steps.map(({step}) => step.name),
            ...questionOf(chapter, walk)}));
        }""",
        asked(page, run),
    )
    steps = {step["name"]: step for step in asked(page, run)["steps"]}
    asking = [chapter for chapter in chapters if chapter.get("wrong")]
    assert len(asking) >= len(chapters) - 1
    for chapter in asking:
        assert chapter["right"] not in chapter["wrong"]
        weights = [name for name in chapter["names"] if name.endswith(".weights")]
        if weights:
            step = steps[weights[-1]]
            row = step["shown"][step["row"] or 0] if len(step["axes"]) > 1 else step["shown"]
            labels = [label.replace("\uffed", "‿") for label in step["axes"][-1]["labels"]]
            assert labels[row.index(max(row))] == chapter["right"].replace("\uffed", "‿")
    chapter = asking[-1]
    page.goto(f"/#learn?run={run}&text={TEXT}&word=0&layer=0&head=0&step={chapter['last']}")
    page.wait_for_selector(".quiz")
    right = chapter["right"].replace("\uffed", "‿")  # in signs that fonts have
    options = page.locator(".quiz button").all_inner_texts()
    assert right in options
    page.locator(".quiz button").nth(next(place for place, each in enumerate(options) if each != right)).click()
    assert page.locator(".told-answer").inner_text().startswith("No")
    page.locator(".quiz button").nth(options.index(right)).click()
    assert page.locator(".told-answer").inner_text().startswith("Yes")


def test_the_same_sentence_goes_through_three_kinds_of_models(page: Any) -> None:
    opened(page, f"/#learn?run=transformer-tiny&text={TEXT}&word=0&step=probability")
    page.wait_for_selector(".why-attention")
    assert page.locator(".kind h3").all_inner_texts() == ["Without attention", "With attention", "Attention alone"]
    page.locator(".kind[data-preset=lstm] .big", has_not_text="…").wait_for()
    answer = page.request.post("/api/v1/translate", data={"run": "lstm", "texts": [TEXT]}).json()
    wanted = answer["translations"][0]["outputs"][0]["text"]
    assert page.locator(".kind[data-preset=lstm] .big").inner_text() == (wanted or "(nothing)")
    assert page.locator(".kind a", has_text="Learn with lstm").count() == 1


def test_the_styles_of_the_map_stay_in_the_map_and_the_parts_fit_on_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, "/#learn?run=transformer-tiny&text=the+cat")
    box, around = (page.locator(place).bounding_box() for place in (".places .segmented", ".places"))
    assert box["x"] + box["width"] <= around["x"] + around["width"]
    borders = "() => [...document.querySelectorAll('.part')].map(part => getComputedStyle(part).borderTopWidth)"
    assert page.locator(".places .part").evaluate("part => getComputedStyle(part).borderTopWidth") == "0px"
    page.goto("/#meaning?run=transformer-tiny")
    page.wait_for_selector(".results .part")
    assert set(page.evaluate(borders)) == {"0px"}
