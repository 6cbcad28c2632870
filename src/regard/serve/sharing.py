"""What a run was trained on and is tested on, as names that say nothing of where files are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import PurePath

from regard.errors import SettingsError
from regard.settings import DataSettings, Settings


def corpus_name(data: DataSettings) -> str:
    """The name of a corpus: built in, sent to the studio, or that of its files."""
    if data.is_built_in:
        return data.corpus
    files = [PurePath(name) for name in (data.corpus, data.source, data.target) if name]
    if files and files[0].parent.parent.name == "corpora":
        return files[0].parent.name
    return " and ".join(file.name for file in files)


def test_of(settings: Settings) -> str:
    """The same for two runs that can be compared without naming a test; empty where a run has none."""
    data = settings.data
    if data.is_built_in:
        return f"{settings.task} {data.corpus}"
    files = data.valid_corpus, data.valid_source, data.valid_target
    if not any(files):
        return ""
    trained = "" if settings.task == "translate" else data.corpus
    return hashlib.sha256(json.dumps([settings.task, trained, *files]).encode()).hexdigest()[:16]


def check_shared(names: Sequence[str], runs: Sequence[Settings]) -> None:
    """Complain of runs that share no test, and say what each has."""
    tests = {test_of(settings) for settings in runs}
    if len(tests) > 1 or tests == {""}:
        each = ", ".join(f"{name} on {corpus_name(one.data)}" for name, one in zip(names, runs, strict=True))
        raise SettingsError(
            f"runs = {each}: were trained on different corpora and share no test; choose runs of one corpus, "
            "or the corpus whose test part all of them shall be given"
        )
