"""What a notebook shows of a translation: the text and its heat map, in a fragment that needs nothing else.

No script, no identifiers, no address: it is the same in a sandboxed frame, and two of them on one page do not disturb
each other. Its colours are its own, so that it reads in a dark notebook on a light system too.
"""

from __future__ import annotations

from regard.explain.explanation import Explanation
from regard.explain.views import View
from regard.show import heatmap_svg
from regard.show.heatmap_svg import heat_svg
from regard.show.markup import Html, element
from regard.show.page import sentence

STYLE = (
    ".regard{background:#fff;color:#1b1e24;padding:12px;border-radius:6px;overflow-x:auto;"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI','Noto Sans',sans-serif}"
    ".regard p{margin:0 0 6px}.regard .soft{color:#59606b;font-size:13px}"
    "@media (prefers-color-scheme:dark){.regard{background:#16181d;color:#e8eaee}.regard .soft{color:#a4acb8}}"
)


def fragment(source: str, text: str, found: Explanation | None, note: str = "") -> str:
    """The source, the output and, where one pass wrote it, the heat map of its words."""
    inside = [
        element("p", {"class": "soft"}, sentence(source)),
        element("p", {}, element("strong", {}, sentence(text))),
    ]
    if note:
        inside.append(element("p", {"class": "soft"}, note))
    if found is not None:
        picture = found.picture(View())
        inside.append(heat_svg(picture, caption=False))
        inside.append(element("p", {"class": "soft"}, picture.origin))
    style = Html(f"<style>{STYLE}{heatmap_svg.STYLE if found is not None else ''}</style>")
    return element("div", {"class": "regard"}, style, *inside)
