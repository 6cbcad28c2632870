"""The shape of the house: how much there is to read, to know and to choose from, and how far a sentence walks.

    python bench/shape.py [--source [LABEL=]src/regard]... [--names] [--commands] [--walks] [--unrun]

Lines, files, functions, classes and imports are read from the source (``ast``); options and walks come from running it
(bench/walks.py), some minutes on a small machine, unless ``--unrun`` says not to. The figures are a Markdown table with
a column for each ``--source``, so that versions can be compared; docs/architecture.md has one. Rooms, chain, names,
commands and walks are those of the last source.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from walks import EVERY, Seen, see

SOURCE = Path(__file__).parents[1] / "src" / "regard"
RECORDS = {"BaseModel", "NamedTuple", "TypedDict"}  # classes that have one of these above them; and dataclasses
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
WALKS = {"train": "training", "translate": "translating", "trace": "looking"}

# How a sentence is trained and translated: paths that begin so, but for those that are apart. What a version does not
# have counts nothing, so that one table serves several versions.
CORE = (
    *("settings/", "reader.py", "checks.py", "glossary.py", "demonstration.py", "text/", "data/vectors.py"),
    *("data/", "nn/", "models/", "build.py", "decode/", "tasks/", "loading.py", "prediction.py", "translator.py"),
    *("trainer/", "training.py", "run.py", "runs/"),
)
# What is asked of a translation or a report inside functions; tests/architecture/test_rooms.py allows no more.
UPWARDS = {"tasks": {"explain", "show"}, "evaluate": {"show"}}
APART = (
    *("data/check", "data/clean", "data/split", "data/stats", "data/shift", "nn/fast/"),
    *("decode/engine", "decode/captured", "decode/pooled", "decode/slots", "decode/banks", "decode/fused"),
    *(
        "tasks/engines",
        "decode/scoring",
        "decode/risk",
        "decode/tree",
        "runs/archive",
        "runs/list",
    ),
)


@dataclass(frozen=True)
class File:
    """One file of a package."""

    package: str
    path: Path  # in the package
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    @property
    def room(self) -> str:
        return self.path.parts[0].removesuffix(".py")

    @property
    def module(self) -> str:
        return ".".join((self.package, *self.path.with_suffix("").parts)).removesuffix(".__init__")

    @cached_property
    def counts(self) -> dict[str, int]:
        functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in self.nodes)
        lines, place = len(self.text.splitlines()), self.path.as_posix()
        core = lines if place.startswith(CORE) and not place.startswith(APART) else 0
        return {"files": 1, "lines": lines, "code": self._code(), "core": core, "functions": functions}

    def _code(self) -> int:
        """Lines with anything on them but comments and docstrings."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        spans = [(token.start[0], token.end[0]) for token in tokens if token.type not in SILENT]
        said = [node.body[0] for node in self.nodes if isinstance(node, DOCUMENTED) and ast.get_docstring(node)]
        without = {line for node in said for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
        return len({line for first, last in spans for line in range(first, last + 1)} - without)

    @cached_property
    def imports(self) -> list[tuple[str, str]]:
        """Every name that is imported, in functions too, and what it means; not what only type checkers import."""
        found = []
        for node in run_time(self.nodes[0]):
            if isinstance(node, ast.Import):
                found += [(alias.asname or alias.name, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = (self.package, *self.path.parts)[: -node.level] if node.level else ()
                base = ".".join((*above, *filter(None, [node.module])))
                found += [(alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names]
        return found


def files_of(source: Path) -> list[File]:
    paths = sorted(source.rglob("*.py"))
    return [File(source.name, path.relative_to(source), path.read_text(encoding="utf-8")) for path in paths]


def run_time(node: ast.AST) -> Iterator[ast.AST]:
    """All that is below a node, but for what stands under ``if TYPE_CHECKING``."""
    checked = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    for child in node.orelse if isinstance(node, ast.If) and checked else ast.iter_child_nodes(node):
        yield child
        yield from run_time(child)


def records(files: list[File]) -> Counter[str]:
    """How many classes of each room are dataclasses, named tuples, typed dictionaries or pydantic models."""
    classes = {f"{file.module}.{node.name}": (file, node) for file in files for node in file.classes}
    imported = {file.module: dict(file.imports) for file in files}

    def meaning(module: str, written: str) -> str:
        head, _, rest = written.partition("[")[0].partition(".")
        name = ".".join(filter(None, (imported[module].get(head, f"{module}.{head}"), rest)))
        module, _, last = name.rpartition(".")
        handed_on = name not in classes and last in imported.get(module, {})
        return meaning(module, last) if handed_on else name

    def is_record(name: str) -> bool:
        if name not in classes:
            return name.rpartition(".")[2] in RECORDS
        file, node = classes[name]
        decorators = (ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list)
        return "dataclass" in decorators or any(
            is_record(meaning(file.module, ast.unparse(each))) for each in node.bases
        )

    return Counter(file.room for name, (file, _) in classes.items() if is_record(name))


def shared_names(files: list[File]) -> dict[str, list[str]]:
    """Names that classes in more than one file have."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in file.classes:
            found[node.name].add(file.path.as_posix())
    return {name: sorted(paths) for name, paths in sorted(found.items()) if len(paths) > 1}


def rooms_of(source: Path) -> list[str]:
    """What imports and is imported: top-level folders with source in them, and modules beside but for ``__init__``."""
    paths = (path.relative_to(source) for path in source.rglob("*") if path.suffix in (".py", ".js"))
    return sorted({path.parts[0].removesuffix(".py") for path in paths} - {"__init__"})


def entered(files: list[File], rooms: list[str]) -> dict[str, set[str]]:
    """Which rooms each room imports, but for the few that are asked upwards."""
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for file in files:
        names = (name.split(".") for _, name in file.imports)
        others = {name[1] for name in names if name[0] == file.package and len(name) > 1} - {file.room}
        if file.room in found:  # not the package's own __init__
            found[file.room] |= (others & found.keys()) - UPWARDS.get(file.room, set())
    return found


def longest_chain(doors: Mapping[str, set[str]]) -> list[str]:
    """The longest way from room to room; where rooms import each other in a circle, the circle."""
    chains: dict[str, list[str]] = {}
    try:
        for room in TopologicalSorter(doors).static_order():  # what is imported comes first
            chains[room] = [room, *max((chains[each] for each in sorted(doors[room])), key=len, default=[])]
    except CycleError as error:
        return list(error.args[1])
    return max(chains.values(), key=len, default=[])


def figures(source: Path, files: list[File], seen: Seen | None) -> dict[str, str]:
    """The whole in numbers."""
    doors = entered(files, rooms := rooms_of(source))
    total = sum((Counter(file.counts) for file in files), Counter[str]())
    for path in [*source.glob("studio/**/*.js"), *source.glob("studio/**/*.css")]:
        total[path.suffix] += len(path.read_text(encoding="utf-8").splitlines())
    for path in [*source.glob("show/templates/**/*.html"), *source.glob("show/templates/**/*.css")]:
        total["templates"] += len(path.read_text(encoding="utf-8").splitlines())
    found = {
        "top-level modules": sum((source / f"{room}.py").is_file() for room in rooms if room != "__main__"),
        "rooms": sum((source / room).is_dir() for room in rooms),
        "imports from room to room": sum(map(len, doors.values())),
        "longest chain of imports": len(longest_chain(doors)),
        **{name: total[name] for name in ("files", "lines")},
        "lines of code": total["code"],
        "lines of the core": total["core"],
        "functions": total["functions"],
        "classes": sum(len(file.classes) for file in files),
        "records": records(files).total(),
        "names of several classes": len(shared_names(files)),
        "lines of JavaScript": total[".js"],
        "lines of CSS": total[".css"],
        "lines of templates": total["templates"],
    }
    if seen is not None:
        found |= {
            "commands": len(seen.commands.keys() - {EVERY}),
            "options": sum(len(names) for _, names in seen.commands.values()),
        }
        found |= {f"files on the walk: {name}": len(seen.walks[walk]) for walk, name in WALKS.items()}
    return {name: f"{count:,}" for name, count in found.items()}


def by_room(files: list[File], seen: Seen | None) -> list[list[str]]:
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in files:
        rows[file.room].update(file.counts)
    for room, count in records(files).items():
        rows[room]["records"] = count
    for module, names in seen.commands.values() if seen else ():
        rows[module.split(".")[1]]["options"] += len(names)
    heads = ["files", "lines", "code", "core", "functions", "records", "options"]
    return [["room", *heads], *([room, *(f"{counts[head]:,}" for head in heads)] for room, counts in rows.items())]


def table(rows: list[list[str]]) -> str:
    """Markdown, numbers to the right."""
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    cells = ((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])) for row in (rows[0], rule, *rows[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def details(files: list[File], seen: Seen | None, *, names: bool, commands: bool, walks: bool) -> Iterator[str]:
    """Behind the figures, as it was asked for."""
    if names:
        yield from ("", *(f"{name}: {', '.join(paths)}" for name, paths in shared_names(files).items()))
    if commands and seen:
        yield from ("", *(f"{name}: {', '.join(options)}" for name, (_, options) in seen.commands.items()))
    if walks and seen:
        for walk, called in seen.walks.items():
            yield from ("", WALKS[walk], *(f"  {path}: {function}" for path, function in called))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", help="a package's folder, LABEL= before it; may be given again")
    parser.add_argument("--names", action="store_true", help="list classes that share a name")
    parser.add_argument("--commands", action="store_true", help="list commands with their options")
    parser.add_argument("--walks", action="store_true", help="list the files on each walk and what is called first")
    parser.add_argument("--unrun", action="store_true", help="read the source, but run nothing")
    given = parser.parse_args()
    columns = {}
    for label, _, path in (text.rpartition("=") for text in given.source or [f"now={SOURCE}"]):
        source = Path(path).resolve()
        files, seen = files_of(source), None if given.unrun else see(source)
        columns[label or path] = figures(source, files, seen)
    print(table(by_room(files, seen)), end="\n\n")
    print(" → ".join(longest_chain(entered(files, rooms_of(source)))), end="\n\n")
    names = columns[label or path]
    print(table([["", *columns], *([name, *(column[name] for column in columns.values())] for name in names)]))
    print(*details(files, seen, names=given.names, commands=given.commands, walks=given.walks), sep="\n")


if __name__ == "__main__":
    main()
