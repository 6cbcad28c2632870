"""fairseq's names of a Transformer's parts, which `transformers` uses, too, for BART, mBART, M2M-100 and Marian."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from regard.convert.foreign import Ids, Weights
from regard.errors import ModelError

ACTIVATIONS: Final = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
_PARTS = {
    "self_attn": "attention.projections",
    "encoder_attn": "cross.projections",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output",
    "fc1": "feed_forward.expand",
    "fc2": "feed_forward.contract",
    "self_attn_layer_norm": "residuals.0.norm",
    "encoder_attn_layer_norm": "residuals.1.norm",
    "layernorm_embedding": "embedding_norm",
    "layer_norm": "norm",
}
_NORMS = {"weight": "gain", "bias": "shift"}
_EMBEDDINGS = {"encoder": ("encoder.embed_tokens", "shared"), "decoder": ("decoder.embed_tokens", "shared")}
_OUTPUTS = ("lm_head", "decoder.output_projection")
_POSITIONS = "embed_positions"
_FIRST = 2  # row of the first token in a table of learned positions


class NamedTensors(Protocol):
    """Named tensors that are read lazily."""

    names: list[str]

    def shape(self, name: str) -> tuple[int, ...]: ...

    def tensor(self, name: str) -> Tensor: ...


def renamed(name: str) -> str:
    """Our name of a part of a layer, or of a norm: ``decoder.layers.3.fc1.bias`` is ``….feed_forward.expand.bias``."""
    *parts, last = name.split(".")
    side = parts[0] if parts else ""
    ours = [_PARTS.get(part, part) for part in parts]
    if parts and parts[-1] == "final_layer_norm":
        ours[-1] = f"residuals.{2 if side == 'decoder' else 1}.norm"
    return ".".join([*ours, _NORMS.get(last, last) if "norm" in "".join(ours[-1:]) else last])


class Family:
    """The weights of one of these models, and their names here."""

    def __init__(
        self, tensors: NamedTensors, where: str, *, tie: str, learned: bool, ignored: tuple[str, ...] = ()
    ) -> None:
        self.tensors, self.where, self.tie, self.learned, self.ignored = tensors, where, tie, learned, ignored
        self.plain = {name.removeprefix("model."): name for name in tensors.names}
        self.first = _FIRST

    def embedding(self, side: str) -> str:
        found = [f"{name}.weight" for name in _EMBEDDINGS[side] if f"{name}.weight" in self.plain]
        if not found:
            raise ModelError(f"{self.where}: {_EMBEDDINGS[side][0]}.weight: is missing; is the file complete?")
        return found[0]

    def output(self) -> str:
        found = [f"{name}.weight" for name in _OUTPUTS if f"{name}.weight" in self.plain]
        return found[0] if found else self.embedding("decoder")

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self.plain:
            raise ModelError(f"{self.where}: {name}: is missing; is the file complete?")
        return self.tensors.shape(self.plain[name])

    def tensor(self, name: str) -> Tensor:
        return self.tensors.tensor(self.plain[name])

    def depth(self, side: str) -> int:
        """The number of layers of a side."""
        numbers = {int(part) for name in self.plain if (part := _layer(name, side)).isdecimal() and len(part) < 5}
        if not numbers or numbers != set(range(len(numbers))):
            raise ModelError(
                f"{self.where}: {side}.layers: are missing, or not numbered consecutively; is the file complete?"
            )
        return len(numbers)

    def settings(self, config: Mapping[str, object], activation: str, usual: str) -> dict[str, Any]:
        """The settings that all of these models share."""
        found = str(config.get(activation, usual))[:40]
        if found not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ModelError(f"{self.where}: {activation} = {found}: not supported; known: {known}")
        return {
            "kind": "transformer",
            "width": self.shape(self.embedding("decoder"))[-1],
            "heads": _same(config, "attention_heads", self.where),
            "hidden": self.shape("encoder.layers.0.fc1.weight")[0],
            "encoder_depth": self.depth("encoder"),
            "decoder_depth": self.depth("decoder"),
            "activation": ACTIVATIONS[found],
            "tie": self.tie,
        }

    def weights(self, source: Ids, target: Ids) -> Weights:
        """Our parameters, a tensor at a time."""
        sides = {"encoder": source, "decoder": target}
        for side in ("decoder",) if self.tie == "all" else ("encoder", "decoder"):
            yield f"{side}.embedding.weight", sides[side].rows(self.tensor(self.embedding(side)))
        if self.tie == "none":
            yield "decoder.output.weight", target.rows(self.tensor(self.output()))
        bias = "final_logits_bias"
        size = self.shape(self.output())[0]
        yield (
            "decoder.output.bias",
            target.bias(self.tensor(bias).flatten() if bias in self.plain else torch.zeros(size)),
        )
        for name in self.plain:
            if not self._is_apart(name):
                yield renamed(name), self.tensor(name)
        for side in ("encoder", "decoder") if self.learned else ():
            yield f"{side}.positions.weight", self.tensor(f"{side}.{_POSITIONS}.weight")[self.first :]

    def _is_apart(self, name: str) -> bool:
        """Whether this is neither part of a layer nor a norm: an embedding, the output, a table, or not a weight."""
        part = name.rpartition(".")[0]
        known = (*_OUTPUTS, *(each for names in _EMBEDDINGS.values() for each in names))
        return part in known or f".{_POSITIONS}." in f".{name}." or name in ("final_logits_bias", *self.ignored)


def _layer(name: str, side: str) -> str:
    """The number of the layer that a weight belongs to."""
    before, _, after = name.partition(f"{side}.layers.")
    return after.partition(".")[0] if not before else ""


def _same(config: Mapping[str, object], name: str, where: str) -> int:
    """A number that must be the same for encoder and decoder."""
    here, there = (config.get(f"{side}_{name}") for side in ("encoder", "decoder"))
    if not isinstance(here, int) or isinstance(here, bool) or here != there:
        raise ModelError(
            f"{where}: decoder_{name} = {str(there)[:40]}: the encoder has {str(here)[:40]}; must be equal numbers"
        )
    return here
