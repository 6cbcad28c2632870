"""Hard selection in Transformers: a straight-through estimator trains every choice, and it learns where to look."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import corpora_for_tests as small
import regard
from regard.data.batches import Batches
from regard.nn.attention import Attention, InnerScore
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.text.vocabulary import START
from regard.trainer.start import open_task

HARD = tuple(f"model.{place}_attention.selection=hard" for place in ("encoder", "decoder", "cross"))
SIZES = (
    *("model.width=32", "model.heads=2", "model.hidden=32", "model.encoder_depth=1", "model.decoder_depth=1"),
    "model.dropout=0.0",
)
WORDS, ROWS, LENGTH = 11, 48, 5


@pytest.mark.parametrize("task", ["translate", "language", "tag", "classify"])
def test_queries_and_keys_of_hard_selection_get_a_gradient(task: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    run = Run.create(tmp_path / "run", small.settings("transformer-tiny", f"task={task}", *HARD))
    opened = open_task(run, small.Notes().tell).train()
    opened(Tensors.of(next(Batches(opened.train_examples, 128).epoch(0)), torch.device("cpu"))).backward()
    parts = [p for name, p in opened.named_parameters() if "projections.query" in name or "projections.key.w" in name]
    assert len(parts) == 3 * {"translate": 3, "language": 1, "tag": 1, "classify": 1}[task]
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in parts)


def test_a_choice_in_training_is_one_value_with_the_gradient_of_the_mixture() -> None:
    torch.manual_seed(1)
    attention = Attention(InnerScore(), hard=True, straight=True).double()
    query, source = torch.randn(2, 3, 7, dtype=torch.float64), torch.randn(2, 5, 7, dtype=torch.float64)
    asking = query.clone().requires_grad_()
    contexts = attention(asking, attention.remember(source))
    for row, states in zip(contexts.detach(), source, strict=True):  # each is one of the states, to the last bit
        assert all(any(torch.equal(context, state) for state in states) for context in row)
    slope = torch.randn_like(contexts)
    contexts.backward(slope)
    mixed = query.clone().requires_grad_()
    ((mixed @ source.mT).softmax(-1) @ source).backward(slope)
    torch.testing.assert_close(asking.grad, mixed.grad)


def loss_of(kind: str, model: nn.Module, words: Tensor) -> Tensor:
    """Back to front, or for a language model once more."""
    if kind == "tag":
        logits, wanted = model(words), words.flip(1)
    else:
        wanted = words.flip(1) if kind == "translate" else torch.cat((words, words), 1)
        read = torch.cat((torch.full((ROWS, 1), START), wanted[:, :-1]), 1)
        logits = model(words, read) if kind == "translate" else model(read)
    last = slice(-LENGTH, None)
    return F.cross_entropy(logits[:, last].flatten(0, 1), wanted[:, last].flatten())


def trained(kind: str, *, frozen: bool) -> float:
    """The loss after a moment of training."""
    torch.manual_seed(0)
    model = regard.load_settings("transformer-tiny", *SIZES, *HARD).model
    make = {
        "translate": lambda: regard.encoder_decoder(model, WORDS, WORDS),
        "language": lambda: regard.language_model(model, WORDS),
        "tag": lambda: regard.labeller(model, WORDS, WORDS),
    }
    learner = make[kind]().train()
    for name, parameter in learner.named_parameters():
        parameter.requires_grad_(not (frozen and ("projections.query" in name or "projections.key" in name)))
    optimizer = torch.optim.Adam([each for each in learner.parameters() if each.requires_grad], lr=0.01)
    losses = []
    for _ in range(110):
        loss = loss_of(kind, learner, torch.randint(4, WORDS, (ROWS, LENGTH)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-10:]) / 10


@pytest.mark.parametrize("kind", ["translate", "language", "tag"])
def test_hard_selection_learns_what_a_frozen_one_cannot(kind: str) -> None:
    assert trained(kind, frozen=False) < 0.6 * trained(kind, frozen=True)
