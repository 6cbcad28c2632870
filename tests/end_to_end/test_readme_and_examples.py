"""What the README shows and the examples do, run as a reader would run them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readmes_tree_is_the_tree() -> None:
    (block,) = [block for block in blocks("text") if "src/regard" in block]
    for line in block.splitlines():
        name = line.strip().split()[0]
        if line.startswith("  "):
            assert (ROOT / "src" / "regard" / name).exists(), name
        else:
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("arguments", [["reverse.py", "--steps", "3"]], ids=lambda arguments: arguments[0])
def test_an_example_runs(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", arguments)
    runpy.run_path(str(ROOT / "examples" / arguments[0]), run_name="__main__")
    assert capsys.readouterr().out
