"""The examples that make runs of other packages' weights: their outputs are those of the packages."""

from __future__ import annotations

import importlib
import pydoc_data.topics
import re
import runpy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from real_models import real
from regard.tasks.load import load
from regard.tasks.translator import Translator

EXAMPLES = Path(__file__).parents[2] / "examples"


def words(count: int) -> list[str]:
    """Words of Python's own manual, from the whole alphabet."""
    texts = pydoc_data.topics.topics.values()
    known = sorted({word.lower() for text in texts for word in re.findall("[A-Za-z]{3,}", text)})
    return known[:: len(known) // count][:count]


def made(example: str, what: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.setattr("sys.argv", [example, str(what), str(out)])
    runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    return load(out)


@pytest.mark.parametrize("example", ["g2p_en.py", "e2k.py"])
def test_an_example_is_short(example: str) -> None:
    assert len((EXAMPLES / example).read_text(encoding="utf-8").splitlines()) <= 50


@pytest.mark.filterwarnings("ignore:invalid escape sequence", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_phonemes_are_those_of_g2p_en(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its network, without the dictionary that it asks first; that package leaves a file open, and warns."""
    package = real("g2p_en/g2p_en", "g2p_en==2.1.0")
    monkeypatch.syspath_prepend(str(package.parent))
    for name, parts in {
        "nltk": {"pos_tag": None, "data": SimpleNamespace(find=str)},
        "nltk.corpus": {"cmudict": SimpleNamespace(dict=dict)},
        "nltk.tokenize": {"TweetTokenizer": lambda: SimpleNamespace(tokenize=str.split)},
        "inflect": {"engine": lambda: None},
    }.items():
        module: Any = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(importlib.import_module("sys").modules, name, module)
    theirs = importlib.import_module("g2p_en.g2p").G2p()
    asked = words(500)
    ours = made("g2p_en.py", package, tmp_path / "run", monkeypatch).translate(asked, beam=1)
    assert [each.text for each in ours] == [" ".join(theirs.predict(word)) for word in asked]


@pytest.mark.parametrize("variant", ["base", "turbo"])
def test_katakana_are_those_of_e2k(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = real("e2k/e2k", "e2k==0.8.1")
    monkeypatch.syspath_prepend(str(package.parent))
    theirs = importlib.import_module("e2k").C2K(model=variant)
    name = "model-c2k" if variant == "base" else "model-c2k-turbo"
    translator = made("e2k.py", package / "models" / f"{name}.safetensors", tmp_path / "run", monkeypatch)
    asked = words(500)
    ours = translator.translate(asked, beam=1)
    assert [each.text[:16] for each in ours] == [theirs(word) for word in asked]
    assert ours[0].attention.cross.shape[1] == 4  # heads
