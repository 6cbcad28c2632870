"""Regard: its own models, its own task, its own step.

`--variant undivided` leaves it to torch to divide each operation among the threads, instead of the batch
(`trainer/steps.py`), and `divided` divides however small the batch is.
"""

from __future__ import annotations

import argparse
import math
import sys
from functools import partial

import regard
from peers.protocol import SECOND_MOMENT, Batch, Work, serve
from regard.data.encoding import Examples
from regard.models import build
from regard.models.generator import EncoderDecoder
from regard.models.recurrent import BahdanauDecoder, LuongDecoder, RecurrentEncoder
from regard.nn.attention import AdditiveScore, Attention, GeneralScore
from regard.nn.embeddings import Embedding, OutputLayer
from regard.nn.recurrent import LSTM, Stack
from regard.settings import TrainSettings, TransformerModel
from regard.tasks.task import Tensors
from regard.tasks.translate import TranslateTask
from regard.text.tokenizers import Tokenizers
from regard.text.words import ByteTokenizer
from regard.trainer import steps
from regard.trainer.optimizer import make_optimizer
from regard.trainer.steps import EagerStep
from regard.trainer.workers import ALONE, Workers


def make_model(work: Work) -> EncoderDecoder:
    match work.model:
        case "transformer":
            settings = TransformerModel(
                kind="transformer",
                width=work.width,
                heads=work.heads,
                hidden=work.hidden,
                encoder_depth=work.depth,
                decoder_depth=work.depth,
                dropout=work.dropout,
                tie="all",
            )
            return build.encoder_decoder(settings, work.vocabulary, work.vocabulary)
        case "bahdanau" | "luong":
            return recurrent(work)
        case _:
            raise SystemExit(f"model = {work.model}: not one that is measured; use transformer, bahdanau or luong")


def recurrent(work: Work) -> EncoderDecoder:
    """Each direction of the encoder has half the width, as in OpenNMT, so that its states fit without a bridge."""
    width = work.width
    source, target = (Embedding(work.vocabulary, width) for _ in range(2))
    reader = Stack(LSTM, width, width // 2, work.depth, bidirectional=True, dropout=work.dropout)
    writer = Stack(LSTM, 2 * width, width, work.depth, dropout=work.dropout)
    encoder = RecurrentEncoder(source, reader, dropout=work.dropout)
    output = OutputLayer(width, work.vocabulary)
    decoder: BahdanauDecoder | LuongDecoder
    if work.model == "bahdanau":
        attention = Attention(AdditiveScore(1, width, width, width))
        decoder = BahdanauDecoder(target, writer, attention, output, context_width=width, dropout=work.dropout)
    else:
        attention = Attention(GeneralScore(1, width, width))
        decoder = LuongDecoder(
            target, writer, attention, output, context_width=width, feeding=True, dropout=work.dropout
        )
    return EncoderDecoder(encoder, decoder)


class Regard:
    def __init__(self, work: Work, *, variant: str = "eager", workers: Workers = ALONE) -> None:
        self.model = make_model(work)
        self.rate, self.taken = work.rate, 0
        pieces = ByteTokenizer()  # the batches come ready; the task asks for tokenizers all the same
        tokenizers = Tokenizers(pieces, pieces)
        nothing = Examples({})
        task = TranslateTask(self.model, tokenizers, nothing, nothing, learn=TrainSettings(smoothing=work.smoothing))
        optimizer = make_optimizer("adam", task, weight_decay=0.0, momentum=0.0, second_moment=SECOND_MOMENT)
        steps.FEATURES = {"undivided": math.inf, "divided": 0}.get(variant, steps.FEATURES)
        self.update = EagerStep(task.train(), optimizer, clip=work.clip, workers=workers)

    def step(self, batch: Batch) -> float:
        self.taken += 1
        labels = batch.source.new_zeros(len(batch.source), 0)
        tensors = Tensors(batch.source, batch.target_in, batch.target_out, labels, labels[:, :, None])
        return float(self.update([tensors], float(batch.predictions), self.rate, self.taken).loss)


def main() -> None:
    parser = argparse.ArgumentParser(description="Regard as a contestant of bench/training.py.")
    parser.add_argument("folder")
    parser.add_argument("--variant", choices=("eager", "undivided", "divided"), default="eager")
    variant = parser.parse_args().variant
    serve(partial(Regard, variant=variant), f"regard {regard.__version__}")


if __name__ == "__main__":
    sys.exit(main())
