"""The files that put the service into containers: they say what the service needs, and name what is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.cli.main import app
from regard.serve.server import LAST
from regard.settings.call import ServeSettings
from regard.settings.loading import load_call

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")


def manifests() -> dict[str, Any]:
    found = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))]
    return {each["kind"]: each for each in found}


def test_the_image_runs_as_nobody_and_has_what_it_copies() -> None:
    text = (ROOT / "Dockerfile").read_text()
    lines = re.sub(r"\\\n(?:\s*#.*\n)?", " ", text).splitlines()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [shlex.split(line)[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    user = next(line for line in lines if line.startswith("USER")).split()[1]
    assert user == "10001:10001"
    assert "/health" in text
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert settings(yaml.safe_load(command)).read_only


def test_what_the_image_does_while_it_is_built_works_here() -> None:
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    (run,) = [yaml.safe_load(line.removeprefix("RUN ")) for line in lines if line.startswith("RUN [")]
    done = subprocess.run([sys.executable, *run[1:]], capture_output=True, text=True, check=False, timeout=300)
    assert (run[0], done.stdout) == ("python3", "Le chat dort.\n"), done.stderr


def settings(words: list[str]) -> ServeSettings:
    """Those of a verb that is there."""
    assert words[0] in {command.name for command in app.registered_commands}
    return load_call(words[0], *(word for word in words if re.match(r"\w+\.\w+=", word))).serve


def test_pods_are_probed_drained_and_cannot_write() -> None:
    deployment = manifests()["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert settings(container["args"]).read_only
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] == "/health"
        assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]  # by this name it goes
    how = settings(container["args"])
    assert how.drain > 0
    assert pod["terminationGracePeriodSeconds"] > how.drain + how.timeout + LAST


def test_the_autoscaler_and_the_service_name_what_is_there() -> None:
    found = manifests()
    metric = found["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric in (ROOT / "src" / "regard" / "serve" / "watch.py").read_text()
    target = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", found["Deployment"]["metadata"]["name"])
    pods = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == found["Service"]["spec"]["selector"] == pods
    resources = set(found["Kustomization"]["resources"])
    assert resources | {"kustomization.yaml"} == {path.name for path in (ROOT / "deploy" / "kubernetes").iterdir()}


def test_compose_serves_read_only() -> None:
    service = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]["regard"]
    assert all(f"ARG {name}=" in (ROOT / "Dockerfile").read_text() for name in service["build"]["args"])
    assert service["read_only"]
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    seconds = float(service["stop_grace_period"].removesuffix("s"))
    assert seconds > load_call("serve").serve.timeout + LAST
