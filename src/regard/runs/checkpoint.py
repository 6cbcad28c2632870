"""Checkpoints: everything a run needs to go on as if it had never stopped. A checkpoint is whole or absent.

It is a folder ``checkpoints/step-N`` with tensors in safetensors files, the rest as JSON, and a manifest with the hash
of every file. It is written under another name, flushed, and renamed; reading checks the hashes, so that a damaged
checkpoint is reported and the one before it is used.
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
from regard.runs.folder import (
    Progress,
    Run,
    belongs,
    best_checkpoint,
    load_progress,
    named_checkpoint,
    seal,
    shapes,
    step_of,
    steps,
    used_weights,
    verify,
)

Model = TypeVar("Model", bound=nn.Module)
Value = TypeVar("Value")
PARTS = ("weights", "average", "optimizer")  # the files of tensors, and the fields of `Checkpoint`
OPTIMIZER = "optimizer.safetensors"
_NUMBERS = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.uint8, torch.bool),
)


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training after a step."""

    progress: Progress
    weights: Mapping[str, Tensor]
    average: Mapping[str, Tensor]  # empty without averaging
    optimizer: Mapping[str, Tensor]


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; a shared one has its first name."""
    persistent = model.state_dict(keep_vars=True)
    first: dict[int, str] = {}
    for name, tensor in persistent.items():
        first.setdefault(id(tensor), name)
    return {name: persistent[name].detach() for name in first.values()}


def load_model(model: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a model that must have exactly these."""
    _check_fit(model, {name: tensor.shape for name, tensor in tensors.items()}, where)
    with torch.no_grad():
        for name, tensor in model_tensors(model).items():
            tensor.copy_(tensors[name])


def _check_fit(model: nn.Module, saved: Mapping[str, Sequence[int]], where: str) -> None:
    """Refuse a checkpoint whose tensors have other names or shapes than the model's."""
    own = model_tensors(model)
    for name in own.keys() ^ saved.keys():
        side = "not in the checkpoint" if name in own else "not in the model"
        raise ModelError(f"{where}: {name} is {side}; the settings do not belong to these weights")
    for name, tensor in own.items():
        if tuple(tensor.shape) != tuple(saved[name]):
            raise ModelError(
                f"{where}: {name} = {tuple(saved[name])}: the model has {tuple(tensor.shape)}; "
                "the settings do not belong to these weights"
            )


def check_shapes(make: Callable[[], nn.Module], path: Path) -> None:
    """Refuse a checkpoint whose shapes are not the model's, before memory is taken for either."""
    with torch.device("meta"), Unset():
        _check_fit(make(), _of_model(shapes(used_weights(path))), str(path))


def trained(make: Callable[[], Model], run: Run, device: torch.device, name: str | None = None) -> Model:
    """A model with the weights of a run's best checkpoint, or of that with a name, checked against its settings."""
    path = best_checkpoint(run) if name is None else named_checkpoint(run, name)
    verify(path)
    belongs(run, path)
    check_shapes(make, path)
    with Unset():
        model = make()
    load_model(model, _of_model(_tensors(used_weights(path))), str(path))
    return model.to(device).eval()


def _of_model(tensors: Mapping[str, Value]) -> dict[str, Value]:
    """The tensors of the model itself; a training also keeps others."""
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
            raise ModelError(f"optimizer: {name[:100]} = {tuple(tensor.shape)}: belongs to no parameter of this model")
        state.setdefault(int(number), {})[part] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def save(checkpoint: Checkpoint, folder: Path, belonging: Mapping[str, object] | None = None) -> Path:
    """Write ``folder/step-N``, and what its weights belong to; it is on the disk when this returns."""
    path = folder / f"step-{checkpoint.progress.step}"
    with new_folder(path) as beside:
        text = json.dumps(asdict(checkpoint.progress), indent=2) + "\n"
        (beside / "progress.json").write_text(text, encoding="utf-8")
        for name in PARTS:
            save_tensors(getattr(checkpoint, name), beside / f"{name}.safetensors")
        seal(beside, belonging)
    return path


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file with the usual permissions; the library's own let no other user read it."""
    path.touch()
    mode = path.stat().st_mode & 0o777
    save_file({name: each.detach().contiguous().cpu() for name, each in tensors.items()}, path, metadata)
    path.chmod(mode)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; an error names the file that is not as it was written."""
    verify(path)
    parts = {name: _tensors(path / f"{name}.safetensors") for name in PARTS}
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
    """The trained weights, even if there are averaged ones."""
    verify(path)
    return _tensors(path / "weights.safetensors")


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        shapes(path)  # checks the header, of which the library reads up to 100 MB
        tensors = load_file(path)
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be read; {error}") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in _NUMBERS:
            raise ModelError(f"{path}: {name[:100]} has numbers of a kind that no run has; it is damaged")
        if tensor.is_floating_point() and tensor.numel() and not all(map(torch.isfinite, tensor.aminmax())):
            raise ModelError(f"{path}: {name[:100]} has numbers that are infinite or NaN; it is damaged")
    return tensors


def judged(folder: Path) -> list[Path]:
    """The checkpoints of validations that counted, oldest first: an average of the last is made of these."""
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
