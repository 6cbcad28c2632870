"""docs/benchmarks.md and its figures, made of the lines of bench/ledger.jsonl and of nothing else.

A section whose lines are not there is left out; a field that nobody foresaw becomes a column under its own name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from regard.show.pictures import Chart, Point, Series, linear, logarithmic
from regard.show.svg import document

Line = dict[str, Any]
LEDGER = Path(__file__).parents[1] / "bench" / "ledger.jsonl"
UNSHOWN = ("bench", "date", "device", "run", "command")  # told once, under the table
NAMES = {
    "contestant": "",
    "tokens_per_second": "tokens/s",
    "tokens_per_cpu_second": "tokens per CPU second",
    "sentences_per_second": "sentences/s",
    "peak_mib": "peak MiB",
    "share_of_peak": "of the machine's peak",
    "share_of_model_rate": "of the peak at its shapes",
    "times": "times the fastest peer",
    "times_spread": "range",
    "spread": "range",
    "first_loss": "first loss",
    "mflop_per_token": "MFLOP a token",
    "matrix_gflops": "matrix products at best, GFLOP/s",
    "model_gflops": "matrix products at the model's shapes, GFLOP/s",
    "mib": "MiB",
    "cpu_seconds": "CPU seconds",
    "speed_of_ctranslate2": "times the speed of CTranslate2",
    "time_of_ctranslate2": "times the time of CTranslate2",
    "equal_to_native": "outputs as native",
    "bleu": "BLEU",
    "times_import_torch": "times `import torch`",
    "old_ms": "0.1, ms",
    "new_ms": "now, ms",
    "ratio_spread": "middle half",
    "cpu_ratio": "ratio of CPU seconds",
    "cpu_ratio_spread": "middle half of them",
    "p99_ms": "p99, ms",
}
SHARES = ("share_of_peak", "share_of_model_rate", "padding", "equal_to_native")


def read_ledger(path: Path = LEDGER) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def newest(lines: Iterable[Line], *keys: str) -> list[Line]:
    """Of lines that agree in the keys, the last run: all of its lines, or the last line where runs have no name."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        group = groups.setdefault(tuple(line.get(key) for key in keys), [])
        if group and (line.get("run") is None or line.get("run") != group[-1].get("run")):
            group.clear()
        group.append(line)
    return [line for group in groups.values() for line in group]


# Tables


def shown(name: str, value: Any) -> str:
    """A value as a person reads it."""
    if isinstance(value, list):
        several = any(isinstance(one, list) for one in value)  # ranges, one for each size
        between = "–" if len(value) == 2 and name.endswith(("spread", "range")) and not several else ", "
        return between.join(shown(name if several else "", one) for one in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {None: "", True: "yes", False: "no"}.get(value, str(value))
    if name in SHARES:
        return f"{value:.0%}"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else f"{value:g}"


def cell(name: str, value: Any) -> str:
    """The same in a table, whose columns a signature of sacreBLEU must not divide."""
    return shown(name, value).replace("|", "\\|")


def named(field: str) -> str:
    return NAMES.get(field, field.replace("_", " "))


def table(lines: Sequence[Line], first: str = "contestant") -> str:
    """One row a line; what all have in common goes above the table instead of into it."""
    fields = list(dict.fromkeys(field for line in lines for field in line if field not in UNSHOWN))
    fields = sorted(fields, key=lambda field: field != first)
    alike = [
        field
        for field in fields
        if field != first and len(lines) > 1 and len({json.dumps(line.get(field)) for line in lines}) == 1
    ]
    columns = [field for field in fields if field not in alike]
    numbers = {field for field in columns if all(isinstance(line.get(field, 0), int | float) for line in lines)}
    rows = [
        "| " + " | ".join(named(field) for field in columns) + " |",
        "|" + "|".join("---:" if field in numbers else "---" for field in columns) + "|",
        *("| " + " | ".join(cell(field, line.get(field)) for field in columns) + " |" for line in lines),
    ]
    common = "; ".join(f"{named(field)}: {shown(field, lines[0][field])}" for field in alike)
    return "\n".join([*([f"For all of them: {common}.", ""] if common else []), *rows])


def source(lines: Sequence[Line]) -> str:
    """Where, when and with which command it was measured."""
    found = dict.fromkeys(
        f"`{line['command']}` ({line.get('device') or line.get('machine') or 'machine not noted'}, {line['date']})"
        for line in lines
    )
    return "Measured with " + "; ".join(found) + "."


def busy(lines: Sequence[Line]) -> str:
    """A warning where others were at work on the machine."""
    if not any(line.get("load", 0) > 1.5 * line.get("threads", 1) + 0.5 for line in lines):
        return ""
    return "The machine was busy with other work: read the ratios and the CPU seconds, not the tokens a second.\n\n"


# Sections


def attentions(lines: Sequence[Line]) -> str:
    """A row for each length, a column for each kernel."""
    spread_out = [
        {name: line[name] for name in ("tokens", "length", "causal", "times_fastest", "device", "torch")}
        | {name: line["microseconds"].get(name) for name in ("regard", "efficient", "cudnn", "flash")}
        for line in lines
    ]
    return f"{table(spread_out, 'length')}\n\n{source(lines)}"


def by_model(lines: Sequence[Line], prefix: str) -> str:
    """A table and a chart for each model and size of batch."""
    parts = []
    for model, batch in dict.fromkeys((line.get("model"), line.get("batch_tokens")) for line in lines):
        here = [line for line in lines if (line.get("model"), line.get("batch_tokens")) == (model, batch)]
        here.sort(key=lambda line: -line.get("tokens_per_second", 0))
        title = f"{model}, batches of {batch:,} tokens a side" if batch else str(model)
        picture = f"![tokens a second, {model}](figures/{figure_name(prefix, model, batch)})"
        parts.append(f"### {title}\n\n{busy(here)}{table(here)}\n\n{picture}\n\n{source(here)}")
    return "\n\n".join(parts)


def by_suite(lines: Sequence[Line]) -> str:
    """A table for each set of recipes that were measured together."""
    parts = []
    for suite in dict.fromkeys(line["suite"] for line in lines):
        own = [line for line in lines if line["suite"] == suite]
        here = [{field: value for field, value in line.items() if field != "suite"} for line in own]
        parts.append(f"### {suite}\n\n{table(here, 'recipe')}\n\n{source(here)}")
    return "\n\n".join(parts)


def plain(lines: Sequence[Line]) -> str:
    return f"{table(lines, 'engine')}\n\n{source(lines)}"


def engines(lines: Sequence[Line]) -> str:
    """A table for each width of the beam, for sentences all at once and one by one."""
    parts = []
    for beam, batch in dict.fromkeys((line["beam"], line["batch"]) for line in lines):
        here = [line for line in lines if (line["beam"], line["batch"]) == (beam, batch)]
        title = "Greedy" if beam == 1 else f"Beam {beam}"
        parts.append(f"### {title}, {batch}\n\n{busy(here)}{plain(here)}")
    return "\n\n".join(parts)


def profiles(lines: Sequence[Line]) -> str:
    kinds = list(dict.fromkeys(kind for line in lines for kind in line["shares"]))
    rows = ["| kind of work | " + " | ".join(line["model"] for line in lines) + " |"]
    rows.append("|---|" + "---:|" * len(lines))
    rows += [
        f"| {kind} | " + " | ".join(f"{line['shares'].get(kind, 0):.1%}" for line in lines) + " |" for kind in kinds
    ]
    return "\n".join(rows) + f"\n\n{source(lines)}"


def scaling(lines: Sequence[Line]) -> str:
    parts = []
    for part in dict.fromkeys(line["part"] for line in lines):
        here = [line for line in lines if line["part"] == part]
        pictures = "\n\n".join(
            f"![{named(value)} by {part}](figures/scaling-{part}-{value}.svg)"
            for value in ("tokens_per_second", "mib")
            if any(value in line for line in here)
        )
        parts.append(f"### By {part}\n\n{table(here, 'model')}\n\n{pictures}\n\n{source(here)}")
    return "\n\n".join(parts)


def growth(lines: Sequence[Line]) -> str:
    picture = "![seconds a sentence by length](figures/growth.svg)"
    return f"{table(lines, 'preset')}\n\n{picture}\n\n{source(lines)}"


SECTIONS: list[tuple[str, str, tuple[str, ...], Callable[[Sequence[Line]], str], str]] = [
    (
        "cpu-training",
        "Training on the CPU",
        ("model", "batch_tokens"),
        lambda lines: by_model(lines, "cpu-training"),
        "The same model, the same batches, each contestant a process of its own; they take turns. Tokens are source "
        "and target tokens without padding; the figures are medians over rounds. Threads that wait sleep at once, "
        "except where a name says *own* or *regard's threads*: those stay awake for a moment first, as the command "
        "line of Regard has it. *Less dropout* is a model without dropout between the two layers of a feed-forward "
        "network, as Hugging Face has it if one does not ask. A peer's model, loss and optimizer "
        "are its own, and so is its training step where it can be called; batches come ready for all, so nobody pays "
        "for padding that its own batching would add. Losses must be alike, or the work was not the same. The share "
        "of the peak is of the matrix rate measured in the same rounds, and counts operations on real tokens alone. "
        "fairseq 0.12.2 is not among the peers: its C++ extension did not compile against torch 2.13.",
    ),
    (
        "cpu-training-avx2",
        "Training on a CPU with AVX2",
        ("model", "batch_tokens"),
        lambda lines: by_model(lines, "cpu-training-avx2"),
        "The same with libraries that may use vectors of 256 bits at most, on a processor that has wider ones: what an "
        "older processor would do. Memory is as fast as before and products are slower, so that shares of the peak are "
        "higher.",
    ),
    (
        "cpu-threads",
        "How threads share a step",
        ("model", "batch_tokens"),
        lambda lines: by_model(lines, "cpu-threads"),
        "Either torch divides every operation among the threads (undivided), or each thread takes its own rows "
        "through the whole step. Threads that wait sleep at once or, as the command line has it, stay awake for a "
        "moment first (own threads). Regard divides where a layer has 65,536 features for each thread, and recurrent "
        "models never.",
    ),
    (
        "cpu-profile",
        "Where the time of a step goes",
        ("model",),
        profiles,
        "Share of the time of all kernels of a Regard step.",
    ),
    (
        "gpu-training",
        "Training on a GPU",
        ("model", "batch_tokens", "contestant"),
        lambda lines: by_model(lines, "gpu-training"),
        "",
    ),
    (
        "short-attention",
        "Attention over short sequences on a GPU",
        ("tokens", "length", "causal"),
        attentions,
        "Microseconds of a forward and a backward pass, 8 heads of 64 features in bfloat16, rows of one length with up "
        "to six tokens of padding. Flash attention takes no mask.",
    ),
    *(
        (
            bench,
            title,
            ("recipe",),
            lambda lines: f"{table(lines, 'recipe')}\n\n{source(lines)}",
            "Starting, compiling and capturing count as training, validation does not. One run each; the interval is "
            "that of bootstrap resampling. The recipes are in the order in which they were tried.",
        )
        for bench, title in (
            ("multi30k-gpu-60s", "Multi30k, German to English, after 60 seconds of training on a GPU"),
            ("europarl-gpu-200s", "Europarl, German to English, 200,000 pairs, after 200 seconds of training on a GPU"),
        )
    ),
    (
        "recipes",
        "Recipes beside each other",
        ("suite", "recipe", "steps"),
        by_suite,
        "Each in about the same time: fewer steps where every row is read twice. Recipes are chosen by the validation "
        "text (Multi30k `val`), the other BLEU is that of `test_2016_flickr`; beam 5. Trainings that share the GPU are "
        "slower than one alone.",
    ),
    (
        "engines",
        "Translation on the CPU",
        ("beam", "batch", "threads", "clock"),
        engines,
        "One set of weights, the test sentences of Multi30k. `native` is Regard's own search, `written_out` the same "
        "with the model itself, `shortlist` with a lexical shortlist, which is gone since; `ctranslate2` is the "
        "library called by hand, `engine` what `decode.engine=ctranslate2` makes of it, `generate` that of "
        "`transformers`. All take turns.",
    ),
    ("translate", "Search against `generate`", ("weights", "beam", "batch"), plain, ""),
    (
        "startup",
        "One sentence from the command line",
        ("contestant",),
        lambda lines: f"{table(lines)}\n\n{source(lines)}",
        "CPU seconds of a whole process, beside one that only imports torch. The processes take turns.",
    ),
    (
        "versions",
        "Beside version 0.1",
        ("work",),
        lambda lines: f"{busy(lines)}{table(lines, 'work')}\n\n{source(lines)}",
        "Both versions do the same work in turn: two training steps, 200 sentences translated, ten looked into, a "
        "whole process, one request of a service. A ratio is the new time by the old in the same round; below 1 the "
        "new version is faster; CPU seconds are those of the process, or of the service. Where no engine is named each "
        "version takes its own: 0.1 its own search, the new one CTranslate2 after 1,000 sentences.",
    ),
    ("growth", "Translation by sentence length", ("preset",), growth, "Greedy, source and output of the same length."),
    (
        "gpu-translation",
        "Translation on a GPU",
        ("engine", "precision", "beam", "corpus"),
        plain,
        "The same weights and sentences, ids to ids. `generate` of `transformers` is called without processors, with "
        "batches sorted by length, and of several sizes of batch the fastest counts. The first time is with capturing "
        "and warming up.",
    ),
    (
        "gpu-searches",
        "Other searches on a GPU",
        ("search",),
        lambda lines: f"{table(lines, 'search')}\n\n{source(lines)}",
        "Samples, n-best lists with constraints, recurrent models and ensembles in captured steps, in float32, on "
        "random weights with outputs of 30 tokens, beside `generate` with what the column says: a recurrent model "
        "has no twin in `transformers`, and version 5 of it forces no words. Equal to ordinary is the share of all "
        "outputs of an n-best list, or of all samples, that are token for token those of the ordinary loop.",
    ),
    (
        "scaling",
        "How the cost grows",
        ("part", "model"),
        scaling,
        "Small models, one thread; batches of the same number of tokens, but where the batch itself grows. The time "
        "exponent is the `e` of `seconds a step ∝ size^e`, for the beam of seconds a search; the memory exponent that "
        "of the memory it takes beyond the weights.",
    ),
]


def page(lines: Sequence[Line]) -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        "Every figure stands in `bench/ledger.jsonl` with the command that measures it again; this page is made of "
        "that by `make docs`. A range is the lowest and the highest round.",
    ]
    for bench, title, keys, write, about in SECTIONS:
        here = newest((line for line in lines if line["bench"] == bench), *keys)
        if here:
            parts += [f"## {title}", *([about] if about else []), write(here)]
    return "\n\n".join(parts) + "\n"


# Figures


def figure_name(prefix: str, model: object, batch: object) -> str:
    return f"{prefix}-{model}{f'-{batch}' if batch else ''}.svg".replace(" ", "-").replace(",", "")


def figures(lines: Sequence[Line]) -> dict[str, str]:
    """The pictures of the page by the names of their files."""
    made = {}
    for bench, keys in (
        ("cpu-training", ("model", "batch_tokens")),
        ("cpu-training-avx2", ("model", "batch_tokens")),
        ("cpu-threads", ("model", "batch_tokens")),
        ("gpu-training", ("model", "batch_tokens", "contestant")),
    ):
        here = newest((line for line in lines if line["bench"] == bench), *keys)
        for model, batch in dict.fromkeys((line.get("model"), line.get("batch_tokens")) for line in here):
            chosen = [line for line in here if (line.get("model"), line.get("batch_tokens")) == (model, batch)]
            made[figure_name(bench, model, batch)] = document(speeds(chosen, str(model)))
    grown = newest((line for line in lines if line["bench"] == "scaling"), "part", "model")
    for part in dict.fromkeys(line["part"] for line in grown):
        for value in ("tokens_per_second", "mib"):
            chosen = [line for line in grown if line["part"] == part and value in line]
            if chosen:
                made[f"scaling-{part}-{value}.svg"] = document(curves(chosen, part, value))
    slower = newest((line for line in lines if line["bench"] == "growth"), "preset")
    if slower:
        made["growth.svg"] = document(curves(slower, "length", "seconds", of="preset"))
    return made


def speeds(lines: Sequence[Line], model: str) -> Chart:
    """A bar for each contestant, the fastest first."""
    ordered = sorted(lines, key=lambda line: -line["tokens_per_second"])
    speeds = [Point(0, line["tokens_per_second"], *bounds(line.get("spread"))) for line in ordered]
    series = [Series(line["contestant"], [speed]) for line, speed in zip(ordered, speeds, strict=True)]
    highest = max(max(speed.y or 0, speed.high or 0) for speed in speeds)
    return Chart(f"Tokens a second, {model}", series, y=linear("tokens/s", [highest], zero=True), kind="bars")


def bounds(spread: Any) -> tuple[float | None, float | None]:
    return (spread[0], spread[1]) if isinstance(spread, list) and len(spread) == 2 else (None, None)


def curves(lines: Sequence[Line], part: str, value: str, *, of: str = "model") -> Chart:
    """A line for each model or preset, both axes logarithmic: a straight line is a power."""
    pairs = [[(size, one) for size, one in zip(line["sizes"], line[value], strict=True) if one > 0] for line in lines]
    series = [
        Series(line[of], [Point(math.log10(size), math.log10(one)) for size, one in points])
        for line, points in zip(lines, pairs, strict=True)
    ]
    x = logarithmic(part, [size for points in pairs for size, _ in points])
    y = logarithmic(named(value), [one for points in pairs for _, one in points])
    return Chart(f"{named(value)} by {part}", series, x, y)
