"""Write the pictures of README.md: pages of the studio with a sentence of the packaged run, and a heat map as SVG.

    python docs/pictures.py [--into docs/figures]

The studio is served on any free port of this machine and opened in a browser without a window, light and dark. Whoever
trains the packaged run anew runs this, too, and looks at what it wrote. Needs chromium, playwright and Pillow.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

FIGURES = Path(__file__).parent / "figures"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SENTENCE = "The black cat ate the mouse."
# The page, what must be there, and the element whose end is the end of the picture.
PAGES = {"look": (".strip-stamp", ".sentence"), "map": (".map-frame .scene", ".map-desk")}
WIDTH, HEIGHT, SCALE = 1120, 1000, 2  # points, and dots a point
COLOURS = 128
LARGEST = 150_000  # bytes of a file
MARGIN = 16  # points below the last element
PATIENCE = 120  # seconds


@contextmanager
def studio(folder: str) -> Iterator[str]:
    """The address of a studio that runs meanwhile, over a folder without runs."""
    command = [sys.executable, "-m", "regard", "studio", folder, "--port", "0", "serve.browser=false"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = ""
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", said)):
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"regard studio: ended before it served\n{said}")
            said += line
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)


def settled(page: Any) -> None:
    """Everything was answered and drawn. The page's policy forbids to evaluate strings in it: it is asked from here."""
    last = time.monotonic() + PATIENCE
    while page.evaluate("document.querySelector('[aria-busy=true], .skeleton:not([hidden] *)') !== null"):
        if time.monotonic() > last:
            raise SystemExit(f"{page.url}: not everything was there after {PATIENCE} s")
        page.wait_for_timeout(100)
    page.wait_for_timeout(500)  # lines are drawn once their words are in place


def photograph(page: Any, name: str) -> bytes:
    """A page of the studio, from its head to the end of what is to be seen."""
    awaited, last = PAGES[name]
    page.goto(f"/#{name}?{urlencode({'run': 'demo', 'text': SENTENCE})}")
    page.wait_for_selector(awaited)
    settled(page)
    box = page.locator(last).first.bounding_box()
    width = page.evaluate("document.body.getBoundingClientRect().right")  # without the room of a scroll bar
    clip = {"x": 0, "y": 0, "width": width, "height": min(HEIGHT, box["y"] + box["height"] + MARGIN)}
    return bytes(page.screenshot(clip=clip))


def reduced(picture: bytes) -> bytes:
    """The same with few colours."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    few = image.quantize(COLOURS, kmeans=3, dither=Image.Dither.NONE)
    few.save(into := io.BytesIO(), "PNG", optimize=True)
    return into.getvalue()


def write(path: Path, content: bytes) -> None:
    if len(content) > LARGEST:
        raise SystemExit(f"{path}: {len(content):,} bytes; {LARGEST:,} at the most")
    path.write_bytes(content)
    print(f"{path}: {len(content):,} bytes")


def write_pages(into: Path) -> None:
    """The pages of the studio, each light and dark."""
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        raise SystemExit("no browser is installed: apt-get install chromium-headless-shell")
    with tempfile.TemporaryDirectory() as nothing, studio(nothing) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=FLAGS)
        for scheme in ("light", "dark"):
            view = {"width": WIDTH, "height": HEIGHT}
            page = browser.new_page(
                base_url=address,
                viewport=view,
                device_scale_factor=SCALE,
                color_scheme=scheme,
                reduced_motion="reduce",
                locale="en-GB",
            )
            page.set_default_timeout(1000 * PATIENCE)
            for name in PAGES:
                write(into / f"studio-{name}-{scheme}.png", reduced(photograph(page, name)))
        browser.close()


def write_heat_map(into: Path) -> None:
    """What `regard explain --out FILE.svg` writes."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "cat.svg"
        command = [sys.executable, "-m", "regard", "explain", "demo", SENTENCE, "--out", str(drawn), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        write(into / "explain-demo.svg", drawn.read_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the pictures of README.md.")
    parser.add_argument("--into", type=Path, default=FIGURES)
    into: Path = parser.parse_args().into
    write_heat_map(into)
    write_pages(into)


if __name__ == "__main__":
    main()
