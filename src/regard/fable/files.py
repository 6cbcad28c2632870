"""fable as plain files, one sentence a line, which every toolkit can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from regard.errors import DataError
from regard.fable.corpus import SHORTEST, Split, generate
from regard.fable.sentence import Language, Links, ParallelSentence
from regard.files import new_folder


def write(
    folder: str | Path,
    language: Language,
    *,
    train: int = 20_000,
    valid: int = 1_000,
    test: int = 1_000,
    seed: int = 1,
    minimum_words: int = SHORTEST,
    maximum_words: int = 20,
) -> Path:
    """Write `train.en`, `train.fr`, `train.align`, `train.tags` … for all three splits, or nothing at all."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"folder = {folder}: is there already and not empty; a new name would be right")
    counts: dict[Split, int] = {"train": train, "valid": valid, "test": test}
    sentences = {
        split: generate(
            language, count=count, split=split, seed=seed, minimum_words=minimum_words, maximum_words=maximum_words
        )
        for split, count in counts.items()
    }
    with new_folder(folder) as temporary:
        for split, stream in sentences.items():
            write_split(temporary, split, language, stream)
    return folder


def write_split(folder: Path, split: str, language: Language, sentences: Iterator[ParallelSentence]) -> None:
    """Write all files in one pass over the stream, so that memory does not grow with the corpus."""
    suffixes = ("en", language, "align", "tokens", "tags", "sentiment", "referents")
    with ExitStack() as stack:
        paths = [folder / f"{split}.{suffix}" for suffix in suffixes]
        files = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
        for sentence in sentences:
            lines = (
                sentence.source,
                sentence.target,
                pharaoh(sentence.alignment),
                " ".join(sentence.tokens),
                " ".join(sentence.tags),
                sentence.sentiment,
                pharaoh(sentence.referents),
            )
            for file, line in zip(files, lines, strict=True):
                file.write(line + "\n")


def pharaoh(links: Links) -> str:
    """Pairs in Pharaoh's format: ``0-0 1-2``."""
    return " ".join(f"{source}-{target}" for source, target in links)
