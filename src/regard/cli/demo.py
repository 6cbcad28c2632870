"""``regard demo``: train, test and report on the built-in corpus, in about five minutes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.verb import common
from regard.errors import quoted

REPORT = "report.html"
TESTED = 500  # held-out sentences translated at the end


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The run folder; an earlier demo there goes to the trash.")] = Path(
        "runs/demo"
    ),
    time: Annotated[str, typer.Option(help="Train no longer than this: 60s, 2m.")] = "",
) -> int:
    """Make a corpus, train a translator, test it, write a report and translate with it."""
    from regard.cli.display import display
    from regard.evaluate.report import PINNED
    from regard.runs.listing import trash_run
    from regard.settings import load_settings
    from regard.settings.demo import PRESET, demo_settings
    from regard.tasks.load import load
    from regard.trainer import start as training
    from regard.trainer.loop import INTERRUPTED

    settings = demo_settings(PRESET, f"train.time='{time}'")
    asked = common(context)
    with display(quiet=asked.quiet) as shown:
        if (out / "settings.toml").exists() and load_settings(out / "settings.toml").about == settings.about:
            shown.tell(f"the earlier demo is now {os.path.relpath(trash_run(out))}")
        steps = f"{settings.train.steps:,} steps" + (f", {time} of training at the most" if time else "")
        opening = (
            f"training {PRESET} on the built-in English-French corpus: {steps}; Ctrl-C stops and saves\n"
            'meanwhile, try the trained one of the package: regard translate demo "The black cat ate the mouse."'
        )
        outcome = training.start(out, settings, shown, device=asked.device, opening=opening)
        if outcome.reason == "interrupted":
            shown.tell(f"stopped, checkpoint written; resume with: regard train --resume {quoted(out)}")
            return INTERRUPTED
        translator = load(out, device=asked.place)
        tested = _report(out, asked.place)
        shown.tell(f"test: {tested}")
    found = {translation.source: translation.text for translation in translator.translate(PINNED)}
    if asked.json:
        print(json.dumps({"run": str(out), "test": tested, "translations": found}, ensure_ascii=False))
    for source, text in found.items() if not asked.json else ():
        print(f"{source}\n  → {text}")
    shown.tell(
        f"try next:\n  open {out / REPORT} in a browser: its scores, its mistakes, and a look inside\n"
        f'  regard translate {quoted(out)} "The old fisherman slept near the bank."\n'
        f"  regard studio {quoted(out.parent)}\n  regard train bahdanau --corpus fable:fr --time 2m"
    )
    return 0


def _report(out: Path, device: str) -> str:
    """Measure the run on held-out sentences and write a report."""
    from regard.evaluate.report import report
    from regard.settings.call import MeasureSettings

    made = report(out, measure=MeasureSettings(limit=TESTED), device=device)
    made.save(out / REPORT)
    return f"BLEU {made.scores[0]} on {made.test.sentences} held-out sentences, beam 5"
