"""The search for one sentence, kept whole: what ``regard beam`` and a report show."""

from __future__ import annotations

from collections.abc import Sequence

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.texts import Output
from regard.decode.tree import Node, Trees
from regard.errors import DataError
from regard.report.beam import BeamReport, OtherBeam
from regard.report.run_report import BeamTree, Twig
from regard.text.special import SPECIAL_TOKENS
from regard.text.words import legible
from regard.translator import Translator

OTHERS = (1, 2, 5, 10)  # beams that are tried beside the one asked for
DIGITS = 5  # of scores as they are kept


def beam_report(translator: Translator, text: str, rule: Beam, others: Sequence[int] = OTHERS) -> BeamReport:
    """The tree of one search, and what other beams make of the same text."""
    parts = translator.search.parts(text)
    if len(parts) != 1:
        problem = f"goes through the model in {len(parts)} parts" if parts else "is empty"
        raise DataError(f"text = {text[:40]!r}: {problem}; a tree is of one search for one sentence")
    tree = tree_of(translator, text, rule)
    found = tuple(
        _other(width, translator.search([text], Options(Beam(width, rule.length_penalty)))[0][0])
        for width in sorted({*others, rule.width})
    )
    return BeamReport(tree, found, "" if translator.run is None else translator.run.folder.name)


def _other(beam: int, output: Output) -> OtherBeam:
    return OtherBeam(beam, output.text, round(output.log_probability, DIGITS), round(output.score, DIGITS))


def tree_of(translator: Translator, text: str, rule: Beam) -> BeamTree:
    """Every candidate of the search for a text that goes through the model at once."""
    listener = Trees(rule)
    (outputs,) = translator.search([text], Options(rule), listener=listener)
    tree = listener.trees[0]
    twigs = tuple(_twig(translator, node) for node in tree.nodes)
    return BeamTree(text, outputs[0].text, rule.width, rule.length_penalty, twigs, tuple(tree.outputs))


def _twig(translator: Translator, node: Node) -> Twig:
    token = _spelled(translator, node.token)
    scores = round(node.log_probability, DIGITS), round(node.score, DIGITS)
    return Twig(node.number, node.parent, node.step, token, *scores, node.fate, node.reason)


def _spelled(translator: Translator, token: int) -> str:
    if token < 0:
        return "<start>"
    if token < len(SPECIAL_TOKENS):
        return SPECIAL_TOKENS[token]
    return legible(translator.tokenizers.target.token(token))
