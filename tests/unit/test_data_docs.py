"""The examples of docs/data.md run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_examples_of_the_data_page_run(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, sentence in (("de", "der Bär frisst Honig"), ("en", "the bear eats honey")):
        lines = [f"{sentence} {number} {number**5}" for number in range(200)]
        Path(f"train.{name}").write_text("\n".join([*lines, sentence]), encoding="utf-8")
        Path(f"test.{name}").write_text(f"{sentence} 7 {7**5}\n", encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 7
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert Path("parts/valid.en").read_text(encoding="utf-8").count("\n") == 20
    assert len(names["report"].findings) == 1  # type: ignore[attr-defined]
