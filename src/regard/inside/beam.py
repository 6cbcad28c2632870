"""The search for one output, as a tree of all that was considered, and what other beams would have found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.tree import Node, Tree, Trees
from regard.decode.writer import Writer
from regard.errors import DataError, ModelError
from regard.prediction import Predictor
from regard.text.special import SPECIAL_TOKENS
from regard.text.tokenizer import Tokenizer
from regard.translator import Translator

OTHERS = (1, 2, 3, 5, 10)
CONTINUATION = 40  # pieces that a language model adds


@dataclass(frozen=True)
class Leaf:
    """A node with what it says: its own piece, and all that stands written with it."""

    node: Node
    piece: str
    text: str


@dataclass(frozen=True)
class Found:
    """The best output of a beam of some width."""

    beam: int
    text: str
    score: float
    log_probability: float


@dataclass(frozen=True)
class Searched:
    """A search that is over."""

    text: str  # of the best output
    leaves: tuple[Leaf, ...]  # by number; 0 is the root
    outputs: tuple[int, ...]  # leaves, best first
    others: tuple[Found, ...]


def search_tree(
    predictor: Predictor | Translator, text: str, beam: int = 5, length_penalty: float = 1.0, prefix: str = ""
) -> Searched:
    """Search for a translation, or for what a language model writes after the text."""
    if not text.strip():
        raise DataError("text = '': there is nothing to search an output for; give it a word")
    grow, tokenizer = _grower(predictor, text, prefix)
    tree = grow(Beam(beam, length_penalty, best=beam))
    leaves = _leaves(tree, tokenizer)
    widths = [width for width in OTHERS if width != beam]
    others = [_found(width, grow(Beam(width, length_penalty)), tokenizer) for width in widths]
    return Searched(leaves[tree.outputs[0]].text, tuple(leaves), tuple(tree.outputs), tuple(others))


def _grower(predictor: Predictor | Translator, text: str, prefix: str) -> tuple[Callable[[Beam], Tree], Tokenizer]:
    """What makes the tree of a rule, and what spells it."""

    def translation(rule: Beam) -> Tree:
        assert isinstance(predictor, Translator)
        listener = Trees(rule)
        predictor.search([text], Options(rule, prefix=prefix), listener=listener)
        return listener.trees[0]

    def continuation(rule: Beam) -> Tree:
        assert isinstance(predictor, Writer)
        listener = Trees(rule)
        predictor.write([text], length=CONTINUATION, rule=rule, listener=listener)
        return listener.trees[0]

    if isinstance(predictor, Writer):
        if prefix:
            raise DataError("prefix: a language model goes on from the text itself; put it at the end of the text")
        return continuation, predictor.tokenizer
    if not isinstance(predictor, Translator):
        raise ModelError("beam: this run gives labels, each by itself, and does not search; a translator does")
    if (count := len(predictor.search.parts(text))) != 1:
        raise DataError(f"text: goes through the model in {count} parts; a tree is of one search, so give one sentence")
    return translation, predictor.tokenizers.target


def _leaves(tree: Tree, tokenizer: Tokenizer) -> list[Leaf]:
    return [
        Leaf(node, _piece(node.token, tokenizer), tokenizer.decode(tree.tokens(node.number))) for node in tree.nodes
    ]


def _piece(token: int, tokenizer: Tokenizer) -> str:
    if token < 0:
        return "<start>"
    return SPECIAL_TOKENS[token] if token < len(SPECIAL_TOKENS) else tokenizer.token(token)


def _found(width: int, tree: Tree, tokenizer: Tokenizer) -> Found:
    best = tree.nodes[tree.outputs[0]]
    return Found(width, tokenizer.decode(tree.tokens(best.number)), best.score, best.log_probability)
