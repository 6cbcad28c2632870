"""Paired tests are sacreBLEU's, for any number of systems; the most-differing sentences are the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from regard.errors import DataError, ResourceError
from regard.metrics.groups import most_differing
from regard.metrics.paired import Verdict, holm, paired
from regard.metrics.translation import measure
from regard.settings.call import MeasureSettings

COUNT = 53
TEXT = "le chat noir dort sur la table et mange une souris grise près du vieux pont"
WORDS = TEXT.split()


def texts(seed: int, share: float) -> list[str]:
    """Sentences of chance, the same for all seeds but for a share of their words."""
    shared, own = Random(1), Random(seed)
    return [
        " ".join(shared.choice(WORDS) if own.random() >= share else own.choice(WORDS) for _ in range(4 + row % 7))
        for row in range(COUNT)
    ]


def damaged(sentences: list[str], seed: int, share: float) -> list[str]:
    own = Random(seed)
    return [
        " ".join(own.choice(WORDS) if own.random() < share else word for word in line.split()) for line in sentences
    ]


REFERENCES = texts(0, 0.0)
SYSTEMS = [
    (name, damaged(REFERENCES, seed, share))
    for seed, (name, share) in enumerate((("weak", 0.45), ("middle", 0.36), ("strong", 0.33)), start=2)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("texts")
    for name, lines in (("reference", REFERENCES), *SYSTEMS):
        (made / name).write_text("".join(f"{line}  \n" for line in lines))  # the command drops spaces at the end
    return made


def printed(folder: Path, *names: str, test: str, count: int) -> tuple[list[float], list[float]]:
    """The scores and the p values that the command prints, row by row."""
    command = [sys.executable, "-W", "ignore", "-m", "sacrebleu", "reference", "-i", *names, "-m", "bleu", "chrf"]
    command += [f"--paired-{test}", f"--paired-{test}-n", str(count), "-f", "text", "-w", "4"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300)
    table = done.stdout[: done.stdout.index("╘")]
    scores = re.findall(r"│ +([\d.]+)(?: \([\d.]+ ±[^)]*\))? +(?=│)", table)
    return [float(score) for score in scores], [float(p) for p in re.findall(r"\(p = ([\d.]+)\)", table)]


@pytest.mark.parametrize(("test", "count"), [("bs", 211), ("ar", 307)])
def test_scores_and_p_values_are_those_that_the_sacrebleu_command_prints(folder: Path, test: str, count: int) -> None:
    systems = [(name, [f"{line} " for line in lines]) for name, lines in SYSTEMS]
    verdicts = {
        (one.metric, one.first, one.second): one
        for one in paired(systems, REFERENCES, MeasureSettings(resamples=count, trials=count))
    }
    for names in (("weak", "middle", "strong"), ("middle", "strong")):
        scores, chances = printed(folder, *names, test=test, count=count)
        pairs = [(metric, names[0], name) for name in names[1:] for metric in ("BLEU", "chrF2")]
        ours = [verdicts[pair].bootstrap if test == "bs" else verdicts[pair].randomisation for pair in pairs]
        assert [f"{p:.4f}" for p in ours] == [f"{p:.4f}" for p in chances]
        differences = [
            scores[2 * place + metric] - scores[metric] for place in (1, 2)[: len(names) - 1] for metric in (0, 1)
        ]
        assert [verdicts[pair].difference for pair in pairs] == pytest.approx(differences, abs=2e-4)
    assert len({one.bootstrap for one in verdicts.values()}) > 2  # numbers that could have differed


def test_every_pair_is_tested_one_metric_after_another() -> None:
    verdicts = paired(SYSTEMS, REFERENCES, MeasureSettings(metrics=("chrf", "ter"), resamples=5, trials=5))
    assert [(one.metric, one.first, one.second) for one in verdicts] == [
        (metric, first, second)
        for metric in ("chrF2", "TER")
        for first, second in (("weak", "middle"), ("weak", "strong"), ("middle", "strong"))
    ]
    scores = {
        name: measure(lines, REFERENCES, MeasureSettings(metrics=("ter",), resamples=0))[0].score
        for name, lines in SYSTEMS
    }
    assert verdicts[3].difference == pytest.approx(scores["middle"] - scores["weak"])


def test_the_better_one_is_found_whichever_way_the_metric_points() -> None:
    assert Verdict("BLEU", "a", "b", 1.0, 0.01, 0.01).better == "b"
    assert Verdict("BLEU", "a", "b", -1.0, 0.01, 0.01).better == "a"
    assert Verdict("TER", "a", "b", 1.0, 0.01, 0.01).better == "a"
    assert Verdict("TER", "a", "b", -1.0, 0.01, 0.01).worse == "a"


def test_the_seed_decides_the_draws_and_the_environment_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    once = paired(SYSTEMS[:2], REFERENCES, MeasureSettings(resamples=101, trials=101, seed=7))
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    assert paired(SYSTEMS[:2], REFERENCES, MeasureSettings(resamples=101, trials=101, seed=7)) == once
    assert paired(SYSTEMS[:2], REFERENCES, MeasureSettings(resamples=101, trials=101, seed=8)) != once


def test_equal_systems_are_told_apart_by_nothing() -> None:
    same = [("a", SYSTEMS[0][1]), ("b", SYSTEMS[0][1])]
    found = paired(same, REFERENCES, MeasureSettings(resamples=50, trials=50))
    assert [(one.difference, one.bootstrap, one.randomisation) for one in found] == [(0.0, 1.0, 1.0)] * 2


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("systems", "references", "draws", "expected"),
    [
        (SYSTEMS[:1], REFERENCES, 10, "systems = 1: a paired test compares at least two"),
        (SYSTEMS[:2], REFERENCES[:-1], 10, "weak = 53 outputs: the references have 52"),
        ([("a", []), ("b", [])], [], 10, "a = 0 outputs"),
        (SYSTEMS[:2], REFERENCES, 0, "resamples = 0: a test draws at least once"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    systems: list[tuple[str, list[str]]], references: list[str], draws: int, expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        paired(systems, references, MeasureSettings(resamples=draws))


def test_a_test_that_would_not_fit_into_memory_is_not_begun() -> None:
    with pytest.raises(ResourceError, match=r"trials = 100,000,000: would take about .* at most 4,766,"):
        paired(SYSTEMS[:2], REFERENCES, MeasureSettings(trials=100_000_000))


def test_outputs_that_share_nothing_with_the_reference_have_intervals_too() -> None:
    hopeless = [("none", ["", "x"]), ("some", ["un", "x"])]
    how = MeasureSettings(metrics=("bleu", "chrf", "ter"), resamples=20, trials=20)
    found = measure(hopeless[1][1], ["un", "deux"], how)
    assert all(quality.low is not None and quality.low <= quality.score for quality in found)
    assert [
        one.difference > 0 for one in paired(hopeless, ["un", "deux"], MeasureSettings(resamples=20, trials=20))
    ] == [False, True]


# Sentences


def test_sentences_are_ordered_by_the_distance_between_best_and_worst() -> None:
    sources = ["one", "two", "three", "four"]
    references = ["le chat noir", "la table", "une souris grise", "le pont"]
    outputs = [
        ["le chat noir", "la table", "une souris grise", "le pont"],
        ["le chat gris", "xyz", "une souris grise", "le pot"],
    ]
    found = most_differing(sources, references, outputs, count=3)
    assert [one.line for one in found] == [2, 1, 4]  # on the third they agree
    assert found[0].scores == (100.0, 0.0)
    assert found[0].outputs == ("la table", "xyz")
    assert found == most_differing(sources, references, outputs, count=3)
    assert most_differing(sources, references, outputs, count=1) == found[:1]


def test_the_seed_chooses_among_equals_and_a_repeated_pair_is_shown_once() -> None:
    sources = [f"number {row}" for row in range(11)]
    outputs = [["oui"] * 11, ["xyz"] * 11]
    chosen = {
        tuple(one.line for one in most_differing(sources, ["oui"] * 11, outputs, seed=seed, count=3))
        for seed in range(5)
    }
    assert len(chosen) > 1
    assert len(most_differing(["same"] * 11, ["oui"] * 11, outputs)) == 1


def test_texts_that_do_not_pair_are_refused() -> None:
    with pytest.raises(DataError, match="lines = 2 sources, 1 hypotheses, 2 references"):
        most_differing(["a", "b"], ["a", "b"], [["x"], ["y", "z"]])
