"""``regard cite`` and ``regard docs``"""

from __future__ import annotations

import json
import sys
import webbrowser
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import typer

from regard import __version__
from regard.cli.streams import say
from regard.cli.verb import common
from regard.errors import DataError, ResourceError, did_you_mean

TITLE: Final = "Regard: sequence-to-sequence models that you can look into"
AUTHORS: Final = "The Regard developers"
YEAR: Final = 2026
MANUAL: Final = Path(str(resources.files("regard"))) / "manual"  # `make site` writes it
FIRST: Final = "index"


def cite(context: typer.Context) -> None:
    """Print how to cite Regard, as BibTeX, or with --json as CSL."""
    if common(context).json:
        entry = {"id": "regard", "type": "software", "title": TITLE, "version": __version__}
        print(json.dumps(entry | {"author": [{"literal": AUTHORS}], "issued": {"date-parts": [[YEAR]]}}, indent=2))
        return
    fields = {"author": f"{{{AUTHORS}}}", "title": TITLE, "year": str(YEAR), "version": __version__}
    lines = [f"  {name:7} = {{{value}}}," for name, value in fields.items()]
    print("\n".join(["@software{regard,", *lines, "}"]))


def docs(
    context: typer.Context,
    page: Annotated[str, typer.Argument(help="A page, such as training or course/01-sequences.")] = FIRST,
) -> None:
    """Open the installed documentation, without a network."""
    path = manual_page(page)
    if common(context).json:
        print(json.dumps({"page": page, "path": str(path)}, indent=2))
        return
    print(path)
    if sys.stdout.isatty() and not webbrowser.open(path.as_uri()):
        say("no browser could be opened; the page is the file above")


def manual_page(name: str) -> Path:
    """The file of a page, by its path in docs/."""
    if not (MANUAL / f"{FIRST}.html").is_file():
        raise ResourceError("docs: not in this installation; `make site` in the repository writes them")
    pages = {str(path.relative_to(MANUAL).with_suffix("")): path for path in MANUAL.rglob("*.html")}
    asked = name.strip("/").removesuffix(".html").removesuffix(".md").removeprefix("docs/")
    if asked not in pages:
        raise DataError(f"page = {name}: no such page; {did_you_mean(asked, pages)}")
    return pages[asked]
