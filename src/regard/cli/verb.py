"""Options that all verbs share: three flags, and settings such as ``decode.beam=3``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from regard.cli.streams import say, set_quiet
from regard.errors import SettingsError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from regard.settings.call import CallSettings

SETTING_WORDS, AND_SETTINGS = " [SETTING=VALUE]...", " And settings, listed below."  # of the help, not of an error
_SETTING = re.compile(r"(?:decode|measure|serve|bulk)\.\w+=")


class Common(NamedTuple):
    """The flags of all verbs."""

    json: bool
    quiet: bool
    device: str

    @property
    def place(self) -> str:
        """The device to compute on."""
        from regard.device import pick_device

        return str(pick_device(self.device))

    def answer(self, content: object, *lines: str) -> None:
        """JSON on stdout where it was asked for, else lines for people on stderr."""
        if self.json:
            print(json.dumps(content, ensure_ascii=False))
            return
        for line in lines:
            say(line)


def common(context: typer.Context) -> Common:
    found: Common = context.obj
    return found


def _flags(
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No remarks on stderr.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu or cuda.")] = "auto",
) -> None: ...


@cache
def _parameters() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_flags)
    return typer.main.get_command(app).params


class Command(TyperCommand):
    """A verb with the common flags, whose help lists its settings."""

    def get_params(self, ctx: Any) -> list[Any]:
        *own, the_help = super().get_params(ctx)
        return [*own, *_parameters(), the_help]

    def invoke(self, ctx: Any) -> Any:
        ctx.obj = Common(*(ctx.params.pop(name) for name in Common._fields))
        set_quiet(quiet=ctx.obj.quiet)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # typer makes an exit code of it, without a word
            print("interrupted", file=sys.stderr)
            raise
        finally:
            set_quiet(quiet=False)  # only for this call

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        if rows := list(settings_of(verb_of(ctx))):
            with formatter.section("Settings, for example decode.beam=3"):
                formatter.write_dl(rows)


def verb_of(context: Any) -> str:
    """The verb of a context, such as ``data check``."""
    names: list[str] = []
    while context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return " ".join(names)


def fields_of(verb: str) -> Iterator[tuple[str, FieldInfo]]:
    """The settings of a verb."""
    from regard.settings.call import TAKEN, CallSettings

    for section, names in TAKEN.get(verb, {}).items():
        fields = type(getattr(CallSettings(), section)).model_fields
        yield from ((f"{section}.{name}", fields[name]) for name in names)


def settings_of(verb: str) -> Iterator[tuple[str, str]]:
    """The settings of a verb with their defaults, and what each means."""
    from regard.settings.loading import written

    for path, field in fields_of(verb):
        yield f"{path}={written(field.default)}", field.description or ""


def with_settings(words: str, help: str) -> Any:
    """An argument of several words that may include settings."""
    return typer.Argument(metavar=f"{words}{SETTING_WORDS}", help=f"{help}{AND_SETTINGS}")


Sentence = Annotated[list[str], with_settings("TEXT", "The sentence, or the beginning of a text for a language model.")]


def apart(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line that are settings, and the others."""
    settings = [word for word in words if _SETTING.match(word)]
    return settings, [word for word in words if not _SETTING.match(word)]


def only_one(words: Sequence[str], what: str) -> tuple[list[str], str]:
    """The settings, and the one other word."""
    settings, rest = apart(words)
    if len(rest) != 1:
        given = f"{len(rest)} of them; give one" if rest else "missing"
        raise SettingsError(f"{what}: {given}, in quotes where it has spaces")
    return settings, rest[0]


def called(verb: str, overrides: Sequence[str] | None, flags: Mapping[str, object] | None = None) -> CallSettings:
    """All settings of a call: flags that were given (not None), then ``section.name=value``."""
    from regard.settings.loading import load_call

    named = (flags or {}).items()
    given = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in named if value is not None]
    return load_call(verb, *given, *(overrides or ()))
