"""The tree of one search: what ``regard beam``, the studio and a report show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from regard.decode.options import Options, rule_of
from regard.decode.rules import Beam
from regard.decode.texts import Output, copied_in_order
from regard.decode.tree import Node, Tree, Trees
from regard.errors import DataError, ModelError
from regard.explain.answer import Answer, Hidden, OfSentence
from regard.settings.call import DRAWN, DecodeSettings
from regard.tasks.load import Trained
from regard.tasks.translator import Translator
from regard.text.vocabulary import SPECIAL_TOKENS, Tokenizer
from regard.text.words import WordTokenizer, legible

OTHERS = (1, 2, 3, 5, 10)  # beams that are tried beside the one asked for
CONTINUATION = 40  # pieces that a language model adds
Spell = Callable[[Sequence[int]], str]
DIGITS = 5  # of scores as a report keeps them


@dataclass(frozen=True)
class SearchNode(Node, Answer):
    """A hypothesis, and what became of it."""

    piece: str
    text: Annotated[str, Field(description="All that stands written with it.")]

    @property
    def shown(self) -> str:
        """Its piece, in signs that fonts have."""
        return legible(self.piece)


@dataclass(frozen=True)
class OtherBeam(Answer):
    """The best output of another beam."""

    beam: int
    text: str
    score: float  # normalised for its length
    log_probability: float


@dataclass(frozen=True)
class Searched(OfSentence):
    """The tree of a search."""

    source: Hidden[str]
    text: str
    beam: Hidden[int]
    length_penalty: Hidden[float]
    nodes: tuple[SearchNode, ...]  # by number; 0 is the root
    outputs: Annotated[tuple[int, ...], Field(description="Numbers of nodes, best first.")]
    others: tuple[OtherBeam, ...] = ()  # from narrow to wide, the searched beam not among them
    name: Hidden[str] = ""  # of the run

    @property
    def best(self) -> SearchNode:
        return self.nodes[self.outputs[0]]

    @property
    def beams(self) -> list[OtherBeam]:
        """From narrow to wide, the searched beam among them."""
        own = OtherBeam(self.beam, self.text, self.best.score, self.best.log_probability)
        return sorted((own, *self.others), key=lambda each: each.beam)

    def numbers(self) -> dict[str, Any]:
        """What ``regard beam --json`` and the data of a page say."""
        return {
            "source": self.source,
            "output": self.text,
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "nodes": [
                {
                    "number": node.number,
                    "parent": node.parent,
                    "step": node.step,
                    "token": node.shown,
                    **_scores(node),
                    "fate": node.fate,
                    "reason": node.reason,
                }
                for node in self.nodes
            ],
            "outputs": list(self.outputs),
            "others": [{"beam": each.beam, "output": each.text, **_scores(each)} for each in self.beams],
        }


def _scores(one: SearchNode | OtherBeam) -> dict[str, float]:
    return {"log_probability": round(one.log_probability, DIGITS), "score": round(one.score, DIGITS)}


def drawn(asked: DecodeSettings) -> Beam:
    """The rule of a search that is drawn; refuses settings that a tree does not show."""
    rule = rule_of(asked.only(DRAWN, "the tree of a search"))
    assert isinstance(rule, Beam)  # samples are refused above
    return rule


def search_tree(
    predictor: Trained,
    text: str,
    rule: Beam,
    *,
    prefix: str = "",
    others: Sequence[int] = OTHERS,
    name: str = "",
) -> Searched:
    """Search for a translation, or for what a language model writes after the text; and with other beams.

    ``name`` is what to call the run, where the predictor does not know.
    """
    if not text.strip():
        raise DataError(f"text = {text!r}: there is nothing to search for; give it a word")
    grow, tokenizer = _grower(predictor, text, prefix)
    tree, spell = grow(rule)
    nodes = tuple(
        SearchNode(**vars(node), piece=_piece(node.token, tokenizer), text=spell(tree.tokens(node.number)))
        for node in tree.nodes
    )
    beams = list[OtherBeam]()
    for width in sorted({*others} - {rule.width}):
        other, spelled = grow(_as_wide(rule, width))
        best = other.nodes[other.outputs[0]]
        beams.append(OtherBeam(width, spelled(other.tokens(best.number)), best.score, best.log_probability))
    return Searched(
        source=text,
        text=nodes[tree.outputs[0]].text,
        beam=rule.width,
        length_penalty=rule.length_penalty,
        nodes=nodes,
        outputs=tuple(tree.outputs),
        others=tuple(beams),
        name=predictor.run.folder.name if predictor.task == "translate" and predictor.run else name,
    )


def _as_wide(rule: Beam, width: int) -> Beam:
    """The same rule with another width; in groups where they divide it."""
    other = replace(rule, width=width, best=1, groups=1, diversity=0.0)
    return other if width % rule.groups else replace(other, groups=rule.groups, diversity=rule.diversity)


Grow = Callable[[Beam], tuple[Tree, Spell]]


def _grower(predictor: Trained, text: str, prefix: str) -> tuple[Grow, Tokenizer]:
    """What makes the tree of a rule and spells what it holds, and the tokenizer of its pieces."""

    def translation(rule: Beam) -> tuple[Tree, Spell]:
        assert predictor.task == "translate"
        listener = Trees(rule)
        outputs = predictor.search([text], Options(rule, prefix=prefix), listener=listener)[0]
        return listener.trees[0], _speller(predictor, outputs)

    def continuation(rule: Beam) -> tuple[Tree, Spell]:
        assert predictor.task == "language"
        listener = Trees(rule)
        predictor.write([text], length=CONTINUATION, rule=rule, listener=listener)
        return listener.trees[0], predictor.tokenizer.decode

    if predictor.task == "language":
        if prefix:
            raise DataError("prefix: a language model goes on from the text itself; put it at the end of the text")
        return continuation, predictor.tokenizer
    if predictor.task != "translate":
        raise ModelError("beam: this run gives labels, each by itself, and does not search; a translator does")
    predictor.search.check_whole(text)
    if not predictor.search.parts(text):
        raise DataError(f"text = {text[:40]!r}: no word of it was seen in training, so nothing is searched; use others")
    return translation, predictor.tokenizers.target


def _speller(predictor: Translator, outputs: Sequence[Output]) -> Spell:
    """How tokens are written: an output as the translator writes it; other hypotheses with the unknown words of the
    source in their order, because there is no attention yet to choose among them."""
    written = {output.parts[0].tokens: output.text for output in outputs}
    rest = predictor.tokenizers.target.decode
    if isinstance(predictor.tokenizers.target, WordTokenizer):
        rest = partial(copied_in_order, predictor.tokenizers, outputs[0].parts[0])
    return lambda tokens: written[key] if (key := tuple(tokens)) in written else rest(tokens)


def _piece(token: int, tokenizer: Tokenizer) -> str:
    if token < 0:
        return "<start>"
    return SPECIAL_TOKENS[token] if token < len(SPECIAL_TOKENS) else tokenizer.token(token)
