"""Errors on the command line: one line, and below it a command that helps; typer's errors in the same form."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from typer.exceptions import TyperException

from regard.cli.streams import as_called, record
from regard.cli.verb import AND_SETTINGS, SETTING_WORDS, fields_of, verb_of
from regard.errors import RegardError, SettingsError, did_you_mean

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

# Flags of earlier versions by verb, and what to write instead, unless it is a setting of the same name; and verbs that
# people try.
MOVED = {
    "": {
        "completion": "regard --install-completion",
        "version": "regard --version",
        "ls": "regard runs ls",
        "list": "regard runs ls",
        "tag": "regard predict RUN",
        "classify": "regard predict RUN",
        "finetune": "regard train --from RUN",
    },
    "translate": {
        "--coverage-penalty": "decode.coverage=N",
        "--min-ratio": "decode.shortest=N",
        "--max-ratio": "decode.longest=N",
        "--no-copy-unknown": "decode.copy_unknown=false",
    },
    "train": {
        "--valid-source": "data.valid_source=FILE",
        "--valid-target": "data.valid_target=FILE",
        "--valid-corpus": "data.valid_corpus=FILE",
        "--task": "task=tag",
        "--watch": "train.watch='A sentence.'",
    },
    "demo": {"--preset": "regard train PRESET --corpus fable:fr"},
    "score": {"--tokens": "--json"},
    "compare": {"--seed": "measure.seed=N"},
    "report": {"--seed": "measure.seed=N"},
    "explain": {
        "--html": "--out FILE.html",
        "--svg": "--out FILE.svg",
        "--png": "--out FILE.png",
        "--save": "--out FILE.safetensors",
        "--special": "--pieces",
    },
    "studio": {"--no-browser": "serve.browser=false"},
    "walk": {"--markdown": "--out FILE.md"},
    "beam": {"--html": "--out FILE.html"},
    "meaning": {"--html": "--out FILE.html", "--svg": "--out FILE.svg"},
    "data make": {
        "--target": "fable:fr or fable:hi as the corpus",
        "--min-words": "--words 1-20",
        "--max-words": "--words 1-20",
    },
    "runs export": {
        "--all": "--to archive-all",
        "--half": "--to archive-half",
        "--quantization": "--to ctranslate2-int8",
        "--out": "the file after the run",
    },
}
_NO_VERB = re.compile(r"No such command '(.*?)'")
_INVALID = re.compile(r"Invalid value for '?(.*?)'?: (?:Input )?(.*?)(?:, unable to parse .*)?")
_NO_VALUE = re.compile(r"Option '(.*?)' requires an argument")
_TOO_MANY = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", re.DOTALL)
_MISSING = re.compile(r"Missing (?:argument|option) '(.*?)'.*")


def complain(error: RegardError) -> None:
    print(as_called(str(error)), file=sys.stderr)
    if error.hint:
        print(f"  {as_called(error.hint)}", file=sys.stderr)
    record("error", {"text": str(error), "hint": error.hint})


def complain_of_usage(error: TyperException) -> None:
    """Print an error of typer's; a group without a verb prints its help."""
    message: str = getattr(error, "format_message", error.__str__)()
    if message.startswith("Usage:"):
        print(message, file=sys.stderr)
    else:
        complain(usage_error(error, message))


def usage_error(error: TyperException, message: str) -> SettingsError:
    """An unknown verb or option, or an invalid value, as one of our errors."""
    context: Any = getattr(error, "ctx", None)
    verb = "" if context is None else verb_of(context)
    help_page = " ".join(("regard", *verb.split(), "--help"))
    option = getattr(error, "option_name", "")
    if found := _NO_VERB.match(message):
        moved = MOVED.get(verb, {}).get(found[1])
        known = f"write {moved}" if moved else did_you_mean(found[1], context.command.commands)
        return SettingsError(f"{found[1]}: no such verb; {known}", hint=help_page)
    if message.startswith("No such option") and not option.strip("- "):
        return SettingsError("text: begins with a dash, and is taken for an option; put -- before it", hint=help_page)
    if message.startswith("No such option") and (now := _moved(verb, option)):
        kind = "a setting" if "=" in now else "another verb" if now.startswith("regard") else "another option"
        return SettingsError(f"{option}: is {kind}; write {now}", hint=help_page)
    if message.startswith("No such option"):
        names = [name for each in context.command.get_params(context) for name in each.opts]
        bare = option.lstrip("-")
        options = [name for name in names if name.startswith("-")]
        known = f"give the value without {option}" if bare in names else did_you_mean(option, options)
        return SettingsError(f"{option}: no such option; {known}", hint=help_page)
    if found := _TOO_MANY.fullmatch(message):
        return SettingsError(f"{found[1]}: too many words; {_taken(context)}", hint=help_page)
    return SettingsError(_said(error, message.rstrip(".")), hint=help_page)


def _taken(context: Any) -> str:
    """What to write where words were left over."""
    names = [each.name.upper() for each in context.command.params if each.param_type_name == "argument"]
    return f"give only {' and '.join(names)}, in quotes where there are spaces" if names else "give only options"


def _said(error: TyperException, message: str) -> str:
    """A message of typer's as we say it: where, what is wrong, what would be right."""
    if found := _MISSING.fullmatch(message):
        about = (getattr(getattr(error, "param", None), "help", None) or "it is needed").removesuffix(AND_SETTINGS)
        where = found[1].removesuffix(SETTING_WORDS)
        return f"{where}: is missing; {about[:1].lower()}{about[1:].rstrip('.')}"
    if found := _NO_VALUE.fullmatch(message):
        return f"{found[1]}: needs a value; write it after the option"
    found = _INVALID.fullmatch(message)
    return f"{found[1]}: not valid; {found[2]}" if found else message


def _moved(verb: str, option: str) -> str | None:
    """What to write instead of a flag of earlier versions: mostly the setting of the same name."""
    name = option.removeprefix("--").replace("-", "_")
    same = (f"{path}={_example(field)}" for path, field in fields_of(verb) if path.endswith(f".{name}"))
    return MOVED.get(verb, {}).get(option) or next(same, None)


def _example(field: FieldInfo) -> str:
    """A placeholder for the value of a setting."""
    kind, about = field.annotation, field.description or ""
    if kind in (bool, bool | None):
        return "true"
    if kind in (int, float):
        return "N"
    if get_origin(kind) is Literal:
        return next(str(value) for value in get_args(kind) if value != field.default)
    if get_origin(kind) is tuple:
        return "N,N" if int in get_args(kind) else "TEXT,TEXT"
    kinds = {"A file": "FILE", "A folder": "FOLDER", "A run": "RUN"}
    return next((word for begin, word in kinds.items() if about.startswith(begin)), "TEXT")
