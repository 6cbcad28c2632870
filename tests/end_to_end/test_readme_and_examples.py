"""What the README shows and the examples do, run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.main import app

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readmes_python_runs_and_shows_what_its_comments_say() -> None:
    (block,) = blocks("python")
    space: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), space)
    for expression, expected in re.findall(r"^(.+?)  # → (.+)$", block, flags=re.MULTILINE):
        value = eval(expression.split(" = ")[-1], space)
        assert str(value) == expected


def test_the_training_guides_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(block, "training.md", "exec"), {})
    assert (tmp_path / "runs" / "gru" / "best").exists()


def test_the_readmes_commands_are_targets() -> None:
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [line.split("#")[0].split() for block in blocks("sh") for line in block.splitlines()]
    verbs = [words[1] for words in commands if words[:1] == ["regard"]]
    groups = {group.name for group in app.registered_groups}
    assert set(verbs) <= {command.name for command in app.registered_commands} | groups
    made = [words[1] for words in commands if words[:1] == ["make"]]
    assert {"demo", "test"} <= set(made)
    for name in made:
        assert re.search(rf"^{name}:", targets, flags=re.MULTILINE), name


def test_the_readmes_tree_is_the_tree() -> None:
    (block,) = [block for block in blocks("text") if "src/regard" in block]
    for line in block.splitlines():
        name = line.strip().split()[0]
        if line.startswith("  "):
            assert (ROOT / "src" / "regard" / name).exists(), name
        else:
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("arguments", [["reverse.py", "--steps", "3"]], ids=lambda arguments: arguments[0])
def test_an_example_runs(arguments: list[str]) -> None:
    command = [sys.executable, str(ROOT / "examples" / arguments[0]), *arguments[1:]]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout
