"""What a notebook shows of a translation: the text and its heat map, in a fragment that needs nothing else.

No script, no identifiers, no address: it is the same in a sandboxed frame, and two of them on one page do not disturb
each other. Its colours are its own, so that it reads in a dark notebook on a light system too.
"""

from __future__ import annotations

from regard.explain.look import Looked
from regard.explain.views import View
from regard.show.page import render


def fragment(source: str, text: str, found: Looked | None, note: str = "") -> str:
    """The source, the output and, where one pass wrote it, the heat map of its words."""
    picture = found.picture(View()) if found is not None else None
    return render("notebook.html", {"source": source, "text": text, "note": note, "picture": picture})
