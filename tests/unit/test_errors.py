"""Bad input gets one clear line of the right kind."""

from __future__ import annotations

import errno
import io
import os
import pickle
import re
from pathlib import Path

import pytest
import torch
from rich.text import Text
from safetensors import SafetensorError

import regard
import tiny
from regard.cli.display import PlainLines
from regard.cli.main import run as cli
from regard.cli.streams import show
from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError, did_you_mean, failure
from regard.nn.attention import Attention, InnerScore, Projections
from regard.nn.embeddings import Embedding


def line(error: pytest.ExceptionInfo[RegardError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_each_kind_of_error_has_its_exit_code() -> None:
    kinds = (RegardError, SettingsError, DataError, ModelError, ResourceError)
    assert [kind.exit_code for kind in kinds] == [1, 2, 3, 4, 5]


def test_a_message_is_always_one_line() -> None:
    assert str(RegardError("first\n   second")) == "first second"


def test_a_hint_is_beside_the_line_and_survives_another_process() -> None:
    error = DataError("a: wrong; b would be right", hint="regard data check a b")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.hint) == ("a: wrong; b would be right", "regard data check a b")
    assert DataError("a").hint == ""


def test_the_nearest_name_is_offered_or_all_of_them() -> None:
    assert did_you_mean("heds", ["heads", "hidden"]) == "did you mean 'heads'?"
    assert did_you_mean("HEADS", ["heads", "hidden"]) == "did you mean 'heads'?"
    assert did_you_mean("en-fr", ["EN-FR", "EN-FR-2"]) == "did you mean 'EN-FR'?"
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"
    assert did_you_mean("zzz", map(str, range(1000, 1050))).endswith(", 1039 and 10 more")


def refused(number: int) -> OSError:
    return OSError(number, os.strerror(number), "x")


KINDS: list[tuple[BaseException, int, str]] = [
    (refused(errno.ENOSPC), 5, "x: the disk is full; free some space, or choose another place"),
    (refused(errno.EROFS), 5, "x: can only be read from here; choose another place"),
    (refused(errno.EACCES), 5, "x: permission denied; choose another place, or change who may read and write it"),
    (refused(errno.EISDIR), 5, "x: is a folder where a file should be; move it away, or choose another name"),
    (refused(errno.ENAMETOOLONG), 5, "x: a name too long for this disk; choose a shorter one"),
    (refused(errno.ENOENT), 3, "x: is not there; check the name"),
    (refused(errno.ENOMEM), 5, "memory: not enough of it"),
    (refused(errno.EXDEV), 5, "x: Invalid cross-device link"),
    (OSError(errno.ENOSPC, "No space left"), 5, "disk: the disk is full"),
    (OSError("Not a gzipped file"), 3, "disk: cannot be read; Not a gzipped file"),
    (MemoryError(), 5, "memory: not enough of it; take a smaller batch, beam or model, or shorter text"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 5, "memory: not enough of it"),
    (RuntimeError("can't start new thread"), 5, "threads: the system has no more processes, threads"),
    (torch.OutOfMemoryError("CUDA out of memory. Tried"), 5, "memory: not enough of it"),
    (SafetensorError("Error: I/O error: No space left on device (os error 28)"), 5, "disk: the disk is full"),
    (SafetensorError("Error while deserializing header"), 4, "weights: not a safetensors file, or a damaged one"),
    (DataError("as it is"), 3, "as it is"),
    (TimeoutError(errno.ETIMEDOUT, "Connection timed out", "x"), 5, "x: Connection timed out"),
    (BlockingIOError(errno.EAGAIN, "cannot fork"), 5, "disk: the system has no more processes"),
    (BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 7), 5, "output: takes no more now"),
]


@pytest.mark.parametrize(("error", "code", "words"), KINDS, ids=lambda value: str(value)[:40])
def test_what_the_system_refuses_is_one_line_and_a_code_by_its_kind(error: Exception, code: int, words: str) -> None:
    known = failure(error)
    assert known is not None
    assert known.exit_code == code
    assert str(known).startswith(words)


NONE_OF_THE_DISK: list[Exception] = [
    TimeoutError(),
    ConnectionResetError(errno.ECONNRESET, "reset"),
    io.UnsupportedOperation("read"),
]


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("shapes differ"), ZeroDivisionError(), RecursionError(), *NONE_OF_THE_DISK]
)
def test_anything_else_is_a_bug_of_ours(error: Exception) -> None:
    assert failure(error) is None


IN_THE_WAY = {  # each writes to a place below a file
    "translate": ["translate", "demo", "the cat", "--out", "{file}/x"],
    "export": ["runs", "export", "demo", "{file}/x.tar"],
    "make": ["data", "make", "fable", "{file}/x", "--pairs", "3", "--held-out", "3"],
    "walk": ["walk", "demo", "the cat", "--out", "{file}/x.md"],
    "train": ["train", "gru", "--corpus", "fable:fr", "--out", "{file}/x", "data.pairs=30"],
    "explain": ["explain", "demo", "the cat", "--out", "{file}/x.html"],
}


@pytest.mark.usefixtures("with_demo")
@pytest.mark.parametrize("verb", IN_THE_WAY)
def test_every_verb_says_the_same_of_a_place_that_cannot_be(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert cli([word.replace("{file}", str(tmp_path / "file")) for word in IN_THE_WAY[verb]]) == 5
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(str(tmp_path / "file"))
    assert ": is a file where a folder should be, or below one; move it away, or choose another name" in last


SETTINGS = {
    "model.heads=7": "transformer-tiny: model.heads = 7: does not divide the width 128; "
    "one of 1, 2, 4, 8, 16, 32, 64, 128 would",
    "model.head=8": "transformer-tiny: model.head = 8: no such setting; did you mean 'heads'?",
    "model.depht=4": "transformer-tiny: model.depht = 4: no such setting; did you mean 'depth'?",
    "modle.heads=8": "transformer-tiny: modle = {'heads': 8}: no such setting; did you mean 'model'?",
    "model.kind=transfomer": "transformer-tiny: model.kind = transfomer: no such kind; did you mean 'transformer'?",
    "model={}": "transformer-tiny: model.kind: missing; known: recurrent, transformer",
    "train.consistency=rdrop": "transformer-tiny: train.consistency = 'rdrop': has settings of its own; write "
    "train.consistency.kind=rdrop",
    "model=gru": "transformer-tiny: model = 'gru': has settings of its own; write model.kind=…",
    "text.source=words": "transformer-tiny: text.source = 'words': has settings of its own; write text.source.kind=…",
    "model.norm=layers": "transformer-tiny: model.norm = layers: not known; did you mean 'layer'?",
    "model.encoder_depth=0": "transformer-tiny: model.encoder_depth = 0: not valid; "
    "should be greater than or equal to 1",
    "model.hidden=many": "transformer-tiny: model.hidden = 'many': not valid; should be a valid integer",
    "model.cross_attention.window.kind=local": "transformer-tiny: model.cross_attention.window.kind = local: "
    "not known; known: monotonic, none, predicted",
    "model.cross_attention.score=dots": "transformer-tiny: model.cross_attention.score = dots: not known; "
    "did you mean 'dot'?",
    "width=64": "transformer-tiny: width = 64: no such setting; did you mean 'model.width'?",
    "beam=3": "transformer-tiny: beam = 3: no such setting; "
    "known: about, data, forecast, model, pool, task, text, train",
    "model.heads.more=1": "model.heads.more=1: 'heads' is a value, not a table, and has nothing inside it to set",
    "model.heads": "model.heads: not an override; write it as model.depth=4",
}


@pytest.mark.parametrize("override", SETTINGS)
def test_a_bad_setting_is_named(override: str) -> None:
    with pytest.raises(SettingsError) as error:
        regard.load_settings("transformer-tiny", override)
    assert line(error) == SETTINGS[override]


MEANINGLESS = [
    ("gru", ["model.bridge=zero"], "model.bridge = zero: the decoder would not get the source at all"),
    ("bahdanau", ["model.bridge=copy"], "model.bridge = copy: a bidirectional encoder ends with two states of 256"),
    ("bahdanau", ["model.reverse=true"], "model.reverse = true: a bidirectional encoder reads both ways already"),
    ("lstm", ["model.tie=target", "model.hidden=128"], "model.tie = target: the output layer reads states of 128"),
    (
        "luong-dot",
        ["model.decoder.attention.heads=3"],
        "model.decoder.attention.heads = 3: does not divide the width 256",
    ),
    (
        "luong-dot",
        ["model.decoder.attention={heads=3, projected=true}"],
        "model.decoder.attention.heads = 3: does not divide the width 256",
    ),
    (
        "luong-dot",
        ["model.bidirectional=true", "model.bridge=dense"],
        "attention.score = dot: needs queries and keys of one width, not 256 and 512",
    ),
    (
        "luong-hard",
        ["model.decoder.attention.normaliser=relu"],
        "attention.selection = hard: samples from the weights, but relu weights may all be zero",
    ),
    ("lstm", ["train.step=compiled"], "train.step = compiled: not known; did you mean 'compiled-graph'?"),
    (
        "transformer-tiny",
        ["model.positions=rotary", "model.width=12"],
        "model.positions = rotary: rotates pairs of features",
    ),
    (
        "transformer-tiny",
        ["model.positions=rotary", "model.encoder_attention.score=additive"],
        "model.encoder_attention.score = additive: rotary positions need a score with an inner product",
    ),
    (
        "transformer-tiny",
        ["model.decoder_attention.window={kind='predicted'}"],
        "model.decoder_attention.window.kind = predicted: needs the whole sequence",
    ),
    (
        "transformer-tiny",
        ["model.positions=learned", "model.first_position=2"],
        "model.first_position = 2: is for sinusoidal positions; for learned use 0",
    ),
    (
        "transformer-tiny",
        ["model.autoregression=ssru", "model.decoder_attention.score=dot"],
        "model.autoregression = ssru: a decoder layer then has no self-attention",
    ),
]


@pytest.mark.parametrize(("preset", "overrides", "expected"), MEANINGLESS)
def test_a_combination_without_meaning_is_refused_with_the_reason(
    preset: str, overrides: list[str], expected: str
) -> None:
    with pytest.raises(SettingsError) as error:
        regard.load_settings(preset, *overrides)
    assert line(error).startswith(f"{preset}: {expected}")


def test_an_unknown_preset_gets_its_nearest_neighbour() -> None:
    with pytest.raises(SettingsError) as error:
        regard.load_settings("transfomer-tiny")
    assert line(error) == "preset = transfomer-tiny: no such preset; did you mean 'transformer-tiny'?"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml: no such file; give a TOML file or one of: rnn, gru"):
        regard.load_settings(tmp_path / "nowhere.toml")


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("model = [")
    with pytest.raises(SettingsError, match=r"broken\.toml: not TOML; "):
        regard.load_settings(path)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes("about = 'é'".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"latin\.toml: not UTF-8 at byte 9; save it as UTF-8"):
        regard.load_settings(path)


def test_a_file_without_a_model_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("")
    with pytest.raises(SettingsError, match=r"empty\.toml: model: missing; it has no default"):
        regard.load_settings(path)


def test_a_joint_embedding_needs_a_joint_vocabulary() -> None:
    with pytest.raises(SettingsError, match=r"model\.tie = all: needs one joint vocabulary, but the source has 23"):
        regard.encoder_decoder(tiny.settings("transformer-base").model, 23, 29)


def test_a_language_model_cannot_attend_to_a_source() -> None:
    with pytest.raises(SettingsError, match=r"model\.decoder\.kind = bahdanau: attends to a source"):
        regard.language_model(tiny.settings("bahdanau").model, 23)


def test_a_language_model_has_no_source_to_read_backwards() -> None:
    with pytest.raises(SettingsError, match=r"model\.reverse = true: is about reading a source"):
        regard.language_model(tiny.settings("lstm-reversed").model, 23)


def test_a_transformer_has_no_final_state_to_pool() -> None:
    with pytest.raises(SettingsError, match="pool = final: a Transformer encoder has no final state"):
        regard.labeller(tiny.settings("transformer-tiny").model, 23, 5, "final")


def test_a_labeller_has_nobody_to_annotate_for() -> None:
    with pytest.raises(SettingsError, match=r"model\.annotations = dense: is what a decoder attends to"):
        regard.labeller(tiny.settings("gru", "model.annotations=dense").model, 23, 5)


def test_an_unknown_pool_gets_its_nearest_neighbour() -> None:
    with pytest.raises(SettingsError, match="pool = maen: no such pool; did you mean 'mean'"):
        regard.labeller(tiny.settings("gru").model, 23, 5, "maen")  # type: ignore[arg-type]


def test_heads_that_do_not_divide_the_width_are_refused_by_the_mathematics_too() -> None:
    with pytest.raises(SettingsError, match="heads = 3: does not divide the width 20; one of 1, 2, 4, 5, 10, 20 would"):
        Attention(InnerScore(), heads=3, projections=Projections(20, 20, 20))
    with pytest.raises(SettingsError, match="heads = 3: does not divide the width 20"):
        Attention(InnerScore(), heads=3).remember(torch.zeros(1, 2, 20))


@pytest.mark.parametrize("bad", [-1, tiny.SOURCE_SIZE])
def test_an_id_outside_the_vocabulary_is_named(bad: int) -> None:
    source = torch.tensor([[5, bad, 6]])
    with pytest.raises(DataError) as error:
        tiny.translator("lstm")(source, torch.tensor([[1, 4]]))
    assert line(error) == f"id = {bad}: outside the vocabulary; ids run from 0 to {tiny.SOURCE_SIZE - 1}"


SOURCE, TARGET = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 4]])
MASKS = {
    "mask = torch.bool of (1, 2): does not fit (1, 3) tokens": torch.ones(1, 2, dtype=torch.bool),
    "mask = torch.int64 of (1, 3): does not fit (1, 3) tokens": torch.ones(1, 3, dtype=torch.int64),
    "mask[0, 0] = False: the row begins with padding; pad on the right": torch.tensor([[False, True, True]]),
    "mask[0] = [1, 0, 1]: padding between tokens; pad on the right only": torch.tensor([[True, False, True]]),
}


@pytest.mark.parametrize("expected", MASKS)
@pytest.mark.parametrize("preset", ["lstm", "transformer-tiny"])
def test_a_mask_that_does_not_fit_is_described(preset: str, expected: str) -> None:
    with pytest.raises(DataError) as error:
        tiny.translator(preset)(SOURCE, TARGET, MASKS[expected])
    assert line(error).startswith(expected)


def test_a_sequence_past_the_learned_positions_is_refused() -> None:
    model = tiny.translator("transformer-tiny", "model.positions=learned", "model.longest=4")
    with pytest.raises(DataError) as error:
        model(torch.full((1, 5), 6), TARGET)
    assert line(error) == (
        "sequence = 5 tokens: longer than the 4 learned positions; "
        "shorten it, or train with model.longest = 5 or with sinusoidal or rotary positions"
    )


def test_word_vectors_of_another_width_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"word vectors = \(2, 5\): do not fit 2 tokens of width 7; set model.width = 5"
    ):
        Embedding(11, 7).load_vectors(torch.zeros(2, 5), torch.tensor([4, 6]))


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'translater'"):
        _ = regard.translater


def test_nothing_that_was_read_commands_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of a corpus, of settings and of a log, in what people are shown."""
    strange, spaced = "\x1b[31mred\x1b]0;title\x07", "Où\u00a0vas-tu\u202f? co\u00adop \u200d\u200c"
    (tmp_path / "a").write_text(f"{strange}\x9b1m\n{strange}\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert cli(["data", "check", str(tmp_path / "a"), str(tmp_path / "a")]) == 3
    assert cli(["translate", f"{tmp_path}/{strange}", "x"]) == 4
    PlainLines().tell(strange)
    show([strange, Text(strange), Text(spaced), Text("\x9b1m")])
    assert cli(["data", "check", str(tmp_path / "a"), str(tmp_path / "a"), "--json"]) == 3
    shown = capsys.readouterr()
    assert f"{spaced}\n␣1m\n" in shown.out
    assert "red" in shown.out
    assert not re.search(r"[\x1b\x9b]", shown.out.replace("\x1b[0m", "") + shown.err)
