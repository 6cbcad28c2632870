"""Every `raise` must be run by a test: reads a coverage report and names those that were not.

python tests/architecture/raises.py coverage.json
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path


def main(report: Path) -> int:
    untested = []
    for name, file in json.loads(report.read_text())["files"].items():
        missed = set(file["missing_lines"])
        for node in ast.walk(ast.parse(Path(name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.lineno in missed:
                untested.append(f"{name}:{node.lineno}: this raise is run by no test")
    print("\n".join(untested) or "every raise is run by a test", file=sys.stderr)
    return bool(untested)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
