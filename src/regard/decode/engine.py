"""The seam where another program may search in place of our own loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.search import Hypothesis


class Engine(Protocol):
    """Searches sources for the outputs that `decode.search` would find; what it cannot do goes to that."""

    @property
    def name(self) -> str:
        """As the user asks for it."""

    def refuses(self, options: Options) -> str:
        """Which of these options it does not know; empty if it can do all of it. Somebody who listens is told."""

    def search(
        self, sources: Sequence[Sequence[int]], limits: Sequence[int], rule: Beam, budget: int
    ) -> list[list[Hypothesis] | None]:
        """For each source, ``<end>`` included, its outputs, best first; None where they might not be those of ours."""
