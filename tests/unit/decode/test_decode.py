"""Decoding piece by piece: settings of rules, constraints, ensembles, risk, and batches of every size."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from sacrebleu.metrics.chrf import CHRF
from torch import Tensor

import regard
import tiny
from regard.decode.cancel import cancellable
from regard.decode.constraints import Forbidden, NoRepeat, Prefix, Terms
from regard.decode.front import largest, largest_sums
from regard.decode.rules import Beam, Rule, Sample
from regard.decode.rules import allocate_banks as allocate
from regard.decode.scoring import utilities
from regard.decode.search import Ensemble, Hypothesis, search
from regard.errors import DataError, ModelError, SettingsError
from regard.models.generator import EncoderDecoder
from regard.text.vocabulary import END, PAD, START, UNK


def run(model: EncoderDecoder | Ensemble, source: Tensor, rule: Rule, limit: int = 9) -> list[list[Hypothesis]]:
    first, state = model.start(source)
    return search(model, first, state, torch.full((len(source),), limit), rule=rule)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beam(0), "beam = 0: a beam holds at least one hypothesis"),
        (lambda: Beam(3, best=4), "best = 4: a beam of 3 has 1 to 3 outputs"),
        (lambda: Beam(4, groups=3), "groups = 3: must divide the beam of 4 evenly"),
        (lambda: Beam(4, groups=2, diversity=-1.0), "diversity = -1.0: is a price, 0 or more"),
        (lambda: Beam(coverage_penalty=-0.1), "coverage_penalty = -0.1: must be 0 or more"),
        (lambda: Sample(0), "samples = 0: must be 1 or more"),
        (lambda: Sample(temperature=0.0), "temperature = 0.0: must be above 0"),
        (lambda: Sample(top_k=-1), "top_k = -1: is how many tokens to draw from"),
        (lambda: Sample(nucleus=1.1), "nucleus = 1.1: is a probability above 0 and at most 1"),
        (lambda: Sample(seed=-1), "seed = -1: must be 0 or more"),
        (lambda: NoRepeat(0), "no_repeat = 0: is the length of what must not repeat"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("make", [lambda: Forbidden([[5], [END]]), lambda: Prefix([[5], [UNK]]), lambda: Terms([[[]]])])
def test_constraints_do_not_take_special_tokens(make: Callable[[], object]) -> None:
    with pytest.raises(DataError, match="must be at least one token, and none of <pad> <start> <end> <unk>"):
        make()


@pytest.mark.parametrize("preset", ["lstm", "transformer-tiny"])
def test_a_model_without_attention_has_no_coverage(preset: str) -> None:
    writer = tiny.writer(preset)
    first, state = writer.start(2)
    with pytest.raises(SettingsError, match=r"coverage_penalty = 0\.2: this model has no attention over a source"):
        search(writer, first, state, torch.tensor([5, 5]), rule=Beam(coverage_penalty=0.2))


def test_a_language_model_is_searched_too() -> None:
    writer = tiny.writer("transformer-tiny")
    found = search(writer, *writer.start(2), torch.tensor([5, 7]), rule=Beam(3, best=2))
    assert found[0] != found[1]
    assert [len(sentence) for sentence in found] == [2, 2]


def test_coverage_prefers_what_has_looked_at_everything() -> None:
    model, source = tiny.translator("luong-hard"), tiny.rows([5, 7, 3], tiny.SOURCE_SIZE, 4)
    plain, covering = (run(model, source, Beam(4, best=4, coverage_penalty=penalty)) for penalty in (0.0, 50.0))
    assert plain != covering


def test_a_limit_too_small_for_its_terms_still_ends() -> None:
    model, source = tiny.translator("gru"), tiny.rows([3], tiny.SOURCE_SIZE, 1)
    first, state = model.start(source)
    ((best,),) = search(model, first, state, torch.tensor([3]), constraints=[Terms([[[5, 6, 7]]])])
    assert best.tokens == [5, 6]


def test_a_hypothesis_to_which_nothing_is_left_ends() -> None:
    model, source = tiny.translator("gru"), tiny.rows([3], tiny.SOURCE_SIZE, 1)
    first, state = model.start(source)
    everything = Forbidden([[token] for token in range(4, tiny.TARGET_SIZE)])
    assert search(model, first, state, torch.tensor([9]), constraints=[everything])[0][0].tokens == []


def at_most(steps: int) -> Callable[[], None]:
    """A check that ends a search which goes on for longer."""
    taken = iter(range(steps))

    def check() -> None:
        assert next(taken, None) is not None, "the search has no end"

    return check


@pytest.mark.parametrize("rule", [Beam(1), Beam(3), Beam(4, groups=2), Beam(3, early=False), Sample(2)], ids=str)
@pytest.mark.parametrize(("value", "token"), [(torch.nan, 5), (torch.inf, 5), (-torch.inf, END)])
def test_a_model_without_numbers_is_refused_at_the_limit(rule: Rule, value: float, token: int) -> None:
    model, source = copy.deepcopy(tiny.translator("gru")), tiny.rows([3, 5], tiny.SOURCE_SIZE, 1)
    model.decoder.output.bias.data[token] = value
    first, state = model.start(source)
    with (
        cancellable(at_most(10)),
        pytest.raises(ModelError, match="the model's probabilities are infinite, or no numbers: its weights are"),
    ):
        search(model, first, state, torch.tensor([6, 9]), rule=rule)


def test_every_bank_gets_its_best_before_any_gets_its_second() -> None:
    banks = torch.tensor([[0, 0, 0, 1, 1, 2]])
    totals = torch.tensor([[-1.0, -2.0, -3.0, -5.0, -6.0, -9.0]])
    assert allocate(banks, totals, 3).tolist() == [[5, 0, 3]]
    assert allocate(banks, totals, 5).tolist() == [[5, 0, 3, 1, 4]]
    assert allocate(banks, totals, 1).tolist() == [[0]]
    totals[0, 5] = -torch.inf
    assert allocate(banks, totals, 2).tolist() == [[3, 0]]


@pytest.mark.parametrize("size", [7, 64, 1279, 1283, 3000])
@pytest.mark.parametrize("count", [1, 5])
def test_the_largest_are_those_of_topk(size: int, count: int) -> None:
    values = torch.randn(3, 2, size)
    expected, found = values.topk(count), largest(values, count)
    assert torch.equal(found[0], expected.values)
    assert torch.equal(found[1], expected.indices)


class TestEnsemble:
    def models(self, count: int = 2) -> list[EncoderDecoder]:
        made = []
        for seed in range(count):
            torch.manual_seed(seed)
            name = ["bahdanau", "transformer-tiny"][seed % 2]
            settings = tiny.settings(name, *(["model.tie=target"] if seed % 2 else []))
            made.append(regard.encoder_decoder(settings.model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE).double().eval())
        return made

    def test_an_ensemble_of_one_is_the_model(self) -> None:
        model, source = self.models(1)[0], tiny.rows([3, 7], tiny.SOURCE_SIZE, 2)
        alone, ensemble = run(model, source, Beam(3, best=3)), run(Ensemble([model]), source, Beam(3, best=3))
        assert [[each.tokens for each in row] for row in alone] == [[each.tokens for each in row] for row in ensemble]

    def test_an_output_has_the_mean_of_the_probabilities_at_every_step(self) -> None:
        models, source = self.models(), tiny.rows([5], tiny.SOURCE_SIZE, 3)
        for found in run(Ensemble(models), source, Beam(4, best=4))[0]:
            target = torch.tensor([[START, *found.tokens, END]])
            with torch.no_grad():
                odds = torch.stack([model(source, target[:, :-1]).softmax(-1) for model in models]).mean(0)
            expected = odds.gather(-1, target[:, 1:, None]).log().sum().item()
            assert found.log_probability == pytest.approx(expected, abs=1e-8)

    def test_an_ensemble_covers_with_the_mean_of_its_attentions(self) -> None:
        models, source = self.models(), tiny.rows([5, 3], tiny.SOURCE_SIZE, 3)
        assert run(Ensemble(models), source, Beam(3, coverage_penalty=0.3))[0][0].score < 0

    def test_models_that_do_not_fit_are_refused(self) -> None:
        with pytest.raises(ModelError, match="needs at least one model"):
            Ensemble([])
        other = regard.encoder_decoder(tiny.settings("gru").model, tiny.SOURCE_SIZE, 31).double().eval()
        with pytest.raises(ModelError, match=r"ensemble\[1\]: writes one of 31 tokens, the first model one of 29"):
            run(Ensemble([self.models(1)[0], other]), tiny.rows([3], tiny.SOURCE_SIZE, 2), Beam(2))


class TestRisk:
    def test_the_utility_is_the_mean_chrf_against_all_samples(self) -> None:
        samples = ["the cat sleeps", "the cat slept", "a dog", "the cat sleeps"]
        metric = CHRF()
        for text, utility in zip(samples, utilities(samples), strict=True):
            every = [metric.sentence_score(text, [other]).score for other in samples]
            assert utility == pytest.approx(sum(every) / len(every))

    def test_the_highest_utility_is_that_of_what_most_agree_on(self) -> None:
        found = utilities(["a dog", "the cat sleeps", "the cat slept", "the cat sleeps"])
        assert found.index(max(found)) == 1
        assert utilities(["only one"]) == [100.0]


@cache
def trained() -> EncoderDecoder:
    """Turns a sentence round, after some seconds of training, in single precision."""
    torch.manual_seed(0)
    model = regard.encoder_decoder(tiny.settings("luong-dot").model, tiny.SOURCE_SIZE, tiny.SOURCE_SIZE)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(150):
        source, target = reversal(64)
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def reversal(count: int) -> tuple[Tensor, Tensor]:
    lengths = torch.randint(1, 8, (count,)).tolist()
    words = [torch.randint(4, tiny.SOURCE_SIZE, (length,)).tolist() for length in lengths]
    source = [torch.tensor([*each, END]) for each in words]
    target = [torch.tensor([START, *each[::-1], END]) for each in words]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(source, batch_first=True), pad(target, batch_first=True)


@pytest.mark.parametrize(
    ("rule", "count"),
    [(Beam(5), 137), (Beam(1), 128), (Beam(5, 0.6, coverage_penalty=0.2), 64), (Sample(2, nucleus=0.9), 64)],
)
def test_batches_of_1_7_and_64_write_the_same(rule: Rule, count: int) -> None:
    torch.manual_seed(7)
    model, (source, _) = trained(), reversal(count)
    outputs = []
    for size in (1, 7, 64):
        found: list[list[Hypothesis]] = []
        for start in range(0, count, size):
            rows = source[start : start + size]
            rows = rows[:, : int((rows != PAD).sum(1).max())]
            first, state = model.start(rows)
            limits = (rows != PAD).sum(1) * 2 + 3
            found += search(model, first, state, limits, rule=rule, numbers=range(start, start + len(rows)))
        outputs.append([[each.tokens for each in sentence] for sentence in found])
    assert outputs[0] == outputs[1] == outputs[2]
    assert len({len(sentence[0]) for sentence in outputs[0]}) > 5


@pytest.mark.parametrize("size", [31, 1009, 3 * 1009, 8000], ids=str)
@pytest.mark.parametrize("width", [1, 5])
def test_the_largest_sums_of_a_sentence_are_found_in_blocks(width: int, size: int) -> None:
    chance = torch.Generator().manual_seed(size)
    totals, values = torch.randn(3, width, generator=chance), torch.randn(3, width, size, generator=chance)
    totals[1, 1:] = -torch.inf
    found, places = largest_sums(totals, values, width)
    expected = (totals[:, :, None] + values).flatten(1).topk(width)
    assert torch.equal(found, expected.values)
    assert torch.equal(places, expected.indices)
