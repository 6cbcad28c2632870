"""Eole: its models, its loss and its optimizer, driven by the step of its own trainer."""

from __future__ import annotations

from importlib.metadata import version

import torch
from eole.config.run import TrainConfig
from eole.models.model import get_model_class
from eole.trainer import build_trainer
from eole.utils import Statistics
from eole.utils.optimizers import Optimizer
from pyonmttok import build_vocab_from_tokens

from peers.protocol import PAD, SECOND_MOMENT, Batch, Work, serve

SPECIAL = {"pad_token": "<blank>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}  # by id, as ours


def architecture(work: Work) -> dict[str, object]:
    common: dict[str, object] = {
        "hidden_size": work.width,
        "embeddings": {"word_vec_size": work.width, "position_encoding_type": None},
        "layers": work.depth,
    }
    if work.model == "transformer":
        placed = {"word_vec_size": work.width, "position_encoding_type": "SinusoidalInterleaved"}
        tied = {"share_embeddings": True, "share_decoder_embeddings": True}
        sizes = {"heads": work.heads, "transformer_ff": work.hidden, "mlp_activation_fn": "relu"}
        return common | {"architecture": "transformer", "embeddings": placed} | tied | sizes
    attention = {"bahdanau": "mlp", "luong": "general"}[work.model]
    return common | {
        "architecture": "custom",  # "rnn" reads one way only
        "encoder": {"encoder_type": "brnn", "rnn_type": "LSTM"},
        "decoder": {"decoder_type": "rnn", "global_attention": attention, "rnn_type": "LSTM"},
    }


def settings(work: Work) -> TrainConfig:
    return TrainConfig(
        data={},
        src_vocab="none",
        share_vocab=True,
        **SPECIAL,
        model=architecture(work),
        training={
            "dropout": [work.dropout],
            "attention_dropout": [0.0],
            "label_smoothing": work.smoothing,
            "max_grad_norm": work.clip,
            "normalization": "tokens",
            "optim": "adam",
            "adam_beta2": SECOND_MOMENT,
            "learning_rate": work.rate,
            "compute_dtype": "fp32",
            "param_init_method": "xavier_uniform" if work.model == "transformer" else "uniform",
            "param_init": 0.0 if work.model == "transformer" else 0.1,
        },
    )


class Eole:
    def __init__(self, work: Work) -> None:
        config = settings(work)
        pieces = build_vocab_from_tokens(
            [*SPECIAL.values(), *(f"piece{number}" for number in range(len(SPECIAL), work.vocabulary))]
        )
        vocabularies = {"src": pieces, "tgt": pieces, "specials": SPECIAL, "decoder_start_token": SPECIAL["bos_token"]}
        self.model = get_model_class(config.model).for_training(
            config.model, vocabularies, config.training, device_id=-1
        )
        optimizer = Optimizer.from_config(self.model, config)
        self.trainer = build_trainer(config, -1, self.model, vocabularies, optimizer)

    def step(self, batch: Batch) -> float:
        target = torch.cat((batch.target_in[:, :1], batch.target_out), 1)
        rows = {
            "src": batch.source,
            "srclen": (batch.source != PAD).sum(1),
            "tgt": target,
            "images": None,
            "prefix_len": None,
            "left_pad": False,
            "cid": ["corpus"] * len(target),
            "cid_line_number": range(len(target)),
        }
        found = Statistics()
        self.trainer._train_step([rows], batch.predictions, found, Statistics())
        return found.loss


if __name__ == "__main__":
    serve(Eole, f"Eole {version('eole')}")
