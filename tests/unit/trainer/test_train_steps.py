"""One update: however it is divided, the same result."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from regard.data.batches import Batch, Batches
from regard.device import pick_device, take_threads
from regard.errors import DataError, ResourceError, SettingsError
from regard.nn.fast.output_loss import cross_entropy
from regard.runs import checkpoint
from regard.runs.folder import Run, best_checkpoint, steps
from regard.tasks.load import load
from regard.tasks.task import Task, Tensors, drop_words
from regard.tasks.translate import Choices, _discounted
from regard.text.vocabulary import UNK
from regard.trainer.loop import interruptible
from regard.trainer.optimizer import make_optimizer
from regard.trainer.start import open_task, start
from regard.trainer.steps import EagerStep

CPU = torch.device("cpu")
TASKS = {
    "translate": ("transformer-tiny", ()),
    "language": ("lstm", ("task=language",)),
    "tag": ("bahdanau", ("task=tag",)),
    "classify": ("gru", ("task=classify",)),
}


def opened(folder: Path, preset: str, *overrides: str) -> Task:
    torch.manual_seed(1)
    run = Run.create(folder, small.settings(preset, "model.dropout=0.0", *overrides))
    return open_task(run, small.Notes().tell).train()


def step_of(task: Task, tell: Callable[[str], None] = print) -> EagerStep:
    optimizer = make_optimizer("sgd", task, weight_decay=0.0, momentum=0.0, second_moment=0.9)
    return EagerStep(task, optimizer, tell=tell)


def batches(task: Task) -> list[Tensors]:
    return [Tensors.of(batch, CPU) for batch in Batches(task.train_examples, 128).epoch(0)]


def count(batch: Tensors) -> int:
    return int((batch.target_out != 0).sum() + (batch.labels >= 0).sum())


def weights_after(task: Task, group: list[Tensors]) -> dict[str, torch.Tensor]:
    kept = {name: tensor.clone() for name, tensor in task.state_dict().items()}
    step_of(task)(group, sum(map(count, group)), 0.5, 1)
    after = {name: tensor.clone() for name, tensor in task.state_dict().items()}
    task.load_state_dict(kept)
    return after


@pytest.mark.parametrize("kind", TASKS)
def test_accumulation_is_one_big_batch(kind: str, tmp_path: Path) -> None:
    preset, overrides = TASKS[kind]
    task = opened(tmp_path / "run", preset, *overrides)
    batch = batches(task)[0]
    whole, parts = weights_after(task, [batch]), weights_after(task, batch.parts(2))
    changed = 0
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, atol=1e-6, rtol=0)
        changed += not torch.equal(tensor, task.state_dict()[name])
    assert changed > len(whole) / 2


def test_unequal_batches_count_by_their_tokens(tmp_path: Path) -> None:
    """Not by batches: the mean of means would be another number."""
    task = opened(tmp_path / "run", "lstm")
    batch = batches(task)[0]
    one, rest = (Tensors(*(column[part] for column in batch.columns())) for part in (slice(1), slice(1, None)))
    whole, parts = weights_after(task, [batch]), weights_after(task, [one, rest])
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, atol=1e-6, rtol=0)


def test_the_loss_with_static_shapes_is_the_loss(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "transformer-tiny")
    for batch in batches(task)[:3]:
        torch.testing.assert_close(task(batch, static=True), task(batch))


def test_label_smoothing_is_the_mixture_with_the_uniform_distribution(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "lstm")
    model, batch = task.model, batches(task)[0]
    features = torch.randn(*batch.target_out.shape, 16)
    logits = model.project(features).log_softmax(-1)
    real = batch.target_out != 0
    right = logits.gather(-1, batch.target_out[..., None]).squeeze(-1)[real].sum()
    uniform = logits.mean(-1)[real].sum()
    expected = -(0.9 * right + 0.1 * uniform)
    found = cross_entropy(model.project(features[real]), batch.target_out[real], 0.1)
    torch.testing.assert_close(found, expected)


def test_a_batch_that_does_not_fit_into_memory_is_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = opened(tmp_path / "run", "lstm")
    batch = batches(task)[0]
    expected = weights_after(task, [batch])
    forward, most, told = type(task).forward, len(batch) // 3, []

    def narrow(self: Task, rows: Tensors, *, static: bool = False) -> torch.Tensor:
        if len(rows) > most:
            raise torch.OutOfMemoryError("pretended")
        return forward(self, rows, static=static)

    monkeypatch.setattr(type(task), "forward", narrow)
    step = step_of(task, told.append)
    step([batch], count(batch), 0.5, 1)
    for name, tensor in task.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-6, rtol=0)
    assert told[0] == f"memory: not enough for {len(batch)} rows at once; they go in two halves"


def test_a_single_row_that_does_not_fit_is_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = opened(tmp_path / "run", "lstm")

    def never(*_: object, **__: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("pretended")

    monkeypatch.setattr(type(task), "forward", never)
    with pytest.raises(ResourceError, match=r"memory: not enough for a batch of 1 rows; lower train\.batch"):
        step_of(task, small.Notes().tell)([batches(task)[0]], 1, 0.5, 1)


def poison(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """Every so many-th loss is not a number."""
    from regard.tasks.translate import TranslateTask  # noqa: PLC0415

    forward, calls = TranslateTask.forward, []

    def poisoned(self: TranslateTask, batch: Tensors, *, static: bool = False) -> torch.Tensor:
        loss = forward(self, batch, static=static)
        calls.append(1)
        return loss * float("nan") if self.training and len(calls) % every == 0 else loss

    monkeypatch.setattr(TranslateTask, "forward", poisoned)


def test_a_loss_that_is_not_a_number_stops_with_the_batch_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, 3)
    with pytest.raises(DataError, match=r"loss = nan, gradient = nan: not finite in epoch 0, batch 2 \(rows \d+"):
        start(tmp_path / "run", small.settings("lstm"), small.Notes())


def test_a_loss_that_is_not_a_number_may_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, 4)
    notes = small.Notes()
    start(tmp_path / "run", small.settings("lstm", "train.skip_nonfinite=true"), notes)
    assert sum("left out" in line for line in notes.lines) >= 2
    assert all(validation.loss == validation.loss for validation in notes.validations)


def test_word_dropout_replaces_ordinary_tokens_alone() -> None:
    ids = torch.tensor([[1, 2, 3, 0, *range(4, 1004)]])
    dropped = drop_words(ids, 0.3)
    assert dropped[0, :4].tolist() == [1, 2, 3, 0]
    assert 0.2 < (dropped[0, 4:] == UNK).float().mean().item() < 0.4
    assert drop_words(ids, 0.0) is ids


def test_returns_are_discounted_from_behind() -> None:
    reward = torch.tensor([[1.0, 2.0, 4.0]])
    assert _discounted(reward, 0.5).tolist() == [[3.0, 4.0, 4.0]]
    assert _discounted(reward, 0.0) is reward


def test_hard_attention_learns_where_to_look_through_reinforce(tmp_path: Path) -> None:
    """The score's weights get no gradient from the loss itself; REINFORCE gives them one, and trains its guess."""
    task = opened(tmp_path / "run", "luong-hard")
    task(batches(task)[0]).backward()
    score = [p for name, p in task.named_parameters() if "attention.score" in name]
    assert score
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in score)
    assert task.baseline.weight.grad.abs().sum() > 0


def test_choices_listen_to_the_decoders_attention_alone() -> None:
    choices = Choices()
    assert choices.at("encoder").active is False
    assert choices.at("decoder").at("cross") is choices


def test_scheduled_sampling_mixes_in_own_words(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "lstm", "train.scheduled_sampling=0.5")
    batch = batches(task)[0]
    same = task._own_words(batch.source, batch, 0.0)
    mixed = task._own_words(batch.source, batch, 0.9)
    assert torch.equal(same, batch.target_in)
    assert torch.equal(mixed[:, 0], batch.target_in[:, 0])
    assert (mixed != batch.target_in).any()
    assert torch.equal(mixed == 0, batch.target_in == 0)
    task.progress = 1.0
    assert task(batch).isfinite()


def test_scheduled_sampling_sets_in_as_training_goes_on_and_never_in_validation(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "lstm", "train.scheduled_sampling=0.9")
    batch = batches(task)[0]
    task.progress = 0.0
    plain = task(batch)
    task.progress = 1.0
    assert not torch.equal(task(batch), plain)
    task._smoothing = 0.0
    expected = task.eval()(batch)
    task.progress = 0.0
    assert torch.equal(task(batch), expected)


def test_every_batch_of_a_training_is_cut_anew_in_its_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.tasks.translate import TranslateTask  # noqa: PLC0415

    epochs: list[int] = []
    prepare = TranslateTask.prepare

    def prepared(self: TranslateTask, batch: Batch, epoch: int) -> Batch:
        epochs.append(epoch)
        return prepare(self, batch, epoch)

    monkeypatch.setattr(TranslateTask, "prepare", prepared)
    sampling = ("text.tokenizer=bpe", "text.size=320", "text.sampling=true", "train.batch=2048")
    start(tmp_path / "run", small.settings("lstm", *sampling), small.Notes(), device="cpu")
    assert len(epochs) == 12
    assert sorted(epochs) == epochs
    assert epochs[-1] > epochs[0]


def kept(folder: Path) -> list[checkpoint.Checkpoint]:
    return [checkpoint.load(path) for path in steps(folder / "checkpoints")]


def test_the_moving_average_is_kept_judged_and_used(tmp_path: Path) -> None:
    overrides = ("train.average={kind='moving', decay=0.9}", "train.rate=0.05")
    start(tmp_path / "run", small.settings("gru", *overrides), small.Notes(), device="cpu")
    last = kept(tmp_path / "run")[-1]
    assert last.average.keys() == last.weights.keys()
    assert any(not torch.equal(last.average[name], tensor) for name, tensor in last.weights.items())
    used = load(tmp_path / "run").model.state_dict()
    best = checkpoint.load(best_checkpoint(Run.open(tmp_path / "run")))
    for name, tensor in used.items():
        assert torch.equal(tensor, best.average[f"model.{name}"])


def test_the_last_checkpoints_are_averaged(tmp_path: Path) -> None:
    overrides = ("train.average={kind='last', count=2}", "train.rate=0.05")
    start(tmp_path / "run", small.settings("gru", *overrides), small.Notes(), device="cpu")
    *_, before, last = kept(tmp_path / "run")
    for name, tensor in last.average.items():
        torch.testing.assert_close(tensor, (before.weights[name] + last.weights[name]) / 2)


def test_validation_judges_the_averaged_weights(tmp_path: Path) -> None:
    """At a rate where the weights jump about, the loss of their average is another number."""
    overrides = ("train.rate=0.05", "model.dropout=0.0")
    notes = small.Notes(), small.Notes()
    start(tmp_path / "a", small.settings("gru", *overrides), notes[0], device="cpu")
    start(tmp_path / "b", small.settings("gru", *overrides, "train.average={kind='moving'}"), notes[1], device="cpu")
    assert small.weights(tmp_path / "a")["weights"] == small.weights(tmp_path / "b")["weights"]
    assert notes[0].validations[-1].loss != notes[1].validations[-1].loss


def test_the_second_signal_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = small.Notes()
    monkeypatch.setattr("os._exit", sys.exit)
    with interruptible(told.tell) as interruption:
        signal.raise_signal(signal.SIGTERM)
        assert interruption.asked
        with pytest.raises(SystemExit) as left:
            signal.raise_signal(signal.SIGINT)
        assert left.value.code == 130
    assert told.lines == ["stopping: a checkpoint is written, then the score is computed; once more to leave at once"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_subword_sampling_depends_on_row_and_epoch_alone(tmp_path: Path) -> None:
    task = opened(tmp_path / "run", "lstm", "text.tokenizer=bpe", "text.size=601", "text.sampling=true")
    batch = next(Batches(task.train_examples, 128).epoch(0))
    first, again, other = task.prepare(batch, 0), task.prepare(batch, 0), task.prepare(batch, 1)
    assert first.source.tolist() == again.source.tolist()
    assert first.source.tolist() != other.source.tolist()
    decode = task.tokenizers.source.decode
    assert [decode(row) for row in first.source] == [decode(row) for row in batch.source]
    alone = task.prepare(next(Batches(task.train_examples, 128, rank=1, world=2).epoch(0)), 0)
    rows = [row for row in alone.rows.tolist() if row >= 0]  # the others are none
    places = [first.rows.tolist().index(row) for row in rows]
    width = min(alone.source.shape[1], first.source.shape[1])
    assert alone.source[: len(rows), :width].tolist() == first.source[places, :width].tolist()
    assert rows


REFUSED = {
    "train.scheduled_sampling=0.2": "train.scheduled_sampling: feeds a decoder its own words one by one",
    "train.step=graph": "train.step = graph: needs a GPU",
    "train.time=soon": "train.time = soon: not a time; write it as 90s, 10m or 2h",
}


@pytest.mark.parametrize("override", REFUSED)
def test_what_cannot_be_trained_is_refused_with_the_reason(override: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=REFUSED[override].replace(".", r"\.")):
        start(tmp_path / "run", small.settings("transformer-tiny", override))


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match="device = cuda: torch sees no GPU here; use cpu"):
        pick_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(SettingsError, match="device = cuda:2: no such GPU here; the last one is cuda:1"):
        pick_device("cuda:2")


@pytest.mark.parametrize("name", ["gpu", "mps", "cuda:x", ""])
def test_a_device_that_nothing_runs_on_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"device = {name}: no such device; auto, cpu and cuda are"):
        pick_device(name)


def test_a_thread_takes_its_number_of_threads_and_no_other_does() -> None:
    """Neither those that are there already nor those that are yet to come."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with ThreadPoolExecutor(1) as older, ThreadPoolExecutor(1, "", take_threads, (1,)) as modest:
            assert older.submit(torch.get_num_threads).result() == 3
            assert modest.submit(torch.get_num_threads).result() == 1
            with ThreadPoolExecutor(1) as younger:
                assert younger.submit(torch.get_num_threads).result() == 3
            assert older.submit(torch.get_num_threads).result() == 3
            assert modest.submit(torch.get_num_threads).result() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
