"""The tree of a search: every candidate of every step, what became of it, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor

from regard.decode.front import Choice, Front
from regard.decode.rules import Rule
from regard.text.vocabulary import END

Fate = Literal["kept", "finished", "pruned"]
Reason = Literal[
    "",  # it went on
    "beam",  # pruned: others were better
    "repeated",  # pruned: another group had written the same
    "output",  # finished: one of the outputs
    "worse",  # finished: others that finished were better
    "full",  # kept, but as many had finished as the beam is wide
    "beaten",  # kept, but it could not beat what had finished any more
    "limit",  # kept, but nothing more could be written
]


@dataclass(frozen=True)
class Node:
    """A hypothesis: its last token, and the node it continues."""

    number: int
    parent: int | None  # None: the root, before anything is written
    step: int  # tokens written, <end> included
    token: int
    log_probability: float
    score: float  # normalised for its length so far
    fate: Fate
    reason: Reason


@dataclass
class Tree:
    """One sentence's search."""

    nodes: list[Node] = field(default_factory=lambda: [Node(0, None, 0, -1, 0.0, 0.0, "kept", "")])
    outputs: list[int] = field(default_factory=list)  # nodes, best first

    def tokens(self, number: int) -> list[int]:
        """What stands written at a node, without ``<end>``."""
        written: list[int] = []
        node = self.nodes[number]
        while node.parent is not None:
            written.append(node.token)
            node = self.nodes[node.parent]
        return [token for token in reversed(written) if token != END]


class Trees:
    """A listener that grows one tree a sentence. It copies every step from the device, which is slow."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.trees: dict[int, Tree] = {}  # by sentence of the search
        self._slots: dict[int, list[int]] = {}  # the node in each slot

    def on_step(self, before: Front, choice: Choice, scores: Tensor | None, after: Front, over: Tensor) -> None:
        weighed, ended, length = choice.considered, choice.ended, before.written.shape[2] + 1
        assert weighed is not None
        assert ended is not None
        assert scores is not None
        going_on = weighed.tokens, weighed.totals, self.rule.score(weighed.totals, length)
        ending = weighed.ending, self.rule.score(weighed.ending, length), ended, scores
        for place, sentence in enumerate(before.sentences.tolist()):
            if not before.open[place]:
                continue
            tree, parents = self.trees.setdefault(sentence, Tree()), self._slots.get(sentence, [0] * self.rule.rows)
            kept, own = weighed.kept[place].tolist(), zip(*(each[place].tolist() for each in going_on), strict=True)
            self._slots[sentence] = _continue(tree, parents, length, kept, own)
            _end(tree, parents, length, zip(*(each[place].tolist() for each in ending), strict=True))
            if over[place]:
                self._close(tree, self._slots.pop(sentence), self._why(after, place))

    def _why(self, after: Front, row: int) -> Reason:
        if int(after.count[row]) >= self.rule.rows:
            return "full"
        return "limit" if after.totals[row].isneginf().all() else "beaten"

    def _close(self, tree: Tree, slots: Sequence[int], why: Reason) -> None:
        """The search of a sentence is over."""
        for number in slots:
            if number >= 0:
                tree.nodes[number] = replace(tree.nodes[number], reason=why)
        ended = [node.number for node in tree.nodes if node.fate == "finished"]
        tree.outputs = sorted(ended, key=lambda number: -tree.nodes[number].score)[: self.rule.best]
        for number in tree.outputs:
            tree.nodes[number] = replace(tree.nodes[number], reason="output")


def _continue(
    tree: Tree, parents: Sequence[int], length: int, kept: list[int], weighed: Iterable[tuple[list[Any], ...]]
) -> list[int]:
    """Add the continuations, kept or pruned; returns the node in each slot, -1 where there is none.

    ``weighed`` are the tokens, totals and scores of each hypothesis; ``kept`` says which of all of them fill the slots.
    """
    slots, index = [-1] * len(kept), -1
    for parent, columns in zip(parents, weighed, strict=True):
        for token, total, score in zip(*columns, strict=True):
            index += 1
            if total == -math.inf:
                continue
            fate: tuple[Fate, Reason] = ("pruned", "beam")
            if index in kept:
                slots[kept.index(index)], fate = len(tree.nodes), ("kept", "")
            tree.nodes.append(Node(len(tree.nodes), parent, length, token, total, score, *fate))
    return slots


def _end(tree: Tree, parents: Sequence[int], length: int, ending: Iterable[tuple[float, ...]]) -> None:
    """Add the ends, whether they count or not.

    ``ending`` has for each hypothesis its total and score with ``<end>``, without coverage; -inf if others were better;
    and the score it finished with, -inf if it did not count.
    """
    for parent, (total, score, admitted, finished) in zip(parents, ending, strict=True):
        if total == -math.inf:
            continue
        fate: tuple[Fate, Reason] = ("pruned", "repeated" if admitted > -math.inf else "beam")
        own = score
        if finished > -math.inf:
            fate, own = ("finished", "worse"), finished
        tree.nodes.append(Node(len(tree.nodes), parent, length, END, total, own, *fate))
