"""One sentence through one run, of any task, to be looked into: what `regard explain` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ModelError
from regard.explain.asked import Continuing, Labelling
from regard.explain.edits import Edit
from regard.explain.explanation import Explanation
from regard.explain.replay import Spelling, replay
from regard.explain.whatif import Asked, Outcome, carry_out, what_if
from regard.tasks.classify import Classifier
from regard.tasks.kinds import Predicting
from regard.tasks.language import Writer
from regard.tasks.load import load_predictor
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.text.special import END


@dataclass(frozen=True)
class Explained:
    """What there is to show; with edits, it is of the sentence under them, and ``outcome`` says what they did."""

    explanation: Explanation
    outcome: Outcome | None = None


def explain(
    run: str | Path, text: str, *, target: str | None = None, edits: Sequence[Edit] = (), device: str = "cpu"
) -> Explained:
    """Look into a sentence: its translation, its labels or, for a language model, the text itself.

    ``target`` is a translation by somebody else, to be looked into instead of the run's own.
    """
    predictor = load_predictor(run, device)
    if isinstance(predictor, Translator):
        return _translated(predictor, text, target, edits)
    if target:
        raise ModelError(f"--target: {run} does not translate; only translations have one")
    name = Path(run).name
    if edits:
        outcome = carry_out(asked_of(predictor), text, edits)
        return Explained(Explanation(predictor.model, outcome.after, name=name), outcome)
    return Explained(predicted(predictor, text, name))


def _translated(translator: Translator, text: str, target: str | None, edits: Sequence[Edit]) -> Explained:
    if not edits:
        return Explained(translator.explain(text, target))
    written = None if target is None else [*translator.tokenizers.target.encode(target), END]
    outcome = what_if(translator.model, translator.tokenizers, text, edits, output=written)
    return Explained(translator.explained(outcome.after), outcome)


def predicted(predictor: Predicting, text: str, name: str) -> Explanation:
    """Labels, or the text of a language model, looked into; ``name`` is the run's."""
    if isinstance(predictor, Writer):
        written = predictor.tokenizer.encode(text)
        trace = replay(predictor.model, (), written, spelling=Spelling(target=predictor.tokenizer, target_text=text))
        return Explanation(predictor.model, trace, name=name)
    asked = _labelling(predictor)
    spelling = Spelling(predictor.reader.tokenizer, source_text=text, labels=asked.labels)
    return Explanation(predictor.model, replay(predictor.model, asked.read(text).rows, spelling=spelling), name=name)


def asked_of(predictor: Predicting) -> Asked:
    """A run that does not translate, to be asked what if."""
    return Continuing(predictor.model, predictor.tokenizer) if isinstance(predictor, Writer) else _labelling(predictor)


def _labelling(predictor: Tagger | Classifier) -> Labelling:
    labels = predictor.tags if isinstance(predictor, Tagger) else predictor.labels
    return Labelling(predictor.model, predictor.reader, labels.tokens)
