"""The tree of a search: every candidate of every step, what became of it, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from regard.decode.rules import Rule
from regard.decode.search import SearchStep
from regard.text.special import END

Fate = Literal["kept", "finished", "pruned"]
Reason = Literal[
    "",  # it went on
    "beam",  # pruned: others were better
    "repeated",  # pruned: another group had written the same
    "output",  # finished: one of the outputs
    "worse",  # finished: others that finished were better
    "full",  # kept, but as many had finished as the beam is wide
    "beaten",  # kept, but it could not beat what had finished any more
    "limit",  # kept, but there was nothing more to be written
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        return {"nodes": [asdict(node) for node in self.nodes], "outputs": list(self.outputs)}


class Trees:
    """A listener that grows one tree a sentence. It copies every step from the device: for looking, not for speed."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.trees: dict[int, Tree] = {}  # by sentence of the search
        self._slots: dict[int, list[int]] = {}  # the node in each slot

    def hear(self, step: SearchStep) -> None:
        sentences, over = step.before.sentences.tolist(), step.over.tolist()
        considered, ended, scores = step.choice.considered, step.choice.ended, step.scores
        assert considered is not None
        assert ended is not None
        assert scores is not None
        length = step.before.written.shape[2] + 1
        columns = (
            considered.tokens,
            considered.totals,
            self.rule.score(considered.totals, length),
            considered.kept,
            considered.ending,
            self.rule.score(considered.ending, length),
            ended,
            scores,
        )
        for place, (sentence, *values) in enumerate(zip(sentences, *(each.tolist() for each in columns), strict=True)):
            if not step.before.open[place]:
                continue
            tree, seen = self.trees.setdefault(sentence, Tree()), _Seen(*values)
            parents = self._slots.get(sentence, [0] * self.rule.rows)
            self._slots[sentence] = _continue(tree, parents, length, seen)
            _end(tree, parents, length, seen)
            if over[place]:
                self._close(tree, self._slots.pop(sentence), self._why(step, place))

    def _why(self, step: SearchStep, row: int) -> Reason:
        if int(step.after.count[row]) >= self.rule.rows:
            return "full"
        return "limit" if step.after.totals[row].isneginf().all() else "beaten"

    def _close(self, tree: Tree, slots: Sequence[int], why: Reason) -> None:
        """The search of a sentence is over."""
        for number in slots:
            if number >= 0:
                tree.nodes[number] = replace(tree.nodes[number], reason=why)
        ended = [node.number for node in tree.nodes if node.fate == "finished"]
        tree.outputs = sorted(ended, key=lambda number: -tree.nodes[number].score)[: self.rule.best]
        for number in tree.outputs:
            tree.nodes[number] = replace(tree.nodes[number], reason="output")


@dataclass(frozen=True)
class _Seen:
    """One sentence's part of a step, as plain values."""

    tokens: list[list[int]]  # W of k
    totals: list[list[float]]
    scores: list[list[float]]
    kept: list[int]
    ending: list[float]  # W
    ending_scores: list[float]  # without coverage
    admitted: list[float]  # -inf: others were better
    finished: list[float]  # scores; -inf: it did not count


def _continue(tree: Tree, parents: Sequence[int], length: int, seen: _Seen) -> list[int]:
    """Add what goes on or might have; returns the node in each slot, -1 where there is none."""
    slots, each = [-1] * len(seen.kept), len(seen.tokens[0])
    for place, parent in enumerate(parents):
        for rank, total in enumerate(seen.totals[place]):
            if total == -math.inf:
                continue
            index, number = place * each + rank, len(tree.nodes)
            fate: tuple[Fate, Reason] = ("pruned", "beam")
            if index in seen.kept:
                slots[seen.kept.index(index)], fate = number, ("kept", "")
            token, score = seen.tokens[place][rank], seen.scores[place][rank]
            tree.nodes.append(Node(number, parent, length, token, total, score, *fate))
    return slots


def _end(tree: Tree, parents: Sequence[int], length: int, seen: _Seen) -> None:
    """Add the ends, whether they count or not."""
    for place, (parent, total) in enumerate(zip(parents, seen.ending, strict=True)):
        if total == -math.inf:
            continue
        fate: tuple[Fate, Reason] = ("pruned", "beam")
        score = seen.ending_scores[place]
        if seen.finished[place] > -math.inf:
            fate, score = ("finished", "worse"), seen.finished[place]
        elif seen.admitted[place] > -math.inf:
            fate = ("pruned", "repeated")
        tree.nodes.append(Node(len(tree.nodes), parent, length, END, total, score, *fate))
