"""How smooth Look inside and the map are with 6 + 6 layers of 8 heads: a hover frame over 60 pieces, a redraw, the
trace itself, and the frames of a zoom from the whole model into a head and back.

    PYTHONPATH=src:tests python bench/look.py [--ledger]

Needs chromium and playwright. A model is made that has learned nothing; the translation is given, so that both sides
have 60 pieces. The pointer then crosses the picture cell by cell, and chromium's trace says how long the page's main
thread worked for each move: handlers, styles, layout, painting, commit, collected garbage. ``hover_frame_ms`` is by the
clock, with the time in which other processes had the core; ``hover_frame_cpu_ms`` is the thread's own. Prints a JSON
object; ``--ledger`` appends it to bench/ledger.jsonl.
"""

from __future__ import annotations

import bisect
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import corpora_for_tests as small
from ledger import enter
from regard.explain.alignment import Aligner
from regard.trainer.start import start
from serving import on_a_port

SHAPE = ("encoder_depth=6", "decoder_depth=6", "heads=8", "width=64", "hidden=64")
WORDS = " ".join((["the", "black", "cat", "ate", "a", "big", "mouse"] * 9)[:59])  # and <end>
OUTPUT = " ".join((["le", "chat", "noir", "a", "mangé", "une", "souris"] * 9)[:59])
MOVES = 400
ZOOMED = ("encoder.5", "encoder.5.self", "encoder.5.self/3", "encoder.5.self", "encoder.5", "")
ROUNDS = 4

# Each move begins with a mark in the trace, and waits until its frame is drawn.
HOVER = """
async (moves) => {
  const over = document.querySelector(".picture .over");
  const box = over.getBoundingClientRect();
  for (let move = 0; move < moves; move++) {
    const [x, y] = [20 + (7 * move) % (box.width - 40), 90 + (13 * move) % (box.height - 110)];
    const at = {clientX: box.left + x, clientY: box.top + y};
    performance.mark("move");
    over.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, ...at}));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(() => setTimeout(done))));
  }
  performance.mark("move");
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
        about = {"load": round(os.getloadavg()[0], 1)}
        enter("look", about | found, "PYTHONPATH=src:tests python bench/look.py --ledger")


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
        page.evaluate(HOVER, MOVES // 10)  # what is compiled and decoded at its first use
        clock, own = hovered(browser, page)
        started = time.perf_counter()
        body = json.loads(waited.value.request.post_data or "{}")
        size = len(page.request.post(f"{address}/api/v1/trace", data=body).body())
        seconds = time.perf_counter() - started
        redraw = page.evaluate(REDRAW)
        zoom = zoomed(browser, page, watch, address)
        browser.close()
    return {
        "hover_frame_cpu_ms": spread(own),
        "hover_frame_ms": spread(clock),
        "redraw_ms": round(redraw),
        "map": zoom,
        "trace": {"bytes": size, "seconds": round(seconds, 3)},
    }


def hovered(browser: Any, page: Any) -> tuple[list[float], list[float]]:
    """Milliseconds of the page's main thread for each move: by the clock, and of its own."""
    browser.start_tracing(page=page, categories=["toplevel", "blink.user_timing"])
    page.evaluate(HOVER, MOVES)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    marks = [event for event in events if event["name"] == "move" and "user_timing" in event["cat"]]
    begins = sorted(event["ts"] for event in marks)
    thread = marks[0]["pid"], marks[0]["tid"]
    clock, own = [0.0] * len(begins), [0.0] * len(begins)
    for event in events:
        task = event["name"] == "ThreadControllerImpl::RunTask" and (event["pid"], event["tid"]) == thread
        if not task or "tdur" not in event:  # one that was cut by the end of the trace
            continue
        move = bisect.bisect(begins, event["ts"] + event["dur"] / 2) - 1
        if move >= 0:
            clock[move] += event["dur"] / 1000
            own[move] += event["tdur"] / 1000
    return clock[:-1], own[:-1]  # behind the last mark comes whatever ends the trace


def spread(times: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 1),
        "p99": round(sorted(times)[int(0.99 * len(times))], 1),
    }


def zoomed(browser: Any, page: Any, watch: Any, address: str) -> dict[str, Any]:
    """Zoom in and out. Frames are those that the compositor drew while a zoom was under way, from a trace."""
    page.goto(f"{address}/#map?{urlencode({'run': 'big', 'text': ' '.join(WORDS.split()[:12])})}")
    page.wait_for_selector(".scene .part", timeout=120_000)
    for at in ZOOMED:  # what they show is asked for once
        page.evaluate(ZOOM, [at])
    hovers = page.evaluate(POINT, MOVES)
    browser.start_tracing(
        page=page, categories=["devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame"]
    )
    before = busy(watch)
    spans = [span for _ in range(ROUNDS) for span in page.evaluate(ZOOM, list(ZOOMED))]
    worked = 1000 * (busy(watch) - before) / len(spans)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    drawn = sorted(event["ts"] for event in events if event["name"] == "DrawFrame")
    between = [later - earlier for earlier, later in itertools.pairwise(drawn) if later - earlier < 200_000]  # no pause
    return {
        "zooms": len(spans),
        "frames_per_second": {"median": round(1e6 / statistics.median(between), 1), "frames": len(between)},
        "callbacks_per_second": round(1000 / statistics.median(gap for span in spans for gap in span), 1),
        "cpu_ms_a_zoom": round(worked, 1),
        "hover_ms": spread(hovers),
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

# Each place in turn; of each zoom, the milliseconds between the page's frame callbacks while it moves.
ZOOM = """
async (places) => {
  const spans = [];
  for (const at of places) {
    const query = new URLSearchParams(location.hash.split("?")[1]);
    query.set("at", at);
    location.hash = `#map?${query}`;
    const wanted = () => document.querySelector(`.scene[data-at="${at}"]:not(.leaving)`);
    while (!wanted()) await new Promise(requestAnimationFrame);
    const gaps = [];
    let last = await new Promise(requestAnimationFrame);
    while (document.querySelector(".scene.leaving")) {
      const now = await new Promise(requestAnimationFrame);
      gaps.push(now - last);
      last = now;
    }
    spans.push(gaps.length ? gaps : [16.7]);
  }
  return spans;
}
"""

# The pointer goes from part to part of the whole.
POINT = """
async (moves) => {
  const parts = [...document.querySelectorAll(".scene .part")];
  const times = [];
  for (let move = 0; move < moves; move++) {
    const from = performance.now();
    parts[move % parts.length].dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
    document.body.offsetHeight;
    times.push(performance.now() - from);
    await new Promise((done) => setTimeout(done, 0));
  }
  return times;
}
"""

if __name__ == "__main__":
    main()
