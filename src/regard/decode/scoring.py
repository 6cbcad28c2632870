"""How probable a model finds given translations: teacher forcing, one pass for a whole batch.

log p(target | source) = Σ_t log p(y_t | y_<t, source),  with y_n = <end>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.decode.search import log_softmax, of_like_length
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.text.vocabulary import END, PAD

ROWS = 512  # features projected onto the vocabulary at once
ORDERS = 6  # chrF compares sequences of up to so many letters


@torch.no_grad()
def score(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    device: torch.device,
    *,
    budget: int = 4096,
) -> list[list[float]]:
    """The log-probability of every target token and of the ``<end>`` after them, for each pair in order.

    Sources end with ``<end>`` and targets have no special tokens, as the tokenizers and `PairEncoder` give them.
    Pairs of like length go together, ``budget`` padded tokens at a time.
    """
    training = model.training
    model.eval()
    results: list[list[float]] = [[] for _ in targets]
    lengths = [max(len(target) + 1, len(source)) for source, target in zip(sources, targets, strict=True)]
    for group in of_like_length(lengths, budget):
        found = _score(model, [sources[row] for row in group], [targets[row] for row in group], device)
        for row, scores in zip(group, found, strict=True):
            results[row] = scores
    model.train(training)
    return results


def _score(
    model: EncoderDecoder, sources: list[Sequence[int]], targets: list[Sequence[int]], device: torch.device
) -> list[list[float]]:
    source, source_mask = _padded(sources, device)  # (B, S)
    written, mask = _padded([[model.first, *target] for target in targets], device)  # (B, T)
    wanted, _ = _padded([[*target, END] for target in targets], device)  # (B, T)
    _, state = model.start(source, source_mask)
    features, _ = model.advance(written, state, mask)  # (B, T, D)
    chosen = _log_probabilities(model, features[mask], wanted[mask])
    return [part.tolist() for part in torch.split(chosen, [len(target) + 1 for target in targets])]


def _log_probabilities(model: EncoderDecoder, features: Tensor, wanted: Tensor) -> Tensor:
    """Of each wanted token (N,) after its features (N, D): a slice at a time, because V is large."""
    parts = []
    for some, tokens in zip(torch.split(features, ROWS), torch.split(wanted, ROWS), strict=True):
        parts.append(log_softmax(model.project(some)).gather(-1, tokens[:, None]).squeeze(-1))
    return torch.cat(parts)


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows padded on the right, and which of their tokens are real."""
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD).to(device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, masks.from_lengths(lengths, ids.shape[1])


# Minimum Bayes risk: not the most probable output, but the one most like all others (Eikema and Aziz, 2020).


def utilities(samples: Sequence[str]) -> list[float]:
    """How much each sample agrees with all of them: ``u_i = 1/N Σ_j chrF(y_i, y_j)``, sacreBLEU's sentence chrF.

    Samples stand for the model's distribution, so that this mean is the expected quality of an output when the
    truth is drawn from the model. A text that was drawn more than once counts as often, and is compared once.
    """
    counts = Counter(samples)
    agreement = chrf_of_all(list(counts)) @ np.array(list(counts.values()), float) / max(1, len(samples))
    total = dict(zip(counts, agreement.tolist(), strict=True))
    return [total[text] for text in samples]


def chrf_of_all(texts: Sequence[str]) -> NDArray[np.float64]:
    """Sentence chrF (Popović, 2015) of every text, with every text as the reference, (N, N), as sacreBLEU computes it;
    a text is wholly like itself. The n-grams of each are counted once."""
    precision = np.zeros((len(texts), len(texts)))
    recall, orders = np.zeros_like(precision), np.zeros_like(precision)
    letters = ["".join(text.split()) for text in texts]
    for order in range(1, ORDERS + 1):
        grams = [Counter(text[place : place + order] for place in range(len(text) - order + 1)) for text in letters]
        known = {gram: place for place, gram in enumerate({gram for each in grams for gram in each})}
        table = np.zeros((len(texts), len(known)), np.int64)
        for row, each in zip(table, grams, strict=True):
            row[[known[gram] for gram in each]] = list(each.values())
        sums = table.sum(1)
        common = np.stack([np.minimum(row, table).sum(1) for row in table]) if len(texts) else precision
        both = (sums[:, None] > 0) & (sums > 0)
        precision += np.divide(common, sums[:, None], out=np.zeros_like(precision), where=both)
        recall += np.divide(common, sums, out=np.zeros_like(recall), where=both)
        orders += both
    found = np.divide(5 * precision * recall, (4 * precision + recall) * orders, where=precision + recall > 0,
                      out=np.zeros_like(precision))  # β = 2  # fmt: skip
    np.fill_diagonal(found, 1.0)
    return 100 * found
