"""An example that fits on a page and needs no trained run: self-attention among three words of four features."""

from __future__ import annotations

from dataclasses import replace

import torch

from regard.explain.replay import Spelling
from regard.explain.walkthrough.step import Walkthrough
from regard.explain.walkthrough.walk import walkthrough
from regard.models.generator import Labeller
from regard.models.transformer import TransformerEncoder
from regard.nn.attention import Attention, InnerScore, Projections
from regard.nn.embeddings import Embedding, Unplaced
from regard.nn.layers import FeedForward, LayerNorm
from regard.nn.transformer import EncoderLayer, Residual
from regard.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from regard.text.words import WordTokenizer

WORDS = {"The": [1.0, 0.0, 1.0, 0.0], "cat": [0.0, 1.0, 0.0, 1.0], "sat": [1.0, 1.0, 1.0, 1.0]}
WIDTH = 4


def example() -> Walkthrough:
    """From three words to their contexts. Queries, keys and values are the words themselves: W = identity."""
    tokenizer = WordTokenizer(Vocabulary((*SPECIAL_TOKENS, *WORDS)))
    text = " ".join(WORDS)
    steps = walkthrough(_model(), tokenizer.encode(text), None, Spelling(source=tokenizer, source_text=text))
    last = [step.name for step in steps].index("encoder.0.self.contexts")
    return replace(steps, steps=steps.steps[: last + 1])


def _model() -> Labeller:
    embedding = Embedding(len(SPECIAL_TOKENS) + len(WORDS), WIDTH)
    attention = Attention(InnerScore(WIDTH**-0.5), projections=Projections(WIDTH, WIDTH, WIDTH))
    with torch.no_grad():
        embedding.weight[len(SPECIAL_TOKENS) :] = torch.tensor(list(WORDS.values()))
        for parameter in attention.parameters():
            parameter.copy_(torch.eye(WIDTH) if parameter.dim() == 2 else torch.zeros(WIDTH))
    residuals = [Residual(LayerNorm(WIDTH), before=False) for _ in range(2)]
    layer = EncoderLayer(attention, FeedForward(WIDTH, WIDTH), residuals)
    return Labeller(TransformerEncoder(embedding, Unplaced(), [layer]), 2).double().eval()
