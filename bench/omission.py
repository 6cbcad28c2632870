"""How often a word that a translation leaves out is found, and how often one is named that is not left out.

    python bench/omission.py RUN [--source FILE --target FILE] [--sentences 600] [--ledger]

Without files the run's validation text is used. A translation that is exactly the reference leaves nothing out: what is
named of it is a false alarm. Then one word of each source, drawn with a seed, is taken away, the rest is translated,
and that output is held against the whole source: the word is left out for certain, unless the output is the same.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import regard
from ledger import enter
from regard.data.encoding import PairEncoder
from regard.data.readers import Corpus
from regard.decode.options import Options
from regard.explain.omission import omitted, without, words_of
from regard.tasks.corpus import materials
from regard.tasks.translator import Translator
from regard.text.reading import Unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("run")
    parser.add_argument("--source", type=Path)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    translator = regard.load(asked.run)
    if asked.source is None:
        rows = (row for _, row in materials(translator.loaded_from.settings)[1].rows(PairEncoder.names))
    else:
        rows = (row for _, row in Corpus((str(asked.source), str(asked.target))).rows(PairEncoder.names))
    pairs = [(row[0], row[1]) for row in islice(rows, asked.sentences)]
    began = time.process_time()
    found = list(translator.stream([source for source, _ in pairs], Options()))
    translated = time.process_time() - began
    named = [each.omitted for each in found]
    took = time.process_time() - began - translated
    right = [bool(words) for words, each, (_, target) in zip(named, found, pairs, strict=True) if each.text == target]
    print(f"{len(pairs)} sentences, {len(right)} translated exactly: a word named in {sum(right)} of these,")
    print(f"  in {sum(map(bool, named)) - sum(right)} of the other {len(pairs) - len(right)}")
    print(f"translating {translated:.1f} s of CPU time, looking for what is left out {took:.1f} s")
    hits, cases = removed(translator, [source for source, _ in pairs])
    print(f"one word taken away: named in {hits} of {cases} ({hits / max(1, cases):.0%})")
    if asked.ledger:
        found_of = {"exact": len(right), "named_in_exact": sum(right), "taken_away": cases, "found": hits}
        spent = {"translating_cpu": round(translated, 1), "looking_cpu": round(took, 1)}
        on = asked.source.name if asked.source else "validation text"
        about = {"run": Path(asked.run).name, "on": on, "sentences": len(pairs)}
        enter("omission", about | found_of | spent, f"python bench/omission.py {Path(asked.run).name} … --ledger")


def removed(translator: Translator, sources: list[str], seed: int = 1) -> tuple[int, int]:
    """How many words that were taken away are named, of how many."""
    chance, cases = Random(seed), list[tuple[str, Unknown, str]]()
    for source in sources:
        long = [span for span in words_of(source) if span[1] - span[0] > 2]
        if len(long) > 1:
            start, end = chance.choice(long)
            cases.append((source, Unknown(start, end, source[start:end]), without(source, start, end)))
    whole = translator.stream([source for source, _, _ in cases], Options())
    less = translator.stream([rest for _, _, rest in cases], Options())
    hits = total = 0
    for (source, word, _), one, other in zip(cases, whole, less, strict=True):
        output = other.outputs[0]
        if one.text == other.text or len(output.parts) != 1 or len(one.outputs[0].parts) != 1:
            continue
        total += 1
        part = replace(output.parts[0], source=one.outputs[0].parts[0].source)
        hits += word.start in {each.start for each in omitted(translator, source, replace(output, parts=(part,)))}
    return hits, total


if __name__ == "__main__":
    main()
