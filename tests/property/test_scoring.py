"""Scores of given translations: what steps would say, whatever the batch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from torch import Tensor

import tiny
from regard.decode import scoring
from regard.decode.scoring import score
from regard.decode.search import of_like_length
from regard.models.generator import EncoderDecoder
from regard.text.vocabulary import END, PAD

CPU = torch.device("cpu")


def stepwise(model: EncoderDecoder, source: list[int], target: list[int]) -> list[float]:
    """One token after the other, one sentence at a time."""
    token, state = model.start(torch.tensor([source]))
    scores = []
    for wanted in (*target, END):
        logits, state = model.step(token, state)
        scores.append(logits.log_softmax(-1)[0, wanted].item())
        token = torch.tensor([wanted])
    return scores


def lists(ids: Tensor, first: int = 0) -> list[list[int]]:
    return [[token for token in row if token != PAD][first:] for row in ids.tolist()]


@pytest.mark.parametrize("preset", tiny.PRESETS)
@given(batch=tiny.batches())
@torch.no_grad()
def test_a_score_is_that_of_a_loop_of_steps(preset: str, batch: tuple[Tensor, Tensor]) -> None:
    model = tiny.translator(preset)
    sources, targets = lists(batch[0]), lists(batch[1], first=1)  # a target may be empty
    found = score(model, sources, targets, CPU, budget=11)
    for source, target, scores in zip(sources, targets, found, strict=True):
        assert scores == pytest.approx(stepwise(model, source, target), abs=1e-9)


def test_batches_and_slices_change_nothing_and_order_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.translator("bahdanau")
    sources = lists(tiny.rows([3, 1, 7, 2, 5, 7, 4], tiny.SOURCE_SIZE, 0))
    targets = lists(tiny.rows([2, 6, 1, 3, 7, 5, 1], tiny.TARGET_SIZE, 1))
    alone = [score(model, [source], [target], CPU)[0] for source, target in zip(sources, targets, strict=True)]
    monkeypatch.setattr(scoring, "ROWS", 3)
    for budget in (1, 13, 4096):
        for found, expected in zip(score(model, sources, targets, CPU, budget=budget), alone, strict=True):
            assert found == pytest.approx(expected, abs=1e-9)
    assert score(model, [], [], CPU) == []


def test_groups_hold_all_rows_once_and_keep_to_their_budget() -> None:
    lengths = [5, 7, 11, 2, 3, 6]
    groups = list(of_like_length(lengths, 12))
    assert sorted(row for group in groups for row in group) == list(range(6))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[row] for row in group) <= 12
    assert list(of_like_length([], 12)) == []


def test_scoring_leaves_a_model_in_the_mode_it_was_in() -> None:
    model = tiny.translator("transformer-tiny", "model.dropout=0.5")
    model.train()
    first, second = (score(model, [[5, END]], [[7, 11]], CPU) for _ in range(2))
    assert first == second  # no dropout while scoring
    assert model.training
    model.eval()
