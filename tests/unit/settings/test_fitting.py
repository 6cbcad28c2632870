"""What nobody has set is fitted to corpus, machine and time; what somebody has set stays."""

from __future__ import annotations

import pytest

from regard.settings import (
    NO_LIMIT,
    Extent,
    Machine,
    Settings,
    TransformerModel,
    careful,
    choose,
    fit,
    load_settings,
)

MULTI30K = Extent(rows=28_000, characters=3_900_000, alphabet=120)
LAPTOP = Machine(gpu=False, threads=2)
GPU = Machine(gpu=True, threads=16)


def fitted(preset: str, *overrides: str, corpus: Extent = MULTI30K, machine: Machine = LAPTOP) -> Settings:
    return fit(load_settings(preset, *overrides), corpus, machine)[0]


def test_a_small_model_and_many_small_steps_for_minutes_on_a_laptop() -> None:
    name, changes = choose(load_settings("transformer-tiny", "train.time=5m"), MULTI30K, LAPTOP)
    assert name == "transformer-tiny"
    made = fitted(name, *changes, "train.time=5m")
    assert made.model.tie == "all"
    assert made.text.size == 4900
    assert 512 <= made.train.batch <= 1024
    assert 100 <= made.train.warmup <= 300
    assert made.train.schedule == "cosine"
    assert made.train.validate_every == 0
    assert made.train.average.kind == "moving"


def test_an_architecture_that_is_named_stays_and_the_rest_fits_the_time() -> None:
    """The 27 steps of warm-up that two minutes once had are over after a twentieth of the time."""
    made, preset = fitted("transformer-small", "train.time=2m"), load_settings("transformer-small")
    assert made.model == preset.model
    assert made.train.batch == 256
    assert made.train.warmup < 60


def test_what_is_given_wins() -> None:
    given = ("train.batch=777", "train.warmup=3", "train.steps=55", "train.rate=0.5", "text.size=600")
    made = fitted("transformer-tiny", *given, "train.schedule=constant", "train.average={kind='none'}")
    train = made.train
    assert (train.batch, train.warmup, train.steps, train.rate, made.text.size) == (777, 3, 55, 0.5, 600)
    assert (train.schedule, train.average.kind) == ("constant", "none")


def test_on_a_cpu_auto_takes_muon_unless_an_optimizer_is_given() -> None:
    def optimizer(machine: Machine, *given: str) -> tuple[str, float]:
        name, changes = choose(known := load_settings("transformer-tiny", *given), MULTI30K, machine)
        known = load_settings(name, *changes, *given)
        train = fitted(name, *changes, *careful(known, MULTI30K, machine), *given, machine=machine).train
        return train.optimizer, train.momentum

    assert optimizer(LAPTOP) == ("muon", 0.95)
    assert optimizer(LAPTOP, "train.optimizer=sgd") == ("sgd", 0.9)
    assert optimizer(GPU, "train.optimizer=muon") == ("muon", 0.95)
    assert optimizer(GPU, "train.optimizer=muon", "train.momentum=0.8") == ("muon", 0.8)
    assert optimizer(GPU)[0] == "adam"


def test_weight_decay_is_the_less_the_longer_a_training_is() -> None:
    def decay(*given: str) -> float:
        return fitted("transformer-tiny", "train.optimizer=muon", *given).train.weight_decay

    assert decay("train.steps=100") == decay("train.steps=2500") == 0.3
    assert decay("train.steps=5000") == 0.15
    assert decay("train.steps=5000", "train.rate=0.002") == 0.3
    assert decay("train.steps=5000", "train.weight_decay=0.7") == 0.7
    assert fitted("transformer-tiny", "train.optimizer=adam").train.weight_decay == 0.0
    assert decay("train.steps=5000", "train.base=demo") == 0.0
    assert decay("train.steps=5000", "train.schedule=noam") == 0.0  # whose rate is a factor
    assert 0 < decay("train.steps=5000000") < 0.001


def test_warming_up_takes_a_part_of_few_steps() -> None:
    assert fitted("gru", "train.steps=20").train.warmup == 5


@pytest.mark.parametrize(("schedule", "optimizer"), [("noam", "adam"), ("cosine", "sgd")])
def test_a_rate_with_another_meaning_is_left_alone(schedule: str, optimizer: str) -> None:
    made = fitted("transformer-tiny", f"train.schedule={schedule}", f"train.optimizer={optimizer}")
    assert made.train.rate == load_settings("transformer-tiny").train.rate


def test_the_vocabulary_grows_with_the_text_and_holds_every_character() -> None:
    def size(rows: int, alphabet: int = 80, machine: Machine = LAPTOP) -> int:
        return fitted("gru", corpus=Extent(rows, rows * 140, alphabet), machine=machine).text.size

    assert size(3) == 500
    assert size(2_500) == 1_500
    assert size(10**7) == 8_000
    assert size(10**7, machine=GPU) == 16_000
    assert size(1_000, alphabet=4_000) == 5_200
    assert fitted("gru", "text.tokenizer=character").text.size == load_settings("gru").text.size


def test_more_rows_or_a_gpu_get_a_larger_model() -> None:
    def width(rows: int, machine: Machine, time: str = "") -> int:
        known = load_settings("transformer-tiny", f"train.time='{time}'")
        name, changes = choose(known, Extent(rows, rows * 140, 90), machine)
        model = load_settings(name, *changes).model
        assert isinstance(model, TransformerModel)
        return model.width

    assert width(3_000, LAPTOP) == 128
    assert width(30_000, LAPTOP, "5m") == 128
    assert width(30_000, LAPTOP) == 192
    assert width(300_000, LAPTOP, "3h") == 256
    assert [width(rows, GPU) for rows in (3_000, 30_000, 3_000_000)] == [256, 256, 512]


def chosen(*given: str) -> TransformerModel:
    name, changes = choose(load_settings("transformer-tiny", *given), MULTI30K, LAPTOP)
    model = load_settings(name, *changes, *given).model
    assert isinstance(model, TransformerModel)
    return model


def test_rotary_positions_and_swiglu_are_taken_unless_what_is_given_rules_them_out() -> None:
    assert (chosen().positions, chosen().activation, chosen().hidden) == ("rotary", "swiglu", 512)
    for given in ("model.encoder_attention.score=additive", "model.first_position=1", "model.width=100"):
        assert (chosen(given).positions, chosen(given).activation) == ("sinusoidal", "swiglu")


def test_an_activation_with_two_matrices_gets_a_wider_layer() -> None:
    assert (chosen("model.activation=relu").positions, chosen("model.activation=relu").hidden) == ("rotary", 768)
    assert chosen("model.activation=relu", "model.hidden=77").hidden == 77


def test_a_short_training_on_a_gpu_captures_few_batch_shapes() -> None:
    usual = load_settings("transformer-small").train.shapes
    assert fitted("transformer-small", "train.time=35s", machine=GPU).train.shapes < usual
    assert fitted("transformer-small", "train.time=35s", "train.shapes=20", machine=GPU).train.shapes == 20
    for how, machine in (("train.time=10m", GPU), ("train.steps=100", GPU), ("train.time=35s", LAPTOP)):
        assert fitted("transformer-small", how, machine=machine).train.shapes == usual


def test_a_time_limit_has_room_for_half_the_steps_where_rows_are_read_twice() -> None:
    """Batches are smaller, so that there are as many steps."""
    how = ("train.time=20s", "model.dropout=0.3")
    once = fitted("transformer-small", *how, machine=GPU).train.batch
    twice = fitted("transformer-small", *how, "train.consistency.kind=rdrop", machine=GPU).train.batch
    assert 0.45 < twice / once < 0.55


def test_a_time_limit_has_room_for_the_layers_that_the_task_has() -> None:
    """A language model has no encoder, a labeller no decoder: layers of the other stack change nothing."""
    limit = "train.time=8m"
    for task, other in (("language", "encoder"), ("tag", "decoder"), ("classify", "decoder")):
        made = fitted("transformer-small", f"task={task}", limit).train
        assert fitted("transformer-small", f"task={task}", limit, f"model.{other}_depth=9").train == made
        assert made.batch > fitted("transformer-small", limit).train.batch
        assert fitted("lstm", f"task={task}", limit).train.batch > fitted("lstm", limit).train.batch
    both = ("model.bidirectional=true", "model.bridge=dense")  # ways of reading
    assert fitted("lstm", "task=tag", limit).train.batch > fitted("lstm", "task=tag", limit, *both).train.batch


def test_processes_that_train_together_are_counted_together() -> None:
    two, one = (Machine(gpu=False, threads=1, processes=count) for count in (2, 1))
    assert (str(two), str(one), str(Machine(gpu=True, threads=3, processes=2))) == ("2 cores", "1 core", "2 GPUs")
    assert fitted("transformer-small", "train.time=20m", machine=two) == fitted("transformer-small", "train.time=20m")
    alone = fitted("transformer-small", "train.time=20m", machine=one)
    assert alone.train.batch < fitted("transformer-small", "train.time=20m", machine=two).train.batch


def test_labels_get_a_model_that_reads_both_ways() -> None:
    for task in ("tag", "classify"):
        name, changes = choose(load_settings("lstm", f"task={task}"), MULTI30K, LAPTOP)
        made = load_settings(name, *changes, f"task={task}")
        assert made.text.tokenizer == "space"
        assert (made.model.letters > 0) is (task == "tag")


def test_without_a_time_limit_large_corpora_are_read_fewer_times() -> None:
    def passes(rows: int) -> float:
        train = fitted("transformer-small", corpus=Extent(rows, rows * 140, 90)).train
        return train.steps * train.batch / (rows * 18.5)

    assert passes(28_000) == pytest.approx(40, rel=0.1)
    assert passes(1_000_000) == pytest.approx(3, rel=0.1)
    assert fitted("transformer-small", corpus=Extent(5, 300, 30)).train.steps == 1500
    assert fitted("transformer-small", "train.time=9h", corpus=Extent(10**8, 10**10, 90)).train.steps == NO_LIMIT


def test_the_reason_is_one_line_that_names_what_was_chosen_and_nothing_else() -> None:
    _, line = fit(load_settings("bahdanau", "train.time=5m", "train.warmup=9"), MULTI30K, LAPTOP)
    assert line.startswith("fitted to 2 cores, 28,000 pairs, 5m: recurrent model of width 256, 1 layer, at most 4,900")
    assert "warm-up" not in line
    assert "\n" not in line
    assert fit(load_settings("gru", "task=language"), Extent(1, 9, 5), GPU)[1].startswith("fitted to a GPU, 1 text:")
    assert "dropout" not in line
    of_one = fit(load_settings("transformer-tiny", "task=language"), MULTI30K, LAPTOP)[1]
    assert "transformer model of width 128, 2 layers, " in of_one  # nothing is encoded
    hidden = load_settings("transformer-tiny", "model.dropout=0.33", "train.word_dropout=0.1", "train.steps=4")
    _, line = fit(hidden, MULTI30K, LAPTOP, ["dropout", "word_dropout"])
    assert ", 1 step of warm-up," in line
    assert line.endswith(", dropout 0.33, 10% of the words hidden")


def test_the_depth_of_a_transformer_is_that_of_both_its_halves() -> None:
    model = load_settings("transformer-small", "model.depth=4", "model.decoder_depth=2").model
    assert isinstance(model, TransformerModel)
    assert (model.encoder_depth, model.decoder_depth) == (4, 2)


def test_the_more_often_a_text_is_read_the_more_dropout() -> None:
    def made(rows: int, machine: Machine, time: str) -> Settings:
        known, corpus = load_settings("transformer-tiny", f"train.time='{time}'"), Extent(rows, rows * 140, 90)
        name, changes = choose(known, corpus, machine)
        known = load_settings(name, *changes, f"train.time='{time}'")
        return load_settings(name, *changes, *careful(known, corpus, machine))

    quick, long, short = made(28_000, LAPTOP, "5m"), made(28_000, GPU, "150s"), made(28_000, GPU, "10s")
    assert (quick.model.dropout, quick.train.word_dropout, quick.train.consistency.kind) == (0.1, 0.0, "none")
    assert (long.model.dropout, long.train.word_dropout, long.train.consistency.kind) == (0.3, 0.1, "rdrop")
    assert quick.model.dropout < short.model.dropout < long.model.dropout
    assert short.train.consistency.kind == "none"
    assert made(2_000, LAPTOP, "9h").train.consistency.kind == "none"


def test_who_wants_no_dropout_gets_no_r_drop() -> None:
    given = ("model.dropout=0.0", "train.word_dropout=0.0", "train.time=150s")
    changes = careful(load_settings("transformer-small", *given), MULTI30K, GPU)
    assert load_settings("transformer-small", *changes, *given).train.consistency.kind == "none"


def test_no_care_is_taken_where_a_model_is_no_translator_or_begins_with_trained_weights() -> None:
    assert not careful(load_settings("gru", "task=language"), MULTI30K, GPU)
    assert not careful(load_settings("transformer-tiny", "train.base=demo"), MULTI30K, GPU)
