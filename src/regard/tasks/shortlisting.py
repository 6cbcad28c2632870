"""A run's shortlist: made of its training text when first asked for, and remembered.

RUN/shortlist.safetensors   `likely` and `frequent`, see `regard.data.lexicon`
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from regard.data.encoding import PairEncoder
from regard.data.examples import Examples, encode_examples
from regard.data.lexicon import Lexicon, learn_lexicon
from regard.data.shards import open_shards
from regard.decode.shortlist import Shortlist
from regard.errors import DataError, RegardError, SettingsError
from regard.files import new_file
from regard.runs.folder import Run
from regard.tasks.corpus import materials
from regard.text.tokenizers import Tokenizers

DEPTH = 200  # targets remembered for each source piece
FREQUENT = 500  # targets that are always candidates

Tell = Callable[[str], object]


def check(count: int) -> None:
    """That so many can be asked for; 0 is all of them."""
    if not 0 <= count <= DEPTH:
        raise SettingsError(
            f"shortlist = {count}: is how many targets a source piece brings, 1 to {DEPTH}; 100 is usual, 0 is all"
        )


def shortlist_of(run: Run, tokenizers: Tokenizers, count: int, tell: Tell) -> Shortlist:
    """``count`` targets of each source piece, `FREQUENT` others and, where both sides share pieces, that piece."""
    sizes = tokenizers.source.size, tokenizers.target.size
    lexicon = _remembered(run, sizes) or _learned(run, tokenizers, sizes, tell)
    likely = torch.from_numpy(lexicon.likely[:, :count].astype(np.int64))
    if tokenizers.joint:  # a name or a number is often written as it is read
        likely = torch.cat((likely, torch.arange(sizes[0])[:, None]), 1)
    return Shortlist(likely, torch.from_numpy(lexicon.frequent[:FREQUENT].astype(np.int64)), sizes[1])


def _remembered(run: Run, sizes: tuple[int, int]) -> Lexicon | None:
    """What is in the folder, unless it is damaged or of other vocabularies."""
    try:
        found = load_file(run.shortlist)
    except (OSError, SafetensorError):
        return None
    shapes = {name: array.shape for name, array in found.items()}
    if shapes != {"likely": (sizes[0], DEPTH), "frequent": (sizes[1],)}:
        return None
    return Lexicon(found["likely"], found["frequent"])


def _learned(run: Run, tokenizers: Tokenizers, sizes: tuple[int, int], tell: Tell) -> Lexicon:
    tell(f"shortlist: learning from the training text which pieces translate which; kept in {run.shortlist}")
    lexicon = learn_lexicon(_training_text(run, tokenizers), sizes, DEPTH)
    with suppress(OSError), new_file(run.shortlist) as file:  # a run that may only be read learns it each time
        file.write(save({"likely": lexicon.likely, "frequent": lexicon.frequent}))
    return lexicon


def _training_text(run: Run, tokenizers: Tokenizers) -> Examples:
    """As it was encoded for training; else as the settings name it."""
    with suppress(DataError):
        return open_shards(run.data / "train")
    try:
        rows = (row for _, row in materials(run.settings)[0].rows(PairEncoder.names))
        return encode_examples(rows, PairEncoder(tokenizers))
    except RegardError as problem:
        raise DataError(
            f"shortlist: the training text is not there any more ({problem}); leave --shortlist out"
        ) from None
