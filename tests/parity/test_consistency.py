"""R-Drop and SimCut: what a batch that is read twice loses, against the same equations written out row by row."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, kl_divergence

import corpora_for_tests as small
import tiny
from regard.errors import SettingsError
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.nn.consistency import Inconsistency, TokenCutoff, divergence, r_drop, sim_cut, smoothed
from regard.nn.fast.output_loss import cross_entropy
from regard.nn.observe import UNOBSERVED
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.tasks.translate import TranslateTask
from regard.text.vocabulary import PAD
from regard.trainer.start import open_task, start

WEIGHT, SMOOTHING = 3.0, 0.1


def logits(seed: int) -> Tensor:
    return torch.randn(7, 11, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


TARGETS = torch.tensor([3, 4, PAD, 10, 1, PAD, 7])


def written_out(first: Tensor, second: Tensor, kind: str) -> float:
    """By Python's own numbers, a row at a time."""
    total = 0.0
    for one, other, target in zip(first.tolist(), second.tolist(), TARGETS.tolist(), strict=True):
        if target == PAD:
            continue
        p, q = ([math.exp(x) / sum(map(math.exp, row)) for x in row] for row in (one, other))
        entropies = []
        for row in (p, q):
            wanted = [SMOOTHING / len(row) + (1 - SMOOTHING) * (place == target) for place in range(len(row))]
            entropies.append(-sum(w * math.log(x) for w, x in zip(wanted, row, strict=True)))
        forward = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        backward = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True))
        if kind == "rdrop":
            total += 0.5 * (sum(entropies) + WEIGHT * 0.5 * (forward + backward))
        else:
            total += entropies[0] + WEIGHT * forward
    return total


@pytest.mark.parametrize(("kind", "loss"), [("rdrop", r_drop), ("simcut", sim_cut)])
def test_the_loss_is_that_of_the_equations(kind: str, loss: object) -> None:
    assert callable(loss)
    first, second = logits(1).requires_grad_(), logits(2).requires_grad_()
    found = loss(first, second, TARGETS, SMOOTHING, WEIGHT)
    assert found.item() == pytest.approx(written_out(first.detach(), second.detach(), kind), rel=1e-12)
    found.backward()
    for gradient in (first.grad, second.grad):  # both passes learn, and nothing from padding
        assert gradient is not None
        assert [bool(row.any()) for row in gradient] == (TARGETS != PAD).tolist()


def test_the_parts_are_torchs_own() -> None:
    one, other = logits(1).log_softmax(1), logits(2).log_softmax(1)
    expected = kl_divergence(Categorical(logits=one), Categorical(logits=other))
    torch.testing.assert_close(divergence(one, other), expected)
    real = TARGETS != PAD
    whole = smoothed(one, TARGETS, SMOOTHING)[real].sum()
    torch.testing.assert_close(whole, cross_entropy(logits(1), TARGETS, SMOOTHING))


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau", "lstm"])
def test_a_cut_takes_embeddings_away_in_the_second_half_alone(preset: str) -> None:
    model, source = tiny.translator(preset), tiny.rows([5, 7, 4], tiny.SOURCE_SIZE, 3)
    twice = torch.cat((source, source))
    with torch.no_grad():
        plain, cut = (_states(model, twice, observer) for observer in (UNOBSERVED, TokenCutoff(0.999999)))
    torch.testing.assert_close(cut[:3], plain[:3])
    assert not torch.allclose(cut[3:], plain[3:])
    seen = TokenCutoff(0.4).at("encoder").see("embedded", torch.ones(2, 5000, 3))
    assert bool((seen[0] == 1).all())
    assert float(seen[1, :, 0].mean()) == pytest.approx(0.6, abs=0.03)
    assert torch.equal(seen[1, :, 0], seen[1, :, 2])  # a token as a whole


def _states(model: EncoderDecoder, source: Tensor, observer: object) -> Tensor:
    return model.encoder(source, masks.padding(source), observer.at("encoder")).states  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TranslateTask:
    folder = tmp_path_factory.mktemp("consistency") / "run"
    opened = open_task(Run.create(folder, small.settings("transformer-tiny", "model.dropout=0.0")), lambda _: None)
    assert isinstance(opened, TranslateTask)
    return opened


def batch() -> Tensors:
    source, target = tiny.rows([5, 7, 4], 50, 3), tiny.rows([4, 6, 3], 50, 5)
    nothing = torch.zeros(3, 0, 0, dtype=torch.bool)
    return Tensors(source, target, target.roll(-1, 1).masked_fill(target == PAD, PAD), torch.zeros(3, 0), nothing)


@pytest.mark.parametrize("static", [False, True])
def test_passes_that_do_not_differ_lose_what_one_does(task: TranslateTask, static: bool) -> None:
    validated = task.eval()(batch(), static=static)
    plain = task.train()(batch(), static=static)
    for how in ({"kind": "rdrop", "weight": 5.0}, {"kind": "simcut", "cut": 0.0}):
        changed = task.learn.consistency.model_copy(update=how)
        learn, task.learn = task.learn, task.learn.model_copy(update={"consistency": changed})
        task.inconsistency = Inconsistency(changed.kind, changed.weight)
        torch.testing.assert_close(task(batch(), static=static), plain)
        torch.testing.assert_close(task.eval()(batch(), static=static), validated)  # not read twice
        task.train()
        task.learn, task.inconsistency = learn, None


@pytest.mark.parametrize("how", ["{kind='rdrop', weight=5.0}", "{kind='simcut'}"])
def test_a_model_learns_with_it(how: str, tmp_path: Path) -> None:
    settings = small.settings("transformer-tiny", f"train.consistency={how}", "model.dropout=0.2")
    notes = small.Notes()
    start(tmp_path / "run", settings, notes, device="cpu")
    losses = [validation.loss for validation in notes.validations]
    assert losses[-1] < losses[0]


def test_dropout_of_attention_alone_makes_two_passes_differ() -> None:
    off = ("model.dropout=0.0", "train.consistency.kind=rdrop")
    assert tiny.settings("transformer-tiny", *off, "model.attention_dropout=0.1").train.consistency.kind == "rdrop"


@pytest.mark.parametrize(
    ("preset", "overrides", "says"),
    [
        ("transformer-tiny", ("task=language", "train.consistency.kind=rdrop"), "is for translations"),
        ("transformer-tiny", ("model.dropout=0.0", "train.consistency.kind=rdrop"), "set model.dropout=0.1"),
        ("luong-hard", ("train.consistency.kind=simcut",), "neither guided alignment nor hard attention"),
    ],
)
def test_what_makes_no_sense_is_refused(preset: str, overrides: tuple[str, ...], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        tiny.settings(preset, *overrides)
