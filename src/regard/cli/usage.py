"""How the command line complains: a line, and below it a command that helps. What typer finds wrong, too."""

from __future__ import annotations

import re
import sys
from typing import Any

from typer.exceptions import TyperException

from regard.cli.called import as_called
from regard.errors import RegardError, SettingsError, did_you_mean

# Flags of earlier versions, and what to write instead; where a verb differs from the others, with its name.
MOVED = {
    "--beam": "decode.beam=5",
    "--length-penalty": "decode.length_penalty=1.0",
    "--coverage-penalty": "decode.coverage=0.2",
    "--groups": "decode.groups=2",
    "--diversity": "decode.diversity=0.5",
    "--sample": "decode.sample=true",
    "--temperature": "decode.temperature=0.8",
    "--top-k": "decode.top_k=10",
    "--nucleus": "decode.nucleus=0.9",
    "--seed": "measure.seed=12345",
    "translate --seed": "decode.seed=1",
    "predict --seed": "decode.seed=1",
    "--length": "decode.length=40",
    "--risk": "decode.risk=16",
    "--min-ratio": "decode.shortest=0.5",
    "--max-ratio": "decode.longest=2.0",
    "--no-repeat": "decode.no_repeat=3",
    "--forbid": "decode.forbid=WORD,WORD",
    "--prefix": "decode.prefix=TEXT",
    "--copy-unknown": "decode.copy_unknown=true",
    "--no-copy-unknown": "decode.copy_unknown=false",
    "--engine": "decode.engine=native",
    "--metrics": "measure.metrics=bleu,chrf",
    "--edges": "measure.edges=10,20,30",
    "--rarity": "measure.rarity=mean",
    "--resamples": "measure.resamples=1000",
    "--tokenize": "measure.tokenize=13a",
    "--limit": "measure.limit=100",
    "--trials": "measure.trials=10000",
    "--examples": "measure.examples=10",
    "--every": "measure.every=10",
    "--alignment": "measure.alignment=FILE",
    "--links": "measure.links=FILE",
    "--reverse": "measure.reverse=RUN",
    "--reverse-links": "measure.reverse_links=FILE",
    "--symmetrise": "measure.symmetrise=union",
    "--comet": "measure.comet=MODEL",
    "--pin": "serve.pin=RUN",
    "--admin-token": "serve.admin_token=TOKEN, or set REGARD_ADMIN_TOKEN",
    "--allow-host": "serve.allow_host=NAME",
    "--allow-origin": "serve.allow_origin=https://example.org",
    "--queue": "serve.queue=1024",
    "--batch": "serve.batch=256",
    "--gather": "serve.gather=4",
    "--timeout": "serve.timeout=60",
    "--memory": "serve.memory=4G",
    "--stop-trainings": "serve.stop_trainings=true",
    "--log": "serve.log=true",
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
    "make --target": "the corpus as fable:fr or fable:hi",
    "--min-words": "--words 1-20",
    "--max-words": "--words 1-20",
    "--quantization": "--to ctranslate2-int8",
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
    if message.startswith("No such option") and (now := MOVED.get(f"{context.info_name} {option}", MOVED.get(option))):
        kind = "another option" if now.startswith("-") else "a setting"
        return SettingsError(f"{option}: is {kind} now; write {now}", hint=help_page)
    if message.startswith("No such option"):
        known = did_you_mean(option, (name for each in context.command.get_params(context) for name in each.opts))
        return SettingsError(f"{option}: no such option; {known}", hint=help_page)
    return SettingsError(message.rstrip("."), hint=help_page)


def _path(context: Any) -> str:
    """``regard data check``, however it was started."""
    names = []
    while context.parent is not None:
        names.append(context.info_name)
        context = context.parent
    return " ".join(["regard", *reversed(names)])
