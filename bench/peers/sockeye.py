"""Sockeye: its model, traced as its trainer does, its loss and its optimizer."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import torch
from sockeye import constants
from sockeye.data_io import DataConfig
from sockeye.encoder import EmbeddingConfig
from sockeye.loss import CrossEntropyLoss
from sockeye.model import ModelConfig, SockeyeModel
from sockeye.optimizers import OptimizerConfig, get_optimizer
from sockeye.training import ModelWithLoss
from sockeye.transformer import TransformerConfig
from torch import Tensor, nn

from peers.protocol import PAD, SECOND_MOMENT, Batch, Work, serve


def architecture(work: Work) -> ModelConfig:
    side = TransformerConfig(
        model_size=work.width,
        attention_heads=work.heads,
        feed_forward_num_hidden=work.hidden,
        act_type="relu",
        num_layers=work.depth,
        dropout_attention=0.0,
        dropout_act=work.dropout,
        dropout_prepost=work.dropout,
        positional_embedding_type="fixed",
        preprocess_sequence="n",
        postprocess_sequence="dr",
        max_seq_len_source=512,
        max_seq_len_target=512,
    )
    words = EmbeddingConfig(work.vocabulary, work.width, work.dropout)
    data = DataConfig(None, 512, 512, 1, 1)  # the model asks for the number of factors alone
    return ModelConfig(
        data, work.vocabulary, work.vocabulary, words, words, side, replace(side, depth_key_value=work.width)
    )


class Sockeye:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.model: nn.Module = SockeyeModel(architecture(work))
        for name, parameter in self.model.named_parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.constant_(parameter, float(name.endswith("weight")))  # gains of norms are 1, biases 0
        made, values, self.zero = get_optimizer(
            OptimizerConfig("adam", running_on_gpu=False, lr=work.rate, betas=(0.9, SECOND_MOMENT))
        )
        self.optimizer = made(self.model.parameters(), **values)
        self.loss = CrossEntropyLoss(label_smoothing=work.smoothing, dtype="float32")
        self.traced: ModelWithLoss | None = None

    def step(self, batch: Batch) -> float:
        inputs = (*_side(batch.source), *_side(batch.target_in))
        if self.traced is None:
            self.traced = ModelWithLoss(torch.jit.trace(self.model, inputs, strict=False), [self.loss])
        loss, _, _ = self.traced(*inputs, {constants.TARGET_LABEL_NAME: batch.target_out})
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.work.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(**self.zero)
        return float(loss) * batch.predictions


def _side(ids: Tensor) -> tuple[Tensor, Tensor]:
    """With a dimension for the factors of a word, and the lengths of the rows in two columns, the second unused."""
    lengths = (ids != PAD).sum(1)
    return ids[:, :, None].int(), torch.stack((lengths, torch.zeros_like(lengths)), 1).int()


if __name__ == "__main__":
    serve(Sockeye, f"Sockeye {version('sockeye')}")
