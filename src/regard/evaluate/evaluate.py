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
from regard.data.shards import open_shards
from regard.decode import scoring
from regard.decode.options import Options
from regard.decode.texts import Output, Part
from regard.errors import DataError, RegardError, SettingsError
from regard.explain.alignment import attend, sides
from regard.explain.doubt import Doubt, doubts
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
from regard.metrics.groups import EDGES as LENGTHS
from regard.metrics.groups import Bucket, Habits, bucket_names, by_length, by_rarity, habits
from regard.metrics.translation import Quality, measure, metrics_named
from regard.runs.folder import Run
from regard.settings.call import MeasureSettings
from regard.settings.languages import languages_of, name_of, named_in
from regard.tasks.corpus import materials
from regard.tasks.translator import Translator
from regard.text.sentences import one_line
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import Vectors, inlined
from regard.text.vocabulary import END, UNK
from regard.text.words import WordTokenizer, split_words

ALIGNED = 256  # pairs aligned together
CHUNK = 1024  # lines translated or scored together: enough to sort them by length
LEARNED_ROWS = 5_000_000  # of a training text that is looked through for the test: a second or two
LONGEST = 10_000  # pieces of a line to score; more is no sentence, and would not fit into memory

Progress = Callable[[int, int | None], None]
# How often words were seen in training (None where that is not known), where it is known from, and what cuts a text
# into words as they were counted.
Counts = tuple[Mapping[str, int] | None, str, Callable[[str], Sequence[str]]]


@dataclass(frozen=True)
class Texts:
    """A test set, line by line, with the output to measure if it is there already."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str] | None = None
    name: str = ""  # where it comes from
    held_out: bool = True  # False: by this text checkpoints were chosen
    vectors: bool = False  # whether the sources are these, which have no words to count

    def fingerprint(self) -> tuple[str, int]:
        """Of all sources and references, and how many there are."""
        lines = "\n".join([*self.sources, *self.references])
        return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest(), len(self.sources)


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
    """Check the settings before any work is done."""
    metrics_named(how.metrics, how.tokenize)
    bucket_names(how.edges or LENGTHS)
    if how.resamples < 0:
        raise SettingsError(f"resamples = {how.resamples}: cannot be negative; 0 means no interval")


def read_texts(source: Path, target: Path, hypotheses: Path | None = None, *, vectors: bool = False) -> Texts:
    """Parallel files, plain or packed; all must have as many lines as each other, and at least one. A source of
    ``vectors`` may be a file that is named, beside the file of sources."""
    paths = [str(path) for path in (source, target, hypotheses) if path is not None]
    rows = [row for _, row in read_parallel(paths)]
    if not rows:
        raise DataError(f"{source}: is empty; give at least one sentence")
    sources, references, *outputs = (list(side) for side in zip(*rows, strict=True))
    sources = [inlined(text, source.parent) for text in sources] if vectors else sources
    return Texts(sources, references, outputs[0] if outputs else None, vectors=vectors)


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
    qualities, lengths = measure(*rows[1:], how), [] if texts.vectors else by_length(*rows, how)
    known, origin, cut = counts
    rarities = [] if known is None else by_rarity(*rows, known, how, words=cut)
    tokenised = sum(text.endswith(" .") for text in hypotheses)
    return Evaluation(len(hypotheses), qualities, lengths, rarities, origin, habits(*rows), tokenised, alignment)


def training_counts(run: Run, sources: Iterable[str]) -> Counts:
    """How often the training text has the words of ``sources``.

    A word tokenizer of its own for the source has counted them: what its vocabulary left out counts 0, and
    a mark for capitals, which is in every vocabulary that has marks, 1 at least. Else the training text is read once
    more, if it is still where the settings say; a hub's is not fetched again.
    """
    tokenizer = Tokenizers.load(run.tokenizer)
    if isinstance(tokenizer.source, Vectors):
        return None, "the source is no text", split_words
    if isinstance(tokenizer.source, WordTokenizer) and not tokenizer.joint:
        vocabulary = tokenizer.source.vocabulary
        counted = dict(zip(vocabulary.tokens, vocabulary.counts, strict=True))
        return counted, "the run's source vocabulary", tokenizer.source.pieces
    data = run.settings.data
    name = data.source or data.corpus
    if name.startswith("hf://"):
        return None, f"{name} is not read again for counts", split_words
    wanted = {word for source in sources for word in split_words(source)}
    words = dict.fromkeys(wanted, 0)
    try:
        rows = materials(run.settings)[0].rows(PairEncoder.names)
        for word, times in Counter(w for _, row in rows for w in split_words(row[0]) if w in wanted).items():
            words[word] = times
    except RegardError as problem:
        return None, f"the training text is not there: {problem}", split_words
    return words, f"the training text, {name}", split_words


def learned(run: Run, sources: Sequence[str]) -> str:
    """A remark for people, if a translator was trained on some of these sources; empty if not, or if that cannot be
    known quickly. The encoded training text in the run is what it has read, whatever the files have become since."""
    try:
        column = open_shards(run.data / "train", verify=False).columns["source"]
    except (DataError, KeyError):
        return ""
    tokenizers = Tokenizers.load(run.tokenizer)
    if isinstance(tokenizers.source, Vectors) or len(column) > LEARNED_ROWS:
        return ""
    rows = [row for source in sources if UNK not in (row := tokenizers.read(source))]  # else it may be another text
    if not (count := sum(column.has(rows))):
        return ""
    of = (
        f"{count:,} of the {len(sources):,} test sources are" if count > 1 else f"1 of {len(sources):,} test sources is"
    )
    return f"{of} in the training text of {run.place}: scores on these say nothing about new text"


def misnamed(run: Run, *files: str) -> str:
    """A remark for people, if the names of a test's two files say other languages than the run translates between."""
    own, theirs = languages_of(run.settings), named_in(*files) if all(files) else None
    if own is None or theirs is None or own.codes == theirs.codes:
        return ""
    said = f"{' and '.join(files)}: by their names {name_of(theirs.source)} to {name_of(theirs.target)}"
    return f"{said}, but {run.place} translates {name_of(own.source)} to {name_of(own.target)}: its scores say nothing"


def aligned(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[Links]:
    """The links that the run's best aligner reads between given texts and their translations.

    The weights of no more than `ALIGNED` pairs are held at once.
    """
    found: list[Links] = []
    for first in range(0, len(sources), ALIGNED):
        texts = zip(sources[first : first + ALIGNED], targets[first : first + ALIGNED], strict=True)
        pairs = [sides(translator.tokenizers, source, target) for source, target in texts]
        found += map(translator.aligner.align, attend(translator.model, pairs))
    return found


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


def score(
    translator: Translator, pairs: Iterable[Sequence[str]], *, first: int = 0
) -> Iterator[list[tuple[str, float]]]:
    """How probable the model finds each target, in order: its pieces, ``<end>`` last, with the log-probability of each.

    No more than a chunk of lines is held in memory. ``first`` lines stand before these.
    """
    stream = iter(pairs)
    before = first
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
            yield list(zip(chosen, found[given:], strict=True))
        before += len(chunk)


# A corpus, sorted by doubt.

DOUBTED_CHUNK = 512  # texts at a time
Doubted = tuple[int, str, str, Doubt]  # line, source, target


def doubted(
    translator: Translator, rows: Iterable[tuple[str, str | None]], tell: Callable[[int], object] = lambda _: None
) -> list[Doubted]:
    """Pairs of texts, most doubtful first; what has no target is translated. Empty ones are left out; where doubt has
    no value, the mean log-probability decides."""
    found, waiting, done = list[Doubted](), iter(rows), 0
    while chunk := list(islice(waiting, DOUBTED_CHUNK)):
        outputs = _outputs(translator, chunk)
        numbered = zip(range(done + 1, done + 1 + len(chunk)), chunk, outputs, strict=True)
        some = [(number, source, output) for number, (source, _), output in numbered if output.parts]
        measured = doubts(translator, [output for _, _, output in some], translator.calibration)
        found += [
            (number, source, output.text, doubt)
            for (number, source, output), (doubt, _) in zip(some, measured, strict=True)
        ]
        done += len(chunk)
        tell(done)
    return sorted(found, key=lambda each: (-(each[3].value or 0.0), each[3].signals["probability"]))


def _outputs(translator: Translator, rows: list[tuple[str, str | None]]) -> list[Output]:
    missing = [source for source, target in rows if target is None]
    written = iter([ranked[0] for ranked in translator.search(missing, Options())] if missing else ())
    return [next(written) if target is None else _given(translator, source, target) for source, target in rows]


def _given(translator: Translator, source: str, target: str) -> Output:
    """A translation from elsewhere, as if it had been written."""
    part = Part(source, tuple(translator.tokenizers.written(target)), target)
    return Output(target, 0.0, 0.0, (part,) if source.strip() and target.strip() else ())
