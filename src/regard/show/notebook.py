"""A translation in a notebook: the text and its heat map as a self-contained HTML fragment.

It has no script, ids or links, so that it works in a sandboxed frame and several fit on one page. It brings its own
colours, so that it can be read in a dark notebook on a light system, too.
"""

from __future__ import annotations

from regard.explain.heatmap import HeatMap
from regard.show.page import render


def fragment(source: str, text: str, picture: HeatMap | None, note: str = "") -> str:
    """The source, the output and, where one pass wrote it, the heat map of its words."""
    return render("notebook.html", {"source": source, "text": text, "note": note, "picture": picture})
