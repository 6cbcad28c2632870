"""Marian's own files, ``.npz`` and ``.bin``: Transformers with attention or an SSRU in the decoder, as OPUS-MT, HPLT
and Firefox have them, and the recurrent models before them (``s2s``, ``amun``, ``nematus``).

A ``.bin`` is u64 version (1), u64 count; for each tensor u64 length of its name, kind of number, rank, bytes; then
names (NUL-ended), sizes (i32), u64 bytes to skip, data. A matrix (in, out) that is kept in 8 bits stands transposed,
but for embeddings, and is followed by one float32 m: ``W = q / m``. What a model is says ``special:model.yml``; which
norms it has say strings: ``dan`` after a sublayer is dropout, add, norm. Outputs begin with a vector of zeros.
"""

from __future__ import annotations

import math
import re
import struct
import tokenize
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from regard.convert.foreign import Foreign, Ids, Weights, settled
from regard.convert.names import NamedTensors
from regard.convert.package import Package, read_bytes, read_json
from regard.convert.tokenizing import read_text, tokenizers_of
from regard.errors import ModelError
from regard.settings.schema import LANGUAGE
from regard.text.foreign import SentencePieceTokenizer
from regard.text.subwords import open_model
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Vocabulary

CONFIG: Final = "special:model.yml"
_SIGN = struct.pack("<Q", 1)  # how a .bin begins: its version
_KINDS = {0x404: "<f4", 0x402: "<f2", 0x408: "<f8", 0x101: "<i1", 0x4101: "<i1"}  # by number; the last is intgemm8
_INTGEMM8 = 0x4101
_NAMES = {"<f4": "float32", "<f2": "float16", "<f8": "float64", "<i1": "intgemm8"}
_BROKEN = (  # what Python's readers say of a damaged ZIP archive or array
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
    *(ValueError, TypeError, KeyError, SyntaxError, EOFError, OSError, NotImplementedError, RuntimeError),
)
_SWELLS = 100  # how many times its size an .npz may unfold to
_MOST = 1 << 16  # tensors in a file
_EPSILON = 1e-6  # of its norms
_ACTIVATIONS = {"relu": "relu", "swish": "silu"}  # what it calls gelu is x · σ(1.702 x)
_UNUSED = re.compile(
    rf"{re.escape(CONFIG)}|.*_QuantMultA|.*:.*|decoder_c_tt|uidx|history_errs"
)  # no weights, or scales
_STUDENT = re.compile(rf"({LANGUAGE}-{LANGUAGE})-")  # how its name begins
_RECURRENT = ("s2s", "amun", "nematus")
_OLD: Final = {  # names in files of the last two kinds, and what they are in the first
    **{
        f"{old}_{part}": f"{new}_{part}"
        for old, new in (
            *(("encoder", "encoder_bi"), ("encoder_r", "encoder_bi_r"), ("decoder", "decoder_cell1")),
            *(("ff_state", "decoder_ff_state"), ("ff_logit", "decoder_ff_logit_l2")),
        )
        for part in ("W", "Wx", "U", "Ux", "b", "bx")
    },
    **{f"decoder_{part}_nl": f"decoder_cell2_{part}" for part in ("U", "Ux", "b", "bx")},
    **{f"decoder_Wc{part}": f"decoder_cell2_W{part}" for part in ("", "x")},
    **{
        f"ff_logit_{old}_{part}": f"decoder_ff_logit_l1_{part}{number}"
        for number, old in enumerate(("prev", "lstm", "ctx"))
        for part in "Wb"
    },
    "Wemb_dec": "decoder_Wemb",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
_ESCAPES |= {"N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}
# settings whose other values say that a model has parts we do not have
_ANY: Mapping[str, tuple[str, ...]] = {"lemma-dim-emb": ("0",), "right-left": ("false",), "ulr": ("false",)}
_TRANSFORMERS: Mapping[str, tuple[str, ...]] = {
    "transformer-no-projection": ("false",),
    "transformer-train-position-embeddings": ("false",),
    "transformer-train-positions": ("false",),
    "transformer-ffn-depth": ("2",),
}
_CELLS: Mapping[str, tuple[str, ...]] = {
    "layer-normalization": ("false",),
    "enc-depth": ("1",),
    "dec-depth": ("1",),
    "enc-cell-depth": ("1",),
    "dec-cell-base-depth": ("2",),
    "enc-cell": ("gru", "gru-nematus"),
    "dec-cell": ("gru", "gru-nematus"),
}


def is_model(path: Path) -> bool:
    """Whether this is one of Marian's files, by its first bytes and, of an ``.npz``, by what is in it."""
    if path.suffix == ".bin":
        with path.open("rb") as file:
            return file.read(8) == _SIGN and CONFIG.encode() in file.read(1 << 20)
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{CONFIG}.npy" in archive.namelist()
    except _BROKEN:
        return False


def read(package: Package) -> Foreign:
    file = _Binary(package.file) if package.file.suffix == ".bin" else _Archive(package.file)
    config = Config(parse(file.text(CONFIG), str(package.file)), str(package.file))
    recurrent = config.text("type", "amun") in _RECURRENT
    if "decoder_c_tt" in file.names:
        file.rename(_OLD)
    paths = _vocabulary_files(package)
    target = _ids(paths[-1], file.shape(_embedding(file, "decoder"))[0])
    source = target if paths[0] == paths[-1] else _ids(paths[0], 0)
    tokenizers = _tokenizers(package, paths, source, target)
    package = replace(package, languages=package.languages or _languages(package.folder))
    model = (_RecurrentReader if recurrent else _TransformerReader)(file, config, joint=tokenizers.joint)
    settings = settled(package.values(model.settings(), tokenizers), str(package.file))
    kind = _NAMES.get(file.kind(_embedding(file, "decoder")), "")
    return Foreign(settings, model.weights(source, target), tokenizers, package.origin(f"Marian, {kind}"))


def _languages(folder: Path) -> str:
    """What translateLocally's description beside a student says: ``pt-en-tiny``."""
    path = folder / "model_info.json"
    named = _STUDENT.match(str(read_json(path).get("shortName"))) if path.is_file() else None
    return named[1] if named else ""


# Files

Entry = TypeVar("Entry")


class _Tensor(NamedTuple):
    shape: tuple[int, ...]
    kind: int
    first: int  # byte
    bytes: int


class _File(Generic[Entry]):
    """The tensors of a file by their names, none of which is read before it is asked for."""

    path: Path
    entries: dict[str, Entry]
    names: list[str]

    def rename(self, table: Mapping[str, str]) -> None:
        self.entries = {table.get(name, name): entry for name, entry in self.entries.items()}
        self.names = list(self.entries)

    def entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise ModelError(f"{self.path}: {name}: is missing; is the file whole, and a model that translates?")
        return self.entries[name]


class _Binary(_File[_Tensor]):
    """Those of a ``.bin``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.stat().st_size:
            raise ModelError(f"{path}: is empty; copy it again")
        self._data: Any = np.memmap(path, np.uint8, "r")
        try:
            self.entries = dict(self._read())
        except (struct.error, UnicodeDecodeError, ValueError):
            raise ModelError(f"{path}: is cut short, damaged or no model of Marian; copy it again") from None
        self.names = list(self.entries)

    def _read(self) -> Iterator[tuple[str, _Tensor]]:
        version, count = struct.unpack_from("<2Q", self._data)
        if version != 1 or count > _MOST:
            raise ModelError(f"{self.path}: version {version}, {count:,} tensors: only version 1 is read")
        place, headers = 16, []
        for _ in range(count):
            headers.append(struct.unpack_from("<4Q", self._data, place))
            place += 32
        names, shapes = [], []
        for length, *_ in headers:
            names.append(self._bytes(place, length).rstrip(b"\0").decode())
            place += length
        for _, _, rank, _ in headers:
            shapes.append(struct.unpack(f"<{rank}i", self._bytes(place, 4 * rank)))
            place += 4 * rank
        place += 8 + struct.unpack_from("<Q", self._data, place)[0]
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
            self._bytes(place, size, read=False)
            yield name, _Tensor(shape, kind, place, size)
            place += size

    def _bytes(self, first: int, count: int, *, read: bool = True) -> bytes:
        if first + count > len(self._data):
            raise struct.error
        return self._data[first : first + count].tobytes() if read else b""

    def text(self, name: str) -> str:
        found = self.entry(name)
        return self._bytes(found.first, found.bytes).rstrip(b"\0").decode("utf-8", "replace")

    def shape(self, name: str) -> tuple[int, ...]:
        return self.entry(name).shape

    def kind(self, name: str) -> str:
        kind = self.entry(name).kind
        if kind not in _KINDS:
            packed = "packed for one kind of processor" if kind & 0x800 or kind > _INTGEMM8 else "not known"
            raise ModelError(
                f"{self.path}: {name[:100]}: numbers of kind {kind:#x}, {packed}; read are float32, float16, intgemm8"
            )
        return _KINDS[kind]

    def tensor(self, name: str) -> Tensor:
        found, kind = self.entry(name), self.kind(name)
        size = math.prod(found.shape)
        quantized = found.kind == _INTGEMM8
        needed = size * np.dtype(kind).itemsize + 4 * quantized
        if min(found.shape, default=0) < 0 or needed > found.bytes:
            raise ModelError(f"{self.path}: {name[:100]} = {found.shape}: its numbers do not fill it; is it damaged?")
        numbers = np.frombuffer(self._bytes(found.first, needed), kind, size)
        if not quantized:
            return torch.from_numpy(numbers.astype(np.float32)).reshape(found.shape)
        (multiplier,) = struct.unpack_from("<f", self._bytes(found.first + size, 4))
        whole = torch.from_numpy(numbers.astype(np.float32)).div_(multiplier)
        return whole.reshape(found.shape) if "Wemb" in name else whole.reshape(found.shape[::-1]).T


class _Archive(_File[zipfile.ZipInfo]):
    """The same of an ``.npz``: a ZIP archive of numpy's arrays. Nothing in it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self.entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        except _BROKEN:
            raise ModelError(f"{path}: is cut short, damaged or no .npz; copy it again") from None
        whole = sum(entry.file_size for entry in self.entries.values())
        if whole > _SWELLS * path.stat().st_size or len(self.entries) > _MOST:
            raise ModelError(f"{path}: unfolds to {whole:,} bytes in {len(self.entries):,} arrays; that is no model")
        self.names = list(self.entries)

    def text(self, name: str) -> str:
        return self._array(name).tobytes().rstrip(b"\0").decode("utf-8", "replace")

    def shape(self, name: str) -> tuple[int, ...]:
        return self._open(name, lambda _file, shape, _kind: shape)

    def kind(self, name: str) -> str:
        return self._open(name, lambda _file, _shape, kind: kind.str)

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self._array(name).astype(np.float32))

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        def numbers(file: Any, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
            return np.frombuffer(file.read(math.prod(shape) * kind.itemsize), kind).reshape(shape)

        return self._open(name, numbers)

    def _open(self, name: str, then: Callable[[Any, tuple[int, ...], np.dtype[Any]], Any]) -> Any:
        entry = self.entry(name)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(entry) as file:
                version = npy.read_magic(file)
                header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, columns, kind = header(file)
                if columns or kind.hasobject or math.prod(shape) * kind.itemsize > entry.file_size:
                    raise ValueError
                return then(file, shape, kind)
        except _BROKEN:
            raise ModelError(
                f"{self.path}: {name[:100]}: is no array of numbers, or damaged; copy the file again"
            ) from None


# Texts


def parse(text: str, where: str) -> dict[str, str | list[str]]:
    """The little of YAML that Marian's settings need: ``name: value``, and lists of values."""
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in text.splitlines():
        bare = line.split(" #")[0].strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("- ") or bare == "-":
            values = found.get(name)
            if not isinstance(values, list):
                values = found[name] = []
            values.append(unquoted(bare[1:].strip()))
        elif ":" in bare:
            name, _, value = bare.partition(":")
            inside = value.strip()
            if inside.startswith("[") and inside.endswith("]"):
                found[name] = [unquoted(each.strip()) for each in inside[1:-1].split(",") if each.strip()]
            else:
                found[name] = unquoted(inside)
        else:
            raise ModelError(f"{where}: {bare[:60]!r}: no setting of Marian's; is the file damaged?")
    return found


def unquoted(text: str) -> str:
    """A scalar of YAML: plain, in single quotes, or in double ones with escapes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|.)", _character, text[1:-1])
    return text


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def pieces_of(text: str, where: str) -> list[str]:
    """A vocabulary in YAML, a number for each piece; a piece may stand alone behind ``?``, its number behind ``:``."""
    numbers: dict[int, str] = {}
    waiting: str | None = None
    for line in text.split("\n"):
        row = line.rstrip("\r")
        if not row.strip():
            continue
        if row.startswith("? "):
            waiting = row[2:]
            continue
        piece, _, number = (waiting, ":", row[1:]) if waiting is not None and row[0] == ":" else row.rpartition(":")
        waiting = None
        if not number.strip().isdecimal() or len(number) > 12 or int(number) in numbers:
            raise ModelError(f"{where}: {row[:60]!r}: not a piece and its number; is the file damaged?")
        numbers[int(number)] = unquoted(piece)
    if sorted(numbers) != list(range(len(numbers))) or not numbers:
        raise ModelError(f"{where}: its {len(numbers):,} pieces are not numbered from 0 on, each once")
    return [numbers[number] for number in range(len(numbers))]


class Config:
    """A model's settings, each looked up with what Marian takes for it."""

    def __init__(self, values: Mapping[str, str | list[str]], where: str) -> None:
        self.values, self.where = values, where

    def text(self, name: str, default: str) -> str:
        found = self.values.get(name, default)
        if not isinstance(found, str):
            raise ModelError(f"{self.where}: {name} = {found}: must be one value")
        return found

    def number(self, name: str) -> int:
        found = self.text(name, "")
        if not found.isdecimal() or len(found) > 6:
            raise ModelError(f"{self.where}: {name} = {found or 'nothing'}: must be a number of a Transformer")
        return int(found)

    def flag(self, name: str) -> bool:
        return self.text(name, "false") == "true"

    def levels(self, side: str, depth: int) -> list[str]:
        """The number of each layer's weights: layers of a decoder may share them."""
        tied = self.values.get("transformer-tied-layers", []) if side == "decoder" else []
        if not isinstance(tied, list) or (tied and len(tied) != depth):
            raise ModelError(
                f"{self.where}: transformer-tied-layers = {tied}: must name one for each of {depth} layers"
            )
        return tied or [str(level + 1) for level in range(depth)]


# Vocabularies


def _vocabulary_files(package: Package) -> list[Path]:
    """Those that a configuration beside the model names, else what is called like a vocabulary."""
    folder, found = package.folder, []
    for path in sorted(folder.glob("*.yml")):
        if "vocabs" in (text := read_text(path)) and "\nmodels" in f"\n{text}":
            named = parse(text, str(path)).get("vocabs", [])
            found = [folder / Path(each).name for each in named] if isinstance(named, list) else []
            if found and all(each.is_file() for each in found):
                return found
    kinds = (sorted(folder.glob(pattern)) for pattern in ("*vocab*.spm", "*vocab*.yml", "*.spm"))
    found = next((each for each in kinds if each), [])
    if len(found) not in (1, 2):
        raise ModelError(
            f"{folder}: {len(found)} vocabularies; one (.spm or .yml), or one for each side, must be beside the model"
        )
    return sorted(found, key=lambda path: path.name.startswith(("trg", "target", "tgt")))


def _ids(path: Path, rows: int) -> Ids:
    if path.suffix == ".spm":
        model = open_model(read_bytes(path))
        pieces = [model.id_to_piece(number) for number in range(model.get_piece_size())]
        end, unknown = model.eos_id(), model.unk_id()
    else:
        pieces = pieces_of(read_text(path), str(path))
        end, unknown = (pieces.index(piece) if piece in pieces else -1 for piece in ("</s>", "<unk>"))
    return Ids.of(pieces, pad=None, start=None, end=end, unknown=unknown, rows=rows)


def _tokenizers(package: Package, paths: list[Path], source: Ids, target: Ids) -> Tokenizers:
    if paths[0].suffix != ".spm":
        return tokenizers_of(package, source.pieces, target.pieces, joint=source is target)
    sides = ((source, paths[0]), (target, paths[-1]))
    made = [SentencePieceTokenizer(Vocabulary(ids.pieces), model=read_bytes(path)) for ids, path in sides]
    return Tokenizers(made[0], made[0] if source is target else made[1])


# Weights


def _embedding(file: _Binary | _Archive, side: str) -> str:
    return f"{side}_Wemb" if f"{side}_Wemb" in file.names else "Wemb"


class _NativeReader(ABC):
    """What a file's tensors are in our words."""

    refused: Mapping[str, tuple[str, ...]]  # settings, and which of their values are read
    output: str  # how names of the output layer begin

    def __init__(self, file: _Binary | _Archive, config: Config, *, joint: bool) -> None:
        self.file: NamedTensors = file
        self.config, self.where = config, str(file.path)
        self.embeddings = [_embedding(file, side) for side in ("encoder", "decoder")]
        self.used: set[str] = set()
        for name, known in {**_ANY, **self.refused}.items():
            if (value := config.text(name, known[0])) not in known:
                raise ModelError(f"{self.where}: {name} = {value}: is not read; {known[0]} is")
        tied = config.flag("tied-embeddings-all")
        self.tie = "none"
        if tied or config.flag("tied-embeddings"):
            self.tie = "all" if tied and joint and len(set(self.embeddings)) == 1 else "target"

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Those of the model."""

    @abstractmethod
    def _side(self, side: str) -> Weights:
        """The layers of encoder or decoder."""

    def weights(self, source: Ids, target: Ids) -> Weights:
        """Our parameters, a tensor at a time; a tensor that is none of them is refused at the end."""
        if self.tie != "all":
            yield "encoder.embedding.weight", source.rows(self._tensor(self.embeddings[0]))
        yield "decoder.embedding.weight", target.rows(self._tensor(self.embeddings[1]))
        output = self.output
        if self.tie == "none":
            own = self._tensor(f"{output}_Wt") if f"{output}_Wt" in self.file.names else self._tensor(f"{output}_W").T
            yield "decoder.output.weight", target.rows(own)
        bias = f"{output}_b"
        size = self.file.shape(self.embeddings[1])[0]
        yield "decoder.output.bias", target.bias(self._vector(bias) if bias in self.file.names else torch.zeros(size))
        for side in ("encoder", "decoder"):
            yield from self._side(side)
        for name in sorted(set(self.file.names) - self.used):
            if not _UNUSED.fullmatch(name):
                raise ModelError(f"{self.where}: {name[:100]}: is a part that models here do not have; it is not read")

    def _vector(self, name: str) -> Tensor:
        return self._tensor(name).flatten()

    def _tensor(self, name: str) -> Tensor:
        self.used.add(name)
        return self.file.tensor(name)


class _TransformerReader(_NativeReader):
    refused, output = _TRANSFORMERS, "decoder_ff_logit_out"

    def __init__(self, file: _Binary | _Archive, config: Config, *, joint: bool) -> None:
        super().__init__(file, config, joint=joint)
        if (kind := config.text("type", "amun")) != "transformer":
            known = ", ".join(_RECURRENT)
            raise ModelError(f"{self.where}: type = {kind}: is not read; transformer is, and {known} are")
        past, cell = config.text("transformer-decoder-autoreg", "self-attention"), config.text("dec-cell", "ssru")
        if past not in ("self-attention", "rnn") or (past == "rnn" and cell != "ssru"):
            raise ModelError(
                f"{self.where}: transformer-decoder-autoreg = {past}, dec-cell = {cell}: "
                "decoders with self-attention are read, and those with an SSRU"
            )
        self.depths = {side: config.number(f"{side[:3]}-depth") for side in ("encoder", "decoder")}
        self.before = self._before()

    def _before(self) -> bool:
        """Where norms stand; dropout says nothing here."""
        names = ("transformer-preprocess", "transformer-postprocess")
        process = [self.config.text(name, "").replace("d", "") for name in names]
        if process not in (["", "an"], ["n", "a"]):
            raise ModelError(
                f"{self.where}: {names[0]} = {process[0]!r}, {names[1]} = {process[1]!r}: only a norm before each "
                "sublayer (n, da) or after its sum (dan) is read"
            )
        return process[0] == "n"

    def settings(self) -> dict[str, Any]:
        config = self.config
        activation = config.text("transformer-ffn-activation", "swish")
        if activation not in _ACTIVATIONS:
            raise ModelError(
                f"{self.where}: transformer-ffn-activation = {activation}: is not read; relu and swish are"
            )
        return {
            "kind": "transformer",
            "width": config.number("dim-emb"),
            "heads": config.number("transformer-heads"),
            "hidden": config.number("transformer-dim-ffn"),
            "encoder_depth": self.depths["encoder"],
            "decoder_depth": self.depths["decoder"],
            "activation": _ACTIVATIONS[activation],
            "norm_place": "before" if self.before else "after",
            "norm_epsilon": _EPSILON,
            "final_norm": "yes" if "n" in config.text("transformer-postprocess-top", "") else "no",
            "embedding_norm": "n" in config.text("transformer-postprocess-emb", "d"),
            "frequencies": "marian",
            "interleaved": False,
            "start": "zero",
            "autoregression": "ssru" if self._recurrent else "attention",
            "tie": self.tie,
        }

    @property
    def _recurrent(self) -> bool:
        return self.config.text("transformer-decoder-autoreg", "self-attention") == "rnn"

    def _side(self, side: str) -> Weights:
        if "n" in self.config.text("transformer-postprocess-emb", "d"):
            yield from self._norm(f"{side}_emb", f"{side}.embedding_norm", "_pre")
        if "n" in self.config.text("transformer-postprocess-top", ""):
            yield from self._norm(f"{side}_top", f"{side}.norm", "")
        for level, number in enumerate(self.config.levels(side, self.depths[side])):
            yield from self._layer(f"{side}_l{number}", f"{side}.layers.{level}", side)

    def _layer(self, theirs: str, ours: str, side: str) -> Weights:
        suffix = "_pre" if self.before else ""
        last = 2 if side == "decoder" else 1
        yield from self._norm(f"{theirs}_ffn_ffn", f"{ours}.residuals.{last}.norm", suffix)
        for number, part in (("1", "expand"), ("2", "contract")):
            yield from self._linear(f"{theirs}_ffn", number, f"{ours}.feed_forward.{part}")
        if side == "decoder":
            yield from self._attention(f"{theirs}_context", f"{ours}.cross", f"{ours}.residuals.1.norm", suffix)
        if side == "decoder" and self._recurrent:
            yield f"{ours}.recurrence.candidate.weight", self._tensor(f"{theirs}_rnn_W").T
            yield from self._linear(f"{theirs}_rnn", "f", f"{ours}.recurrence.forget")
            place = f"{theirs}_rnn" if self.before else f"{theirs}_rnn_ffn"
            yield from self._norm(place, f"{ours}.residuals.0.norm", suffix)
        else:
            yield from self._attention(f"{theirs}_self", f"{ours}.attention", f"{ours}.residuals.0.norm", suffix)

    def _attention(self, theirs: str, ours: str, norm: str, suffix: str) -> Weights:
        for letter, part in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output")):
            yield from self._linear(theirs, letter, f"{ours}.projections.{part}")
        yield from self._norm(f"{theirs}_Wo", norm, suffix)

    def _linear(self, theirs: str, suffix: str, ours: str) -> Weights:
        yield f"{ours}.weight", self._tensor(f"{theirs}_W{suffix}").T
        yield f"{ours}.bias", self._vector(f"{theirs}_b{suffix}")

    def _norm(self, theirs: str, ours: str, suffix: str) -> Weights:
        yield f"{ours}.gain", self._vector(f"{theirs}_ln_scale{suffix}")
        yield f"{ours}.shift", self._vector(f"{theirs}_ln_bias{suffix}")


class _RecurrentReader(_NativeReader):
    """Encoder cells of two directions, and two cells of the decoder with an attention between them (Sennrich et al.,
    2017). Gates are in our order: reset, update, and the candidate, whose bias stands outside what is reset, but for
    the second cell."""

    refused, output = _CELLS, "decoder_ff_logit_l2"

    def settings(self) -> dict[str, Any]:
        hidden = self.config.number("dim-rnn")
        return {
            "kind": "recurrent",
            "cell": "gru",
            "width": self.config.number("dim-emb"),
            "hidden": hidden,
            "bidirectional": True,
            "bridge": "mean",
            "embedding_scale": False,
            "start": "zero",
            "decoder": {"kind": "conditional", "attention": {"score": "additive", "hidden": 2 * hidden}},
            "tie": self.tie,
        }

    def _side(self, side: str) -> Weights:
        if side == "encoder":
            yield from self._cell("encoder_bi", "encoder.stack.layers.0", "")
            yield from self._cell("encoder_bi_r", "encoder.stack.layers.0", "_reverse")
            return
        yield from self._cell("decoder_cell1", "decoder.stack.layers.0", "")
        yield from self._cell("decoder_cell2", "decoder.second", "", resets_bias=True)
        score = "decoder.attention.score"
        yield f"{score}.query_weight", self._tensor("decoder_W_comb_att")[None]
        yield f"{score}.key_weight", self._tensor("decoder_Wc_att")[None]
        yield f"{score}.combine", self._tensor("decoder_U_att").T
        yield f"{score}.bias", self._vector("decoder_b_att")[None, None]
        yield "decoder.bridge.hidden.0.weight", self._tensor("decoder_ff_state_W").T
        yield "decoder.bridge.hidden.0.bias", self._vector("decoder_ff_state_b")
        parts = "120"  # state, context, word
        weights = [self._tensor(f"decoder_ff_logit_l1_W{part}") for part in parts]
        yield "decoder.readout.weight", torch.cat(weights).T
        biases = [self._vector(f"decoder_ff_logit_l1_b{part}") for part in parts]
        yield "decoder.readout.bias", torch.stack(biases).sum(0)

    def _cell(self, theirs: str, ours: str, direction: str, *, resets_bias: bool = False) -> Weights:
        for one, other in (("W", "ih"), ("U", "hh")):
            parts = self._tensor(f"{theirs}_{one}"), self._tensor(f"{theirs}_{one}x")
            yield f"{ours}.kernel.weight_{other}_l0{direction}", torch.cat(parts, 1).T
        gates, candidate = self._vector(f"{theirs}_b"), self._vector(f"{theirs}_bx")
        none = torch.zeros_like(candidate)
        inner, outer = (none, candidate) if resets_bias else (candidate, none)
        yield f"{ours}.kernel.bias_ih_l0{direction}", torch.cat((gates, inner))
        yield f"{ours}.kernel.bias_hh_l0{direction}", torch.cat((torch.zeros_like(gates), outer))
