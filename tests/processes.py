"""Trainings in several processes, with the names that torchrun gives them or by its own agent, and processes to kill.

They are forks of one process, which has imported what they need: to import it takes longer than what they do.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
PATIENCE = 150.0  # seconds
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["torch._dynamo", "regard.trainer.start", "regard.cli.train", "regard.__main__"])


def _regard(arguments: tuple[str, ...], environment: Mapping[str, str], answer: str, said: str) -> None:
    """What ``python -m regard`` does."""
    for number, path in ((1, answer), (2, said)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.update(environment)
    os.setsid()
    warnings.simplefilter("ignore")
    from regard import __main__ as program  # noqa: PLC0415 - in the fork alone: `--raises` must see the package come in

    sys.argv = [str(program.__file__), *arguments]
    program.main()


def begun(
    *arguments: str, environment: Mapping[str, str] | None = None, answer: str = os.devnull, said: str = os.devnull
) -> BaseProcess:
    """A process of ``regard``; what it answers and what it says is added to these files."""
    process = _FORKS.Process(target=_regard, args=(arguments, environment or {}, answer, said), daemon=True)
    process.start()
    return process


def spawned(arguments: Sequence[str], folder: Path) -> tuple[int, str]:
    """Takes the place of `regard.serve.jobs.spawn`, where what a studio begins is not itself tested."""
    from regard.runs.log import NAMED_LOG  # noqa: PLC0415
    from regard.serve.jobs import started  # noqa: PLC0415

    files = {"answer": str(folder / "result.json"), "said": str(folder / "output.txt")}
    Path(files["answer"]).touch()
    process = begun(*arguments, environment={NAMED_LOG: str(folder / "log.jsonl")}, **files)
    assert process.pid is not None
    return process.pid, started(process.pid)


def port() -> int:
    """One that is free, and that the system gives to nobody who asks for any: it chooses from 32768 on."""
    for number in range(20000 + os.getpid() % 10000, 32000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", number))
            return number
    raise AssertionError("no port is free")


def together(*arguments: str, count: int = 2) -> str:
    """Several processes of one command; what they say."""
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port())}
    with TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        ranks = ({"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count))
        started = [begun(*arguments, environment=shared | rank, said=str(said)) for rank in ranks]
        try:
            for process in started:
                process.join(PATIENCE)
            assert [process.exitcode for process in started] == [0] * count, said.read_text(encoding="utf-8")
        finally:
            for process in started:
                process.kill()
        return said.read_text(encoding="utf-8")


_KILLED = """
import logging, os, signal, sys, torch._dynamo, regard.trainer.start
from pathlib import Path
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from regard.cli.main import run
from regard.runs import checkpoint
from regard.trainer.steps import EagerStep
folder, save_file, call = Path(sys.argv[1]), checkpoint.save_file, EagerStep.__call__
def attempt():
    return os.environ["TORCHELASTIC_RESTART_COUNT"]
def die():
    os.write(2, b"killed\\n")
    os.kill(os.getpid(), signal.SIGKILL)
def save(*given):
    save_file(*given)
    if attempt() == "0" and len(checkpoint.steps(folder)) == 2:
        die()
def step(self, group, count, rate, number):
    if (attempt(), os.environ["RANK"], number) == ("1", "1", 13):
        die()
    return call(self, group, count, rate, number)
checkpoint.save_file, EagerStep.__call__ = save, step
def work():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the agent's
    if code := run(sys.argv[2:]):
        sys.exit(code)
logging.disable(logging.ERROR)
agent = LaunchConfig(
    min_nodes=1, max_nodes=1, nproc_per_node=2, run_id="killed", rdzv_backend="c10d", rdzv_endpoint="localhost:0",
    max_restarts=2, monitor_interval=0.1, start_method="fork",
)
elastic_launch(agent, work)()
"""


def killed_twice(run: Path, *arguments: str) -> str:
    """Two processes of torchrun's agent, which starts them again: the first is killed in the middle of its third
    checkpoint, the second later at the beginning of step 13. What was said."""
    command = [sys.executable, "-c", _KILLED, str(run / "checkpoints"), *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True) as agent:
        try:
            said = agent.communicate(timeout=PATIENCE)[1]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(agent.pid, signal.SIGKILL)
    assert agent.returncode == 0, said
    return said
