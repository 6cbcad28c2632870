"""How the command line complains: a line, and below it a command that helps. What typer finds wrong, too."""

from __future__ import annotations

import re
import sys
from typing import Any

from typer.exceptions import TyperException

from regard.cli.called import as_called
from regard.cli.verb import settings_of
from regard.errors import RegardError, SettingsError, did_you_mean

# Flags of earlier versions that are not settings of the same name, and what to write instead.
MOVED = {
    "--coverage-penalty": "decode.coverage=0.2",
    "--min-ratio": "decode.shortest=0.5",
    "--max-ratio": "decode.longest=2.0",
    "--no-copy-unknown": "decode.copy_unknown=false",
    "--valid-source": "data.valid_source=FILE",
    "--valid-target": "data.valid_target=FILE",
    "--valid-corpus": "data.valid_corpus=FILE",
    "--task": "task=tag",
    "--watch": "train.watch='A sentence.'",
    "--html": "--out FILE.html",
    "--svg": "--out FILE.svg",
    "--png": "--out FILE.png",
    "--save": "--out FILE.safetensors",
    "--markdown": "--out FILE.md",
    "--min-words": "--words 1-20",
    "--max-words": "--words 1-20",
    "--quantization": "--to ctranslate2-int8",
    "make --target": "fable:fr or fable:hi as the corpus",
    "export --out": "the folder behind the run",
}
_NO_VERB = re.compile(r"No such command '(.*?)'")


def complain(error: RegardError) -> None:
    print(as_called(str(error)), file=sys.stderr)
    if error.hint:
        print(f"  {as_called(error.hint)}", file=sys.stderr)


def complain_of_usage(error: TyperException) -> None:
    """Typer's complaints; a group of verbs without a verb gets its help."""
    message: str = getattr(error, "format_message", error.__str__)()
    if message.startswith("Usage:"):
        print(message, file=sys.stderr)
    else:
        complain(usage_error(error, message))


def usage_error(error: TyperException, message: str) -> SettingsError:
    """A verb or an option that is not there, or a value that cannot be read, as an error of ours."""
    context: Any = getattr(error, "ctx", None)
    help_page = "regard --help" if context is None else f"{_path(context)} --help"
    option = getattr(error, "option_name", "")
    if found := _NO_VERB.match(message):
        known = did_you_mean(found[1], context.command.commands)
        return SettingsError(f"{found[1]}: no such verb; {known}", hint=help_page)
    if message.startswith("No such option") and not option.strip("- "):
        return SettingsError("text: begins with a dash, and is taken for an option; put -- before it", hint=help_page)
    if message.startswith("No such option") and (now := _moved(context.info_name, option)):
        kind = "a setting" if "=" in now else "another option"
        return SettingsError(f"{option}: is {kind} now; write {now}", hint=help_page)
    if message.startswith("No such option"):
        known = did_you_mean(option, (name for each in context.command.get_params(context) for name in each.opts))
        return SettingsError(f"{option}: no such option; {known}", hint=help_page)
    return SettingsError(message.rstrip("."), hint=help_page)


def _moved(verb: str, option: str) -> str | None:
    """What to write for a flag of earlier versions: mostly a setting of its name."""
    name = option.removeprefix("--").replace("-", "_")
    same = (setting for setting, _ in settings_of(verb) if setting.partition("=")[0].endswith(f".{name}"))
    return MOVED.get(f"{verb} {option}") or MOVED.get(option) or next(same, None)


def _path(context: Any) -> str:
    """``regard data check``, however it was started."""
    names = []
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["regard", *reversed(names)])
