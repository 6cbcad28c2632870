"""What the site has beside the pages of docs/: its first page, the reference of Python names, formulas, links.

A hook of mkdocs; `make site` calls it. It imports nothing of the package: names and docstrings are read from source.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "regard"
REPOSITORY = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# Rooms whose names people call from Python; the others are reached through them or through verbs.
ROOMS = {
    "settings": "Every setting, typed",
    "text": "Vocabularies and tokenizers",
    "data": "Reading, checking, batching",
    "nn": "The mathematics",
    "models": "Models and how they are built",
    "decode": "Search",
    "metrics": "Measures",
    "tasks": "A trained run in use",
    "explain": "Looking inside",
    "evaluate": "What a run is worth",
    "errors": "Complaints",
}
LEFT_OUT = re.compile(r"(\.js\.map|\.css\.map)$|/lunr/|/workers/.*\.map$")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"""(!\[[^\]]*\]\(|\bsrc(?:set)?=")docs/""")  # of a page of the repository
_FORMULA = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """The version in the title; pages that are found and not named."""
    version = re.search(r'__version__ = "(.+)"', (PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    config.site_name = f"Regard {version[1]}"
    docs = Path(config.docs_dir)
    filled = {
        "Course": [f"course/{path.name}" for path in sorted((docs / "course").glob("*.md"))],
        "Python": ["api/regard.md", *(f"api/{room}.md" for room in ROOMS)],
        "Decisions": [f"decisions/{path.name}" for path in sorted((docs / "decisions").glob("*.md"))],
    }
    _fill(config.nav, filled)
    return config


def _fill(nav: list[Any], filled: dict[str, list[str]]) -> None:
    for entry in nav:
        for name, inside in entry.items() if isinstance(entry, dict) else ():
            if name in filled:
                entry[name] = sorted(filled[name], key=lambda page: (not page.endswith("index.md"), page))
                if name == "Python":
                    entry[name] = filled[name]
            elif isinstance(inside, list):
                _fill(inside, filled)


def on_files(files: Any, config: Any) -> Any:
    """Pages that are made here: those of the repository, and the reference."""
    for page, source in REPOSITORY.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "api/regard.md", content=public_page()))
    for room, title in ROOMS.items():
        files.append(File.generated(config, f"api/{room}.md", content=room_page(room, title)))
    return files


def public_page() -> str:
    """The names of ``import regard``, wherever they live."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (homes,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES"
    )
    lines = ["# import regard\n", "What most programs need. The other pages have what these are made of.\n"]
    lines += [f"::: {home}.{name}\n" for name, home in sorted(homes.items()) if (PACKAGE / "__init__.py").exists()]
    return "\n".join(lines)


def room_page(room: str, title: str) -> str:
    """The modules of a room, in the order of their names."""
    path = PACKAGE / room
    if not path.is_dir():
        return f"# {title}\n\n::: regard.{room}\n"
    modules = [
        ".".join(("regard", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for file in sorted(path.rglob("*.py"))
        if not file.name.startswith("_") and "presets" not in file.parts
    ]
    return "\n".join([f"# {title}: `regard.{room}`\n", *(f"::: {module}\n" for module in modules)])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links and pictures that are there inside the package, and formulas that a browser draws by itself."""
    place = page.file.src_uri
    parts = _FENCE.split(markdown)
    for number in range(0, len(parts), 2):  # outside of blocks of code
        if place in REPOSITORY:
            parts[number] = _PICTURE.sub(r"\1", parts[number])
        parts[number] = _LINK.sub(lambda link: _led(link[1], link[2], place), parts[number])
        parts[number] = _FORMULA.sub(lambda found: f"<div>{convert(found[1], display='block')}</div>", parts[number])
    return "".join(parts)


def _led(text: str, target: str, place: str) -> str:
    """A link as it stands, to a page of the site, or to a file of the package; else its words alone."""
    path, hash_, anchor = target.partition("#")
    if "://" in path or not path or path.startswith("mailto:"):
        return f"[{text}]({target})"
    where = ROOT / REPOSITORY[place] if place in REPOSITORY else ROOT / "docs" / place
    meant = posixpath.normpath(posixpath.relpath((where.parent / path).as_posix(), ROOT.as_posix()))
    pages = {source: page for page, source in REPOSITORY.items()}
    if meant in pages or (meant.startswith("docs/") and not meant.endswith((".py", ".ipynb"))):
        inside = pages.get(meant, meant.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(place) or '.')}{hash_}{anchor})"
    if meant.startswith("src/regard/"):
        up = "../" * (place.count("/") + 1)
        return f'<a href="{up}{meant.removeprefix("src/regard/")}">{_marked(text)}</a>'
    return text


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


@event_priority(-200)  # after the plugin `offline`, which makes a script of the search index
def on_post_build(config: Any, **_: Any) -> None:
    """Take away what no reader of this site asks for: maps of scripts, and search in languages that it has not."""
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*"), reverse=True):
        if path.is_file() and LEFT_OUT.search(path.as_posix()):
            path.unlink()
    for name in (
        "sitemap.xml",
        "sitemap.xml.gz",
        "404.html",
        "search/search_index.json",
    ):  # files are not asked by HTTP
        (site / name).unlink(missing_ok=True)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
