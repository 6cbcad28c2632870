"""Processes that outlive the server, and how each is identified.

The system uses the number of a process again. So its start time is kept beside it: only the process that has both is
the one that was started, and no other ever gets its signals.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard.runs.log import NAMED_LOG

NICENESS = 5  # nice value of a child, so that pages stay quick while it works


@dataclass(frozen=True)
class Process:
    """A process, as it can be found again."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return bool(self.started) and started(self.pid) == self.started

    def send(self, number: signal.Signals) -> bool:
        """Send a signal, unless the process has ended. Where the system has handles, nothing can come in between."""
        try:
            handle = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        except OSError:
            return False
        try:
            if not self.alive:
                return False
            if handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(handle, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            if handle is not None:
                os.close(handle)


def started(pid: int) -> str:
    """When a process began, as the system writes it; empty if there is none or it has ended."""
    proc = Path("/proc")
    if not (proc / "self").exists():
        return _asked(pid)
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()  # the name may hold anything
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"


def _asked(pid: int) -> str:
    """The same where processes are no files."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except subprocess.TimeoutExpired:  # the system itself hangs: no process is known to live
        return ""
    state, _, began = answer.partition(" ")
    return "" if state.startswith("Z") else began.strip()


def spawn(arguments: Sequence[str], folder: Path) -> Process:
    """Start ``regard`` in a session of its own: neither a closed page nor a dead server ends it.

    What it answers goes into ``result.json`` of the folder, what it says into ``output.txt`` and, as events, into
    ``log.jsonl``.
    """
    with (folder / "result.json").open("wb") as out, (folder / "output.txt").open("ab") as err:
        child = subprocess.Popen(
            [sys.executable, "-m", "regard", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, NAMED_LOG: str(folder / "log.jsonl")},
            start_new_session=True,
        )
    process = Process(child.pid, started(child.pid))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    threading.Thread(target=child.wait, daemon=True, name=f"child {child.pid}").start()  # or it would stay as a zombie
    return process
