"""Pages: one HTML file each that needs nothing else. The templates in templates/ say what stands where.

No request, no script that runs, light and dark, on paper too. Whatever a template is given as text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regard.metrics import numbers
from regard.show.markup import element, shown
from regard.show.svg import TEMPLATES, style, svg


def render(template: str, content: Mapping[str, Any]) -> str:
    """A template with what it shows. A page has its ``title`` and ``data``, the numbers that it holds as JSON."""
    return environment().get_template(template).render(content)


@cache
def environment() -> Environment:
    """How templates are read, and what all of them may call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False}
    made.globals |= {"svg": svg, "style": style, "sentence": sentence, "unknown": numbers.UNKNOWN}
    made.filters |= {
        "count": numbers.count,
        "duration": numbers.duration,
        "milliseconds": numbers.milliseconds,
        "percent": numbers.percent,
        "probability": numbers.probability,
        "score": numbers.score,
        "signed": numbers.signed,
        "thousands": lambda value: f"{value:,}",
    }
    return made


def several(names: Sequence[str]) -> str:
    """``a, b and c``"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(words: str, wrong: Sequence[bool] = (), kind: str = "") -> Markup:
    """A text of any language in its own direction; ``wrong`` says which of its words to mark, and ``kind`` how."""
    if not any(wrong):
        return element("span", {"dir": "auto"}, words)
    parts: list[str] = []
    for bad, group in groupby(zip(words.split(), wrong, strict=True), key=lambda item: item[1]):
        part = " ".join(word for word, _ in group)
        parts += [" ", element("mark", {"class": kind} if kind else {}, part) if bad else part]
    return element("span", {"dir": "auto"}, *parts[1:])
