"""Small models with random weights in Marian's own files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HIDDEN, ENCODER, DECODER = 12, 19, 2, 3
PIECES = ["</s>", "<unk>", *(f"w{number}" for number in range(23))]
AFTER = {"transformer-preprocess": '""', "transformer-postprocess": "dan", "transformer-postprocess-top": '""'}
BEFORE = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
CONFIG = {
    "type": "transformer",
    "dim-emb": WIDTH,
    "transformer-heads": 3,
    "transformer-dim-ffn": HIDDEN,
    "enc-depth": ENCODER,
    "dec-depth": DECODER,
    "transformer-ffn-activation": "swish",
    "transformer-decoder-autoreg": "self-attention",
    "dec-cell": "gru",
    "transformer-no-projection": "false",
    "tied-embeddings-all": "true",
    "tied-embeddings": "false",
    "transformer-postprocess-emb": "d",
    "transformer-guided-alignment-layer": "last",
    "dim-vocabs": "\n  - 25\n  - 25",
}
Arrays = dict[str, np.ndarray[Any, Any]]


def arrays(config: dict[str, Any]) -> Arrays:
    """Random weights of a small Marian model."""
    chance = np.random.default_rng(5)
    before = config["transformer-preprocess"] == "n"
    found: Arrays = {"decoder_ff_logit_out_b": chance.normal(size=(1, len(PIECES)))}
    found["decoder_ff_logit_out_b"][0, 0] += 3.0

    def linear(name: str, suffix: str, inputs: int, outputs: int, *, bias: bool = True) -> None:
        found[f"{name}_W{suffix}"] = chance.normal(size=(inputs, outputs)) * inputs**-0.5 * 1.7
        if bias:
            found[f"{name}_b{suffix}"] = chance.normal(size=(1, outputs)) * 0.3

    def norm(name: str, suffix: str = "") -> None:
        found[f"{name}_ln_scale{suffix}"] = 1 + 0.3 * chance.normal(size=(1, WIDTH))
        found[f"{name}_ln_bias{suffix}"] = 0.3 * chance.normal(size=(1, WIDTH))

    tables = ["Wemb"] if config["tied-embeddings-all"] == "true" else ["encoder_Wemb", "decoder_Wemb"]
    for name in tables:
        found[name] = chance.normal(size=(len(PIECES), WIDTH)) * WIDTH**-0.5
    if config["tied-embeddings-all"] == config["tied-embeddings"] == "false":
        linear("decoder_ff_logit_out", "", WIDTH, len(PIECES), bias=False)
    past = "rnn" if config["transformer-decoder-autoreg"] == "rnn" else "self"
    for side, depth in (("encoder", ENCODER), ("decoder", DECODER)):
        if config["transformer-postprocess-top"] == "n":
            norm(f"{side}_top")
        if "n" in config["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
        for level in range(1, depth + 1):
            place = f"{side}_l{level}"
            linear(f"{place}_ffn", "1", WIDTH, HIDDEN)
            linear(f"{place}_ffn", "2", HIDDEN, WIDTH)
            norm(f"{place}_ffn_ffn", "_pre" if before else "")
            for kind in ("self",) if side == "encoder" else (past, "context"):
                if kind == "rnn":
                    linear(f"{place}_rnn", "", WIDTH, WIDTH, bias=False)
                    linear(f"{place}_rnn", "f", WIDTH, WIDTH)
                    norm(f"{place}_rnn" if before else f"{place}_rnn_ffn", "_pre" if before else "")
                    continue
                for letter in "qkvo":
                    linear(f"{place}_{kind}", letter, WIDTH, WIDTH)
                norm(f"{place}_{kind}_Wo", "_pre" if before else "")
    return {name: value.astype(np.float32) for name, value in found.items()}


def text_of(config: dict[str, Any]) -> bytes:
    return "".join(f"{name}: {value}\n" for name, value in config.items()).encode() + b"\0"


def npz(folder: Path, config: dict[str, Any], weights: Arrays) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.yml").write_text("".join(f'"{piece}": {number}\n' for number, piece in enumerate(PIECES)))
    path = folder / "model.npz"
    np.savez(path, **weights, **{"special:model.yml": np.frombuffer(text_of(config), np.int8)})
    return path


def binary(path: Path, config: dict[str, Any], weights: Arrays, quantized: bool = False) -> Arrays:
    """The same as a ``.bin``; gives the weights as they are in it."""
    items: list[tuple[str, int, tuple[int, ...], bytes]] = []
    kept: Arrays = {}
    for name, value in weights.items():
        if quantized and ("_W" in name or name == "Wemb") and "_ln_" not in name:
            multiplier = np.float32(127 / np.abs(value).max())
            whole = np.clip(np.round(value * multiplier), -127, 127).astype(np.int8)
            kept[name] = whole.astype(np.float32) / multiplier
            data = (whole if "Wemb" in name else whole.T).tobytes() + multiplier.tobytes() + bytes(252)
            items += [(name, 0x4101, value.shape, data), (f"{name}_QuantMultA", 0x404, (1, 1), bytes(256))]
        else:
            kept[name] = value
            items.append((name, 0x404, value.shape, value.tobytes()))
    text = text_of(config)
    items.append(("special:model.yml", 0x101, (len(text),), text))
    names = [name.encode() + b"\0" for name, *_ in items]
    head = struct.pack("<2Q", 1, len(items))
    for name, (_, kind, shape, data) in zip(names, items, strict=True):
        head += struct.pack("<4Q", len(name), kind, len(shape), len(data))
    head += b"".join(names) + b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    skip = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", skip) + bytes(skip) + b"".join(data for *_, data in items))
    return kept


def binary_folder(folder: Path) -> Path:
    """A student with its vocabulary, in 8 bits."""
    config = {**CONFIG, **AFTER, "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
    weights = arrays(config)
    npz(folder, config, weights).unlink()
    binary(folder / "model.intgemm.bin", config, weights, quantized=True)
    return folder


def npz_folder(folder: Path) -> Path:
    config = {**CONFIG, **BEFORE}
    npz(folder, config, arrays(config))
    return folder
