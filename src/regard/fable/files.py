"""fable as plain files, one sentence a line: what every toolkit can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

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
    """Write `train.en`, `train.fr`, `train.align`, `train.tags` … for all three splits, or nothing at all.

    Everything is written into a folder beside and then renamed: a folder of this name is always whole.
    """
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
    """One pass over the stream, all files side by side, so that memory does not grow with the corpus."""
    with ExitStack() as open_files:
        handles: dict[str, TextIO] = {}
        for suffix in ("en", language, "align", "tokens", "tags", "sentiment", "referents"):
            path = folder / f"{split}.{suffix}"
            handles[suffix] = open_files.enter_context(path.open("w", encoding="utf-8", newline="\n"))
        for sentence in sentences:
            for suffix, line in lines(sentence, language).items():
                handles[suffix].write(line + "\n")


def lines(sentence: ParallelSentence, language: Language) -> Mapping[str, str]:
    """What each file says about one sentence."""
    return {
        "en": sentence.source,
        language: sentence.target,
        "align": pharaoh(sentence.alignment),
        "tokens": " ".join(sentence.tokens),
        "tags": " ".join(sentence.tags),
        "sentiment": sentence.sentiment,
        "referents": pharaoh(sentence.referents),
    }


def pharaoh(links: Links) -> str:
    """Pairs as the aligners write them: ``0-0 1-2``."""
    return " ".join(f"{source}-{target}" for source, target in links)
