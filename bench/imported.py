"""An imported model against the engine it came from: time and memory of the import, tokens, log-probabilities, speed.

    python bench/imported.py --model FILE --source TEXTS [--sentences 200] [--rounds 3] [--ledger]

The model is one of CTranslate2's or an Argos package, also inside an sdist; the texts are lines of its source language,
which are cut into sentences at the full stop. The import runs in a process of its own, whose peak of memory is what the
system says. Tokens are compared greedy and with a beam of 4, neither at a limit; log-probabilities are those
that either gives the tokens of the greedy output, in float32. Rounds are interleaved; speed is the median of the
time of CTranslate2 with the model as it came divided by ours through the engine that `auto` has for much text, both in
float32, so that 1 is as fast; time is what the process computed, which a busy machine does not change.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # two libraries in one process: who waits must not keep a core

import ctranslate2
import torch
from torch.nn.utils.rnn import pad_sequence

from ledger import enter
from regard.convert.recognise import opened
from regard.decode.engines.engine import Searcher
from regard.decode.grouping import of_like_length
from regard.decode.rules import Beam
from regard.decode.scoring import score
from regard.decode.search import search
from regard.decode.texts import CPU_BUDGET
from regard.tasks.engines import LoadedModel
from regard.tasks.load import load, open_material
from regard.text.special import PAD

BEAMS = (1, 4)
LONGEST = 200  # pieces of an output
CPU = torch.device("cpu")


def sentences(path: Path, count: int) -> list[str]:
    """Different sentences and neighbours of them, in the order of the file, until there are enough."""
    lines = [line.strip().strip('"') for line in path.read_text(encoding="utf-8-sig").splitlines()[1:]]
    found: dict[str, None] = {}
    for size in (1, 2, 3):
        for line in lines:
            parts = re.findall(r"[^。！？]+[。！？]", line)
            for place in range(len(parts) - size + 1):
                found.setdefault("".join(parts[place : place + size]))
    return list(found)[:count]


def measured(model: Path, out: Path) -> dict[str, float]:
    """Import in another process: seconds by the clock, seconds of computing, and the peak of memory in MiB."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "regard", "import", str(model), "--out", str(out)], check=True)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(seconds, 2), "computed": round(computed, 2), "mebibytes": round(after.ru_maxrss / 1024)}


def outputs(material: LoadedModel, sources: list[list[int]], beam: int) -> list[list[str]]:
    """Our tokens, by our own search."""
    target, rule = material.tokenizers.target, Beam(beam, length_penalty=1.0)
    writer, found = Searcher.of(material.models).writer(rule), dict[int, list[str]]()
    for group in of_like_length([len(source) for source in sources], CPU_BUDGET // beam):
        rows = pad_sequence([torch.tensor(sources[row]) for row in group], batch_first=True, padding_value=PAD)
        with torch.inference_mode():
            first, state = writer.start(rows)
            best = search(writer, first, state, torch.full((len(rows),), LONGEST), rule=rule)
        found |= {
            row: [target.token(number) for number in each[0].tokens] for row, each in zip(group, best, strict=True)
        }
    return [found[row] for row in range(len(sources))]


def theirs(program: Any, pieces: list[list[str]], beam: int) -> list[list[str]]:
    found = program.translate_batch(
        pieces,
        beam_size=beam,
        length_penalty=1.0,
        max_decoding_length=LONGEST,
        max_batch_size=1024,
        batch_type="tokens",
    )
    return [each.hypotheses[0] for each in found]


@torch.inference_mode()
def furthest(material: LoadedModel, program: Any, pieces: list[list[str]], written: list[list[str]]) -> float:
    """The largest difference between two log-probabilities of one token."""
    tokenizers, worst = material.tokenizers, 0.0
    for source, target, scored in zip(pieces, written, program.score_batch(pieces, written), strict=True):
        ids = [tokenizers.framed([tokenizers.source.id(piece) for piece in source])]
        rows = score(material.models[0], ids, [[tokenizers.target.id(piece) for piece in target]], CPU)
        ours = torch.tensor(rows[0])
        worst = max(worst, float((ours - torch.tensor(scored.log_probs)).abs().max()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    texts = sentences(asked.source, asked.sentences)
    with tempfile.TemporaryDirectory() as folder, opened(asked.model) as (package, _):
        result: dict[str, Any] = {"model": package.name, "sentences": len(texts)}
        result["import"] = measured(asked.model, run := Path(folder) / "run")
        material, fast = open_material(run), load(run, engine="ctranslate2").searcher.engine
        program = ctranslate2.Translator(
            str(package.folder), compute_type="float32", intra_threads=torch.get_num_threads()
        )
        sources = [material.tokenizers.read(text) for text in texts]
        pieces = [material.tokenizers.source.pieces(text) for text in texts]
        for beam in BEAMS:
            written = theirs(program, pieces, beam)
            same = [ours == other for ours, other in zip(outputs(material, sources, beam), written, strict=True)]
            result[f"same tokens, beam {beam}"] = sum(same)
            print(result, flush=True)
            for text in (text for text, equal in zip(texts, same, strict=True) if not equal):
                print("other tokens:", text)
        result["log-probability"] = float(f"{furthest(material, program, pieces, theirs(program, pieces, 1)):.2g}")
        ratios, limits, rule = [], [LONGEST] * len(sources), Beam(4, length_penalty=1.0)
        for _ in range(asked.rounds):
            times = []
            for call in (lambda: theirs(program, pieces, 4), lambda: fast.search(sources, limits, rule, CPU_BUDGET)):
                began = time.process_time()
                call()
                times.append(time.process_time() - began)
            ratios.append(times[0] / times[1])
        result["speed"] = round(statistics.median(ratios), 2)
    print(result)
    if asked.ledger:
        enter(
            "imported",
            result,
            f"python bench/imported.py --model {asked.model.name} --source {asked.source.name} --ledger",
        )


if __name__ == "__main__":
    main()
