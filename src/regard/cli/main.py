"""``regard``: the verbs, and what happens when something is wrong."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer
from typer.exceptions import TyperException

from regard import __version__
from regard.cli import (
    beam,
    compare,
    data,
    demo,
    doctor,
    evaluate,
    explain,
    meaning,
    predict,
    report,
    runs,
    score,
    serve,
    settings,
    train,
    translate,
    walk,
)
from regard.cli.usage import complain, complain_of_usage
from regard.errors import RegardError

WELCOME = """\
Regard {version}: sequence-to-sequence models that you can look into.

  regard demo                      train a small English-French translator here, in about three minutes
  regard train --source train.de --target train.en
                                   train one on your own parallel text, as large as it and the machine allow
  regard translate RUN "a text"    translate with what was trained
  regard studio                    all of it in a browser: translate, look inside, train, compare, learn

Architectures: {presets}.
regard --help lists the verbs; regard VERB --help says what each takes."""

app = typer.Typer(
    name="regard",
    help="Sequence-to-sequence models that you can look into.",
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("predict")(predict.predict)
app.command("score")(score.score)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("explain")(explain.explain)
app.command("walk")(walk.walk)
app.command("serve")(serve.serve)
app.command("studio")(serve.studio)
app.command("beam")(beam.beam)
app.command("meaning")(meaning.meaning)
app.add_typer(data.app, name="data")
app.add_typer(runs.app, name="runs")
app.add_typer(settings.app, name="settings")
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def welcome(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        print(__version__)
    elif context.invoked_subcommand is None:
        from regard.settings import preset_names

        print(WELCOME.format(version=__version__, presets=", ".join(preset_names())))


def main() -> None:
    """Run a verb; one line and the right exit code for what goes wrong."""
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # see docs/decisions/0005-threads-spin-briefly.md
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911
    try:
        result = app(arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except RegardError as error:
        complain(error)
        return error.exit_code
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:  # a verb or an option that is not there, or a value that cannot be read
        complain_of_usage(error)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has had enough
        return 0
    except Exception:
        traceback.print_exc()
        print("this is a bug of Regard's, not yours; the lines above say where", file=sys.stderr)
        return 1
