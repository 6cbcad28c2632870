"""The parts of the trainer, one at a time."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.device import pick_device
from regard.errors import DataError, ModelError, SettingsError
from regard.nn.attention import AdditiveScore, CosineScore
from regard.runs import checkpoint, log
from regard.runs.checkpoint import Checkpoint, Progress
from regard.runs.log import Log, Moment, Validation, read_log
from regard.settings import TrainSettings, load_settings, parse_time
from regard.trainer import optimizer
from regard.trainer.feed import ahead
from regard.trainer.loop import is_better, step_seed
from regard.trainer.optimizer import learning_rate, make_optimizer, set_rate
from regard.trainer.steps import step_kind

# Schedules


def rates(shape: str, rate: float, warmup: int, width: int) -> Callable[[int, float], float]:
    settings = TrainSettings.model_validate({"schedule": shape, "rate": rate, "warmup": warmup})
    return lambda step, progress: learning_rate(settings, width, step, progress)


def test_every_schedule_rises_from_zero_to_its_rate() -> None:
    for shape in ("constant", "inverse_square_root", "cosine", "linear"):
        schedule = rates(shape, 0.5, 10, 64)
        assert schedule(1, 0.0) == pytest.approx(0.05)
        assert schedule(10, 0.0) == pytest.approx(0.5)


def test_schedules_go_on_as_their_names_say() -> None:
    at = {shape: rates(shape, 1.0, 100, 64) for shape in ("constant", "inverse_square_root", "cosine", "linear")}
    assert at["constant"](400, 0.5) == 1.0
    assert at["inverse_square_root"](400, 0.5) == pytest.approx(0.5)  # √(100 / 400)
    assert at["cosine"](400, 0.5) == pytest.approx(0.5)
    assert at["cosine"](400, 1.0) == pytest.approx(0.0)
    assert at["linear"](400, 0.75) == pytest.approx(0.25)
    assert at["linear"](400, 1.0) == 0.0


def test_noam_is_the_papers() -> None:
    """rate = d^−0.5 · min(step^−0.5, step · warmup^−1.5)"""
    noam = rates("noam", 1.0, 4000, 512)
    for step in (1, 4000, 100_000):
        assert noam(step, 0.0) == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5))


def test_without_warm_up_the_first_step_has_the_full_rate() -> None:
    for shape in ("constant", "inverse_square_root", "cosine", "linear"):
        assert rates(shape, 0.5, 0, 64)(1, 0.0) == pytest.approx(0.5)
    assert rates("noam", 1.0, 0, 64)(4, 0.0) == pytest.approx(64**-0.5 / 2)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


# Optimizers


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_only_matrices_decay(kind: str) -> None:
    model = nn.Linear(3, 2)
    optimizer = make_optimizer(kind, model, weight_decay=0.1, momentum=0.0, second_moment=0.9)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert decay == {id(model.weight): 0.1, id(model.bias): 0.0}
    set_rate(optimizer, 0.25)
    before = model.weight.detach().clone()
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.weight)


def test_what_a_score_adds_and_multiplies_by_does_not_decay() -> None:
    for score, spared in ((AdditiveScore(3, 5, 5, 7), "bias"), (CosineScore(3, 5), "sharpness")):
        model = nn.ModuleList([score, nn.Linear(3, 2)])
        optimizer = make_optimizer("sgd", model, weight_decay=0.1, momentum=0.0, second_moment=0.9)
        decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
        assert decay[id(getattr(score, spared))] == 0.0


# Averages


def test_a_moving_average_follows_slowly_and_quicker_at_first() -> None:
    weights = {"w": torch.zeros(2), "count": torch.tensor(3)}
    average = optimizer.MovingAverage(weights, decay=0.9)
    weights["w"].fill_(1.0)
    assert average.share(1) == pytest.approx(1 - 2 / 11)
    assert average.share(10_000) == pytest.approx(0.1)
    average.update(0.25)
    torch.testing.assert_close(average.weights()["w"], torch.full((2,), 0.25))
    average.update(torch.tensor(0.5))  # as a captured step does it
    torch.testing.assert_close(average.weights()["w"], torch.full((2,), 0.625))
    assert list(average.weights()) == ["w"]


def test_averaged_weights_serve_for_a_while_and_go_away() -> None:
    weights = {"w": torch.ones(2)}
    with optimizer.swapped(weights, {"w": torch.full((2,), 5.0)}):
        assert weights["w"].tolist() == [5.0, 5.0]
    assert weights["w"].tolist() == [1.0, 1.0]


def test_the_mean_of_checkpoints_is_their_mean() -> None:
    snapshots = [{"w": torch.full((2,), float(n)), "count": torch.tensor(n)} for n in (1, 2, 6)]
    assert optimizer.mean_weights(snapshots)["w"].tolist() == [3.0, 3.0]


# Checkpoints


def saved(folder: Path, step: int = 3) -> Path:
    parts = {"w": torch.arange(6.0).reshape(2, 3)}
    return checkpoint.save(Checkpoint(Progress(step=step, best=1.5), parts, {}, {"0.step": torch.tensor(3.0)}), folder)


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    again = checkpoint.load(saved(tmp_path))
    assert again.progress == Progress(step=3, best=1.5)
    assert torch.equal(again.weights["w"], torch.arange(6.0).reshape(2, 3))
    assert again.optimizer["0.step"].item() == 3.0


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "progress.json"])
def test_one_flipped_byte_is_found_in_any_file(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=rf"step-3/{name}: is not what was written; the checkpoint is damaged"):
        checkpoint.load(tmp_path / "step-3")


def test_parts_of_a_checkpoint_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    weights = {"w": torch.ones(2, 3)}
    path = checkpoint.save(Checkpoint(Progress(step=7), weights, {"w": torch.ones(3)}, {}), tmp_path)
    with pytest.raises(ModelError, match=r"average\.safetensors does not go with weights\.safetensors"):
        checkpoint.load(path)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2, 3))])
    for name, tensor in (("1.x", torch.ones(2, 3)), ("x.y", torch.ones(2, 3)), ("0.momentum_buffer", torch.ones(3))):
        with pytest.raises(ModelError, match="belongs to no parameter of this model"):
            checkpoint.load_optimizer(optimizer, {name: tensor})


def test_a_checkpoint_without_its_manifest_is_not_trusted(tmp_path: Path) -> None:
    (saved(tmp_path) / "manifest.json").unlink()
    with pytest.raises(ModelError, match=r"manifest\.json: missing or damaged"):
        checkpoint.load(tmp_path / "step-3")


def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(b"not this")
    with pytest.raises(ModelError, match=r"weights\.safetensors: is not a safetensors file"):
        checkpoint._tensors(path)
    header = b'{"x": {"dtype": "F7", "shape": [2], "data_offsets": [0, 8]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ModelError, match=r"weights\.safetensors: cannot be read; .*F7"):
        checkpoint._tensors(path)


def test_weights_of_another_model_are_refused() -> None:
    model = nn.Linear(3, 2)
    with pytest.raises(ModelError, match=r"here: (bias|weight) is not in the checkpoint"):
        checkpoint.load_model(model, {}, "here")
    with pytest.raises(ModelError, match="here: extra is not in the model"):
        checkpoint.load_model(model, {**model.state_dict(), "extra": torch.ones(1)}, "here")
    with pytest.raises(ModelError, match=r"here: weight = \(3, 3\): the model has \(2, 3\)"):
        checkpoint.load_model(model, {"weight": torch.ones(3, 3), "bias": torch.ones(2)}, "here")


def test_old_checkpoints_go_and_the_best_stays(tmp_path: Path) -> None:
    for step in (1, 2, 3, 10):
        saved(tmp_path, step)
    (tmp_path / ".step-9.half").mkdir()  # of a write that was cut off
    checkpoint.prune(tmp_path, keep=2, spare={"step-1"})
    assert [path.name for path in checkpoint.steps(tmp_path)] == ["step-1", "step-3", "step-10"]
    assert not (tmp_path / ".step-9.half").exists()


def test_a_shared_weight_is_saved_once() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3, bias=False), "b": nn.Linear(3, 3, bias=False)})
    model["b"].weight = model["a"].weight
    assert list(checkpoint.model_tensors(model)) == ["a.weight"]


# The log


def test_a_log_can_be_read_while_written_and_after_a_resume(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for step in (1, 2, 3, 2):  # resumed after step 1
        log.moment(Moment(step, 0, 1.0, 1.0, 0.1, 5, 5.0, 1.0, 0.5, 1))
    log.validation(Validation(2, 0, 1.0, 0.5, 90.0, "BLEU", best=True))
    log.tell("a word: café")
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "st')  # killed while writing
    events = read_log(tmp_path / "log.jsonl")
    assert [event["step"] for event in events if event["event"] == "step"] == [1, 2]
    assert events[-1]["text"] == "a word: café"


def test_of_a_log_that_grows_only_what_was_added_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, parsed = tmp_path / "log.jsonl", list[bytes]()
    parse = log.parse_event
    monkeypatch.setattr(log, "parse_event", lambda line: (parsed.append(line), parse(line))[1])
    writer = Log(path)

    def moment(step: int) -> None:
        writer.moment(Moment(step, 0, 1.0, 1.0, 0.1, 5, 5.0, 1.0, 0.5, 1))

    assert (log.outline(path).step, log.outline(path).best, log.outline(path).last) == (0, None, None)
    for step in range(1, 30):
        moment(step)
    writer.validation(Validation(29, 0, 1.0, 0.5, 90.0, "BLEU", best=True))
    assert (log.outline(path).step, log.outline(path).best["score"]) == (29, 90.0)
    parsed.clear()
    moment(30)
    with path.open("a") as file:
        file.write('{"event": "st')  # half a line
    found = log.outline(path)
    assert (found.step, found.last["step"], [line for line in parsed if line][1:]) == (30, 30, [b'{"event": "st'])
    writer = Log(path)  # resumed: it ends the half line
    moment(11)
    writer.validation(Validation(12, 0, 1.0, 0.7, 80.0, "BLEU", best=True))
    assert (log.outline(path).step, log.outline(path).best["score"]) == (11, 80.0)


@pytest.mark.parametrize("how", ["shorter", "another", "anew", "removed"])
def test_a_log_that_is_another_one_is_read_from_its_beginning(tmp_path: Path, how: str) -> None:
    path = tmp_path / "log.jsonl"
    for step in range(1, 30):
        Log(path).moment(Moment(step, 0, 1.0, 1.0, 0.1, 5, 5.0, 1.0, 0.5, 1))
    assert log.outline(path).step == 29
    text = path.read_text()
    if how == "shorter":
        path.write_text("".join(text.splitlines(keepends=True)[:7]))
    elif how == "another":
        (tmp_path / "new").write_text("".join(text.splitlines(keepends=True)[:7]) + "\n" * len(text))
        (tmp_path / "new").replace(path)
    elif how == "anew":
        path.write_text("".join(text.splitlines(keepends=True)[:7]) + "\n" * len(text))
    else:
        path.unlink()
    assert log.outline(path).step == (0 if how == "removed" else 7)


def test_a_line_without_an_end_harms_no_other_line_of_a_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LONGEST_LINE", 50)
    path = tmp_path / "log.jsonl"
    first, last = '{"event": "note", "text": "first"}', '{"event": "note", "text": "last"}'
    path.write_text(f"{first}\n" + "x" * 307 + f"\n{last}\n" + "y" * 111)
    assert [event["text"] for event in read_log(path)] == ["first", "last"]
    numbers = log.LogReader(path)
    found = [number for lines in iter(numbers.read, None) for number, _ in lines]
    assert found == [1, 3]


# Batches made ahead


def test_batches_made_ahead_come_in_order_and_an_error_where_it_belongs() -> None:
    def batches() -> Iterator[tuple[int, int]]:
        yield from ((number, number) for number in range(20))
        raise DataError("the 21st is broken")

    made = ahead(batches(), count=3)
    assert [next(made) for _ in range(20)] == [(number, number) for number in range(20)]
    with pytest.raises(DataError, match="the 21st is broken"):
        next(made)


def test_the_thread_that_makes_batches_ends_with_who_uses_them() -> None:
    def batches() -> Iterator[tuple[int, int]]:
        yield from ((number, number) for number in itertools.count())

    before = set(threading.enumerate())
    made = ahead(batches(), count=3)
    assert next(made) == (0, 0)
    (thread,) = set(threading.enumerate()) - before
    made.close()
    assert not thread.is_alive()


# The chance of a step


def test_the_chance_of_a_step_depends_on_seed_process_and_number() -> None:
    seeds = {step_seed(seed, rank, number) for seed in (0, 1) for rank in (0, 1) for number in (1, 2, 3)}
    assert len(seeds) == 12
    assert step_seed(1, 1, 3) == step_seed(1, 1, 3)


def test_a_value_that_is_not_finite_is_never_the_best() -> None:
    assert not is_better(math.nan, None)
    assert not is_better(-math.inf, None)
    assert is_better(1.0, None)
    assert is_better(1.0, math.nan)  # what an older version kept
    assert not is_better(1.0, 1.0)
    assert is_better(1.5, 1.0)


# Several GPUs


def test_each_process_of_a_machine_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("auto") == torch.device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert [pick_device(name) for name in ("auto", "cuda", "cuda:0", "cpu")] == [
        *(torch.device("cuda", 1), torch.device("cuda", 1), torch.device("cuda", 0), torch.device("cpu"))
    ]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(SettingsError, match="LOCAL_RANK = 2: there are 2 GPUs here, one for each process; start 2 at"):
        pick_device("auto")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(SettingsError, match="LOCAL_RANK = 2: there is 1 GPU here"):
        pick_device("auto")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")  # that of this process alone
    assert pick_device("auto") == torch.device("cuda", 0)


# What kind of step


def test_the_kind_of_step_follows_the_machine_and_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    train = load_settings("lstm").train
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert step_kind(train, cpu) == "eager"
    monkeypatch.setattr("regard.device.find_spec", lambda _: None)
    assert step_kind(train, gpu) == "graph"
    monkeypatch.setattr("regard.device.find_spec", lambda name: name)
    monkeypatch.setattr("regard.device.Path.is_file", lambda _: True)
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert step_kind(train, gpu) == "compiled-graph"
    assert step_kind(load_settings("lstm", "train.time='299s'").train, gpu) == "graph"
    assert step_kind(load_settings("lstm", "train.accumulate=2").train, gpu) == "eager"


def test_a_rate_is_never_negative_nor_above_its_peak() -> None:
    for shape in ("constant", "inverse_square_root", "cosine", "linear"):
        schedule = rates(shape, 1e-3, 50, 64)
        found = [schedule(step, step / 1000) for step in range(1, 1200)]
        assert all(0 <= rate <= 1e-3 + 1e-12 for rate in found)
        assert not any(math.isnan(rate) for rate in found)
