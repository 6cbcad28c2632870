"""``regard``: the verbs, and how errors end them."""

from __future__ import annotations

import errno
import os
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from types import FrameType
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from regard import __version__
from regard.cli import (
    about,
    data,
    demo,
    doctor,
    evaluate,
    explain,
    faithful,
    inside,
    predict,
    report,
    runs,
    score,
    serve,
    settings,
    synthetic,
    train,
    translate,
)
from regard.cli.streams import as_called, record
from regard.cli.usage import complain, complain_of_usage
from regard.cli.verb import Command
from regard.errors import failure

TRY = {
    'regard translate demo "The black cat ate the mouse."': "with the small English-French model of the package",
    'regard explain demo "The black cat ate the mouse."': "where it looked",
    "regard studio": "all of it in a browser: translate, look inside, train, compare, learn",
    "regard demo": "train such a model here, in about five minutes",
    "regard train --source train.de --target train.en": "train one on your own parallel text",
}

BUG = "this is a bug of Regard's, not yours; the lines above say where"

app = typer.Typer(
    name="regard",
    help="Sequence-to-sequence models that you can look into.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
VERBS: dict[str, Callable[..., Any]] = {
    "demo": demo.demo,
    "train": train.train,
    "import": runs.import_model,
    "translate": translate.translate,
    "predict": predict.predict,
    "score": score.score,
    "backtranslate": synthetic.backtranslate,
    "distil": synthetic.distil,
    "doubt": score.doubt,
    "evaluate": evaluate.evaluate,
    "compare": report.compare,
    "report": report.report,
    "card": runs.card,
    "explain": explain.explain,
    "faithful": faithful.faithful,
    "walk": inside.walk,
    "serve": serve.serve,
    "studio": serve.studio,
    "beam": inside.beam,
    "meaning": inside.meaning,
    "doctor": doctor.doctor,
    "docs": about.docs,
    "cite": about.cite,
}
for name, verb in VERBS.items():
    app.command(name, cls=Command)(verb)
app.add_typer(data.app, name="data")
app.add_typer(runs.app, name="runs")
app.add_typer(settings.app, name="settings")


@app.command("help", cls=Command)
def help_of(
    words: Annotated[list[str] | None, typer.Argument(metavar="VERB...", help="Such as: train, or data check.")] = None,
) -> None:
    """Show the help of a verb."""
    command()([*(words or []), "--help"], prog_name="regard", standalone_mode=False)


@app.callback(invoke_without_command=True)
def welcome(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(__version__)
    elif context.invoked_subcommand is None:
        from regard.settings import preset_names

        print(_welcome(preset_names()))


def _welcome(presets: Sequence[str]) -> str:
    """A few commands to try, and the architectures."""
    commands = {as_called(command): purpose for command, purpose in TRY.items()}
    width = max(map(len, commands))
    tries = [f"  {command:{width}}  {purpose}" for command, purpose in commands.items()]
    known = textwrap.fill(f"Architectures: {', '.join(presets)}.", 100, break_on_hyphens=False, subsequent_indent="  ")
    last = as_called("regard --help lists the verbs; regard help train says what one of them takes.")
    title = f"Regard {__version__}: sequence-to-sequence models that you can look into."
    return "\n".join([title, "", *tries, "", known, last])


def main() -> None:
    """Run a verb; an error is one line and an exit code."""
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # see docs/decisions/0005-threads-spin-briefly.md
    signal.signal(signal.SIGINT, _interrupted)
    code = run(sys.argv[1:])
    record("end", {"code": code})
    sys.exit(code)


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, until a training or a server handles it. While torch is being imported, only exiting at once works."""
    if getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", False):
        os.write(2, b"interrupted\n")
        os._exit(130)
    signal.default_int_handler(number, frame)


@cache
def command() -> Any:
    """All verbs with their options; to read them off the functions takes longer than many a verb."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:  # noqa: PLR0911
    try:
        result = command()(arguments, prog_name="regard", standalone_mode=False)
        sys.stdout.flush()  # an error in writing must become an exit code
        return result if isinstance(result, int) else 0
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:  # an unknown verb or option, or an invalid value
        complain_of_usage(error)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _unread()
    except SystemExit as end:  # typer raises it for a broken pipe, and for completion
        broken = isinstance(end.__context__, OSError) and end.__context__.errno == errno.EPIPE
        return _unread() if broken else end.code if isinstance(end.code, int) else 0
    except Exception as error:
        if (known := failure(error)) is not None:
            complain(known)
            return known.exit_code
        traceback.print_exc()
        print(BUG, file=sys.stderr)
        record("error", {"text": BUG, "hint": ""})
        return 1


def _unread() -> int:
    """The reader has closed the pipe, which is no error: ``regard … | head -1``."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
