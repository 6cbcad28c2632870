"""What the demo run must show from inside: trains it with each seed, or takes runs that are there, and checks claims.

    python bench/evidence.py [--seeds 1,2,3] [--run FOLDER …] [--ledger]

1. The alignment of *The black cat ate the mouse.* is right, link by link, and so is that of the careless form, *the
   black cat ate the mouse*.
2. In *The bear ate the honey because it was hungry.* and *… delicious.*, blanking out the noun that *it* stands for
   costs the pronoun's translation more than blanking out the other. Both nouns are masculine in French, so *il* itself
   cannot show it; with *pear*, which is feminine, it can, and must come out right with both endings. Beside this
   stands how often masking points to the right noun, and how often the pronoun is right, in sentences of this kind
   that training did not have.
3. *Bank* is closer to itself in two money sentences than in a money and a river sentence at the last layer, and not so
   at layer 0.

All of it must hold for every seed: one table is printed for each, and the exit code is 1 if any claim fails.
``--ledger`` appends the results to bench/ledger.jsonl, a line a seed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger import enter
from regard.cli.display import display
from regard.explain.attribution import word_map
from regard.explain.meaning import cosines, find, meaning
from regard.fable.corpus import pronoun_riddles
from regard.fable.sentence import ParallelSentence
from regard.settings.demo import PRESET, demo_settings
from regard.tasks.load import load
from regard.tasks.translator import Translator
from regard.trainer import start as training

TESTED, MASKED, GOOD = 400, 50, 0.8  # sentences; how many of them are masked too; how often right is often
CAT = "The black cat ate the mouse."
LINKS = {(0, 0), (1, 2), (2, 1), (3, 3), (3, 4), (4, 5), (5, 6)}
BEAR = "The bear ate the {} because it was {}."
NOUNS = (1, 4)  # their places in it
BANKS = (
    "The thief found the coin in the bank.",
    "The banker counted the money in the bank.",
    "The duck slept on the bank.",
)


@dataclass(frozen=True)
class Claim:
    """Something shown, or not."""

    name: str
    found: str
    right: bool


def pronoun_is_right(translator: Translator, sentences: Sequence[ParallelSentence]) -> float:
    outputs = translator.translate([sentence.source for sentence in sentences], beam=1)
    pairs = zip(outputs, sentences, strict=True)
    return sum(("qu'elle" in one.text) == ("qu'elle" in other.target) for one, other in pairs) / len(sentences)


def masked(translator: Translator, source: str, nouns: Sequence[int]) -> list[float]:
    """What blanking out each of these words costs the pronoun's translation, in nats; nothing, if there is none."""
    trace = translator.translate(source, beam=1).trace()
    rows = [place for place, word in enumerate(trace.target.words) if word.startswith("qu'")][:1]
    effect = word_map(translator.model, trace.source, trace.target).weights
    return [float(effect[row][noun]) for row in rows for noun in nouns] or [0.0] * len(nouns)


def pointed_right(translator: Translator, sentences: Sequence[ParallelSentence]) -> float:
    """How often the noun that is meant costs more than the other."""
    hits = 0
    for sentence in sentences:
        ((_, meant),) = sentence.referents
        first, second = (place for place, tag in enumerate(sentence.tags) if tag == "NOUN")
        costs = masked(translator, sentence.source, (meant, second if meant == first else first))
        hits += costs[0] > costs[1]
    return hits / len(sentences)


def careless(text: str) -> str:
    """As one writes in a hurry: no capital, no full stop."""
    return text[0].lower() + text[1:].rstrip(".")


def cat(translator: Translator) -> list[Claim]:
    claims = []
    for how, text in (("as people write", CAT), ("in a hurry", careless(CAT))):
        found = translator.translate(text)
        links = set(translator.explained(found.trace()).word_links)
        shown = f"{found.text}: {len(links & LINKS)} of {len(LINKS)}"
        claims.append(Claim(f"the black cat, {how}: links", shown, links == LINKS))
    return claims


def bear(translator: Translator) -> list[Claim]:
    tests = pronoun_riddles(TESTED)
    hungry, delicious = (masked(translator, BEAR.format("honey", end), NOUNS) for end in ("hungry", "delicious"))
    pears = [translator.translate(BEAR.format("pear", end)).text for end in ("hungry", "delicious")]
    pointed = pointed_right(translator, tests[:: TESTED // MASKED])
    right = pronoun_is_right(translator, tests)
    return [
        Claim("honey, hungry: masking points to the bear", _pair(hungry), hungry[0] > hungry[1]),
        Claim("honey, delicious: masking points to the honey", _pair(delicious), delicious[1] > delicious[0]),
        Claim("pear, hungry: masculine", pears[0], "qu'il " in pears[0]),
        Claim("pear, delicious: feminine", pears[1], "qu'elle " in pears[1]),
        Claim(f"masking points right in {MASKED} others", f"{pointed:.0%}, chance is 50 %", pointed > GOOD),
        Claim(f"the pronoun is right in {TESTED} others", f"{right:.1%}, chance is 50 %", right > GOOD),
    ]


def _pair(costs: Sequence[float]) -> str:
    return f"bear {costs[0]:.4f}, honey {costs[1]:.4f} nats".replace("-", "−")


def bank(translator: Translator) -> list[Claim]:
    found = cosines(meaning(translator.model, translator.tokenizers.source, find("bank", BANKS)))
    within, between = found[:, 0, 1], found[:, [0, 1], 2].amax(1)  # (L + 1,), the nearer of the two
    told = f"money and money {within[-1]:.3f}, money and river {between[-1]:.3f}"
    first = f"money and money {within[0]:.3f}, money and river {between[0]:.3f}"
    return [
        Claim("bank, last layer: closer within the sense", told, bool(within[-1] > between[-1])),
        Claim("bank, layer 0: no closer", first, bool((within[0] - between[0]).abs() < 1e-5)),
    ]


def claims_of(run: Path) -> list[Claim]:
    translator = load(run)
    return [*cat(translator), *bear(translator), *bank(translator)]


def trained(folder: Path, seed: int, device: str) -> tuple[list[Claim], int]:
    """The demo with another seed, what it shows, and the seconds that it took to train."""
    run, began = folder / f"seed-{seed}", time.perf_counter()
    with display() as shown:
        shown.tell(f"seed {seed}")
        training.start(run, demo_settings(PRESET, f"train.seed={seed}"), shown, device=device)
    took = round(time.perf_counter() - began)
    return claims_of(run), took


def table(title: str, claims: Sequence[Claim]) -> str:
    width = max(len(claim.name) for claim in claims)
    lines = [f"{'yes' if claim.right else 'NO':4}{claim.name:{width}}  {claim.found}" for claim in claims]
    return "\n".join([title, *lines])


def holds(title: str, claims: Sequence[Claim], about: dict[str, int], given: str, *, ledger: bool) -> bool:
    """Print a table, enter it if asked to, and say whether all of it is right."""
    print(table(title, claims), flush=True)
    if ledger:
        shown = {claim.name: {"found": claim.found, "right": claim.right} for claim in claims}
        enter("evidence", {**about, "claims": shown}, f"python bench/evidence.py {given} --ledger")
    return all(claim.right for claim in claims)


def main() -> int:
    parser = argparse.ArgumentParser(description="What the demo run shows from inside, claim by claim.")
    parser.add_argument("--seeds", default="1", help="train one for each: 1,2,3")
    parser.add_argument("--run", type=Path, nargs="+", help="demo runs that are there; without, they are trained")
    parser.add_argument("--device", default="cpu", help="where to train: cpu or cuda")
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    right = True
    with tempfile.TemporaryDirectory() as folder:
        for seed in [] if arguments.run else map(int, arguments.seeds.split(",")):
            claims, took = trained(Path(folder), seed, arguments.device)
            about = {"seed": seed, "train_seconds": took}
            right &= holds(f"seed {seed}, {took} s", claims, about, f"--seeds {seed}", ledger=arguments.ledger)
        for run in arguments.run or ():
            right &= holds(str(run), claims_of(run), {}, "--run FOLDER", ledger=arguments.ledger)
    return not right


if __name__ == "__main__":
    sys.exit(main())
