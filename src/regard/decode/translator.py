"""Text to text with a trained model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.decode.rules import Beam
from regard.decode.search import search
from regard.models.encoder_decoder import EncoderDecoder
from regard.text.special import END, PAD
from regard.text.tokenizers import Tokenizers


@dataclass(frozen=True)
class Translator:
    """A model with its tokenizers. Order is kept; an empty line stays an empty line."""

    model: EncoderDecoder
    tokenizers: Tokenizers
    device: torch.device

    def translate(
        self, texts: Sequence[str], *, beam: int = 5, length_penalty: float = 1.0, budget: int = 4096
    ) -> list[str]:
        """Each text's best translation; sentences of like length go together, ``budget`` tokens at a time."""
        training = self.model.training
        self.model.eval()
        encoded = [[*self.tokenizers.source.encode(text), END] for text in texts]
        results = [""] * len(texts)
        filled = [number for number, ids in enumerate(encoded) if len(ids) > 1]
        for group in _groups(filled, encoded, max(1, budget // beam)):
            found = self._search([encoded[row] for row in group], beam, length_penalty)
            for number, tokens in zip(group, found, strict=True):
                results[number] = self.tokenizers.target.decode(tokens)
        self.model.train(training)
        return results

    @torch.no_grad()
    def _search(self, rows: list[list[int]], beam: int, penalty: float) -> list[list[int]]:
        width = max(map(len, rows))
        padded = np.array([ids + [PAD] * (width - len(ids)) for ids in rows])
        source = torch.from_numpy(padded).to(self.device)
        limit = (source != PAD).sum(1) * 2 + 10  # more than any sane translation needs
        first, state = self.model.start(source)
        rule = Beam(width=beam, length_penalty=penalty)
        return [found[0].tokens for found in search(self.model, first, state, limit, rule=rule)]


def _groups(numbers: list[int], encoded: list[list[int]], budget: int) -> Iterator[list[int]]:
    """Longest first, so that a batch that does not fit into memory shows at once."""
    group: list[int] = []
    for number in sorted(numbers, key=lambda row: -len(encoded[row])):
        if group and (len(group) + 1) * len(encoded[group[0]]) > budget:
            yield group
            group = []
        group.append(number)
    if group:
        yield group
