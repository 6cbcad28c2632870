"""Which attention of a run shows the alignment: chosen once, on validation sentences, and saved."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from regard.data.encoding import PairEncoder
from regard.errors import DataError, RegardError
from regard.explain.alignment import Aligner, attend, choose, choose_without_gold, sides
from regard.fable.corpus import generate
from regard.metrics.alignment import Gold
from regard.models.encoder_decoder import EncoderDecoder
from regard.runs.folder import Run
from regard.settings import DataSettings
from regard.tasks.corpus import materials
from regard.text.tokenizers import Tokenizers

WITH_GOLD = 200  # sentences to choose on
WITHOUT_GOLD = 40  # masking every word of each takes longer
WORDS = 25  # of the longest of them


def aligner_of(run: Run, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    """What the run remembers; else what is best on its validation text, remembered from now on.

    The built-in corpus knows its links. For other text, see `choose_without_gold`. Where the validation text is no
    longer there, the mean of all heads is read, and nothing is remembered.
    """
    if (known := Aligner.load(run.folder) or Aligner.load(run.cache)) is not None:
        return known
    data = run.settings.data
    try:
        chosen = _with_gold(data, model, tokenizers) if data.is_built_in else _without_gold(run, model, tokenizers)
    except DataError:
        return Aligner()
    with suppress(OSError):  # a run that cannot be written to can still be looked into
        chosen.save(run.cache)
    return chosen


def _with_gold(data: DataSettings, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    language = data.corpus.partition(":")[2]
    sentences = list(
        generate(language, count=WITH_GOLD, split="valid", maximum_words=data.words)  # type: ignore[arg-type]
    )
    pairs = attend(model, [sides(tokenizers, each.source, each.target) for each in sentences])
    links = [frozenset(each.alignment) for each in sentences]
    return choose(pairs, [Gold(each, each) for each in links], "valid")


def _without_gold(run: Run, model: EncoderDecoder, tokenizers: Tokenizers) -> Aligner:
    try:
        rows = (row for _, row in materials(run.settings)[1].rows(PairEncoder.names))
        short = (row for row in rows if 0 < len(row[0].split()) <= WORDS and row[1].strip())
        chosen = list(islice(short, WITHOUT_GOLD))
    except RegardError as problem:
        raise DataError(f"validation text: is not there any more ({problem})") from None
    return choose_without_gold(
        model, [sides(tokenizers, row[0], row[1]) for row in chosen], f"{len(chosen)} validation sentences"
    )
