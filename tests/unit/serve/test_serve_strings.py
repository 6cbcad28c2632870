"""Files of strings and subtitles: what is read, what is written, and what never changes."""

from __future__ import annotations

import gettext
import io
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as some

import real_models
import serving
from regard.cli.main import run as cli
from regard.errors import DataError
from regard.serve import strings
from regard.serve.guard import Doors
from regard.serve.limits import Limits

Capture = pytest.CaptureFixture[str]


def louder(sentences: Sequence[str]) -> list[strings.Found]:
    """A translator that speaks in capitals and looks where it should."""
    words = [sentence.split(" ") for sentence in sentences]
    return [
        (sentence.upper(), [(n, n) for n in range(len(each))]) for sentence, each in zip(sentences, words, strict=True)
    ]


def loud(texts: Sequence[str], keep: Sequence[str] = ()) -> list[str]:
    return strings.driven(strings.translating(texts, keep), louder)


def forgetful(sentences: Sequence[str]) -> list[strings.Found]:
    """A translator that drops every number."""
    return [(re.sub(r"\d+", "", text), links) for text, links in louder(sentences)]


def test_what_a_program_fills_in_stays_and_the_rest_is_translated() -> None:
    assert loud(["The %s ate {count} mice!", "%(name)s: <b>cat</b> & dog", "{0:.2f}%% of it", "%s", ""]) == [
        "THE %s ATE {count} MICE!",
        "%(name)s: <b>CAT</b> & DOG",
        "{0:.2f}%% OF IT",
        "%s",
        "",
    ]
    assert loud(['see <a href="%s">here</a> or https://example.org/a?b=%20c.']) == [
        'SEE <a href="%s">HERE</a> OR https://example.org/a?b=%20c.'
    ]
    assert loud(["  two\n\nlines  \n"]) == ["  TWO\n\nLINES  \n"]
    assert loud(["10&nbsp;files of %ss"]) == ["10&nbsp;FILES OF %sS"]
    assert loud(["100% of it, 5% discount"]) == ["100% OF IT, 5% DISCOUNT"]


def test_terms_that_are_to_stay_do() -> None:
    assert loud(["The Regard cat regards it."], ["Regard"]) == ["THE Regard CAT REGARDS IT."]


def test_a_model_that_loses_a_number_gets_the_parts_one_by_one() -> None:
    found = strings.driven(strings.translating(["The cat ate {count} mice and %d dogs."]), forgetful)
    assert found == ["THE CAT ATE {count} MICE AND %d DOGS."]


def test_a_line_in_which_a_sign_would_be_made_up_stays_as_it_is() -> None:
    def inventive(sentences: Sequence[str]) -> list[strings.Found]:
        return [(f"{sentence} %(x)d", []) for sentence in sentences]

    assert strings.driven(strings.translating(["The cat.", "%s cats"]), inventive) == ["The cat.", "%s cats"]


LETTERS = some.text("ab .,%{}<>&s\n1", max_size=30)


@given(some.lists(LETTERS, max_size=4))
def test_whatever_a_text_is_its_placeholders_and_lines_are_kept(texts: list[str]) -> None:
    for translate in (louder, forgetful):
        found = strings.driven(strings.translating(texts), translate)
        assert [strings.kept(text) for text in found] == [strings.kept(text) for text in texts]
        assert [text.count("\n") for text in found] == [text.count("\n") for text in texts]


PO = r"""# A comment: %s
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

#: a.py:1
#, python-format
msgctxt "menu"
msgid "%d \"cat\""
msgid_plural "%d cats"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr "fini"

msgid ""
"A long\n"
"text\n"
msgstr ""

#~ msgid "old"
#~ msgstr ""
"""


def test_a_catalogue_is_filled_where_it_is_empty() -> None:
    document = strings.read("a.po", PO.encode())
    assert document.texts == ('%d "cat"', "%d cats", "A long\ntext\n")
    filled = document.fill(loud(document.texts)).decode()
    expected = PO.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d \\"CAT\\""\nmsgstr[1] "%d CATS"').replace(
        '"text\\n"\nmsgstr ""', '"text\\n"\nmsgstr ""\n"A LONG\\n"\n"TEXT\\n"'
    )
    assert filled == expected
    assert strings.read("a.po", filled.encode()).texts == ()
    crlf = PO.replace("\n", "\r\n").encode()
    assert strings.read("a.pot", crlf).fill(loud(document.texts)) == expected.replace("\n", "\r\n").encode()


def test_languages_have_as_many_plurals_as_they_say() -> None:
    for forms, expected in ((1, ["%d CATS"]), (3, ['%d "CAT"', "%d CATS", "%d CATS"])):
        document = strings.read("a.po", PO.replace("nplurals=2", f"nplurals={forms}").encode())
        filled = document.fill(loud(document.texts)).decode()
        found = re.findall(r'msgstr\[\d\] "(.*)"', filled)
        assert [text.replace('\\"', '"') for text in found] == expected


def test_a_compiled_catalogue_is_translated_and_read_by_gettext() -> None:
    entries = [("", "Plural-Forms: nplurals=2; plural=(n != 1);\n"), ("a cat", "x"), ("menu\x04open", "y")]
    entries.append(("%d file\0%d files", "a\0b"))
    data = strings._mo_bytes(entries)
    document = strings.read("a.mo", data)
    assert document.texts == ("%d file", "%d files", "a cat", "open")
    catalogue = gettext.GNUTranslations(io.BytesIO(document.fill(loud(document.texts))))
    assert catalogue.gettext("a cat") == "A CAT"
    assert catalogue.pgettext("menu", "open") == "OPEN"
    assert [catalogue.ngettext("%d file", "%d files", n) for n in (1, 2)] == ["%d FILE", "%d FILES"]
    big = data[3::-1] + b"".join(data[n + 3 : n - 1 : -1] for n in range(4, 28, 4)) + data[28:]
    with pytest.raises(DataError, match=r"not a \.mo file"):
        list(strings._mo_entries(big))
    for damaged in (b"", b"abc", data[:20], data[:28], data[:8] + b"\xff" * 4 + data[12:], data[:60]):
        with pytest.raises(DataError, match=r"not a \.mo file"):
            strings.read("a.mo", damaged)


XLIFF = """<?xml version="1.0" encoding="utf-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file original="a"><body>
  <trans-unit id="1">
    <source>The <g id="1">black</g> cat &amp; <x id="2"/> <ph id="3">{&lt;x</ph>dog</source>
  </trans-unit>
  <trans-unit id="2"><source>done</source><target>fini</target></trans-unit>
  <trans-unit id="3"><source>new</source><target state="new"/></trans-unit>
  <trans-unit id="4" translate="no"><source>no</source></trans-unit>
</body></file></xliff>
"""


def test_units_get_targets_and_elements_go_where_their_words_go() -> None:
    document = strings.read("a.xliff", XLIFF.encode())
    assert len(document.texts) == 2
    filled = document.fill(loud(document.texts)).decode()
    assert filled == XLIFF.replace(
        "dog</source>\n",
        'dog</source>\n    <target>THE <g id="1">BLACK</g> CAT &amp; <x id="2"/> <ph id="3">{&lt;x</ph>DOG</target>\n',
    ).replace('<target state="new"/>', '<target state="new">NEW</target>')
    second = (
        '<xliff version="2.0"><unit id="1"><segment><source>a <pc id="1">cat</pc></source></segment></unit></xliff>'
    )
    document = strings.read("a.xlf", second.encode())
    assert '<target>A <pc id="1">CAT</pc></target>' in document.fill(loud(document.texts)).decode()


def test_what_is_no_xliff_is_refused() -> None:
    with pytest.raises(DataError, match="has a DOCTYPE"):
        strings.read("a.xliff", b'<!DOCTYPE x [<!ENTITY a "b">]><xliff/>')
    with pytest.raises(DataError, match="not XML"):
        strings.read("a.xliff", b"<xliff><source></xliff>")


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>The black cat
ate the mouse.</i>

2
00:00:03,000 --> 00:00:04,000
- The dog.
- {\\an8}The cat.

3
00:00:05,000 --> 00:00:06,000
"""


def test_subtitles_keep_their_times_and_lines() -> None:
    document = strings.read("a.srt", SRT.encode())
    assert document.texts == ("<i>The black cat ate the mouse.</i>", "- The dog.\n- {\\an8}The cat.")
    assert document.fill(loud(document.texts)).decode() == SRT.replace(
        "The black cat\nate the mouse.", "THE BLACK CAT\nATE THE MOUSE."
    ).replace("The dog", "THE DOG").replace("The cat.", "THE CAT.")
    assert strings._balanced("a", 3) == ["a"]


def test_other_files_are_refused() -> None:
    with pytest.raises(DataError, match=r"file = a\.doc: not a format"):
        strings.read("a.doc", b"")
    with pytest.raises(DataError, match="byte 1 is not UTF-8"):
        strings.read("a.po", b"\xff")


# The service


def send(client: TestClient, name: str, content: bytes, **fields: str) -> object:
    return client.post(
        "/translate_file", files={"file": (name, content)}, data={"source": "en", "target": "fr"} | fields
    )


def test_a_file_is_sent_translated_and_fetched(client: TestClient) -> None:
    answer = send(client, "messages.po", PO.encode())
    assert answer.status_code == 200, answer.text
    fetched = client.get(answer.json()["translatedFileUrl"])
    assert fetched.headers["content-disposition"] == 'attachment; filename="translated.po"'
    filled = strings._fields(fetched.text.split("\n\n")[1])
    assert filled["msgstr[0]"].count("%d") == 1
    assert client.get("/download_file/other.po").status_code == 404
    assert ".srt" in client.get("/frontend/settings").json()["supportedFilesFormat"]


def test_what_cannot_be_translated_as_a_file_is_told(client: TestClient) -> None:
    assert send(client, "a.doc", b"x").status_code == 415
    assert send(client, "a.mo", b"x").status_code == 400
    nothing = client.post("/translate_file", data={"source": "en", "target": "fr"})
    assert "file: is missing" in nothing.json()["error"]
    long = b'msgid "' + b"a" * 6000 + b'"\nmsgstr ""\n'
    assert send(client, "a.po", long).status_code == 413


def test_only_the_newest_files_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.serve.routes.libre._FILES", 2)
    places = [send(client, "a.srt", SRT.encode()).json()["translatedFileUrl"] for _ in range(3)]
    assert [client.get(place).status_code for place in places] == [404, 200, 200]


def test_multipart_forms_are_read_everywhere(client: TestClient) -> None:
    fields = {"q": (None, serving.CAT), "source": (None, "en"), "target": (None, "fr")}
    assert client.post("/translate", files=fields).json()["translatedText"]
    assert client.post("/detect", files={"q": (None, serving.CAT)}).status_code == 200
    kind = {"content-type": "multipart/form-data; boundary=x"}
    for body in (b"", b"--x\r\n", b"--y\r\n\r\n--y--"):
        answer = client.post("/translate", content=body, headers=kind)
        assert "not a complete multipart form" in answer.json()["error"]
    many = b"".join(b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' for _ in range(1001)) + b"--x--"
    assert "more than 1,000 fields" in client.post("/translate", content=many, headers=kind).json()["error"]


def test_a_token_is_needed_to_translate_a_file_and_not_to_fetch_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving.client(serving.runs(tmp_path_factory), Doors(token="a" * 20), Limits(texts=1)) as client:
        assert send(client, "a.srt", SRT.encode()).status_code == 400
        answer = send(client, "a.srt", SRT.encode(), api_key="a" * 20)
        assert client.get(answer.json()["translatedFileUrl"]).status_code == 200


# The command line


@pytest.mark.usefixtures("with_demo")
def test_a_verb_translates_a_file_of_strings(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.po").write_text('msgid "The cat saw %s."\nmsgstr ""\n', encoding="utf-8")
    assert cli(["translate", "demo", "--file", str(tmp_path / "a.po"), "--out", str(tmp_path / "fr.po")]) == 0
    assert "1 text, 0 unchanged" in capsys.readouterr().err
    assert 'msgstr "Le chat a vu %s."' in (tmp_path / "fr.po").read_text(encoding="utf-8")
    assert cli(["translate", "demo", "text", "--file", str(tmp_path / "a.po")]) == 2
    assert "is translated as a whole; leave out" in capsys.readouterr().err


@pytest.mark.usefixtures("with_demo")
def test_what_is_to_stay_is_in_a_glossary(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "a.po").write_text('msgid "The cat ate the mouse."\nmsgstr ""\n', encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("mouse\tmouse\n", encoding="utf-8")
    given = ["--file", str(tmp_path / "a.po"), "--constrain", str(tmp_path / "terms.tsv")]
    assert cli(["translate", "demo", *given]) == 0
    (written,) = re.findall(r'msgstr "(.+)"', capfdbinary.readouterr().out.decode())
    assert "mouse" in written


@pytest.mark.usefixtures("with_demo")
def test_a_real_catalogue_is_filled_with_all_placeholders(tmp_path: Path) -> None:
    wheel = real_models.real("django-5.2.19-py3-none-any.whl", "Django")
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("django/conf/locale/fr/LC_MESSAGES/django.po").decode()
    blocks = text.split("\n\n")
    emptied = [_emptied(block) for block in blocks]
    file, out = tmp_path / "django.po", tmp_path / "fr.po"
    file.write_text("\n\n".join(emptied), encoding="utf-8")
    assert cli(["translate", "demo", "--file", str(file), "--out", str(out), "--beam", "1", "--quiet"]) == 0
    entries = [strings._fields(block) for block in out.read_text(encoding="utf-8").split("\n\n")]
    filled = [entry for entry in entries if entry.get("msgid")]
    assert len(filled) > 300
    for entry in filled:
        for name, value in entry.items():
            if name.startswith("msgstr"):
                asked = "msgid" if name in ("msgstr", "msgstr[0]") else "msgid_plural"
                assert strings.kept(value) == strings.kept(entry[asked]), entry
    if shutil.which("msgfmt"):
        subprocess.run(["msgfmt", "-c", "-o", str(tmp_path / "fr.mo"), str(out)], check=True, timeout=60)


def _emptied(block: str) -> str:
    """An entry of a catalogue without its translation; the first, which is about the catalogue, stays."""
    fields = strings._fields(block)
    if not fields.get("msgid"):
        return block
    return strings._with_translations(block, [""] * (1 if "msgstr" in fields else 2), 2)
