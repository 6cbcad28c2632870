"""``regard runs``: ls, show, verify, rename, rm, restore, sweep, export, import; ``regard card``, ``regard import``."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.streams import put, say
from regard.cli.verb import Command, Common, common
from regard.errors import ModelError, SettingsError, did_you_mean, quoted

if TYPE_CHECKING:
    from regard.runs.listing import RunDetails, Summary

app = typer.Typer(
    help="List, show, verify, rename, remove, restore, sweep, export and import runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
TARGETS = ("archive", "archive-all", "archive-half", "ctranslate2", "huggingface")


@app.command(cls=Command)
def ls(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where to look, also in folders inside.")] = Path("runs"),
) -> None:
    """List the runs in a folder."""
    from regard.runs.listing import find, summarise

    paths = list(find(folder))
    names = [str(path) if path == folder else path.relative_to(folder).as_posix() for path in paths]
    found = [summarise(path, name) for path, name in zip(paths, names, strict=True)]
    if common(context).json:
        put(json.dumps([asdict(summary) for summary in found], indent=2, ensure_ascii=False))
    elif found:
        put("\n".join(_table([_cells(summary) for summary in found], _width())))
    else:
        say(f"{folder}: no runs in here; regard train makes one")


# The columns of `ls` in order, and the order in which a narrow terminal drops them.
_COLUMNS = ("run", "state", "task", "languages", "preset", "parameters", "steps", "best", "changed", "size")
_DROPPED = ("task", "languages", "parameters", "size", "changed", "preset")


def _steps(summary: Summary) -> str:
    """The steps done, of how many unless the time is the limit."""
    if summary.origin and not summary.steps:
        return "imported"
    return f"{summary.steps:,}" if summary.time else f"{summary.steps:,} of {summary.of_steps:,}"


def _cells(summary: Summary) -> dict[str, str]:
    score = "" if summary.score is None else f"{summary.score_name} {summary.score:.1f}"
    return {
        "run": summary.name,
        "state": summary.state_word,
        "task": summary.task,
        "languages": summary.languages,
        "preset": summary.preset or summary.architecture.partition(",")[0] or summary.note[:24],
        "parameters": "" if summary.parameters is None else _count(summary.parameters),
        "steps": _steps(summary),
        "best": score,
        "changed": time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.changed)),
        "size": _bytes(summary.bytes),
    }


def _table(rows: list[dict[str, str]], width: int) -> list[str]:
    """Rows under their headings, two spaces between columns, without those that do not fit."""
    wide = {name: max(len(name), *(len(row[name]) for row in rows)) for name in _COLUMNS}
    shown = list(_COLUMNS)
    for name in _DROPPED:
        if sum(wide[column] + 2 for column in shown) - 2 > width:
            shown.remove(name)
    lines = [{name: name for name in _COLUMNS}, *rows]
    return ["  ".join(row[name].ljust(wide[name]) for name in shown).rstrip() for row in lines]


def _width() -> int:
    """The width of the terminal; unlimited for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000


def _count(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 100_000 else f"{number:,}"


def _bytes(number: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024  # type: ignore[assignment]
    return f"{number:.1f} GiB"


@app.command(cls=Command)
def show(context: typer.Context, run: RunFolder) -> None:
    """Show a run: settings, curves, checkpoints."""
    from regard.runs.listing import portray

    portrait = portray(run)
    if common(context).json:
        put(json.dumps(asdict(portrait), indent=2, ensure_ascii=False))
        return
    for name, value in _facts(portrait):
        put(f"{name:14}{value}")


def _facts(portrait: RunDetails) -> list[tuple[str, str]]:
    summary, settings, progress = portrait.summary, portrait.settings, portrait.progress
    text, train = settings["text"], settings["train"]
    size = "" if summary.parameters is None else f"{summary.parameters:,} parameters, "
    rate = f"{train['optimizer']}, rate {train['rate']:g}, {train['schedule']}"
    trained = not summary.origin or summary.steps  # not only imported
    learning = [
        ("training", f"{rate}, batches of {train['batch'] * train['accumulate']:,} tokens"),
        ("done", f"{_steps(summary)} steps, {progress.tokens:,} tokens, {progress.seconds:,.0f} s"),
    ]
    return [
        ("run", f"{summary.folder}, {summary.state_word}, {_bytes(summary.bytes)}"),
        ("about", f"{summary.task}, {summary.preset + ': ' if summary.preset else ''}{summary.about}"),
        ("model", f"{size}{summary.architecture}"),
        ("text", _text(text)),
        *([("corpus", _corpus(settings["data"]))] if trained else []),
        *([("made of", summary.origin)] if summary.origin else []),
        *(learning if trained else []),
        *_curves(portrait),
        *_checkpoints(portrait),
    ]


def _text(text: dict[str, Any]) -> str:
    pieces = f"{text['tokenizer']}, {'joint' if text['joint'] else 'separate'}, at most {text['size']:,} pieces"
    return pieces if text["source"]["kind"] == "text" else "vectors"


def _corpus(data: dict[str, str]) -> str:
    if data["corpus"].partition(":")[0] == "fable":
        return f"{data['corpus']}, {data['pairs']:,} pairs of up to {data['words']} words"
    return " ".join(filter(None, (data["corpus"], data["source"], data["target"])))


def _curves(portrait: RunDetails) -> list[tuple[str, str]]:
    """First value, sparkline, last value."""
    curves = {
        "loss": [loss for _, loss in portrait.losses],
        "valid loss": [loss for _, loss, _ in portrait.validations],
        portrait.summary.score_name: [score for _, _, score in portrait.validations],
    }
    return [(name, _curve(values)) for name, values in curves.items() if values]


def _curve(values: list[float]) -> str:
    from regard.runs.listing import sparkline

    return f"{values[0]:.3g} {sparkline(values)} {values[-1]:.3g}"


def _checkpoints(portrait: RunDetails) -> list[tuple[str, str]]:
    lines = []
    for number, kept in enumerate(portrait.checkpoints):
        best = (
            f", best: {portrait.summary.score_name} {portrait.summary.score:.1f}" if portrait.summary.score_name else ""
        )
        weights = "" if kept.resumable else ", weights alone"
        name = "" if number else "checkpoints"
        lines.append((name, f"{kept.name}, {_bytes(kept.bytes)}{weights}{best if kept.best else ''}"))
    return lines


@app.command(cls=Command)
def rename(
    context: typer.Context,
    run: RunFolder,
    name: Annotated[str, typer.Argument(help="The new name, in the same folder.")],
) -> None:
    """Give a run another name."""
    from regard.runs.listing import rename_run

    place = rename_run(run, name)
    common(context).answer({"run": str(place)}, f"{run}: is {place} now")


@app.command(cls=Command)
def rm(
    context: typer.Context,
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    now: Annotated[bool, typer.Option("--now", help="Delete instead of moving to the trash. Asks first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove runs: into the folder .trash beside them, from which regard runs restore takes them back."""
    from regard.runs.listing import removable

    for folder in runs:
        removable(folder)  # all of them before the first is removed
    removed = [str(folder) for folder in runs if (_remove(folder, ask=not yes) if now else _trash(folder))]
    if common(context).json:
        print(json.dumps({"removed": removed}))


def _trash(folder: Path) -> bool:
    from regard.runs.listing import trash_run

    trash_run(folder)
    say(f"removed {folder}; undo: regard runs restore {quoted(folder)}")
    return True


def _remove(folder: Path, *, ask: bool) -> bool:
    from regard.runs.listing import foreign, remove_run, size

    others = foreign(folder)
    also = f", also {', '.join(others)}, which Regard did not make" if others else ""
    if ask and not _confirmed(f"remove {folder} for good ({_bytes(size(folder))}{also})?"):
        return False
    remove_run(folder)
    say(f"removed {folder} for good")
    return True


@app.command(cls=Command)
def restore(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="The run folder as it was, for example runs/demo.")],
) -> None:
    """Restore the run of this name that was removed last."""
    from regard.runs.listing import put_back

    place = put_back(run.parent, run.name)
    common(context).answer({"run": str(place)}, f"{place}: is back")


@app.command(cls=Command)
def verify(context: typer.Context, run: RunFolder) -> None:
    """Check every hash of a run: checkpoints, tokenizers, labels, settings, encoded corpus."""
    from regard.runs.archive import verify_run

    parts = list(verify_run(run))
    if common(context).json:
        print(json.dumps([{"name": name, "state": state, "note": note} for name, state, note in parts], indent=2))
    for name, state, note in parts if not common(context).json else ():
        put(f"{name:28}  {state}{f': {note}' if note else ''}")
    damaged = [note for _, state, note in parts if state == "damaged"]
    if damaged:
        raise ModelError(f"{run}: {len(damaged)} of {len(parts)} parts are damaged; {damaged[0]}")
    if not parts:
        say(f"{run}: has no checkpoint yet; there is nothing to check")


@app.command(cls=Command)
def sweep(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")] = Path("runs"),
    trash: Annotated[bool, typer.Option("--trash", help="Empty the trash too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove what killed processes left half-written; with --trash also the trash."""
    from regard.runs.listing import leftovers, size, trash_of

    left, thrown = leftovers(folder), trash_of(folder)
    sizes = {path: size(path) for path in (*left, *thrown)}
    for path in (*left, *(thrown if trash else ())) if not common(context).json else ():
        put(f"{_bytes(sizes[path]):>10}  {path}")
    wanted = [*left, *(thrown if trash else ())]
    gone = _sweep(wanted, sum(sizes[path] for path in wanted), yes=yes) if wanted else []
    if common(context).json:
        names = {"leftovers": left, "trash": thrown, "removed": gone}
        print(json.dumps({name: [str(path) for path in paths] for name, paths in names.items()}))
        return
    if not wanted:
        say(f"{folder}: nothing is left over")
    if thrown and not trash:
        total = _bytes(sum(sizes[path] for path in thrown))
        say(f"the trash holds {len(thrown)} more, {total}; regard runs sweep {quoted(folder)} --trash empties it")


def _sweep(paths: list[Path], total: int, *, yes: bool) -> list[Path]:
    """Remove them if the user confirms; without a terminal they are only listed."""
    from regard.files import sweep as remove

    noun = "thing" if len(paths) == 1 else "things"
    if not yes and not sys.stdin.isatty():
        say(f"{len(paths)} {noun}, {_bytes(total)}; add --yes to remove")
        return []
    if not yes and not _confirmed(f"remove {len(paths)} {noun} ({_bytes(total)}) for good?"):
        return []
    gone = [path for path in paths if remove(path)]
    say(f"removed {len(gone)}, put back {len(paths) - len(gone)}")
    return gone


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise SettingsError(f"{question} there is no terminal to answer in; add --yes")
    return typer.confirm(question, err=True)


@app.command(cls=Command)
def export(
    context: typer.Context,
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(help="The archive to write: .tar, .tar.gz, .tgz or .tar.zst; or a folder for another library."),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="archive; archive-all, with what resuming needs; archive-half, in 16 bits; or a folder: huggingface, "
            "ctranslate2, ctranslate2-int8, -int16, -float16, -bfloat16."
        ),
    ] = "archive",
) -> None:
    """Write a run into one file (settings, tokenizers, log, the best weights), or its model for another library."""
    kind, _, form = to.partition("-")
    if to not in TARGETS and not (kind == "ctranslate2" and form):
        raise SettingsError(f"--to = {to}: no such format; {did_you_mean(to, TARGETS)}")
    if kind == "ctranslate2":
        if file is not None and file.suffix in (".tar", ".gz", ".tgz", ".zst"):
            raise SettingsError(f"FILE = {file}: is for an archive; name a folder, or none for one inside the run")
        _export_engine(run, file, form or "float32", common(context))
        return
    if kind == "huggingface":
        _export_huggingface(run, file, common(context))
        return
    if file is None:
        raise SettingsError("FILE: missing; name the archive to write, for example run.tar.gz")
    from regard.runs.archive import pack

    everything = form == "all"
    packed = pack(run, file, everything=everything, half=form == "half")
    found = {"file": str(file), "files": len(packed.files), "bytes": packed.bytes}
    what = "with what resuming needs" if everything else "weights only; --to archive-all takes the optimizer too"
    common(context).answer(
        found | {"checkpoints": packed.checkpoints, "resumable": everything},
        f"{file}: {', '.join(packed.checkpoints)}, {_bytes(file.stat().st_size)}, {what}",
    )


def _export_huggingface(run: Path, out: Path | None, asked: Common) -> None:
    if out is None:
        raise SettingsError("FILE: missing; name the folder to write")
    from regard.convert.to_huggingface import export as convert
    from regard.runs.listing import size
    from regard.tasks.load import open_translator

    folder = convert(open_translator(run), out)
    asked.answer(
        {"folder": str(folder), "bytes": size(folder)},
        f"{folder}: {_bytes(size(folder))}; AutoModelForSeq2SeqLM and AutoTokenizer of transformers load it",
    )


def _export_engine(run: Path, out: Path | None, quantization: str, asked: Common) -> None:
    from regard.runs.listing import size
    from regard.tasks.engines import export as convert
    from regard.tasks.load import open_translator

    folder = convert(open_translator(run), out, quantization)
    engine = {"float32": "ctranslate2", "int8": "ctranslate2-int8"}.get(quantization)
    use = f'; regard translate {quoted(run)} "…" decode.engine={engine} uses it' if engine and not out else ""
    found = {"folder": str(folder), "quantization": quantization, "bytes": size(folder)}
    asked.answer(found, f"{folder}: {quantization}, {_bytes(size(folder))}{use}")


@app.command("import", cls=Command)
def import_run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="An archive that regard runs export wrote.")],
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/NAME.")] = None,
) -> None:
    """Make a run from an archive, after checking all of it."""
    from regard.runs.archive import unpack

    run = unpack(file, out)
    verb = f'; try: regard translate {quoted(run.folder)} "…"' if run.settings.task == "translate" else ""
    common(context).answer({"run": str(run.folder), "task": run.settings.task}, f"{run.folder}: imported{verb}")


# ``regard card`` and ``regard import``


def card(
    context: typer.Context,
    run: RunFolder,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="What regard evaluate RUN --json printed; the run keeps it for later cards."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; default RUN/README.md, of demo demo-card.md.")
    ] = None,
) -> None:
    """Write a model card: data and its hashes, licences, scores with their signatures, settings, limits."""
    from regard.runs.card import remember_scores, write_card
    from regard.runs.folder import packaged, resolve

    is_packaged = resolve(run) == packaged()
    if scores and is_packaged:
        raise SettingsError(f"--scores: {run} comes with Regard, and keeps none; leave them out")
    if scores:
        remember_scores(run, scores)
    path = write_card(run, out or (Path("demo-card.md") if is_packaged else None))
    common(context).answer({"card": str(path)}, f"{path}: written")


def import_model(
    context: typer.Context,
    what: Annotated[Path, typer.Argument(help="A folder, a file, an .argosmodel, or a wheel or sdist on disk.")],
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/NAME.")] = None,
    languages: Annotated[str, typer.Option(help="Of a model with many: SOURCE-TARGET, as its files call them.")] = "",
    part: Annotated[str | None, typer.Option(help="Which model, where several are found.")] = None,
) -> None:
    """Make a run of a model from elsewhere: CTranslate2, Argos, Hugging Face, fairseq."""
    from regard.convert.foreign import write
    from regard.convert.recognise import opened
    from regard.runs.listing import architecture

    with opened(what, part, languages) as (package, read):
        foreign = read(package)
        run = write(foreign, out or Path("runs") / package.name)
    settings, origin = run.settings, foreign.origin
    found = {"run": str(run.folder), "name": origin.name, "format": origin.format, "licence": origin.licence}
    pieces = f"{settings.text.tokenizer}, {foreign.tokenizers.target.size:,} pieces"
    common(context).answer(
        found | {"languages": settings.data.languages},
        f"found {origin.name}: {origin.format}; {architecture(settings.model)}; {pieces}",
        f"licence: {origin.licence or 'not stated; ask the authors of the model before you pass it on'}",
        f'{run.folder}: imported; try: regard translate {quoted(run.folder)} "…"',
    )
