"""Sentences to try a run with: its own validation sentences, which it can read and has not learned from.

Those of the built-in corpus are made anew. Of files, those that the run itself holds are taken, from its log and its
encoded validation text: the files may be gone, and no path is ever followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field

from regard.data.shards import Shards, open_shards
from regard.errors import RegardError
from regard.runs.folder import Run
from regard.runs.log import read_log
from regard.tasks.corpus import materials
from regard.tasks.kinds import task_of
from regard.text.special import UNK
from regard.text.tokenizers import Tokenizers

DRAWN = 200  # sentences that are chosen from
WORDS = 14  # a sentence to try is not longer, if there are such


@dataclass(frozen=True)
class Example:
    """A sentence to try."""

    text: Annotated[str, Field(examples=["the black cat ate the mouse"])]
    reference: Annotated[str, Field(description="The right answer; of a language model the whole sentence.")]


def examples(run: Run, count: int) -> list[Example]:
    """At most ``count``, from short to long, none twice."""
    built_in = run.settings.data.is_built_in
    found = dict(islice(_built_in(run) if built_in else _kept(run), DRAWN))
    texts = sorted((text for text in found if text.strip()), key=lambda text: (len(text.split()), text))
    texts = [text for text in texts if len(text.split()) <= WORDS] or texts
    if len(whole := [text for text in texts if _is_whole(text)]) >= count:
        texts = whole
    step = max(1, len(texts) // count)
    chosen = texts[step // 2 :: step][:count]
    if run.settings.task == "language":
        return [Example(_beginning(text), text) for text in chosen]
    return [Example(text, found[text]) for text in chosen]


def _is_whole(text: str) -> bool:
    """Whether it is written out, with a capital, where there are any, and a mark at the end."""
    return text[0] == text[0].upper() and not text[-1].isalnum()


def _beginning(text: str) -> str:
    words = text.split()
    return " ".join(words[: max(1, len(words) // 2)])


def _built_in(run: Run) -> Iterator[tuple[str, str]]:
    known = run.settings.data.model_copy(update={"unknown": 0.0})  # invented words are no good first examples
    _, valid = materials(run.settings.model_copy(update={"data": known}))
    for _, row in valid.rows(task_of(run.settings.task).columns):
        yield row[0], row[-1]


def _kept(run: Run) -> Iterator[tuple[str, str]]:
    """What the log shows of the validation text, then what was encoded of it."""
    events = read_log(run.log) if run.log.is_file() else []
    for event in events:
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
            continue  # not what was written there
        target = tokenizers.target.decode(sides[-1])
        yield (target, "") if len(sides) == 1 else (tokenizers.source.decode(sides[0]), target)
