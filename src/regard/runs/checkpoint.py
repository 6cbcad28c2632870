"""Checkpoints: everything a run needs to go on as if it had never stopped, written so that none is ever half there.

A checkpoint is a folder ``checkpoints/step-N`` with tensors in safetensors files, the rest as JSON, and a
manifest with the hash of every file. It is written beside its place, flushed, and renamed; reading checks
the hashes, so that a damaged checkpoint is refused by name and the one before it is used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.errors import ModelError
from regard.files import new_file, new_folder, remove
from regard.nn.fast.allocator import Unset
from regard.runs.folder import Progress, Run, belongs, load_progress, seal, shapes, step_of, steps, used_weights, verify

Model = TypeVar("Model", bound=nn.Module)
Value = TypeVar("Value")
OPTIMIZER = "optimizer.safetensors"
_NUMBERS = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)


@dataclass(frozen=True)
class Checkpoint:
    """All of a training at one moment."""

    progress: Progress
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor]  # empty without averaging
    optimizer: Mapping[str, Tensor]


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, a shared one once."""
    persistent = model.state_dict(keep_vars=True)
    first: dict[int, str] = {}
    for name, tensor in persistent.items():
        first.setdefault(id(tensor), name)
    return {name: persistent[name].detach() for name in first.values()}


def load_model(model: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Put tensors into a model that must have exactly these."""
    check_fit(model, {name: tensor.shape for name, tensor in tensors.items()}, where)
    own = model_tensors(model)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def check_fit(model: nn.Module, found: Mapping[str, Sequence[int]], where: str) -> None:
    """Names and shapes of a model's tensors are those of a checkpoint."""
    own = model_tensors(model)
    for name in own.keys() ^ found.keys():
        side = "not in the checkpoint" if name in own else "not in the model"
        raise ModelError(f"{where}: {name} is {side}; the settings do not belong to these weights")
    for name, tensor in own.items():
        if tuple(tensor.shape) != tuple(found[name]):
            raise ModelError(
                f"{where}: {name} = {tuple(found[name])}: the model has {tuple(tensor.shape)}; "
                "the settings do not belong to these weights"
            )


def check_shapes(make: Callable[[], nn.Module], path: Path) -> None:
    """A model that is to be made has the shapes of a checkpoint's weights: before memory is taken for either."""
    with torch.device("meta"), Unset():
        check_fit(make(), _of_model(shapes(used_weights(path))), str(path))


def trained(make: Callable[[], Model], run: Run, path: Path, device: torch.device) -> Model:
    """A model with the weights of a checkpoint, which are those of this run and belong to its settings."""
    verify(path)
    belongs(run, path)
    check_shapes(make, path)
    with Unset():
        model = make()
    load_model(model, _of_model(_tensors(used_weights(path))), str(path))
    return model.to(device).eval()


def _of_model(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """What belongs to the model itself, of all that a training keeps."""
    prefix = "model."
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors: ``3.exp_avg`` is of its fourth parameter."""
    return {
        f"{number}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for number, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, tensor in tensors.items():
        number, _, part = name.partition(".")
        known = number.isdecimal() and len(number) < 10 and int(number) < len(parameters)
        if not known or (tensor.dim() and tensor.shape != parameters[int(number)].shape):
            raise ModelError(f"optimizer: {name[:100]} = {tuple(tensor.shape)}: is of no parameter of this model")
        state.setdefault(int(number), {})[part] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def save(checkpoint: Checkpoint, folder: Path, belonging: Mapping[str, object] | None = None) -> Path:
    """Write ``folder/step-N`` and what its weights belong to; after this returns it is on the disk, whole."""
    path = folder / f"step-{checkpoint.progress.step}"
    with new_folder(path) as beside:
        parts = {
            "weights": checkpoint.weights,
            "average": checkpoint.average,
            "optimizer": checkpoint.optimizer,
        }
        text = json.dumps(asdict(checkpoint.progress), indent=2) + "\n"
        (beside / "progress.json").write_text(text, encoding="utf-8")
        for name, tensors in parts.items():
            save_tensors(tensors, beside / f"{name}.safetensors")
        seal(beside, belonging)
    return path


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """A safetensors file with the usual permissions; the library alone would let no other user read it."""
    path.touch()
    mode = path.stat().st_mode & 0o777
    save_file({name: each.detach().contiguous().cpu() for name, each in tensors.items()}, path, metadata)
    path.chmod(mode)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint whose every byte is as it was written, or say which file is not."""
    verify(path)
    parts = {name: _tensors(path / f"{name}.safetensors") for name in ("weights", "average", "optimizer")}
    if parts["average"]:
        expected = {name: tensor.shape for name, tensor in parts["weights"].items() if tensor.is_floating_point()}
        if {name: tensor.shape for name, tensor in parts["average"].items()} != expected:
            raise ModelError(
                f"{path}: average.safetensors does not go with weights.safetensors; the checkpoint is damaged"
            )
    return Checkpoint(progress=load_progress(path), **parts)


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights to use: the averaged ones where there are any."""
    verify(path)
    return _tensors(used_weights(path))


def load_trained(path: Path) -> dict[str, Tensor]:
    """The weights that were trained, whether or not there are averaged ones."""
    verify(path)
    return _tensors(path / "weights.safetensors")


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        shapes(path)  # the library would take a header of any kind up to 100 MB
        tensors = load_file(path)
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be read; {error}") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in _NUMBERS:
            raise ModelError(f"{path}: {name[:100]} has numbers of a kind that no run has; it is damaged")
        if tensor.is_floating_point() and tensor.numel() and not all(map(torch.isfinite, tensor.aminmax())):
            raise ModelError(f"{path}: {name[:100]} has numbers that are infinite, or none; it is damaged")
    return tensors


def judged(folder: Path) -> list[Path]:
    """The checkpoints of validations that counted, oldest first: those that an average of the last is made of."""
    return [path for path in steps(folder) if _is_judged(path)]


def _is_judged(path: Path) -> bool:
    try:
        return load_progress(path).judged == step_of(path)
    except ModelError:  # damaged
        return False


def prune(folder: Path, keep: int, spare: Collection[str] = ()) -> None:
    """Remove all but the last ``keep`` checkpoints and those of the names to spare."""
    for path in steps(folder)[:-keep]:
        if path.name not in spare:
            remove(path)
    for leftover in folder.glob(".step-*"):  # of a write that was cut off
        shutil.rmtree(leftover, ignore_errors=True)


def remove_after(folder: Path, step: int) -> None:
    """Remove the checkpoints of later steps."""
    for path in steps(folder):
        if step_of(path) > step:
            remove(path)


def point_to_best(folder: Path, step: int) -> None:
    """Write which checkpoint is the best one into ``best``."""
    with new_file(folder / "best") as file:
        file.write(f"step-{step}\n".encode())
