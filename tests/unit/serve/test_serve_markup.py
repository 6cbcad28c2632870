"""HTML keeps its tags: each once, nested as before, around the words it was around."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.serve.markup import Page

Translate = Callable[[str], tuple[str, list[tuple[int, int]]]]


def loudly(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The same words in capitals."""
    return text.upper(), [(place, place) for place in range(len(text.split()))]


def backwards(text: str) -> tuple[str, list[tuple[int, int]]]:
    words = text.upper().split()
    return " ".join(words[::-1]), [(place, len(words) - 1 - place) for place in range(len(words))]


def translated(page: str, translate: Translate = loudly) -> str:
    found = Page(page)
    return found.render(sentence.render(*translate(sentence.source)) for sentence in found.sentences)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("the <b>black</b> cat", "THE <b>BLACK</b> CAT"),
        ('<p class="a b">one <a href="x?y&amp;z">two</a>.</p>', '<p class="a b">ONE <a href="x?y&amp;z">TWO</a>.</p>'),
        ("see (<i>this</i>), now", "SEE (<i>THIS</i>), NOW"),
        ("<ul><li>one<li>two</ul>", "<ul><li>ONE<li>TWO</ul>"),
        ("one<br>two<br/>three", "ONE<br>TWO<br/>THREE"),
        ("a &lt; b &amp;&amp; c", "A &lt; B &amp;&amp; C"),
        ("  spaces <b>stay</b>\n", "  SPACES <b>STAY</b>\n"),
        ("<td>42</td><td>&nbsp;</td>", "<td>42</td><td>&nbsp;</td>"),
        ("one <!-- a note --> two", "ONE <!-- a note --> TWO"),
        ("<!doctype html><?x y?><p>one", "<!doctype html><?x y?><p>ONE"),
        ("<![CDATA[x]]><p>one", "<![CDATA[x]]><p>ONE"),
        ("one <img src=x alt='a b'> two", "ONE <img src=x alt='a b'> TWO"),
        ("<B>One</B > two", "<B>ONE</B > TWO"),
        ("<b><i>one</i> two</b> three", "<b><i>ONE</i> TWO</b> THREE"),
        ("<b>un</b>believable", "<b>UNBELIEVABLE</b>"),
        ("<b>one", "<b>ONE"),
        ("one</b> two", "ONE</b> TWO"),
        ("<b>one <i>two</b> three", "<b>ONE <i>TWO</b> THREE"),
        ("", ""),
    ],
)
def test_tags_stay_around_their_words(page: str, expected: str) -> None:
    assert translated(page) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("the <b>black</b> cat", "CAT <b>BLACK</b> THE"),
        ("<b>the black</b> cat", "CAT <b>BLACK THE</b>"),
        ("<a>the <i>black</i> cat</a> sleeps", "SLEEPS <a>CAT <i>BLACK</i> THE</a>"),
        ("the <b>black</b>, cat", "CAT <b>BLACK</b>, THE"),
        ("the cat<img> sleeps", "SLEEPS CAT<img> THE"),
        ("<i></i>the cat", "<i></i>CAT THE"),
    ],
)
def test_tags_go_where_their_words_go(page: str, expected: str) -> None:
    assert translated(page, backwards) == expected


@pytest.mark.parametrize(
    "kept",
    [
        "<script>if (a < b) { alert('a word'); }</script>",
        "<style>p { color: red }</style>",
        "<pre>some <b>words</b>\n  here</pre>",
        '<p translate="no">some <b>words</b></p>',
        '<div translate="no"><div>inner</div> outer</div>',
        "<textarea>words</textarea>",
        "<pre>never closed",
    ],
)
def test_what_is_no_language_stays_as_it_is(kept: str) -> None:
    assert translated(f"<p>one</p>{kept}") == f"<p>ONE</p>{kept}"


@pytest.mark.parametrize("kept", ["<code>ls -l &amp;</code>", '<span translate="no">The <b>Who</b></span>'])
def test_a_kept_element_in_a_sentence_takes_its_words_back(kept: str) -> None:
    assert translated(f"run {kept} now") == f"RUN {kept} NOW"
    assert translated(f"run {kept} now", backwards) == f"NOW {kept} RUN"
    assert translated(f"run {kept} now", lambda _: ("NOW", [(0, 9)])) == f"{kept} NOW"


def test_a_split_element_takes_its_heaviest_stretch_and_stays_whole() -> None:
    """*ne … pas*: three words of the element around one other outweigh it; a lone word far away does not."""
    page = Page("<b>one two three</b> four five six")
    (sentence,) = page.sentences
    links = [(0, 0), (1, 3), (2, 1), (3, 2), (4, 4), (5, 5), (6, 1)]
    assert sentence.render("A d B C e f b", links) == "<b>A d B C</b> e f b"


def test_two_elements_never_cross() -> None:
    (sentence,) = Page("<b>one two</b> <i>three four</i>").sentences
    found = sentence.render("A C B D", [(0, 0), (1, 2), (2, 1), (3, 3)])
    assert found == "<b>A C B</b> <i>D</i>"


def test_without_links_place_decides() -> None:
    (sentence,) = Page("<b>one</b> two").sentences
    assert sentence.render("A B C D", []) == "<b>A B</b> C D"
    assert sentence.render("", []) == "<b></b>"


def test_what_a_model_writes_is_text_not_markup() -> None:
    (sentence,) = Page("one <b>two</b>").sentences
    found = sentence.render("<script>x</script> & <img>", [(0, 0), (1, 1), (2, 1)])
    assert found == "&lt;script&gt;x&lt;/script&gt; <b>&amp; &lt;img&gt;</b>"


class _Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.seen.append(f"/{tag}")


PIECES = st.lists(
    st.sampled_from(
        [
            "<b>",
            "</b>",
            "<i>",
            "</i>",
            "<a href='x'>",
            "</a>",
            "<p>",
            "</p>",
            "<br>",
            "<img>",
            "<li>",
            "one",
            "two,",
            " ",
        ]
    ),
    max_size=23,
)


@settings(max_examples=23)
@given(PIECES, st.data())
def test_no_tag_is_lost_or_doubled_whatever_the_links(pieces: list[str], data: st.DataObject) -> None:
    def anyhow(text: str) -> tuple[str, list[tuple[int, int]]]:
        count = len(text.split())
        words = data.draw(st.integers(0, 7))
        return " ".join(["w"] * words), [(place, data.draw(st.integers(0, count))) for place in range(words)]

    page = "".join(pieces)
    assert Counter(_Tags(translated(page, anyhow)).seen) == Counter(_Tags(page).seen)


@settings(max_examples=23)
@given(st.text(alphabet="<>&;/!-= 'ab\"\n", max_size=40))
def test_any_characters_make_a_page(page: str) -> None:
    assert isinstance(translated(page), str)
