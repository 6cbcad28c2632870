"""Importing a model of another toolkit: what every reader returns, and how a run folder is made from it.

A reader maps its tensors to our parameters and keeps their ids; `Ids` reorders the rows of embeddings and of the output
layer, so that special tokens have our ids.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from regard.errors import ModelError, ResourceError, SettingsError
from regard.files import new_folder
from regard.models import build
from regard.nn.fast.allocator import Unset
from regard.runs.checkpoint import model_tensors, point_to_best
from regard.runs.folder import Origin, Progress, Run, belonging, seal
from regard.runs.log import Log
from regard.settings import Settings
from regard.settings.reading import read
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import SPECIAL_TOKENS, START

NEVER = -100.0  # a logit with practically no probability, yet small enough for label smoothing
ADDED = -1  # in `Ids.theirs`: no such row in the other vocabulary
MOST_PIECES = 1 << 22  # in a vocabulary; the largest of the models that are read has 256,206

Weights = Iterable[tuple[str, Tensor]]


def item_size(kind: str) -> int:
    """Bytes of a number of this kind, in numpy's notation, or ``bfloat16``."""
    return 2 if kind == "bfloat16" else np.dtype(kind).itemsize


def tensor_of(data: bytes, kind: str) -> Tensor:
    """Numbers of this kind as a flat tensor."""
    tensor = torch.from_numpy(np.frombuffer(bytearray(data), "<i2" if kind == "bfloat16" else kind))
    return tensor.view(torch.bfloat16) if kind == "bfloat16" else tensor


@dataclass(frozen=True)
class Foreign:
    """What every reader returns."""

    settings: Settings
    weights: Weights  # by the names of our parameters, each once, in any order; read lazily
    tokenizers: Tokenizers
    origin: Origin


@dataclass(frozen=True)
class Ids:
    """The row of another vocabulary for each of our ids. Our special tokens come first; theirs may be anywhere or be
    missing, and the start token is often the padding or end token."""

    pieces: tuple[str, ...]  # by our id
    theirs: Tensor  # (V,) by our id; `ADDED` if there is none

    @staticmethod
    def of(
        pieces: Sequence[str], *, pad: int | None, start: int | None, end: int, unknown: int | None, rows: int = 0
    ) -> Ids:
        """From pieces by their own ids; rows of the matrices beyond the pieces are named by their number."""
        size = max(len(pieces), rows)
        special = (pad, start, end, unknown)  # in the order of `regard.text.vocabulary`
        if size > MOST_PIECES:
            raise ModelError(f"vocabulary = {size:,} pieces: more than the {MOST_PIECES:,} that are read")
        known = [each for each in (pad, end, unknown) if each is not None]
        inside = all(each is None or 0 <= each < size for each in special)
        if len(set(known)) < len(known) or (start is not None and start == unknown) or not inside:
            raise ModelError(
                f"pad, start, end, unknown = {', '.join(map(str, special))}: must be ids of {size:,} pieces, all "
                "different except for start"
            )
        taken = {each for each in special if each is not None}
        others = [number for number in range(size) if number not in taken]
        named = [pieces[number] if number < len(pieces) else f"<unused {number}>" for number in others]
        theirs = [*(ADDED if each is None else each for each in special), *others]
        return Ids((*SPECIAL_TOKENS, *_unique(named, others)), torch.tensor(theirs))

    @property
    def doubled(self) -> bool:
        """Whether their start token is another special token, too; ours has its own id, which is never generated."""
        return bool((self.theirs[START] == self.theirs).sum() > 1)

    def rows(self, matrix: Tensor) -> Tensor:
        """The rows of an embedding or output matrix (V, D) in our order; added rows are zero."""
        return self._chosen(matrix).masked_fill((self.theirs == ADDED)[:, None], 0.0)

    def bias(self, bias: Tensor) -> Tensor:
        """The bias (V,) of the output layer in our order: added or doubled rows are never generated."""
        never = self.theirs == ADDED
        never[START] |= self.doubled
        return self._chosen(bias).masked_fill(never, NEVER).clamp(min=NEVER)

    def ours(self, ids: Tensor) -> Tensor:
        """Their ids as ours. A start token that also pads or ends becomes padding or end."""
        table, kept = torch.empty(int(self.theirs.max()) + 1, dtype=torch.long), self.theirs != ADDED
        kept[START] &= not self.doubled
        table[self.theirs[kept]] = torch.arange(len(kept))[kept]
        return table[ids]

    def _chosen(self, tensor: Tensor) -> Tensor:
        if len(tensor) <= int(self.theirs.max()):
            raise ModelError(
                f"vocabulary = {int(self.theirs.max()) + 1:,} pieces: the matrices have {len(tensor):,} rows"
            )
        return tensor.index_select(0, self.theirs.clamp(min=0))


def _unique(pieces: Sequence[str], numbers: Sequence[int]) -> Iterator[str]:
    """Unique names of pieces, also different from special tokens: a repeated one gets its number appended."""
    seen = set(SPECIAL_TOKENS)
    for piece, number in zip(pieces, numbers, strict=True):
        name = piece
        while name in seen:
            name = f"{name}#{number}"
        seen.add(name)
        yield name


@torch.no_grad()
def write(foreign: Foreign, out: Path) -> Run:
    """Write the run folder, completely or not at all. Weights are read one by one, so memory holds only the largest."""
    if out.exists() or out.is_symlink():
        raise ModelError(f"{out}: exists already; choose another --out")
    _ = foreign.tokenizers.read("a"), foreign.tokenizers.written("a")  # opens them: raises before anything is written
    sizes = foreign.tokenizers.source.size, foreign.tokenizers.target.size
    with Unset():  # allocates address space, not memory
        model = model_tensors(build.encoder_decoder(foreign.settings.model, *sizes))
    shapes = {name: tensor.shape for name, tensor in model.items()}
    del model
    _room(out, 4 * sum(map(math.prod, shapes.values())))
    with new_folder(out) as beside:
        run = Run(beside, foreign.settings).write()
        foreign.tokenizers.save(run.tokenizer)
        path = run.checkpoints / "step-0"
        path.mkdir(parents=True)
        with (path / "weights.safetensors").open("wb") as file:
            _save(file, shapes, foreign.weights)
        (path / "progress.json").write_text(json.dumps(asdict(Progress()), indent=2) + "\n", encoding="utf-8")
        seal(path, belonging(run))
        point_to_best(beside, 0)
        foreign.origin.save(beside)
        Log(run.log).tell(f"imported from {foreign.origin.name} ({foreign.origin.format})")
    return Run.open(out)


def _room(out: Path, needed: int) -> None:
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(there).free
    if needed > free:
        raise ResourceError(f"{out}: needs {needed:,} bytes, but only {free:,} are free; free some space")


def _save(file: BinaryIO, shapes: Mapping[str, torch.Size], weights: Weights) -> None:
    """Write a safetensors file in float32 from tensors in any order: the shapes give their positions."""
    header, places, end = {}, {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[f"model.{name}"] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
        places[name] = begin
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    first = file.tell()
    for name, tensor in weights:
        if name not in places:
            raise ModelError(f"{name}: no such weight in a model of these settings, or a second one; is it damaged?")
        if tensor.shape != shapes[name]:
            raise ModelError(f"{name} = {tuple(tensor.shape)}: must be {tuple(shapes[name])}; is the model damaged?")
        if not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{name}: has infinite numbers or NaN; is the model damaged?")
        file.seek(first + places.pop(name))
        file.write(tensor.float().contiguous().numpy().data.cast("B"))
    if places:
        raise ModelError(f"{min(places)}: the model has no such weight; {len(places)} are missing")


def settled(values: Mapping[str, object], where: str) -> Settings:
    """Settings from a foreign file; if they are invalid, the file is at fault."""
    try:
        return read(Settings, values, where)
    except SettingsError as problem:
        raise ModelError(str(problem)) from None
