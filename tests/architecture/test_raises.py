"""What tells whether every `raise` is run by a test."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from raises import Loader, Place, places

SOURCE = """
def purr(loud):
    if loud:
        raise ValueError(
            loud,
        )
    try:
        raise KeyError
    except KeyError:
        return 7
"""


def test_a_raise_is_noted_when_it_runs_and_stays_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "cat.py").write_text(SOURCE)
    file, seen, cat = str(tmp_path / "cat.py"), set[Place](), ModuleType("cat")
    Loader("cat", file, seen).exec_module(cat)
    assert seen == set()
    assert cat.purr("") == 7
    assert seen == {(file, 8)}
    with pytest.raises(ValueError, match="loud") as caught:
        cat.purr("loud")
    assert caught.tb.tb_next.tb_lineno == 4
    assert sorted(seen) == sorted(places(Path(file))) == [(file, 4), (file, 8)]
