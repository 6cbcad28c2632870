"""Muon for the matrices inside a model, AdamW for the rest, as one optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import corpora_for_tests as small
import regard
import tiny
from regard.runs.checkpoint import load_optimizer, optimizer_tensors
from regard.settings import load_settings
from regard.trainer.optimizer import Together, make_optimizer, set_rate
from regard.trainer.start import start
from regard.trainer.steps import step_kind


def made(model: nn.Module) -> Together:
    found = make_optimizer("muon", model, weight_decay=0.1, momentum=0.95, second_moment=0.98)
    assert isinstance(found, Together)
    return found


@pytest.mark.parametrize("tie", ["none", "all"])
def test_muon_has_the_inner_matrices_and_adamw_all_else(tie: str) -> None:
    model = regard.encoder_decoder(tiny.settings("transformer-tiny", f"model.tie={tie}").model, 29, 29)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    muon, adamw = (
        [names[id(p)] for group in each.param_groups for p in group["params"]] for each in made(model).members
    )
    assert sorted([*muon, *adamw]) == sorted(names.values())
    assert all(name.endswith(".weight") and "layers" in name for name in muon)
    assert {name for name in adamw if "layers" not in name} >= {"decoder.embedding.weight", "decoder.output.bias"}
    assert not [name for name in adamw if "layers" in name and name.endswith("projections.query.weight")]


def steps(model: nn.Module, optimizer: Together, count: int, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    for _ in range(count):
        set_rate(optimizer, 0.01)
        optimizer.zero_grad()
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=chance)
        optimizer.step()


def test_it_goes_on_exactly_from_what_was_saved() -> None:
    def fresh() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 3))

    whole, parts, again = fresh(), fresh(), fresh()
    one = made(whole)
    steps(whole, one, 3, 5)
    steps(whole, one, 4, 6)
    two = made(parts)
    steps(parts, two, 3, 5)
    again.load_state_dict(parts.state_dict())
    three = made(again)
    load_optimizer(three, {name: tensor.clone() for name, tensor in optimizer_tensors(two).items()})
    steps(again, three, 4, 6)
    for expected, found in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(expected, found)


def test_what_muon_changes_is_nearly_orthogonal() -> None:
    model = nn.Linear(23, 7, bias=False)
    before = model.weight.detach().clone()
    optimizer = make_optimizer("muon", model, weight_decay=0.0, momentum=0.95, second_moment=0.98)
    set_rate(optimizer, 0.01)
    model.weight.grad = torch.randn_like(model.weight)
    optimizer.step()
    sizes = torch.linalg.svdvals((model.weight - before).detach()) / (0.01 * 0.2 * 23**0.5)
    assert float(sizes.min()) > 0.5
    assert float(sizes.max()) < 1.5


def test_a_rate_on_the_device_changes_what_a_rate_on_the_host_does() -> None:
    host, device = nn.Linear(23, 7), nn.Linear(23, 7)
    device.load_state_dict(host.state_dict())
    how = {"weight_decay": 0.1, "momentum": 0.95, "second_moment": 0.98}
    pair = [(host, made(host)), (device, make_optimizer("muon", device, **how, capturable=True))]
    for step in range(1, 6):
        torch.manual_seed(step)
        gradient = torch.randn(7, 23), torch.randn(7)
        for model, optimizer in pair:
            set_rate(optimizer, 0.02 / step)
            model.weight.grad, model.bias.grad = (each.clone() for each in gradient)
            optimizer.step()
    torch.testing.assert_close(device.weight, host.weight)
    torch.testing.assert_close(device.bias, host.bias)


def test_a_gradient_that_is_not_finite_leaves_weights_and_momentum_as_they_were() -> None:
    model = nn.Linear(23, 7)
    optimizer = make_optimizer("muon", model, weight_decay=0.1, momentum=0.95, second_moment=0.98, capturable=True)
    set_rate(optimizer, 0.02)
    for number, found in ((1.0, 0.0), (torch.inf, 1.0)):
        before = [each.detach().clone() for each in model.parameters()]
        momentum = {name: value.clone() for name, value in optimizer_tensors(optimizer).items()}
        model.weight.grad, model.bias.grad = torch.full((7, 23), number), torch.full((7,), number)
        optimizer.found_inf, optimizer.grad_scale = torch.tensor(found), None
        optimizer.step()
        same = [torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True)]
        assert all(same) == bool(found)
    assert momentum
    for name, value in optimizer_tensors(optimizer).items():
        assert torch.equal(value, momentum[name])


def test_a_model_learns_with_it_and_steps_are_captured(tmp_path: Path) -> None:
    notes = small.Notes()
    start(tmp_path / "run", small.settings("transformer-tiny", "train.optimizer=muon"), notes, device="cpu")
    losses = [validation.loss for validation in notes.validations]
    assert losses[-1] < losses[0]
    gpu = torch.device("cuda")
    settings = load_settings("transformer-tiny", "train.optimizer=muon", "train.time=60s")
    assert step_kind(settings.train, gpu) == "graph"
