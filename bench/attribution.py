"""What attribution costs: every method on one sentence of thirty words through an imported model, time and memory.

    PYTHONPATH=src python bench/attribution.py RUN [TEXT] [--only=METHOD,METHOD] [--ledger]

RUN is a run of the zh→en model of Argos (6 + 6 layers, width 512), made with ``regard import``. Each method is asked
in a process of its own: its time is the best of three, with the CPU time of that run beside it, which says more on a
busy machine; its memory is what the process held at the most above what it held before, in MiB. Prints a JSON object;
``--ledger`` appends it to bench/ledger.jsonl.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from ledger import enter
from regard.explain.attribution import METHODS
from regard.explain.importance import attribute
from regard.explain.look import look
from regard.tasks.load import load_predictor

TEXT = "中国政府昨天宣布将在未来五年内投资一百亿元用于改善农村地区的教育条件并为年轻教师提供更多的培训机会"
TIMES = 3


def main() -> None:
    given = [word for word in sys.argv[1:] if word != "--ledger" and not word.startswith("--only=")]
    only = [name for word in sys.argv if word.startswith("--only=") for name in word.removeprefix("--only=").split(",")]
    if len(given) == 3 and given[2].startswith("--method="):
        print(json.dumps(measure(given[0], given[1], given[2].removeprefix("--method="))))
        return
    run, text = given[0], given[1] if len(given) > 1 else TEXT
    found = {}
    for method in only or METHODS:
        command = [sys.executable, __file__, run, text, f"--method={method}"]
        found[method] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(method, found[method], file=sys.stderr, flush=True)
        pieces = {name: found[method].pop(name) for name in ("source", "target", "parameters")}
    result = {"run": Path(run).name, "threads": torch.get_num_threads(), **pieces, "methods": found}
    print(json.dumps(result, ensure_ascii=False, indent=1))
    if "--ledger" in sys.argv:
        enter("attribution", result, f"python bench/attribution.py {Path(run).name}")


def measure(run: str, text: str, method: str) -> dict[str, object]:
    """Seconds and memory of one method; the search before it does not count."""
    model = load_predictor(Path(run), "cpu")
    looked = look(model, text)
    before, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for _ in range(TIMES):
        begun, used = time.perf_counter(), time.process_time()
        found = attribute(model, looked, method)
        spent.append((time.perf_counter() - begun, time.process_time() - used))
    held = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    seconds, cpu = min(spent)
    figures: dict[str, object] = {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "memory": round(held)}
    if found.quadrature_error is not None:  # and a sum that is fitted
        figures["quadrature_error"] = float(f"{found.quadrature_error:.1e}")
    elif found.completeness_error is not None:
        figures["completeness_error"] = float(f"{found.completeness_error:.1e}")
    trace = looked.trace
    parameters = sum(each.numel() for each in looked.model.parameters())
    return {**figures, "source": len(trace.source), "target": len(trace.target), "parameters": parameters}


if __name__ == "__main__":
    main()
