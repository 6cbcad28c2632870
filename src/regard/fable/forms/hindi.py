"""Hindi cases, genders and verb forms in Devanagari, by rule."""

from __future__ import annotations

from typing import NamedTuple

from regard.fable.forms.english import NUMERALS

VOWEL_SIGNS = "ािीुूेैोौ"
_NUMBERS = "दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस तीस चालीस पचास साठ अस्सी"
NUMBERS = dict(zip(NUMERALS, _NUMBERS.split(), strict=True))
IRREGULAR_PERFECTIVES = {
    "कर": ("किया", "किए", "की", "कीं"),
    "दे": ("दिया", "दिए", "दी", "दीं"),
    "ले": ("लिया", "लिए", "ली", "लीं"),
    "जा": ("गया", "गए", "गई", "गईं"),
    "हो": ("हुआ", "हुए", "हुई", "हुईं"),
    "पी": ("पिया", "पिए", "पी", "पीं"),
    "छू": ("छुआ", "छुए", "छुई", "छुईं"),
}
CONTRACTED_FUTURES = {"दे": "दूँगा", "ले": "लूँगा", "हो": "होऊँगा"}  # as मैं says them
POLITE = {"कर": "कीजिए", "दे": "दीजिए", "ले": "लीजिए", "पी": "पीजिए"}


NounForms = tuple[tuple[str, str], tuple[str, str]]  # direct, as the subject is; oblique, before a postposition


class HindiVerbForms(NamedTuple):
    """Each in the order masculine, masculine plural, feminine, feminine plural."""

    perfective: tuple[str, str, str, str]
    habitual: tuple[str, str, str, str]
    future: tuple[str, str, str, str]
    infinitive: tuple[str, str, str, str]
    first_future: str  # of मैं
    root: str
    polite: str  # the imperative for आप


def noun(word: str, gender: str) -> NounForms:
    """लड़का → लड़के, लड़कों; किताब → किताबें, किताबों; भालू → भालू, भालुओं."""
    return feminine_noun(word) if gender == "f" else masculine_noun(word)


def masculine_noun(word: str) -> NounForms:
    """Except in the oblique plural, only those in -ा change."""
    if word.endswith("िया"):
        changed = word[:-2] + "ए"
        return (word, changed), (changed, word[:-1] + "ों")
    if word.endswith("ा"):
        return (word, word[:-1] + "े"), (word[:-1] + "े", word[:-1] + "ों")
    return (word, word), (word, oblique_plural(word))


def feminine_noun(word: str) -> NounForms:
    """लड़की → लड़कियाँ, चिड़िया → चिड़ियाँ, कविता → कविताएँ, औरत → औरतें."""
    if word.endswith("ी"):
        plural = word[:-1] + "ियाँ"
    elif word.endswith("िया"):
        return (word, word + "ँ"), (word, word[:-1] + "ों")
    else:
        plural = word + ("एँ" if word[-1] in VOWEL_SIGNS else "ें")
    return (word, plural), (word, oblique_plural(word))


def oblique_plural(word: str) -> str:
    """Long ī and ū shorten before the ending: हाथी → हाथियों, उल्लू → उल्लुओं."""
    if word.endswith(("ी", "ि")):
        return word[:-1] + "ियों"
    if word.endswith("ू"):
        return word[:-1] + "ुओं"
    return word + ("ओं" if word[-1] in VOWEL_SIGNS else "ों")


def adjective(word: str) -> tuple[str, str, str]:
    """Direct masculine, other masculine, feminine; only those in -ा change."""
    if word.endswith("या"):
        return word, word[:-2] + "ए", word[:-2] + "ई"
    if word.endswith("ा"):
        return word, word[:-1] + "े", word[:-1] + "ी"
    return word, word, word


def verb(root: str) -> HindiVerbForms:
    """खा → खाया, खाता, खाएगा."""
    infinitive = (root + "ना", root + "ने", root + "नी", root + "नी")
    return HindiVerbForms(
        perfective(root), habitual(root), future(root), infinitive, first_future(root), root, polite(root)
    )


def perfective(root: str) -> tuple[str, str, str, str]:
    """देख → देखा; after a vowel a glide: खा → खाया, खाए, खाई, खाईं."""
    if root in IRREGULAR_PERFECTIVES:
        return IRREGULAR_PERFECTIVES[root]
    if ends_in_vowel(root):
        return root + "या", root + "ए", root + "ई", root + "ईं"
    return root + "ा", root + "े", root + "ी", root + "ीं"


def habitual(root: str) -> tuple[str, str, str, str]:
    """The participle of the present, which an auxiliary follows: खाता है."""
    return root + "ता", root + "ते", root + "ती", root + "ती"


def future(root: str) -> tuple[str, str, str, str]:
    """देखेगा, खाएगा, पिएगा; देगा and होगा are contracted."""
    if root in CONTRACTED_FUTURES:
        return root + "गा", root + "ंगे", root + "गी", root + "ंगी"
    root = shortened(root)
    one, many = ("ए", "एँ") if ends_in_vowel(root) else ("े", "ें")
    return root + one + "गा", root + many + "गे", root + one + "गी", root + many + "गी"


def first_future(root: str) -> str:
    """मैं देखूँगा, मैं खाऊँगा, मैं दूँगा."""
    if root in CONTRACTED_FUTURES:
        return CONTRACTED_FUTURES[root]
    root = shortened(root)
    return root + ("ऊँगा" if ends_in_vowel(root) else "ूँगा")


def polite(root: str) -> str:
    """खोलिए, आइए, धोइए; कीजिए and दीजिए are irregular."""
    if root in POLITE:
        return POLITE[root]
    root = shortened(root)
    return root + ("इए" if ends_in_vowel(root) else "िए")


def shortened(root: str) -> str:
    """Long ī and ū shorten before a vowel: पी → पि, छू → छु."""
    return root[:-1] + {"ी": "ि", "ू": "ु"}[root[-1]] if root.endswith(("ी", "ू")) else root


def ends_in_vowel(root: str) -> bool:
    """Whether an ending needs its full letter rather than its sign (a bare आ counts)."""
    return root[-1] in VOWEL_SIGNS or root == "आ"
