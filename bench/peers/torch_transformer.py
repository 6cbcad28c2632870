"""torch's own `nn.Transformer` in a plain loop, with tied embeddings and sinusoidal positions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from peers.protocol import PAD, Batch, Work, adam, serve, update


class Translator(nn.Module):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self.scale = math.sqrt(work.width)
        self.embedding = nn.Embedding(work.vocabulary, work.width)
        nn.init.normal_(self.embedding.weight, std=work.width**-0.5)
        self.bias = nn.Parameter(torch.zeros(work.vocabulary))
        self.dropout = nn.Dropout(work.dropout)
        self.layers = nn.Transformer(
            *(work.width, work.heads, work.depth, work.depth, work.hidden, work.dropout),
            batch_first=True,
            norm_first=True,
        )
        for module in self.layers.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0  # nobody else drops attention weights here
        self.register_buffer("positions", sinusoids(512, work.width), persistent=False)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden = source == PAD
        features = self.layers(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return F.linear(features, self.embedding.weight, self.bias)


def sinusoids(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
    return torch.cat((angles.sin(), angles.cos()), 1)


class TorchTransformer:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.model = Translator(work)
        self.optimizer = adam(self.model, work)

    def step(self, batch: Batch) -> float:
        logits = self.model(batch.source, batch.target_in)
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=PAD,
            reduction="sum",
            label_smoothing=self.work.smoothing,
        )
        return update(self.model, self.optimizer, loss, self.work, batch.predictions)


if __name__ == "__main__":
    serve(TorchTransformer, f"torch {torch.__version__}")
