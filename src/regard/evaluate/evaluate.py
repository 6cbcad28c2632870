"""Measuring a run: what ``regard evaluate`` and ``regard score`` do."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.encoding import PairEncoder
from regard.data.lines import read_lines
from regard.data.readers import read_parallel
from regard.decode import scoring
from regard.decode.options import Options
from regard.errors import DataError, RegardError, SettingsError
from regard.explain.alignment import align_texts
from regard.metrics.alignment import (
    AlignmentQuality,
    Gold,
    Links,
    Symmetrisation,
    alignment_quality,
    check_inside,
    read_gold,
    symmetrise,
)
from regard.metrics.by_length import EDGES as LENGTHS
from regard.metrics.by_length import Bucket, bucket_names, by_length
from regard.metrics.by_rarity import by_rarity
from regard.metrics.habits import Habits, habits
from regard.metrics.translation import Quality, measure, metrics_named
from regard.runs.folder import Run
from regard.settings.call import MeasureSettings
from regard.tasks.corpus import materials
from regard.tasks.translator import Translator
from regard.text.sentences import one_line
from regard.text.special import END
from regard.text.tokenizers import Tokenizers
from regard.text.words import WordTokenizer, split_words

CHUNK = 1024  # lines translated or scored together: enough to sort them by length
LONGEST = 10_000  # pieces of a line to score; more is no sentence, and would not fit into memory

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Texts:
    """A test set, line by line, with the output to measure if it is there already."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str] | None = None
    name: str = ""  # where it comes from
    held_out: bool = True  # False: by this text checkpoints were chosen

    def fingerprint(self) -> tuple[str, int]:
        """Of all sources and references, and how many there are."""
        lines = "\n".join([*self.sources, *self.references])
        return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest(), len(self.sources)


@dataclass(frozen=True)
class Counts:
    """How often words were seen in training, and where that is known from; None where it is not."""

    words: Mapping[str, int] | None
    origin: str
    cut: Callable[[str], Sequence[str]] = split_words  # a text into words as they were counted


@dataclass(frozen=True)
class Evaluation:
    """All that was measured about one output."""

    sentences: int
    qualities: list[Quality]
    lengths: list[Bucket]
    rarities: list[Bucket]  # none where the counts are not known
    counts: str  # where the counts of words come from, or why there are none
    habits: Habits
    tokenised: int  # outputs that end in " .": sacreBLEU's metrics expect text as people write it
    alignment: AlignmentQuality | None = None


def check_measures(how: MeasureSettings) -> None:
    """Complain before any work is done."""
    metrics_named(how.metrics, how.tokenize)
    bucket_names(how.edges or LENGTHS)
    if how.resamples < 0:
        raise SettingsError(f"resamples = {how.resamples}: cannot be negative; 0 means no interval")


def read_texts(source: Path, target: Path, hypotheses: Path | None = None) -> Texts:
    """Parallel files, plain or packed; all must have as many lines as each other, and at least one."""
    paths = [str(path) for path in (source, target, hypotheses) if path is not None]
    rows = [row for _, row in read_parallel(paths)]
    if not rows:
        raise DataError(f"{source}: is empty; give at least one sentence")
    sources, references, *outputs = (list(side) for side in zip(*rows, strict=True))
    return Texts(sources, references, outputs[0] if outputs else None)


def translate(
    translator: Translator, sources: Sequence[str], options: Options | None = None, *, progress: Progress | None = None
) -> list[str]:
    """One line for each source, in order."""
    outputs: list[str] = []
    for found in translator.stream(sources, options):
        outputs.append(one_line(found.text))
        if progress is not None and (len(outputs) % CHUNK == 0 or len(outputs) == len(sources)):
            progress(len(outputs), len(sources))
    return outputs


def evaluate(
    texts: Texts,
    hypotheses: Sequence[str],
    counts: Counts,
    how: MeasureSettings,
    alignment: AlignmentQuality | None = None,
) -> Evaluation:
    """Corpus scores with intervals; the first metric also by length and by rarity; habits."""
    rows = texts.sources, hypotheses, texts.references
    qualities, lengths = measure(*rows[1:], how), by_length(*rows, how)
    rarities = [] if counts.words is None else by_rarity(*rows, counts.words, how, words=counts.cut)
    tokenised = sum(text.endswith(" .") for text in hypotheses)
    return Evaluation(len(hypotheses), qualities, lengths, rarities, counts.origin, habits(*rows), tokenised, alignment)


def training_counts(run: Run, sources: Iterable[str]) -> Counts:
    """How often the training text has the words of ``sources``.

    A word tokenizer of its own for the source has counted them: what its vocabulary left out counts 0, and
    a mark for capitals, which is in every vocabulary that has marks, 1 at least. Else the training text is read once
    more, if it is still where the settings say; a hub's is not fetched again.
    """
    tokenizer = Tokenizers.load(run.tokenizer)
    if isinstance(tokenizer.source, WordTokenizer) and not tokenizer.joint:
        vocabulary = tokenizer.source.vocabulary
        counted = dict(zip(vocabulary.tokens, vocabulary.counts, strict=True))
        return Counts(counted, "the run's source vocabulary", tokenizer.source.pieces)
    data = run.settings.data
    name = data.source or data.corpus
    if name.startswith("hf://"):
        return Counts(None, f"{name} is not read again for counts")
    wanted = {word for source in sources for word in split_words(source)}
    words = dict.fromkeys(wanted, 0)
    try:
        rows = materials(run.settings)[0].rows(PairEncoder.names)
        for word, times in Counter(w for _, row in rows for w in split_words(row[0]) if w in wanted).items():
            words[word] = times
    except RegardError as problem:
        return Counts(None, f"the training text is not there: {problem}")
    return Counts(words, f"the training text, {name}")


def aligned(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[Links]:
    """The links that the run's best aligner reads between given texts and their translations."""
    return align_texts(translator.model, translator.tokenizers, sources, targets, translator.aligner)


def swapped(links: Sequence[Links]) -> list[Links]:
    """The links of the other direction, source first again."""
    return [frozenset((target, source) for source, target in each) for each in links]


def alignment_of(
    predicted: Sequence[Links],
    golds: Sequence[Gold],
    backward: Sequence[Links] | None = None,
    method: Symmetrisation = "grow-diag-final-and",
) -> AlignmentQuality:
    """Score links, joined with those of the other direction where given; both source first."""
    if backward is None:
        return alignment_quality(predicted, golds)
    if len(backward) != len(predicted):
        raise DataError(
            f"alignments = {len(backward):,} backward: there are {len(predicted):,} forward; they must pair"
        )
    return alignment_quality([symmetrise(*both, method) for both in zip(predicted, backward, strict=True)], golds)


def read_alignments(path: Path, texts: Texts) -> list[Gold]:
    """Gold or found alignments between the source and the reference, checked against both."""
    golds = read_gold(read_lines(path), str(path), sentences=len(texts.sources))
    check_inside(golds, texts.sources, texts.references, str(path))
    return golds


@dataclass(frozen=True)
class Scored:
    """A target's pieces, ``<end>`` last, with the log-probability of each."""

    pieces: list[str]
    log_probabilities: list[float]

    @property
    def total(self) -> float:
        return sum(self.log_probabilities)


def score(translator: Translator, pairs: Iterable[Sequence[str]]) -> Iterator[Scored]:
    """How probable the model finds each target, in order; no more than a chunk of lines is held in memory."""
    stream = iter(pairs)
    before = 0
    while chunk := list(islice(stream, CHUNK)):
        sources = [translator.tokenizers.read(source) for source, _ in chunk]
        targets = [translator.tokenizers.written(target) for _, target in chunk]
        for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=before + 1):
            if (pieces := max(len(source), len(target))) > LONGEST:
                raise DataError(
                    f"line {number} = {pieces:,} pieces: too long to score; at most {LONGEST:,} would be right"
                )
        for target, found in zip(
            targets, scoring.score(translator.model, sources, targets, translator.device), strict=True
        ):
            given = len(translator.tokenizers.begin)
            chosen = [translator.tokenizers.target.token(piece) for piece in (*target[given:], END)]
            yield Scored(chosen, found[given:])
        before += len(chunk)
