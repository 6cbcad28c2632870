"""The questions about a loaded run, one function each, and their answers, one frozen dataclass each.

An answer is the Python result, the JSON of the service (`regard.explain.answer`) and what pages and verbs draw.

| question | answer | asked by |
|---|---|---|
| `look`: where a model looked, what if | `Looked` | ``regard explain``, ``/trace`` |
| `importance`: what each word did for an output looked into | `Importance` | ``/importance`` |
| `cells`: gates and states of recurrent cells for it | `Cells` | ``/gates`` |
| `search_tree`: what a search kept, pruned and why | `Searched` | ``regard beam``, ``/beam``, reports |
| `compare_meanings`: a word in several sentences | `Compared` | ``regard meaning``, ``/meaning`` |
| `walk_text`: the mathematics, number by number | `Walkthrough` | ``regard walk``, ``/walkthrough`` |
"""

from __future__ import annotations

from regard.explain.beam import Searched, search_tree
from regard.explain.cells import Cells, cells
from regard.explain.importance import Importance, importance
from regard.explain.look import Question, look
from regard.explain.looked import Looked
from regard.explain.meaning import Compared, compare_meanings
from regard.explain.walk import walk_text
from regard.explain.walkthrough.step import Walkthrough

__all__ = [
    "Cells",
    "Compared",
    "Importance",
    "Looked",
    "Question",
    "Searched",
    "Walkthrough",
    "cells",
    "compare_meanings",
    "importance",
    "look",
    "search_tree",
    "walk_text",
]
