"""Small models with random weights in Marian's own files, and a Firefox student written out."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from torch import Tensor

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
STATE = 7  # of cells
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


RECURRENT: dict[str, Any] = {
    "type": "s2s",
    "dim-emb": WIDTH,
    "dim-rnn": STATE,
    "enc-cell": "gru",
    "dec-cell": "gru",
    "enc-type": "bidirectional",
    "enc-depth": 1,
    "dec-depth": 1,
    "enc-cell-depth": 1,
    "dec-cell-base-depth": 2,
    "layer-normalization": "false",
    "tied-embeddings-all": "false",
    "tied-embeddings": "false",
}
OLD = {  # what amun and nematus call these
    "encoder_Wemb": "Wemb",
    "decoder_Wemb": "Wemb_dec",
    "decoder_ff_state_W": "ff_state_W",
    "decoder_ff_state_b": "ff_state_b",
    "decoder_ff_logit_l2_W": "ff_logit_W",
    "decoder_ff_logit_l2_b": "ff_logit_b",
    "decoder_ff_logit_l1_W0": "ff_logit_prev_W",
    "decoder_ff_logit_l1_b0": "ff_logit_prev_b",
    "decoder_ff_logit_l1_W1": "ff_logit_lstm_W",
    "decoder_ff_logit_l1_b1": "ff_logit_lstm_b",
    "decoder_ff_logit_l1_W2": "ff_logit_ctx_W",
    "decoder_ff_logit_l1_b2": "ff_logit_ctx_b",
    "decoder_cell2_U": "decoder_U_nl",
    "decoder_cell2_Ux": "decoder_Ux_nl",
    "decoder_cell2_W": "decoder_Wc",
    "decoder_cell2_Wx": "decoder_Wcx",
    "decoder_cell2_b": "decoder_b_nl",
    "decoder_cell2_bx": "decoder_bx_nl",
    **{f"decoder_cell1_{part}": f"decoder_{part}" for part in ("U", "Ux", "W", "Wx", "b", "bx")},
    **{f"encoder_bi_{part}": f"encoder_{part}" for part in ("U", "Ux", "W", "Wx", "b", "bx")},
    **{f"encoder_bi_r_{part}": f"encoder_r_{part}" for part in ("U", "Ux", "W", "Wx", "b", "bx")},
}


def recurrent_arrays(config: dict[str, Any]) -> Arrays:
    """Random weights of a small model with cells."""
    chance = np.random.default_rng(7)
    sizes: dict[str, tuple[int, int]] = {"decoder_ff_logit_l2_b": (1, len(PIECES))}
    tables = ["Wemb"] if config["tied-embeddings-all"] == "true" else ["encoder_Wemb", "decoder_Wemb"]
    sizes |= {name: (len(PIECES), WIDTH) for name in tables}
    if config["tied-embeddings-all"] == config["tied-embeddings"] == "false":
        sizes["decoder_ff_logit_l2_W"] = (WIDTH, len(PIECES))
    for name, inputs in (
        ("encoder_bi", WIDTH),
        ("encoder_bi_r", WIDTH),
        ("decoder_cell1", WIDTH),
        ("decoder_cell2", 2 * STATE),
    ):
        sizes |= {f"{name}_W": (inputs, 2 * STATE), f"{name}_Wx": (inputs, STATE), f"{name}_U": (STATE, 2 * STATE)}
        sizes |= {f"{name}_Ux": (STATE, STATE), f"{name}_b": (1, 2 * STATE), f"{name}_bx": (1, STATE)}
    sizes |= {"decoder_W_comb_att": (STATE, 2 * STATE), "decoder_Wc_att": (2 * STATE, 2 * STATE)}
    sizes |= {"decoder_U_att": (2 * STATE, 1), "decoder_b_att": (1, 2 * STATE)}
    sizes |= {"decoder_ff_state_W": (2 * STATE, STATE), "decoder_ff_state_b": (1, STATE)}
    for part, inputs in enumerate((WIDTH, STATE, 2 * STATE)):
        sizes |= {f"decoder_ff_logit_l1_W{part}": (inputs, WIDTH), f"decoder_ff_logit_l1_b{part}": (1, WIDTH)}
    return {name: (chance.normal(size=shape) * 0.7).astype(np.float32) for name, shape in sizes.items()}


def recurrent_folder(folder: Path) -> Path:
    npz(folder, RECURRENT, recurrent_arrays(RECURRENT))
    return folder


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


# A Firefox student: what its engine chooses from, and what its equations lead to


class ShortList:
    """The pieces that the engine chooses from: the most frequent, those of the source, and the best for each of them.

    u64 magic, checksum, how many of the most frequent, how many a piece, length of the offsets, length of the lists;
    u64 offsets by source id, u32 lists of target ids.
    """

    def __init__(self, folder: Path) -> None:
        raw = next(folder.glob("lex.*.bin")).read_bytes()
        *_, self.first, _, rows, size = np.frombuffer(raw, "<u8", 6).tolist()
        self.places = np.frombuffer(raw, "<u8", rows, 48).astype(int)
        self.lists = np.frombuffer(raw, "<u4", size, 48 + 8 * rows)
        model = next(folder.glob("vocab.*.spm")).read_bytes()
        self.model = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.cut = self.model.encode

    def has(self, source: str, output: str) -> bool:
        """Whether it could write this output."""
        read = [*self.cut(source), 0]
        known = {*range(self.first), *read}
        for piece in read:
            known |= set(self.lists[self.places[piece] : self.places[piece + 1]].tolist())
        return known >= set(self.cut(output))


def numbers_of(data: bytes) -> dict[str, Tensor]:
    """The weights of a ``.bin`` by their names; those in 8 bits are divided by the number that follows them."""
    count = struct.unpack_from("<Q", data, 8)[0]
    heads = np.frombuffer(data, "<u8", 4 * count, 16).reshape(count, 4).tolist()
    place, names, shapes, found = 16 + 32 * count, [], [], dict[str, Tensor]()
    for length, *_ in heads:
        names.append(data[place : place + length - 1].decode())
        place += length
    for _, _, rank, _ in heads:
        shapes.append(np.frombuffer(data, "<i4", rank, place).tolist())
        place += 4 * rank
    place += 8 + struct.unpack_from("<Q", data, place)[0]
    for name, shape, (_, kind, _, size) in zip(names, shapes, heads, strict=True):
        cells = int(np.prod(shape))
        if kind == 0x404:
            found[name] = torch.tensor(np.frombuffer(data, "<f4", cells, place)).reshape(shape)
        elif kind == 0x4101:
            (multiplier,) = struct.unpack_from("<f", data, place + cells)
            whole = torch.tensor(np.frombuffer(data, "i1", cells, place)) / multiplier
            found[name] = whole.reshape(shape) if name == "Wemb" else whole.reshape(shape[::-1]).T
        place += size
    return found


class WrittenOut:
    """A student in Marian's equations, by torch's own operations: no caches, each step computes the whole again.
    Nothing of it is Regard's, the reading of the file neither."""

    def __init__(self, folder: Path) -> None:
        self.w = numbers_of(next(folder.glob("*.alphas.bin")).read_bytes())
        self.table = self.w["Wemb"]

    def linear(self, x: Tensor, name: str, part: str) -> Tensor:
        return x @ self.w[f"{name}_W{part}"] + self.w[f"{name}_b{part}"]

    def norm(self, x: Tensor, name: str) -> Tensor:
        scale, bias = (self.w[f"{name}_ln_{part}"].flatten() for part in ("scale", "bias"))
        return torch.nn.functional.layer_norm(x, (256,), scale, bias, 1e-6)

    def attend(self, x: Tensor, memory: Tensor, name: str) -> Tensor:
        parts = (self.linear(each, name, letter) for each, letter in ((x, "q"), (memory, "k"), (memory, "v")))
        q, k, v = (each.unflatten(-1, (8, 32)).transpose(-2, -3) for each in parts)
        mixed = (q @ k.mT / 32**0.5).softmax(-1) @ v
        return self.linear(mixed.transpose(-2, -3).flatten(-2), name, "o")

    def feed(self, x: Tensor, name: str) -> Tensor:
        inner = torch.relu(self.linear(x, f"{name}_ffn", "1"))
        return self.norm(x + self.linear(inner, f"{name}_ffn", "2"), f"{name}_ffn_ffn")

    def placed(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[-2])[:, None] * torch.exp(-torch.arange(128) * np.log(10000) / 127)
        return 16 * x + torch.cat((angles.sin(), angles.cos()), -1)

    def encode(self, ids: list[int]) -> Tensor:
        x = self.placed(self.table[ids])
        for name in (f"encoder_l{level}" for level in range(1, 7)):
            x = self.feed(self.norm(x + self.attend(x, x, f"{name}_self"), f"{name}_self_Wo"), name)
        return x

    def decode(self, rows: Tensor, memory: Tensor) -> Tensor:
        """What the last layer says (W, T + 1, D) behind each beginning of rows (W, T)."""
        y = self.placed(torch.cat((torch.zeros(len(rows), 1, 256), self.table[rows]), 1))
        for name in ("decoder_l1", "decoder_l2"):
            forget, new = torch.sigmoid(self.linear(y, f"{name}_rnn", "f")), y @ self.w[f"{name}_rnn_W"]
            state, states = torch.zeros(len(rows), 256), []
            for keeps, adds in zip(forget.unbind(1), new.unbind(1), strict=True):
                states.append(state := keeps * state + (1 - keeps) * adds)
            y = self.norm(y + torch.relu(torch.stack(states, 1)), f"{name}_rnn_ffn")
            y = self.norm(y + self.attend(y, memory.expand(len(rows), -1, -1), f"{name}_context"), f"{name}_context_Wo")
            y = self.feed(y, name)
        return y

    def predicted(self, y: Tensor) -> Tensor:
        """Log-probabilities of all pieces."""
        return (y @ self.table.T + self.w["decoder_ff_logit_out_b"]).log_softmax(-1)

    def search(self, ids: list[int], beam: int) -> list[int]:
        """The best of the first `beam` outputs that end, by their mean."""
        memory, done = self.encode(ids), list[tuple[float, list[int]]]()
        rows, scores = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1)
        while len(done) < beam:
            found = self.predicted(self.decode(rows, memory)[:, -1])
            found[:, 1] = -1e9  # <unk> is never written
            best, places = (scores[:, None] + found).flatten().topk(2 * beam)
            owners, pieces = places // found.shape[1], places % found.shape[1]
            ended = [(float(best[n]), int(owners[n])) for n in range(beam) if pieces[n] == 0]
            done += [(score / (rows.shape[1] + 1), rows[owner].tolist()) for score, owner in ended]
            kept = (pieces != 0).nonzero().flatten()[:beam]
            rows, scores = torch.cat((rows[owners[kept]], pieces[kept, None]), 1), best[kept]
        return max(done)[1]
