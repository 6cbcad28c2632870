"""Word forms by rule, against forms looked up by hand."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from regard.fable.forms import english, french, hindi
from regard.fable.lexicon import load

LEXICON = load()
ADJECTIVES = {adjective.name: adjective for adjective in LEXICON.adjectives}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cat", "cats"),
        ("box", "boxes"),
        ("witch", "witches"),
        ("city", "cities"),
        ("toy", "toys"),
        ("cry", "cries"),
    ],
)
def test_an_english_word_takes_its_s(word: str, expected: str) -> None:
    assert english.add_s(word) == expected


@pytest.mark.parametrize(
    ("base", "past"), [("help", "helped"), ("chase", "chased"), ("cry", "cried"), ("stay", "stayed")]
)
def test_a_regular_english_past_ends_in_ed(base: str, past: str) -> None:
    assert english.past(base) == past


@pytest.mark.parametrize(
    ("adjective", "words"),
    [
        ("big", "bigger"), ("small", "smaller"), ("nice", "nicer"), ("happy", "happier"), ("thin", "thinner"),
        ("good", "better"), ("bad", "worse"), ("slow", "slower"), ("gentle", "gentler"), ("quiet", "quieter"),
        ("famous", "more famous"), ("polite", "more polite"), ("comfortable", "more comfortable"),
    ],
)  # fmt: skip
def test_an_english_adjective_is_compared_with_er_or_with_more(adjective: str, words: str) -> None:
    assert " ".join(english.comparative(adjective)) == words


def test_a_past_participle_is_the_past_unless_the_table_has_another() -> None:
    forms = {verb.english: verb.participle for verb in load().verbs}
    assert (forms["eat"], forms["see"], forms["go"], forms["come"]) == ("eaten", "seen", "gone", "come")
    assert (forms["buy"], forms["help"], forms["read"]) == ("bought", "helped", "read")


@pytest.mark.parametrize(
    ("base", "progressive"),
    [
        ("eat", "eating"),
        ("chase", "chasing"),
        ("run", "running"),
        ("begin", "beginning"),
        ("open", "opening"),
        ("mix", "mixing"),
        ("play", "playing"),
        ("lie", "lying"),
        ("flee", "fleeing"),
    ],
)
def test_an_english_verb_takes_its_ing(base: str, progressive: str) -> None:
    assert LEXICON.verb(base).progressive == progressive


@pytest.mark.parametrize("verb", ["know", "love", "live", "see", "understand", "want"])
def test_what_is_a_state_or_a_perception_in_english_has_no_ing(verb: str) -> None:
    assert LEXICON.verb(verb).progressive == ""


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("cat", "a"),
        ("apple", "an"),
        ("honest", "an"),
        ("useful", "a"),
        ("useless", "a"),
        ("uncle", "an"),
        ("hungry", "a"),
    ],
)
def test_the_article_follows_the_sound(word: str, article: str) -> None:
    assert english.article(word) == article


@pytest.mark.parametrize(
    ("noun", "forms"),
    [
        ("mouse", ("mouse", "mice")),
        ("woman", ("woman", "women")),
        ("child", ("child", "children")),
        ("wolf", ("wolf", "wolves")),
        ("knife", ("knife", "knives")),
        ("thief", ("thief", "thieves")),
        ("mango", ("mango", "mangoes")),
    ],
)
def test_irregular_english_plurals_come_from_the_table(noun: str, forms: tuple[str, str]) -> None:
    assert LEXICON.noun(noun).english == forms


@pytest.mark.parametrize(
    ("noun", "singular", "plural", "feminine"),
    [
        ("cat", "chat", "chats", False),
        ("mouse", "souris", "souris", True),
        ("bear", "ours", "ours", False),
        ("bird", "oiseau", "oiseaux", False),
        ("horse", "cheval", "chevaux", False),
        ("owl", "hibou", "hiboux", False),
        ("nail#metal", "clou", "clous", False),
        ("hospital", "hôpital", "hôpitaux", False),
        ("newspaper", "journal", "journaux", False),
        ("egg", "œuf", "œufs", False),
        ("palace", "palais", "palais", False),
        ("seal#stamp", "sceau", "sceaux", False),
        ("bat#animal", "chauve-souris", "chauves-souris", True),
        ("ring", "bague", "bagues", True),
        ("clock", "horloge", "horloges", True),
    ],
)
def test_french_nouns_have_their_gender_and_plural(noun: str, singular: str, plural: str, feminine: bool) -> None:
    entry = LEXICON.noun(noun)
    assert (entry.french, entry.feminine_french) == ((singular, plural), feminine)


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("black", ("noir", "noirs", "noire", "noires")),
        ("white", ("blanc", "blancs", "blanche", "blanches")),
        ("old#person", ("vieux", "vieux", "vieille", "vieilles")),
        ("beautiful", ("beau", "beaux", "belle", "belles")),
        ("new", ("nouveau", "nouveaux", "nouvelle", "nouvelles")),
        ("happy", ("heureux", "heureux", "heureuse", "heureuses")),
        ("jealous", ("jaloux", "jaloux", "jalouse", "jalouses")),
        ("cruel", ("cruel", "cruels", "cruelle", "cruelles")),
        ("loyal", ("loyal", "loyaux", "loyale", "loyales")),
        ("blue", ("bleu", "bleus", "bleue", "bleues")),
        ("fresh", ("frais", "frais", "fraîche", "fraîches")),
        ("gray", ("gris", "gris", "grise", "grises")),
        ("kind", ("gentil", "gentils", "gentille", "gentilles")),
        ("dry", ("sec", "secs", "sèche", "sèches")),
        ("proud", ("fier", "fiers", "fière", "fières")),
        ("long", ("long", "longs", "longue", "longues")),
        ("fat", ("gros", "gros", "grosse", "grosses")),
        ("good", ("bon", "bons", "bonne", "bonnes")),
        ("sad", ("triste", "tristes", "triste", "tristes")),
        ("hungry", ("affamé", "affamés", "affamée", "affamées")),
    ],
)
def test_french_adjectives_agree(adjective: str, forms: tuple[str, str, str, str]) -> None:
    assert ADJECTIVES[adjective].french == forms


@pytest.mark.parametrize(
    ("verb", "present", "future", "participle"),
    [
        ("eat", ("mange", "mange", "mangent"), "mangera", "mangé"),
        ("buy", ("achète", "achète", "achètent"), "achètera", "acheté"),
        ("call", ("appelle", "appelle", "appellent"), "appellera", "appelé"),
        ("clean", ("nettoie", "nettoie", "nettoient"), "nettoiera", "nettoyé"),
        ("send", ("envoie", "envoie", "envoient"), "enverra", "envoyé"),
        ("protect", ("protège", "protège", "protègent"), "protégera", "protégé"),
        ("choose", ("choisis", "choisit", "choisissent"), "choisira", "choisi"),
        ("sell", ("vends", "vend", "vendent"), "vendra", "vendu"),
        ("see", ("vois", "voit", "voient"), "verra", "vu"),
        ("drink", ("bois", "boit", "boivent"), "boira", "bu"),
        ("open", ("ouvre", "ouvre", "ouvrent"), "ouvrira", "ouvert"),
        ("know", ("connais", "connaît", "connaissent"), "connaîtra", "connu"),
        ("fear", ("crains", "craint", "craignent"), "craindra", "craint"),
        ("write", ("écris", "écrit", "écrivent"), "écrira", "écrit"),
        ("run", ("cours", "court", "courent"), "courra", "couru"),
        ("sleep", ("dors", "dort", "dorment"), "dormira", "dormi"),
        ("come", ("viens", "vient", "viennent"), "viendra", "venu"),
        ("leave", ("pars", "part", "partent"), "partira", "parti"),
        ("pick", ("cueille", "cueille", "cueillent"), "cueillera", "cueilli"),
        ("disappear", ("disparais", "disparaît", "disparaissent"), "disparaîtra", "disparu"),
        ("laugh", ("ris", "rit", "rient"), "rira", "ri"),
        ("paint", ("peins", "peint", "peignent"), "peindra", "peint"),
    ],
)
def test_french_verbs_conjugate(verb: str, present: tuple[str, str, str], future: str, participle: str) -> None:
    forms = LEXICON.verb(verb).french
    assert (forms.present[:3], forms.future[1], forms.participle[0]) == (present, future, participle)


@pytest.mark.parametrize(
    ("verb", "we", "you"),
    [
        ("eat", "mangeons", "mangez"),
        ("throw", "lançons", "lancez"),
        ("buy", "achetons", "achetez"),
        ("call", "appelons", "appelez"),
        ("protect", "protégeons", "protégez"),
        ("choose", "choisissons", "choisissez"),
        ("drink", "buvons", "buvez"),
        ("see", "voyons", "voyez"),
        ("come", "venons", "venez"),
        ("flee", "fuyons", "fuyez"),
        ("take", "prenons", "prenez"),
        ("receive", "recevons", "recevez"),
        ("die", "mourons", "mourez"),
        ("make", "faisons", "faites"),
        ("go", "allons", "allez"),
        ("believe", "croyons", "croyez"),
        ("fear", "craignons", "craignez"),
        ("laugh", "rions", "riez"),
    ],
)
def test_french_says_we_and_you(verb: str, we: str, you: str) -> None:
    forms = LEXICON.verb(verb).french
    assert forms.present[3:] == (we, you)
    assert forms.future[3:] == (forms.future[0].removesuffix("ai") + "ons", forms.future[0].removesuffix("ai") + "ez")


@pytest.mark.parametrize(
    ("root", "first", "polite"),
    [
        ("देख", "देखूँगा", "देखिए"),
        ("खा", "खाऊँगा", "खाइए"),
        ("पी", "पिऊँगा", "पीजिए"),
        ("दे", "दूँगा", "दीजिए"),
        ("कर", "करूँगा", "कीजिए"),
        ("आ", "आऊँगा", "आइए"),
        ("छू", "छुऊँगा", "छुइए"),
        ("हो", "होऊँगा", "होइए"),
    ],
)
def test_hindi_says_what_i_will_do_and_what_you_are_asked_to_do(root: str, first: str, polite: str) -> None:
    forms = hindi.verb(root)
    assert normalize("NFC", forms.first_future) == normalize("NFC", first)
    assert normalize("NFC", forms.polite) == normalize("NFC", polite)
    assert forms.infinitive == (root + "ना", root + "ने", root + "नी", root + "नी")


@pytest.mark.parametrize(
    ("verb", "imperfect"),
    [
        ("love", ("aimais", "aimait", "aimaient", "aimions", "aimiez")),
        ("know", ("connaissais", "connaissait", "connaissaient", "connaissions", "connaissiez")),
        ("fear", ("craignais", "craignait", "craignaient", "craignions", "craigniez")),
        ("like#person", ("appréciais", "appréciait", "appréciaient", "appréciions", "appréciiez")),
        ("want", ("voulais", "voulait", "voulaient", "voulions", "vouliez")),
    ],
)
def test_a_state_has_the_imperfect_for_its_past(verb: str, imperfect: tuple[str, ...]) -> None:
    assert LEXICON.verb(verb).imperfect == imperfect


def test_an_event_has_no_imperfect() -> None:
    assert LEXICON.verb("eat").imperfect is None


def test_only_verbs_of_coming_and_going_take_etre() -> None:
    with_etre = {verb.name for verb in LEXICON.verbs if verb.with_etre}
    assert with_etre == {"arrive", "leave", "come", "go", "return", "fall", "stay", "die"}


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        ("le", "ours", ("l'ours",)),
        ("la", "école", ("l'école",)),
        ("le", "homme", ("l'homme",)),
        ("le", "hibou", ("le", "hibou")),
        ("le", "œuf", ("l'œuf",)),
        ("de", "le", ("du",)),
        ("de", "les", ("des",)),
        ("à", "le", ("au",)),
        ("à", "les", ("aux",)),
        ("de", "un", ("d'un",)),
        ("de", "l'ours", ("de", "l'ours")),
        ("que", "il", ("qu'il",)),
        ("je", "ai", ("j'ai",)),
        ("ne", "est", ("n'est",)),
        ("ce", "arbre", ("cet", "arbre")),
        ("ma", "école", ("mon", "école")),
        ("ma", "mère", ("ma", "mère")),
        ("le", "chat", ("le", "chat")),
    ],
)
def test_french_neighbours_meet(first: str, second: str, written: tuple[str, ...]) -> None:
    assert french.meet(first, second) == written


@pytest.mark.parametrize(
    ("noun", "direct", "oblique"),
    [
        ("boy", ("लड़का", "लड़के"), ("लड़के", "लड़कों")),
        ("house", ("घर", "घर"), ("घर", "घरों")),
        ("king", ("राजा", "राजा"), ("राजा", "राजाओं")),
        ("man", ("आदमी", "आदमी"), ("आदमी", "आदमियों")),
        ("bear", ("भालू", "भालू"), ("भालू", "भालुओं")),
        ("wolf", ("भेड़िया", "भेड़िए"), ("भेड़िए", "भेड़ियों")),
        ("brother", ("भाई", "भाई"), ("भाई", "भाइयों")),
        ("poet", ("कवि", "कवि"), ("कवि", "कवियों")),
        ("crow", ("कौआ", "कौए"), ("कौए", "कौओं")),
        ("girl", ("लड़की", "लड़कियाँ"), ("लड़की", "लड़कियों")),
        ("bird", ("चिड़िया", "चिड़ियाँ"), ("चिड़िया", "चिड़ियों")),
        ("book", ("किताब", "किताबें"), ("किताब", "किताबों")),
        ("poem", ("कविता", "कविताएँ"), ("कविता", "कविताओं")),
        ("kitchen", ("रसोई", "रसोइयाँ"), ("रसोई", "रसोइयों")),
        ("cow", ("गाय", "गायें"), ("गाय", "गायों")),
    ],
)
def test_hindi_nouns_decline(noun: str, direct: tuple[str, str], oblique: tuple[str, str]) -> None:
    entry = LEXICON.noun(noun)
    assert (entry.hindi, entry.oblique) == (nfc(direct), nfc(oblique))


@pytest.mark.parametrize(
    ("root", "perfective", "future"),
    [
        ("खा", ("खाया", "खाए", "खाई", "खाईं"), ("खाएगा", "खाएँगे", "खाएगी", "खाएँगी")),
        ("देख", ("देखा", "देखे", "देखी", "देखीं"), ("देखेगा", "देखेंगे", "देखेगी", "देखेंगी")),
        ("कर", ("किया", "किए", "की", "कीं"), ("करेगा", "करेंगे", "करेगी", "करेंगी")),
        ("दे", ("दिया", "दिए", "दी", "दीं"), ("देगा", "देंगे", "देगी", "देंगी")),
        ("पी", ("पिया", "पिए", "पी", "पीं"), ("पिएगा", "पिएँगे", "पिएगी", "पिएँगी")),
        ("छू", ("छुआ", "छुए", "छुई", "छुईं"), ("छुएगा", "छुएँगे", "छुएगी", "छुएँगी")),
        ("सो", ("सोया", "सोए", "सोई", "सोईं"), ("सोएगा", "सोएँगे", "सोएगी", "सोएँगी")),
        ("आ", ("आया", "आए", "आई", "आईं"), ("आएगा", "आएँगे", "आएगी", "आएँगी")),
        ("हो", ("हुआ", "हुए", "हुई", "हुईं"), ("होगा", "होंगे", "होगी", "होंगी")),
    ],
)
def test_hindi_verbs_inflect(root: str, perfective: tuple[str, ...], future: tuple[str, ...]) -> None:
    forms = hindi.verb(root)
    assert (forms.perfective, forms.future) == (perfective, future)
    assert forms.habitual == (root + "ता", root + "ते", root + "ती", root + "ती")


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("black", ("काला", "काले", "काली")),
        ("new", ("नया", "नए", "नई")),
        ("beautiful", ("सुंदर", "सुंदर", "सुंदर")),
        ("fresh", ("ताज़ा", "ताज़ा", "ताज़ा")),
        ("tired", ("थका हुआ", "थके हुए", "थकी हुई")),
    ],
)
def test_hindi_adjectives_agree(adjective: str, forms: tuple[str, str, str]) -> None:
    assert ADJECTIVES[adjective].hindi == nfc(forms)


def nfc(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(normalize("NFC", word) for word in words)
