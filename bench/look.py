"""How smooth Look inside is with 6 + 6 layers of 8 heads over 60 pieces: a hover frame, a redraw, and the trace itself.

    PYTHONPATH=src:tests python bench/look.py [--ledger]

Needs chromium and playwright. A model is made that has learned nothing; the translation is given, so that both sides
have 60 pieces. The pointer then crosses the picture cell by cell, and for each move the page's own work is timed: from
the event to the end of the frame that shows it. ``cpu`` is how long the page's own thread worked for a frame, whatever
else the machine does. Prints a JSON object; ``--ledger`` appends it to bench/ledger.jsonl.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import corpora_for_tests as small
from regard.explain.alignment import Aligner
from regard.trainer.start import start
from serving import on_a_port

SHAPE = ("encoder_depth=6", "decoder_depth=6", "heads=8", "width=64", "hidden=64")
WORDS = " ".join((["the", "black", "cat", "ate", "a", "big", "mouse"] * 9)[:59])  # and <end>
OUTPUT = " ".join((["le", "chat", "noir", "a", "mangé", "une", "souris"] * 9)[:59])
MOVES = 400
LEDGER = Path(__file__).parent / "ledger.jsonl"

# Work of the page alone: what its handlers and its frame callbacks take, without waiting for the screen.
HOVER = """
async (moves) => {
  const canvas = document.querySelector(".picture .over");
  const box = canvas.getBoundingClientRect();
  const times = [];
  for (let move = 0; move < moves; move++) {
    const [x, y] = [20 + (7 * move) % (box.width - 40), 90 + (13 * move) % (box.height - 110)];
    const at = {clientX: box.left + x, clientY: box.top + y};
    const from = performance.now();
    canvas.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, ...at}));
    const handled = performance.now() - from;
    const frame = await new Promise((done) => requestAnimationFrame(() => {
      const begun = performance.now();
      document.body.offsetHeight; // styles and layout, now
      setTimeout(() => done(performance.now() - begun), 0); // the frame's other callbacks, paint
    }));
    times.push(handled + frame);
  }
  return times;
}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        brief = ("train.steps=1", "train.validate_every=1", "train.step=eager", "data.pairs=97")
        settings = small.settings("transformer-tiny", *brief, *(f"model.{part}" for part in SHAPE))
        start(Path(folder) / "big", settings, small.Notes(), device="cpu")
        Aligner(((5, 0),)).save(Path(folder) / "big")  # to choose one takes long, and is not what is timed
        with on_a_port(Path(folder)) as address:
            found = measure(address)
    print(json.dumps(found, indent=2))
    if "--ledger" in sys.argv[1:]:
        record = {"bench": "look", "date": date.today().isoformat(), "load": round(os.getloadavg()[0], 1)}
        command = "PYTHONPATH=src:tests python bench/look.py --ledger"
        with LEDGER.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps({**record, **found, "command": command}) + "\n")


def measure(address: str) -> dict[str, Any]:
    query = urlencode({"run": "big", "text": WORDS, "target": OUTPUT, "words": "0", "special": "1"})
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        with page.expect_response("**/api/v1/trace", timeout=120_000) as waited:
            page.goto(f"{address}/#look?{query}")
        page.wait_for_selector(".beside .heatmap canvas", timeout=120_000)
        watch = page.context.new_cdp_session(page)
        watch.send("Performance.enable", {"timeDomain": "threadTicks"})  # of the page's own thread, whoever else works
        before = busy(watch)
        times = sorted(page.evaluate(HOVER, MOVES))
        worked = 1000 * (busy(watch) - before) / MOVES
        started = time.perf_counter()
        body = json.loads(waited.value.request.post_data or "{}")
        size = len(page.request.post(f"{address}/api/v1/trace", data=body).body())
        seconds = time.perf_counter() - started
        redraw = page.evaluate(REDRAW)
        browser.close()
    return {
        "hover_frame_cpu_ms": round(worked, 2),
        "hover_frame_ms": {"median": round(statistics.median(times), 1), "p99": round(times[int(0.99 * MOVES)], 1)},
        "redraw_ms": round(redraw),
        "trace": {"bytes": size, "seconds": round(seconds, 3)},
    }


def busy(watch: Any) -> float:
    """Seconds that the page's thread has worked so far: scripts, styles, layout and painting."""
    found = {one["name"]: one["value"] for one in watch.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"])


# Another side: the picture and its 48 stamps.
REDRAW = """
async () => {
  const from = performance.now();
  document.querySelector(".selectors input[value=encoder]").click();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - from;
}
"""

if __name__ == "__main__":
    main()
