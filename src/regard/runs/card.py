"""The card of a run: what it is, its data, licence, scores and limits.

It is Markdown with the header that model hubs read. It has only what the run knows: what was not measured is said to
be so. Nothing here imports torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from regard import __version__
from regard.data.shards import open_shards
from regard.errors import DataError, ModelError
from regard.files import new_file
from regard.runs.folder import SETTINGS, Origin, Run, best_checkpoint, digest, manifest, origin_of
from regard.runs.listing import Summary, summarise
from regard.settings.languages import languages_of, name_of, plain
from regard.text.tokenizers import Tokenizers

CARD: Final = "README.md"
SCORES: Final = "scores.json"
Library = Literal["regard", "transformers", "ctranslate2"]
_TERMS = re.compile(
    r"\b(apache-2\.0|mit|bsd-\dclause|cc0-1\.0|cc[ -]by(?:[ -](?:sa|nc|nd))*[ -]\d\.\d|unlicense)\b", re.I
)
_LARGEST = 1 << 24  # bytes of a file of scores
_TASKS = {"translate": "translation", "language": "text-generation", "tag": "token-classification"}
_TASKS |= {"forecast": "time-series-forecasting"}
_TRANSFORMERS = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
tokens = model.generate(**tokenizer(["{example}"], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(tokens, skip_special_tokens=True))"""


@dataclass(frozen=True)
class Measured:
    """The result of `regard evaluate --json` on one test set, as a card shows it."""

    test: str
    sentences: int
    output: str  # how the outputs were made
    scores: tuple[tuple[str, float, str], ...]  # metric, value, signature


def remember_scores(folder: Path, files: Sequence[Path]) -> None:
    """Keep the outputs of evaluations in the run, each test set once, for every later card."""
    measured = {each.test: each for each in (*scores_of(folder), *map(_measured, files))}
    with new_file(folder / SCORES) as file:
        file.write((json.dumps([asdict(each) for each in measured.values()], indent=2) + "\n").encode())


def _measured(path: Path) -> Measured:
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError
        content = json.loads(path.read_bytes())
        scores = tuple((str(one["name"]), float(one["score"]), str(one["signature"])) for one in content["qualities"])
        test = f"{Path(content['source']).name}, {Path(content['target']).name}"
        return Measured(test, int(content["sentences"]), str(content["output"]), scores)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DataError(f"{path}: is not what regard evaluate RUN --json prints; give such a file") from None


def scores_of(folder: Path) -> tuple[Measured, ...]:
    """The scores that were kept in the run."""
    try:
        content = json.loads((folder / SCORES).read_bytes())
        return tuple(
            Measured(each["test"], each["sentences"], each["output"], tuple(map(tuple, each["scores"])))
            for each in content
        )
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"{folder / SCORES}: is damaged; remove it, and give regard card the scores again") from None


def card(folder: Path, library: Library = "regard") -> str:
    """The card as text."""
    run, summary, origin = Run.open(folder), summarise(folder), origin_of(folder)
    parts = (
        _header(run, origin, library),
        f"# {summary.name}\n",
        *_about(run, summary, origin),
        *_use(run, library),
        *_data(run, origin),
        *_licence(origin),
        *_scores(summary, scores_of(folder)),
        *_limits(run, summary, origin),
        *_made(run),
    )
    return "\n".join(parts)


def _header(run: Run, origin: Origin | None, library: Library) -> str:
    """The header for hubs: languages, licence, library."""
    languages = languages_of(run.settings)
    codes = [] if languages is None else [languages.source, languages.target]
    lines = ["language:", *(f"- {plain(code)}" for code in codes)] if codes else []
    if origin is not None and (terms := _TERMS.search(origin.licence)):
        lines.append(f"license: {terms[1].lower().replace(' ', '-')}")
    lines += [f"library_name: {library}", f"pipeline_tag: {_TASKS.get(run.settings.task, 'text-classification')}"]
    return "\n".join(("---", *lines, "---", ""))


def _about(run: Run, summary: Summary, origin: Origin | None) -> Iterator[str]:
    languages = languages_of(run.settings)
    if languages is not None:
        source, target = (f"{name_of(code)} (`{code}`)" for code in (languages.source, languages.target))
        yield f"Translates {source} into {target}.\n"
    size = "" if summary.parameters is None else f", {summary.parameters:,} parameters"
    yield f"- architecture: {summary.architecture}{size}"
    if origin is not None:
        yield f"- made of: {origin.name}, {origin.format}"
    if run.settings.about:
        yield f"- about: {run.settings.about}"
    yield f"- training: {summary.steps:,} steps here, {summary.state_word}\n"


def _use(run: Run, library: Library) -> Iterator[str]:
    yield "## Use\n"
    if library == "transformers":
        before = Tokenizers.load(run.tokenizer).frame.before
        yield f"```python\n{_TRANSFORMERS.format(example=' '.join((*before, '…')))}\n```\n"
        if before:
            yield f"Every text begins with `{' '.join(before)}`.\n"
    else:
        yield f'```\nregard {"translate" if run.settings.task == "translate" else "predict"} RUN "…"\n```\n'


def _data(run: Run, origin: Origin | None) -> Iterator[str]:
    data = run.settings.data
    yield "## Data\n"
    named = [name for name in (data.corpus, data.source, data.target) if name]
    if not named:
        yield "Not known: the model was trained elsewhere.\n" if origin else "Not named in the settings.\n"
    for name in named:
        hashed = f", SHA-256 `{digest(Path(name))}`" if Path(name).is_file() else ""
        yield f"- {Path(name).name if hashed or '/' in name else name}{hashed}"
    for part in ("train", "valid"):
        try:
            encoded = open_shards(run.data / part, verify=False).manifest
        except DataError:
            continue
        mark = encoded.fingerprint.removesuffix(part)
        yield f"- {part}: {encoded.rows:,} rows, fingerprint of text and tokenizer `{mark}`"
    yield ""


def _licence(origin: Origin | None) -> Iterator[str]:
    yield "## Licence\n"
    if origin is None:
        yield "Not stated: who trained this run says under which terms it, and the text it learned from, may be used.\n"
        return
    if origin.licence:
        yield f"Of the model that it was made of.\n\nLicence: {origin.licence}\n"
    else:
        yield "The model that it was made of states none: ask those who made it before you pass it on.\n"
    for name, text in origin.notices:
        yield f"<details><summary>{name}</summary>\n\n```\n{text.replace('```', '` ` `').strip()}\n```\n\n</details>\n"


def _scores(summary: Summary, measured: Sequence[Measured]) -> Iterator[str]:
    yield "## Scores\n"
    if measured:
        yield "| test | sentences | output | metric | score | signature |\n|---|---|---|---|---|---|"
    for each in measured:
        for metric, value, signature in each.scores:
            yield f"| {each.test} | {each.sentences:,} | {each.output} | {metric} | {value:.1f} | `{signature}` |"
    if not measured:
        yield "No test set was measured (`regard evaluate RUN --source … --target … --json`)."
    if summary.score is not None:
        step = f"at step {summary.best_step:,}"
        yield f"\nOn the validation rows of its own training, {step}: {summary.score_name} {summary.score:.1f}."
    yield ""


def _limits(run: Run, summary: Summary, origin: Origin | None) -> Iterator[str]:
    yield "## Limits\n"
    if run.settings.data.languages or origin is None:
        yield "- It knows what was in its training text and nothing else; other domains, names and spellings go wrong."
    if summary.built_in:
        yield "- Its text is generated from a small grammar: scores come easily, and it does not know real language."
    if run.settings.task == "forecast":
        yield "- It takes the future to be like the past: intervals held on validation data, and need not later.\n"
        return
    if run.settings.task == "translate":
        yield f"- Sentences longer than {run.settings.data.longest} pieces are cut and translated in parts."
        fluent = "It can leave out, add and contradict, fluently."
        yield f"- {fluent} A person who knows both languages must read what matters."
    yield "- Biases of its text are in it; none was measured.\n"


def _made(run: Run) -> Iterator[str]:
    checkpoint = best_checkpoint(run)
    hashes = {f"{checkpoint.name}/{name}": value for name, value in manifest(checkpoint).items() if "safe" in name}
    tokenizers = Tokenizers.load(run.tokenizer)
    hashes |= {SETTINGS: digest(run.folder / SETTINGS), "source tokenizer": tokenizers.source.fingerprint()}
    hashes |= {"target tokenizer": tokenizers.target.fingerprint()}
    yield "## Settings and hashes\n"
    yield from (f"- {name}: `{value}`" for name, value in hashes.items())
    yield f"\n```toml\n{run.settings.to_toml().strip()}\n```\n"
    yield f"Written by Regard {__version__}.\n"


def write_card(folder: Path, out: Path | None = None) -> Path:
    """Write the card into the run, or to ``out``."""
    path, text = out or folder / CARD, card(folder)
    with new_file(path) as file:
        file.write(text.encode())
    return path
