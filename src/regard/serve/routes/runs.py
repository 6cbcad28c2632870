"""``/api/v1/runs``: what runs there are, and how each stands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from regard import runs as shelf

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])


@router.get("")
def every_run(request: Request) -> dict[str, list[dict[str, Any]]]:
    """All runs at a glance."""
    found = request.app.state.service.library.runs()
    return {"runs": [asdict(shelf.summarise(path, name)) for name, path in found.items()]}


@router.get("/{run}")
def one_run(request: Request, run: str) -> dict[str, Any]:
    """Settings, curves and checkpoints of one run."""
    return shelf.portray(request.app.state.service.library.path(run)).to_dict()
