"""Short work in a process of its own: ``regard`` with some arguments, whose answer is waited for.

It keeps the server quick, whatever the size of a corpus, and is stopped when its client leaves.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import Request

from regard.errors import DataError, ModelError, RegardError, ResourceError, SettingsError
from regard.serve.limits import BusyError, LateError

WAITING = 4  # that stand in line
LAST = 5.0  # seconds that a command gets to end once it is killed
ASKING = 0.25  # seconds between two looks at whether the client is still there
KINDS: dict[int, type[RegardError]] = {2: SettingsError, 3: DataError, 4: ModelError, 5: ResourceError}


@dataclass(frozen=True)
class CommandResult:
    """What a command answered."""

    code: int
    answer: dict[str, Any] | None  # the JSON on its standard output
    complaint: str  # the last line for people
    hint: str = ""

    def error(self) -> RegardError:
        """What it complained of, as the same kind of error here."""
        return KINDS.get(self.code, ResourceError)(self.complaint or "the command ended without a word", hint=self.hint)


class Commands:
    """Runs them one after the other: each may take all there is of the machine."""

    def __init__(self, seconds: float = 300.0) -> None:
        self._seconds = seconds
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def __call__(self, request: Request, arguments: Sequence[str], folder: Path) -> CommandResult:
        """Run ``regard`` in a folder."""
        if self._waiting >= WAITING:
            raise BusyError("commands: too many wait already; ask again in 10 s", 10)
        self._waiting += 1
        try:
            async with self._turn:
                return await self._run(request, arguments, folder)
        finally:
            self._waiting -= 1

    async def _run(self, request: Request, arguments: Sequence[str], folder: Path) -> CommandResult:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "regard", *arguments),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        talking = asyncio.ensure_future(child.communicate())
        try:
            await self._wait(request, talking)
            output, errors = talking.result()
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await asyncio.wait([talking], timeout=LAST)  # a child of its own may hold on to what it writes to
                talking.cancel()
        return _outcome(child.returncode or 0, output, errors)

    async def _wait(self, request: Request, talking: asyncio.Future[Any]) -> None:
        for _ in range(round(self._seconds / ASKING)):
            done, _ = await asyncio.wait([talking], timeout=ASKING)
            if done:
                return
            if await request.is_disconnected():
                raise LateError("request: the client has left")
        raise LateError(f"time = {self._seconds:g} s: was not enough; do it on the command line")


def _outcome(code: int, output: bytes, errors: bytes) -> CommandResult:
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        answer = None
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    hints = [line.strip() for line in lines if line.startswith("  ")]
    said = [line for line in lines if not line.startswith("  ")]
    found = answer if isinstance(answer, dict) else None
    return CommandResult(code, found, said[-1] if said else "", hints[-1] if hints else "")
