"""Where a run that reads pictures looks: on the ink of digits, or on the shape that each word of a caption is about.

python bench/grounding.py RUN data/digits/test.vectors data/digits/test.words
python bench/grounding.py RUN data/shapes/test.vectors data/shapes/test.words --links data/shapes/test.links

Without links, for each method: the share of what each word looked at that lies on patches with ink, beside the share of
patches that have ink, and how often the strongest patch has ink. With links: how often the strongest patch of a word
that names something is one of that thing's, of captions that are right, and how often that thing has more of the weight
than any other.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from regard.explain.attribution import word_map
from regard.tasks.load import load
from regard.text.vectors import Vectors


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("run", "source", "target"):
        asked.add_argument(name, type=Path)
    asked.add_argument("--links", type=Path)
    asked.add_argument("--limit", type=int, default=100)
    asked.add_argument("--methods", default="attention,masking")
    given = asked.parse_args()
    lines = [path.read_text().splitlines()[: given.limit] for path in (given.source, given.target)]
    links = given.links.read_text().splitlines()[: given.limit] if given.links else [""] * len(lines[0])
    translator = load(given.run, engine="native")
    vectors = translator.tokenizers.source
    assert isinstance(vectors, Vectors)
    found = translator.translate(lines[0])
    right = [place for place, each in enumerate(found) if each.text == lines[1][place]]
    print(f"{len(right)} of {len(found)} right")
    for method in given.methods.split(","):
        hits, things, words, shares, inked = 0, 0, 0, list[float](), list[float]()
        for place in right:
            sides = translator.sides(found[place].outputs[0].parts[0])
            weights = np.abs(word_map(translator.model, *sides, method, aligner=translator.aligner).weights.numpy())
            ink = vectors.values(lines[0][place]).max(1) > 0
            gold = _about(links[place], len(weights), ink) if given.links else {0: np.flatnonzero(ink)}
            for word, patches in gold.items():
                hits, words = hits + int(weights[word].argmax() in patches), words + 1
                totals = [weights[word][each].sum() for each in gold.values()]
                things += weights[word][patches].sum() >= max(totals)
                shares.append(float(weights[word][patches].sum() / max(1e-9, weights[word].sum())))
                inked.append(len(patches) / len(ink))
        print(f"{method}: strongest patch right for {hits / max(1, words):.3f} of {words} words; ", end="")
        if given.links:
            print(f"strongest thing right for {things / max(1, words):.3f}; ", end="")
        print(f"share there {np.mean(shares):.3f}, of the picture {np.mean(inked):.3f}")


def _about(links: str, words: int, ink: np.ndarray) -> dict[int, np.ndarray]:
    """For each word that names something, the patches that it is about."""
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    about = {word: np.array([patch for patch, other in pairs if other == word]) for word in range(words)}
    assert all((patches < len(ink)).all() for patches in about.values() if len(patches))
    return {word: patches for word, patches in about.items() if len(patches)}


if __name__ == "__main__":
    main()
