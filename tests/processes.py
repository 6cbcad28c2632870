"""Trainings in several processes: with the names that torchrun gives them, or by torchrun itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}


def port() -> int:
    """One that is free, and that the system gives to nobody who asks for any: it chooses from 32768 on."""
    for number in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", number))
            return number
    raise AssertionError("no port is free")


_FORKS = """
import os, sys, torch._dynamo, regard.trainer.start  # once for all: to import them takes longer than what they do
from regard.cli.main import run
others = {}
for number in range(1, int(os.environ["WORLD_SIZE"])):
    others[number] = os.fork()
    if not others[number]:
        break
rank = next((number for number, process in others.items() if not process), 0)
os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
code = run(sys.argv[1:])
codes = [] if rank else [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in others.values()]
sys.exit(code or max(codes, default=0))
"""


def together(*arguments: str, count: int = 2) -> str:
    """Several processes of one command; what they say."""
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port())}
    return finished([sys.executable, "-c", _FORKS, *arguments], shared)


_KILLED = """
import os, signal, sys
from pathlib import Path
from regard.cli.main import run
from regard.runs import checkpoint
from regard.trainer.steps import EagerStep
folder, attempt, rank = Path(sys.argv[1]), os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
save_file, call = checkpoint.save_file, EagerStep.__call__
def save(*given):
    save_file(*given)
    if attempt == "0" and len(checkpoint.steps(folder)) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
def step(self, group, count, rate, number):
    if (attempt, rank, number) == ("1", "1", 13):
        os.kill(os.getpid(), signal.SIGKILL)
    return call(self, group, count, rate, number)
checkpoint.save_file, EagerStep.__call__ = save, step
sys.exit(run(sys.argv[2:]))
"""


def killed_twice(run: Path, *arguments: str) -> str:
    """Two processes by torchrun, which starts them again: the first is killed in the middle of its third checkpoint,
    the second later at the beginning of step 13. What was said."""
    script = run.with_name("killed.py")
    script.write_text(_KILLED, encoding="utf-8")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=2"]
    return finished([sys.executable, *launch, str(script), str(run / "checkpoints"), *arguments], {})


def finished(command: list[str], environment: dict[str, str]) -> str:
    """What a command said, after its good end."""
    named = ENVIRONMENT | environment
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=named, start_new_session=True) as first:
        try:
            said = first.communicate(timeout=150)[1]
        finally:
            if first.poll() is None:  # torchrun ends its processes, which are in groups of their own
                first.terminate()
                first.communicate(timeout=40)
            with suppress(ProcessLookupError):
                os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode == 0, said
    return said
