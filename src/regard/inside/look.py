"""One sentence through a loaded run of any task, with or without edits, to be looked into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.decode.labels import Classifier, Tagger
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.writer import Writer
from regard.draw.explanation import Explanation
from regard.errors import DataError, ModelError
from regard.explain.alignment import Aligner
from regard.explain.edits import Edit, Editor, Scene
from regard.explain.importance import Under, alone
from regard.explain.trace import Trace
from regard.explain.whatif import Asked, Outcome, Translating, carry_out
from regard.explaining import asked_of, predicted
from regard.prediction import Predictor, load_predictor
from regard.text.special import END
from regard.translator import Translator

TaskName = Literal["translate", "tag", "classify", "language"]
MOST_NUMBERS = 8_000_000  # weights of one trace: 32 MB, about 230 pieces through 6 + 6 layers of 8 heads

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


def look(predictor: Predictor | Translator, question: Question, name: str = "") -> Looked:
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
    numbers = sum(value.numel() for key, value in found.trace.tensors.items() if key.endswith("weights"))
    if numbers > MOST_NUMBERS:
        pieces = len(found.trace.source) + len(found.trace.target)
        raise DataError(
            f"text = {pieces} pieces with its output: {numbers:,} weights are too many to look at; "
            f"{MOST_NUMBERS:,} are the most, so give a shorter text"
        )
    return found


def affordable(looked: Looked) -> None:
    """Refuse what would take a minute: a gradient for each piece written goes back through all that was read."""
    written, pieces = len(looked.trace.target), len(looked.trace.source) + len(looked.trace.target)
    if written * pieces > MOST_STEPS:
        raise DataError(
            f"text = {pieces} pieces with its output: a gradient for each takes too long; give a shorter text"
        )


def at_checkpoint(folder: Path, name: str, *, like: Predictor | Translator) -> Predictor | Translator:
    """Another moment of a run than its best, on the same device. Links are read as the run does."""
    device = next(like.model.parameters()).device
    found = load_predictor(folder, str(device), checkpoint_name=name)
    if isinstance(found, Translator) and Aligner.load(folder) is None:
        return replace(found, run=None)
    return found


def task_of(predictor: Predictor | Translator) -> TaskName:
    """What the run was trained for."""
    match predictor:
        case Translator():
            return "translate"
        case Tagger():
            return "tag"
        case Classifier():
            return "classify"
        case Writer():
            return "language"


def _translated(translator: Translator, question: Question) -> Looked:
    text, target = question.text, question.target
    if question.edits:
        asked = Translating(translator.model, translator.tokenizers)
        written = None if target is None else [*translator.tokenizers.target.encode(target), END]
        outcome = carry_out(asked, text, question.edits, output=written)
        return _edited("translate", translator.explained(outcome.after), question, outcome, asked)
    if target is not None:
        return Looked("translate", translator.explain(text, target), text)
    if not 0 <= question.rank < question.beam:
        raise DataError(
            f"rank = {question.rank}: a beam of {question.beam} has outputs 0 to {question.beam - 1}; use a wider beam"
        )
    found = translator.translate(text, Options(Beam(question.beam, best=question.rank + 1)))
    if question.rank >= len(found.outputs):
        raise DataError(f"rank = {question.rank}: only {len(found.outputs)} outputs were found for this text")
    return Looked("translate", found.explanation(question.rank), text)


def _predicted(predictor: Predictor, question: Question, name: str) -> Looked:
    """Labels; of a language model, the text itself or, under edits, the text and how it goes on."""
    task = task_of(predictor)
    if not question.edits:
        return Looked(task, predicted(predictor, question.text, name), question.text)
    asked = asked_of(predictor)
    outcome = carry_out(asked, question.text, question.edits)
    return _edited(task, Explanation(predictor.model, outcome.after, name=name), question, outcome, asked)


def _edited(task: TaskName, found: Explanation, question: Question, outcome: Outcome, asked: Asked) -> Looked:
    text = question.text
    for edit in question.edits:
        text = edit.text(text)
    return Looked(task, found, text, question.edits, outcome, asked.scene(asked.read(text)))
