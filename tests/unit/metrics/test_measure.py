"""Translation quality: exactly sacreBLEU's numbers, by length and rarity, and what a model does when it is lost."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from regard.errors import DataError, ResourceError, SettingsError
from regard.metrics.comet import comet
from regard.metrics.groups import (
    Bucket,
    Habits,
    bucket_names,
    by_length,
    by_rarity,
    habits,
    mean,
    plain_words,
    repeated,
)
from regard.metrics.translation import Quality, bleu, measure
from regard.settings.call import MeasureSettings

ALONE = MeasureSettings(resamples=0)

WORDS = "the a bear cat mouse honey river ate saw slept because hungry, old quiet Über naïve 'twas नमस्ते .".split(" ")  # noqa: SIM905


def corpus(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """References, and hypotheses that share most of their words; some have spaces at their ends, some are empty."""
    chance = random.Random(seed)
    references = [" ".join(chance.choices(WORDS, k=chance.randint(1, 23))) for _ in range(count)]
    hypotheses = [
        " ".join(word for word in line.split() if chance.random() < 0.9) + " " * chance.randint(0, 2)
        for line in references
    ]
    return hypotheses, references


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def sacrebleu(folder: Path, hypotheses: list[str], references: list[str], *flags: str) -> list[dict[str, object]]:
    """What the command prints, to ten digits."""
    files = [write(folder / "reference", references), "-i", write(folder / "output", hypotheses)]
    command = [sys.executable, "-m", "sacrebleu", *files, *flags, "--format", "json", "-w", "10", "--quiet"]
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, check=False, timeout=300, env=environment, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize(
    ("metrics", "flags"),
    [
        (("bleu", "chrf", "ter"), ["-m", "bleu", "chrf", "ter"]),
        (("chrf++",), ["-m", "chrf", "--chrf-word-order", "2"]),
    ],
)
def test_scores_signatures_and_intervals_are_those_of_the_sacrebleu_command(
    metrics: tuple[str, ...], flags: list[str], tmp_path: Path
) -> None:
    hypotheses, references = corpus(97)
    expected = sacrebleu(tmp_path, hypotheses, references, *flags, "--confidence")
    found = measure(hypotheses, references, MeasureSettings(metrics=metrics))
    for quality, said in zip(found, expected, strict=True):
        assert quality.name == said["name"]
        assert quality.signature == said["signature"]
        assert quality.score == pytest.approx(said["score"], abs=1e-9)
        assert quality.mean == pytest.approx(said["confidence_mean"], abs=1e-9)
        assert quality.margin == pytest.approx(said["confidence_var"], abs=1e-9)


def test_without_resamples_there_is_no_interval_and_the_signature_says_so(tmp_path: Path) -> None:
    hypotheses, references = corpus(13)
    (said,) = sacrebleu(tmp_path, hypotheses, references)
    found = bleu(hypotheses, references)
    assert (found.name, found.signature) == (said["name"], said["signature"])
    assert found.score == pytest.approx(said["score"], abs=1e-9)
    assert (found.low, found.high, found.mean, found.margin) == (None,) * 4
    assert str(found) == f"{found.score:.1f} (BLEU|{found.signature})"


def test_another_seed_gives_another_interval_and_stays_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    hypotheses, references = corpus(31)
    drawn = (MeasureSettings(metrics=("bleu",), resamples=53, seed=seed) for seed in (1, 2))
    (first,), (second,) = (measure(hypotheses, references, how) for how in drawn)
    assert first.score == second.score
    assert (first.low, first.high) != (second.low, second.high)
    assert "|bs:53|seed:1|" in first.signature
    assert "SACREBLEU_SEED" not in os.environ
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    measure(hypotheses, references, MeasureSettings(metrics=("bleu",), resamples=2))
    assert os.environ["SACREBLEU_SEED"] == "7"


def test_numbers_are_plain_ones_that_json_can_write() -> None:
    for quality in measure(*corpus(7), MeasureSettings(metrics=("bleu", "chrf", "chrf++", "ter"), resamples=11)):
        assert [type(number) for number in (quality.score, quality.low, quality.high)] == [float] * 3
        assert f"±{quality.margin:.1f}" in str(quality)


def test_bleu_can_cut_text_another_way() -> None:
    how = MeasureSettings(metrics=("bleu",), resamples=0, tokenize="char")
    (found,) = measure(["a,b c d e"], ["a,b c d e"], how)
    assert "|tok:char|" in found.signature


@pytest.mark.parametrize(
    ("call", "kind", "line"),
    [
        (
            lambda: measure(["a"], ["a"], MeasureSettings(metrics=("blue",))),
            SettingsError,
            "metrics = blue: .*did you mean 'bleu'",
        ),
        (
            lambda: measure(["a"], ["a"], MeasureSettings(metrics=())),
            SettingsError,
            "metrics = none: nothing to measure; known: bleu",
        ),
        (
            lambda: measure(["a"], ["a"], MeasureSettings(tokenize="13b")),
            SettingsError,
            "tokenize = 13b: .*did you mean '13a'",
        ),
        (lambda: measure(["a"], []), DataError, "lines = 1 hypotheses, 0 references"),
        (lambda: measure([], []), DataError, "hypotheses = 0 lines: nothing to measure"),
        (lambda: measure(["a"] * 10**5, ["a"] * 10**5), ResourceError, "resamples = 1,000: .* at most 536 would fit"),
        (lambda: by_length(["a"], [], [], ALONE), DataError, "lines = 1 sources, 0 hypotheses, 0 references"),
        (lambda: bucket_names((10, 10)), SettingsError, "edges = 10,10: must be growing numbers"),
        (lambda: bucket_names(()), SettingsError, "edges = none: must be growing"),
        (lambda: habits(["a"], [], []), DataError, "lines = 1 sources, 0 hypotheses, 0 references"),
    ],
)
def test_what_cannot_be_measured_gets_one_line(call, kind: type[Exception], line: str) -> None:
    with pytest.raises(kind, match=line):
        call()


# By length and by rarity


def test_inside_a_bucket_stands_the_corpus_metric_of_its_sentences_alone() -> None:
    hypotheses, references = corpus(211)
    sources = references
    found = by_length(sources, hypotheses, references, MeasureSettings(edges=(5, 11, 17), resamples=0))
    assert [bucket.name for bucket in found] == ["up to 5", "6 to 11", "12 to 17", "over 17"]
    assert sum(bucket.count for bucket in found) == 211
    for bucket, lengths in zip(found, (range(6), range(6, 12), range(12, 18), range(18, 99)), strict=True):
        rows = [row for row, line in enumerate(sources) if len(line.split()) in lengths]
        assert bucket.count == len(rows)
        assert bucket.quality == bleu([hypotheses[row] for row in rows], [references[row] for row in rows])


def test_a_bucket_of_fewer_than_thirty_sentences_is_not_drawn() -> None:
    lines = ["one two three four five"] * 29 + ["", *["one two three four five six"] * 29]
    found = by_length(lines, lines, lines, MeasureSettings(edges=(5,), resamples=0))
    assert found[0] == Bucket("up to 5", 30, bleu(lines[:30], lines[:30]))
    assert found[1] == Bucket("over 5", 29, None)


def test_a_bucket_may_have_an_interval_and_another_metric() -> None:
    hypotheses, references = corpus(41)
    how = MeasureSettings(metrics=("ter",), edges=(30,), resamples=17)
    (first, _) = by_length(references, hypotheses, references, how)
    assert first.quality == measure(hypotheses, references, how)[0]


def test_buckets_are_named_for_people() -> None:
    assert bucket_names((0, 999)) == ["up to 0", "1 to 999", "over 999"]


def test_rarity_is_that_of_the_rarest_word_or_of_the_words_on_average() -> None:
    counts = {"the": 5000, "bear": 50, "sleeps": 3}
    lines = ["the bear"] * 31 + ["the bear sleeps"] * 33 + ["the yeti sleeps"] * 37
    found = by_rarity(lines, lines, lines, counts, ALONE)
    assert [(bucket.name, bucket.count) for bucket in found] == [
        ("unseen", 37),
        ("1 to 9", 33),
        ("10 to 99", 31),
        ("100 to 999", 0),
        ("over 999", 0),
    ]
    assert found[0].quality == bleu(lines[64:], lines[64:])
    averaged = by_rarity(lines, lines, lines, counts, MeasureSettings(rarity="mean", resamples=0))
    assert [bucket.count for bucket in averaged] == [0, 0, 37, 31 + 33, 0]  # 27, 505 and 100


def test_counts_are_averaged_as_orders_of_magnitude() -> None:
    assert mean([9, 999]) == 99
    assert mean([0, 0]) == 0
    assert mean([]) == 0


# Habits


def test_habits_are_counted_over_the_corpus() -> None:
    sources = ["The cat sleeps", "the old bear", "hello", "two words"]
    hypotheses = ["the cat sleeps!", "le vieux bear dort", "hello", ""]
    references = ["le chat dort", "le vieil ours dort", "Hello", "deux mots"]
    assert habits(sources, hypotheses, references) == Habits(
        length_ratio=8 / 10,
        repeated=0.0,
        repeated_in_reference=0.0,
        copied=1 / 4,  # "hello" is right as it is
        untranslated=4 / 8,  # the, cat, sleeps, bear
        empty=1 / 4,
    )
    assert habits([""], [""], [""]) == Habits(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_what_a_sentence_says_again_is_repeated() -> None:
    assert repeated([["a", "b", "a", "b", "a", "b"]], order=2) == 3 / 5
    assert repeated([["a", "b"], ["a", "b"]], order=2) == 0.0  # another sentence may say the same
    assert repeated([["a"]]) == 0.0


def test_marks_are_no_words_and_signs_of_vowels_are_no_marks() -> None:
    assert plain_words("L'ours, «Petit» – हिन्दी !") == ["l'", "ours", "petit", "हिन्दी"]


# COMET


def program(folder: Path, body: str) -> None:
    path = folder / "comet-score"
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(0o755)


def test_comet_is_the_last_score_that_the_users_program_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("REGARD_OFFLINE", "1")
    program(
        tmp_path,
        "given = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "texts = [open(given[name], encoding='utf-8').read() for name in ('-s', '-t', '-r')]\n"
        "assert texts == ['a b\\n\\n', 'ç\\nd\\n', 'e\\nf\\n'], texts\n"
        "assert given['--model'] == 'some/model' and given['--gpus'] == '0'\n"
        "assert os.environ['HF_HUB_OFFLINE'] == '1'\n"
        "print('x\\tSegment 0\\tscore: 0.1\\nx\\tscore: -0.8234')",
    )
    assert comet(["a\rb", ""], ["ç", "d"], ["e", "f"], "some/model") == Quality("COMET", -0.8234, "model:some/model")


def test_comet_that_is_not_there_or_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ResourceError, match=r"measure\.comet = m: no comet-score on PATH; install it with pip"):
        comet(["a"], ["b"], ["c"], "m")
    program(tmp_path, "print('noise', file=sys.stderr); sys.exit('no such model')")
    with pytest.raises(
        ResourceError, match=r"measure\.comet = m: comet-score ended with code 1; its last line: no such model"
    ):
        comet(["a"], ["b"], ["c"], "m")
    program(tmp_path, "print('all is well')")
    with pytest.raises(ResourceError, match="ended with code 0; its last line: all is well"):
        comet(["a"], ["b"], ["c"], "m")
