"""The search for one output, kept whole: what ``regard beam``, the studio and a report show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from regard.decode.copying import copied_in_order
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import Output
from regard.decode.tree import Node, Tree, Trees
from regard.errors import DataError, ModelError
from regard.explain.beam_tree import BeamTree, OtherBeam, Twig
from regard.tasks.kinds import Trained
from regard.tasks.language import Writer
from regard.tasks.translator import Translator
from regard.text.special import SPECIAL_TOKENS
from regard.text.tokenizer import Tokenizer
from regard.text.words import WordTokenizer, legible

OTHERS = (1, 2, 3, 5, 10)  # beams that are tried beside the one asked for
CONTINUATION = 40  # pieces that a language model adds
Spell = Callable[[Sequence[int]], str]
DIGITS = 5  # of scores as a report keeps them


@dataclass(frozen=True)
class Leaf:
    """A node with what it says: its own piece, and all that stands written with it."""

    node: Node
    piece: str
    text: str


@dataclass(frozen=True)
class Searched:
    """A search that is over, and what beams of other widths find."""

    leaves: tuple[Leaf, ...]  # by number; 0 is the root
    outputs: tuple[int, ...]  # leaves, best first
    others: tuple[OtherBeam, ...]  # from narrow to wide, the searched beam not among them

    @property
    def best(self) -> Leaf:
        return self.leaves[self.outputs[0]]


def search_tree(
    predictor: Trained, text: str, rule: Beam, *, prefix: str = "", others: Sequence[int] = OTHERS
) -> Searched:
    """Search for a translation, or for what a language model writes after the text."""
    if not text.strip():
        raise DataError(f"text = {text!r}: there is nothing to search an output for; give it a word")
    grow, tokenizer = _grower(predictor, text, prefix)
    tree, spell = grow(rule)
    leaves = tuple(Leaf(node, _piece(node.token, tokenizer), spell(tree.tokens(node.number))) for node in tree.nodes)
    widths = sorted({*others} - {rule.width})
    found = (_other(width, *grow(Beam(width, rule.length_penalty))) for width in widths)
    return Searched(leaves, tuple(tree.outputs), tuple(found))


def beam_report(predictor: Trained, text: str, rule: Beam, others: Sequence[int] = OTHERS, name: str = "") -> BeamTree:
    """The tree of one search, and what other beams make of the same text. ``name`` is what to call the run, where the
    predictor does not know."""
    found = search_tree(predictor, text, rule, others=others)
    best = found.best
    own = OtherBeam(rule.width, best.text, best.node.log_probability, best.node.score)
    return BeamTree(
        source=text,
        output=best.text,
        beam=rule.width,
        length_penalty=rule.length_penalty,
        twigs=tuple(_twig(leaf) for leaf in found.leaves),
        outputs=found.outputs,
        others=tuple(_rounded(each) for each in sorted((own, *found.others), key=lambda each: each.beam)),
        name=predictor.run.folder.name if isinstance(predictor, Translator) and predictor.run else name,
    )


Grow = Callable[[Beam], tuple[Tree, Spell]]


def _grower(predictor: Trained, text: str, prefix: str) -> tuple[Grow, Tokenizer]:
    """What makes the tree of a rule and spells what it holds, and the tokenizer of its pieces."""

    def translation(rule: Beam) -> tuple[Tree, Spell]:
        assert isinstance(predictor, Translator)
        listener = Trees(rule)
        outputs = predictor.search([text], Options(rule, prefix=prefix), listener=listener)[0]
        return listener.trees[0], _speller(predictor, outputs)

    def continuation(rule: Beam) -> tuple[Tree, Spell]:
        assert isinstance(predictor, Writer)
        listener = Trees(rule)
        predictor.write([text], length=CONTINUATION, rule=rule, listener=listener)
        return listener.trees[0], predictor.tokenizer.decode

    if isinstance(predictor, Writer):
        if prefix:
            raise DataError("prefix: a language model goes on from the text itself; put it at the end of the text")
        return continuation, predictor.tokenizer
    if not isinstance(predictor, Translator):
        raise ModelError("beam: this run gives labels, each by itself, and does not search; a translator does")
    predictor.search.check_whole(text)
    if not predictor.search.parts(text):
        raise DataError(f"text = {text[:40]!r}: no word of it was seen in training, so nothing is searched; use others")
    return translation, predictor.tokenizers.target


def _speller(predictor: Translator, outputs: Sequence[Output]) -> Spell:
    """How tokens are written: an output as the translator writes it; what is not one with the unknown words of the
    source, as it was read, in their order, for nothing tells yet which of them was looked at."""
    written = {output.parts[0].tokens: output.text for output in outputs}
    rest = predictor.tokenizers.target.decode
    if isinstance(predictor.tokenizers.target, WordTokenizer):
        rest = partial(copied_in_order, predictor.tokenizers, outputs[0].parts[0].source)
    return lambda tokens: written[key] if (key := tuple(tokens)) in written else rest(tokens)


def _piece(token: int, tokenizer: Tokenizer) -> str:
    if token < 0:
        return "<start>"
    return SPECIAL_TOKENS[token] if token < len(SPECIAL_TOKENS) else tokenizer.token(token)


def _other(width: int, tree: Tree, spell: Spell) -> OtherBeam:
    best = tree.nodes[tree.outputs[0]]
    return OtherBeam(width, spell(tree.tokens(best.number)), best.log_probability, best.score)


def _rounded(other: OtherBeam) -> OtherBeam:
    return replace(other, log_probability=round(other.log_probability, DIGITS), score=round(other.score, DIGITS))


def _twig(leaf: Leaf) -> Twig:
    node = leaf.node
    scores = round(node.log_probability, DIGITS), round(node.score, DIGITS)
    return Twig(node.number, node.parent, node.step, legible(leaf.piece), *scores, node.fate, node.reason)
