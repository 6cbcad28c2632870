"""Where sentences end, in several languages."""

import re

import pytest

from regard.text.sentences import Cut, cut

# Each sentence in brackets of its own.
GOLDEN = [
    "⟦The cat slept.⟧ ⟦The dog ate.⟧",
    "⟦the black cat ate the mouse.⟧ ⟦the duck slept on the bank.⟧ ⟦the bear ate the honey.⟧",
    "⟦who slept?⟧ ⟦the cat slept!⟧ ⟦good.⟧",
    '⟦"Come here!" said the king.⟧',
    '⟦"Come here!"⟧ ⟦He came.⟧',
    "⟦“Why?” she asked.⟧ ⟦“Because.”⟧",
    "⟦Mr. Smith met Dr. Jones.⟧ ⟦They talked.⟧",
    "⟦J. R. Smith came.⟧ ⟦He left.⟧",
    "⟦So do I.⟧ ⟦The end.⟧",
    "⟦See No. 5 below.⟧ ⟦No.⟧ ⟦I do not.⟧",
    "⟦We met at 5 p.m. on Monday.⟧ ⟦At 6 a.m. we left.⟧",
    "⟦Fruit, e.g. apples, is good.⟧ ⟦Cats, dogs, etc. sleep.⟧ ⟦Birds, etc.⟧ ⟦The end.⟧",
    "⟦the U.S. Army left the U.S.⟧ ⟦It rained.⟧",
    "⟦Pi is 3.14 and 1,000.50 is more.⟧ ⟦It costs 1.000 Euro.⟧",
    "⟦He was born in 1990.⟧ ⟦She was not.⟧",
    "⟦Wait... what?⟧",
    "⟦Wait...⟧ ⟦What?⟧ ⟦He left… and came back.⟧",
    "⟦Wait . . . what?⟧",
    "⟦Stop!!!⟧ ⟦Now?!⟧ ⟦Yes.⟧",
    "⟦(He left.)⟧ ⟦She stayed.⟧",
    "⟦He said (it was late.) and left.⟧",
    "⟦Visit http://a.org/b?c=d!e now.⟧ ⟦Or write to x.y@example.org.⟧",
    "⟦Is version 2.0.1 out?⟧ ⟦Yes, it is.⟧",
    "⟦M. Dupont est là.⟧ ⟦Mme. Curie aussi.⟧",
    "⟦« Bonjour ! » dit-il.⟧ ⟦« Ça va ? »⟧ ⟦Il rit.⟧",
    "⟦«\u00a0Bonjour\u202f!\u00a0» dit-il.⟧ ⟦«\u00a0Ça va\u202f?\u00a0»⟧ ⟦Il rit.⟧",
    "⟦Ah\u202f! dit-il.⟧ ⟦Où est l'ours\u202f?⟧",
    "⟦Am 12. Mai kam er.⟧ ⟦Der 2. Weltkrieg begann.⟧ ⟦Er hat 3.⟧ ⟦Sie hat 4.⟧",
    "⟦Das ist z.B. ein Hund.⟧ ⟦Und d.h. keiner, usw.⟧ ⟦Er bellt.⟧",
    "⟦„Komm!“ rief er.⟧ ⟦»Nein.«⟧ ⟦Er ging.⟧",
    "⟦Ludwig XIV. war König.⟧ ⟦Er starb.⟧",
    "⟦¿Dónde está?⟧ ⟦¡Aquí!⟧ ⟦El señor López vino.⟧",
    "⟦वह गया।⟧ ⟦क्या वह आया?⟧ ⟦हाँ।⟧⟦नहीं।⟧",
    "⟦他走了。⟧⟦她来了！⟧⟦好吗？⟧",
    "⟦「来い！」⟧⟦彼は言った。⟧",
    "⟦ذهب القط.⟧ ⟦هل نام؟⟧ ⟦نعم.⟧",
    "⟦یہ کتاب ہے۔⟧ ⟦وہ نہیں۔⟧",
    "⟦Кот спал.⟧ ⟦Собака ела!⟧",
    "- ⟦one⟧\n- ⟦two.⟧ ⟦three⟧\n\n• ⟦four⟧",
    "1. ⟦Open it.⟧ ⟦Now.⟧\n2. ⟦Close it.⟧\n(3) ⟦Go.⟧",
    "⟦12. Mai war schön.⟧\n⟦3. kleiner Hund.⟧",
    "⟦one line⟧\n⟦another line⟧\r\n\r\n⟦a paragraph⟧",
    "😀 ⟦Hello there.⟧ ⟦Bye.⟧ 👍🏽🎉\n",
    "⟦Hello 😀!⟧ ⟦How are you?⟧ 👨\u200d👩\u200d👧",
    "⟦Nice⟧ :-)",
    "⟦It is 20° here.⟧ ⟦Regard™ is fine.⟧",
    "  ⟦Hello⟧  ",
]


@pytest.mark.parametrize("marked", GOLDEN)
def test_sentences_end_where_people_end_them(marked: str) -> None:
    found = cut(re.sub("[⟦⟧]", "", marked))
    assert found.join([f"⟦{sentence}⟧" for sentence in found.sentences]) == marked


def test_a_text_without_sentences_is_only_between_them() -> None:
    for text in ("", " \n ", "🙂🙂", "***", "?!", "—\n…"):
        assert cut(text) == Cut((), (text,))


def test_spans_are_places_in_the_text_and_join_puts_outputs_there() -> None:
    text = "- One.  Two!\n\nThree 🙂"
    found = cut(text)
    assert [text[start:end] for start, end in found.spans] == ["One.", "Two!", "Three"]
    assert found.join(["Un.", "Deux !", "Trois"]) == "- Un.  Deux !\n\nTrois 🙂"


def test_a_very_long_line_is_cut_in_good_time() -> None:
    assert len(cut("The cat slept. " * 20_000).sentences) == 20_000
