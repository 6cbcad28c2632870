"""The tasks by their names in the settings. Each is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from regard.settings import TaskName
from regard.tasks.task import Task

if TYPE_CHECKING:
    from regard.tasks.classify import Classifier
    from regard.tasks.language import Writer
    from regard.tasks.tag import Tagger
    from regard.tasks.translator import Translator

Predicting: TypeAlias = "Tagger | Classifier | Writer"  # each a `regard.tasks.predictor.Predictor`
Trained: TypeAlias = "Tagger | Classifier | Writer | Translator"  # told apart by ``task``


def task_of(name: TaskName) -> type[Task]:
    """What a task is: its columns, and how it is encoded, built, trained and used."""
    match name:
        case "translate":
            from regard.tasks.translate import TranslateTask

            return TranslateTask
        case "language":
            from regard.tasks.language import LanguageTask

            return LanguageTask
        case "tag":
            from regard.tasks.tag import TagTask

            return TagTask
        case "classify":
            from regard.tasks.classify import ClassifyTask

            return ClassifyTask
        case _:
            assert_never(name)
