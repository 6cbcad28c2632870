"""Search: whatever the model, the rule, the constraints and the batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
import tiny
from regard.decode.constraints import Constraint, Forbidden, Minimum, NoRepeat, Prefix, Terms
from regard.decode.rules import Beam, Rule, Sample
from regard.decode.search import Hypothesis, SearchListener, search
from regard.decode.tree import Trees
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.text.vocabulary import END, PAD, START, UNK

few_examples = settings(max_examples=4)  # there are many presets
more_examples = settings(max_examples=7)  # there are few
every_preset = pytest.mark.parametrize("preset", tiny.PRESETS)
every_reader = pytest.mark.parametrize("preset", tiny.READERS)
few_presets = pytest.mark.parametrize("preset", ["gru", "bahdanau", "transformer-tiny"])
ATTENTIVE = [name for name in tiny.PRESETS if not name.startswith(("rnn", "gru", "lstm"))]
LIMIT = 7

beams = st.builds(
    Beam,
    width=st.integers(1, 4),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 1.7]),
)
rules: st.SearchStrategy[Rule] = st.one_of(
    beams,
    st.builds(Beam, width=st.just(4), best=st.integers(1, 4), groups=st.sampled_from([2, 4]), diversity=st.just(0.5)),
    st.builds(
        Sample,
        count=st.integers(1, 4),
        temperature=st.sampled_from([0.5, 1.0, 2.0]),
        top_k=st.sampled_from([0, 3]),
        nucleus=st.sampled_from([0.8, 1.0]),
        epsilon=st.sampled_from([0.0, 0.05]),
        seed=st.integers(0, 9),
        unknown=st.booleans(),
    ),
)


def run(
    model: EncoderDecoder,
    source: Tensor,
    rule: Rule,
    limits: int | Sequence[int] = LIMIT,
    constraints: Sequence[Constraint] = (),
    numbers: Sequence[int] | None = None,
    listener: SearchListener | None = None,
) -> list[list[Hypothesis]]:
    first, state = model.start(source)
    most = torch.tensor([limits] * len(source) if isinstance(limits, int) else limits)
    return search(model, first, state, most, rule=rule, constraints=constraints, numbers=numbers, listener=listener)


def alone(source: Tensor, row: int) -> Tensor:
    return source[row][masks.padding(source)[row]][None]


def texts(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[each.tokens for each in sentence] for sentence in found]


def log_probability(model: EncoderDecoder, source: Tensor, tokens: list[int]) -> float:
    """Of an output and its end, teacher-forced."""
    target = torch.tensor([[START, *tokens, END]])
    with torch.no_grad():
        odds = model(source, target[:, :-1]).log_softmax(-1)
    return odds.gather(-1, target[:, 1:, None]).sum().item()


@every_reader
@few_examples
@given(batch=tiny.batches(), rule=rules)
def test_the_log_probability_is_the_teacher_forced_one(preset: str, batch: tuple[Tensor, Tensor], rule: Rule) -> None:
    model, source = tiny.translator(preset), tiny.read(preset, batch[0])
    for row, sentence in enumerate(run(model, source, rule)):
        assert sentence
        for found in sentence:
            expected = log_probability(model, alone(source, row), found.tokens)
            assert found.log_probability == pytest.approx(expected, abs=1e-4)
            penalty = rule.length_penalty if isinstance(rule, Beam) else 0.0
            assert found.score == pytest.approx(expected / (len(found.tokens) + 1) ** penalty, abs=1e-4)


@every_preset
def test_the_log_probability_is_the_teacher_forced_one_in_single_precision(preset: str) -> None:
    torch.manual_seed(1)
    settings = tiny.settings(preset).model
    size = tiny.TARGET_SIZE if settings.tie == "all" else tiny.SOURCE_SIZE
    model = regard.encoder_decoder(settings, size, tiny.TARGET_SIZE).eval()
    source = tiny.rows([5, 3, 7], tiny.SOURCE_SIZE, 1)
    for row, sentence in enumerate(run(model, source, Beam(5, best=5), 11)):
        for found in sentence:
            expected = log_probability(model, alone(source, row), found.tokens)
            assert found.log_probability == pytest.approx(expected, abs=1e-4)


@every_reader
@few_examples
@given(batch=tiny.batches(), rule=rules, seed=st.integers(0, 99))
def test_a_sentence_does_not_depend_on_its_batch_mates(
    preset: str, batch: tuple[Tensor, Tensor], rule: Rule, seed: int
) -> None:
    model, source = tiny.translator(preset), tiny.read(preset, batch[0])
    limits = torch.randint(1, 9, (len(source),), generator=torch.Generator().manual_seed(seed)).tolist()
    together = texts(run(model, source, rule, limits))
    for row, limit in enumerate(limits):
        assert texts(run(model, alone(source, row), rule, limit, numbers=[row])) == [together[row]]


@every_preset
@few_examples
@given(batch=tiny.batches())
def test_a_beam_of_one_is_greedy(preset: str, batch: tuple[Tensor, Tensor]) -> None:
    model, (source, _) = tiny.translator(preset), batch
    for row, (found,) in enumerate(run(model, source, Beam(1))):
        token, state = model.start(alone(source, row))
        written: list[int] = []
        with torch.no_grad():
            while len(written) < LIMIT - 1:
                logits, state = model.step(token, state)
                logits[:, [PAD, START, UNK]] = -torch.inf
                token = logits.argmax(-1)
                if token.item() == END:
                    break
                written.append(int(token))
        assert found.tokens == written


def sharp(preset: str, size: int, end: float = 0.0) -> EncoderDecoder:
    """A model with a tiny vocabulary whose odds differ, and that likes to end."""
    torch.manual_seed(3)
    settings = tiny.settings(
        preset, *(["model.tie=target"] if preset in ("transformer-base", "transformer-big") else [])
    )
    model = regard.encoder_decoder(settings.model, tiny.SOURCE_SIZE, size).double().eval()
    with torch.no_grad():
        for parameter in model.decoder.output.parameters():
            parameter.mul_(4)
        model.decoder.output.bias[END] += end
    return model


@every_preset
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_very_wide_beam_is_exhaustive_search(preset: str, penalty: float) -> None:
    model, source, longest = sharp(preset, 7), tiny.rows([4], tiny.SOURCE_SIZE, 5), 3
    letters = [token for token in range(7) if token not in (PAD, START, END, UNK)]
    outputs = [list(word) for length in range(longest) for word in product(letters, repeat=length)]
    ranked = sorted(outputs, key=lambda word: -log_probability(model, source, word) / (len(word) + 1) ** penalty)
    found = run(model, source, Beam(200, penalty, best=len(outputs)), longest)
    assert texts(found) == [ranked]


@every_preset
@few_examples
@given(
    batch=tiny.batches(),
    width=st.integers(1, 4),
    best=st.integers(1, 4),
    penalty=st.sampled_from([-0.5, 0.0, 0.6, 1.0, 1.7]),
)
def test_early_stopping_changes_nothing(
    preset: str, batch: tuple[Tensor, Tensor], width: int, best: int, penalty: float
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    early, late = (Beam(width, penalty, best=min(best, width), early=early) for early in (True, False))
    assert run(model, source, early, 13) == run(model, source, late, 13)


def test_early_stopping_stops_early() -> None:
    steps = []

    class Counter:
        def on_step(self, *step: object) -> None:
            steps.append(step)

    model, source = sharp("gru", 29, end=3.0), tiny.rows([3, 5], tiny.SOURCE_SIZE, 2)
    run(model, source, Beam(4, 0.0), 40, listener=Counter())
    early = len(steps)
    run(model, source, Beam(4, 0.0, early=False), 40, listener=Counter())
    assert early < len(steps) - early


@every_preset
@few_examples
@given(batch=tiny.batches(), width=st.integers(2, 5), groups=st.booleans())
def test_n_best_is_sorted_and_distinct(preset: str, batch: tuple[Tensor, Tensor], width: int, groups: bool) -> None:
    model, (source, _) = tiny.translator(preset), batch
    rule = Beam(width, best=width, groups=width if groups else 1, diversity=0.3)
    for sentence in run(model, source, rule):
        scores = [found.score for found in sentence]
        assert 1 <= len(sentence) <= width if groups else len(sentence) == width
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(found.tokens) for found in sentence}) == len(sentence)


def test_groups_differ_where_one_beam_would_not() -> None:
    model, source = sharp("bahdanau", 29), tiny.rows([5, 7, 4], tiny.SOURCE_SIZE, 3)
    first_words = [
        {found.tokens[0] for found in sentence if found.tokens}
        for rule in (Beam(4, best=4), Beam(4, best=4, groups=4, diversity=50.0))
        for sentence in run(model, source, rule)
    ]
    for plain, diverse in zip(first_words[:3], first_words[3:], strict=True):
        assert len(diverse) > len(plain)


@few_presets
@more_examples
@given(batch=tiny.batches(), seed=st.integers(0, 99))
def test_the_same_seed_samples_the_same_text(preset: str, batch: tuple[Tensor, Tensor], seed: int) -> None:
    model, (source, _) = tiny.translator(preset), batch
    numbers = [number * 3 + 1 for number in range(len(source))]
    found = texts(run(model, source, Sample(5, seed=seed), 11, numbers=numbers))
    assert found == texts(run(model, source, Sample(5, seed=seed), 11, numbers=numbers))
    backwards = texts(run(model, source.flip(0), Sample(5, seed=seed), 11, numbers=numbers[::-1]))
    assert found == backwards[::-1]
    assert found != texts(run(model, source, Sample(5, seed=seed + 1), 11, numbers=numbers))


def test_samples_come_as_often_as_they_are_probable() -> None:
    model, source = sharp("gru", 7), tiny.rows([4], tiny.SOURCE_SIZE, 5)
    samples = texts(run(model, source, Sample(4000), 1 + 1))[0]
    first, state = model.start(source)
    with torch.no_grad():
        odds = model.step(first, state)[0][0]
    odds[[PAD, START, UNK]] = -torch.inf
    for token, probability in enumerate(odds.softmax(0).tolist()):
        drawn = sum(tokens[:1] == ([] if token == END else [token]) for tokens in samples) / 4000
        assert drawn == pytest.approx(probability, abs=0.03)


def test_top_k_nucleus_and_epsilon_draw_from_the_most_probable() -> None:
    model, source = sharp("gru", 13), tiny.rows([4], tiny.SOURCE_SIZE, 5)
    first, state = model.start(source)
    with torch.no_grad():
        odds = model.step(first, state)[0][0]
    odds[[PAD, START, UNK]] = -torch.inf
    probabilities, order = odds.softmax(0).sort(descending=True)
    few = int((probabilities.cumsum(0) < 0.6).sum()) + 1
    assert 1 < few < 8
    probable = int((probabilities >= 0.1).sum())
    assert 1 < probable < 8
    rules = {Sample(3000, top_k=2): 2, Sample(3000, nucleus=0.6): few, Sample(3000, epsilon=0.1): probable}
    for rule, expected in (rules | {Sample(3000, epsilon=0.99): 1}).items():
        drawn = {tokens[0] if tokens else END for tokens in texts(run(model, source, rule, 2))[0]}
        assert drawn == set(order[:expected].tolist())


def test_a_cold_sample_is_greedy() -> None:
    model, source = sharp("transformer-tiny", 29), tiny.rows([5, 7, 4], tiny.SOURCE_SIZE, 3)
    assert texts(run(model, source, Sample(temperature=1e-3))) == texts(run(model, source, Beam(1)))


words = st.lists(st.integers(4, tiny.TARGET_SIZE - 1), min_size=1, max_size=3)


def contains(tokens: list[int], part: Sequence[int]) -> bool:
    return any(tokens[start : start + len(part)] == list(part) for start in range(len(tokens)))


@few_presets
@more_examples
@given(batch=tiny.batches(), rule=rules, forbidden=st.lists(words, max_size=9), size=st.integers(1, 3), data=st.data())
def test_constraints_that_forbid_hold_on_every_output(
    preset: str, batch: tuple[Tensor, Tensor], rule: Rule, forbidden: list[list[int]], size: int, data: st.DataObject
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    least = [data.draw(st.integers(0, 9)) for _ in source]
    constraints = [Minimum(least), NoRepeat(size), Forbidden(forbidden)]
    for row, sentence in enumerate(run(model, source, rule, 11, constraints)):
        assert sentence
        for found in sentence:
            tokens = found.tokens
            assert least[row] <= len(tokens) <= 10
            grams = [tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)]
            assert len(grams) == len(set(grams))
            assert not any(contains(tokens, each) for each in forbidden)
            expected = log_probability(model, alone(source, row), tokens)
            assert found.log_probability == pytest.approx(expected, abs=1e-4)


@few_presets
@more_examples
@given(batch=tiny.batches(), rule=rules, forbidden=st.lists(words, max_size=5), data=st.data())
def test_constraints_that_force_hold_on_every_output(
    preset: str, batch: tuple[Tensor, Tensor], rule: Rule, forbidden: list[list[int]], data: st.DataObject
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    prefixes = [data.draw(st.one_of(st.just([]), words)) for _ in source]
    terms = [data.draw(st.lists(words, max_size=2)) for _ in source]
    constraints = [Terms(terms), Prefix(prefixes), NoRepeat(2), Forbidden(forbidden)]
    limits = [len(prefix) + sum(map(len, wanted)) + 1 for prefix, wanted in zip(prefixes, terms, strict=True)]
    limits = [limit + data.draw(st.integers(0, 7)) for limit in limits]
    for row, sentence in enumerate(run(model, source, rule, limits, constraints)):
        assert sentence
        for found in sentence:
            assert len(found.tokens) < limits[row]
            assert found.tokens[: len(prefixes[row])] == prefixes[row]
            assert all(contains(found.tokens, term) for term in terms[row])
            expected = log_probability(model, alone(source, row), found.tokens)
            assert found.log_probability == pytest.approx(expected, abs=1e-4)


@few_presets
@few_examples
@given(batch=tiny.batches(), width=st.integers(1, 5), data=st.data())
def test_a_sentence_without_terms_does_not_feel_those_of_its_mates(
    preset: str, batch: tuple[Tensor, Tensor], width: int, data: st.DataObject
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    wanted = [data.draw(st.lists(words, max_size=2)) if row % 2 else [] for row in range(len(source))]
    together = run(model, source, Beam(width), 13, [Terms(wanted)])
    for row, terms in enumerate(wanted):
        own = run(model, alone(source, row), Beam(width), 13, [Terms([terms])] if terms else [])
        assert own[0][0].tokens == together[row][0].tokens


@pytest.mark.parametrize("preset", ATTENTIVE)
@few_examples
@given(batch=tiny.batches(), width=st.integers(1, 4), penalty=st.sampled_from([0.2, 1.0]))
def test_coverage_is_that_of_the_replayed_attention(
    preset: str, batch: tuple[Tensor, Tensor], width: int, penalty: float
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    rule = Beam(width, coverage_penalty=penalty, best=width)
    for row, sentence in enumerate(run(model, source, rule)):
        own = alone(source, row)
        for found in sentence:
            recorder = regard.Recorder()
            target = torch.tensor([[START, *found.tokens]])
            with torch.no_grad():
                model(own, target, observer=recorder)
            names = [name for name in recorder.names() if name.endswith("cross.weights")]
            weights = torch.stack([recorder[name].mean(1)[0] for name in names]).mean(0)  # (T, S)
            covered = weights.sum(0).clamp(1e-4, 1.0).log().sum().item()
            expected = found.log_probability / (len(found.tokens) + 1) + penalty * covered
            assert found.score == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("preset", ATTENTIVE)
@few_examples
@given(batch=tiny.batches(), width=st.integers(1, 4))
def test_early_stopping_changes_nothing_with_coverage(preset: str, batch: tuple[Tensor, Tensor], width: int) -> None:
    model, (source, _) = tiny.translator(preset), batch
    early, late = (Beam(width, coverage_penalty=0.5, early=early) for early in (True, False))
    assert run(model, source, early, 11) == run(model, source, late, 11)


@every_preset
@few_examples
@given(batch=tiny.batches(), rule=rules)
def test_the_tree_ends_in_the_outputs_and_listening_changes_nothing(
    preset: str, batch: tuple[Tensor, Tensor], rule: Rule
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    trees = Trees(rule)
    found = run(model, source, rule, listener=trees)
    assert found == run(model, source, rule)
    for row, sentence in enumerate(found):
        tree = trees.trees[row]
        assert [tree.tokens(number) for number in tree.outputs] == [each.tokens for each in sentence]
        assert [tree.nodes[number].score for number in tree.outputs] == [each.score for each in sentence]
        kept = [node for node in tree.nodes if node.fate == "kept"]
        assert max(sum(node.step == step for node in kept) for step in range(1, LIMIT + 1)) <= rule.rows
        leaves = {node.number for node in tree.nodes} - {node.parent for node in tree.nodes}
        assert all(tree.nodes[number].reason for number in leaves)
        assert json.loads(json.dumps(asdict(tree))) == asdict(tree)


def test_an_output_ends_at_its_own_limit() -> None:
    model, source = tiny.translator("gru"), tiny.rows([3, 3, 3], tiny.SOURCE_SIZE, 1)
    found = run(model, source, Beam(3), (1, 2, 5))
    assert [len(best.tokens) < limit for (best,), limit in zip(found, (1, 2, 5), strict=True)] == [True] * 3


def test_a_sample_ends_at_its_limit_even_of_a_model_that_likes_the_unknown() -> None:
    model = tiny.translator("gru")
    source = tiny.rows([3, 2], tiny.SOURCE_SIZE, 1)
    found = run(model, source, Sample(40, temperature=50.0, unknown=True), 3)
    assert all(len(each.tokens) <= 2 for several in found for each in several)
    assert any(UNK in each.tokens for several in found for each in several)
