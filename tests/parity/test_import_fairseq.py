"""fairseq's checkpoints, without executing them: real ones, and pickles that would do something."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from importing import WORDS, checkpoint, imported, weights
from real_models import real
from regard.convert.pickles import Inert, LazyTensor, Record, TorchFile
from regard.errors import ModelError
from regard.runs.folder import origin_of
from regard.tasks.load import load, open_translator
from regard.text.vocabulary import END, START


def written_out(found: dict[str, Tensor], source: list[int], target: list[int]) -> Tensor:
    """The same model by torch's own modules: positions begin with 2, sines come before cosines, norms before."""
    width = found["encoder.embed_tokens.weight"].shape[1]

    def placed(side: str, ids: list[int]) -> Tensor:
        half = width // 2
        rates = torch.exp(-torch.arange(half) * torch.log(torch.tensor(10000.0)) / (half - 1))
        angles = torch.arange(2, 2 + len(ids))[:, None] * rates
        return found[f"{side}.embed_tokens.weight"][ids] * width**0.5 + torch.cat([angles.sin(), angles.cos()], 1)

    def linear(name: str, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, found[f"{name}.weight"], found[f"{name}.bias"])

    def norm(name: str, x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (width,), found[f"{name}.weight"], found[f"{name}.bias"])

    def attend(name: str, x: Tensor, memory: Tensor, *, causal: bool = False) -> Tensor:
        q, k, v = (linear(f"{name}.{part}_proj", each) for part, each in (("q", x), ("k", memory), ("v", memory)))
        heads = [each.reshape(len(each), 3, -1).transpose(0, 1) for each in (q, k, v)]
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)
        return linear(f"{name}.out_proj", mixed.transpose(0, 1).reshape(len(x), width))

    def feed(side: str, x: Tensor) -> Tensor:
        inner = torch.nn.functional.gelu(linear(f"{side}.layers.0.fc1", norm(f"{side}.layers.0.final_layer_norm", x)))
        return x + linear(f"{side}.layers.0.fc2", inner)

    x, name = placed("encoder", source), "encoder.layers.0.self_attn"
    seen = norm(f"{name}_layer_norm", x)
    memory = norm("encoder.layer_norm", feed("encoder", x + attend(name, seen, seen)))
    y, name = placed("decoder", target), "decoder.layers.0.self_attn"
    seen = norm(f"{name}_layer_norm", y)
    y = y + attend(name, seen, seen, causal=True)
    name = "decoder.layers.0.encoder_attn"
    y = y + attend(name, norm(f"{name}_layer_norm", y), memory)
    return norm("decoder.layer_norm", feed("decoder", y)) @ found["decoder.embed_tokens.weight"].T


@pytest.mark.parametrize("old", [False, True])
def test_a_checkpoint_computes_what_is_written_out(old: bool, tmp_path: Path) -> None:
    material = open_translator(imported(checkpoint(tmp_path / "model", old=old), tmp_path / "run"))
    source, target = material.tokenizers.read("thecat dog"), material.tokenizers.written("dog a")
    assert [material.tokenizers.source.token(number) for number in source] == ["the@@", "cat", "dog", "<end>"]
    with torch.no_grad():
        found = material.models[0](torch.tensor([source]), torch.tensor([[START, *target]]))[0]
    words = {word: number for number, word in enumerate(("<s>", "<pad>", "<end>", "<unk>", *WORDS))}
    read = [words[material.tokenizers.source.token(number)] for number in source]
    wanted = written_out(weights(), read, [2, words["dog"], words["a"]])
    for word in ("the@@", "dog", "<end>", "<s>"):
        number = END if word == "<end>" else material.tokenizers.target.id(word)
        torch.testing.assert_close(found[:, number], wanted[:, words[word]], atol=1e-5, rtol=1e-5)
    assert material.run.settings.data.languages == "aa-bb"


def test_learned_positions_begin_with_their_third_row(tmp_path: Path) -> None:
    changes = {"encoder_learned_pos": True, "decoder_learned_pos": True, "encoder_normalize_before": False}
    model = weights(learned=True, before=False)
    folder = checkpoint(
        tmp_path / "model", model=model, decoder_normalize_before=False, no_scale_embedding=True, **changes
    )
    settings = open_translator(imported(folder, tmp_path / "run")).run.settings.model
    assert (settings.positions, settings.longest, settings.norm_place) == ("learned", 20, "after")
    assert settings.embedding_norm
    assert not settings.embedding_scale


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"arch": "lstm"}, "contains no Transformer"),
        ({"decoder_learned_pos": True}, "decoder_learned_pos: differs from the encoder's"),
        ({"decoder_normalize_before": False}, "decoder_normalize_before: differs from the encoder's"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads = 2: the encoder has 3"),
        ({"source_lang": None}, "does not say which language is which; choose with --languages"),
        ({"source_lang": "../aa"}, "is not the name of a dictionary"),
        ({"source_lang": "cc"}, "is missing; the model needs it"),
        ({"activation_fn": "tanh"}, "activation_fn = tanh: not supported"),
        ({"model": {}}, "embed_tokens.weight: is missing"),
        ({"model": {n: t for n, t in weights().items() if ".fc1." not in n}}, "fc1.weight: is missing"),
        ({"model": {"encoder.embed_tokens.weight": 1}}, "contains no model"),
        ({"model": weights() | {"encoder.layers.2.fc1.bias": torch.zeros(3)}}, "not numbered consecutively"),
        ({"model": weights() | {"decoder.adapter": torch.zeros(3)}}, "decoder.adapter: no such weight"),
        ({"model": {**weights(), "encoder.embed_tokens.weight": torch.zeros(5, 12)}}, "5 rows: the dictionary has 12"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_in_one_line(changes: Any, line: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=line):
        imported(checkpoint(tmp_path / "model", **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_two_dictionaries_are_told_apart_by_their_sizes(tmp_path: Path) -> None:
    model = weights() | {"encoder.embed_tokens.weight": torch.randn(24, 12)}
    folder = checkpoint(tmp_path / "model", model=model, source_lang=None, target_lang=None)
    more = "".join(f"{word} 5\n" for word in (*WORDS, *map(str, range(9))))
    (folder / "dict.bb.txt").write_text(more, encoding="utf-8")
    assert open_translator(imported(folder, tmp_path / "run")).run.settings.data.languages == "bb-aa"


class Executes:
    def __init__(self, call: Any, *arguments: object) -> None:
        self.call = call, arguments

    def __reduce__(self) -> Any:
        return self.call


HOSTILE = {
    "system": Executes(os.system, "touch {}"),
    "eval": Executes(eval, "open('{}', 'w')"),
    "exec": Executes(exec, "open('{}', 'w')"),
    "import": Executes(__import__, "os"),
    "open": Executes(open, "{}", "w"),
    "exit": Executes(sys.exit, 3),
}


def torch_file(path: Path, program: bytes, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        for name, data in members.items():
            archive.writestr(f"archive/data/{name}", data)
    return path


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_execute_does_nothing(name: str, protocol: int, tmp_path: Path) -> None:
    harmed = tmp_path / "harmed"
    call, arguments = HOSTILE[name].call
    given = tuple(each.format(harmed) if isinstance(each, str) else each for each in arguments)
    program = pickle.dumps({"model": Executes(call, *given)}, protocol=protocol)
    file = TorchFile(torch_file(tmp_path / "x.pt", program))
    assert isinstance(file.content, Record)
    assert isinstance(file.content["model"], Inert)
    assert not harmed.exists()


def deep() -> bytes:
    """A key that takes 2^60 steps to hash."""
    key = b"N"
    for number in range(60):
        key += b"q" + bytes([number]) + b"h" + bytes([number]) + b"\x86"
    return b"\x80\x02}" + key + b"K\x01s."


BOMBS = {
    "a memo of gigabytes": b"\x80\x02Nr\xff\xff\xff\xff.",
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b".",
    "a key that takes forever": deep(),
    "a frame that is not there": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b".",
    "a number of many digits": b"I" + b"9" * 5000 + b"\n.",
    "state for a function": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}b.",
    "a storage that is none": b"\x80\x02(X\x01\0\0\0aNNNNtQ.",
    "state for a kind": b"\x80\x02ctorch\nFloatStorage\n}b.",
    "an old instance": b"(ios\nsystem\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "nothing": b"",
    "no end": b"\x80\x02N",
    "a set of sets": b"\x80\x04\x8f(\x8f\x90.",
    "a frozen set": b"\x80\x04(K\x01\x91.",
    "an object with names": b"\x80\x04cos\nsystem\n)}\x92.",
    "an object": b"\x80\x02cos\nsystem\n)\x81.",
    "a table of pairs": b"(K\x01K\x02d.",
    "an object of old": b"(cos\nsystem\no.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_pickle_that_would_take_all_memory_or_time_takes_none(name: str, tmp_path: Path) -> None:
    path = torch_file(tmp_path / "x.pt", BOMBS[name])
    with contextlib.suppress(ModelError):
        content = TorchFile(path).content
        assert content is None or isinstance(content, Record | Inert)


def storage(count: int, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    """A tensor as torch pickles it."""
    stream, numbers = io.BytesIO(), object()

    class Pickler(pickle._Pickler):
        def persistent_id(self, value: object) -> object:
            return ("storage", torch.FloatStorage, "0", "cpu", count) if value is numbers else None

    class Made:
        def __reduce__(self) -> Any:
            return torch._utils._rebuild_tensor_v2, (numbers, first, shape, strides, False, {})

    Pickler(stream, 2).dump({"x": Made()})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("count", "first", "shape", "strides"),
    [(6, 4, (3,), (1,)), (6, 0, (1 << 40,), (0,)), (6, 0, (2, 3), (4, 1)), (6, -1, (2,), (1,)), (6, 0, (2,), (1, 1))],
)
def test_a_tensor_beyond_its_numbers_is_refused(
    count: int, first: int, shape: tuple[int, ...], strides: tuple[int, ...], tmp_path: Path
) -> None:
    path = torch_file(tmp_path / "x.pt", storage(count, first, shape, strides), **{"0": bytes(24)})
    with pytest.raises(ModelError, match="it was not executed"):
        TorchFile(path)


def test_numbers_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    data = torch.arange(6.0).numpy().tobytes()
    path = torch_file(tmp_path / "x.pt", storage(6, 1, (2, 2), (1, 2)), **{"0": data})
    content = TorchFile(path).content
    assert isinstance(content, Record)
    assert isinstance(content["x"], LazyTensor)
    assert content["x"].read().tolist() == [[1, 3], [2, 4]]
    short = torch_file(tmp_path / "y.pt", storage(6, 0, (6,), (1,)), **{"0": data[:8]})
    with pytest.raises(ModelError, match="8 bytes instead of 24"):
        TorchFile(short).content["x"].read()  # type: ignore[index]
    with zipfile.ZipFile(tmp_path / "z.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", storage(6, 0, (6,), (1,)))
    with pytest.raises(ModelError, match="is compressed, or too large"):
        TorchFile(tmp_path / "z.pt")
    with zipfile.ZipFile(tmp_path / "w.pt", "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(ModelError, match="a ZIP archive without data"):
        TorchFile(tmp_path / "w.pt")
    (tmp_path / "v.pt").write_bytes(pickle.dumps(5, 2))
    with pytest.raises(ModelError, match="is not a file of torch"):
        TorchFile(tmp_path / "v.pt")


@pytest.mark.parametrize("name", ["latin2nqo_001.35", "latin2nqo_001.38"])
def test_both_models_of_detransliterator_write_nko(name: str, tmp_path: Path) -> None:
    wheel = real("detransliterator-0.0.2-py3-none-any.whl", "detransliterator==0.0.2")
    run = imported(wheel, tmp_path / "run", part=name)
    translator = load(run, engine="native")
    assert translator.run is not None
    assert translator.run.settings.data.languages == ""  # neither is a code of a language
    assert translator.translate("musa dunbuya").text == "ߡߎߛߊ߫ ߘߎ߲ߓߎߦߊ"  # as the package's own README has it
    origin = origin_of(run)
    assert origin is not None
    assert "(of the package that contained it)" in origin.licence


def test_a_tensor_takes_no_state(tmp_path: Path) -> None:
    program = storage(6, 0, (6,), (1,))
    made = program.rindex(b"R")  # the call that makes the tensor
    path = torch_file(tmp_path / "x.pt", program[: made + 1] + b"}b" + program[made + 1 :], **{"0": bytes(24)})
    with pytest.raises(ModelError, match="a tensor has no state"):
        TorchFile(path)


def test_a_file_of_the_old_form_is_checked_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(6.0)}, path, _use_new_zipfile_serialization=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(ModelError, match="is cut short; copy it again"):
        TorchFile(path)
    size = whole.rindex(struct.pack("<q", 6))
    path.write_bytes(whole[:size] + struct.pack("<q", 5) + whole[size + 8 :])
    content = TorchFile(path).content
    assert isinstance(content, Record)
    with pytest.raises(ModelError, match="5 numbers instead of 6"):
        content["x"].read()
    with pytest.raises(FileNotFoundError):
        TorchFile(tmp_path / "nowhere.pt")
