"""One HTML file that needs nothing else: no request, no script that runs, light and dark, on paper too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import Any

from regard.show import charts
from regard.show.markup import Html, data, element, join

# A browser that reads this refuses every request, whatever else the file might hold.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
MOST_COLUMNS = 4  # of a table beside one another on a telephone
DATA = "data"  # the id of the numbers

STYLE = """
:root{color-scheme:light dark;--ink:#1b1e24;--soft:#59606b;--panel:#f5f6f8;--mark:#fdeccb;--under:#b06a00}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaee;--soft:#a4acb8;--panel:#1f2229;--mark:#4a3a17;--under:#f0b44c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1,h2,h3,h4,p,li,summary,figcaption{overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .5rem}
h2{font-size:1.2rem;margin:2.75rem 0 .6rem}
p,ul{margin:.5rem 0 1rem;max-width:46rem}
a{color:inherit}
.lead{font-size:1.1rem}
.note{color:var(--soft);font-size:.875rem}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.94rem}
th,td{padding:.4rem .9rem .4rem 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th:first-child,td:first-child{text-align:left}
thead th{color:var(--soft);font-weight:600;vertical-align:bottom}
tbody th{font-weight:600;white-space:normal;overflow-wrap:anywhere;min-width:8rem}
td.left,th.left{text-align:left}
caption{text-align:left;color:var(--soft);font-size:.875rem;padding-bottom:.4rem}
code{font:.875em/1.5 ui-monospace,SFMono-Regular,Consolas,monospace;overflow-wrap:anywhere}
figure{margin:1rem 0}
figure .narrow{display:none}
.key{float:left;width:.7em;height:.7em;margin:.42em .45em 0 0;border-radius:2px;background:var(--hue)}
.card{background:var(--panel);border-radius:8px;padding:.75rem 1rem;margin:.75rem 0;break-inside:avoid}
.card dl{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr;gap:.25rem 1rem;margin:.25rem 0}
.card dt{color:var(--soft);font-size:.875rem;overflow-wrap:anywhere}
.card dd{margin:0;overflow-wrap:anywhere}
details{margin:.5rem 0}
summary{cursor:pointer;color:var(--soft);font-size:.9rem;padding:.2rem 0}
summary:focus-visible,[tabindex]:focus-visible,a:focus-visible{outline:2px solid var(--s0);outline-offset:2px}
pre{background:var(--panel);border-radius:8px;padding:.75rem 1rem;margin:.5rem 0;overflow-x:auto}
pre code{overflow-wrap:normal}
mark{background:var(--mark);color:inherit;border-bottom:2px solid var(--under);border-radius:2px}
@media (max-width:640px){
main{padding:1.25rem 1rem 3rem}
h1{font-size:1.35rem}
figure .wide{display:none}
figure .narrow{display:block}
thead th,td.left{white-space:normal}
td.left{min-width:9rem}
table.stack,.stack tbody,.stack tr,.stack th,.stack td{display:block}
.stack thead{display:none}
.stack tr{padding:.4rem 0;border-bottom:1px solid var(--grid)}
.stack th,.stack td{border:0;padding:.1rem 0}
.stack td{display:flex;justify-content:space-between}
.stack td::before{content:attr(data-head);color:var(--soft)}
.card dl{grid-template-columns:1fr;gap:0}
.card dd{margin-bottom:.4rem}
}
@media print{
:root{--paper:#fff;--ink:#000;--soft:#444;--panel:#f4f4f4;--grid:#ccc;--mark:#fdeccb;--under:#b06a00;
--s0:#0072b2;--s1:#c84e00;--s2:#007a58;--s3:#9c4a7b;--s4:#856900;--s5:#555555}
body{font-size:11pt}
main{max-width:none;padding:0}
h2{break-after:avoid}
.scroll{overflow:visible}
tr,figure{break-inside:avoid}
details::details-content{content-visibility:visible;block-size:auto}
pre{white-space:pre-wrap}
}
"""


def page(title: str, body: Sequence[Html], numbers: Any, *, style: str = "") -> str:
    """A whole document. `numbers` are in it as JSON, in the script element with the id ``data``.

    ``style`` is further CSS, written by us.
    """
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, title),
        Html(f"<style>{charts.STYLE}{STYLE}{style}</style>"),
    )
    whole = element(
        "html", {"lang": "en"}, head, "\n", element("body", {}, element("main", {}, *body), "\n", data(numbers, DATA))
    )
    return f"<!doctype html>\n{whole}\n"


def section(title: str, *children: str, name: str = "") -> Html:
    """A part under its title; one with a name can be linked to."""
    return element("section", {"id": name} if name else {}, element("h2", {}, title), *children)


def more(summary: str, *children: str, kind: str = "") -> Html:
    """What is long and not needed at first: shown on demand, and on paper."""
    return element("details", {"class": kind} if kind else {}, element("summary", {}, summary), *children)


def verbatim(words: str) -> Html:
    """A text as it is, line by line; what is too wide scrolls by itself."""
    return element("pre", {"tabindex": 0}, element("code", {}, words))


def paragraph(kind: str, *children: str) -> Html:
    """A paragraph of a kind: ``lead``, ``note`` or nothing."""
    return element("p", {"class": kind} if kind else {}, *children)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", *, left: Collection[int] = ()) -> Html:
    """The first cell of a row is its name; columns in `left` hold no numbers.

    What is too wide scrolls by itself; on a telephone a table of many columns stands with its cells below one another.
    """
    inside = [element("caption", {}, caption)] if caption else []
    titles = [element("th", {"scope": "col"} | _left(place in left), cell) for place, cell in enumerate(head)]
    inside.append(element("thead", {}, element("tr", {}, *titles)))
    body = []
    for name, *cells in rows:
        values = [
            element("td", {"data-head": title} | _left(place in left), cell)
            for place, (title, cell) in enumerate(zip(head[1:], cells, strict=True), start=1)
        ]
        body.append(element("tr", {}, element("th", {"scope": "row"}, name), *values))
    kind = {"class": "stack"} if len(head) > MOST_COLUMNS else {}
    whole = element("table", kind, *inside, element("tbody", {}, *body))
    return element("div", {"class": "scroll", "tabindex": 0}, whole)


def _left(yes: bool) -> dict[str, str]:
    return {"class": "left"} if yes else {}


def figure(draw: Callable[[int], Html], caption: str = "") -> Html:
    """A chart drawn twice, for a wide and for a narrow window: letters keep their size, and only one is shown."""
    drawn = [
        element("div", {"class": kind}, draw(width))
        for kind, width in (("wide", charts.WIDE), ("narrow", charts.NARROW))
    ]
    words = [element("figcaption", {"class": "note"}, caption)] if caption else []
    return element("figure", {}, *drawn, *words)


def key(number: int) -> Html:
    """The colour of a series, to stand before its name."""
    return element("span", {"class": f"key s{number % charts.COLOURS}", "aria-hidden": "true"})


def items(*rows: str) -> Html:
    return element("ul", {}, *(element("li", {}, row) for row in rows))


def sentence(words: str, wrong: Sequence[bool] = (), kind: str = "") -> Html:
    """A text of any language in its own direction; ``wrong`` says which of its words to mark, and ``kind`` how."""
    if not any(wrong):
        return element("span", {"dir": "auto"}, words)
    parts = [
        (bad, " ".join(word for word, _ in group))
        for bad, group in groupby(zip(words.split(), wrong, strict=True), key=lambda item: item[1])
    ]
    about = {"class": kind} if kind else {}
    return element(
        "span", {"dir": "auto"}, join([element("mark", about, part) if bad else part for bad, part in parts], " ")
    )


def scrolled(svg: Html, caption: str) -> Html:
    """A picture that keeps its size and scrolls by itself where it is too wide."""
    words = element("figcaption", {"class": "note"}, caption)
    return element("figure", {}, element("div", {"class": "scroll", "tabindex": 0}, svg), words)
