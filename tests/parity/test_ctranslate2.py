"""CTranslate2 writes what our own search writes, from the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tiny
from regard.decode.constraints import Prefix
from regard.decode.engines.ctranslate2 import to_ctranslate2, unfit
from regard.decode.engines.engine import Engine
from regard.decode.rules import Beam
from regard.decode.search import Hypothesis, search
from regard.errors import ModelError, ResourceError, SettingsError
from regard.models.generator import EncoderDecoder
from regard.nn.embeddings import Embedding
from regard.tasks.engines import CTranslate2, ends_plainly
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK, Vocabulary
from regard.text.words import SpaceTokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

VARIANTS = {
    "as it comes": (),
    "norm after": ("model.norm_place=after",),
    "rms, swiglu": ("model.norm=rms", "model.activation=swiglu"),
    "gelu, learned": ("model.activation=gelu", "model.positions=learned"),
    "silu, no positions": ("model.activation=silu", "model.positions=none"),
    "rotary": ("model.positions=rotary", "model.width=24"),
    "dot": ("model.decoder_attention.score=dot", "model.cross_attention.score=dot"),
    "general": ("model.encoder_attention.score=general", "model.cross_attention.score=general"),
    "all tied": ("model.tie=all",),
    "zero start, embedding norm": ("model.start=zero", "model.embedding_norm=true"),
    "fairseq": ("model.interleaved=false", "model.frequencies=marian", "model.first_position=2"),
    "no scale, epsilon": ("model.embedding_scale=false", "model.norm_epsilon=0.01"),
}
PLACES = 89
PLAIN = Frame()


def prepared(*overrides: str) -> EncoderDecoder:
    """Random weights with clear preferences, and no probability for what search never writes."""
    model = tiny.settings("transformer-small", *overrides).model
    torch.manual_seed(7)
    size = tiny.TARGET_SIZE if model.tie == "all" else tiny.SOURCE_SIZE
    built = tiny.regard.encoder_decoder(model, size, tiny.TARGET_SIZE).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.dim() > 1:
                parameter.mul_(1.7)
        built.decoder.output.bias[[PAD, START, UNK]] = -40.0
        built.decoder.output.bias[END] = 3.0
    return built


def words(size: int) -> SpaceTokenizer:
    return SpaceTokenizer(Vocabulary((*SPECIAL_TOKENS, *(f"w{number}" for number in range(4, size)))))


def engine_of(model: EncoderDecoder, folder: Path, quantization: str = "float32", frame: Frame = PLAIN) -> CTranslate2:
    embedding = model.encoder.embedding
    assert isinstance(embedding, Embedding)
    sides = words(len(embedding.weight)), words(tiny.TARGET_SIZE)
    tokens = [[side.token(number) for number in range(side.size)] for side in sides]
    both = Tokenizers(*sides, frame=frame)
    end = ends_plainly(both)
    to_ctranslate2(model, *tokens, folder, end=end, quantization=quantization, places=PLACES)
    program = ctranslate2.Translator(str(folder), "cpu", compute_type=quantization, intra_threads=1)
    return CTranslate2(program, both, places=PLACES)


def sources(count: int) -> list[list[int]]:
    lengths = [2 + row % 11 for row in range(count)]
    ids = tiny.rows(lengths, tiny.SOURCE_SIZE, 5).tolist()
    return [[*row[:length], END] for row, length in zip(ids, lengths, strict=True)]


def native(
    model: EncoderDecoder, rows: list[list[int]], limits: list[int], rule: Beam, begin: tuple[int, ...] = ()
) -> list[list[Hypothesis]]:
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    constraints = [Prefix([begin] * len(rows), given=len(begin))] if begin else []
    return search(model, *model.start(padded), torch.tensor(limits), rule=rule, constraints=constraints)


@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
def test_greedy_and_beam_write_the_same_tokens_with_the_same_scores(overrides: tuple[str, ...], tmp_path: Path) -> None:
    model = prepared(*overrides)
    engine: Engine = engine_of(model, tmp_path)
    rows = sources(29)
    limits = [31] * len(rows)
    compared = 0
    for rule in (Beam(1), Beam(5, best=3), Beam(3, length_penalty=0.6, best=2), Beam(4, length_penalty=0.0, best=4)):
        expected = native(model, rows, limits, rule)
        for ours, theirs in zip(expected, engine.search(rows, limits, rule, 997), strict=True):
            if theirs:
                compared += 1
                assert [each.tokens for each in theirs] == [each.tokens for each in ours]
                assert [each.score for each in theirs] == pytest.approx([each.score for each in ours], abs=1e-4)
                logs = [each.log_probability for each in ours]
                assert [each.log_probability for each in theirs] == pytest.approx(logs, abs=1e-3)
    assert compared > 29  # of 116; the others came to their limit


def test_a_source_with_a_frame_and_a_target_that_is_begun_are_searched_alike(tmp_path: Path) -> None:
    """But for an output with nothing behind its beginning, which CTranslate2 does not always consider."""
    model = prepared()
    frame = Frame(before=("w9",), after=("<end>", "w11"), begin=("w7", "w5"))
    engine = engine_of(model, tmp_path, frame=frame)
    rows = [[9, *row, 11] for row in sources(23)]
    limits, compared = [31] * len(rows), 0
    for rule in (Beam(1), Beam(5, length_penalty=0.0, best=2)):
        expected = native(model, rows, limits, rule, (7, 5))
        for ours, theirs in zip(expected, engine.search(rows, limits, rule, 997), strict=True):
            assert ours[0].tokens[:2] == [7, 5]
            if theirs and (len(ours[0].tokens) > 2 or len(theirs[0].tokens) == 2):
                compared += 1
                assert [each.tokens for each in theirs] == [each.tokens for each in ours]
                logs = [each.log_probability for each in ours]
                assert [each.log_probability for each in theirs] == pytest.approx(logs, abs=1e-3)
    assert compared > 9


def test_a_search_that_comes_to_its_limit_is_given_back(tmp_path: Path) -> None:
    model = prepared()
    with torch.no_grad():
        model.decoder.output.bias[END] = -40.0  # never ends by itself
    engine, rows = engine_of(model, tmp_path), sources(5)
    for rule in (Beam(1), Beam(3)):
        assert engine.search(rows, [7, 9, 7, 11, 7], rule, 997) == [[]] * 5


def test_what_is_longer_than_the_positions_that_were_written_out_is_given_back(tmp_path: Path) -> None:
    engine, rows = engine_of(prepared(), tmp_path), sources(2)
    assert engine.search(rows, [PLACES + 1, PLACES + 1], Beam(1), 997) == [[], []]
    assert engine.search([[5] * PLACES + [END]], [7], Beam(1), 997) == [[]]


def same_tokens(model: EncoderDecoder, folder: Path, least: int) -> None:
    rows, limits = sources(17), [31] * 17
    found = engine_of(model, folder).search(rows, limits, Beam(1), 997)
    expected = native(model, rows, limits, Beam(1))
    ended = [(theirs[0].tokens, ours[0].tokens) for theirs, ours in zip(found, expected, strict=True) if theirs]
    assert len(ended) > least
    assert all(theirs == ours for theirs, ours in ended)


def test_an_embedding_with_another_scale_is_multiplied_in(tmp_path: Path) -> None:
    model = prepared()
    assert isinstance(model.encoder.embedding, Embedding)
    model.encoder.embedding.scale = 3.0
    same_tokens(model, tmp_path, 7)


def test_a_last_norm_that_is_not_there_is_not_asked_for(tmp_path: Path) -> None:
    same_tokens(prepared("model.final_norm=no", "model.tie=none"), tmp_path, 3)


def test_int8_is_close(tmp_path: Path) -> None:
    model, rows = prepared(), sources(29)
    found = engine_of(model, tmp_path, "int8").search(rows, [31] * 29, Beam(1), 997)
    expected = native(model, rows, [31] * 29, Beam(1))
    first = [(ours[0].tokens[:1], theirs[0].tokens[:1]) for ours, theirs in zip(expected, found, strict=True) if theirs]
    assert sum(ours == theirs for ours, theirs in first) > 0.7 * len(first)


@pytest.mark.parametrize(
    ("preset", "override", "line"),
    [
        ("bahdanau", "model.dropout=0.0", "model.kind = recurrent: CTranslate2 computes Transformers alone"),
        ("transformer-small", "model.norm=batch", "model.norm = batch: CTranslate2 has layer and RMS norm alone"),
        ("transformer-small", "model.autoregression=ssru", "model.autoregression = ssru: CTranslate2 has attention"),
        ("transformer-small", "model.encoder_attention.score=additive", "model.encoder_attention.score = additive"),
        ("transformer-small", "model.cross_attention.score=concat", "model.cross_attention.score = concat"),
        ("transformer-small", "model.decoder_attention.score=cosine", "model.decoder_attention.score = cosine"),
        ("transformer-small", "model.cross_attention.normaliser=relu", "model.cross_attention.normaliser = relu"),
        ("transformer-small", "model.cross_attention.selection=hard", "model.cross_attention.selection = hard"),
        ("transformer-small", "model.cross_attention.window.kind=monotonic", "model.cross_attention.window"),
    ],
)
def test_what_ctranslate2_does_not_compute_is_refused(preset: str, override: str, line: str, tmp_path: Path) -> None:
    model = tiny.translator(preset, override)
    assert unfit(model).startswith(line)
    with pytest.raises(ModelError, match=line.split(" = ", maxsplit=1)[0]):
        to_ctranslate2(model, ["a"], ["a"], tmp_path)


def test_a_norm_after_all_others_is_refused() -> None:
    model = tiny.translator("transformer-small", "model.norm_place=after", "model.final_norm=yes")
    assert unfit(model).startswith("model.final_norm = yes: with norms after the sublayers CTranslate2 has none")


def test_a_kind_of_numbers_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="quantization = int7: no such kind of numbers; did you mean 'int"):
        to_ctranslate2(prepared(), ["a"], ["a"], tmp_path, quantization="int7")


def test_letters_are_refused(tmp_path: Path) -> None:
    model = prepared()
    model.encoder.embedding = torch.nn.Identity()
    with pytest.raises(ModelError, match=r"model\.letters, text\.source: CTranslate2 reads plain ids alone"):
        to_ctranslate2(model, ["a"], ["a"], tmp_path)


def test_without_the_package_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2.specs", None)
    with pytest.raises(ResourceError, match=r"needs the package ctranslate2; pip install ctranslate2"):
        to_ctranslate2(prepared(), ["a"], ["a"], tmp_path)
