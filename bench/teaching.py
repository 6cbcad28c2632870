"""What teaching a model a domain gains there and costs elsewhere: all weights, and adapters alone, in one table.

    python bench/teaching.py prepare --domain PATH ... --general PATH ... --locales zh_CN zh_Hans --out DATA
    python bench/teaching.py run --run RUN --data DATA [--pairs 2000] [--device cuda] [--out FOLDER] [SETTING=VALUE ...]

`prepare` makes pairs, from a locale into English, of what programs speak to their users: a PATH is a folder of help
pages (/usr/share/help of Debian's gnome-user-docs: pages in all languages have the same structure), a folder of message
catalogues (/usr/share/locale of Debian's gimp-data), or a wheel with such in it (Django). The domain is learned, the
general text is not. `run` teaches RUN, which may be an imported one, on some pairs of the domain, once with all
weights and once with adapters (LoRA), and measures chrF and BLEU (beam 5) on both tests before and after. `--ledger`
appends the table to bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
import gettext
import random
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from ledger import enter

VALID, TEST, MOST = 200, 500, 60  # pairs, pairs, words of a text
BLOCKS = {"p", "title", "desc"}  # of a help page: what holds running text
WAYS = {"all weights": (), "LoRA, rank 8": ("train.adapt={kind='lora', rank=8}",)}
Pair = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach a run a domain, and measure what it learns and forgets.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = verbs.add_parser("prepare")
    made.add_argument("--domain", type=Path, nargs="+", required=True)
    made.add_argument("--general", type=Path, nargs="+", required=True)
    made.add_argument("--locales", nargs="+", default=["zh_CN", "zh_Hans"], help="what the language is called")
    made.add_argument("--out", type=Path, required=True)
    taught = verbs.add_parser("run")
    taught.add_argument("--run", required=True)
    taught.add_argument("--data", type=Path, required=True)
    taught.add_argument("--pairs", type=int, default=2000)
    taught.add_argument("--device", default="auto")
    taught.add_argument("--out", type=Path, default=Path("runs/teaching"))
    taught.add_argument("--ledger", action="store_true")
    taught.add_argument("settings", nargs="*")
    arguments = parser.parse_args()
    if arguments.verb == "prepare":
        prepare(arguments.domain, arguments.general, arguments.locales, arguments.out)
    else:
        teach(arguments)


# The data


def prepare(domain: list[Path], general: list[Path], locales: list[str], out: Path) -> None:
    """Both sets, shuffled and divided; a text that both have is of the general one alone."""
    found = {name: dict(all_pairs(paths, locales)) for name, paths in (("domain", domain), ("general", general))}
    out.mkdir(parents=True, exist_ok=True)
    for name, pairs in found.items():
        kept = sorted(pair for pair in pairs.items() if name == "general" or pair[0] not in found["general"])
        random.Random(1).shuffle(kept)
        parts = {"test": kept[:TEST], "valid": kept[TEST : TEST + VALID], "train": kept[TEST + VALID :]}
        for part, rows in parts.items():
            text = "".join(f"{source}\t{target}\n" for source, target in rows)
            (out / f"{name}.{part}.tsv").write_text(text, encoding="utf-8")
        print(f"{name}: " + ", ".join(f"{len(rows):,} {part}" for part, rows in parts.items()))


def all_pairs(paths: list[Path], locales: list[str]) -> Iterator[Pair]:
    """Of all places, in all ways that a locale is called."""
    for path in paths:
        for locale in locales:
            found = message_pairs(path, locale) if path.is_file() else folder_pairs(path, locale)
            yield from filter(is_pair, found)


def folder_pairs(folder: Path, locale: str) -> Iterator[Pair]:
    yield from help_pairs(folder, locale)
    for path in sorted((folder / locale).rglob("*.mo")):
        with path.open("rb") as file:
            entries = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for message, translation in entries.items():
            if isinstance(message, str):  # one with plurals has a number beside it
                yield tidy(translation), tidy(message.rpartition("\x04")[2])


def tidy(text: str) -> str:
    """In one line, without the marks of keys."""
    return " ".join(re.sub(r"\(_[A-Z]\)|[_&](?=\w)", "", text).split())


def help_pairs(folder: Path, locale: str) -> Iterator[Pair]:
    """Texts of the help pages of a locale with those of the same place in English."""
    for path in sorted((folder / locale).rglob("*.page")):
        english = folder / "C" / path.relative_to(folder / locale)
        if english.is_file():
            sides = [list(blocks(ElementTree.parse(page).getroot())) for page in (path, english)]
            if len(sides[0]) == len(sides[1]):
                yield from zip(*sides, strict=True)


def blocks(node: ElementTree.Element) -> Iterator[str]:
    """The running texts of a page in order. Who wrote it is none."""
    for child in node:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if name in BLOCKS and not any(
            inner.tag.rpartition("}")[2] in BLOCKS for inner in child.iter() if inner is not child
        ):
            yield " ".join("".join(child.itertext()).split())
        elif name not in ("credit", "revision"):
            yield from blocks(child)


def message_pairs(wheel: Path, locale: str) -> Iterator[Pair]:
    """Messages of every catalogue of a locale in a wheel, translation first."""
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            if name.endswith(f"/{locale}/LC_MESSAGES/django.po"):
                yield from catalogue(files.read(name).decode())


def catalogue(text: str) -> Iterator[Pair]:
    """The finished entries of a `.po` file, as translation and original; those with plurals are left out."""
    for entry in re.split(r"\n\s*\n", text):
        if "#, fuzzy" in entry or "msgid_plural" in entry:
            continue
        found = {
            name: "".join(re.findall(r'"(.*)"', lines))
            for name, lines in re.findall(r'^(msgid|msgstr) ((?:".*"\n?)+)', entry, re.MULTILINE)
        }
        source, target = (" ".join(plain(found.get(name, "")).split()) for name in ("msgstr", "msgid"))
        yield source, target


def plain(text: str) -> str:
    """Without the escapes of a `.po` file."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def is_pair(pair: Pair) -> bool:
    """Whether it is text and its translation, of at least three words and not too long."""
    source, target = pair
    return bool(source) and source != target and not source.isascii() and 3 <= len(target.split()) <= MOST


def rows(path: Path) -> list[Pair]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(source, target) for source, _, target in (line.partition("\t") for line in lines)]


# The measurement


def teach(arguments: argparse.Namespace) -> None:
    """Measure, teach in both ways, measure again."""
    tests = {name: rows(arguments.data / f"{name}.test.tsv") for name in ("domain", "general")}
    chosen = rows(arguments.data / "domain.train.tsv")[: arguments.pairs]
    arguments.out.mkdir(parents=True, exist_ok=True)
    corpus = arguments.out / "train.tsv"
    corpus.write_text("".join(f"{source}\t{target}\n" for source, target in chosen), encoding="utf-8")
    table = {"before": measured(arguments.run, tests, arguments.device)}
    show("before", table["before"], table["before"])
    for way, settings in WAYS.items():
        folder = arguments.out / re.sub(r"\W+", "-", way)
        spent = taught(folder, arguments, corpus, (*settings, *arguments.settings))
        table[way] = measured(str(folder), tests, arguments.device) | spent
        show(way, table[way], table["before"])
    if arguments.ledger:
        result = {"run": Path(arguments.run).name, "pairs": len(chosen), "table": table}
        enter("teaching", result, "python " + " ".join(sys.argv))


def taught(folder: Path, arguments: argparse.Namespace, corpus: Path, settings: tuple[str, ...]) -> dict[str, float]:
    """Teach a new run; what it took."""
    from regard.cli.display import display  # noqa: PLC0415 - preparing needs no torch
    from regard.trainer.start import fitted, start  # noqa: PLC0415

    shutil.rmtree(folder, ignore_errors=True)
    files = {"corpus": corpus, "valid_corpus": arguments.data / "domain.valid.tsv"}
    named = [f"data.{name}='{path}'" for name, path in files.items()]
    general = f"data.general='{arguments.data / 'general.valid.tsv'}'"
    given = (f"train.base='{arguments.run}'", *named, general, "data.columns='1,2'", *settings)
    made, reason = fitted("", *given, device=arguments.device)
    began = time.perf_counter()
    with display() as shown:
        outcome = start(folder, made, shown, device=arguments.device, remark=reason)
    return {"seconds": round(time.perf_counter() - began, 1), "steps": outcome.progress.step, "rate": made.train.rate}


def measured(run: str, tests: dict[str, list[Pair]], device: str) -> dict[str, float]:
    """chrF and BLEU of a run on each test."""
    from regard.device import pick_device  # noqa: PLC0415
    from regard.metrics.translation import measure  # noqa: PLC0415
    from regard.settings.call import MeasureSettings  # noqa: PLC0415
    from regard.tasks.load import load  # noqa: PLC0415

    translator, found = load(run, device=str(pick_device(device)), engine="native"), dict[str, float]()
    for name, pairs in tests.items():
        sources, references = ([*side] for side in zip(*pairs, strict=True))
        outputs = [each.text for each in translator.translate(sources)]
        for quality in measure(outputs, references, MeasureSettings(metrics=("chrf", "bleu"), resamples=0)):
            found[f"{name} {quality.name}"] = round(quality.score, 2)
    return found


def show(way: str, found: dict[str, float], before: dict[str, float]) -> None:
    figures = (
        f"{name} {value:g}" + (f" ({value - before[name]:+.2f})" if way != "before" and name in before else "")
        for name, value in found.items()
    )
    print(f"{way:14}" + "  ".join(figures), flush=True)


if __name__ == "__main__":
    main()
