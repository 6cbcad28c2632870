"""Where an imported model comes from: ``origin.json`` in its run. Nothing here imports torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.errors import ModelError
from regard.files import new_file

ORIGIN = "origin.json"


@dataclass(frozen=True)
class Origin:
    """What an import was made of. A licence that is not stated is an empty text: nobody may guess one."""

    format: str  # such as CTranslate2 6, int8
    name: str  # what the model was called
    licence: str = ""  # in one line, as the model's own files say it
    files: tuple[tuple[str, str], ...] = ()  # what was read, with its SHA-256
    notices: tuple[tuple[str, str], ...] = ()  # texts that came with the model: its licence, its README

    def __str__(self) -> str:
        """In one line, for people."""
        return f"{self.name}, {self.format}; licence: {self.licence or 'not stated'}"

    def save(self, folder: Path) -> None:
        """Into the folder of a run."""
        values = asdict(self) | {"files": dict(self.files), "notices": dict(self.notices)}
        with new_file(folder / ORIGIN) as file:
            file.write((json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())


def origin_of(folder: Path) -> Origin | None:
    """Of the run in a folder; None for one that was trained here from the beginning."""
    try:
        values = json.loads((folder / ORIGIN).read_bytes())
        texts = {name: str(values[name]) for name in ("format", "name", "licence")}
        pairs = {name: tuple((str(a), str(b)) for a, b in values[name].items()) for name in ("files", "notices")}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{folder / ORIGIN}: is damaged; take it from a copy of the run") from None
    return Origin(texts["format"], texts["name"], texts["licence"], pairs["files"], pairs["notices"])
