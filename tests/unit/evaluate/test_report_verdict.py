"""The verdict: each rule by itself, on numbers by hand, and the evidence beside each claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regard.evaluate import run_report as rules
from regard.evaluate.run_report import Claim, Learning
from regard.metrics.labels import Confusion
from reports import GOOD, bucket, by_hand, labelled, learning, quality


def claims(found: list[Claim]) -> list[tuple[str, str]]:
    return [(one.claim, one.tone) for one in found]


def test_a_loss_that_still_falls_at_the_end_is_still_improving() -> None:
    (found,) = rules.trend(learning(4.0, 2.0, 1.0, 0.7))
    assert (found.claim, found.tone) == ("still improving when it stopped", "open")
    assert found.evidence == "validation loss 1 at step 300, 0.7 at step 400: 30 % lower"


def test_a_rate_that_came_down_to_zero_is_mentioned_with_the_improvement() -> None:
    (found,) = rules.trend(learning(4.0, 2.0, 1.0, 0.7, rate=0.0))
    assert found.evidence.endswith("more steps need a longer schedule")


def test_a_loss_that_stays_has_levelled_off() -> None:
    (found,) = rules.trend(learning(4.0, 1.0, 0.701, 0.7))
    assert found.claim == "has levelled off"
    assert found.evidence.endswith("more of the same training would change little")


def test_a_loss_that_stays_where_the_rate_is_zero_says_nothing_of_longer_schedules() -> None:
    (found,) = rules.trend(learning(4.0, 1.0, 0.701, 0.7, rate=0.0))
    assert found.claim == "has levelled off"
    assert found.evidence.endswith(
        "0.7 at step 400; the learning rate had come down to zero, so more steps need a longer schedule"
    )


def test_a_validation_loss_that_rises_while_the_training_loss_falls_is_overfitting() -> None:
    (found,) = rules.trend(learning(4.0, 1.0, 1.5, 2.0))
    assert (found.claim, found.tone) == ("has begun to overfit", "bad")
    assert found.evidence == ("validation loss 1 at step 200, 100 % higher at step 400, while the training loss fell")


def test_without_a_training_curve_a_rising_loss_is_only_worse() -> None:
    (found,) = rules.trend(replace(learning(4.0, 1.0, 2.0), moments=()))
    assert found.claim == "became worse again"


@pytest.mark.parametrize("losses", [(), (1.0,), (2.0, 1.0)])
def test_fewer_than_three_validations_say_nothing(losses: tuple[float, ...]) -> None:
    (found,) = rules.trend(learning(*losses))
    assert found.claim == "has too few validations to judge its progress"
    assert f"validations = {len(losses)}" in found.evidence


def test_a_loss_of_zero_is_no_improvement_over_zero() -> None:
    assert rules.trend(learning(0.0, 0.0, 0.0))[0].claim == "has levelled off"


def test_a_run_says_how_far_its_training_came() -> None:
    run = by_hand().run
    assert rules.completeness(run) == []
    assert rules.completeness(replace(run, state="running", steps=7))[0].evidence.endswith("step 7 of 400")
    assert claims(rules.completeness(replace(run, state="interrupted"))) == [("was stopped before its end", "bad")]


def test_the_ends_of_the_scale_are_called_by_name() -> None:
    assert claims(rules.level(quality(4.9))) == [("has hardly learned to translate", "bad")]
    assert claims(rules.level(quality(90.1))) == [("has all but solved this test", "good")]
    assert rules.level(quality(47.0)) == []
    assert rules.level(quality(97.0, name="chrF2")) == []


def test_a_score_far_below_the_validations_is_suspicious() -> None:
    known = learning(2.0, 1.0, scores=(13.0, 90.0))
    (found,) = rules.promise(known, quality(44.0))
    assert (found.claim, found.tone) == ("falls far short of its own validations", "bad")
    assert found.evidence.startswith("BLEU 90.0 in validation at step 200, 44.0 here")
    assert rules.promise(known, quality(46.0)) == []
    assert rules.promise(learning(2.0, 1.0, scores=(13.0, 90.0), score="accuracy"), quality(1.0)) == []
    assert rules.promise(learning(2.0, 1.0, scores=(1.0, 4.0)), quality(0.1)) == []
    assert rules.promise(Learning(), quality(1.0)) == []


def test_a_break_down_is_told_by_the_length_from_which_on_it_holds() -> None:
    buckets = [bucket("up to 10", 40.0), bucket("11 to 20", 38.0), bucket("21 to 30", 36.0), bucket("over 30", 11.0)]
    (found,) = rules.by_length(buckets, "BLEU")
    assert (found.claim, found.tone) == ("fails above 30 words", "bad")
    assert found.evidence == "BLEU over 30: 11.0 (61 sentences); up to 10: 40.0 (61)"
    (found,) = rules.by_length([*buckets[:2], bucket("21 to 30", 9.0), buckets[3]], "BLEU")
    assert found.claim == "fails above 20 words"


def test_one_bad_group_in_the_middle_is_no_break_down() -> None:
    buckets = [bucket("up to 10", 40.0), bucket("11 to 20", 8.0), bucket("over 20", 40.0)]
    assert claims(rules.by_length(buckets, "BLEU")) == [("holds for all lengths tested", "good")]


def test_a_smaller_drop_is_weakness_and_one_within_the_interval_is_nothing() -> None:
    weaker = [bucket("up to 10", 40.0), bucket("11 to 1,000", 30.0)]
    assert claims(rules.by_length(weaker, "BLEU")) == [("is weaker above 10 words", "open")]
    unsure = [bucket("up to 10", 40.0), bucket("over 10", 30.0, margin=9.0)]
    (found,) = rules.by_length(unsure, "BLEU")
    assert (found.claim, found.evidence) == (
        "holds for all lengths tested",
        "BLEU up to 10 words: 40.0, over 10 words: 30.0",
    )


def test_groups_too_small_to_score_are_named_and_one_group_says_nothing() -> None:
    (found,) = rules.by_length([bucket("up to 10", 40.0), bucket("11 to 20", 40.0), bucket("over 20", None, 3)], "BLEU")
    assert found.evidence.endswith("; too few sentences to say: over 20")
    assert rules.by_length([bucket("up to 10", 40.0), bucket("over 10", None, 3)], "BLEU") == []


def test_a_score_of_which_less_is_better_is_not_called_a_failure() -> None:
    assert rules.by_length([bucket("up to 10", 60.0), bucket("over 10", 10.0)], "TER")[0].tone == "good"


def test_rare_words_are_told_by_how_often_they_were_seen() -> None:
    buckets = [bucket("unseen", 8.0), bucket("1 to 9", 9.0), bucket("10 to 99", 39.0), bucket("over 99", 40.0)]
    (found,) = rules.by_rarity(buckets, "BLEU")
    assert (found.claim, found.tone) == ("fails on sentences with words it has seen at most 9 times", "bad")
    (found,) = rules.by_rarity([buckets[0], *buckets[2:]], "BLEU")
    assert found.claim == "fails on sentences with words it has never seen"
    assert rules.by_rarity(buckets[2:], "BLEU") == []


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ({"copied": 0.04}, "copies 4.0 % of inputs"),
        ({"empty": 0.125}, "writes nothing for 12 % of inputs"),
        ({"repeated": 0.3, "repeated_in_reference": 0.01}, "repeats itself"),
        ({"untranslated": 0.07}, "leaves 7.0 % of words untranslated"),
        ({"length_ratio": 0.8}, "writes too little"),
        ({"length_ratio": 1.2}, "writes too much"),
    ],
)
def test_each_bad_habit_has_its_claim(change: dict[str, float], claim: str) -> None:
    assert claims(rules.habits(replace(GOOD, **change))) == [(claim, "bad")]


def test_repetitions_that_the_reference_has_too_are_no_bad_habit() -> None:
    (found,) = rules.habits(replace(GOOD, repeated=0.3, repeated_in_reference=0.29, copied=0.0004))
    assert (found.claim, found.tone) == ("shows no bad habit", "good")
    assert "copied under 0.1 %, empty 0 %" in found.evidence


def test_labels_are_held_against_the_most_frequent_one() -> None:
    good = Confusion.of([("a", "a")] * 7 + [("b", "b")] * 3)
    bad = Confusion.of([("a", "a")] * 7 + [("b", "a")] * 3)
    assert claims(rules.guessing(good)) == [("has learned more than the most frequent label", "good")]
    (found,) = rules.guessing(bad)
    assert (found.claim, found.tone) == ("is no better than a constant guess", "bad")
    assert found.evidence == "accuracy 70 %; always 'a' gives 70 %"
    assert rules.guessing(Confusion(())) == []


def test_a_label_that_is_mostly_missed_is_named_where_there_are_enough_of_it() -> None:
    many = Confusion.of([("a", "a")] * 70 + [("b", "a")] * 30 + [("b", "b")] * 11 + [("c", "a")] * 29)
    (found,) = rules.missed(many)
    assert (found.claim, found.evidence) == ("misses most of 'b'", "found: 'b' 27 % of 41")
    assert rules.missed(Confusion.of([("a", "a")] * 70)) == []


def test_a_text_that_chose_the_checkpoint_flatters() -> None:
    test = by_hand().test
    assert rules.fairness(test) == []
    assert rules.fairness(replace(test, held_out=False))[0].claim == "is measured on the text that chose its checkpoint"


def test_what_is_wrong_comes_first_and_every_claim_has_evidence() -> None:
    for report in (by_hand(), labelled(), replace(by_hand(), habits=replace(GOOD, copied=0.5))):
        found = rules.verdict(report)
        tones = [one.tone for one in found]
        assert tones == sorted(tones, key=["bad", "open", "good"].index)
        assert all(one.claim and one.evidence for one in found)


def test_a_report_in_a_terminal_is_its_headline_and_its_verdict() -> None:
    lines = str(by_hand()).splitlines()
    assert lines[0] == "small: BLEU 80.0 ±1.0"
    assert lines[1].startswith("  • still improving when it stopped: validation loss")
    assert lines[-1].startswith("  + shows no bad habit: copied 0 %")
