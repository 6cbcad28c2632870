"""``regard backtranslate`` and ``regard distil``: pairs that a model has written, to train another on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.bulk import ON, SHARD, bulk, located
from regard.cli.streams import STREAM, keep_inputs, say
from regard.cli.train import AUTO, limits, train_or_go_on
from regard.cli.translate import Translating
from regard.cli.verb import apart, called, common, only_one, with_settings
from regard.errors import SettingsError

SOURCE, TARGET = "source.txt", "target.txt"


def backtranslate(
    context: typer.Context,
    words: Annotated[list[str], with_settings("RUN", "A run that translates back: into the language to learn from.")],
    file: Annotated[Path, typer.Option(help="Text in the language to learn, one sentence a line (also .gz, .zst).")],
    out: Annotated[Path, typer.Option(help="A folder for the pairs: source.txt and target.txt.")],
    tag: Annotated[str, typer.Option(help="Begins every source, so that a model tells them from real ones.")] = "<BT>",
    shard: Annotated[str, typer.Option(metavar="I/N", help=SHARD)] = "",
    on: Annotated[str, typer.Option(help=ON)] = "",
) -> None:
    """Make pairs of text in one language: its translation back, tagged, as the source, and the text as the target."""
    from regard.data.lines import read_lines
    from regard.files import new_file

    overrides, name = only_one(words, "RUN")
    call, asked = called("backtranslate", overrides), common(context)
    _check_is_file(file, "--file")
    keep_inputs(out / SOURCE, file)
    before = f"{tag} " if tag else ""
    device = asked.device if on else asked.place
    work = Translating((located(Path(name)),), device, call.decode, "text", json=False, before=before)
    merged = bulk(
        ((line,) for line in read_lines(file)),
        out / SOURCE,
        work.about(),
        work,
        shard=shard or "1/1",
        on=on,
        how=call.bulk,
        device=device,
    )
    if merged is not None:
        with new_file(out / TARGET) as written:
            written.writelines(f"{line}\n".encode("utf-8", "surrogatepass") for line in read_lines(file))
        say(f"wrote {out / SOURCE} and {out / TARGET}; put real pairs in front of them, and train on both")


def distil(
    context: typer.Context,
    words: Annotated[
        list[str], with_settings("TEACHER", "A run, alone or with settings of the student: model.depth=2.")
    ],
    source: Annotated[Path, typer.Option(help="Text for the teacher to translate, one a line (also .gz, .zst).")],
    out: Annotated[Path, typer.Option(help="The run folder of the student; the translations are beside it.")],
    preset: Annotated[str, typer.Option(help="What the student is.")] = "transformer-student",
    time: Annotated[str, typer.Option(help="Train no longer than this: 10m.")] = "",
    steps: Annotated[str, typer.Option(help="At most so many steps.")] = "",
    on: Annotated[str, typer.Option(help=ON)] = "",
) -> int:
    """Train a small run on a large one's translations (Kim and Rush, 2016). The same command goes on where it ended."""
    settings, rest = apart(words)
    learned = [word for word in rest if "=" in word]
    _, name = only_one([word for word in rest if word not in learned], "TEACHER")
    call, asked = called("distil", settings), common(context)
    teacher, device = located(Path(name)), asked.device if on else asked.place
    _check_is_file(source, "--source")
    work, texts = Translating((teacher,), device, call.decode, "text", json=False), out.with_name(f"{out.name}.texts")
    from regard.data.lines import read_lines
    from regard.runs.folder import Run
    from regard.settings.languages import languages_of
    from regard.trainer.start import check_go_on

    taught = Run.open(teacher).settings
    data = taught.data
    held_out = {name: getattr(data, name) for name in ("valid_source", "valid_target", "valid_corpus")}
    files = {"source": str(source), "target": str((texts / TARGET).absolute())}
    files |= {name: value for name, value in held_out.items() if value and Path(value).exists()}
    files |= {"languages": str(languages)} if (languages := languages_of(taught)) else {}
    given = [f"data.{name}={json.dumps(value)}" for name, value in files.items()]
    given += [*limits(time, steps), *learned]
    preset = "" if preset == AUTO else preset
    check_go_on(out, preset, given)
    rows = ((line,) for line in read_lines(source))
    bulk(rows, texts / TARGET, work.about(), work, shard="1/1", on=on, how=call.bulk, device=device)
    return train_or_go_on(preset, given, out, asked, tensorboard=False)


def _check_is_file(path: Path, option: str) -> None:
    """Refuse stdin, which can be read once."""
    if str(path) == STREAM:
        raise SettingsError(f"{option} = {STREAM}: is read more than once; give a file")
