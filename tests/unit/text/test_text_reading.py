"""What a run has seen, and how it reads the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.decode.texts import Part, copied, unknown_words
from regard.text import UNK, Tokenizers, WordTokenizer
from regard.text.reading import COUNTED, KnownWords, Unknown, read, script_of
from regard.text.vocabulary import Kind
from regard.text.words import CAPITAL, split_words

LINES = ["the cat can't sleep .", 'The Bear saw 12 cafés , "why" ?', "Paris is a city"] * 3
KINDS: tuple[Kind, ...] = ("word", "space", "character", "byte", "bpe", "unigram")


def known(kind: Kind = "word", case: str = "keep", lines: list[str] = LINES) -> KnownWords:
    found = Tokenizers.learn(kind, lines, ["le chat"], joint=False, size=400, case=case).known  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [True, False])
def test_a_run_knows_the_words_of_its_training_text_whatever_its_pieces(
    kind: Kind, joint: bool, tmp_path: Path
) -> None:
    made = Tokenizers.learn(kind, LINES, ["der Hund"], joint=joint, size=400)
    made.save(tmp_path / "tokenizer")
    loaded = Tokenizers.load(tmp_path / "tokenizer")
    assert (tmp_path / "tokenizer" / COUNTED).is_file() == (kind not in ("word", "space"))
    for words in (made.known, loaded.known):
        assert words is not None
        assert all(word in words for word in ("the", "The", "cat", "Bear", "12"))
        assert not any(word in words for word in ("wizard", "THE"))
    found = read("the cat saw a wizard", loaded.known)
    assert found.unknown == (Unknown(14, 20, "wizard"),)


def test_a_run_that_has_not_counted_its_words_marks_nothing(tmp_path: Path) -> None:
    Tokenizers.learn("bpe", LINES, LINES, joint=True).save(tmp_path / "tokenizer")
    (tmp_path / "tokenizer" / COUNTED).unlink()
    old = Tokenizers.load(tmp_path / "tokenizer")
    assert old.known is None
    found = read("qwertyuiop. Zyx", old.known)
    assert (found.unknown, found.read_as, found.remarks("")) == ((), "", [])
    old.save(tmp_path / "again")
    assert not (tmp_path / "again" / COUNTED).exists()


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_among_words_in_capitals_one_that_was_seen_so_is_read_as_usual(kind: Kind) -> None:
    lines = ["all this is good .", "this is all .", "the ALL is good ."]
    words = known(kind, lines=lines)
    assert read("THIS IS ALL.", words).read_as == "this is all."
    assert read("the ALL is good.", words).read_as == ""
    assert read("ALL", words).read_as == ""
    assert read("THIS IS ALL.", known(kind, case="mark", lines=lines)).read_as == ""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The cat (a Bear) can't sleep.", ["The cat", "a Bear", "can't sleep."]),
        (
            "The cat saw [the city]; the Bear – a cat - slept.",
            ["The cat saw", "the city", "the Bear", "a cat", "slept."],
        ),
        ("The cat saw: the city—the Bear.", ["The cat saw", "the city", "the Bear."]),
        ("- The cat saw at 3:30 a well-read Bear.", ["The cat saw at 3:30 a well-read Bear."]),
        ("(The cat.)", ["The cat."]),
        ("The cat… the Bear ... can't sleep...", ["The cat", "the Bear", "can't sleep..."]),
        ("<b>The cat</b> saw <a@b.org> | why.", ["The cat", "saw", "why."]),
        ("The cat saw <the city and why> the Bear.", ["The cat saw", "the city and why", "the Bear."]),
        ("The cat saw #why at https://a.org/#b.", ["The cat saw", "why at https://a.org/#b."]),
        ('The Bear saw, "The cat; the city."', ['The Bear saw, "The cat; the city."']),
    ],
)
def test_what_stands_between_brackets_and_dashes_is_read_by_itself(text: str, sentences: list[str]) -> None:
    found = read(text, known(), plain=True).cut
    assert list(found.sentences) == sentences
    assert found.join(sentences) == text
    assert len(read(text, known()).cut.sentences) == 1  # of a text of one's own


@pytest.mark.parametrize(
    ("written", "as_read"),
    [
        ("THE CAT sleep", "The cat sleep"),
        ("paris is A CITY", "Paris is a city"),
        ("The cat can’t sleep", "The cat can't sleep"),
        ("“why”", '"why"'),
        ("cafe\u0301s", "cafés"),
        ("Ｔｈｅ cat", "The cat"),
        ("The cat.\n\nTHE bear!", "The cat.\n\nThe Bear!"),
    ],
)
@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_what_was_seen_in_another_way_is_read_in_that_way(kind: Kind, written: str, as_read: str) -> None:
    found = read(written, known(kind))
    assert found.read_as.casefold() == as_read.casefold()
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("written", "as_read"),
    [
        ("The CAT can't sleep", "The cat can't sleep"),
        ("THE cat CAN'T sleep", "The cat can't sleep"),
        ("the NATO saw a CITY", "the Nato saw a city"),
        ("THE CAT. The CAT.", "THE CAT. The cat."),
        ("A cat in Paris", ""),
    ],
)
def test_a_word_in_capitals_among_others_is_read_without_them_where_none_was_ever_seen(
    written: str, as_read: str
) -> None:
    assert read(written, known(case="mark"), plain=True).read_as == as_read
    assert read(written, known(case="mark")).read_as == ""


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('"The cat."', ["The cat."]),
        ("« The cat. »", ["The cat."]),
        ("“The cat. The Bear.” Paris", ["The cat.", "The Bear.", "Paris"]),
        ('The cat saw "why" .', ['The cat saw "why" .']),
        ('"why" saw the cat', ['"why" saw the cat']),
        ('"!"', []),
        ("“The cat can't sleep,” saw the Bear.", ["The cat can't sleep,", "saw the Bear."]),
        ('"why?" saw the cat', ["why?", "saw the cat"]),
        ('"The cat", saw the Bear.', ["The cat", "saw the Bear."]),
        ("'The cat can't sleep,' saw the Bear.", ["The cat can't sleep,", "saw the Bear."]),
        ('The Bear saw: "The cat."', ["The Bear saw:", "The cat."]),
        ('The Bear saw "The cat."', ["The Bear saw", "The cat."]),
        ('The Bear saw, "The cat. The city."', ["The Bear saw,", "The cat.", "The city."]),
        ('The Bear saw, "The cat."', ['The Bear saw, "The cat."']),
        ('"The cat," saw the Bear, "is a city."', ['"The cat," saw the Bear, "is a city."']),
        ("The cats' Bear can't sleep", ["The cats' Bear can't sleep"]),
    ],
)
def test_quotation_marks_around_sentences_stay_where_they_are(text: str, sentences: list[str]) -> None:
    found = read(text, known(), plain=True)
    assert list(found.cut.sentences) == sentences
    assert found.cut.join(sentences) == text
    assert read(text, known()).cut.join(read(text, known()).cut.sentences) == text


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ('"I am," said the Bear.', [True, False]),
        ("« I am », said the Bear.", [True, False]),
        ("„I am“, said the Bear.", [True, False]),
        ("‘I am,’ said the Bear.", [True, False]),
        ('"i am," said the Bear.', [False, False]),
        ('The Bear said: "I am"', [True, True]),
        ("I am (I see) — I am", [True, False, False]),
        ("I am", [False]),  # as a whole it is read as it is written
        ("I am. I see.", [False, False]),
    ],
)
def test_what_begins_a_sentence_or_a_quotation_that_is_cut_is_known(text: str, begins: list[bool]) -> None:
    assert [reading.begins for reading in read(text, known(), plain=True).readings] == begins
    assert not any(reading.begins for reading in read(text, known()).readings)


@pytest.mark.parametrize(
    ("written", "as_read"),
    [
        ('The "cat" is a city', "The cat is a city"),
        ('The Bear saw a "cat".', "The Bear saw a cat."),
        ('The Bear saw, "The cat."', ""),
        ("“The cat,” saw the Bear.", ""),
    ],
)
def test_marks_that_quote_a_part_of_a_sentence_are_left_out_and_that_is_said(written: str, as_read: str) -> None:
    found = read(written, known(), plain=True)
    assert found.read_as == as_read
    told = ["quotation marks within a sentence were left out: the training text has none"]
    assert found.remarks("") == (told if as_read else [])
    assert read(written, known()).remarks("") == []


def test_a_name_in_capitals_is_marked_as_it_is_written() -> None:
    assert read("the NATO saw", known(case="mark"), plain=True).unknown == (Unknown(4, 8, "NATO"),)


def test_what_was_seen_as_it_is_written_is_read_as_it_is() -> None:
    for text in ("The cat", "the cat can't sleep .", "Paris is a city", ""):
        assert read(text, known()).read_as == ""


def test_marks_for_capitals_make_every_capital_known() -> None:
    for kind in ("word", "bpe"):
        found = read("THE Cat, WIZARD, bEaR", known(kind, "mark"))
        assert [each.word for each in found.unknown] == ["WIZARD"]
        assert found.read_as == "THE Cat, WIZARD, bear"


def test_curly_quotes_are_kept_where_only_they_are_known() -> None:
    assert read("the cat can't", known(lines=["the cat can’t"])).read_as == "the cat can’t"


def test_punctuation_with_and_without_a_space_is_one_to_a_vocabulary_of_words() -> None:
    found = read("Paris? (the cat)", known())
    assert (found.unknown, found.read_as) == ((), "")


def test_numbers_are_unknown_to_words_and_spelled_by_subwords() -> None:
    assert [each.word for each in read("the cat saw 77", known("word")).unknown] == ["77"]
    assert read("the cat saw 77", known("bpe")).unknown == ()
    assert read("77.\n12", known("word")).readings == ()  # numbers alone are no sentence, and stay as they are
    assert read("77", known("bpe")).remarks("77") == []


def test_scripts_without_spaces_are_known_letter_by_letter() -> None:
    words = known("bpe", lines=["我喜欢猫", "猫很好"])
    assert read("猫喜欢我", words).unknown == ()
    assert [each.word for each in read("我喜欢狗", words).unknown] == ["狗"]
    assert words.script == "Chinese"


def test_remarks_name_what_was_copied_spelled_and_left_out() -> None:
    found = read("the wizard saw Frodo", known())
    assert found.remarks("le Frodo") == ["2 words this run has never seen: Frodo (copied); left out: wizard"]
    spelled = read("the wizard saw Frodo", known("bpe"))
    assert spelled.remarks("le Frodo") == ["2 words this run has never seen: wizard, Frodo (copied)"]
    many = read("the " + " ".join(f"x{'y' * n}" for n in range(1, 13)), known("bpe"))
    unseen, doubt = many.remarks("", "English")
    assert unseen.endswith("and 2 more")
    assert doubt == "12 of 13 words were never seen in training: is this English?"
    assert many.remarks("")[1].endswith("is this the language it was trained on?")


def test_a_sentence_of_which_nothing_was_seen_is_named() -> None:
    found = read("The cat. Qwertyuiop zyx!", known())
    assert [reading.left for reading in found.readings] == [False, True]
    assert found.remarks("") == ["no word of sentence 2 was in the training text: left as it is"]
    arabic = read("ذهب القط", known())
    line = "no word of this sentence was in the training text (Arabic script; this run reads Latin): left as it is"
    assert arabic.remarks("") == [line]


def test_a_script_has_a_name_for_people() -> None:
    assert [script_of(text) for text in ("the", "вы", "नमस्ते", "你好", "12")] == [
        *("Latin", "Cyrillic", "Devanagari", "Chinese", "")
    ]


def test_an_address_is_one_word() -> None:
    assert split_words("See https://example.org/a?b=1, or write to m.s@example.com.") == [
        *("See", "https://example.org/a?b=1", "￭,", "or", "write", "to", "m.s@example.com", "￭."),
    ]


def test_a_copied_word_has_a_capital_where_the_model_wrote_its_mark() -> None:
    lines = ["The cat", "the dog"]
    both = WordTokenizer.learn(lines, case="mark")
    tokenizers = Tokenizers(both, both)
    assert unknown_words(tokenizers, Part("Zorblax NATO iPhone")) == {1: "zorblax", 3: "nato", 4: "iPhone"}
    mark = both.id(CAPITAL)
    assert copied(tokenizers, [mark, UNK, both.id("cat"), UNK], ["zorblax", "wug"]) == "Zorblax cat wug"


def test_a_copied_word_is_found_again_whatever_its_capital() -> None:
    assert read("Wug can't sleep", known()).remarks("le wug a dormi") == [
        "1 word this run has never seen: Wug (copied)"
    ]
