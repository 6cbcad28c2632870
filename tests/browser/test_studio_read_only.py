"""A studio that nobody may change anything in offers nothing that would."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import serving
from regard.serve.guard import Doors


def test_a_read_only_studio_offers_no_training(browser: Any, tmp_path: Path) -> None:
    with serving.on_a_port(tmp_path, doors=Doors(read_only=True)) as address:
        page = browser.new_page()
        page.goto(f"{address}/#train")
        page.get_by_text("Nothing is trained from this page: the service is read-only").wait_for()
        assert page.locator("main form").count() == 0
        assert page.locator("main button").count() == 0
        page.close()


def test_a_read_only_studio_offers_no_comparison_and_no_way_to_go_on_with_a_training(
    browser: Any, runs: Path, tmp_path: Path
) -> None:
    failed = tmp_path / ".jobs" / "train-failed"  # a training that never came to be a run
    failed.mkdir(parents=True)
    record = {"name": "train-failed", "kind": "train", "run": "failed", "pid": 1, "started": "never", "began": 1.0}
    (failed / "job.json").write_text(json.dumps(record))
    for run in runs.glob("[!.]*"):  # other tests may have left .jobs there
        (tmp_path / run.name).mkdir()
        shutil.copytree(run, tmp_path / run.name, dirs_exist_ok=True)
    with serving.on_a_port(tmp_path, doors=Doors(read_only=True)) as address:
        page = browser.new_page()
        page.goto(f"{address}/#compare")
        page.get_by_text("Nothing is compared from this page: the service is read-only").wait_for()
        assert page.locator("main button").count() == 0
        page.goto(f"{address}/#train?run=failed")
        page.get_by_text("A new training").wait_for()
        page.locator("main .chip").first.wait_for()
        assert page.locator("main button").count() == 0
        page.close()
