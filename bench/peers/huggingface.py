"""Hugging Face's Marian in a plain loop, as a careful user would write it: SDPA, no cache, a fused optimizer.

Dropout is where the other contestants have it, after attention, feed-forward and inside of the latter; with
`--hidden-dropout 0` it is where Marian's defaults leave it, which is less work.
"""

from __future__ import annotations

import argparse
from functools import partial

import torch.nn.functional as F
import transformers
from transformers import MarianConfig, MarianMTModel

from peers.protocol import END, PAD, START, Batch, Work, adam, serve, update


class HuggingFace:
    def __init__(self, work: Work, hidden_dropout: float | None = None) -> None:
        config = MarianConfig(
            vocab_size=work.vocabulary,
            d_model=work.width,
            encoder_layers=work.depth,
            decoder_layers=work.depth,
            encoder_attention_heads=work.heads,
            decoder_attention_heads=work.heads,
            encoder_ffn_dim=work.hidden,
            decoder_ffn_dim=work.hidden,
            dropout=work.dropout,
            activation_dropout=work.dropout if hidden_dropout is None else hidden_dropout,
            activation_function="relu",
            max_position_embeddings=512,
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=END,
            decoder_start_token_id=START,
            forced_eos_token_id=None,
            use_cache=False,
            attn_implementation="sdpa",
        )
        self.work = work
        self.model = MarianMTModel(config)
        self.optimizer = adam(self.model, work)

    def step(self, batch: Batch) -> float:
        logits = self.model(
            input_ids=batch.source,
            attention_mask=(batch.source != PAD).long(),
            decoder_input_ids=batch.target_in,
            use_cache=False,
        ).logits
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            batch.target_out.flatten(),
            ignore_index=PAD,
            reduction="sum",
            label_smoothing=self.work.smoothing,
        )
        return update(self.model, self.optimizer, loss, self.work, batch.predictions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hugging Face as a contestant of bench/training.py.")
    parser.add_argument("folder")
    parser.add_argument("--hidden-dropout", type=float)
    given = parser.parse_args().hidden_dropout
    serve(partial(HuggingFace, hidden_dropout=given), f"transformers {transformers.__version__}")
