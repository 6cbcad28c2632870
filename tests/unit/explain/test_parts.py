"""The model as a tree of parts: complete, for every preset and task, with the numbers of the replay."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

import tiny
from regard.errors import DataError
from regard.explain.look import Looked, TaskName
from regard.explain.parts import Part, map_model, parts_of
from regard.explain.replay import Model, replay
from regard.explain.walkthrough.walk import walkthrough
from regard.text.vocabulary import END

SOURCE, TARGET = [5, 9, 7, END], [8, 21, END]
COMPUTED = {"asked", "answered", "combine"}
TRANSFORMED = ("encoder.1.self", "decoder.0.self", "decoder.1.cross")
POOLS = {"mean": "lstm", "max": "gru", "final": "bahdanau", "attention": "transformer-tiny"}


def looked(model: Model, task: TaskName = "translate") -> Looked:
    source = () if task == "language" else SOURCE
    return Looked(model, replay(model, source, None if model.task == "label" else TARGET), task)


def all_parts(parts: Sequence[Part]) -> list[Part]:
    return [each for top in parts for each in top.walk()]


def owner(parts: Sequence[Part], step: str) -> Part | None:
    """The part that a step is in: that with the longest beginning of its name."""
    found = [
        (len(start), number, part)
        for number, part in enumerate(all_parts(parts))
        for start in part.steps
        if step.startswith(start)
    ]
    return max(found)[2] if found else None


def models() -> list[tuple[str, Model]]:
    found: list[tuple[str, Model]] = [(preset, tiny.translator(preset)) for preset in tiny.PRESETS]
    found += [(f"{preset}, language", tiny.writer(preset)) for preset in tiny.PRESETS if tiny.writes_alone(preset)]
    found += [(f"{preset}, tag", tiny.tagger(preset)) for preset in ("lstm", "bahdanau", "transformer-tiny")]
    return found + [(f"{preset}, {pool}", tiny.tagger(preset, pool)) for pool, preset in POOLS.items()]


@pytest.mark.parametrize(("name", "model"), models(), ids=[name for name, _ in models()])
def test_the_parameters_of_the_parts_are_those_of_the_model(name: str, model: Model) -> None:
    parts = parts_of(model)
    assert sum(part.parameters for part in parts) == sum(each.numel() for each in model.parameters()), name
    for part in all_parts(parts):
        if part.parts:
            assert sum(each.parameters for each in part.parts) == part.parameters, part.name


@pytest.mark.parametrize(("name", "model"), models(), ids=[name for name, _ in models()])
def test_every_step_of_a_walkthrough_is_inside_a_part_without_parts(name: str, model: Model) -> None:
    parts = parts_of(model)
    source, target = () if model.task == "language" else SOURCE, None if model.task == "label" else TARGET
    for step in walkthrough(model, source, target):
        found = owner(parts, step.name)
        assert found is not None, (name, step.name)
        assert not found.parts, (name, step.name, found.name)


@pytest.mark.parametrize(("name", "model"), models(), ids=[name for name, _ in models()])
def test_parts_read_parts_and_have_names_of_their_own(name: str, model: Model) -> None:
    every = all_parts(parts_of(model))
    names = [part.name for part in every]
    assert len(set(names)) == len(names), name
    outputs = {part.output for part in every}
    for part in every:
        assert part.title, part.name
        assert part.about.endswith("."), part.name
        assert set(part.reads) <= {*names, *outputs}, part.name


@pytest.mark.parametrize("preset", ["transformer-tiny", "transformer-base", "bahdanau", "lstm-reversed"])
def test_numbers_are_those_of_the_replay(preset: str) -> None:
    found = looked(tiny.translator(preset))
    whole = replay(found.model, SOURCE, TARGET, detail="all")
    answer = map_model(found)
    for part in all_parts(answer.parts):
        if not part.output or part.kind == "output":
            assert part.lengths == ()
            continue
        left = whole.tensors[part.output]
        assert torch.tensor(part.lengths).allclose(left.square().mean(-1).sqrt().float()), part.name
        if part.turned:
            entered = whole.tensors[part.entry]
            cosine = (entered * left).sum(-1) / (entered.norm(dim=-1) * left.norm(dim=-1))
            assert torch.tensor(part.turned).allclose((1 - cosine).float(), atol=1e-5), part.name
    assert answer.probabilities == pytest.approx(whole.log_probability.exp().tolist())


def test_layers_say_how_far_they_turned_each_piece() -> None:
    answer = map_model(looked(tiny.translator("transformer-tiny")))
    layers = [part for part in all_parts(answer.parts) if part.kind == "layer"]
    assert [part.name for part in layers] == ["encoder.0", "encoder.1", "decoder.0", "decoder.1"]
    assert [len(part.turned) for part in layers] == [4, 4, 3, 3]


@pytest.mark.parametrize(
    ("preset", "part", "names"),
    [
        ("transformer-tiny", "encoder.1.self", {"queries", "keys", "values", "products", "scores", "weights"}),
        ("bahdanau", "decoder.cross", {"queries", "keys", "scores", "weights", "contexts"}),
        ("bahdanau", "encoder.0", {"cell.forward.reset", "cell.backward.hidden", "states"}),
        ("lstm", "decoder.0", {"cell.input", "cell.forget", "cell.cell", "states"}),
    ],
)
def test_what_was_recorded_in_a_part_is_there_by_name(preset: str, part: str, names: set[str]) -> None:
    found = looked(tiny.translator(preset))
    whole = replay(found.model, SOURCE, TARGET, detail="all")
    inside = map_model(found, part).inside
    assert names <= inside.keys()
    for name in inside.keys() - COMPUTED:
        assert inside[name].equal(whole.tensors[f"{part}.{name}"])


def attentions() -> list[tuple[Model, str]]:
    """Every kind of score."""
    rotary = tiny.translator("transformer-tiny", "model.positions=rotary", "model.width=18")
    cosine = tiny.translator("transformer-tiny", "model.cross_attention.score=cosine")
    found: list[tuple[Model, str]] = [(model, f"{name}") for model in (rotary, cosine) for name in TRANSFORMED]
    found += [(tiny.translator(preset), "decoder.cross") for preset in ("bahdanau", "luong-general", "luong-concat")]
    return [*found, (tiny.tagger("transformer-tiny", "attention"), "pool")]


@pytest.mark.parametrize(("model", "part"), attentions())
def test_what_is_compared_gives_the_score_that_was_recorded(model: Model, part: str) -> None:
    inside = map_model(looked(model, "classify" if model.task == "label" else "translate"), part).inside
    asked, answered = inside["asked"], inside["answered"]
    if "combine" in inside:
        hidden = torch.tanh(asked[:, :, None] + answered[:, None])
        assert torch.einsum("htsa,ha->hts", hidden, inside["combine"]).allclose(inside["scores"])
    else:
        assert (asked @ answered.mT).allclose(inside["products"])


def test_a_part_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"part = encoder.0.slef: this model has no such part.*encoder.0.self"):
        map_model(looked(tiny.translator("transformer-tiny")), "encoder.0.slef")


@pytest.mark.parametrize("task", ["language", "tag", "classify"])
def test_other_tasks_have_maps_too(task: TaskName) -> None:
    model: Model = {
        "language": tiny.writer("transformer-tiny"),
        "tag": tiny.tagger("lstm"),
        "classify": tiny.tagger("transformer-tiny", "attention"),
    }[task]
    answer = map_model(looked(model, task))
    names = [part.name for part in answer.parts]
    assert (
        names
        == {
            "language": ["decoder", "output"],
            "tag": ["encoder", "output"],
            "classify": ["encoder", "pool", "output"],
        }[task]
    )
    assert answer.to_json()


def test_one_table_for_both_sides_is_counted_once() -> None:
    parts = parts_of(tiny.translator("transformer-base"))
    first = {part.name: part.parts[0] for part in parts if part.parts}
    assert first["decoder"].parameters == 0
    assert "encoder's table" in first["decoder"].about
