"""OpenNMT-py: its models, its loss and its optimizer, driven by the step of its own trainer."""

from __future__ import annotations

from importlib.metadata import version

import onmt.opts
import torch
from onmt.constants import DefaultTokens
from onmt.model_builder import build_model
from onmt.trainer import build_trainer
from onmt.utils import Statistics
from onmt.utils.optimizers import Optimizer
from onmt.utils.parse import ArgumentParser
from pyonmttok import build_vocab_from_tokens

from peers.protocol import PAD, SECOND_MOMENT, Batch, Work, serve


def flags(work: Work) -> list[str]:
    """As a user would write them in a configuration."""
    size = str(work.width)
    common = ["-data", "{}", "-src_vocab", "none", "-save_model", "none", "-share_vocab"]
    common += ["-hidden_size", size, "-word_vec_size", size, "-layers", str(work.depth)]
    common += ["-dropout", str(work.dropout), "-attention_dropout", "0"]
    common += ["-label_smoothing", str(work.smoothing), "-max_grad_norm", str(work.clip), "-normalization", "tokens"]
    common += ["-optim", "adam", "-adam_beta2", str(SECOND_MOMENT), "-learning_rate", str(work.rate)]
    if work.model == "transformer":
        layers = ["-encoder_type", "transformer", "-decoder_type", "transformer", "-position_encoding"]
        layers += ["-heads", str(work.heads), "-transformer_ff", str(work.hidden), "-param_init_glorot"]
        return [*common, *layers, "-param_init", "0", "-share_embeddings", "-share_decoder_embeddings"]
    attention = {"bahdanau": "mlp", "luong": "general"}[work.model]
    return [*common, "-encoder_type", "brnn", "-decoder_type", "rnn", "-global_attention", attention]


class OpenNMT:
    def __init__(self, work: Work) -> None:
        parser = ArgumentParser()
        onmt.opts.train_opts(parser)
        options, _ = parser.parse_known_args(flags(work))
        options.data = {}
        ArgumentParser.update_model_opts(options)
        ArgumentParser.validate_model_opts(options)
        options.accum_count, options.accum_steps = [1], [0]
        special = [DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS, DefaultTokens.UNK]  # by id, as ours
        pieces = build_vocab_from_tokens(
            [*special, *(f"piece{number}" for number in range(len(special), work.vocabulary))]
        )
        vocabularies = {"src": pieces, "tgt": pieces, "data_task": "seq2seq", "decoder_start_token": DefaultTokens.BOS}
        self.model = build_model(options, options, vocabularies, None, -1)
        optimizer = Optimizer.from_opt(self.model, options)
        self.trainer = build_trainer(options, -1, self.model, vocabularies, optimizer)

    def step(self, batch: Batch) -> float:
        target = torch.cat((batch.target_in[:, :1], batch.target_out), 1)
        rows = {"src": batch.source[:, :, None], "srclen": (batch.source != PAD).sum(1), "tgt": target[:, :, None]}
        found = Statistics()
        self.trainer._gradient_accumulation([rows], batch.predictions, found, Statistics())
        return found.loss


if __name__ == "__main__":
    serve(OpenNMT, f"OpenNMT-py {version('OpenNMT-py')}")
