"""Sentences to try a run with: validation sentences, which it was not trained on.

Those of the built-in corpus are generated again. For other corpora they come from the run's log and its encoded
validation text: the files may be gone, and no path is followed. An imported run has neither; it gets everyday sentences
of its languages, if they are known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Literal

from regard.data.shards import Shards, open_shards
from regard.errors import RegardError
from regard.runs.folder import Run, origin_of
from regard.runs.log import read_log
from regard.settings.languages import languages_of, plain
from regard.tasks.corpus import materials
from regard.tasks.load import task_of
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import UNK

DRAWN = 200  # sentences to choose from
WORDS = 14  # of a sentence at the most, if there are such
EVERYDAY = {
    "en": (
        "The bank is near the river.",
        "How much is a ticket to the city?",
        "The children are playing in the garden with a black dog.",
        "Yesterday the doctor said that she should rest.",
        "I would like to learn another language.",
    ),
    "de": (
        "Die Bank ist in der Nähe des Flusses.",
        "Wie viel kostet eine Fahrkarte in die Stadt?",
        "Die Kinder spielen im Garten mit einem schwarzen Hund.",
        "Gestern sagte der Arzt, dass sie sich ausruhen soll.",
        "Ich möchte noch eine Sprache lernen.",
    ),
    "es": (
        "El banco está cerca del río.",
        "¿Cuánto cuesta un billete a la ciudad?",
        "Los niños juegan en el jardín con un perro negro.",
        "Ayer el médico dijo que ella debía descansar.",
        "Me gustaría aprender otro idioma.",
    ),
    "fr": (
        "La banque est près de la rivière.",
        "Combien coûte un billet pour la ville ?",
        "Les enfants jouent dans le jardin avec un chien noir.",
        "Hier, le médecin a dit qu'elle devait se reposer.",
        "Je voudrais apprendre une autre langue.",
    ),
    "pt": (
        "O banco fica perto do rio.",
        "Quanto custa um bilhete para a cidade?",
        "As crianças brincam no jardim com um cão preto.",
        "Ontem o médico disse que ela devia descansar.",
        "Eu gostaria de aprender outra língua.",
    ),
    "zh": (
        "银行在河边。",
        "去城里的票多少钱？",
        "孩子们在花园里和一只黑狗玩。",
        "昨天医生说她应该休息。",
        "我想再学一门语言。",
    ),
}


def examples(run: Run, count: int) -> list[dict[Literal["text", "reference"], str]]:
    """At most ``count`` different sentences with their references, from short to long."""
    if everyday := _everyday(run):
        return everyday[:count]
    built_in = run.settings.data.is_built_in
    found = dict(islice(_built_in(run) if built_in else _kept(run), DRAWN))
    texts = sorted((text for text in found if text.strip()), key=lambda text: (len(text.split()), text))
    texts = [text for text in texts if len(text.split()) <= WORDS] or texts
    if len(whole := [text for text in texts if _is_whole(text)]) >= count:
        texts = whole
    step = max(1, len(texts) // count)
    chosen = texts[step // 2 :: step][:count]
    if run.settings.task == "language":
        return [{"text": _beginning(text), "reference": text} for text in chosen]
    return [{"text": text, "reference": found[text]} for text in chosen]


def _everyday(run: Run) -> list[dict[Literal["text", "reference"], str]]:
    """Sentences in the languages of a run that was imported and not trained here."""
    data, languages = run.settings.data, languages_of(run.settings)
    if languages is None or data.corpus or data.source or origin_of(run.folder) is None:
        return []
    source, target = (EVERYDAY.get(plain(code), ()) for code in (languages.source, languages.target))
    return [{"text": text, "reference": other} for text, other in zip_longest(source, target, fillvalue="") if text]


def _is_whole(text: str) -> bool:
    """Whether a sentence begins with a capital, if its script has them, and ends with a mark."""
    return text[0] == text[0].upper() and not text[-1].isalnum()


def _beginning(text: str) -> str:
    words = text.split()
    return " ".join(words[: max(1, len(words) // 2)])


def _built_in(run: Run) -> Iterator[tuple[str, str]]:
    known = run.settings.data.model_copy(update={"unknown": 0.0})  # no invented words in first examples
    _, valid = materials(run.settings.model_copy(update={"data": known}))
    for _, row in valid.rows(task_of(run.settings.task).columns):
        yield row[0], row[-1]


def _kept(run: Run) -> Iterator[tuple[str, str]]:
    """The validation sentences in the log, then those in the encoded validation text."""
    for event in read_log(run.log):
        for sample in event.get("samples", ()) if event["event"] == "validation" else ():
            yield sample["source"], sample["reference"]
    if (shards := _shards(run)) is not None and run.settings.task in ("translate", "language"):
        yield from _decoded(run, shards)


def _shards(run: Run) -> Shards | None:
    try:
        return open_shards(run.data / "valid", verify=False)
    except (RegardError, OSError):
        return None


def _decoded(run: Run, shards: Shards) -> Iterator[tuple[str, str]]:
    tokenizers = Tokenizers.load(run.tokenizer)
    for row in range(min(DRAWN, len(shards))):
        sides = [shards.columns[side][row].tolist() for side in ("source", "target") if side in shards.columns]
        if any(UNK in ids for ids in sides):
            continue  # decoding would not give the original text
        target = tokenizers.target.decode(sides[-1])
        yield (target, "") if len(sides) == 1 else (tokenizers.source.decode(sides[0]), target)
