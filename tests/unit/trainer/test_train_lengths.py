"""How long a sequence of a model may be: training, validation, samples and search all keep to it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
import regard
import tiny
from regard.cli.main import run as cli
from regard.data.batches import Batch, Position
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.models.generator import Labeller
from regard.runs.folder import Run
from regard.tasks.load import load, load_predictor
from regard.tasks.task import Task, fitting
from regard.trainer.feed import Feed
from regard.trainer.start import open_task, start
from regard.trainer.workers import ALONE, Workers

LEARNED = ("model.positions=learned", "train.steps=4", "train.validate_every=2", "train.batch=256")
SAMPLING = ("text.tokenizer=bpe", "text.size=601", "text.sampling=true")
CASES = {
    "translate": ("model.longest=20", "data.longest=20"),
    "sampling": (*SAMPLING, "model.longest=13", "data.longest=50"),
    "language": ("task=language", "model.longest=11", "data.longest=16"),
    "tag": ("task=tag", "model.longest=20"),
    "classify": ("task=classify", "model.longest=20"),
}
LONG = " ".join(["the cat sees a bird"] * 12)


def corpus(folder: Path, kind: str) -> tuple[str, ...]:
    """A corpus whose first validation sentence is longer than the model can read."""
    other = {"tag": lambda text: " ".join("x" for _ in text.split()), "classify": lambda text: text.split()[0]}
    overrides = small.animals(folder)
    for split in ("train", "valid"):
        lines = (folder / f"{split}.en").read_text().splitlines()
        lines = [LONG, *lines] if split == "valid" else lines
        (folder / f"{split}.en").write_text("".join(f"{line}\n" for line in lines))
        beside = other.get(kind, str)
        (folder / f"{split}.fr").write_text("".join(f"{beside(line)}\n" for line in lines))
    return overrides if kind != "language" else tuple(each for each in overrides if "target" not in each)


@pytest.mark.parametrize("kind", CASES)
def test_a_training_with_few_positions_comes_to_its_end(kind: str, tmp_path: Path) -> None:
    settings = small.settings("transformer-tiny", *corpus(tmp_path, kind), *LEARNED, *CASES[kind])
    notes = small.Notes()
    outcome = start(tmp_path / "run", settings, notes, device="cpu")
    assert (outcome.reason, len(notes.validations)) == ("steps", 2)
    assert all(np.isfinite(each.loss) for each in notes.validations)
    if kind == "language":
        assert load_predictor(tmp_path / "run").write(["the cat"], length=60)[0].text
    if kind in ("translate", "sampling"):
        written = load(tmp_path / "run").search([LONG], Options(Beam(1)))[0][0]
        assert all(len(part.tokens) < settings.model.longest for part in written.parts)


def test_looking_at_a_language_model_keeps_to_its_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = small.settings("transformer-tiny", *corpus(tmp_path, "language"), *LEARNED, *CASES["language"])
    start(tmp_path / "run", settings, small.Notes(), device="cpu")
    assert cli(["explain", str(tmp_path / "run"), "the cat sees", "--device", "cpu"]) == 0
    assert capsys.readouterr().out


def test_samples_that_do_not_fit_are_left_out() -> None:
    settings = tiny.settings("transformer-tiny", "model.positions=learned", "model.longest=3")
    few: Labeller = regard.labeller(settings.model, tiny.SOURCE_SIZE, tiny.LABELS)
    samples = [("a", ""), ("a b c", "")]
    assert fitting(samples, few, lambda text: len(text.split())) == samples[:1]
    assert fitting(samples, tiny.tagger("transformer-tiny"), lambda text: len(text.split())) == samples


# Subword sampling


def sampling(folder: Path, *overrides: str) -> Task:
    torch.manual_seed(1)
    run = Run.create(folder, small.settings("transformer-tiny", *SAMPLING, *overrides))
    return open_task(run, small.Notes().tell).train()


def fed(task: Task, count: int, device: str, batch: int, workers: Workers = ALONE, longest: int = 200) -> list[Batch]:
    settings = small.settings("transformer-tiny", f"train.batch={batch}", "train.shapes=7").train
    feed = Feed(task, settings, longest=longest, kind="graph", device=torch.device(device), workers=workers)
    groups = feed.groups(Position())
    taken = [batch for group in islice(groups, count) for batch in group.batches]
    groups.close()
    return taken


@pytest.mark.parametrize("device", ["cpu", "cuda"])  # as a GPU is fed: in a menu of shapes; none is needed for that
def test_sampling_keeps_the_budget_and_the_menu_of_shapes(device: str, tmp_path: Path) -> None:
    task = sampling(tmp_path / "run")
    assert min(task.stretch) > 1.02
    batches = fed(task, 60, device, 256)
    for batch in batches:
        assert max(batch.source.size, batch.target_in.size) <= 256
    if device == "cuda":
        assert len({(batch.source.shape, batch.target_in.shape) for batch in batches}) <= 7
    else:  # nothing is padded for nobody
        assert all(batch.source[:, -1].any() and batch.target_in[:, -1].any() for batch in batches)


def test_sampling_really_samples_and_never_exceeds_the_limit(tmp_path: Path) -> None:
    task = sampling(tmp_path / "run")
    lengths = task.train_examples.columns["source"].lengths()
    longest, other = int(np.sort(lengths)[len(lengths) // 2]), 0
    batches = fed(task, 40, "cpu", 256, longest=longest)
    for batch in batches:
        assert max(batch.source.shape[1], batch.target_in.shape[1]) <= longest
        for row, ids in zip(batch.rows.tolist(), batch.source.tolist(), strict=True):
            usual = task.train_examples.columns["source"][row].tolist()
            decode = task.tokenizers.source.decode
            assert decode(ids) == decode(usual)
            other += [number for number in ids if number] != usual
    assert other > 0.3 * sum(map(len, batches))


def test_sampling_fills_up_the_share_of_a_process_that_has_no_row(tmp_path: Path) -> None:
    task = sampling(tmp_path / "run")
    shares = [fed(task, 60, "cpu", 32, Workers(rank, 3)) for rank in range(3)]
    assert any((batch.rows == -1).all() for batch in shares[2])
    for together in zip(*shares, strict=True):
        assert len({len(batch) for batch in together}) == 1
        assert sum(batch.tokens for batch in together) > 0
