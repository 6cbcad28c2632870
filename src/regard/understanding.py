"""One word in several sentences through a run: what ``regard meaning`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from torch import Tensor

from regard.decode.labels import Classifier, Tagger
from regard.decode.writer import Writer
from regard.errors import DataError, ModelError, RegardError
from regard.explain.alignment import Aligner
from regard.explain.meaning import Meaning, Neighbours, Occurrence, find, meaning, stands_in, translations
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.labeller import Labeller
from regard.prediction import load_predictor
from regard.report.meaning import Matrix, MeaningReport, Neighbour, Place
from regard.run import Run
from regard.tasks.material import COLUMNS, materials
from regard.text.tokenizer import Tokenizer
from regard.translator import Translator

SEARCHED = 200  # sentences of the validation text whose words may be neighbours
NEAREST = 5
DIGITS = 6


def meaning_report(
    run: str | Path, word: str, sentences: Sequence[str], *, control: str = "", device: str = "cpu"
) -> MeaningReport:
    """The word's vectors in these sentences, compared; with a control word, what the sentences alone do to it."""
    if not sentences:
        raise DataError(f"sentences = 0: there is nothing in which '{word}' could stand; give two or more")
    predictor = load_predictor(run, device)
    if isinstance(predictor, Writer):
        raise ModelError(f"{run}: a language model has no encoder whose layers could be compared; translate or label")
    reading = reading_of(predictor)
    own = find(word, sentences)
    others = find(control, [one for one in sentences if stands_in(control, one)]) if control else []
    if control and len(others) < 2:
        raise DataError(f"control = {control}: stands in {len(others)} of the sentences; a word in two would be right")
    found = meaning(reading.model, reading.tokenizer, [*own, *others], letters=reading.letters)
    places = translated(predictor, own)
    searched, neighbours = _neighbours(Path(run), reading, found, own)
    cosines = found.cosines()
    flat = found.plane()
    return MeaningReport(
        word=word,
        control=control,
        places=tuple(
            Place(one.sentence, one.word, *told, near) for one, told, near in zip(own, places, neighbours, strict=True)
        ),
        layers=("embedding", *(f"layer {number}" for number in range(1, len(found.vectors)))),
        cosines=_rounded(cosines[:, : len(own), : len(own)]),
        control_cosines=_rounded(cosines[:, len(own) :, len(own) :]) if others else (),
        points=tuple(tuple((round(x, DIGITS), round(y, DIGITS)) for x, y in layer.tolist()) for layer in flat.points),
        explained=tuple(round(share, DIGITS) for share in flat.explained),
        searched=searched,
        name=Path(run).name,
    )


@dataclass(frozen=True)
class Reading:
    """A model with an encoder, and what it reads of a sentence."""

    model: EncoderDecoder | Labeller
    tokenizer: Tokenizer
    letters: int = 0


def reading_of(predictor: Translator | Tagger | Classifier) -> Reading:
    if isinstance(predictor, Translator):
        return Reading(predictor.model, predictor.tokenizers.source)
    return Reading(predictor.model, predictor.reader.tokenizer, predictor.reader.letters)


def translated(predictor: Translator | Tagger | Classifier, occurrences: Sequence[Occurrence]) -> list[tuple[str, str]]:
    """How each is translated; by a tagger, tagged; a classifier says something of the whole sentence only."""
    match predictor:
        case Translator():
            return translations(predictor.model, predictor.tokenizers, occurrences, _aligner(predictor))
        case Tagger():
            found = predictor.tag([one.sentence for one in occurrences])
            return [(tags.tags[one.word], " ".join(tags.tags)) for one, tags in zip(occurrences, found, strict=True)]
        case Classifier():
            labels = predictor.classify([one.sentence for one in occurrences])
            return [("", found.label) for found in labels]


def _aligner(translator: Translator) -> Aligner | None:
    """None where there is no attention to read."""
    try:
        return translator.aligner
    except ModelError:
        return None


def _neighbours(
    run: Path, reading: Reading, found: Meaning, own: Sequence[Occurrence]
) -> tuple[str, list[tuple[Neighbour, ...]]]:
    """The nearest words of the run's validation text; none, where that is no longer there."""
    settings = Run.open(run).settings
    try:
        rows = islice(materials(settings)[1].rows(COLUMNS[settings.task][:1]), SEARCHED)
        texts = [row[0] for _, row in rows]
        words = Neighbours.of(reading.model, reading.tokenizer, texts, letters=reading.letters)
    except RegardError:
        return "", [()] * len(own)
    last = found.vectors[-1]
    near = [words.nearest(last[place], NEAREST, besides=one) for place, one in enumerate(own)]
    told = [tuple(Neighbour(str(one), one.sentence, round(value, DIGITS)) for one, value in each) for each in near]
    return f"the words of the first {SEARCHED} validation sentences", told


def _rounded(values: Tensor) -> tuple[Matrix, ...]:
    return tuple(tuple(tuple(round(value, DIGITS) for value in row) for row in layer) for layer in values.tolist())
