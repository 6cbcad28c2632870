"""What is given to be imported: folders, files, archives; and lines for what cannot be."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from importing import FORMATS, imported, rewritten, small_run
from regard.cli.main import run as verb
from regard.convert import package
from regard.convert.ctranslate2 import ModelFile
from regard.convert.package import read_bytes, read_json
from regard.errors import ModelError, ResourceError
from regard.runs.folder import origin_of
from regard.tasks.engines import export
from regard.tasks.load import load, open_translator

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of CTranslate2's, which no test changes."""
    folder = tmp_path_factory.mktemp("models")
    made = export(open_translator(small_run(folder / "run", "text.joint=false")), folder / "engine", "float32")
    (made / "README.md").unlink(missing_ok=True)  # the card says what it knows of a licence
    return made


def argos(engine: Path, folder: Path) -> Path:
    """The same as a package of Argos Translate's."""
    shutil.copytree(engine, folder / "model")
    (folder / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "fr"}), encoding="utf-8")
    (folder / "README.md").write_text("# English - French\n\nThe model is licensed CC0.\n", encoding="utf-8")
    return folder


def zipped(folder: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{folder.name}/{path.relative_to(folder)}")
    return file


@pytest.mark.parametrize("form", ["folder", "file", "model", "argosmodel", "wheel", "sdist"])
def test_every_form_of_one_model_is_found(form: str, engine: Path, tmp_path: Path) -> None:
    package = argos(engine, tmp_path / "en_fr-1")
    packed = zipped(package, tmp_path / "x.argosmodel")
    forms: dict[str, Callable[[], Path]] = {
        "folder": lambda: package,
        "file": lambda: package / "model" / "model.bin",
        "model": lambda: package / "model",
        "argosmodel": lambda: packed,
        "wheel": lambda: wheel(packed, tmp_path / "x.whl"),
        "sdist": lambda: sdist(packed, tmp_path / "x.tar.gz"),
    }
    run = imported(forms[form](), tmp_path / "run")
    assert load(run).translate("the cat").text is not None
    origin = origin_of(run)
    assert origin is not None
    assert dict(origin.files)["model.bin"]
    if form not in ("file", "model"):
        assert (origin.name, origin.licence) == ("en_fr-1", "The model is licensed CC0.")
        assert open_translator(run).run.settings.data.languages == "en-fr"


def wheel(packed: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        archive.write(packed, "package/data/x.argosmodel")
        archive.writestr("package/__init__.py", "raise SystemExit")
        archive.writestr("package-1.dist-info/METADATA", "License: MIT\n")
    return file


def sdist(packed: Path, file: Path) -> Path:
    with tarfile.open(file, "w:gz") as archive:
        archive.add(packed, "package-1/tests/x.argosmodel")
    return file


def test_the_verb_says_what_it_found(engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb(["import", str(engine), "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "CTranslate2 6, float32; Transformer, 2+2 layers, 3 heads, width 15" in said
    assert "licence: not stated; ask the authors of the model" in said
    assert verb(["import", str(engine), "--out", str(tmp_path / "two"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "CTranslate2 6, float32"


def test_several_models_must_be_chosen_from(engine: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(engine, tmp_path / "both" / name)
    with pytest.raises(ModelError, match="contains 2 models; choose one with --part: one, two"):
        imported(tmp_path / "both", tmp_path / "run")
    assert origin_of(imported(tmp_path / "both", tmp_path / "run", part="two")) is not None
    with pytest.raises(ModelError, match="no model called three in a known format"):
        imported(tmp_path / "both", tmp_path / "other", part="three")


def test_what_is_no_model_or_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist; check the name"):
        imported(tmp_path / "nothing", tmp_path / "run")
    (tmp_path / "text").write_text("x", encoding="utf-8")
    with pytest.raises(ModelError, match="no model in a known format; known are CTranslate2"):
        imported(tmp_path / "text", tmp_path / "run")
    with pytest.raises(ModelError, match="is a run of Regard already"):
        imported(small_run(tmp_path / "mine"), tmp_path / "run")


def refused(archive: Path, line: str, tmp_path: Path, kind: type[Exception] = ModelError) -> None:
    with pytest.raises(kind, match=line):
        imported(archive, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_archives_that_would_harm_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("../x", "/x", "a\\b")):
        with zipfile.ZipFile(file := tmp_path / f"{number}.zip", "w") as archive:
            archive.writestr(name, "x")
        refused(file, "would be outside of the folder; not unpacked", tmp_path)
    with zipfile.ZipFile(file := tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.bin", bytes(200 << 20))
    refused(file, "unpacks to more than .* bytes or 100,000 files; too much for a model", tmp_path)
    (tmp_path / "half.zip").write_bytes(file.read_bytes()[:1000])
    refused(tmp_path / "half.zip", "is cut short, damaged", tmp_path)
    (tmp_path / "half.tar.gz").write_bytes(gzip.compress(b"x" * 700))
    refused(tmp_path / "half.tar.gz", "is cut short, damaged or no archive", tmp_path)
    monkeypatch.setattr(package.shutil, "disk_usage", lambda _: type("Disk", (), {"free": 5}))
    with zipfile.ZipFile(file := tmp_path / "small.zip", "w") as archive:
        archive.writestr("a", "123456")
    refused(file, "unpacks to more than 5 bytes, which is all the free", tmp_path, ResourceError)


def test_a_member_that_is_longer_than_it_says_or_nowhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(file := tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", b"123456")
    monkeypatch.setattr(package, "_zipped", lambda _: iter([("a", 2, io.BytesIO(b"123456"))]))
    refused(file, "a: is longer than its header says", tmp_path)

    def nowhere(_: Path) -> Any:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(package, "_zipped", nowhere)
    refused(file, "is damaged .*Invalid argument", tmp_path)

    def elsewhere(_: Path) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(package, "_zipped", elsewhere)
    refused(file, "Permission denied", tmp_path, PermissionError)


def test_links_in_an_archive_are_passed_over(engine: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(engine, "model")
        link = tarfile.TarInfo("model/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert imported(tmp_path / "x.tar", tmp_path / "run").is_dir()


def test_files_that_are_read_whole_have_a_size_and_a_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(ModelError, match="is missing; the model needs it"):
        read_bytes(path)
    for text, line in (("{", "not JSON"), ("[" * 100_000, "not JSON"), ("[]", "not a JSON object")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ModelError, match=line):
            read_json(path)
    monkeypatch.setattr(package, "LARGEST_TEXT", 1)
    with pytest.raises(ModelError, match="has 2 bytes; 1 is the limit"):
        read_bytes(path)


def f32(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def flag(value: int) -> Any:
    return np.array(value, np.int8)


SIDES = ("encoder", "decoder")
FIRST = "encoder/layer_0/ffn/linear_0/weight"
GATES = {f"{side}/layer_{level}/ffn/linear_0_noact/weight": f32(19, 15) for side in SIDES for level in (0, 1)}
ROTARY = {f"{side}/layer_0/self_attention/rotary_dim": np.array(3, np.int16) for side in SIDES}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a missing variable": ({"encoder/layer_1/ffn/linear_1/weight": None}, "ffn/linear_1/weight: is missing"),
    "scales": ({FIRST: np.zeros((19, 15), np.int8), f"{FIRST}_scale": f32(7)}, "one number a row"),
    "a flag of two": ({"encoder/pre_norm": f32(2)}, "must be one number"),
    "no layers": ({"decoder/layer_0/ffn/linear_0/weight": None}, "has no layers of an encoder and a decoder"),
    "other heads": ({"decoder/num_heads": np.array(5, np.int16)}, "decoder/num_heads = 5: the encoder has 3"),
    "one norm": ({"decoder/layer_norm/gamma": None}, "layer_norm/gamma: is on one side only"),
    "activation": ({f"{side}/activation": flag(5) for side in SIDES}, "activation: not supported"),
    "scale": ({"encoder/scale_embeddings": np.array(7, np.float32)}, "scale_embeddings = 7, 1: must be √width"),
    "positions": ({"decoder/position_encodings/encodings": f32(9, 4)}, r"encodings = .*: must be as wide as 15"),
    "rotary": (ROTARY, "not supported; whole heads"),
    "matrices": ({"encoder/layer_0/self_attention/linear_0/weight": f32(46, 15)}, "must be 3 equal matrices"),
    "a bias in swiglu": (
        GATES | {f"{side}/activation": flag(2) for side in SIDES},
        "SwiGLU is only read without biases",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_model_that_does_not_fit_is_refused_in_one_line(name: str, engine: Path, tmp_path: Path) -> None:
    changes, line = WRONG[name]
    refused(rewritten(engine, tmp_path / "model", changes), line, tmp_path)


HEAD = b"\4\0\0\0\x10\0TransformerSpec\0\1\0\0\0\1\0\0\0\2\0a\0"
FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is empty; copy it again"),
    "half a number": (b"\6\0", "is incomplete, damaged or no model"),
    "another format": (b"\x07\0\0\0", "format 7: up to 6 is read"),
    "another kind": (b"\6\0\0\0\x0c\0WhisperSpec\0\0\0\0\0", "WhisperSpec: only translating Transformers"),
    "an empty name": (b"\6\0\0\0\0\0", "is incomplete, damaged"),
    "numbers": (
        b"\4\0\0\0\x10\0TransformerSpec\0\1\0\0\0\1\0\0\0\2\0a\0\1\5\0\0\0\0\1\0\0\0",
        "its numbers do not fill it",
    ),
    "a size beyond": (HEAD + b"\1\5\0\0\0\1\5\0\0\0", "is incomplete"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_none_of_ctranslate2s_is_refused(name: str, tmp_path: Path) -> None:
    data, line = FILES[name]
    (tmp_path / "model.bin").write_bytes(data)
    with pytest.raises(ModelError, match=line):
        ModelFile(tmp_path / "model.bin")


TEXTS: dict[str, tuple[str, bytes | None, str]] = {
    "no vocabulary": ("target_vocabulary.json", None, "has no vocabulary"),
    "numbers": ("target_vocabulary.json", b"[1]", "not a list of texts"),
    "another end": ("config.json", b'{"eos_token": "x"}', "eos_token = 'x': is not in the vocabulary"),
    "other pieces": ("source_vocabulary.json", b'["<pad>", "<start>", "<end>", "<unk>"]', "has other pieces than"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_beside_a_model_that_do_not_fit_are_refused(name: str, engine: Path, tmp_path: Path) -> None:
    file, content, line = TEXTS[name]
    model = shutil.copytree(engine, tmp_path / "model")
    (model / file).unlink()
    if content is not None:
        (model / file).write_bytes(content)
    refused(model, line, tmp_path)


def test_vocabularies_and_merges_that_are_no_text_are_refused(engine: Path, tmp_path: Path) -> None:
    model = shutil.copytree(engine, tmp_path / "model")
    shutil.rmtree(model / "tokenizer")
    (model / "bpe.codes").write_bytes(b"\xff")
    refused(model, "bpe.codes: not UTF-8", tmp_path)
    (model / "bpe.codes").write_bytes(b"#version: 0.2\n")
    assert open_translator(imported(model, tmp_path / "merges")).tokenizers.source.kind == "subword-nmt"
    (model / "source_vocabulary.json").unlink()
    (model / "source_vocabulary.txt").write_bytes(b"\xff\n")
    refused(model, "source_vocabulary.txt: not UTF-8", tmp_path)


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bench that damages models a thousand times."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "bench"))
    return import_module("hostile_models")


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_models_are_one_line_and_leave_nothing(format: str, tmp_path: Path, hostile: Any) -> None:
    model = FORMATS[format](tmp_path / format)
    for number in range(15):
        assert hostile.one(model, number, 7, tmp_path)[1] == "", number
