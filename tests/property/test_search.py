"""Search: whatever the model, the beam and the batch."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import tiny
from regard.decode.search import Hypothesis, search
from regard.models.encoder_decoder import EncoderDecoder
from regard.text.special import END, PAD, START, UNK

every_preset = pytest.mark.parametrize("preset", tiny.PRESETS)


def run(model: EncoderDecoder, source: Tensor, beam: int, limit: int = 7, penalty: float = 1.0) -> list[Hypothesis]:
    first, state = model.start(source)
    limits = torch.full((len(source),), limit)
    return search(model, first, state, limits, beam=beam, length_penalty=penalty)


def log_probability(model: EncoderDecoder, source: Tensor, tokens: list[int]) -> float:
    """Of an output and its end, teacher-forced, over the tokens that search may write."""
    target = torch.tensor([[START, *tokens, END]])
    with torch.no_grad():
        odds = model(source, target[:, :-1]).log_softmax(-1)
    return odds.gather(-1, target[:, 1:, None]).sum().item()


@every_preset
@given(batch=tiny.batches(), beam=st.integers(1, 4), penalty=st.sampled_from([0.0, 0.6, 1.0]))
def test_the_score_is_the_teacher_forced_log_probability(
    preset: str, batch: tuple[Tensor, Tensor], beam: int, penalty: float
) -> None:
    model, (source, _) = tiny.translator(preset), batch
    for row, found in enumerate(run(model, source, beam, penalty=penalty)):
        own = source[row][source[row] != PAD][None]
        expected = log_probability(model, own, found.tokens) / (len(found.tokens) + 1) ** penalty
        assert found.score == pytest.approx(expected, abs=1e-4)


@every_preset
@given(batch=tiny.batches(), beam=st.integers(1, 4))
def test_a_sentence_does_not_depend_on_its_batch_mates(preset: str, batch: tuple[Tensor, Tensor], beam: int) -> None:
    model, (source, _) = tiny.translator(preset), batch
    together = run(model, source, beam)
    for row, found in enumerate(together):
        own = source[row][source[row] != PAD][None]
        assert run(model, own, beam)[0].tokens == found.tokens


@every_preset
@given(batch=tiny.batches())
def test_a_beam_of_one_is_greedy(preset: str, batch: tuple[Tensor, Tensor]) -> None:
    model, (source, _) = tiny.translator(preset), batch
    for row, found in enumerate(run(model, source, 1)):
        own = source[row][source[row] != PAD][None]
        token, state = model.start(own)
        written: list[int] = []
        with torch.no_grad():
            while len(written) < 6:
                logits, state = model.step(token, state)
                logits[:, [PAD, START, UNK]] = -torch.inf
                token = logits.argmax(-1)
                if token.item() == END:
                    break
                written.append(int(token))
        assert found.tokens == written


@pytest.mark.parametrize("preset", ["gru", "bahdanau", "transformer-tiny"])
def test_a_very_wide_beam_is_exhaustive_search(preset: str) -> None:
    torch.manual_seed(3)
    import regard  # noqa: PLC0415

    model = regard.encoder_decoder(tiny.settings(preset).model, tiny.SOURCE_SIZE, 7).double().eval()
    with torch.no_grad():
        for parameter in model.decoder.output.parameters():
            parameter.mul_(4)  # so that the odds differ
    source, longest = tiny.rows([4], tiny.SOURCE_SIZE, 5), 3
    letters = [token for token in range(7) if token not in (PAD, START, END, UNK)]
    outputs = [list(word) for length in range(longest) for word in product(letters, repeat=length)]
    best = max(outputs, key=lambda word: log_probability(model, source, word) / (len(word) + 1))
    assert run(model, source, 200, limit=longest)[0].tokens == best


def test_an_output_ends_at_its_own_limit() -> None:
    model, source = tiny.translator("gru"), tiny.rows([3, 3, 3], tiny.SOURCE_SIZE, 1)
    first, state = model.start(source)
    found = search(model, first, state, torch.tensor([1, 2, 5]), beam=3)
    assert [len(hypothesis.tokens) < limit for hypothesis, limit in zip(found, (1, 2, 5), strict=True)] == [True] * 3
