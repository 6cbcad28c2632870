"""Looking inside: replay a finished output with recording on, and read what was recorded.

The questions about a loaded run, one function each, and their answers, one frozen dataclass each.

An answer is the Python result, the JSON of the service (`regard.explain.answer`) and what pages and verbs draw.

| question | answer | asked by |
|---|---|---|
| `look`: where a model looked, what if | `Looked` | ``regard explain``, ``/trace`` |
| `attribute`: what each word read was to those written | `Attribution` | ``explain --by``, ``/importance`` |
| `remembered`: which map to believe (`evaluate.faithful` measures it) | `Faithfulness` | ``regard faithful``, `look` |
| `cells`: gates and states of recurrent cells for it | `Cells` | ``/gates`` |
| `search_tree`: what a search kept, pruned and why | `Searched` | ``regard beam``, ``/beam``, reports |
| `compare_meanings`: a word in several sentences | `Compared` | ``regard meaning``, ``/meaning`` |
| `map_model`: the model as its parts, with a sentence in them | `ModelMap` | ``/map`` |
| `walk_text`: the mathematics, number by number | `Walkthrough` | ``regard walk``, ``/walkthrough`` |
"""
