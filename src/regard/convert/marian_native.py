"""Marian's models: Transformers with attention or an SSRU in the decoder, as OPUS-MT, HPLT and Firefox have them, and
older recurrent models (``s2s``, ``amun``, ``nematus``).

Strings say where its norms are: ``dan`` after a sublayer is dropout, add, norm. Outputs begin with a vector of zeros.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from regard.convert.foreign import Foreign, Ids, Weights, settled
from regard.convert.marian_files import CONFIG, Archive, Binary, Config, parse, pieces_of
from regard.convert.names import NamedTensors
from regard.convert.package import Package, read_bytes, read_json, read_text, tokenizers_of
from regard.errors import ModelError
from regard.settings.schema import LANGUAGE
from regard.text.foreign import SentencePieceTokenizer
from regard.text.subwords import open_model
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import Vocabulary

_NAMES = {"<f4": "float32", "<f2": "float16", "<f8": "float64", "<i1": "intgemm8"}
_EPSILON = 1e-6  # of its norms
_ACTIVATIONS = {"relu": "relu", "swish": "silu"}  # its gelu is x · σ(1.702 x)
_UNUSED = re.compile(
    rf"{re.escape(CONFIG)}|.*_QuantMultA|.*:.*|decoder_c_tt|uidx|history_errs"
)  # no weights, or scales
_STUDENT = re.compile(rf"({LANGUAGE}-{LANGUAGE})-")  # how its name begins
_RECURRENT = ("s2s", "amun", "nematus")
_OLD: Final = {  # names in files of amun and nematus, and their names in s2s
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
# settings, and the values that are supported
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


def read(package: Package) -> Foreign:
    file = Binary(package.file) if package.file.suffix == ".bin" else Archive(package.file)
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
    """The languages in translateLocally's description of a student, ``pt-en-tiny``."""
    path = folder / "model_info.json"
    named = _STUDENT.match(str(read_json(path).get("shortName"))) if path.is_file() else None
    return named[1] if named else ""


# Vocabularies


def _vocabulary_files(package: Package) -> list[Path]:
    """The vocabularies that a configuration beside the model names, else files named like one."""
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


def _embedding(file: Binary | Archive, side: str) -> str:
    return f"{side}_Wemb" if f"{side}_Wemb" in file.names else "Wemb"


class _NativeReader(ABC):
    """Settings and weights from the tensors of a file."""

    supported: Mapping[str, tuple[str, ...]]  # values of settings
    output: str  # how names of the output layer begin

    def __init__(self, file: Binary | Archive, config: Config, *, joint: bool) -> None:
        self.file: NamedTensors = file
        self.config, self.where = config, str(file.path)
        self.embeddings = [_embedding(file, side) for side in ("encoder", "decoder")]
        self.used: set[str] = set()
        for name, known in {**_ANY, **self.supported}.items():
            if (value := config.text(name, known[0])) not in known:
                raise ModelError(f"{self.where}: {name} = {value}: not supported; {known[0]} is")
        tied = config.flag("tied-embeddings-all")
        self.tie = "none"
        if tied or config.flag("tied-embeddings"):
            self.tie = "all" if tied and joint and len(set(self.embeddings)) == 1 else "target"

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The settings of the model."""

    @abstractmethod
    def _side(self, side: str) -> Weights:
        """The layers of encoder or decoder."""

    def weights(self, source: Ids, target: Ids) -> Weights:
        """Our parameters, one by one; a tensor that is not used is refused at the end."""
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
                raise ModelError(f"{self.where}: {name[:100]}: is a part that our models do not have")

    def _vector(self, name: str) -> Tensor:
        return self._tensor(name).flatten()

    def _tensor(self, name: str) -> Tensor:
        self.used.add(name)
        return self.file.tensor(name)


class _TransformerReader(_NativeReader):
    supported, output = _TRANSFORMERS, "decoder_ff_logit_out"

    def __init__(self, file: Binary | Archive, config: Config, *, joint: bool) -> None:
        super().__init__(file, config, joint=joint)
        if (kind := config.text("type", "amun")) != "transformer":
            known = ", ".join(_RECURRENT)
            raise ModelError(f"{self.where}: type = {kind}: not supported; transformer is, and {known} are")
        past, cell = config.text("transformer-decoder-autoreg", "self-attention"), config.text("dec-cell", "ssru")
        if past not in ("self-attention", "rnn") or (past == "rnn" and cell != "ssru"):
            raise ModelError(
                f"{self.where}: transformer-decoder-autoreg = {past}, dec-cell = {cell}: "
                "not supported; decoders with self-attention or an SSRU are"
            )
        self.depths = {side: config.number(f"{side[:3]}-depth") for side in ("encoder", "decoder")}
        self.before = self._before()

    def _before(self) -> bool:
        """Whether norms are before each sublayer; dropout does not matter here."""
        names = ("transformer-preprocess", "transformer-postprocess")
        process = [self.config.text(name, "").replace("d", "") for name in names]
        if process not in (["", "an"], ["n", "a"]):
            raise ModelError(
                f"{self.where}: {names[0]} = {process[0]!r}, {names[1]} = {process[1]!r}: only a norm before each "
                "sublayer (n, da) or after its sum (dan) is supported"
            )
        return process[0] == "n"

    def settings(self) -> dict[str, Any]:
        config = self.config
        activation = config.text("transformer-ffn-activation", "swish")
        if activation not in _ACTIVATIONS:
            raise ModelError(
                f"{self.where}: transformer-ffn-activation = {activation}: not supported; relu and swish are"
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
    """A bidirectional encoder, and two cells of the decoder with attention between them (Sennrich et al., 2017). Its
    gates are in our order: reset, update, candidate. Only in the second cell the reset gate applies to the candidate's
    bias."""

    supported, output = _CELLS, "decoder_ff_logit_l2"

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
