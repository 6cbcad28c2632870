"""Train by torchrun on two hosts, kill processes and lose a host, and compare the end with a training left in peace.

    python bench/hosts.py [--kills 10] [--steps 120] [--seed 0] [--folder F] [--ledger]

The hosts are network namespaces of this machine, joined by a cable (a veth pair): each has an address of its own, and
they reach nothing else. That needs root and `ip` of iproute2. Weights, their average and the optimizer must come out

- bit for bit as those of two processes on one host: on two hosts, and on two hosts where processes are killed;
- equal but for 1e-5 in the losses as one process has them: on two hosts of which one is lost on the way, so that
  the other goes on alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import regard
from kill_and_resume import PARTS, SETTINGS
from ledger import enter
from regard.runs.checkpoint import steps
from regard.runs.log import read_log

HOSTS = {"regard-one": "10.83.61.1", "regard-two": "10.83.61.2"}
PATIENCE = 300.0  # seconds for a training


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def hosts() -> Iterator[None]:
    """Two namespaces and the cable between them, which go when this ends."""
    made = []
    try:
        for name in HOSTS:
            ip("netns", "add", name)
            made.append(name)
        first, second = HOSTS
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in HOSTS.items():
            for words in (
                ["addr", "add", f"{address}/24", "dev", "cable"],
                *(["link", "set", each, "up"] for each in ("cable", "lo")),
            ):
                ip("-n", name, *words)
        yield
    finally:
        for name in made:
            ip("netns", "del", name)


def launched(arguments: list[str], host: str, nodes: str, restarts: int) -> subprocess.Popen[bytes]:
    """torchrun on a host, as docs/scaling.md has it."""
    address, *_ = HOSTS.values()
    first = HOSTS[host] == address  # said, because both have this machine's name
    meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint={address}:29400", f"--rdzv-conf=is_host={int(first)}"]
    command = ["-m", "torch.distributed.run", f"--nnodes={nodes}", "--nproc-per-node=1", f"--max-restarts={restarts}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "cable"}
    return subprocess.Popen(
        [
            "ip",
            "netns",
            "exec",
            host,
            sys.executable,
            *command,
            *meeting,
            f"--local-addr={HOSTS[host]}",
            "-m",
            "regard",
            "train",
            *arguments,
        ],
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def children(process: int) -> list[int]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(number) for path in lists for number in path.read_text().split()]


def newest(run: Path) -> int:
    made = steps(run / "checkpoints")
    return int(made[-1].name.removeprefix("step-")) if made else 0


def on_two_hosts(arguments: list[str], run: Path, kills: int, chance: random.Random) -> int:
    """Train to the end, and kill one process after another on the way; returns how many."""
    agents = [launched(arguments, host, "2", kills + 2) for host in HOSTS]
    killed, seen, until = 0, 0, time.monotonic() + PATIENCE
    try:
        while any(agent.poll() is None for agent in agents):
            assert time.monotonic() < until, f"{run} has come to step {newest(run)} after {killed} kills"
            if killed < kills and newest(run) > seen:
                time.sleep(chance.uniform(0, 0.3))
                working = children(agents[chance.randrange(2)].pid)
                if working:
                    os.kill(working[-1], signal.SIGKILL)
                    killed, seen, until = killed + 1, newest(run), time.monotonic() + PATIENCE
            time.sleep(0.02)
    finally:
        _end(agents)
    assert [agent.returncode for agent in agents] == [0, 0]
    return killed


def host_lost(arguments: list[str], run: Path) -> None:
    """Train on two hosts; one is lost after the second checkpoint, and the other goes on without it."""
    agents = [launched(arguments, host, "1:2", 3) for host in HOSTS]
    until = time.monotonic() + PATIENCE
    try:
        while newest(run) < 10:
            assert time.monotonic() < until
            time.sleep(0.02)
        for process in (*children(agents[1].pid), agents[1].pid):
            os.kill(process, signal.SIGKILL)
        assert agents[0].wait(PATIENCE) == 0
    finally:
        _end(agents)


def _end(agents: list[subprocess.Popen[bytes]]) -> None:
    for agent in agents:
        if agent.poll() is None:
            agent.terminate()
            agent.wait(60)
        agent.wait()


def on_one_host(arguments: list[str], processes: int) -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m", "regard", "train"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *launch, *arguments], check=True, stderr=subprocess.DEVNULL, env=environment)


def end(run: Path) -> list[bytes]:
    return [(steps(run / "checkpoints")[-1] / f"{name}.safetensors").read_bytes() for name in PARTS]


def losses(run: Path) -> dict[int, float]:
    """Of the last validation at each step."""
    return {event["step"]: event["loss"] for event in read_log(run / "log.jsonl") if event["event"] == "validation"}


def measured(folder: Path, kills: int, count: int, seed: int) -> dict[str, object]:
    limit = f"train.steps={count}"
    for name, dropout in (("dropout", 0.1), ("plain", 0.0)):
        settings = regard.load_settings("transformer-tiny", *SETTINGS, limit, f"model.dropout={dropout}")
        (folder / f"{name}.toml").write_text(settings.to_toml())

    def words(name: str, run: str) -> list[str]:
        return [str(folder / f"{name}.toml"), "--out", str(folder / run), "--continue", "--device", "cpu"]

    chance = random.Random(seed)
    on_one_host(words("dropout", "one-host"), 2)
    on_one_host(words("plain", "one-process"), 1)
    with hosts():
        on_two_hosts(words("dropout", "two-hosts"), folder / "two-hosts", 0, chance)
        killed = on_two_hosts(words("dropout", "killed"), folder / "killed", kills, chance)
        host_lost(words("plain", "lost"), folder / "lost")
    peace, lost = losses(folder / "one-process"), losses(folder / "lost")
    return {
        "steps": count,
        "kills": killed,
        "two_hosts_same_bits": end(folder / "two-hosts") == end(folder / "one-host"),
        "killed_same_bits": end(folder / "killed") == end(folder / "one-host"),
        "host_lost_largest_difference": max(abs(peace[step] - lost[step]) for step in peace),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Train on two hosts, which are network namespaces.")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--ledger", action="store_true")
    asked = parser.parse_args()
    if os.geteuid() or shutil.which("ip") is None:
        print("hosts: network namespaces need root, and ip of iproute2", file=sys.stderr)
        return 5
    folder = asked.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    found = measured(folder, asked.kills, asked.steps, asked.seed)
    print(json.dumps(found))
    if asked.ledger:
        enter("hosts", found, shlex.join(["python", "bench/hosts.py", *sys.argv[1:]]))
    good = found["two_hosts_same_bits"] and found["killed_same_bits"]
    return 0 if good and float(str(found["host_lost_largest_difference"])) <= 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
