"""One sentence through a loaded run of any task, with or without edits, to be looked into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.errors import DataError, ModelError
from regard.explain.alignment import Aligner
from regard.explain.edits import Edit, Editor, ForcePrefix, Scene
from regard.explain.explaining import asked_of, predicted
from regard.explain.explanation import Explanation
from regard.explain.importance import Under, alone
from regard.explain.replay import check_size
from regard.explain.trace import Trace
from regard.explain.whatif import Asked, Outcome, Translating, carry_out
from regard.tasks.kinds import Predicting, Trained
from regard.tasks.language import Writer
from regard.tasks.load import load_predictor
from regard.tasks.translator import Translator
from regard.text.special import END

TaskName = Literal["translate", "tag", "classify", "language"]
MOST_STEPS = 40_000  # pieces written, each with a gradient through all pieces: some seconds of a recurrent model


@dataclass(frozen=True)
class Question:
    """What to look into: a text and its output by the run, or ``target``, an output by somebody else."""

    text: str
    target: str | None = None
    rank: int = 0  # of the n-best, 0 the best
    beam: int = 5
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Looked:
    """What was found; with edits, it is the output under them, and ``outcome`` says what they did."""

    task: TaskName
    explanation: Explanation
    text: str  # as it was read, after edits of the text
    edits: tuple[Edit, ...] = ()
    outcome: Outcome | None = None
    scene: Scene | None = None  # of the edits

    @property
    def trace(self) -> Trace:
        return self.explanation.trace

    @property
    def under(self) -> Under:
        """Makes the observer that carries out the edits, anew for each pass."""
        scene = self.scene
        return alone if scene is None else (lambda: Editor(self.edits, scene))


def look(predictor: Trained, question: Question, name: str = "") -> Looked:
    """Look into a translation, into labels or, with a language model, into the text itself.

    Without edits the translation is that of a beam; with them it is greedy, before and after, so that the
    difference is that of the edits.
    """
    if not question.text.strip():
        raise DataError("text = '': an empty sentence has nothing to look into; give it a word")
    if isinstance(predictor, Translator):
        found = _translated(predictor, question)
    else:
        for part, given in (("target", question.target), ("rank", question.rank)):
            if given:
                raise ModelError(f"{part}: run {name!r} does not translate, and only translations have a {part}")
        found = _predicted(predictor, question, name)
    check_size(found.explanation.model, len(found.trace.source), len(found.trace.target))
    return found


def affordable(looked: Looked) -> None:
    """Refuse what would take a minute: a gradient for each piece written goes back through all that was read."""
    written, pieces = len(looked.trace.target), len(looked.trace.source) + len(looked.trace.target)
    if written * pieces > MOST_STEPS:
        raise DataError(
            f"text = {pieces} pieces with its output: a gradient for each takes too long; give a shorter text"
        )


def at_checkpoint(folder: Path, name: str, device: str) -> Trained:
    """Another moment of a run than its best. Links are read as the run does."""
    found = load_predictor(folder, device, checkpoint_name=name)
    if isinstance(found, Translator) and Aligner.load(folder) is None:
        return replace(found, run=None)
    return found


def task_of(predictor: Trained) -> TaskName:
    """What the run was trained for."""
    return predictor.task


def _translated(translator: Translator, question: Question) -> Looked:
    text, target, model = question.text, question.target, translator.model
    written = None if target is None else [*translator.tokenizers.target.encode(target), END]
    asked = Translating(model, translator.tokenizers)
    begun = len(translator.tokenizers.target.encode(_prefix(question.edits)))
    read = len(asked.read(_changed(question)))
    check_size(model, read, max(begun, len(written or ())))
    if question.edits:
        if read - 1 > translator.longest:
            most = f"{translator.longest:,} pieces this model learned with"
            raise DataError(f"text = {read - 1:,} pieces after its edits: longer than the {most}; give a shorter one")
        outcome = carry_out(asked, text, question.edits, output=written)
        return _edited("translate", translator.explained(outcome.after), question, outcome, asked)
    if target is not None:
        return Looked("translate", translator.explain(text, target), text)
    if not 0 <= question.rank < question.beam:
        raise DataError(
            f"rank = {question.rank}: a beam of {question.beam} has outputs 0 to {question.beam - 1}; use a wider beam"
        )
    translator.search.check_whole(text)
    found = translator.translate(text, Options(Beam(question.beam, best=question.rank + 1)))
    if question.rank >= len(found.outputs):
        raise DataError(f"rank = {question.rank}: only {len(found.outputs)} outputs were found for this text")
    for part in found.outputs[question.rank].parts:
        check_size(model, len(asked.read(part.source)), len(part.tokens) + 1)
    return Looked("translate", found.explanation(question.rank), text)


def _predicted(predictor: Predicting, question: Question, name: str) -> Looked:
    """Labels; of a language model, the text itself or, under edits, the text and how it goes on."""
    task, asked = task_of(predictor), asked_of(predictor)
    count = len(asked.read(_changed(question)))
    check_size(predictor.model, *((0, count) if isinstance(predictor, Writer) else (count, 0)))
    if not question.edits:
        return Looked(task, predicted(predictor, question.text, name), question.text)
    outcome = carry_out(asked, question.text, question.edits)
    return _edited(task, Explanation(predictor.model, outcome.after, name=name), question, outcome, asked)


def _edited(task: TaskName, found: Explanation, question: Question, outcome: Outcome, asked: Asked) -> Looked:
    text = _changed(question)
    return Looked(task, found, text, question.edits, outcome, asked.scene(asked.read(text)))


def _changed(question: Question) -> str:
    """The text after its edits."""
    text = question.text
    for edit in question.edits:
        text = edit.text(text)
    return text


def _prefix(edits: tuple[Edit, ...]) -> str:
    """What the output has to begin with."""
    return "".join([edit.prefix for edit in edits if isinstance(edit, ForcePrefix)][-1:])
