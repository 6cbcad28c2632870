"""Tab completion: verbs, options, settings and their values, presets, runs.

It is fast because only the standard library is imported: all words come from ``completion.json``, which `make docs`
writes from the verbs and settings. The scripts that ``regard --show-completion`` prints ask through environment
variables.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("completion.json")
ASKED: Final = "_REGARD_COMPLETE"
MOST: Final = 1000  # entries of a folder that are read
RUNS: Final = "runs"  # the usual folder of runs
_FILE: Final = "settings.toml"

Offer = tuple[str, str]  # what may be written, and what it is


def answer(environment: Mapping[str, str]) -> int:
    """Print the offers in the format of the shell that asks; return the exit code."""
    shell = environment[ASKED].removeprefix("complete_")
    words, cut = _bash(environment) if shell == "bash" else _line(environment)
    found = list(offers(words[:-1], words[-1]))
    match shell:
        case "bash":
            print("\n".join(value[cut:] for value, _ in found))
        case "zsh":
            print(f"_arguments '*: :(({_joined(found)}))'" if found else "_files")
        case "fish" if environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            return 0 if found else 1
        case "fish":
            print("\n".join(f"{value}\t{about}" for value, about in found))
        case _:  # PowerShell
            print("\n".join(f"{value}:::{about or ' '}" for value, about in found))
    return 0


def offers(before: list[str], begun: str) -> Iterator[Offer]:
    """What may follow these words of a command line and begins with ``begun``."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    verb, given = _verb(table["verbs"], before)
    if verb not in table["verbs"]:
        verbs = {name.removeprefix(f"{verb} ").split()[0]: about["about"] for name, about in _under(table, verb)}
        verbs |= {name: table["groups"][name] for name in verbs if not verb and name in table["groups"]}
        yield from _beginning(verbs.items(), begun)
        return
    known = table["verbs"][verb]
    options = known["options"]
    if given and (takes := options.get(given[-1], {}).get("takes")):
        yield from _kinds([takes], table, [], begun)
    elif begun.startswith("-"):
        yield from _beginning(((name, each["about"]) for name, each in options.items()), begun)
    elif known["words"]:
        place = len(_plain(given, options))
        kinds = known["words"][min(place, len(known["words"]) - 1)]
        if place < len(known["words"]) or known["more"]:
            yield from _kinds(kinds, table, known["settings"], begun)


def _verb(verbs: Mapping[str, Any], words: list[str]) -> tuple[str, list[str]]:
    """The verb at the beginning of words, complete or not, and the rest."""
    groups = {name.split()[0] for name in verbs if " " in name}
    size = 2 if words and words[0] in groups else 1
    return " ".join(words[:size]), words[size:]


def _under(table: Mapping[str, Any], group: str) -> Iterator[tuple[str, Any]]:
    """The verbs of a group, or all."""
    return ((name, each) for name, each in table["verbs"].items() if not group or name.startswith(f"{group} "))


def _plain(words: list[str], options: Mapping[str, Any]) -> list[str]:
    """Words that are neither options nor their values."""
    taken = [False, *(options.get(word, {}).get("takes", "") != "" for word in words)]
    return [word for word, is_value in zip(words, taken, strict=False) if not is_value and not word.startswith("-")]


def _kinds(kinds: list[str], table: Mapping[str, Any], settings: list[str], begun: str) -> Iterator[Offer]:
    for kind in kinds:
        match kind:
            case "run":
                yield from runs(begun)
            case "preset":
                yield from _beginning(table["presets"].items(), begun)
            case "setting":
                yield from _settings({name: table["settings"][name] for name in settings}, begun)
            case "name":
                yield from _beginning(((name, each["about"]) for name, each in table["settings"].items()), begun)
            case "verb":
                yield from _beginning(((name.split()[0], each["about"]) for name, each in _under(table, "")), begun)
            case _ if kind.startswith("="):
                yield from _beginning(((value, "") for value in kind[1:].split("|") if value), begun)


def _settings(settings: Mapping[str, Any], begun: str) -> Iterator[Offer]:
    """Names while several are possible, then values, so that no shell adds a space after the equals sign."""
    name, equals, _ = begun.partition("=")
    found = {path: each for path, each in settings.items() if path.startswith(name) and (not equals or path == name)}
    for path, each in found.items():
        if not equals:
            yield f"{path}=", each["about"]
        if len(found) == 1:
            yield from _beginning(((f"{path}={value}", "") for value in each["values"]), begun)


def runs(begun: str) -> Iterator[Offer]:
    """Run folders: in the folder of the begun path, else here and in runs/."""
    head, slash, _ = begun.rpartition("/")
    if slash:
        yield from _beginning(_in(f"{head}/"), begun)
        return
    yield from _beginning([("demo", "the run of the package"), *_in(""), *_in(f"{RUNS}/")], begun)


def _in(folder: str) -> Iterator[Offer]:
    try:
        with os.scandir(folder or ".") as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(MOST), strict=False) if entry.is_dir())
    except OSError:
        return
    for name in names:
        if not name.startswith(".") and Path(folder, name, _FILE).is_file():
            yield f"{folder}{name}", "a run"


def _beginning(found: Iterable[Offer], begun: str) -> Iterator[Offer]:
    return ((value, about) for value, about in found if value.startswith(begun))


# How shells pass the command line


def _bash(environment: Mapping[str, str]) -> tuple[list[str], int]:
    """The words after the program's name, and how many characters of the last bash does not replace.

    Bash splits ``decode.beam=3`` into three words, and replaces the last.
    """
    text = environment.get("COMP_WORDS", "")
    words = text.split("\n") if "\n" in text else text.split()
    words = [*words, ""][: int(environment.get("COMP_CWORD") or 1) + 1]
    joined: list[str] = []
    cut = 0
    for place, word in enumerate(words[1:]):
        if joined and "=" in (word, words[place]):
            joined[-1] += word
            cut = len(joined[-1].partition("=")[0]) + 1
        else:
            joined.append(word)
            cut = 0
    return joined or [""], cut


def _line(environment: Mapping[str, str]) -> tuple[list[str], int]:
    """The words of a line after the program's name; the last may be empty."""
    line = environment.get("_TYPER_COMPLETE_ARGS", "")
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # a quote is open
        words.append(lexer.token or "")
    return [*words[1:], ""] if line[-1:].isspace() or len(words) < 2 else words[1:], 0


def _joined(found: Iterable[Offer]) -> str:
    """For zsh, which evaluates its input: each offer is quoted, with its description after a colon."""
    quoted = ((_quoted(value), _quoted(about)) for value, about in found)
    return "\n".join(f'"{value}":"{about}"' if about else f'"{value}"' for value, about in quoted)


def _quoted(text: str) -> str:
    text = text.replace("'", "’").replace("\\", "")  # the whole is inside single quotes
    return re.sub(r'(["$`])', r"\\\1", text).replace(":", r"\\:")
