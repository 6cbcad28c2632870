"""Several models that write as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.chain import Chain
from regard.nn.observe import UNOBSERVED, Observer
from regard.nn.state import State


class Ensemble(nn.Module):
    """``p(y_t | y_<t, x) = 1/M Σ_m p_m(y_t | y_<t, x)`` over models with one vocabulary.

    It starts and steps as a single model does; its state is a tuple of theirs, and `State.select` reaches all.
    """

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        super().__init__()
        if not models:
            raise ModelError("ensemble = []: needs at least one model")
        for number, model in enumerate(models):
            if (model.first, model.pad) != (models[0].first, models[0].pad):
                raise ModelError(
                    f"ensemble[{number}]: begins with token {model.first} and pads with {model.pad}, the first model "
                    f"with {models[0].first} and {models[0].pad}; models of an ensemble share one vocabulary"
                )
        self.models = Chain[EncoderDecoder](models)

    def start(
        self, source: Tensor, mask: Tensor | None = None, observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """Every model reads ``source`` (B, S)."""
        starts = [model.start(source, mask, observer.at(number)) for number, model in enumerate(self.models)]
        return starts[0][0], _join([state for _, state in starts])

    def step(
        self, tokens: Tensor, state: State[Any, Any], observer: Observer = UNOBSERVED
    ) -> tuple[Tensor, State[Any, Any]]:
        """One token further: the logarithms (B, V) of the mean probabilities."""
        log_probabilities: list[Tensor] = []
        states = []
        for number, model in enumerate(self.models):
            own = State(state.source[number], state.target[number], state.length)
            logits, own = model.step(tokens, own, observer.at(number))
            if log_probabilities and logits.shape != log_probabilities[0].shape:
                raise ModelError(
                    f"ensemble[{number}]: writes one of {logits.shape[1]:,} tokens, the first model one of "
                    f"{log_probabilities[0].shape[1]:,}; models of an ensemble share one vocabulary"
                )
            log_probabilities.append((logits if logits.dtype == torch.float64 else logits.float()).log_softmax(-1))
            states.append(own)
        return torch.stack(log_probabilities).logsumexp(0) - math.log(len(log_probabilities)), _join(states)


def _join(states: list[State[Any, Any]]) -> State[Any, Any]:
    return State(tuple(state.source for state in states), tuple(state.target for state in states), states[0].length)
