"""One sentence through a loaded run of any task, with or without edits, to be looked into."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from regard.decode.options import Options
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.explain.asked import LabellerSubject, LanguageSubject
from regard.explain.edits import Edit, ForcePrefix
from regard.explain.explanation import Explanation
from regard.explain.looked import Looked
from regard.explain.replay import Spelling, check_size, replay
from regard.explain.whatif import EditOutcome, Subject, TranslatorSubject, carry_out
from regard.settings.call import DecodeSettings
from regard.tasks.kinds import Predicting, Trained
from regard.tasks.load import load_predictor
from regard.tasks.translator import Translator
from regard.text.special import END

UNSEARCHED = "decode: nothing is searched for here; leave it out"


@dataclass(frozen=True)
class Question:
    """What to look into: a text and its output by the run, or ``target``, a given output."""

    text: str
    target: str | None = None
    rank: int = 0  # of the n-best, 0 the best
    edits: tuple[Edit, ...] = ()
    decode: DecodeSettings | None = None  # how to search; not with target or edits


def look(predictor: Trained, question: Question, name: str = "") -> Looked:
    """Look into a translation, into labels or, with a language model, into the text itself. ``name`` is the run's.

    Without edits the translation is that of a beam; with them it is greedy, before and after, so that the
    difference is that of the edits.
    """
    if not question.text.strip():
        raise DataError("text = '': an empty sentence has nothing to look into; give it a word")
    if predictor.task == "translate":
        found = _translated(predictor, question, name)
    else:
        if question.decode is not None:
            raise ModelError(UNSEARCHED)
        for part, given in (("target", question.target), ("rank", question.rank)):
            if given:
                raise ModelError(f"{part}: run {name!r} does not translate, and only translations have a {part}")
        found = _predicted(predictor, question, name)
    check_size(found.explanation.model, len(found.trace.source), len(found.trace.target))
    return found


def at_checkpoint(folder: Path, name: str, device: str) -> Trained:
    """Another moment of a run than its best. Links are read as the run does."""
    found = load_predictor(folder, device, checkpoint_name=name)
    if found.task == "translate" and Aligner.load(folder) is None:
        return replace(found, run=None)
    return found


def _translated(translator: Translator, question: Question, name: str) -> Looked:
    text, target, model = question.text, question.target, translator.model
    if question.decode is not None and (question.edits or target is not None):
        raise SettingsError(UNSEARCHED)  # a target is given, and edits are greedy
    written = None if target is None else [*translator.tokenizers.written(target), END]
    asked = TranslatorSubject(model, translator.tokenizers)
    begun = len(translator.tokenizers.written(_prefix(question.edits)))
    read = len(asked.read(_changed(question, asked)))
    check_size(model, read, max(begun, len(written or ())))
    if question.edits:
        if read - 1 > translator.longest:
            most = f"{translator.longest:,} pieces this model learned with"
            raise DataError(f"text = {read - 1:,} pieces after its edits: longer than the {most}; give a shorter one")
        outcome = carry_out(asked, text, question.edits, output=written)
        return _edited(Looked(name, "translate", text, translator.explained(outcome.after)), question, outcome, asked)
    if target is not None:
        return Looked(name, "translate", text, translator.explain(text, target))
    how = question.decode or DecodeSettings()
    if not 0 <= question.rank < how.beam:
        raise DataError(
            f"rank = {question.rank}: a beam of {how.beam} has outputs 0 to {how.beam - 1}; use a wider beam"
        )
    translator.search.check_whole(text)
    found = translator.translate(text, Options.of(how.model_copy(update={"best": question.rank + 1})))
    if question.rank >= len(found.outputs):
        raise DataError(f"rank = {question.rank}: only {len(found.outputs)} outputs were found for this text")
    for part in found.outputs[question.rank].parts:
        check_size(model, len(asked.read(part.source)), len(part.tokens) + 1)
    return Looked(name, "translate", text, found.explanation(question.rank))


def _predicted(predictor: Predicting, question: Question, name: str) -> Looked:
    """Labels; of a language model, the text itself or, under edits, the text and how it goes on."""
    task, text, model = predictor.task, question.text, predictor.model
    asked: LanguageSubject | LabellerSubject
    if predictor.task == "language":
        asked = LanguageSubject(predictor.model, predictor.tokenizer)
    else:
        asked = LabellerSubject(predictor.model, predictor.reader, predictor.labels.tokens)
    count = len(asked.read(_changed(question, asked)))
    check_size(model, *((0, count) if predictor.task == "language" else (count, 0)))
    if question.edits:
        outcome = carry_out(asked, text, question.edits)
        found = Looked(name, task, text, Explanation(model, outcome.after, name=name))
        return _edited(found, question, outcome, asked)
    if predictor.task == "language":
        spelling = Spelling(target=predictor.tokenizer, target_text=text)
        trace = replay(model, (), predictor.tokenizer.encode(text), spelling=spelling)
    else:
        assert isinstance(asked, LabellerSubject)
        spelling = Spelling(predictor.reader.tokenizer, source_text=text, labels=asked.labels)
        trace = replay(model, asked.read(text).rows, spelling=spelling)
    return Looked(name, task, text, Explanation(model, trace, name=name))


def _edited(found: Looked, question: Question, outcome: EditOutcome, asked: Subject) -> Looked:
    text = _changed(question, asked)
    scene = asked.scene(asked.read(text))
    return replace(found, text=text, edits=question.edits, outcome=outcome, scene=scene)


def _changed(question: Question, asked: Subject) -> str:
    """The text after its edits."""
    text = question.text
    for edit in question.edits:
        text = edit.text(text, asked.read)
    return text


def _prefix(edits: tuple[Edit, ...]) -> str:
    """What the output has to begin with."""
    return "".join([edit.prefix for edit in edits if isinstance(edit, ForcePrefix)][-1:])
