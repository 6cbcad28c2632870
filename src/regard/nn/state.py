"""State is data: a tree of frozen dataclasses of tensors with the row as axis 0.

A decoder remembers nothing on itself. What it has to carry from step to step is a `State`, and search
does everything it has to do to a state with one verb, `State.select`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

from torch import Tensor

Source = TypeVar("Source")
Target = TypeVar("Target")
Tree = TypeVar("Tree")


def select_rows(tree: Tree, rows: Tensor) -> Tree:
    """The same tree with only these rows, in this order; a row may appear more than once.

    A node with a method ``select_rows`` of its own knows best.
    """
    node: Any = tree
    if isinstance(node, Tensor):
        return node.index_select(0, rows)  # type: ignore[return-value]
    if hasattr(type(node), "select_rows"):
        return node.select_rows(rows)
    if isinstance(node, tuple):
        return tuple(select_rows(child, rows) for child in node)  # type: ignore[return-value]
    if is_dataclass(node) and not isinstance(node, type):
        chosen = {field.name: select_rows(getattr(node, field.name), rows) for field in fields(node)}
        return replace(node, **chosen)  # type: ignore[return-value]
    return tree


@dataclass(frozen=True)
class State(Generic[Source, Target]):
    """A decoder between two steps: B sentences, each with W hypotheses side by side.

    What belongs to the sentence (its encoded source) has B rows and is shared by all its hypotheses;
    what belongs to a hypothesis (recurrent states, the key/value cache) has B · W rows.
    """

    source: Source
    target: Target
    length: int  # tokens read so far

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> State[Source, Target]:
        """Expand to a beam, follow winners, drop the finished.

        ``rows`` (B', W'): which row of now the w-th hypothesis of the b-th sentence goes on from.
        ``sentences`` (B'): which sentences of now these are; None means all of them in order, and then the
        source side is not touched, let alone copied for each hypothesis.
        """
        source = self.source if sentences is None else select_rows(self.source, sentences)
        return replace(self, source=source, target=select_rows(self.target, rows.flatten()))
