"""Letters to phonemes: the weights of the package `g2p_en` (Apache-2.0), a GRU that hands over one vector, as a run.

pip download --no-deps g2p_en==2.1.0 && unzip g2p_en-2.1.0-py3-none-any.whl
python examples/g2p_en.py g2p_en runs/g2p && regard translate runs/g2p "regarding"
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import torch

import regard
from regard.convert.foreign import Foreign, Ids, write
from regard.runs.folder import Origin
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Vocabulary
from regard.text.words import CharacterTokenizer, SpaceTokenizer

LETTERS = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
VOWELS = [f"{vowel}{stress}" for vowel in re.findall("..", "AAAEAHAOAWAYEHEREYIHIYOWOYUHUW") for stress in range(3)]
OTHERS = re.findall("[A-Z]+", "B CH D DH F G HH JH K L M N NG P R S SH T TH UW V W Y Z ZH")
GATES = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b_ih", "bias_hh_l0": "b_hh"}


def main(package: Path, out: Path) -> None:
    with np.load(package / "checkpoint20.npz") as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    source = Ids.of(LETTERS, pad=0, start=None, end=2, unknown=1)
    target = Ids.of(["<pad>", "<unk>", "<s>", "</s>", *sorted(VOWELS + OTHERS)], pad=0, start=2, end=3, unknown=1)
    weights = {
        "encoder.embedding.weight": source.rows(arrays["enc_emb"]),
        "decoder.embedding.weight": target.rows(arrays["dec_emb"]),
        "decoder.output.weight": target.rows(arrays["fc_w"]),
        "decoder.output.bias": target.bias(arrays["fc_b"]),
    }
    for ours, theirs in GATES.items():
        weights[f"encoder.stack.layers.0.kernel.{ours}"] = arrays[f"enc_{theirs}"]
        weights[f"decoder.stack.layers.0.kernel.{ours}"] = arrays[f"dec_{theirs}"]
    tokenizers = Tokenizers(CharacterTokenizer(Vocabulary(source.pieces)), SpaceTokenizer(Vocabulary(target.pieces)))
    settings = regard.load_settings("gru", "model.embedding_scale=false", "text.tokenizer=character")
    write(Foreign(settings, weights.items(), tokenizers, Origin("g2p_en", "g2p_en 2.1.0", "Apache-2.0")), out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
