"""A studio that nobody may change anything in offers nothing that would."""

from __future__ import annotations

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
