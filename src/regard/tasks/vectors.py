"""Word vectors learned elsewhere, at the beginning of a training: the only time that their file is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from regard.data.vectors import find_vectors, vector_width, vector_words
from regard.errors import SettingsError
from regard.models.generator import LanguageModel
from regard.nn.embeddings import Embedding
from regard.nn.words import WordEmbedding
from regard.settings import Settings, VectorSettings
from regard.text.tokenizers import Tokenizers, seen_words
from regard.text.vocabulary import SPECIAL_TOKENS, Tokenizer
from regard.text.words import JOINER, SpaceTokenizer, WordTokenizer


def resolve(settings: Settings) -> Settings:
    """The settings with the width of the vectors filled in, so that a run can be opened without their file."""
    vectors, width = settings.model.vectors, settings.model.width
    if not vectors.file:
        return settings
    if (kind := settings.text.tokenizer) not in ("word", "space"):
        raise SettingsError(
            f"model.vectors.file = {vectors.file}: has vectors of words, but text.tokenizer is '{kind}'; use 'word', "
            "or 'space' where words are set apart already"
        )
    found = vector_width(vectors.file)
    if vectors.width not in (0, found):
        raise SettingsError(f"model.vectors.width = {vectors.width}: {vectors.file} has {found} numbers a word; use 0")
    if not vectors.frozen and width != found:
        raise SettingsError(
            f"model.width = {width}: {vectors.file} has {found} numbers a word; set model.width={found}, "
            "or model.vectors.frozen=true to have them beside learned ones"
        )
    known = vectors.model_copy(update={"width": found})
    return settings.model_copy(update={"model": settings.model.model_copy(update={"vectors": known})})


def extend(tokenizers: Tokenizers, vectors: VectorSettings) -> Tokenizers:
    """The source's tokenizer knows the file's words too: a word that training never saw may have a vector."""
    source = tokenizers.source
    assert isinstance(source, WordTokenizer | SpaceTokenizer)
    words = vector_words(vectors.file, vectors.words)
    extended = replace(source, vocabulary=source.vocabulary.extended(words))
    return Tokenizers(extended, extended if tokenizers.joint else tokenizers.target)


def begin(model: nn.Module, tokenizer: Tokenizer, vectors: VectorSettings, tell: Callable[[str], None]) -> None:
    """Put the file's vectors into the embedding that reads the source, and tell how many there are.

    Frozen ones stay as they are. Where learned ones begin with them they are scaled, all by one number, to a mean
    length of 1, which is that of untrained vectors: words with and without a vector are then alike.
    """
    side = "decoder" if isinstance(model, LanguageModel) else "encoder"
    embedding = model.get_submodule(f"{side}.embedding")
    assert isinstance(embedding, Embedding | WordEmbedding)
    words = [tokenizer.token(number).removeprefix(JOINER) for number in range(tokenizer.size)]
    places, known = find_vectors(vectors.file, words)
    rows = torch.from_numpy(known).reshape(-1, vectors.width)
    if not vectors.frozen and len(rows):
        rows = rows / rows.norm(dim=1).mean().clamp_min(1e-6)
    _target(embedding).load_vectors(rows, torch.tensor(places, dtype=torch.long))
    seen = seen_words(tokenizer)
    inside = sum(place < seen for place in places)
    tell(
        f"word vectors: {inside:,} of the {seen - len(SPECIAL_TOKENS):,} words of the training text are in "
        f"{vectors.file}; {len(places) - inside:,} words are known from there alone"
    )


def _target(embedding: Embedding | WordEmbedding) -> Embedding | WordEmbedding:
    """Frozen vectors stand beside the learned ones; others are where the learned ones begin."""
    beside = isinstance(embedding, WordEmbedding) and embedding.vectors.shape[1] > 0
    return embedding.learned if isinstance(embedding, WordEmbedding) and not beside else embedding
