"""Everyday sentences as people write them, built from grammar objects by hand: exactly so in French and in Hindi."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regard.fable.corpus import pools
from regard.fable.dates import day, hour, month, set_time, weekday, year
from regard.fable.invented import adjective, thing, titled
from regard.fable.lexicon import Phrase, load, proper
from regard.fable.sentence import compose
from regard.fable.syntax import (
    GENERIC,
    PARTITIVE,
    Adjunct,
    Being,
    Clause,
    Complement,
    Conjunction,
    NounPhrase,
    Person,
    Pronoun,
    Subject,
    Text,
)

LEXICON = load()
ADJECTIVES = {adjective.name: adjective for adjective in LEXICON.adjectives}
ADVERBS = {adverb.english: adverb for adverb in LEXICON.adverbs}
NARROW, WIDE = "\u202f", "\u00a0"


def np(noun: str, *adjectives: str, det: str = "the", plural: bool = False, own: bool = False) -> NounPhrase:
    words = tuple(ADJECTIVES[word] for word in adjectives)
    return NounPhrase(LEXICON.noun(noun), det, plural, words, own=own)


def name(word: str) -> NounPhrase:
    names = [*LEXICON.names, *(place.noun for place in LEXICON.places)]
    return NounPhrase(next(noun for noun in names if noun.name == word), "")


def whose(owner: NounPhrase, noun: str, *adjectives: str) -> NounPhrase:
    phrase = np(noun, *adjectives)
    phrase.owner, phrase.genitive = owner, True
    return phrase


def who(word: Person) -> Pronoun:
    return Pronoun(word)


def do(subject: Subject | None, verb: str, thing: Complement | None = None) -> Clause:
    irregular = {"have": LEXICON.have, "need": LEXICON.need}
    return Clause(subject, irregular.get(verb) or LEXICON.verb(verb), object=thing)


def now(subject: Subject | None, verb: str, thing: Complement | None = None) -> Clause:
    return a(do(subject, verb, thing), tense="present")


def doing(subject: Subject | None, verb: str, thing: NounPhrase | None = None) -> Clause:
    return a(now(subject, verb, thing), progressive=True)


def bare(noun: str, determiner: str = PARTITIVE, *, plural: bool = False) -> NounPhrase:
    return NounPhrase(LEXICON.noun(noun), determiner, plural)


def be(subject: Subject | None, quality: str) -> Clause:
    return Clause(subject, ADJECTIVES[quality], "present")


def at(preposition: str, phrase: NounPhrase) -> tuple[Adjunct, ...]:
    return (Adjunct(LEXICON.preposition(preposition), phrase),)


def place(word: str, *, to: bool = False) -> tuple[Adjunct, ...]:
    found = next(one for one in LEXICON.places if one.noun.name == word)
    return (Adjunct(found.towards if to else found.inside, NounPhrase(found.noun, "")),)


def a(clause: Clause, **changes: object) -> Clause:
    for field, value in changes.items():
        setattr(clause, field, value)
    return clause


def related(noun: str, clause: Clause, **changes: object) -> NounPhrase:
    head = np(noun)
    head.relative = a(clause, **changes)
    return head


def of(noun: str, owner: NounPhrase) -> NounPhrase:
    phrase = np(noun)
    phrase.owner = owner
    return phrase


def first(conjunction: Conjunction, condition: Clause, clause: Clause) -> Text:
    return Text([condition, clause], [conjunction], fronted=True, mark=".", capital=True)


def both(clause: Clause, verb: str, thing: NounPhrase | None = None) -> Text:
    return Text([clause, a(do(clause.subject, verb, thing), shared=True)], ["and"], mark=".", capital=True)


def shared(subject: Subject, verb: str) -> Clause:
    return a(now(subject, verb), shared=True)


def rain(**changes: object) -> Clause:
    return a(Clause(who("it"), LEXICON.weather[0]), **changes)


def t(*clauses: Clause | Being, mark: str = ".") -> Text:
    return Text(list(clauses), mark=mark, capital=True)


def phrase(english: str, *filled: str) -> Text:
    found: Phrase = next(one for one in LEXICON.phrases if " ".join(one.english) == english)
    found = found.filled(*filled) if filled else found
    return Text([], phrase=found, mark=found.mark, capital=True)


def row(kind: str, word: str) -> dict[str, str]:
    return next(one for one in LEXICON.calendar[kind] if one["english"] == word)


def adverb(word: str) -> object:
    return ADVERBS[word]


MONDAY = weekday(row("weekday", "Monday"))
CASES: list[tuple[Callable[[], Text], str, str, str]] = [
    # ── Capitals, marks, commas
    (
        lambda: t(do(np("cat", "black"), "eat#prey", np("mouse"))),
        "The black cat ate the mouse.",
        "Le chat noir a mangé la souris.",
        "काली बिल्ली ने चूहे को खाया।",
    ),
    (
        lambda: t(a(do(np("dog"), "sleep"), question=True), mark="?"),
        "Did the dog sleep?",
        "Est-ce que le chien a dormi ?",
        "क्या कुत्ता सोया?",
    ),
    (
        lambda: t(a(do(np("king"), "laugh"), time=adverb("yesterday"), time_first=True)),
        "Yesterday, the king laughed.",
        "Hier, le roi a ri.",
        "कल राजा हँसा।",
    ),
    (
        lambda: Text([do(np("cat"), "sleep"), do(np("dog"), "run")], ["but"], mark=".", capital=True),
        "The cat slept, but the dog ran.",
        "Le chat a dormi, mais le chien a couru.",
        "बिल्ली सोई, लेकिन कुत्ता दौड़ा।",
    ),
    (
        lambda: Text([do(np("cat"), "sleep"), do(np("dog"), "run")], ["but"]),
        "the cat slept but the dog ran",
        "le chat a dormi mais le chien a couru",
        "बिल्ली सोई लेकिन कुत्ता दौड़ा",
    ),
    (
        lambda: Text([do(np("school"), "disappear")], mark="!", capital=True, case="upper"),
        "THE SCHOOL DISAPPEARED!",
        "L'ÉCOLE A DISPARU !",
        "स्कूल ग़ायब हुआ!",
    ),
    (lambda: t(do(np("bear"), "sleep"), mark="..."), "The bear slept...", "L'ours a dormi...", "भालू सोया..."),
    (
        lambda: Text([do(name("Mary"), "sleep")], case="lower"),
        "mary slept",
        "mary a dormi",
        "मैरी सोई",
    ),
    # ── Contractions
    (
        lambda: t(a(do(np("dog"), "eat", np("honey")), negation="not", contracted=True)),
        "The dog didn't eat the honey.",
        "Le chien n'a pas mangé le miel.",
        "कुत्ते ने शहद नहीं खाया।",
    ),
    (
        lambda: t(a(do(who("he"), "come"), tense="future", negation="not", contracted=True)),
        "He won't come.",
        "Il ne viendra pas.",
        "वह नहीं आएगा।",
    ),
    (
        lambda: t(a(do(who("i"), "drink", np("milk")), tense="present", negation="not", contracted=True)),
        "I don't drink the milk.",
        "Je ne bois pas le lait.",
        "मैं दूध नहीं पीता हूँ।",
    ),
    (lambda: t(a(be(who("i"), "tired"), contracted=True)), "I'm tired.", "Je suis fatigué.", "मैं थका हुआ हूँ।"),
    (
        lambda: t(a(be(who("i"), "tired"), contracted=True, negation="not")),
        "I'm not tired.",
        "Je ne suis pas fatigué.",
        "मैं थका हुआ नहीं हूँ।",
    ),
    (lambda: t(a(be(who("she"), "sad"), contracted=True)), "She's sad.", "Elle est triste.", "वह उदास है।"),
    (
        lambda: t(a(be(np("soup"), "hot"), contracted=True, negation="not")),
        "The soup isn't hot.",
        "La soupe n'est pas chaude.",
        "सूप गरम नहीं है।",
    ),
    (
        lambda: t(a(do(who("we"), "stay"), tense="future", contracted=True)),
        "We'll stay.",
        "Nous resterons.",
        "हम रुकेंगे।",
    ),
    (
        lambda: t(a(be(who("you"), "honest"), contracted=True)),
        "You're honest.",
        "Vous êtes honnête.",
        "आप ईमानदार हैं।",
    ),
    # ── I, you, we, they
    (lambda: t(do(who("we"), "arrive")), "We arrived.", "Nous sommes arrivés.", "हम पहुँचे।"),
    (
        lambda: t(do(who("you"), "see", np("lion"))),
        "You saw the lion.",
        "Vous avez vu le lion.",
        "आपने शेर को देखा।",
    ),
    (
        lambda: t(a(do(who("we"), "eat", np("bread")), tense="present")),
        "We eat the bread.",
        "Nous mangeons le pain.",
        "हम रोटी खाते हैं।",
    ),
    (
        lambda: t(a(do(who("i"), "open", np("door")), tense="future")),
        "I will open the door.",
        "J'ouvrirai la porte.",
        "मैं दरवाज़ा खोलूँगा।",
    ),
    (
        lambda: t(a(do(who("they"), "sing", np("song", det="a")), tense="future")),
        "They will sing a song.",
        "Ils chanteront une chanson.",
        "वे एक गीत गाएँगे।",
    ),
    # ── my, your, his, her, our, their
    (
        lambda: t(do(np("sister", det="my"), "find", np("key", det="your"))),
        "My sister found your key.",
        "Ma sœur a trouvé votre clé.",
        "मेरी बहन ने आपकी चाबी पाई।",
    ),
    (
        lambda: t(do(np("king"), "find", np("sword", det="his", own=True))),
        "The king found his sword.",
        "Le roi a trouvé son épée.",
        "राजा ने अपनी तलवार पाई।",
    ),
    (
        lambda: t(do(np("friend", det="her"), "cry")),
        "Her friend cried.",
        "Son ami a pleuré.",
        "उसका दोस्त रोया।",
    ),
    (
        lambda: t(a(do(who("we"), "sell", np("house", det="our", own=True)), tense="future")),
        "We will sell our house.",
        "Nous vendrons notre maison.",
        "हम अपना घर बेचेंगे।",
    ),
    (
        lambda: t(do(np("dog", det="their", plural=True), "run")),
        "Their dogs ran.",
        "Leurs chiens ont couru.",
        "उनके कुत्ते दौड़े।",
    ),
    (
        lambda: t(do(who("i"), "drink", np("water", det="some"))),
        "I drank some water.",
        "J'ai bu de l'eau.",
        "मैंने थोड़ा पानी पिया।",
    ),
    # ── have
    (
        lambda: t(a(do(who("i"), "have", np("cat", det="a")), tense="present")),
        "I have a cat.",
        "J'ai un chat.",
        "मेरे पास एक बिल्ली है।",
    ),
    (
        lambda: t(a(do(who("she"), "have", np("dog", det="two", plural=True)), tense="present")),
        "She has two dogs.",
        "Elle a deux chiens.",
        "उसके पास दो कुत्ते हैं।",
    ),
    (
        lambda: t(a(do(who("we"), "have", np("car", det="a")), tense="present", negation="not", contracted=True)),
        "We don't have a car.",
        "Nous n'avons pas de voiture.",
        "हमारे पास कार नहीं है।",
    ),
    (
        lambda: t(do(np("king"), "have", np("crown", det="a"))),
        "The king had a crown.",
        "Le roi avait une couronne.",
        "राजा के पास एक मुकुट था।",
    ),
    (
        lambda: t(a(do(who("you"), "have", np("key")), tense="present", question=True), mark="?"),
        "Do you have the key?",
        "Est-ce que vous avez la clé ?",
        "क्या आपके पास चाबी है?",
    ),
    # ── be
    (
        lambda: t(Being("job", who("he"), np("doctor", det="a"))),
        "He is a doctor.",
        "Il est médecin.",
        "वह डॉक्टर है।",
    ),
    (
        lambda: t(Being("job", name("Anna"), np("queen", det="a"), negation="not", contracted=True)),
        "Anna isn't a queen.",
        "Anna n'est pas reine.",
        "अन्ना रानी नहीं है।",
    ),
    (
        lambda: t(Being("noun", who("he"), np("man", det="a"), tense="past")),
        "He was a man.",
        "C'était un homme.",
        "वह एक आदमी था।",
    ),
    (
        lambda: t(Being("noun", who("she"), np("witch", det="a"), negation="not")),
        "She is not a witch.",
        "Ce n'est pas une sorcière.",
        "वह एक जादूगरनी नहीं है।",
    ),
    (
        lambda: t(Being("noun", np("king"), np("thief", det="a"))),
        "The king is a thief.",
        "Le roi est un voleur.",
        "राजा एक चोर है।",
    ),
    (
        lambda: t(Being("this", complement=np("house", det="a"))),
        "This is a house.",
        "C'est une maison.",
        "यह एक घर है।",
    ),
    (
        lambda: t(Being("this", complement=np("brother", det="my"), that=True)),
        "That is my brother.",
        "C'est mon frère.",
        "वह मेरा भाई है।",
    ),
    (
        lambda: t(Being("this", complement=np("book", det="my", plural=True))),
        "These are my books.",
        "Ce sont mes livres.",
        "ये मेरी किताबें हैं।",
    ),
    (
        lambda: t(Being("this", complement=np("cat", det="a"), negation="not")),
        "This is not a cat.",
        "Ce n'est pas un chat.",
        "यह एक बिल्ली नहीं है।",
    ),
    (
        lambda: t(Being("this", complement=np("hotel", det="a"), question=True), mark="?"),
        "Is this a hotel?",
        "Est-ce que c'est un hôtel ?",
        "क्या यह एक होटल है?",
    ),
    (
        lambda: t(Being("there", complement=np("cat", det="a"), adjuncts=at("in", np("garden")))),
        "There is a cat in the garden.",
        "Il y a un chat dans le jardin.",
        "बगीचे में एक बिल्ली है।",
    ),
    (
        lambda: t(
            Being("there", complement=np("bird", det="three", plural=True), tense="past", adjuncts=at("on", np("roof")))
        ),
        "There were three birds on the roof.",
        "Il y avait trois oiseaux sur le toit.",
        "छत पर तीन चिड़ियाँ थीं।",
    ),
    (
        lambda: t(
            Being(
                "there",
                complement=np("tree", det="a"),
                negation="not",
                contracted=True,
                adjuncts=at("in", np("park")),
            )
        ),
        "There isn't a tree in the park.",
        "Il n'y a pas d'arbre dans le parc.",
        "पार्क में पेड़ नहीं है।",
    ),
    (
        lambda: t(Being("there", complement=np("station", det="a"), question=True), mark="?"),
        "Is there a station?",
        "Est-ce qu'il y a une gare ?",
        "क्या एक स्टेशन है?",
    ),
    (
        lambda: t(Being("place", np("book"), adjuncts=at("on", np("table")))),
        "The book is on the table.",
        "Le livre est sur la table.",
        "किताब मेज़ पर है।",
    ),
    # ── Questions
    (
        lambda: t(do(who("who"), "eat", np("cheese")), mark="?"),
        "Who ate the cheese?",
        "Qui a mangé le fromage ?",
        "किसने पनीर खाया?",
    ),
    (
        lambda: t(a(do(np("cat"), "eat"), question=True, asked="what"), mark="?"),
        "What did the cat eat?",
        "Qu'est-ce que le chat a mangé ?",
        "बिल्ली ने क्या खाया?",
    ),
    (
        lambda: t(a(do(np("king"), "see"), question=True, asked="who"), mark="?"),
        "Who did the king see?",
        "Qui est-ce que le roi a vu ?",
        "राजा ने किसे देखा?",
    ),
    (
        lambda: t(Being("where", np("book")), mark="?"),
        "Where is the book?",
        "Où est le livre ?",
        "किताब कहाँ है?",
    ),
    (
        lambda: t(a(do(np("dog"), "sleep"), question=True, asked="where"), mark="?"),
        "Where did the dog sleep?",
        "Où est-ce que le chien a dormi ?",
        "कुत्ता कहाँ सोया?",
    ),
    (
        lambda: t(a(be(np("bear"), "tired"), question=True, asked="why"), mark="?"),
        "Why is the bear tired?",
        "Pourquoi est-ce que l'ours est fatigué ?",
        "भालू क्यों थका हुआ है?",
    ),
    (
        lambda: t(a(do(np("train"), "arrive"), tense="future", question=True, asked="when"), mark="?"),
        "When will the train arrive?",
        "Quand est-ce que le train arrivera ?",
        "रेलगाड़ी कब पहुँचेगी?",
    ),
    # ── can, must, want to
    (
        lambda: t(a(do(who("i"), "eat", np("apple", det="a")), tense="present", modal="want")),
        "I want to eat an apple.",
        "Je veux manger une pomme.",
        "मैं एक सेब खाना चाहता हूँ।",
    ),
    (
        lambda: t(a(do(who("you"), "open", np("door")), tense="present", modal="can")),
        "You can open the door.",
        "Vous pouvez ouvrir la porte.",
        "आप दरवाज़ा खोल सकते हैं।",
    ),
    (
        lambda: t(a(do(who("we"), "leave"), tense="present", modal="must")),
        "We must leave.",
        "Nous devons partir.",
        "हमें निकलना चाहिए।",
    ),
    (
        lambda: t(a(do(np("boy"), "swim"), tense="present", modal="can", negation="not", contracted=True)),
        "The boy can't swim.",
        "Le garçon ne peut pas nager.",
        "लड़का नहीं तैर सकता है।",
    ),
    (
        lambda: t(a(do(np("boy"), "swim"), tense="present", modal="can", negation="not")),
        "The boy cannot swim.",
        "Le garçon ne peut pas nager.",
        "लड़का नहीं तैर सकता है।",
    ),
    (
        lambda: t(a(do(np("girl"), "dance"), modal="want", negation="not", contracted=True)),
        "The girl didn't want to dance.",
        "La fille ne voulait pas danser.",
        "लड़की नाचना नहीं चाहती थी।",
    ),
    (
        lambda: t(a(do(who("he"), "eat", np("bread")), tense="present", modal="must")),
        "He must eat the bread.",
        "Il doit manger le pain.",
        "उसे रोटी खानी चाहिए।",
    ),
    # ── Commands
    (
        lambda: t(a(do(who("you"), "open", np("door")), tense="present", command=True), mark="!"),
        "Open the door!",
        "Ouvrez la porte !",
        "दरवाज़ा खोलिए!",
    ),
    (
        lambda: t(a(do(who("you"), "close", np("window")), tense="present", command=True, please=True)),
        "Please close the window.",
        "Fermez la fenêtre, s'il vous plaît.",
        "कृपया खिड़की बंद कीजिए।",
    ),
    (
        lambda: t(
            a(do(who("you"), "wake", np("child")), tense="present", command=True, negation="not", contracted=True),
            mark="!",
        ),
        "Don't wake the child!",
        "Ne réveillez pas l'enfant !",
        "बच्चे को मत जगाइए!",
    ),
    # ── Names and places
    (
        lambda: t(do(whose(name("Mary"), "brother"), "see", whose(name("Anna"), "house", "big"))),
        "Mary's brother saw Anna's big house.",
        "Le frère de Mary a vu la grande maison d'Anna.",
        "मैरी के भाई ने अन्ना का बड़ा घर देखा।",
    ),
    (
        lambda: t(a(do(np("queen"), "give", np("ring", det="a")), recipient=name("Ravi"))),
        "The queen gave a ring to Ravi.",
        "La reine a donné une bague à Ravi.",
        "रानी ने रवि को एक अँगूठी दी।",
    ),
    (
        lambda: t(a(do(name("Emma"), "travel"), adjuncts=place("London", to=True))),
        "Emma traveled to London.",
        "Emma a voyagé à Londres.",
        "एमा ने लंदन यात्रा की।",
    ),
    (
        lambda: t(a(do(name("Omar"), "work"), tense="present", adjuncts=place("Japan"))),
        "Omar works in Japan.",
        "Omar travaille au Japon.",
        "उमर जापान में काम करता है।",
    ),
    (
        lambda: t(Being("where", name("Tom"), tense="past"), mark="?"),
        "Where was Tom?",
        "Où était Tom ?",
        "टॉम कहाँ था?",
    ),
    # ── Numbers and dates
    (
        lambda: t(a(do(np("king"), "have", np("horse", det="12", plural=True)), tense="present")),
        "The king has 12 horses.",
        "Le roi a 12 chevaux.",
        "राजा के पास 12 घोड़े हैं।",
    ),
    (
        lambda: t(do(who("i"), "count", np("coin", det="twenty", plural=True))),
        "I counted twenty coins.",
        "J'ai compté vingt pièces.",
        "मैंने बीस सिक्के गिने।",
    ),
    (
        lambda: t(a(do(np("guest"), "arrive"), time=MONDAY)),
        "The guest arrived on Monday.",
        "L'invité est arrivé lundi.",
        "मेहमान सोमवार को पहुँचा।",
    ),
    (
        lambda: t(a(do(np("guest"), "arrive"), time=MONDAY, time_first=True)),
        "On Monday, the guest arrived.",
        "Lundi, l'invité est arrivé.",
        "सोमवार को मेहमान पहुँचा।",
    ),
    (
        lambda: t(a(do(who("she"), "leave"), time=day(3, row("month", "May")))),
        "She left on 3 May.",
        "Elle est partie le 3 mai.",
        "वह 3 मई को निकली।",
    ),
    (
        lambda: t(a(do(who("we"), "come"), time=year(1998))),
        "We came in 1998.",
        "Nous sommes venus en 1998.",
        "हम 1998 में आए।",
    ),
    (
        lambda: t(a(do(who("he"), "sleep"), time=month(row("month", "August")))),
        "He slept in August.",
        "Il a dormi en août.",
        "वह अगस्त में सोया।",
    ),
    (
        lambda: t(a(do(np("train"), "leave"), tense="future", time=hour("5"))),
        "The train will leave at 5 o'clock.",
        "Le train partira à 5 heures.",
        "रेलगाड़ी 5 बजे निकलेगी।",
    ),
    # ── Speech and answers
    (
        lambda: Text([do(np("cat"), "sleep")], speech=(np("king"), "say"), mark=".", capital=True),
        'The king said, "The cat slept."',
        f"Le roi a dit{WIDE}: «{NARROW}Le chat a dormi.{NARROW}»",
        'राजा ने कहा, "बिल्ली सोई।"',
    ),
    (
        lambda: Text([Being("where", np("key"))], speech=(who("she"), "ask"), mark="?", capital=True),
        'She asked, "Where is the key?"',
        f"Elle a demandé{WIDE}: «{NARROW}Où est la clé{NARROW}?{NARROW}»",
        'उसने पूछा, "चाबी कहाँ है?"',
    ),
    (
        lambda: Text([do(who("they"), "leave")], opener="yes", mark=".", capital=True),
        "Yes, they left.",
        "Oui, ils sont partis.",
        "हाँ, वे निकले।",
    ),
    # ── Set phrases
    (lambda: phrase("how are you"), "How are you?", "Comment allez-vous ?", "आप कैसे हैं?"),
    (lambda: phrase("I 'm fine , thank you"), "I'm fine, thank you.", "Je vais bien, merci.", "मैं ठीक हूँ, धन्यवाद।"),
    (
        lambda: phrase("my name is NAME", "Priya", "Priya", "प्रिया"),
        "My name is Priya.",
        "Je m'appelle Priya.",
        "मेरा नाम प्रिया है।",
    ),
    (
        lambda: phrase("I am from PLACE", "Athens", "Athènes", "एथेंस"),
        "I am from Athens.",
        "Je viens d'Athènes.",
        "मैं एथेंस से हूँ।",
    ),
    (lambda: phrase("he is hungry"), "He is hungry.", "Il a faim.", "उसे भूख लगी है।"),
    (
        lambda: phrase("it is HOUR o'clock", "five", "cinq", "पाँच"),
        "It is five o'clock.",
        "Il est cinq heures.",
        "पाँच बजे हैं।",
    ),
    # ── I and you at present
    (
        lambda: t(a(now(who("you"), "love", np("sea")), question=True), mark="?"),
        "Do you love the sea?",
        "Est-ce que vous aimez la mer ?",
        "क्या आप समुद्र से प्यार करते हैं?",
    ),
    (
        lambda: t(now(who("we"), "like", np("garden"))),
        "We like the garden.",
        "Nous aimons le jardin.",
        "हम बगीचा पसंद करते हैं।",
    ),
    (
        lambda: t(now(who("they"), "like#person", name("Anna"))),
        "They like Anna.",
        "Ils apprécient Anna.",
        "वे अन्ना को पसंद करते हैं।",
    ),
    (
        lambda: t(a(now(who("she"), "want", np("dress")), negation="not", contracted=True)),
        "She doesn't want the dress.",
        "Elle ne veut pas la robe.",
        "वह पोशाक नहीं चाहती है।",
    ),
    (
        lambda: t(a(now(who("they"), "live"), adjuncts=place("Lisbon"))),
        "They live in Lisbon.",
        "Ils habitent à Lisbonne.",
        "वे लिस्बन में रहते हैं।",
    ),
    (
        lambda: t(now(who("i"), "need", np("key", det="a"))),
        "I need a key.",
        "J'ai besoin d'une clé.",
        "मुझे एक चाबी की ज़रूरत है।",
    ),
    (
        lambda: t(a(now(who("we"), "need", np("doctor")), negation="not", contracted=True)),
        "We don't need the doctor.",
        "Nous n'avons pas besoin du médecin.",
        "हमें डॉक्टर की ज़रूरत नहीं है।",
    ),
    (
        lambda: t(a(do(np("king"), "need", bare("money")), tense="past")),
        "The king needed money.",
        "Le roi avait besoin d'argent.",
        "राजा को पैसे की ज़रूरत थी।",
    ),
    (
        lambda: t(a(now(who("you"), "read", bare("book", plural=True)), question=True), mark="?"),
        "Do you read books?",
        "Est-ce que vous lisez des livres ?",
        "क्या आप किताबें पढ़ते हैं?",
    ),
    # ── What English opens with nothing
    (
        lambda: t(now(who("i"), "love", bare("music", GENERIC))),
        "I love music.",
        "J'aime la musique.",
        "मैं संगीत से प्यार करता हूँ।",
    ),
    (
        lambda: t(a(now(who("i"), "like", bare("apple", GENERIC, plural=True)), negation="not", contracted=True)),
        "I don't like apples.",
        "Je n'aime pas les pommes.",
        "मैं सेब पसंद नहीं करता हूँ।",
    ),
    (
        lambda: t(a(now(who("you"), "drink", bare("coffee")), question=True), mark="?"),
        "Do you drink coffee?",
        "Est-ce que vous buvez du café ?",
        "क्या आप कॉफ़ी पीते हैं?",
    ),
    (
        lambda: t(now(name("Mary"), "buy", bare("book", plural=True))),
        "Mary buys books.",
        "Mary achète des livres.",
        "मैरी किताबें ख़रीदती है।",
    ),
    (
        lambda: t(a(now(who("we"), "eat", bare("meat")), negation="not", contracted=True)),
        "We don't eat meat.",
        "Nous ne mangeons pas de viande.",
        "हम मांस नहीं खाते हैं।",
    ),
    (
        lambda: t(do(who("i"), "drink", bare("water"))),
        "I drank water.",
        "J'ai bu de l'eau.",
        "मैंने पानी पिया।",
    ),
    # ── The progressive
    (
        lambda: t(a(doing(who("i"), "go"), adjuncts=at("to", np("market")))),
        "I am going to the market.",
        "Je vais au marché.",
        "मैं बाज़ार जा रहा हूँ।",
    ),
    (
        lambda: t(a(doing(who("i"), "go"), adjuncts=at("to", np("school")), contracted=True)),
        "I'm going to the school.",
        "Je vais à l'école.",
        "मैं स्कूल जा रहा हूँ।",
    ),
    (
        lambda: t(doing(who("she"), "eat", np("apple", det="a"))),
        "She is eating an apple.",
        "Elle mange une pomme.",
        "वह एक सेब खा रही है।",
    ),
    (
        lambda: t(doing(np("child", plural=True), "play")),
        "The children are playing.",
        "Les enfants jouent.",
        "बच्चे खेल रहे हैं।",
    ),
    (
        lambda: t(doing(np("girl", plural=True), "swim")),
        "The girls are swimming.",
        "Les filles nagent.",
        "लड़कियाँ तैर रही हैं।",
    ),
    (
        lambda: t(a(doing(who("they"), "look+for", np("key")), contracted=True)),
        "They're looking for the key.",
        "Ils cherchent la clé.",
        "वे चाबी ढूँढ रहे हैं।",
    ),
    (
        lambda: t(a(doing(who("he"), "work"), negation="not", contracted=True)),
        "He isn't working.",
        "Il ne travaille pas.",
        "वह काम नहीं कर रहा है।",
    ),
    (
        lambda: t(a(doing(who("i"), "sleep"), negation="not", contracted=True)),
        "I'm not sleeping.",
        "Je ne dors pas.",
        "मैं नहीं सो रहा हूँ।",
    ),
    (
        lambda: t(a(doing(who("you"), "read", np("newspaper")), question=True), mark="?"),
        "Are you reading the newspaper?",
        "Est-ce que vous lisez le journal ?",
        "क्या आप अख़बार पढ़ रहे हैं?",
    ),
    (
        lambda: t(a(doing(who("you"), "go"), question=True, asked="where"), mark="?"),
        "Where are you going?",
        "Où est-ce que vous allez ?",
        "आप कहाँ जा रहे हैं?",
    ),
    (
        lambda: t(doing(who("who"), "sing"), mark="?"),
        "Who is singing?",
        "Qui chante ?",
        "कौन गा रहा है?",
    ),
    (
        lambda: t(a(doing(np("king"), "give", np("ring")), recipient=name("Ravi"))),
        "The king is giving the ring to Ravi.",
        "Le roi donne la bague à Ravi.",
        "राजा रवि को अँगूठी दे रहा है।",
    ),
    # ── Pronouns as objects
    (
        lambda: t(do(who("she"), "see", who("he"))),
        "She saw him.",
        "Elle l'a vu.",
        "उसने उसे देखा।",
    ),
    (
        lambda: t(a(do(np("king"), "see", who("she")), negation="not", contracted=True)),
        "The king didn't see her.",
        "Le roi ne l'a pas vue.",
        "राजा ने उसे नहीं देखा।",
    ),
    (
        lambda: t(now(who("i"), "love", who("they"))),
        "I love them.",
        "Je les aime.",
        "मैं उनसे प्यार करता हूँ।",
    ),
    (
        lambda: t(a(now(who("you"), "help", who("i")), modal="can", question=True), mark="?"),
        "Can you help me?",
        "Est-ce que vous pouvez m'aider ?",
        "क्या आप मेरी मदद कर सकते हैं?",
    ),
    (
        lambda: t(a(now(who("you"), "help", who("we")), command=True), mark="!"),
        "Help us!",
        "Aidez-nous !",
        "हमारी मदद कीजिए!",
    ),
    (
        lambda: t(a(now(who("you"), "give", np("key")), recipient=who("i"), dative=True, command=True)),
        "Give me the key.",
        "Donnez-moi la clé.",
        "मुझे चाबी दीजिए।",
    ),
    (
        lambda: t(a(now(who("you"), "wake", who("he")), negation="not", contracted=True, command=True)),
        "Don't wake him.",
        "Ne le réveillez pas.",
        "उसे मत जगाइए।",
    ),
    (
        lambda: t(a(do(who("she"), "give", np("apple", det="a")), recipient=who("he"), dative=True)),
        "She gave him an apple.",
        "Elle lui a donné une pomme.",
        "उसने उसे एक सेब दिया।",
    ),
    (
        lambda: t(a(do(np("boy"), "send", np("flower", det="a")), recipient=np("girl"), dative=True)),
        "The boy sent the girl a flower.",
        "Le garçon a envoyé une fleur à la fille.",
        "लड़के ने लड़की को एक फूल भेजा।",
    ),
    # ── was eating, has eaten
    (
        lambda: t(a(do(np("man", "old#person"), "read", np("book", det="a")), progressive=True)),
        "The old man was reading a book.",
        "Le vieil homme lisait un livre.",
        "बूढ़ा आदमी एक किताब पढ़ रहा था।",
    ),
    (
        lambda: t(a(do(np("girl", plural=True), "sleep"), progressive=True, negation="not", contracted=True)),
        "The girls weren't sleeping.",
        "Les filles ne dormaient pas.",
        "लड़कियाँ नहीं सो रही थीं।",
    ),
    (
        lambda: t(a(do(who("he"), "see", np("sea")), perfect=True, negation="never")),
        "He has never seen the sea.",
        "Il n'a jamais vu la mer.",
        "उसने कभी समुद्र नहीं देखा है।",
    ),
    (
        lambda: t(a(do(who("they"), "arrive"), perfect=True, contracted=True)),
        "They've arrived.",
        "Ils sont arrivés.",
        "वे पहुँचे हैं।",
    ),
    (
        lambda: t(
            a(do(np("girl", plural=True), "eat", np("pear", plural=True)), perfect=True, question=True), mark="?"
        ),
        "Have the girls eaten the pears?",
        "Est-ce que les filles ont mangé les poires ?",
        "क्या लड़कियों ने नाशपातियाँ खाई हैं?",
    ),
    (
        lambda: t(a(now(who("you"), "read", np("book")), modal="should")),
        "You should read the book.",
        "Vous devriez lire le livre.",
        "आपको किताब पढ़नी चाहिए।",
    ),
    (
        lambda: t(a(do(who("she"), "swim"), modal="could", negation="not", contracted=True)),
        "She couldn't swim.",
        "Elle ne pouvait pas nager.",
        "वह नहीं तैर सकती थी।",
    ),
    # ── Comparing
    (
        lambda: t(a(be(np("dog"), "big"), than=np("cat", "black"))),
        "The dog is bigger than the black cat.",
        "Le chien est plus grand que le chat noir.",
        "कुत्ता काली बिल्ली से बड़ा है।",
    ),
    (
        lambda: t(a(be(np("queen"), "famous"), than=np("bear", det="a"), negation="not")),
        "The queen is not more famous than a bear.",
        "La reine n'est pas plus célèbre qu'un ours.",
        "रानी एक भालू से ज़्यादा मशहूर नहीं है।",
    ),
    (
        lambda: t(a(be(np("pear", plural=True), "good"), than=np("apple", plural=True))),
        "The pears are better than the apples.",
        "Les poires sont meilleures que les pommes.",
        "नाशपातियाँ सेबों से अच्छी हैं।",
    ),
    # ── who; of France
    (
        lambda: t(do(related("man", do(None, "buy", np("house")), who=True), "sell", np("car", det="his", own=True))),
        "The man who bought the house sold his car.",
        "L'homme qui a acheté la maison a vendu sa voiture.",
        "उस आदमी ने जिसने घर ख़रीदा अपनी कार बेची।",
    ),
    (
        lambda: t(do(related("woman", be(None, "old#person"), who=True, aside=True), "sleep")),
        "The woman, who is old, slept.",
        "La femme, qui est vieille, a dormi.",
        "वह औरत जो बूढ़ी है सोई।",
    ),
    (
        lambda: t(do(of("king", name("France")), "sleep")),
        "The king of France slept.",
        "Le roi de France a dormi.",
        "फ़्रांस का राजा सोया।",
    ),
    # ── if; ate and slept
    (
        lambda: first("if", now(who("he"), "sleep"), a(do(np("cat"), "eat", np("fish")), tense="future")),
        "If he sleeps, the cat will eat the fish.",
        "S'il dort, le chat mangera le poisson.",
        "अगर वह सोता है, तो बिल्ली मछली को खाएगी।",
    ),
    (
        lambda: first("when", do(np("king"), "die"), do(who("we"), "cry")),
        "When the king died, we cried.",
        "Quand le roi est mort, nous avons pleuré.",
        "जब राजा मरा, तब हम रोए।",
    ),
    (
        lambda: both(
            a(do(who("we"), "go"), adjuncts=at("to", np("market"))), "buy", np("orange", det="three", plural=True)
        ),
        "We went to the market and bought three oranges.",
        "Nous sommes allés au marché et avons acheté trois oranges.",
        "हम बाज़ार गए और हमने तीन संतरे ख़रीदे।",
    ),
    (
        lambda: both(do(np("girl", plural=True), "leave"), "disappear"),
        "The girls left and disappeared.",
        "Les filles sont parties et ont disparu.",
        "लड़कियाँ निकलीं और ग़ायब हुईं।",
    ),
    # ── go to sleep, would like, let's
    (
        lambda: t(a(now(who("i"), "see"), object=name("Paris"), modal="want")),
        "I want to see Paris.",
        "Je veux voir Paris.",
        "मैं पेरिस देखना चाहता हूँ।",
    ),
    (
        lambda: t(a(now(who("i"), "sleep"), modal="going", contracted=True)),
        "I'm going to sleep.",
        "Je vais dormir.",
        "मैं सोने वाला हूँ।",
    ),
    (
        lambda: t(a(do(who("we"), "eat", np("bread")), modal="going", negation="not", contracted=True)),
        "We weren't going to eat the bread.",
        "Nous n'allions pas manger le pain.",
        "हम रोटी खाने वाले नहीं थे।",
    ),
    (
        lambda: t(a(now(who("they"), "arrive"), modal="going", question=True, asked="when"), mark="?"),
        "When are they going to arrive?",
        "Quand est-ce qu'ils vont arriver ?",
        "वे कब पहुँचने वाले हैं?",
    ),
    (
        lambda: t(a(now(who("i"), "want", np("apple", det="a")), modal="would", contracted=True)),
        "I'd like an apple.",
        "Je voudrais une pomme.",
        "मैं एक सेब चाहूँगा।",
    ),
    (
        lambda: t(a(now(who("she"), "want", who("it")), modal="would", negation="not")),
        "She would not like it.",
        "Elle ne le voudrait pas.",
        "वह उसे नहीं चाहेगी।",
    ),
    (
        lambda: t(a(now(who("you"), "help", who("i")), modal="would", question=True), mark="?"),
        "Would you like to help me?",
        "Est-ce que vous voudriez m'aider ?",
        "क्या आप मेरी मदद करना चाहेंगे?",
    ),
    (
        lambda: t(a(now(who("you"), "want"), modal="would", question=True, asked="what"), mark="?"),
        "What would you like?",
        "Qu'est-ce que vous voudriez ?",
        "आप क्या चाहेंगे?",
    ),
    (
        lambda: t(a(now(who("we"), "go"), command=True, place=adverb("home"))),
        "Let's go home.",
        "Allons à la maison.",
        "आइए घर जाएँ।",
    ),
    (
        lambda: t(a(now(who("we"), "help", who("they")), command=True)),
        "Let's help them.",
        "Aidons-les.",
        "आइए उनकी मदद करें।",
    ),
    # ── no, that, here
    (
        lambda: t(
            Being("there", complement=np("apple", det="no", plural=True), negation="no", adjuncts=at("in", np("room")))
        ),
        "There are no apples in the room.",
        "Il n'y a pas de pommes dans la chambre.",
        "कमरे में सेब नहीं हैं।",
    ),
    (
        lambda: t(Being("there", complement=np("milk", det="no"), negation="no", contracted=True)),
        "There's no milk.",
        "Il n'y a pas de lait.",
        "दूध नहीं है।",
    ),
    (
        lambda: t(a(now(who("i"), "have", np("money", det="no")), negation="no")),
        "I have no money.",
        "Je n'ai pas d'argent.",
        "मेरे पास पैसा नहीं है।",
    ),
    (
        lambda: t(be(np("house", det="that"), "big")),
        "That house is big.",
        "Cette maison est grande.",
        "वह घर बड़ा है।",
    ),
    (
        lambda: t(do(np("girl", det="that", plural=True), "see", np("man", det="that"))),
        "Those girls saw that man.",
        "Ces filles ont vu cet homme.",
        "उन लड़कियों ने उस आदमी को देखा।",
    ),
    (
        lambda: t(Being("who", np("man", det="that")), mark="?"),
        "Who is that man?",
        "Qui est cet homme ?",
        "वह आदमी कौन है?",
    ),
    (
        lambda: t(Being("where", who("she"), tense="past"), mark="?"),
        "Where was she?",
        "Où était-elle ?",
        "वह कहाँ थी?",
    ),
    (
        lambda: t(Being("place", who("i"), place=ADVERBS["here"], contracted=True)),
        "I'm here.",
        "Je suis ici.",
        "मैं यहाँ हूँ।",
    ),
    (
        lambda: t(Being("place", who("you"), adjuncts=place("Paris"), question=True, tense="future"), mark="?"),
        "Will you be in Paris?",
        "Est-ce que vous serez à Paris ?",
        "क्या आप पेरिस में होंगे?",
    ),
    # ── What was said of what was before; Yuki; languages
    (
        lambda: Text([be(who("she"), "tired")], speech=(name("Mary"), "say"), reported=True, mark=".", capital=True),
        "Mary said that she is tired.",
        "Mary a dit qu'elle est fatiguée.",
        "मैरी ने कहा कि वह थकी हुई है।",
    ),
    (
        lambda: Text([do(who("they"), "leave")], speech=(who("i"), "say"), reported=True, mark=".", capital=True),
        "I said that they left.",
        "J'ai dit qu'ils étaient partis.",
        "मैंने कहा कि वे निकले।",
    ),
    (
        lambda: t(do(whose(name("Yuki"), "cat"), "sleep")),
        "Yuki's cat slept.",
        "Le chat de Yuki a dormi.",
        "युकी की बिल्ली सोई।",
    ),
    (
        lambda: t(a(now(who("she"), "learn", bare("French", GENERIC)), modal="want")),
        "She wants to learn French.",
        "Elle veut apprendre le français.",
        "वह फ़्रेंच सीखना चाहती है।",
    ),
    # ── must and should in Hindi: whose subject is no nominative
    (
        lambda: t(do(related("man", a(now(None, "sleep"), modal="should"), who=True), "laugh")),
        "The man who should sleep laughed.",
        "L'homme qui devrait dormir a ri.",
        "वह आदमी जिसे सोना चाहिए हँसा।",
    ),
    (
        lambda: Text(
            [a(now(np("king"), "eat"), modal="must"), shared(np("king"), "sleep")], ["and"], mark=".", capital=True
        ),
        "The king must eat and sleeps.",
        "Le roi doit manger et dort.",
        "राजा को खाना चाहिए और वह सोता है।",
    ),
    # ── Tags; two adjectives
    (
        lambda: Text([be(who("you"), "tired")], tag=True, mark="?", capital=True),
        "You are tired, aren't you?",
        "Vous êtes fatigué, n'est-ce pas ?",
        "आप थके हुए हैं, है ना?",
    ),
    (
        lambda: Text([a(do(who("he"), "sleep"), negation="not", contracted=True)], tag=True, mark="?", capital=True),
        "He didn't sleep, did he?",
        "Il n'a pas dormi, n'est-ce pas ?",
        "वह नहीं सोया, है ना?",
    ),
    (
        lambda: Text([a(do(who("we"), "go"), tense="future", place=adverb("home"))], tag=True),
        "we will go home won't we",
        "nous irons à la maison n'est-ce pas",
        "हम घर जाएँगे है ना",
    ),
    (
        lambda: t(a(be(np("queen"), "tired"), tense="past", also=ADJECTIVES["sad"])),
        "The queen was tired and sad.",
        "La reine était fatiguée et triste.",
        "रानी थकी हुई और उदास थी।",
    ),
    # ── one, any; in the morning
    (
        lambda: t(now(who("i"), "have", np("cat", det="one"))),
        "I have one cat.",
        "J'ai un chat.",
        "मेरे पास एक बिल्ली है।",
    ),
    (
        lambda: t(a(now(who("you"), "have", np("book", det="any", plural=True)), question=True), mark="?"),
        "Do you have any books?",
        "Est-ce que vous avez des livres ?",
        "क्या आपके पास कुछ किताबें हैं?",
    ),
    (
        lambda: t(Being("there", complement=np("milk", det="any"), question=True), mark="?"),
        "Is there any milk?",
        "Est-ce qu'il y a du lait ?",
        "क्या थोड़ा दूध है?",
    ),
    (
        lambda: t(a(now(who("i"), "have", np("money", det="any")), negation="not", contracted=True)),
        "I don't have any money.",
        "Je n'ai pas d'argent.",
        "मेरे पास पैसा नहीं है।",
    ),
    (
        lambda: t(a(now(who("i"), "sleep"), time=set_time(row("time", "in the morning")), frequency=ADVERBS["often"])),
        "I often sleep in the morning.",
        "Je dors souvent le matin.",
        "मैं सुबह अक्सर सोता हूँ।",
    ),
    (
        lambda: t(now(who("i"), "need", np("water", det="some"))),
        "I need some water.",
        "J'ai besoin d'eau.",
        "मुझे थोड़े पानी की ज़रूरत है।",
    ),
    (
        lambda: t(
            a(now(who("you"), "need", np("chair", "old#thing", det="any", plural=True)), question=True), mark="?"
        ),
        "Do you need any old chairs?",
        "Est-ce que vous avez besoin de vieilles chaises ?",
        "क्या आपको कुछ पुरानी कुर्सियों की ज़रूरत है?",
    ),
    (
        lambda: t(a(now(who("you"), "close", np("window")), command=True, please=True, pleading=True)),
        "Close the window, please.",
        "Fermez la fenêtre, s'il vous plaît.",
        "कृपया खिड़की बंद कीजिए।",
    ),
    # ── Who said it; rain; home
    (
        lambda: Text([do(np("cat"), "sleep")], speech=(np("king"), "say"), reported=True, mark=".", capital=True),
        "The king said that the cat slept.",
        "Le roi a dit que le chat avait dormi.",
        "राजा ने कहा कि बिल्ली सोई।",
    ),
    (
        lambda: t(Clause(np("queen"), LEXICON.speech[0], inverted=True)),
        "Said the queen.",
        "A dit la reine.",
        "रानी ने कहा।",
    ),
    (
        lambda: first("if", rain(tense="present"), a(do(who("i"), "sleep"), tense="future")),
        "If it rains, I will sleep.",
        "S'il pleut, je dormirai.",
        "अगर बारिश होती है, तो मैं सोऊँगा।",
    ),
    (
        lambda: t(rain(progressive=True, adjuncts=place("London"))),
        "It was raining in London.",
        "Il pleuvait à Londres.",
        "लंदन में बारिश हो रही थी।",
    ),
    (
        lambda: t(rain(negation="not", contracted=True)),
        "It didn't rain.",
        "Il n'a pas plu.",
        "बारिश नहीं हुई।",
    ),
    (
        lambda: t(a(do(who("we"), "go"), place=adverb("home"))),
        "We went home.",
        "Nous sommes allés à la maison.",
        "हम घर गए।",
    ),
    # ── Titles
    (
        lambda: t(Being("where", NounPhrase(titled("Dr.", "Smith"), "")), mark="?"),
        "Where is Dr. Smith?",
        "Où est le docteur Smith ?",
        "डॉ. Smith कहाँ है?",
    ),
    (
        lambda: t(be(NounPhrase(titled("Mrs.", "Dupont"), ""), "sick")),
        "Mrs. Dupont is sick.",
        "Mme Dupont est malade.",
        "श्रीमती Dupont बीमार है।",
    ),
    (
        lambda: t(a(do(who("we"), "give", np("book", det="a")), recipient=NounPhrase(titled("Dr", "Ondrel"), ""))),
        "We gave a book to Dr Ondrel.",
        "Nous avons donné un livre au docteur Ondrel.",
        "हमने डॉ. Ondrel को एक किताब दी।",
    ),
    (
        lambda: t(
            do(NounPhrase(titled("Ms.", "Rao"), ""), "see", whose(NounPhrase(titled("Mr.", "Smith"), ""), "house"))
        ),
        "Ms. Rao saw Mr. Smith's house.",
        "Mme Rao a vu la maison de M. Smith.",
        "सुश्री Rao ने श्री Smith का घर देखा।",
    ),
    # ── Words nobody has seen
    (
        lambda: t(do(NounPhrase(thing("blicket")), "sleep")),
        "The blicket slept.",
        "Le blicket a dormi.",
        "blicket सोया।",
    ),
    (
        lambda: t(do(NounPhrase(thing("ondle")), "sleep")),
        "The ondle slept.",
        "L'ondle a dormi.",
        "ondle सोया।",
    ),
    (
        lambda: t(do(NounPhrase(titled("Mr", "Karvenko"), ""), "see", np("lake"))),
        "Mr Karvenko saw the lake.",
        "M. Karvenko a vu le lac.",
        "श्री Karvenko ने झील देखी।",
    ),
    (
        lambda: t(
            do(
                NounPhrase(LEXICON.noun("cat"), adjectives=(adjective("florpish"),)),
                "see",
                NounPhrase(proper("Ostrel", "Ostrel", "Ostrel", feminine=False, human=True), ""),
            )
        ),
        "The florpish cat saw Ostrel.",
        "Le chat florpish a vu Ostrel.",
        "florpish बिल्ली ने Ostrel को देखा।",
    ),
]


@pytest.mark.parametrize(("build", "english", "french", "hindi"), CASES, ids=[case[1] for case in CASES])
def test_an_everyday_sentence_comes_out_as_people_write_it(
    build: Callable[[], Text], english: str, french: str, hindi: str
) -> None:
    """In the table a plain space stands for the narrow one before ? and !."""
    into_french, into_hindi = compose(build(), "fr"), compose(build(), "hi")
    assert into_french.source == into_hindi.source == english
    assert into_french.target == french.replace(" ?", f"{NARROW}?").replace(" !", f"{NARROW}!")
    assert into_hindi.target == hindi
    for sentence in (into_french, into_hindi):
        sizes = len(sentence.source.split(" ")), len(sentence.target.split(" "))
        assert all(one < sizes[0] and other < sizes[1] for one, other in sentence.alignment)
        assert len(sentence.tokens) == len(sentence.tags)
        assert "".join(sentence.tokens) == sentence.source.replace(" ", "")


@pytest.mark.parametrize(
    ("build", "tokens", "tags"),
    [
        (
            lambda: t(a(do(np("dog"), "eat", np("honey")), negation="not", contracted=True)),
            "The dog did n't eat the honey .",
            "DET NOUN AUX PART VERB DET NOUN PUNCT",
        ),
        (
            lambda: t(a(do(np("boy"), "swim"), tense="future", negation="not", contracted=True)),
            "The boy wo n't swim .",
            "DET NOUN AUX PART VERB PUNCT",
        ),
        (
            lambda: t(a(do(whose(name("Mary"), "cat"), "sleep"), time=day(3, row("month", "May")))),
            "Mary 's cat slept on 3 May .",
            "PROPN PART NOUN VERB ADP NUM PROPN PUNCT",
        ),
        (
            lambda: t(a(do(who("i"), "eat", np("apple", det="12", plural=True)), tense="present", modal="want")),
            "I want to eat 12 apples .",
            "PRON VERB PART VERB NUM NOUN PUNCT",
        ),
        (
            lambda: Text([do(np("cat"), "sleep")], speech=(np("king"), "say"), mark="!", capital=True),
            'The king said , " The cat slept ! "',
            "DET NOUN VERB PUNCT PUNCT DET NOUN VERB PUNCT PUNCT",
        ),
        (
            lambda: t(a(doing(who("they"), "look+for", np("key")), contracted=True)),
            "They 're looking for the key .",
            "PRON AUX VERB ADP DET NOUN PUNCT",
        ),
        (lambda: t(now(who("i"), "love", bare("music", GENERIC))), "I love music .", "PRON VERB NOUN PUNCT"),
        (
            lambda: t(Being("where", NounPhrase(titled("Dr.", "Smith"), "")), mark="?"),
            "Where is Dr. Smith ?",
            "ADV AUX NOUN PROPN PUNCT",
        ),
        (lambda: phrase("no , thank you"), "No , thank you .", "INTJ PUNCT VERB PRON PUNCT"),
    ],
)
def test_marks_and_clitics_are_tokens_with_tags_of_their_own(build: Callable[[], Text], tokens: str, tags: str) -> None:
    sentence = compose(build(), "fr")
    assert " ".join(sentence.tokens) == tokens
    assert " ".join(sentence.tags) == tags


@pytest.mark.parametrize(
    ("build", "links"),
    [
        # The dog didn't eat. ↔ Le chien n'a pas mangé.
        (
            lambda: t(a(do(np("dog"), "eat"), negation="not", contracted=True)),
            {(0, 0), (1, 1), (2, 2), (2, 3), (3, 4)},
        ),
        # There is a cat. ↔ Il y a un chat.
        (lambda: t(Being("there", complement=np("cat", det="a"))), {(0, 0), (0, 1), (1, 2), (2, 3), (3, 4)}),
        # This is a house. ↔ C'est une maison.
        (lambda: t(Being("this", complement=np("house", det="a"))), {(0, 0), (1, 0), (2, 1), (3, 2)}),
        # Mary's house disappeared. ↔ La maison de Mary a disparu.
        (lambda: t(do(whose(name("Mary"), "house"), "disappear")), {(0, 0), (0, 2), (0, 3), (1, 1), (2, 4), (2, 5)}),
        # I want to sleep. ↔ Je veux dormir.
        (lambda: t(a(do(who("i"), "sleep"), tense="present", modal="want")), {(0, 0), (1, 1), (2, 1), (3, 2)}),
        # We left on Monday. ↔ Nous sommes partis lundi.
        (lambda: t(a(do(who("we"), "leave"), time=MONDAY)), {(0, 0), (1, 1), (1, 2), (2, 3), (3, 3)}),
        # good morning ↔ bonjour
        (lambda: phrase("good morning"), {(0, 0), (1, 0)}),
    ],
)
def test_everyday_sentences_are_linked_word_by_word(build: Callable[[], Text], links: set[tuple[int, int]]) -> None:
    assert set(compose(build(), "fr").alignment) == links


@pytest.mark.parametrize(
    ("build", "french", "hindi"),
    [
        # She is eating an apple. ↔ Elle mange une pomme. ↔ वह एक सेब खा रही है।
        (
            lambda: t(doing(who("she"), "eat", np("apple", det="a"))),
            {(0, 0), (1, 1), (2, 1), (3, 2), (4, 3)},
            {(0, 0), (1, 5), (2, 3), (2, 4), (3, 1), (4, 2)},
        ),
        # I'm going to the market. ↔ Je vais au marché. ↔ मैं बाज़ार जा रहा हूँ।
        (
            lambda: t(a(doing(who("i"), "go"), adjuncts=at("to", np("market")), contracted=True)),
            {(0, 0), (0, 1), (1, 1), (2, 2), (3, 2), (4, 3)},
            {(0, 0), (0, 4), (1, 2), (1, 3), (4, 1)},
        ),
        # Are they not sleeping? ↔ Est-ce qu'ils ne dorment pas ? ↔ क्या वे नहीं सो रहे हैं?
        (
            lambda: t(a(doing(who("they"), "sleep"), question=True, negation="not"), mark="?"),
            {(0, 0), (0, 1), (0, 3), (1, 1), (2, 2), (2, 4), (3, 3)},
            {(0, 0), (0, 5), (1, 1), (2, 2), (3, 3), (3, 4)},
        ),
        # I don't drink coffee. ↔ Je ne bois pas de café. ↔ मैं कॉफ़ी नहीं पीता हूँ।
        (
            lambda: t(a(now(who("i"), "drink", bare("coffee")), negation="not", contracted=True)),
            {(0, 0), (1, 1), (1, 2), (1, 3), (2, 2), (3, 4), (3, 5)},
            {(0, 0), (1, 2), (1, 4), (2, 3), (3, 1)},
        ),
        # I love music. ↔ J'aime la musique. ↔ मैं संगीत से प्यार करता हूँ।
        (
            lambda: t(now(who("i"), "love", bare("music", GENERIC))),
            {(0, 0), (1, 0), (2, 1), (2, 2)},
            {(0, 0), (1, 3), (1, 4), (1, 5), (2, 1)},
        ),
        # Do you need a key? ↔ Est-ce que vous avez besoin d'une clé ? ↔ क्या आपको एक चाबी की ज़रूरत है?
        (
            lambda: t(a(now(who("you"), "need", np("key", det="a")), question=True), mark="?"),
            {(0, 0), (0, 1), (0, 3), (1, 2), (2, 3), (2, 4), (2, 5), (3, 5), (4, 6)},
            {(0, 0), (0, 6), (1, 1), (2, 5), (3, 2), (4, 3)},
        ),
        # He gave the key to me. ↔ Il m'a donné la clé. ↔ उसने मुझे चाबी दी।
        (
            lambda: t(a(do(who("he"), "give", np("key")), recipient=who("i"))),
            {(0, 0), (1, 1), (1, 2), (2, 3), (3, 4), (4, 1), (5, 1)},
            {(0, 0), (1, 3), (3, 2), (4, 1), (5, 1)},
        ),
        # The cat has eaten it. ↔ Le chat l'a mangé. ↔ बिल्ली ने उसे खाया है।
        (
            lambda: t(a(do(np("cat"), "eat", who("it")), perfect=True)),
            {(0, 0), (1, 1), (2, 2), (3, 3), (4, 2)},
            {(1, 0), (2, 4), (3, 3), (4, 2)},
        ),
        # Mary is more famous than Anna. ↔ Mary est plus célèbre qu'Anna. ↔ मैरी अन्ना से ज़्यादा मशहूर है।
        (
            lambda: t(a(be(name("Mary"), "famous"), than=name("Anna"))),
            {(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4)},
            {(0, 0), (1, 5), (2, 3), (3, 4), (4, 2), (5, 1)},
        ),
        # Where is Dr. Smith? ↔ Où est le docteur Smith ? ↔ डॉ. Smith कहाँ है?
        (
            lambda: t(Being("where", NounPhrase(titled("Dr.", "Smith"), "")), mark="?"),
            {(0, 0), (1, 1), (2, 2), (2, 3), (3, 4)},
            {(0, 2), (1, 3), (2, 0), (3, 1)},
        ),
    ],
)
def test_what_people_say_at_present_is_linked_word_by_word_in_both_languages(
    build: Callable[[], Text], french: set[tuple[int, int]], hindi: set[tuple[int, int]]
) -> None:
    assert set(compose(build(), "fr").alignment) == french
    assert set(compose(build(), "hi").alignment) == hindi


def test_there_are_a_hundred_set_phrases_and_more_names_than_a_class_has() -> None:
    assert len(LEXICON.phrases) >= 100
    assert len(LEXICON.names) >= 60
    assert len(LEXICON.places) >= 30
    assert len(pools().towns) >= 20
