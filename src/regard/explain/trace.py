"""What was seen in one replayed pass, as data: kept, saved, loaded, compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from regard.errors import DataError, ModelError
from regard.explain.side import Side
from regard.files import new_file

Task = Literal["translate", "language", "label"]
FORMAT = 1
TENSORS, DESCRIPTION = ".safetensors", ".json"
_OWN = ("log_probability", "rank", "top_ids", "top_log_probability")  # a trace's own tensors, beside those of the model


@dataclass(frozen=True)
class Trace:
    """One finished output with all that was recorded while the model wrote it.

    Row t of anything along the target belongs to the step that *predicted* ``target.pieces[t]``; what the
    model read at that step is ``inputs[t]``, the piece before it. Tensors have no batch axis: weights are
    (H, T, S), states (T, D), by the names of `regard.nn.observe`, all in the order of the text: what a backward
    layer or a reversed encoder recorded from the last word to the first is turned round.
    """

    task: Task
    source: Side
    target: Side
    tensors: Mapping[str, Tensor]
    log_probability: Tensor  # (T,) of each target piece
    rank: Tensor  # (T,) of each target piece among all, 0 the most probable
    top_ids: Tensor  # (T, k) the most probable at each step, best first
    top_log_probability: Tensor  # (T, k)
    top_pieces: tuple[tuple[str, ...], ...] = ()
    backwards: bool = False  # whether the encoder read the source from its end

    @property
    def score(self) -> float:
        """The log-probability of the whole target: the sum over its steps."""
        return float(self.log_probability.sum())

    @property
    def inputs(self) -> tuple[str, ...]:
        """What was read at each step."""
        if self.task == "label":
            return self.source.pieces
        return ("<start>", *self.target.pieces[:-1])

    @property
    def cross(self) -> Tensor:
        """Attention to the source, (L, H, T, S); a recurrent decoder has one layer of it."""
        return self._stacked("decoder", "cross", "attends to no source")

    @property
    def encoder_self(self) -> Tensor:
        """Of the source to itself, (L, H, S, S)."""
        return self._stacked("encoder", "self", "has no self-attention in an encoder")

    @property
    def decoder_self(self) -> Tensor:
        """Of what was read to itself and what came before it, (L, H, T, T)."""
        return self._stacked("decoder", "self", "has no self-attention in a decoder")

    @property
    def logits(self) -> Tensor:
        """(T, V), where they were asked for."""
        if "logits" not in self.tensors:
            raise DataError("logits: this trace does not hold them; replay with logits = True")
        return self.tensors["logits"]

    def has(self, side: str, kind: str) -> bool:
        """Whether there is such attention, as ``has("decoder", "cross")``."""
        return bool(self.layers(side, kind))

    def layers(self, side: str, kind: str) -> list[str]:
        """The names of the weights of each layer, lowest first."""
        return layer_names(self.tensors, side, kind)

    def _stacked(self, side: str, kind: str, missing: str) -> Tensor:
        names = self.layers(side, kind)
        if not names:
            raise ModelError(f"trace = {side}.{kind}.weights: this model {missing}; known: {self._known()}")
        return torch.stack([self.tensors[name] for name in names])

    def _known(self) -> str:
        return ", ".join(name for name in self.tensors if name.endswith(".weights")) or "no attention at all"

    def head(self, layer: int, head: int, *, side: str = "decoder", kind: str = "cross") -> Tensor:
        """The weights (T, S) of one head."""
        stacked = self._stacked(side, kind, "has no such attention")
        for name, value, count in (("layer", layer, stacked.shape[0]), ("head", head, stacked.shape[1])):
            if not 0 <= value < count:
                raise DataError(f"{name} = {value}: this model has no such {name}; {_range(count)} would be right")
        return stacked[layer, head]

    def save(self, path: str | Path) -> None:
        """Write ``path.safetensors`` and ``path.json``. The second, which names the first's size, is written last."""
        tensors = {f"model/{name}": tensor for name, tensor in self.tensors.items()}
        tensors |= {name: getattr(self, name) for name in _OWN}
        data = save_tensors({name: _packed(tensor) for name, tensor in tensors.items()})
        description = {
            "format": FORMAT,
            "task": self.task,
            "source": asdict(self.source),
            "target": asdict(self.target),
            "top_pieces": self.top_pieces,
            "backwards": self.backwards,
            "bytes": len(data),
        }
        for suffix, content in ((TENSORS, data), (DESCRIPTION, _json(description))):
            with new_file(_beside(path, suffix)) as file:
                file.write(content)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote, or say in one line what is wrong with it."""
        file = _beside(path, DESCRIPTION)
        description = _read_description(file)
        tensors = _read_tensors(_beside(path, TENSORS), description.get("bytes"))
        try:
            return cls(
                task=description["task"],
                source=_side(description["source"]),
                target=_side(description["target"]),
                tensors={name.removeprefix("model/"): value for name, value in tensors.items() if "/" in name},
                top_pieces=tuple(map(tuple, description["top_pieces"])),
                backwards=bool(description["backwards"]),
                **{name: tensors[name] for name in _OWN},
            )
        except (KeyError, TypeError, AttributeError) as problem:
            raise DataError(f"{file}: is not a whole trace; {problem} is missing or damaged") from None


def layer_names(names: Iterable[str], side: str, kind: str) -> list[str]:
    """Those of ``names`` that are a layer's weights, lowest layer first."""
    pattern = re.compile(rf"{side}\.(?:(\d+)\.)?{kind}\.weights")
    found = [(int(match[1] or 0), name) for name in names if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _range(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"


def _beside(path: str | Path, suffix: str) -> Path:
    """The pair's file: a name given with either ending means both."""
    path = Path(path)
    plain = path.with_suffix("") if path.suffix in (TENSORS, DESCRIPTION) else path
    return plain.with_name(plain.name + suffix)


def _packed(tensor: Tensor) -> Tensor:
    """A copy that shares its memory with nothing, which safetensors insists on."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _read_description(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); a trace is a pair of files") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is not JSON; is it a trace, whole?") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        raise DataError(f"{path}: format = {found}: is not a trace that this version reads; {FORMAT} would be right")
    return content


def _read_tensors(path: Path, size: object) -> dict[str, Tensor]:
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror}); a trace is a pair of files") from None
    if len(data) != size:
        raise DataError(f"{path} = {len(data)} bytes: does not belong to its {DESCRIPTION}, which says {size} bytes")
    try:
        return load_tensors(data)
    except (SafetensorError, ValueError, RuntimeError):
        raise DataError(f"{path}: is not a safetensors file; is it damaged?") from None


def _side(content: Mapping[str, Sequence[Any]]) -> Side:
    letters = tuple(tuple(row) for row in content.get("letters", ()))
    return Side(**{name: tuple(values) for name, values in content.items()} | {"letters": letters})
