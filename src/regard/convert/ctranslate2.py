"""CTranslate2's ``model.bin``, formats 1 to 6, in any number format.

u32 format; from format 2 on a string, the kind of model, and u32 revision; u32 count of variables, each a string, u8
rank, u32 sizes, u8 kind of number, u32 bytes (before format 4: u8 bytes of a number, u32 how many numbers), data;
from format 3 on u32 count of aliases, two strings each. A string is u16 length, text, NUL. A weight in integers is
``q / scale`` with one scale for each row, or one for all. Queries, keys and values are one matrix.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.convert.foreign import Foreign, Ids, Weights, item_size, settled, tensor_of
from regard.convert.package import Package, read_json, tokenizers_of
from regard.errors import ModelError
from regard.nn.embeddings import Sinusoidal
from regard.text.tokenizers import Frame
from regard.text.vocabulary import END, SPECIAL_TOKENS, START

MODEL: Final = "model.bin"
_NEWEST = 6
_KINDS = ("<f4", "<i1", "<i2", "<i4", "<f2", "bfloat16")  # by number
_BY_SIZE = {4: "<f4", 2: "<i2", 1: "<i1"}  # before format 4
_NAMES = {"<f4": "float32", "<i1": "int8", "<i2": "int16", "<f2": "float16", "bfloat16": "bfloat16", "<i4": "int32"}
_INT16_SCALE = 1000.0  # of format 1, which stores none
_ACTIVATIONS = {0: "relu", 2: "silu", 3: "gelu"}  # by number
_CLOSE = 5e-3  # tolerance for a table of sinusoids in 16 bits
_SAID = re.compile(r"(en|de)coder/(num_heads|pre_norm|activation|embeddings_merge|alignment_\w+|scale_embeddings)")
_FIRST_NAMES = (
    *(("transformer/", ""), (":0", ""), ("w_embs", "embeddings/weight"), ("kernel", "weight")),
    *(("LayerNorm", "layer_norm"), ("dense", "projection"), ("conv1d_", "linear_"), ("conv1d", "linear_0")),
    *(("masked_multi_head", "self_attention"),),
)


class _Variable(NamedTuple):
    shape: tuple[int, ...]
    kind: str
    first: int  # byte


class ModelFile:
    """The variables of a file, read lazily."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.stat().st_size:
            raise ModelError(f"{path}: is empty; copy it again")
        self._data = np.memmap(path, np.uint8, "r")
        self._place = 0
        self.variables: dict[str, _Variable] = {}
        self.aliases: dict[str, str] = {}
        self.used: set[str] = set()
        try:
            self._read()
        except (struct.error, UnicodeDecodeError):
            raise ModelError(f"{path}: is incomplete, damaged or no model of CTranslate2; copy it again") from None

    def _read(self) -> None:
        self.format = self._number("I")
        if not 1 <= self.format <= _NEWEST:
            raise ModelError(
                f"{self.path}: format {self.format}: up to {_NEWEST} is read; is it a file of CTranslate2?"
            )
        kind, revision = (self._text(), self._number("I")) if self.format > 1 else ("", 1)
        if (kind and not kind.startswith("Transformer")) or "Encoder" in kind or (kind and "Decoder" in kind):
            raise ModelError(f"{self.path}: {kind[:60]}: only translating Transformers are read (TransformerSpec)")
        for _ in range(self._number("I")):
            name = self._text()
            self.variables[name if revision > 1 else _renamed(name)] = self._variable(name)
        for _ in range(self._number("I") if self.format > 2 else 0):
            alias, name = self._text(), self._text()
            self.aliases[alias], self.aliases[f"{alias}_scale"] = name, f"{name}_scale"

    def _number(self, kind: str) -> int:
        (found,) = struct.unpack_from(f"<{kind}", self._data.data, self._place)
        self._place += struct.calcsize(kind)
        return int(found)

    def _text(self) -> str:
        length = self._number("H")
        text = bytes(self._data[self._place : self._place + length])
        if not length or len(text) < length:
            raise struct.error
        self._place += length
        return text[:-1].decode()

    def _variable(self, name: str) -> _Variable:
        shape = tuple(self._number("I") for _ in range(self._number("B")))
        number = self._number("B")
        old = self.format < 4
        kind = _BY_SIZE.get(number) if old else _KINDS[number] if number < len(_KINDS) else None
        count = self._number("I")
        if kind is None or count != math.prod(shape) * (1 if old else item_size(kind)):
            raise ModelError(f"{self.path}: {name[:100]} = {shape}: its numbers do not fill it; is the file damaged?")
        first, self._place = self._place, self._place + math.prod(shape) * item_size(kind)
        if self._place > len(self._data):
            raise struct.error
        return _Variable(shape, kind, first)

    def __contains__(self, name: str) -> bool:
        return self.named(name) in self.variables

    def named(self, name: str) -> str:
        """The variable that a name stands for."""
        return self.aliases.get(name, name)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._known(name).shape

    def _known(self, name: str) -> _Variable:
        found = self.variables.get(self.named(name))
        if found is None:
            raise ModelError(f"{self.path}: {name}: is missing; only Transformers that translate are read")
        self.used |= {self.named(name), f"{self.named(name)}_scale"}
        return found

    def tensor(self, name: str) -> Tensor:
        """A weight in float32."""
        raw = self._raw(name)
        if raw.is_floating_point():
            return raw.float()
        scale = self._raw(f"{name}_scale").float() if f"{name}_scale" in self else torch.tensor(_INT16_SCALE)
        if scale.numel() not in (1, len(raw) if raw.dim() else 1):
            raise ModelError(
                f"{self.path}: {name}_scale = {tuple(scale.shape)}: must be one number a row, or one alone"
            )
        return raw.float().div_(scale.reshape(-1, *(1 for _ in raw.shape[1:])))

    def _raw(self, name: str) -> Tensor:
        shape, kind, first = self._known(name)
        data = self._data[first : first + math.prod(shape) * item_size(kind)].tobytes()
        return tensor_of(data, kind).reshape(shape)

    def value(self, name: str, default: float) -> float:
        """A flag or a number."""
        if name not in self:
            return default
        found = self._raw(name)
        if found.numel() != 1:
            raise ModelError(f"{self.path}: {name} = {tuple(found.shape)}: must be one number; is the file damaged?")
        return float(found.reshape(()))

    def text(self, name: str, default: str) -> str:
        """A text of the configuration in formats before 6."""
        return self._raw(name).to(torch.uint8).numpy().tobytes().decode() if name in self else default


def _renamed(name: str) -> str:
    """The current name of a variable of the first revision, which used those of OpenNMT-tf."""
    for old, new in _FIRST_NAMES:
        name = name.replace(old, new)
    return name.replace("multi_head", "self_attention" if "encoder" in name else "attention")


def read(package: Package) -> Foreign:
    """Read a folder with ``model.bin``, its vocabularies and, if there is one, its tokenizer."""
    folder = package.folder
    file = ModelFile(folder / MODEL)
    config = _config(folder, file)
    joint = any((folder / f"shared_vocabulary.{ending}").is_file() for ending in ("json", "txt"))
    names = ("shared", "shared") if joint else ("source", "target")
    source, target = (_vocabulary(folder, name) for name in names)
    model = _Reader(file, config)
    ids = model.ids(source, "encoder"), model.ids(target, "decoder")
    joint = joint and source == target
    tokenizers = tokenizers_of(package, ids[0].pieces, ids[1].pieces, joint=joint, frame=model.frame())
    values = model.settings(joint=joint, epsilon=config.get("layer_norm_epsilon"))
    settings = settled(package.values(values, tokenizers), str(folder))
    found = _NAMES[file.variables[file.named("decoder/embeddings/weight")].kind]
    return Foreign(settings, model.weights(*ids), tokenizers, package.origin(f"CTranslate2 {file.format}, {found}"))


def _config(folder: Path, file: ModelFile) -> dict[str, Any]:
    if file.format == _NEWEST:
        return read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    start = "bos_token" if file.value("with_target_bos", 1) else "eos_token"
    config: dict[str, Any] = {
        name: file.text(name, default)
        for name, default in (("unk_token", "<unk>"), ("bos_token", "<s>"), ("eos_token", "</s>"))
    }
    flags = {f"add_{name}": bool(file.value(f"with_{name}", 0)) for name in ("source_bos", "source_eos")}
    return config | flags | {"decoder_start_token": config[start]}


def _vocabulary(folder: Path, name: str) -> list[str]:
    path = folder / f"{name}_vocabulary.json"
    if path.is_file():
        pieces: object = read_json(path, list)
    else:
        path = path.with_suffix(".txt")
        if not path.is_file():
            raise ModelError(f"{folder}: has no vocabulary; {path.name}, or the same as .json, must be there")
        lines = _lines(path)
        carriage = all(line.endswith("\r") for line in lines)
        pieces = [line[:-1] if carriage else line for line in lines]
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ModelError(f"{path}: not a list of texts; is the file damaged?")
    return pieces


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as problem:
        raise ModelError(f"{path}: not UTF-8 ({problem.reason}); is the file damaged?") from None
    return text.removesuffix("\n").split("\n")


class _Reader:
    """Settings and weights from the variables of a file."""

    def __init__(self, file: ModelFile, config: Mapping[str, Any]) -> None:
        self.file = file
        self.config = config

    def ids(self, pieces: list[str], side: str) -> Ids:
        """The ids of a side, with its special tokens by the names in the configuration."""
        numbers = {piece: number for number, piece in reversed(list(enumerate(pieces)))}
        end = self._special("eos_token", "</s>")
        if end not in numbers:
            raise ModelError(f"{self.file.path}: eos_token = {end[:60]!r}: is not in the vocabulary of the {side}")
        start = self._special("decoder_start_token", self._special("bos_token", "<s>"))
        pads = [numbers[name] for name in ("<pad>", "<blank>") if name in numbers]
        unknown = numbers.get(self._special("unk_token", "<unk>"))
        rows = self.file.shape(self.embedding(side))[0]
        pad = pads[0] if pads and pads[0] not in (numbers[end], unknown) else None
        return Ids.of(pieces, pad=pad, start=numbers.get(start), end=numbers[end], unknown=unknown, rows=rows)

    def frame(self) -> Frame:
        """The tokens around a source: by default none, not even an end token."""
        start, begin = (self._special(name, "<s>") for name in ("decoder_start_token", "bos_token"))
        before = SPECIAL_TOKENS[START] if begin == start else begin
        return Frame(
            before=(before,) if self.config.get("add_source_bos") else (),
            after=(SPECIAL_TOKENS[END],) if self.config.get("add_source_eos") else (),
        )

    def _special(self, name: str, default: str) -> str:
        found = self.config.get(name)
        return found if isinstance(found, str) else default

    def embedding(self, side: str) -> str:
        old = f"{side}/embeddings/weight"
        return old if old in self.file else f"{side}/embeddings_0/weight"

    @cached_property
    def depths(self) -> dict[str, int]:
        """The number of layers of each side."""
        found: dict[str, int] = {}
        for side in ("encoder", "decoder"):
            while f"{side}/layer_{found.get(side, 0)}/ffn/linear_0/weight" in self.file:
                found[side] = found.get(side, 0) + 1
        if len(found) < 2:
            raise ModelError(
                f"{self.file.path}: has no layers of an encoder and a decoder; is it a model that translates?"
            )
        return found

    def _same(self, name: str, default: float) -> float:
        """A value that must be the same for encoder and decoder."""
        first, second = (self.file.value(f"{side}/{name}", default) for side in ("encoder", "decoder"))
        if first != second:
            raise ModelError(
                f"{self.file.path}: decoder/{name} = {second:g}: the encoder has {first:g}; must be the same"
            )
        return first

    def _both(self, name: str) -> bool:
        first, second = (f"{side}/{name}" in self.file for side in ("encoder", "decoder"))
        if first != second:
            raise ModelError(f"{self.file.path}: {name}: is on one side only; encoder and decoder must both have it")
        return first

    def settings(self, *, joint: bool, epsilon: object) -> dict[str, Any]:
        file, first = self.file, "encoder/layer_0"
        width = file.shape(self.embedding("decoder"))[-1]
        activation = _ACTIVATIONS.get(int(self._same("activation", 0)))
        gated = f"{first}/ffn/linear_0_noact/weight" in file
        if activation is None or (gated and activation != "silu"):
            raise ModelError(f"{file.path}: activation: not supported; ReLU, GELU, SiLU and SwiGLU are")
        before, final = bool(self._same("pre_norm", 1)), self._both("layer_norm/gamma")
        return {
            "kind": "transformer",
            "width": width,
            "heads": int(self._same("num_heads", 8)),
            "hidden": file.shape(f"{first}/ffn/linear_0/weight")[0],
            "encoder_depth": self.depths["encoder"],
            "decoder_depth": self.depths["decoder"],
            "activation": "swiglu" if gated else activation,
            "norm": "layer" if f"{first}/ffn/layer_norm/beta" in file else "rms",
            "norm_place": "before" if before else "after",
            "norm_epsilon": _small(epsilon),
            "final_norm": "auto" if final == before else "yes" if final else "no",
            "embedding_norm": self._both("layernorm_embedding/gamma"),
            "embedding_scale": self._scaled(width),
            "start": "zero" if file.value("decoder/start_from_zero_embedding", 0) else "token",
            "tie": self._tie(joint=joint),
            **self.positions,
        }

    def _scaled(self, width: int) -> bool:
        """Whether embeddings are scaled: a flag, or the factor; before revision 3 under another name."""
        found = []
        for side in ("encoder", "decoder"):
            name = f"{side}/scale_embeddings"
            name = name if name in self.file else f"{side}/embeddings/multiply_by_sqrt_depth"
            found.append(self.file.value(name, 1))
        root = width**0.5
        if found[0] != found[1] or min(abs(found[0] - usual) for usual in (0, 1, root)) > 1e-3:
            raise ModelError(
                f"{self.file.path}: scale_embeddings = {found[0]:g}, {found[1]:g}: must be √width, or none"
            )
        flag = self.file.variables.get(self.file.named("decoder/scale_embeddings"))
        one = flag is not None and flag.kind == "<f4"
        return abs(found[0] - root) <= 1e-3 if one else bool(found[0])

    def _tie(self, *, joint: bool) -> str:
        file = self.file
        output, target = file.named("decoder/projection/weight"), file.named(self.embedding("decoder"))
        if output != target:
            return "none"
        return "all" if joint and file.named(self.embedding("encoder")) == target else "target"

    @cached_property
    def positions(self) -> dict[str, Any]:
        """The settings of positions: known sinusoids, none, or a learned table."""
        width = self.file.shape(self.embedding("decoder"))[-1]
        name, rotary = "position_encodings/encodings", "layer_0/self_attention/rotary_dim"
        if self._both(rotary):
            return self._rotary(width)
        if not self._both(name):
            return {"frequencies": "marian", "interleaved": False, "first_position": 1}  # as CTranslate2 makes them
        first, second = (self.file.tensor(f"{side}/{name}") for side in ("encoder", "decoder"))
        if first.dim() != 2 or first.shape[1] != width:
            raise ModelError(f"{self.file.path}: {name} = {tuple(first.shape)}: must be as wide as {width}")
        if not torch.equal(first, second):
            return {"positions": "learned", "longest": len(first)}
        return sinusoid_of(first) or {"positions": "learned", "longest": len(first)}

    def _rotary(self, width: int) -> dict[str, Any]:
        where = "layer_0/self_attention/rotary"
        usual = {"interleave": (1,), "base": (10000,), "scaling_factor": (1,), "scaling_type": (-1,)}
        whole = width // max(1, int(self._same("num_heads", 8)))
        kinds = usual | {"dim": (0, whole)}
        if any(self._same(f"{where}_{name}", known[0]) not in known for name, known in kinds.items()):
            raise ModelError(f"{self.file.path}: {where}: not supported; whole heads, alternating, with base 10000 are")
        return {"positions": "rotary"}

    def weights(self, source: Ids, target: Ids) -> Iterator[tuple[str, Tensor]]:
        """Our parameters, one by one; a variable that is not used is refused at the end."""
        file, tie = self.file, self._tie(joint=source.pieces == target.pieces)
        if tie != "all":
            yield "encoder.embedding.weight", source.rows(file.tensor(self.embedding("encoder")))
        yield "decoder.embedding.weight", target.rows(file.tensor(self.embedding("decoder")))
        if tie == "none":
            yield "decoder.output.weight", target.rows(file.tensor("decoder/projection/weight"))
        size = file.shape(self.embedding("decoder"))[0]
        bias = "decoder/projection/bias"
        yield "decoder.output.bias", target.bias(file.tensor(bias) if bias in file else torch.zeros(size))
        for side in ("encoder", "decoder"):
            yield from self._side(side)
        self._nothing_else()

    def _side(self, side: str) -> Weights:
        file = self.file
        if self.positions.get("positions") == "learned":
            yield f"{side}.positions.weight", file.tensor(f"{side}/position_encodings/encodings")
        for theirs, ours in (("layer_norm", "norm"), ("layernorm_embedding", "embedding_norm")):
            if f"{side}/{theirs}/gamma" in file:
                yield from self._norm(f"{side}/{theirs}", f"{side}.{ours}")
        for level in range(self.depths[side]):
            yield from self._layer(f"{side}/layer_{level}", f"{side}.layers.{level}", side)

    def _layer(self, theirs: str, ours: str, side: str) -> Weights:
        blocks = ["self_attention", "attention", "ffn"] if side == "decoder" else ["self_attention", "ffn"]
        for place, block in enumerate(blocks):
            yield from self._norm(f"{theirs}/{block}/layer_norm", f"{ours}.residuals.{place}.norm")
        maps = f"{ours}.attention.projections"
        yield from self._linear(
            f"{theirs}/self_attention/linear_0", *(f"{maps}.{name}" for name in ("query", "key", "value"))
        )
        yield from self._linear(f"{theirs}/self_attention/linear_1", f"{maps}.output")
        if side == "decoder":
            maps = f"{ours}.cross.projections"
            yield from self._linear(f"{theirs}/attention/linear_0", f"{maps}.query")
            yield from self._linear(f"{theirs}/attention/linear_1", f"{maps}.key", f"{maps}.value")
            yield from self._linear(f"{theirs}/attention/linear_2", f"{maps}.output")
        gated = f"{theirs}/ffn/linear_0_noact/weight" in self.file
        inner = {"linear_0": "gate", "linear_0_noact": "expand"} if gated else {"linear_0": "expand"}
        for name, part in {**inner, "linear_1": "contract"}.items():
            yield from self._linear(f"{theirs}/ffn/{name}", f"{ours}.feed_forward.{part}", biased=not gated)

    def _linear(self, theirs: str, *ours: str, biased: bool = True) -> Weights:
        """One of their matrices, which is one or several of ours."""
        weight = self.file.tensor(f"{theirs}/weight")
        if weight.dim() != 2 or len(weight) % len(ours):
            raise ModelError(
                f"{self.file.path}: {theirs}/weight = {tuple(weight.shape)}: must be {len(ours)} equal matrices"
            )
        named = f"{theirs}/bias" in self.file
        bias = self.file.tensor(f"{theirs}/bias") if named else weight.new_zeros(len(weight))
        if named and not biased:
            raise ModelError(f"{self.file.path}: {theirs}/bias: SwiGLU is only read without biases")
        size = len(weight) // len(ours)
        for number, name in enumerate(ours):
            yield f"{name}.weight", weight[number * size : (number + 1) * size]
            if biased:
                yield f"{name}.bias", bias[number * size : (number + 1) * size]

    def _norm(self, theirs: str, ours: str) -> Weights:
        yield f"{ours}.gain", self.file.tensor(f"{theirs}/gamma")
        if f"{theirs}/beta" in self.file:
            yield f"{ours}.shift", self.file.tensor(f"{theirs}/beta")

    def _nothing_else(self) -> None:
        """Refuse a variable that was not used, unless it is a flag that is off: our model would lack a part."""
        for name in sorted(self.file.variables.keys() - self.file.used):
            scalar = not self.file.shape(name)
            first = re.sub(r"layer_\d+", "layer_0", name)
            repeated = scalar and first in self.file and self.file.value(name, 0) == self.file.value(first, 1)
            silent = scalar and not self.file.value(name, 0)
            if "/" in name and not (_SAID.fullmatch(name) or silent or (first != name and repeated)):
                raise ModelError(f"{self.file.path}: {name[:100]}: is a part that our models do not have")


def _small(epsilon: object) -> float:
    """The epsilon of norms; 0 if it is not given, and -1, which settings refuse, if it is invalid."""
    if epsilon is None:
        return 0.0
    return float(epsilon) if isinstance(epsilon, int | float) and 0 <= epsilon < 1 else -1.0


def sinusoid_of(table: Tensor) -> dict[str, Any] | None:
    """The settings of the sinusoids in a table (T, D); None if it contains something else."""
    length, width = table.shape
    if not table.any():
        return {"positions": "none"}
    for marian in (False, True):
        for interleaved in (False, True):
            for first in (0, 1, 2):
                known = Sinusoidal(width, 1, to_last=marian, interleaved=interleaved, begin=first)
                made = known.make(torch.arange(length))["table"].to(table.dtype)
                if torch.allclose(table, made, atol=_CLOSE, rtol=0):
                    frequencies = "marian" if marian else "paper"
                    return {"frequencies": frequencies, "interleaved": interleaved, "first_position": first}
    return None
