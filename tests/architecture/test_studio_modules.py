"""The studio's modules: each file that one of them imports is there, and is not among those that git ignores.

What checks them comes from npm: each tool in one version, from wherever the developer's npm takes it.
"""

from __future__ import annotations

import json
import re
import subprocess
from importlib import resources
from pathlib import Path

import pytest

STUDIO = Path(str(resources.files("regard") / "studio"))
ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"""^import [^;]*?["'](\.[^"']+)["'];""", re.MULTILINE)


def imports() -> list[tuple[str, Path]]:
    modules = sorted(STUDIO.rglob("*.js"))
    return [
        (f"{module.relative_to(STUDIO)}: {name}", (module.parent / name).resolve())
        for module in modules
        for name in NAMED.findall(module.read_text(encoding="utf-8"))
    ]


def test_every_module_that_is_imported_is_there() -> None:
    found = imports()
    assert len(found) > 100
    assert [where for where, path in found if not path.is_file()] == []


def test_git_ignores_none_of_the_studio() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    asked = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", str(STUDIO)]
    assert subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300).stdout == ""


def test_the_tools_that_check_the_scripts_are_pinned() -> None:
    asked = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    tools = asked["devDependencies"]
    assert {"prettier", "eslint", "typescript"} <= tools.keys()
    assert "dependencies" not in asked  # nothing of npm is served
    assert {name: locked[f"node_modules/{name}"]["version"] for name in tools} == tools
    assert [name for name, package in locked.items() if "resolved" in package] == []  # no address of a registry
