"""What the service answers: its own API, LibreTranslate's, languages, numbers, and its description of itself."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings

import corpora_for_tests as small
import regard
import serving
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.explain import doubt
from regard.fable.corpus import generate
from regard.serve.app import create_app
from regard.serve.detect import Letters, detector
from regard.serve.library import Library, shape
from regard.settings import DataSettings, Settings
from regard.settings.languages import Languages, languages_of, matching, name_of
from regard.tasks.load import load
from regard.text.tokenizers import learn
from regard.text.words import space_words
from serving import CAT


def ask(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: TestClient, path: str, **body: Any) -> tuple[int, str]:
    answer = client.post(path, json=body)
    return answer.status_code, answer.json()["error"]


# /api/v1/translate


def test_a_service_that_is_about_to_end_says_so_and_answers(client: TestClient) -> None:
    state = client.app.state  # type: ignore[attr-defined]
    state.draining = True
    try:
        assert client.get("/health").status_code == client.head("/health").status_code == 503
        assert client.get("/languages").headers["Connection"] == "close"
    finally:
        state.draining = False
    assert client.get("/health").json() == {"status": "ok"}
    assert client.head("/health").status_code == 200


def test_a_translation_has_the_translators_words_and_links(client: TestClient, runs: Path) -> None:
    found = ask(client, "/api/v1/translate", run="attentive", texts=[CAT, ""], beam=3, best=2)
    expected = load(runs / "attentive").translate(CAT, Options(Beam(3, best=2)))
    first, second = found["translations"]
    assert [each["text"] for each in first["outputs"]] == [each.text for each in expected.outputs]
    assert first["source_words"] == CAT.split()
    for rank, output in enumerate(first["outputs"]):
        links = expected.alignment(rank)
        assert [(link["target"], link["source"]) for link in output["links"]] == [link[3:] for link in links]
        assert [link["weight"] for link in output["links"]] == pytest.approx([link.weight for link in links], abs=1e-4)
        assert output["words"] == space_words(output["text"])
        assert output["log_probability"] == pytest.approx(expected.outputs[rank].log_probability, abs=1e-3)
    assert first["aligner"].startswith("cross-attention")
    assert second["outputs"][0]["text"] == ""
    assert found["milliseconds"] > 0


def test_a_prefix_is_kept_and_links_only_come_when_asked_for(client: TestClient) -> None:
    found = ask(client, "/api/v1/translate", run="attentive", texts=[CAT], prefix="le chat", alignment=False)
    assert found["translations"][0]["outputs"][0]["text"].startswith("le chat")
    assert found["translations"][0]["outputs"][0]["links"] == []
    assert found["translations"][0]["aligner"] == ""


def test_doubt_is_told_where_it_is_asked_for_and_learned_when_idle(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt, "LEARNED_ON", 12)
    plain = ask(client, "/api/v1/translate", run="attentive", texts=[CAT])["translations"][0]["outputs"]
    assert plain[0]["doubt"] is None
    for _ in range(600):  # the first answer does not wait for it
        (found,) = ask(client, "/api/v1/translate", run="attentive", texts=[CAT], doubt=True)["translations"]
        if found["outputs"][0]["doubt"]["value"] is not None:
            break
        time.sleep(0.1)
    (output,) = found["outputs"]
    assert 0 <= output["doubt"]["value"] <= 1
    assert output["links"] == [
        {**link, "weight": pytest.approx(link["weight"], abs=1e-5)} for link in plain[0]["links"]
    ]
    for word in output["doubt"]["words"]:
        assert output["words"][word["place"]] == word["word"]
    bare = ask(client, "/api/v1/translate", run="attentive", texts=[CAT], doubt=True, alignment=False)
    assert bare["translations"][0]["outputs"][0]["links"] == []


def test_a_run_without_attention_has_no_links(client: TestClient) -> None:
    found = ask(client, "/api/v1/translate", run="plain", texts=[CAT])
    assert found["translations"][0]["outputs"][0]["links"] == []


@pytest.mark.parametrize(
    ("change", "status", "expected"),
    [
        ({"run": "atentive"}, 404, "run = atentive: no such run here; did you mean 'attentive'?"),
        ({"beam": 0}, 400, "beam: input should be greater than or equal to 1"),
        ({"texts": "one"}, 400, "texts: input should be a valid list"),
        ({"texts": [1]}, 400, "texts.0: input should be a valid string"),
        ({"beams": 3}, 400, "beams: Extra inputs are not permitted"),
        (
            {"prefix": "xyzzy"},
            400,
            "prefix = 'xyzzy': has pieces that this model's vocabulary does not; use other words",
        ),
    ],
)
def test_a_wrong_question_gets_one_line(client: TestClient, change: dict[str, Any], status: int, expected: str) -> None:
    assert refused(client, "/api/v1/translate", **{"run": "attentive", "texts": [CAT]} | change) == (status, expected)


def test_what_is_not_json_or_not_there_gets_one_line(client: TestClient) -> None:
    broken = client.post("/api/v1/translate", content=b"{", headers={"Content-Type": "application/json"})
    assert (broken.status_code, broken.json()["error"]) == (400, "1: JSON decode error")
    assert client.get("/nowhere").json()["error"] == "GET /nowhere: not found; /docs lists what there is"
    wrong = client.delete("/health")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "GET")


# /api/v1/runs


def test_runs_tell_their_languages_and_never_their_folder(client: TestClient, runs: Path) -> None:
    answer = client.get("/api/v1/runs")
    found = {each["name"]: each for each in answer.json()["runs"]}
    assert list(found) == ["attentive", "plain", "zealous"]
    assert found["attentive"]["languages"] == {"source": "en", "target": "fr"}
    assert (found["attentive"]["attention"], found["plain"]["attention"]) == (True, False)
    assert "folder" not in found["plain"]
    assert str(runs) not in answer.text


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "runs" / "broken").mkdir(parents=True)
    (tmp_path / "runs" / "broken" / "settings.toml").write_text("about = 3\n")
    with serving.client(tmp_path / "runs") as client:
        (found,) = client.get("/api/v1/runs").json()["runs"]
        assert found["state"] == "unreadable"
        assert found["note"].startswith("broken/settings.toml")
        assert client.get("/languages").json() == []
        assert client.get("/frontend/settings").json()["language"] is None
        assert client.get("/api/v1/runs/broken").status_code == 400


def test_one_run_tells_all_but_where_files_are(client: TestClient, runs: Path, tmp_path: Path) -> None:
    found = client.get("/api/v1/runs/attentive").json()
    assert found["summary"]["name"] == "attentive"
    assert found["model"] == {
        "kind": "recurrent",
        "encoder_layers": 1,
        "decoder_layers": 1,
        "heads": 1,
        "attentions": ["decoder.cross"],
    }
    assert found["aligner"].startswith("cross-attention")  # the tests above have asked for links
    assert found["checkpoints"][0]["best"]
    shutil.copytree(runs / "plain", tmp_path / "runs" / "moved")
    path = tmp_path / "runs" / "moved" / "settings.toml"
    path.write_text(path.read_text().replace('source = ""', 'source = "/home/me/train.de"', 1))
    log = tmp_path / "runs" / "moved" / "log.jsonl"
    log.write_text(log.read_text() + '{"event": "step", "step": 9, "loss": NaN}\n')
    with serving.client(tmp_path / "runs") as other:
        told = other.get("/api/v1/runs/moved")
        assert told.json()["settings"]["data"]["source"] == "train.de"
        assert told.json()["losses"][-1][0] == 23  # a loss that is no number is none
        assert str(tmp_path) not in told.text


@pytest.mark.parametrize(
    ("preset", "task", "expected"),
    [
        (
            "transformer-tiny",
            "translate",
            (2, 2, ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"]),
        ),
        ("transformer-tiny", "language", (0, 2, ["decoder.0.self", "decoder.1.self"])),
        ("transformer-tiny", "tag", (2, 0, ["encoder.0.self", "encoder.1.self"])),
        ("transformer-ssru", "language", (0, 2, [])),
        (
            "transformer-ssru",
            "translate",
            (4, 2, [*(f"encoder.{level}.self" for level in range(4)), "decoder.0.cross"]),
        ),
        ("conditional", "translate", (1, 2, ["decoder.cross"])),
        ("lstm", "classify", (1, 0, [])),
    ],
)
def test_the_shape_of_a_model_is_told_by_its_settings(
    preset: str, task: str, expected: tuple[int, int, list[str]]
) -> None:
    known = regard.load_settings(preset, "model.depth=1" if preset == "lstm" else "model.dropout=0.0")
    found = shape(known.model_copy(update={"task": task}))
    assert (found.encoder_layers, found.decoder_layers, found.attentions[: len(expected[2])]) == expected


# LibreTranslate


def test_one_text_gives_one_and_many_give_many(client: TestClient, runs: Path) -> None:
    first, second, third, *_ = serving.words(runs / "attentive")
    text, other = f"{first} {second}", f"{first} {third} {second}"
    one = ask(client, "/translate", q=text, source="en", target="fr")
    many = ask(client, "/translate", q=[text, other], source="en", target="fr", format="text")
    assert set(one) == set(many) == {"translatedText"}
    assert many["translatedText"][0] == one["translatedText"]
    assert len(many["translatedText"]) == 2
    assert ask(client, "/translate", q=[], source="en", target="fr") == {"translatedText": []}


def test_a_form_is_as_good_as_json(client: TestClient) -> None:
    body = {"q": CAT, "source": "en", "target": "fr", "alternatives": "2"}
    form = client.post("/translate", data=body).json()
    assert form == client.post("/translate", json=body).json()
    several = client.post("/translate", data=body | {"q": [CAT, "the cat"]}).json()
    assert several["translatedText"][0] == form["translatedText"]
    assert client.post("/detect", params={"q": CAT}).json()[0]["language"] == "en"


def test_alternatives_are_further_translations_none_twice(client: TestClient) -> None:
    one = ask(client, "/translate", q=CAT, source="en", target="fr", alternatives=3)
    many = ask(client, "/translate", q=[CAT], source="en", target="fr", alternatives=3)
    assert many["alternatives"] == [one["alternatives"]]
    texts = [one["translatedText"], *one["alternatives"]]
    assert 2 <= len(texts) == len(set(texts)) <= 4


def test_lines_stay_lines(client: TestClient) -> None:
    found = ask(client, "/translate", q=f"{CAT}\n\n  \nthe bear sleeps", source="en", target="fr")["translatedText"]
    first, empty, blank, last = found.split("\n")
    assert (empty, blank) == ("", "  ")
    assert first == ask(client, "/translate", q=CAT, source="en", target="fr")["translatedText"]
    assert last


def test_a_paragraph_is_cut_into_sentences_as_everywhere(client: TestClient) -> None:
    texts = ["the bear sleeps.", "the cat sleeps!", "the bird sees the cat"]
    alone = ask(client, "/translate", q=texts, source="en", target="fr")["translatedText"]
    whole = ask(
        client,
        "/translate",
        q="the bear sleeps. the cat sleeps!\n\n- the bird sees the cat 🙂",
        source="en",
        target="fr",
    )
    assert whole["translatedText"] == f"{alone[0]} {alone[1]}\n\n- {alone[2]} 🙂"
    page = "<p>the bear sleeps. the cat sleeps!</p>"
    html = ask(client, "/translate", q=page, source="en", target="fr", format="html")["translatedText"]
    assert html == "<p>" + f"{alone[0]} {alone[1]}".rstrip() + "</p>"


def test_words_never_seen_and_the_run_are_named(client: TestClient, runs: Path) -> None:
    first, second, *_ = serving.words(runs / "attentive")
    text = f"{first} zyx {second}"
    answer = client.post("/translate", json={"q": text, "source": "en", "target": "fr"})
    assert answer.headers["X-Regard-Run"] in ("attentive", "plain")
    found = answer.json()
    assert found["unknown"] == ["zyx"]
    assert "1 word this run has never seen" in found["warning"]
    many = ask(client, "/translate", q=[text, f"{first} {second}"], source="en", target="fr")
    assert many["unknown"] == [["zyx"], []]
    assert many["warning"] == [found["warning"], ""]


def test_a_translation_says_what_was_read_and_what_was_never_seen(client: TestClient, runs: Path) -> None:
    frequent = serving.words(runs / "attentive")
    first, third = frequent[0], frequent[2]
    second = next(word for word in frequent[1:] if len(word) > 3)  # not an abbreviation, as in "no. 5"
    one, other = f"{first.capitalize()} zyx {second}.", f"{first} {third} {second}"
    text, place = f"{one} {other}", len(first) + 1
    (found,) = ask(client, "/api/v1/translate", run="attentive", texts=[text])["translations"]
    assert [(each["start"], each["end"]) for each in found["sentences"]] == [
        (0, len(one)),
        (len(one) + 1, len(text)),
    ]
    assert found["sentences"][0]["text"] == one
    assert found["unknown"] == [{"start": place, "end": place + 3, "word": "zyx"}]
    assert found["read_as"] == f"{first} zyx {second}. {other}"
    assert "zyx" in found["warning"]
    assert max(link["source"] for link in found["outputs"][0]["links"]) >= 3
    foreign = ask(client, "/api/v1/translate", run="attentive", texts=["ذهب القط"])["translations"][0]
    assert foreign["outputs"][0]["text"] == "ذهب القط"
    assert "Arabic script" in foreign["warning"]


def test_html_keeps_its_tags(client: TestClient) -> None:
    page = f'<p class="x">the <b>black</b> cat</p><script>x</script><p>{CAT}</p>'
    found = ask(client, "/translate", q=page, source="en", target="fr", format="html", alternatives=1)
    for text in (found["translatedText"], *found["alternatives"]):
        assert text.startswith('<p class="x">')
        assert text.count("<b>") == text.count("</b>") == 1
        assert "</p><script>x</script><p>" in text


def test_html_without_attention_is_placed_by_place(client: TestClient) -> None:
    found = ask(client, "/translate", q="the <b>black</b> cat", source="en", target="hi", format="html")
    assert found["translatedText"].count("</b>") == 1


def test_an_unknown_source_is_found_out(client: TestClient) -> None:
    found = ask(client, "/translate", q=[CAT, "the bear sleeps"], source="auto", target="fr")
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
    assert all(90 < each["confidence"] <= 100 for each in found["detectedLanguage"])
    single = ask(client, "/translate", q=CAT, source="auto", target="fr")
    assert single["detectedLanguage"] == found["detectedLanguage"][0]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"target": "de"}, (400, "source, target = en, de: no run translates this pair; there is en to fr, en to hi")),
        (
            {"source": "auto", "target": "de"},
            (400, "source, target = auto, de: no run translates this pair; there is en to fr, en to hi"),
        ),
        ({"format": "pdf"}, (400, "format: input should be 'text' or 'html'")),
        ({"alternatives": 11}, (400, "alternatives: input should be less than or equal to 10")),
        ({"q": 7}, (400, "q: input should be a valid string or a valid list")),
    ],
)
def test_libretranslates_errors_are_400(client: TestClient, change: dict[str, Any], expected: tuple[int, str]) -> None:
    assert refused(client, "/translate", **{"q": CAT, "source": "en", "target": "fr"} | change) == expected


@pytest.mark.parametrize("run", [b"attentive", b"\\udfff"])
@pytest.mark.parametrize("path", ["/translate", "/api/v1/translate", "/detect"])
def test_half_a_character_is_no_reason_to_fall_over(client: TestClient, path: str, run: bytes) -> None:
    """JSON can smuggle in half a surrogate pair, which no UTF-8 can hold."""
    body = b'{"q": "the \\ud800 cat", "texts": ["\\ud800"], "source": "en", "target": "fr", "run": "RUN"}'
    answer = client.post(path, content=body.replace(b"RUN", run), headers={"Content-Type": "application/json"})
    assert answer.status_code < 500
    answer.text.encode()


@pytest.mark.parametrize(
    ("body", "kind", "status", "expected"),
    [
        (b"{", "application/json", 400, 'body: is not JSON; send an object such as {"q": "a text"}'),
        (
            b"[" * 100_000,
            "application/json",
            400,
            "body: more than 20 nested lists or objects; no request needs more",
        ),
        (b"[]", "application/json", 400, 'body = list: must be an object, such as {"q": "a text"}'),
        (
            b"q=x",
            "text/plain",
            415,
            "content-type = text/plain: not supported; send application/json or application/x-www-form-urlencoded",
        ),
        (b"q=x", "application/x-www-form-urlencoded", 400, "source: is missing; send it"),
    ],
)
def test_bodies_that_cannot_be_read_get_one_line(
    client: TestClient, body: bytes, kind: str, status: int, expected: str
) -> None:
    answer = client.post("/translate", content=body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]) == (status, expected)


def test_more_alternatives_than_the_beam_may_hold_are_refused(runs: Path) -> None:
    from regard.serve.limits import Limits  # noqa: PLC0415

    with serving.client(runs, limits=Limits(beam=5)) as client:
        expected = (400, "alternatives = 5: too many; ask for at most 4")
        assert refused(client, "/translate", q=CAT, source="en", target="fr", alternatives=5) == expected


@pytest.mark.parametrize(
    ("known", "source", "target", "meant"),
    [
        (["en-pt_BR"], "en", "pt_BR", ["en-pt_BR"]),
        (["en-pt_BR"], "eng", "pt-br", ["en-pt_BR"]),
        (["en-pt_BR"], "en", "pt", ["en-pt_BR"]),
        (["en-pt_BR"], "en", "pt_PT", []),
        (["en-pt_BR", "en-pt_PT"], "en", "pt", ["en-pt_BR", "en-pt_PT"]),
        (["en-pt_BR", "en-pt"], "eng_Latn", "pt", []),
        (["en-pt_BR", "en-pt"], "eng", "pt", ["en-pt"]),
        (["eng_Latn-fra_Latn", "zh-Hans-en"], "en", "fr", ["eng_Latn-fra_Latn"]),
        (["eng_Latn-fra_Latn", "zh-Hans-en"], "zh", "en", ["zh-Hans-en"]),
        (["eng_Latn-fra_Latn", "zh-Hans-en"], "", "en", ["zh-Hans-en"]),
    ],
)
def test_a_plain_code_means_the_one_run_of_its_language(
    known: list[str], source: str, target: str, meant: list[str]
) -> None:
    assert [str(pair) for pair in matching(map(Languages.of, known), source, target)] == meant


def test_a_language_is_named_with_its_kind() -> None:
    assert name_of("pt_BR") == "Portuguese (BR)"
    assert name_of("eng_Latn") == "English (Latn)"
    assert (name_of("fra"), name_of("xx_YY")) == ("French", "xx_YY")


def test_languages_and_settings_are_libretranslates(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["fr", "hi"]},
        {"code": "fr", "name": "French", "targets": []},
        {"code": "hi", "name": "Hindi", "targets": []},
    ]
    found = client.get("/frontend/settings").json()
    assert found["charLimit"] == 5000
    assert found["keyRequired"] is False
    assert found["language"]["target"] == {"code": "fr", "name": "French"}


# Languages


def with_data(**values: str) -> Settings:
    known = small.settings("lstm")
    return known.model_copy(update={"data": DataSettings(**values)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"corpus": "fable:hi"}, Languages("en", "hi")),
        ({"source": "data/train.de", "target": "data/train.en"}, Languages("de", "en")),
        ({"source": "train.de.gz", "target": "train.EN.zst"}, Languages("de", "en")),
        ({"source": "a.txt", "target": "b.txt"}, None),
        ({"source": "a.en", "target": "b.en"}, None),
        ({"corpus": "pairs.tsv"}, None),
        ({"source": "pairs.de-en.tsv"}, Languages("de", "en")),
        ({"corpus": "pairs.tsv", "columns": "German, English"}, Languages("de", "en")),
        ({"corpus": "pairs.jsonl", "columns": "translation.de,translation.en"}, Languages("de", "en")),
        ({"corpus": "pairs.tsv", "columns": "2,1"}, None),
        ({"languages": "pt_BR-en"}, Languages("pt_BR", "en")),
        ({"languages": "eng_Latn-zh-Hans"}, Languages("eng_Latn", "zh-Hans")),
        ({"languages": "zh-Hans-es-419"}, Languages("zh-Hans", "es-419")),
        ({"corpus": "pairs.tsv", "languages": "pt-gl"}, Languages("pt", "gl")),
    ],
)
def test_languages_are_what_settings_or_names_say_and_never_guessed(
    values: dict[str, str], expected: Languages | None
) -> None:
    assert languages_of(with_data(**values)) == expected
    assert languages_of(with_data(**values).model_copy(update={"task": "tag"})) is None


def test_a_language_without_a_name_goes_by_its_code() -> None:
    assert (name_of("de"), name_of("xx")) == ("German", "xx")


def letters(kind: Any, *lines: str) -> Letters:
    found = Letters()
    found.learn(learn(kind, lines, size=601 if kind in ("bpe", "unigram") else 8000))  # 256 are bytes
    return found


ENGLISH = "the black cat ate the mouse and the old bear sleeps near the river"
FRENCH = "le chat noir a mangé la souris et le vieil ours dort près de la rivière"
HINDI = "काली बिल्ली ने चूहा खाया और बूढ़ा भालू नदी के पास सोता है"


@pytest.mark.parametrize("kind", ["word", "space", "bpe", "unigram"])
def test_letters_tell_languages_apart(kind: str) -> None:
    pairs = list(generate("fr", count=97, split="train")), list(generate("hi", count=97, split="train"))
    english, french = ([getattr(each, side) for each in pairs[0]] for side in ("source", "target"))
    hindi = [each.target for each in pairs[1]]
    find = detector({"en": letters(kind, *english), "fr": letters(kind, *french), "hi": letters(kind, *hindi)})
    for text, language in ((ENGLISH, "en"), (FRENCH, "fr"), (HINDI, "hi"), ("भालू", "hi")):
        found = find(text)
        assert found[0].language == language
        assert found[0].confidence > (60 if " " in text else 40)  # one word says less
        assert [each.confidence for each in found] == sorted((each.confidence for each in found), reverse=True)


def test_confidence_is_honest() -> None:
    find = detector({"en": letters("word", ENGLISH), "fr": letters("word", FRENCH)})
    assert {each.confidence for each in find("你好")} == {0.0}  # nobody here knows these letters
    assert {each.confidence for each in find("123 !?")} == {0.0}
    alike = detector({"en": letters("word", ENGLISH), "xx": letters("word", ENGLISH)})
    assert [each.confidence for each in alike(ENGLISH)] == [50.0, 50.0]
    scripts = detector({"en": letters("character", ENGLISH), "hi": letters("character", HINDI)})
    assert [each.confidence for each in scripts(HINDI)] == [50.0, 0.0]  # the script is right, and that is all it knows
    assert detector({"en": letters("byte", ENGLISH)})("the cat")[0].confidence == 0.0
    assert detector({})("the cat") == []


def test_confidence_is_bayes_rule() -> None:
    """Two triples ` a `: one language has seen it three times, the other never; T = 2 with the unseen one."""
    one, other = Letters(), Letters()
    one.triples, one.letters = {" a ": 3.0}, {"a"}
    other.triples, other.letters = {" b ": 1.0}, {"a", "b"}
    likelihood = [(3 + 0.5) / (3 + 1.5), 0.5 / (1 + 1.5)]
    expected = 100 * likelihood[0] / sum(likelihood)
    assert detector({"one": one, "other": other})("a")[0].confidence == pytest.approx(expected, abs=0.06)
    assert math.log(likelihood[0]) == pytest.approx(one.log_probability([" a "], 3))


# Numbers


def test_metrics_count_requests_batches_and_models(runs: Path) -> None:
    with serving.client(runs) as client:
        assert 'regard_queue_length{run=""} 0.0' in client.get("/metrics").text  # nothing is loaded
        ask(client, "/api/v1/translate", run="attentive", texts=[CAT, CAT])
        client.get("/nowhere")
        client.request("BREW", "/health")
        found = client.get("/metrics")
        assert found.headers["Content-Type"].startswith("text/plain")
        numbers = dict(line.rsplit(" ", 1) for line in found.text.splitlines() if not line.startswith("#"))
        assert numbers['regard_requests_total{method="POST",route="/api/v1/translate",status="200"}'] == "1.0"
        assert numbers['regard_requests_total{method="GET",route="(none)",status="404"}'] == "1.0"
        assert any('method="OTHER"' in name for name in numbers)
        assert numbers["regard_batch_texts_sum"] == "2.0"
        assert numbers["regard_models_loaded"] == "1.0"
        assert numbers['regard_queue_length{run="attentive"}'] == "0.0"
        assert 'regard_queue_length{run=""}' not in numbers
        assert (
            float(numbers['regard_model_bytes{run="attentive"}']) == client.app.state.library.loaded["attentive"].bytes
        )  # type: ignore[attr-defined]


# The description


def test_every_operation_is_described_with_its_problems(client: TestClient) -> None:
    root = client.get("/openapi.json").json()
    assert "HTTPValidationError" not in root["components"]["schemas"]
    for path, operations in root["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            assert operation.get("description"), where
            assert operation.get("tags"), where
            assert "4XX" in operation["responses"], where
            assert "422" not in operation["responses"], where


def test_links_and_unknown_words_are_described(client: TestClient) -> None:
    known = client.get("/openapi.json").json()["components"]["schemas"]
    assert (
        known["WordLink"]["properties"]["weight"]["description"]
        == "The attention weight, 0 to 1; null where links are not read from it."
    )
    assert [known["Unknown"]["properties"][name]["description"] for name in ("start", "end")] == [
        "Its first character.",
        "The one behind its last.",
    ]


ELSEWHERE = ("/api/v1/trainings", "/api/v1/compare", "/api/v1/estimate", "/api/v1/corpora", "/api/v1/presets")


def test_fuzzing_by_the_description_finds_no_5xx(runs: Path) -> None:
    """Every operation that starts no process, with bodies that fit the description and bodies that do not."""
    app = create_app(Library(runs))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
    operations = [found.ok() for found in schema.get_all_operations()]
    asked = [operation for operation in operations if not operation.path.startswith(ELSEWHERE)]
    assert len(asked) > 11
    bad: list[str] = []
    for operation in asked:
        _try(operation, bad)
    assert bad == []


def _try(operation: Any, bad: list[str]) -> None:
    known = {"run": "attentive", "source": "en", "target": "fr"}

    @given(case=operation.as_strategy())
    @settings(
        max_examples=5,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask_it(case: Any) -> None:
        """Names that exist, or nothing but their absence would be tried."""
        if isinstance(case.body, dict):
            case.body.update({name: value for name, value in known.items() if isinstance(case.body.get(name), str)})
        answer = case.call(headers={"Host": "localhost"})
        if answer.status_code >= 500:
            bad.append(f"{case.method} {case.formatted_path} {case.body!r}: {answer.status_code}")

    ask_it()


def test_a_wrong_method_is_told_the_right_one(client: TestClient) -> None:
    answer = client.get("/translate")
    assert (answer.status_code, answer.json()["error"]) == (405, "GET /translate: method not allowed; send POST")
