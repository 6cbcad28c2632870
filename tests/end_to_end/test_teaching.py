"""Going on with the weights of another run: on other text, whole, in parts, with adapters, with new pieces."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from processes import begun
from regard.cli.display import validation_line
from regard.cli.main import run as cli
from regard.convert.foreign import NEVER
from regard.decode.options import Options
from regard.errors import ModelError, RegardError
from regard.evaluate.report import learning
from regard.runs import checkpoint
from regard.runs.folder import MANIFEST, Origin, Run, best_checkpoint, digest, origin_of
from regard.settings import Settings
from regard.settings.languages import languages_of
from regard.tasks.load import load
from regard.text.grafting import origins
from regard.text.tokenizers import Tokenizers
from regard.trainer.start import absolute, fitted, preflight, resume, start
from regard.trainer.teaching import settings_from

QUICK = ("train.batch=128", "train.steps=12", "train.validate_every=5", "train.warmup=4")


def taught(base: Path | str, *overrides: str) -> Settings:
    """Settings of a run that begins with the weights of another."""
    return fitted("", f"train.base={base}", *QUICK, *overrides, device="cpu")[0]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of a few words, and a corpus for it."""
    folder = tmp_path_factory.mktemp("base")
    overrides = ("text.tokenizer=bpe", "text.size=320", "train.steps=30", "train.rate=0.01")
    start(folder / "run", small.settings("transformer-tiny", *overrides), small.Notes(), device="cpu")
    small.animals(folder)
    return folder / "run"


def animals(base: Path) -> tuple[str, ...]:
    return small.animals(base.parent)


def weights_of(path: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load_weights(path)


def test_a_run_begins_with_the_weights_tokenizers_and_settings_of_another(base: Path, tmp_path: Path) -> None:
    theirs, notes = Run.open(base), small.Notes()
    start(tmp_path / "new", taught(base, *animals(base), "train.keep=9", "train.rate=0.01"), notes, device="cpu")
    run = Run.open(tmp_path / "new")
    assert (run.settings.model, run.settings.text) == (theirs.settings.model, theirs.settings.text)
    assert run.settings.train.base == str(base)
    assert run.settings.train.base_weights == digest(best_checkpoint(theirs) / MANIFEST)
    first, before = (weights_of(path) for path in (run.checkpoints / "step-0", best_checkpoint(theirs)))
    assert all(torch.equal(first[name], tensor) for name, tensor in before.items())
    assert Tokenizers.load(run.tokenizer).source == Tokenizers.load(theirs.tokenizer).source
    assert [validation.step for validation in notes.validations] == [0, 5, 10, 12]
    assert notes.validations[-1].loss < notes.validations[0].loss - 0.1
    assert best_checkpoint(run).name == "step-12"
    assert not checkpoint.load(run.checkpoints / "step-0").optimizer


@pytest.mark.parametrize(
    ("words", "languages"),
    [
        (["data.source=a.en", "data.target=a.fr"], "en-fr"),
        (["data.source=a.txt", "data.target=b.txt"], "en-fr"),  # the names do not say it: those it knows
        (["data.source=a.en", "data.target=a.hi"], "en-hi"),
        (["data.corpus=fable:hi"], "en-hi"),
        (["data.source=a.en", "data.target=a.hi", "data.languages=en-fr"], "en-fr"),
    ],
)
def test_a_run_that_is_taught_other_languages_says_so(base: Path, words: list[str], languages: str) -> None:
    assert str(languages_of(settings_from(str(base), *words))) == languages


def test_the_optimizer_of_another_run_goes_on_without_its_weight_decay(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "base")
    theirs = Run.open(tmp_path / "base")
    learned = theirs.settings.train.model_copy(update={"optimizer": "muon", "momentum": 0.95, "weight_decay": 0.3})
    Run(theirs.folder, theirs.settings.model_copy(update={"train": learned})).write()
    train = taught(theirs.folder, *animals(base)).train
    assert (train.optimizer, train.momentum, train.weight_decay) == ("muon", 0.95, 0.0)
    assert taught(theirs.folder, *animals(base), "train.weight_decay=0.1").train.weight_decay == 0.1


def test_words_of_the_new_text_have_been_seen_then(base: Path, tmp_path: Path) -> None:
    start(tmp_path / "new", taught(base, *animals(base), "train.steps=1"), small.Notes(), device="cpu")
    before, after = (Tokenizers.load(folder / "tokenizer").known for folder in (base, tmp_path / "new"))
    assert before is not None
    assert after is not None
    assert "honey" in after
    assert set(before.counted) < set(after.counted) | {"honey"}


def test_what_does_not_help_leaves_the_weights_as_they_were_best(base: Path, tmp_path: Path) -> None:
    settings = taught(
        base, "data.corpus=fable:fr", "data.pairs=300", "data.words=8", "train.rate=9.0", "train.clip=0.0"
    )
    start(tmp_path / "new", settings, small.Notes(), device="cpu")
    assert best_checkpoint(Run.open(tmp_path / "new")).name == "step-0"
    assert load(tmp_path / "new").translate("the cat").text == load(base).translate("the cat").text


@pytest.mark.parametrize(
    ("task", "preset"),
    [("language", "gru"), ("tag", "lstm"), ("classify", "transformer-tiny"), ("translate", "luong-hard")],
)
def test_every_task_goes_on(task: str, preset: str, tmp_path: Path) -> None:
    start(tmp_path / "base", small.settings(preset, f"task={task}"), small.Notes(), device="cpu")
    notes, origin = small.Notes(), Origin("made for a test", preset, "CC BY 4.0")
    origin.save(tmp_path / "base")
    settings = taught(tmp_path / "base", "data.corpus=fable:fr", "data.pairs=200", "data.words=5", "train.rate=0.01")
    start(tmp_path / "new", settings, notes, device="cpu")
    assert settings.task == task
    assert notes.validations[-1].loss < notes.validations[0].loss
    assert origin_of(tmp_path / "new") == origin, "a licence goes with the weights"


@pytest.mark.usefixtures("with_demo")
def test_the_run_of_the_package_can_be_taught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small.animals(tmp_path)
    files = ("--source", "train.en", "--target", "train.fr", "--device", "cpu", "--steps", "1", "--quiet")
    assert cli(["train", "--from", "demo", *files]) == 0
    run = Run.open(tmp_path / "runs" / "en-fr")
    assert run.settings.train.base == "demo"
    assert '"note"' in run.log.read_text()
    assert "to teach demo: " in run.log.read_text()


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["model.width=32"], "model.width = 32: .*run has 16, and its weights need that; leave the setting out"),
        (["text.size=500"], "text.size = 500: .*run has 320, and its weights need that"),
        (["text.tokenizer=word"], "text.tokenizer = word: .*run has bpe"),
        (["task=language"], "task = language: .*run has translate"),
    ],
)
def test_what_the_weights_do_not_fit_is_refused_by_its_name(base: Path, overrides: list[str], problem: str) -> None:
    with pytest.raises(RegardError, match=problem):
        taught(base, *animals(base), *overrides)


def test_a_preset_beside_a_run_to_begin_with_is_refused(base: Path) -> None:
    with pytest.raises(RegardError, match=r"lstm: a run that begins with the weights of .*has its settings; name no"):
        fitted("lstm", f"train.base={base}")
    with pytest.raises(ModelError, match="no such folder"):
        taught(base / "nowhere", "data.corpus=fable:fr")


def test_dropout_is_not_in_the_weights(base: Path) -> None:
    assert taught(base, *animals(base), "model.dropout=0.3").model.dropout == 0.3


def test_weights_that_have_learned_take_a_small_part_of_the_rate_and_few_steps(base: Path) -> None:
    made, reason = fitted("", f"train.base={base}", *animals(base), device="cpu")
    assert made.train.rate == pytest.approx(1.2e-4)
    assert made.train.steps == 100
    assert made.train.warmup == 10
    assert made.train.schedule == "cosine"
    assert f"to teach {base}: " in reason
    assert "a rate of 0.00012 that falls to zero" in reason


def test_weights_that_have_changed_since_the_run_was_prepared_are_refused(tmp_path: Path) -> None:
    start(tmp_path / "base", small.settings("gru", "train.steps=2"), small.Notes(), device="cpu")
    settings = taught(tmp_path / "base", "data.corpus=fable:fr", "data.pairs=50")
    preflight(tmp_path / "new", settings, device="cpu")
    resume(tmp_path / "base", small.Notes(), device="cpu", more="5")
    with pytest.raises(ModelError, match="its best weights are others than when this run was made; begin again"):
        resume(tmp_path / "new", small.Notes(), device="cpu")


EXACT = {
    "whole": ("train.average={kind='moving'}",),
    "lora": ("train.average={kind='moving'}", "train.adapt={kind='lora', rank=3}", "train.keep=1"),
    "frozen": ("train.freeze=encoder", "train.average={kind='last', count=2}"),
}


@pytest.mark.parametrize("way", EXACT)
def test_killed_and_resumed_it_ends_bit_for_bit_where_it_would_have(way: str, base: Path, tmp_path: Path) -> None:
    given = (f"train.base={base}", *QUICK, *animals(base), "train.validate_every=2", *EXACT[way])
    log = tmp_path / "killed" / "log.jsonl"
    child = begun("train", *given, "--out", str(tmp_path / "killed"), "--device", "cpu")
    while child.exitcode is None and not (log.exists() and log.read_text().count('"validation"') > 1):
        time.sleep(0.01)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert resume(tmp_path / "killed", small.Notes(), device="cpu").progress.step == 12
    start(tmp_path / "whole", fitted("", *given, device="cpu")[0], small.Notes(), device="cpu")
    assert small.weights(tmp_path / "killed") == small.weights(tmp_path / "whole")


def test_killed_before_its_first_checkpoint_it_begins_again(base: Path, tmp_path: Path) -> None:
    settings = taught(base, *animals(base))
    preflight(tmp_path / "prepared", settings, device="cpu")
    assert not (tmp_path / "prepared" / "checkpoints").exists()
    resume(tmp_path / "prepared", small.Notes(), device="cpu")
    start(tmp_path / "whole", settings, small.Notes(), device="cpu")
    assert small.weights(tmp_path / "prepared") == small.weights(tmp_path / "whole")


def test_adapters_are_merged_into_all_that_is_kept(base: Path, tmp_path: Path) -> None:
    """The base stays frozen, the matrices of the layers change by a matrix of the rank, and a reader sees weights."""
    settings = taught(base, *animals(base), "train.adapt={kind='lora', rank=3}", "train.rate=0.05", "train.keep=1")
    notes = small.Notes()
    start(tmp_path / "new", settings, notes, device="cpu")
    run = Run.open(tmp_path / "new")
    before, after = (checkpoint.load_trained(run.checkpoints / name) for name in ("step-0", "step-12"))
    changed = {name for name, tensor in before.items() if name.startswith("model.") and not after[name].equal(tensor)}
    assert changed == {name for name in before if ".layers." in name and name.endswith("weight") and "norm" not in name}
    for name in changed:
        ranks = torch.linalg.matrix_rank((after[name] - before[name]).double(), rtol=1e-4)
        assert 1 <= int(ranks) <= 3
    assert notes.validations[-1].loss < notes.validations[0].loss - 0.05
    assert len(checkpoint.load(run.checkpoints / "step-12").optimizer) == 3 * 2 * len(changed)
    assert load(tmp_path / "new").translate("the cat").text


def test_frozen_parts_stay_and_the_optimizer_does_not_hold_them(base: Path, tmp_path: Path) -> None:
    settings = taught(base, *animals(base), "train.freeze=['encoder.layers', 'embeddings']", "train.keep=9")
    start(tmp_path / "new", settings, small.Notes(), device="cpu")
    run = Run.open(tmp_path / "new")
    before, last = weights_of(run.checkpoints / "step-0"), checkpoint.load(run.checkpoints / "step-12")
    same = {name for name, tensor in before.items() if last.weights[name].equal(tensor)}
    assert same == {name for name in before if name.startswith("model.encoder.layers") or ".embedding." in name}
    assert len(last.optimizer) == 3 * (len(before) - len(same))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["train.freeze=encode"], "train.freeze = encode: no such part; did you mean 'encoder'"),
        (["train.freeze=encoder,decoder"], "train.freeze = encoder, decoder: leaves nothing that learns; freeze less"),
        (["train.freeze=encoder.layers,decoder.layers", "train.adapt.kind=lora"], "and here is none that learns"),
        (["train.adapt={kind='lora', rank=0}"], "train.adapt.rank = 0: not valid"),
    ],
)
def test_what_cannot_learn_is_refused(overrides: list[str], problem: str, base: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=problem):
        start(tmp_path / "new", taught(base, *animals(base), *overrides), small.Notes(), device="cpu")
    assert not (tmp_path / "new").exists()


def test_adapters_need_weights_to_add_to() -> None:
    with pytest.raises(RegardError, match=r"train.adapt.kind = lora: adds to trained weights; begin with"):
        small.settings("transformer-tiny", "train.adapt.kind=lora")


def test_adapters_cannot_go_on_without_what_they_add_to(base: Path, tmp_path: Path) -> None:
    settings = taught(base, *animals(base), "train.adapt.kind=lora")
    start(tmp_path / "new", settings, small.Notes(), device="cpu")
    shutil.rmtree(tmp_path / "new" / "checkpoints" / "step-0")
    with pytest.raises(ModelError, match=r"step-0/manifest.json: missing or damaged"):
        resume(tmp_path / "new", small.Notes(), device="cpu", more="+5")


def test_a_general_test_set_is_measured_beside_the_own_and_against_the_beginning(base: Path, tmp_path: Path) -> None:
    """In the log, in what is said, in the report; and a resumed training remembers the beginning."""
    settings = taught(base, *animals(base), "data.general=fable:fr", "data.words=8", "train.rate=0.05")
    notes = small.Notes()
    start(tmp_path / "new", settings, notes, device="cpu")
    first, *_, last = notes.validations
    assert first.general_loss == first.general_before == last.general_before
    assert first.general_loss != first.loss
    assert first.forgotten == 0.0
    assert last.forgotten is not None
    assert last.forgotten > 0.05
    assert f"({last.forgotten:+.3f} since the beginning)  BLEU" in validation_line(last)
    again = small.Notes()
    resume(tmp_path / "new", again, device="cpu", more="+1")
    assert again.validations[-1].general_before == first.general_loss
    learned = learning(Run.open(tmp_path / "new"))
    assert learned.validations[0].general_loss == first.general_loss


@pytest.mark.parametrize(
    ("task", "name"), [("translate", "BLEU"), ("language", "perplexity"), ("tag", "accuracy"), ("classify", "accuracy")]
)
def test_a_general_test_set_goes_with_every_task(task: str, name: str, tmp_path: Path) -> None:
    preset = "gru" if task == "language" else "transformer-tiny"
    notes = small.Notes()
    settings = small.settings(preset, f"task={task}", "data.general=fable:fr", "train.steps=2")
    start(tmp_path / "run", settings, notes, device="cpu")
    assert notes.validations[-1].name == name
    assert notes.validations[-1].general_loss == pytest.approx(notes.validations[-1].loss)
    assert notes.validations[-1].general_score == pytest.approx(notes.validations[-1].score)
    assert notes.validations[-1].forgotten is None


def test_files_of_a_general_test_set_must_be_there(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegardError, match=r"nowhere.en: cannot be read"):
        start(tmp_path / "new", taught(base, *animals(base), "data.general=nowhere.en,nowhere.fr"), small.Notes())
    monkeypatch.chdir(base.parent)
    settings = absolute(taught(base, *animals(base), "data.general=valid.en,valid.fr"))
    assert settings.data.general == tuple(str(base.parent / name) for name in ("valid.en", "valid.fr"))


def test_new_pieces_begin_as_the_mean_of_the_old_ones(base: Path, tmp_path: Path) -> None:
    notes = small.Notes()
    start(
        tmp_path / "new",
        taught(base, *animals(base), "train.graft=17", "train.rate=0.01", "train.keep=9"),
        notes,
        device="cpu",
    )
    run = Run.open(tmp_path / "new")
    old, new = (Tokenizers.load(folder / "tokenizer").source for folder in (base, tmp_path / "new"))
    assert new.size == old.size + 17
    assert "grafted 17 pieces onto the vocabulary" in notes.lines
    before, first = weights_of(best_checkpoint(Run.open(base))), weights_of(run.checkpoints / "step-0")
    name = next(name for name in before if name.endswith("encoder.embedding.weight"))
    assert torch.equal(first[name][: old.size], before[name])
    for number, rows in enumerate(origins(old, new), old.size):
        assert "".join(old.token(row) for row in rows) == new.token(number)
        torch.testing.assert_close(first[name][number], before[name][rows].mean(0))
    assert notes.validations[-1].loss < notes.validations[0].loss
    written = load(tmp_path / "new").translate("the bear ate the honey", Options(prefix="la rivière"))
    assert written.text.startswith("la rivière")  # what it writes of its own may be nothing yet


def test_a_resumed_training_has_its_grafted_pieces(base: Path, tmp_path: Path) -> None:
    settings = taught(base, *animals(base), "train.graft=5")
    preflight(tmp_path / "prepared", settings, device="cpu")
    resume(tmp_path / "prepared", small.Notes(), device="cpu")
    start(tmp_path / "whole", settings, small.Notes(), device="cpu")
    assert small.weights(tmp_path / "prepared") == small.weights(tmp_path / "whole")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["train.graft=5", "train.adapt.kind=lora"], "train.graft = 5: new pieces need embeddings that learn"),
        (["train.graft=5", "train.freeze=embeddings"], "train.graft = 5: new pieces need embeddings that learn"),
    ],
)
def test_new_pieces_must_learn(overrides: list[str], problem: str, base: Path) -> None:
    with pytest.raises(RegardError, match=problem):
        taught(base, *animals(base), *overrides)
    with pytest.raises(RegardError, match=r"train.graft = 5: adds to the vocabulary of another run; begin with one"):
        small.settings("gru", "train.graft=5")


def test_bytes_take_no_more_pieces(tmp_path: Path) -> None:
    start(tmp_path / "base", small.settings("gru", "text.tokenizer=byte", "train.steps=1"), small.Notes(), device="cpu")
    settings = taught(tmp_path / "base", "data.corpus=fable:fr", "data.pairs=30", "train.graft=5")
    with pytest.raises(RegardError, match=r"train.graft = 5: a tokenizer of kind 'byte' cannot get more pieces; use 0"):
        start(tmp_path / "new", settings, small.Notes(), device="cpu")
    assert not (tmp_path / "new").exists()


def test_what_an_import_forbids_does_not_add_up_in_the_loss(base: Path, tmp_path: Path) -> None:
    """Its bias, times the share that smoothing gives every piece."""
    shutil.copytree(base, tmp_path / "base")
    path = best_checkpoint(Run.open(tmp_path / "base"))
    saved = checkpoint.load(path)
    weights = {name: tensor.clone() for name, tensor in saved.weights.items()}
    weights["model.decoder.output.bias"][:2] = NEVER
    shutil.rmtree(path)
    belonging = {"settings": {}, "files": {}}
    checkpoint.save(replace(saved, weights=weights, average={}), path.parent, belonging)
    notes = small.Notes()
    start(tmp_path / "new", taught(tmp_path / "base", *animals(base), "train.smoothing=0.1"), notes, device="cpu")
    assert notes.moments[-1].loss < 10
