"""Joey NMT: its models, its batches, its loss and its optimizer, in the order of its own training step."""

from __future__ import annotations

import math
from importlib.metadata import version
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.builders import build_gradient_clipper, build_optimizer
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary
from torch import nn

from peers.protocol import END, PAD, SECOND_MOMENT, START, UNK, Work, serve
from peers.protocol import Batch as Rows

SPECIAL = {"unk": UNK, "pad": PAD, "bos": START, "eos": END}  # in Joey's order; the values are our ids


def architecture(work: Work) -> dict[str, object]:
    embeddings = {"embedding_dim": work.width, "scale": work.model == "transformer", "dropout": work.dropout}
    side = {"embeddings": embeddings, "hidden_size": work.width, "num_layers": work.depth, "dropout": work.dropout}
    if work.model == "transformer":
        side |= {"type": "transformer", "num_heads": work.heads, "ff_size": work.hidden, "layer_norm": "pre"}
        tied = {"tied_embeddings": True, "tied_softmax": True}
        start = {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "tied_initializer": None}
        return {"encoder": side, "decoder": side} | tied | start
    side |= {"type": "recurrent", "rnn_type": "lstm"}
    reader = side | {"bidirectional": True, "hidden_size": work.width // 2}
    attention = {
        "attention": work.model,
        "input_feeding": True,
        "init_hidden": "bridge",
        "hidden_dropout": work.dropout,
    }
    return {"encoder": reader, "decoder": side | attention}


class Joey:
    def __init__(self, work: Work) -> None:
        names = {f"{name}_token": f"<{name}>" for name in SPECIAL}
        numbers = {f"{name}_id": number for number, name in enumerate(SPECIAL)}
        described = SimpleNamespace(**names, **numbers, sep_token=None, sep_id=None, lang_tags=[])
        pieces = Vocabulary([f"piece{number}" for number in range(len(SPECIAL), work.vocabulary)], described)
        self.ids = torch.arange(work.vocabulary)  # from our numbers to Joey's, which differ in the special ones
        for number, ours in enumerate(SPECIAL.values()):
            self.ids[ours] = number
        self.pieces = pieces
        self.model: nn.Module = build_model(architecture(work), src_vocab=pieces, trg_vocab=pieces)
        self.model.loss_function = ("crossentropy", work.smoothing)
        # Joey's loss is a divergence; the cross-entropy of the others has the entropy of the smoothed target in it
        kept, rest = 1 - work.smoothing, work.smoothing / (work.vocabulary - 2)
        self.entropy = -kept * math.log(kept) - work.smoothing * math.log(rest)
        training = {"optimizer": "adam", "learning_rate": work.rate, "adam_betas": (0.9, SECOND_MOMENT)}
        self.optimizer = build_optimizer(training, parameters=self.model.parameters())
        self.clip = build_gradient_clipper({"clip_grad_norm": work.clip, "clip_grad_val": None})

    def step(self, rows: Rows) -> float:
        target = self.ids[torch.cat((rows.target_in[:, :1], rows.target_out), 1)]
        batch = Batch(
            self.ids[rows.source],
            (rows.source != PAD).sum(1),
            None,
            target,
            None,
            torch.arange(len(target)),
            torch.device("cpu"),
            self.pieces.pad_index,
            self.pieces.eos_index,
        )
        batch.sort_by_src_length()
        loss, _, _, _ = self.model(return_type="loss", **vars(batch))
        batch.normalize(loss, normalization="tokens").backward()
        self.clip(parameters=self.model.parameters())
        self.optimizer.step()
        self.model.zero_grad()
        return float(loss) + self.entropy * rows.predictions


if __name__ == "__main__":
    serve(Joey, f"Joey NMT {version('joeynmt')}")
