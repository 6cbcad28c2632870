"""What a stranger types first, through every way in, with the run in the package: a right answer, or a mark.

The right answers are written by hand, in French typography: a narrow no-break space (U+202F) before ? and ! and
inside « », a no-break space (U+00A0) before a colon.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import regard
from regard.cli.main import run as cli
from serving import client

pytestmark = pytest.mark.usefixtures("with_demo")
RIGHT = 0.95  # of the sentences inside the grammar, exactly

INSIDE = {
    # as people write
    "The black cat ate the mouse.": "Le chat noir a mangé la souris.",
    "The bear ate the pear because it was hungry.": "L'ours a mangé la poire parce qu'il était affamé.",
    "The bear ate the pear because it was delicious.": "L'ours a mangé la poire parce qu'elle était délicieuse.",
    "The duck slept on the bank.": "Le canard a dormi sur la rive.",
    "The thief found the coin in the bank.": "Le voleur a trouvé la pièce dans la banque.",
    "I have a book.": "J'ai un livre.",
    "We have a dog.": "Nous avons un chien.",
    "She reads the letter.": "Elle lit la lettre.",
    "They will see the church.": "Ils verront l'église.",
    "You are tired.": "Vous êtes fatigué.",
    "There is a cat in the garden.": "Il y a un chat dans le jardin.",
    "The old king slept.": "Le vieux roi a dormi.",
    "The girl drinks the milk and the boy eats the bread.": "La fille boit le lait et le garçon mange le pain.",
    # about oneself, and now
    "I love music.": "J'aime la musique.",
    "I don't like coffee.": "Je n'aime pas le café.",
    "We don't eat meat.": "Nous ne mangeons pas de viande.",
    "I need a key.": "J'ai besoin d'une clé.",
    "I am going to the market.": "Je vais au marché.",
    "She is eating an apple.": "Elle mange une pomme.",
    "The children are playing.": "Les enfants jouent.",
    "He's sleeping.": "Il dort.",
    "They live in a small house.": "Ils habitent dans une petite maison.",
    "Do you love the sea?": "Est-ce que vous aimez la mer\u202f?",
    "DO YOU LOVE THE SEA?": "EST-CE QUE VOUS AIMEZ LA MER\u202f?",
    "Do you drink tea?": "Est-ce que vous buvez du thé\u202f?",
    "Do you have a dog?": "Est-ce que vous avez un chien\u202f?",
    "What do you want?": "Qu'est-ce que vous voulez\u202f?",
    "What are you eating?": "Qu'est-ce que vous mangez\u202f?",
    "Where are you going?": "Où est-ce que vous allez\u202f?",
    # what one will do, can do, must do and wants to do
    "I want to sleep.": "Je veux dormir.",
    "I want to see Paris.": "Je veux voir Paris.",
    "I don't want to sleep.": "Je ne veux pas dormir.",
    "We will stay.": "Nous resterons.",
    "We will go to the market tomorrow.": "Nous irons au marché demain.",
    "I will go to Paris.": "J'irai à Paris.",
    "I will come tomorrow.": "Je viendrai demain.",
    "Can you help me?": "Est-ce que vous pouvez m'aider\u202f?",
    "I can't sleep.": "Je ne peux pas dormir.",
    "You should sleep.": "Vous devriez dormir.",
    "I am going to sleep.": "Je vais dormir.",
    "I would like to sleep.": "Je voudrais dormir.",
    "Let's go home.": "Allons à la maison.",
    # what there is not, who somebody is, what somebody said
    "There is no milk.": "Il n'y a pas de lait.",
    "I have no money.": "Je n'ai pas d'argent.",
    "I am here.": "Je suis ici.",
    "Who is that man?": "Qui est cet homme\u202f?",
    "You are tired, aren't you?": "Vous êtes fatigué, n'est-ce pas\u202f?",
    "The king said that the cat slept.": "Le roi a dit que le chat avait dormi.",
    "Yuki's cat slept.": "Le chat de Yuki a dormi.",
    # questions and exclamations
    "Where is the cat?": "Où est le chat\u202f?",
    "Who ate the honey?": "Qui a mangé le miel\u202f?",
    "What is this?": "Qu'est-ce que c'est\u202f?",
    "Did the fox see the rabbit?": "Est-ce que le renard a vu le lapin\u202f?",
    "What time is it?": "Quelle heure est-il\u202f?",
    "Do you speak English?": "Parlez-vous anglais\u202f?",
    "Stop!": "Arrêtez\u202f!",
    # greetings
    "Hello!": "Bonjour\u202f!",
    "Good morning.": "Bonjour.",
    "How are you?": "Comment allez-vous\u202f?",
    "Thank you very much.": "Merci beaucoup.",
    "My name is Anna.": "Je m'appelle Anna.",
    "I love you.": "Je vous aime.",
    # contractions
    "I'm hungry.": "J'ai faim.",
    "I don't know.": "Je ne sais pas.",
    "The cat didn't see the mouse.": "Le chat n'a pas vu la souris.",
    # numbers, dates, names
    "I am 32 years old.": "J'ai 32 ans.",
    "There are three surgeons here.": "Il y a trois chirurgiens ici.",
    "It is seven o'clock.": "Il est sept heures.",
    "Today is Monday.": "Aujourd'hui, c'est lundi.",
    "Peter was in Paris.": "Peter était à Paris.",
    "Mary's dog slept.": "Le chien de Mary a dormi.",
    # speech
    'The king said, "The wolf slept."': "Le roi a dit\u00a0: «\u202fLe loup a dormi.\u202f»",
    '"The cat slept."': '"Le chat a dormi."',
    "“The cat slept. The dog ran.”": "“Le chat a dormi. Le chien a couru.”",
    "“The cat slept,” said the woman.": "“Le chat a dormi,” a dit la femme.",
    '"Where is the cat?" asked the king.': '"Où est le chat\u202f?" a demandé le roi.',
    'The king said: "The wolf slept."': 'Le roi a dit: "Le loup a dormi."',
    "'The cat slept,' said the woman.": "'Le chat a dormi,' a dit la femme.",
    'The king said, "The cat slept. The dog ran."': 'Le roi a dit "Le chat a dormi. Le chien a couru."',
    '"I am tired," said the girl.': '"Je suis fatigué," a dit la fille.',
    "« I am tired », said the girl.": "« Je suis fatigué », a dit la fille.",
    "„I am tired“, said the girl.": "„Je suis fatigué“, a dit la fille.",
    "The girl slept (I am tired).": "La fille a dormi (je suis fatigué).",
    # as people write in a hurry, and aloud
    "the black cat ate the mouse": "le chat noir a mangé la souris",
    "where is the cat": "où est le chat",
    "THE BLACK CAT ATE THE MOUSE.": "LE CHAT NOIR A MANGÉ LA SOURIS.",
    "The black cat ate the mouse": "Le chat noir a mangé la souris",
    # one word aloud, which makes no others loud
    "The OLD woman sold the house.": "La vieille femme a vendu la maison.",
    "The BLACK cat ate THE mouse.": "Le chat noir a mangé la souris.",
    "The cat slept. THE DOG RAN.": "Le chat a dormi. LE CHIEN A COURU.",
    # more than one sentence, and what is between them
    "The cat slept. The dog ran.": "Le chat a dormi. Le chien a couru.",
    "The cat slept.\n\nThe dog ran.": "Le chat a dormi.\n\nLe chien a couru.",
    "Hello! How are you?": "Bonjour\u202f! Comment allez-vous\u202f?",
}

# What the run cannot know: the words that must be marked.
OUTSIDE = {
    "an unknown word": ("The gnorp slept.", ["gnorp"]),
    "an unknown name": ("Zebulonix ate the mouse.", ["Zebulonix"]),
    "gibberish": ("qwertyuiop asdfgh", ["qwertyuiop", "asdfgh"]),
    "German": ("Der Hund läuft durch den Schnee.", ["Hund", "läuft", "durch", "Schnee"]),
    "Arabic": ("القط الأسود أكل الفأر.", ["القط"]),
    "Hindi": ("काली बिल्ली ने चूहे को खाया।", ["बिल्ली"]),
    "Chinese": ("黑猫吃了老鼠。", ["黑猫吃了老鼠"]),
    "an address": ("Look at https://example.org today.", ["https://example.org"]),
}

# What the run leaves out: the words that a person is told of.
LEFT_OUT = {
    "She gave it to him.": ["him"],
    "I gave it to him.": ["him"],
    "The cat slept.\nI gave it to him.": ["him"],
}

# What is neither right nor wrong: nothing breaks, and what is no word comes through.
KEPT = {
    "an emoji": ("The cat slept. 😀", "😀"),
    "an abbreviation": ("Mr. Smith slept.", "Smith"),
    "a list": ("- The cat slept.\n- The dog ran.", "\n- "),
    "a number alone": ("1984", "1984"),
    "a date": ("The bears ate on 2024-03-04.", "2024-03-04"),
    "a time": ("The cat slept at 10:30.", "Le chat a dormi à 10:30."),
    "an amount": ("The king paid $5 for an apple.", "$5"),
    "a name in capitals": ("The king saw NATO.", "Le roi a vu NATO."),
    "a name in capitals like another word": ("The old king saw LA near the river.", "LA près de la rivière."),
    "a path in capitals": (r"The king saw HTTP://A\Q.", r"HTTP://A\Q"),
    "an amount with letters": ("The king paid $3.5bn.", "3.5"),
    "a name of initials": ("The king saw the U.S. birds.", "U.S."),
    "markup": ("<b>The cat</b> slept.", "<b>Le chat</b> "),
    "an address in angle brackets": ("Mail <a.b@c.com> now.", " <a.b@c.com> maintenant."),
    "marks alone": ("?!", "?!"),
}


@dataclass(frozen=True)
class Answer:
    """What somebody sees, whichever way was taken."""

    text: str
    warning: str
    unknown: tuple[str, ...]


Ask = Callable[..., list[Answer]]  # one answer for each text


@pytest.fixture(scope="module")
def service(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service on an empty folder: all it has is the run in the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.runs.folder.PACKAGED", demo)
        with client(tmp_path_factory.mktemp("none"), studio=True) as found:
            yield found


@pytest.fixture(params=["python", "command line", "/translate", "/api/v1/translate"])
def ask(
    request: pytest.FixtureRequest,
    service: TestClient,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Ask:
    monkeypatch.chdir(tmp_path)
    translator = regard.load("demo")

    def python(text: str) -> Answer:
        found = translator.translate(text)
        return Answer(found.text, found.warning, tuple(each.word for each in found.unknown))

    def command_line(*texts: str) -> list[Answer]:
        assert cli(["translate", "demo", "--json", "--", *texts]) == 0
        found = map(json.loads, capsys.readouterr().out.splitlines())
        return [
            Answer(each["target"], each.get("warning", ""), tuple(map(word_of, each.get("unknown", ()))))
            for each in found
        ]

    def libre(text: str) -> Answer:
        answer = service.post("/translate", json={"q": text, "source": "en", "target": "fr"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["X-Regard-Run"] == "demo"
        found = answer.json()
        return Answer(found["translatedText"], found.get("warning", ""), tuple(found.get("unknown", ())))

    def api(text: str) -> Answer:
        answer = service.post("/api/v1/translate", json={"run": "demo", "texts": [text]})
        assert answer.status_code == 200, answer.text
        found = answer.json()["translations"][0]
        return Answer(found["outputs"][0]["text"], found["warning"], tuple(map(word_of, found["unknown"])))

    if request.param == "command line":
        return command_line
    one = {"python": python, "/translate": libre, "/api/v1/translate": api}[request.param]
    return lambda *texts: [one(text) for text in texts]


def word_of(unknown: str | dict[str, str]) -> str:
    return unknown if isinstance(unknown, str) else unknown["word"]


def test_there_are_at_least_forty_sentences() -> None:
    assert len(INSIDE) >= 40


def test_nearly_all_that_the_grammar_knows_is_exactly_right_and_nothing_of_it_is_marked(ask: Ask) -> None:
    found = dict(zip(INSIDE, ask(*INSIDE), strict=True))
    wrong = {text: answer.text for text, answer in found.items() if answer.text != INSIDE[text]}
    assert len(wrong) <= (1 - RIGHT) * len(INSIDE), wrong
    assert {text: answer.unknown for text, answer in found.items() if answer.unknown} == {}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_the_run_has_never_seen_is_marked(name: str, ask: Ask) -> None:
    text, words = OUTSIDE[name]
    (answer,) = ask(text)
    assert answer.warning
    assert set(words) <= set(answer.unknown)


def test_what_a_translation_leaves_out_is_told(service: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    translator = regard.load("demo")
    found = {text: [each.word for each in translator.translate(text).omitted] for text in (*LEFT_OUT, *INSIDE)}
    assert {text: words for text, words in found.items() if words} == LEFT_OUT
    for text, words in LEFT_OUT.items():
        assert cli(["translate", "demo", "--", text]) == 0
        assert capsys.readouterr().err == f"seems to leave out: {', '.join(words)}\n"
        body = {"run": "demo", "texts": [text], "omitted": True}
        (answer,) = service.post("/api/v1/translate", json=body).json()["translations"]
        assert [text[each["start"] : each["end"]] for each in answer["omitted"]] == words
        (answer,) = service.post("/api/v1/translate", json={**body, "omitted": False}).json()["translations"]
        assert answer["omitted"] == []


def test_lines_of_a_file_are_asked_for_what_they_leave_out_on_request(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "lines.txt").write_text("I gave it to him.\n", encoding="utf-8")
    assert cli(["translate", "demo", "--file", str(tmp_path / "lines.txt")]) == 0
    assert capsys.readouterr().err == ""
    assert cli(["translate", "demo", "--file", str(tmp_path / "lines.txt"), "--show", "doubt", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "line 1: seems to leave out: him\n"
    assert json.loads(captured.out)["omitted"] == [{"start": 13, "end": 16, "word": "him"}]


def test_a_dash_is_stdout_where_something_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("It rained.\n")
    (tmp_path / "in.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nIt rained.\n")
    for name in ("in.txt", "in.srt"):
        assert cli(["translate", "demo", "--file", name, "--out", "-", "--device", "cpu"]) == 0
        assert "Il a plu." in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "in.srt"}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_word_comes_through(name: str, ask: Ask) -> None:
    text, kept = KEPT[name]
    assert kept in ask(text)[0].text


def test_nothing_stays_nothing(ask: Ask) -> None:
    assert ask("") == [Answer("", "", ())]


def test_a_page_of_5000_characters_is_translated_sentence_by_sentence(ask: Ask) -> None:
    one, other = "The cat slept. ", "Le chat a dormi. "
    count = 5000 // len(one)
    assert ask((one * count).strip())[0].text == (other * count).strip()


def test_tags_stay_where_they_are(service: TestClient) -> None:
    asked = {"q": "<p>The <b>black</b> cat slept.</p>", "source": "en", "target": "fr", "format": "html"}
    answer = service.post("/translate", json=asked)
    assert answer.json()["translatedText"] == "<p>Le chat <b>noir</b> a dormi.</p>"


def test_no_text_stands_twice_among_the_best_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["translate", "demo", "The cat slept. The king", "--nbest", "6"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert found[0] == "Le chat a dormi. Le roi"
    assert len(found) == len(set(found)) > 3
