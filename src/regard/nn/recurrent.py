"""Recurrent networks: Elman, LSTM and GRU cells, layers of one or two directions, and stacks of layers.

The cells are written-out equations over the weights of a torch module; a layer uses torch's fused kernel without an
observer, and the written-out loop with one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.nn import masks
from regard.nn.fast.dropout import Dropout
from regard.nn.layers import Chain
from regard.nn.observe import UNOBSERVED, Observer


@dataclass(frozen=True)
class CellState:
    """What a cell carries from one step to the next."""

    hidden: Tensor  # (B, D)
    cell: Tensor | None = None  # (B, D), the LSTM's long-term memory


StepFunction = Callable[[Tensor, CellState, Tensor, Tensor, Observer], CellState]


def elman_step(inputs: Tensor, state: CellState, weight: Tensor, bias: Tensor, observer: Observer) -> CellState:
    """``h = tanh(W_x x + W_h h' + b)`` (Elman, 1990). ``inputs`` holds ``W_x x + b_x`` already."""
    return CellState(_seen(observer, "hidden", torch.tanh(inputs + F.linear(state.hidden, weight, bias))))


def lstm_step(inputs: Tensor, state: CellState, weight: Tensor, bias: Tensor, observer: Observer) -> CellState:
    """Gates i, f, o and candidate g; ``c = f ⊙ c' + i ⊙ g``, ``h = o ⊙ tanh(c)``.

    Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000). Because ``c`` is updated by a sum and
    not by a product with a matrix, its gradient need not vanish.
    """
    assert state.cell is not None
    gates = inputs + F.linear(state.hidden, weight, bias)  # (B, 4 D)
    write, forget, candidate, read = gates.chunk(4, dim=-1)
    write = _seen(observer, "input", torch.sigmoid(write))
    forget = _seen(observer, "forget", torch.sigmoid(forget))
    candidate = _seen(observer, "candidate", torch.tanh(candidate))
    read = _seen(observer, "output", torch.sigmoid(read))
    cell = _seen(observer, "cell", forget * state.cell + write * candidate)
    return CellState(_seen(observer, "hidden", read * torch.tanh(cell)), cell)


def gru_step(inputs: Tensor, state: CellState, weight: Tensor, bias: Tensor, observer: Observer) -> CellState:
    """Reset r, update z; ``n = tanh(W_x x + b_x + r ⊙ (W_h h' + b_h))``, ``h = (1 − z) ⊙ n + z ⊙ h'``.

    Cho et al. (2014), in the form of the fused kernels: the reset gate acts after the product with W_h.
    """
    reset_x, update_x, new_x = inputs.chunk(3, dim=-1)
    reset_h, update_h, new_h = F.linear(state.hidden, weight, bias).chunk(3, dim=-1)
    reset = _seen(observer, "reset", torch.sigmoid(reset_x + reset_h))
    update = _seen(observer, "update", torch.sigmoid(update_x + update_h))
    candidate = _seen(observer, "candidate", torch.tanh(new_x + reset * new_h))
    return CellState(_seen(observer, "hidden", (1 - update) * candidate + update * state.hidden))


def _seen(observer: Observer, name: str, value: Tensor) -> Tensor:
    """Show one step's ``(B, D)`` with a time axis, ``(B, 1, D)``, so that steps can be joined."""
    return observer.see(name, value.unsqueeze(-2)).squeeze(-2) if observer.active else value


@dataclass(frozen=True)
class Cell:
    """A kind of cell: its equation, and the torch module with its weights and its fused kernel."""

    fused: Callable[..., nn.RNNBase]
    step: StepFunction
    has_cell: bool = False

    def zero_state(self, rows: int, hidden: int, like: Tensor) -> CellState:
        zeros = like.new_zeros(rows, hidden)
        return CellState(zeros, zeros if self.has_cell else None)


ELMAN = Cell(nn.RNN, elman_step)
LSTM = Cell(nn.LSTM, lstm_step, has_cell=True)
GRU = Cell(nn.GRU, gru_step)


class Layer(nn.Module):
    """One recurrent layer over a right-padded batch, forwards or both ways.

    Both ways, the outputs and the final state are the two directions side by side.
    """

    def __init__(self, cell: Cell, width: int, hidden: int, *, bidirectional: bool = False) -> None:
        super().__init__()
        self.cell = cell
        self.hidden = hidden
        self.bidirectional = bidirectional
        self.kernel = cell.fused(width, hidden, batch_first=True, bidirectional=bidirectional)
        if cell.has_cell:
            self._open_forget_gates()

    def _open_forget_gates(self) -> None:
        """Forget bias 1: an untrained LSTM remembers (Gers et al., 2000; Jozefowicz et al., 2015)."""
        for name, parameter in self.kernel.named_parameters():
            if "bias" in name:
                gate = parameter.data[self.hidden : 2 * self.hidden]
                gate.fill_(1.0 if "bias_ih" in name else 0.0)

    @property
    def width(self) -> int:
        """Of the outputs."""
        return self.hidden * (2 if self.bidirectional else 1)

    def forward(
        self,
        x: Tensor,
        state: CellState | None = None,
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
        *,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, CellState]:
        """``x`` (B, T, D) → outputs (B, T, width), zero on padding, and the state after each last token.

        ``lengths`` (B,), on the CPU, are those of the mask: a stack of layers copies them from a GPU once.
        """
        state = state or self.cell.zero_state(len(x), self.width, x)
        if mask is not None and lengths is None:
            lengths = row_lengths(x, mask, observer)
        if observer.active or (mask is not None and lengths is None):
            return self._written_out(x, state, mask, observer)
        return self._fused(x, state, lengths)

    def project(self, x: Tensor) -> Tensor:
        """``W_x x + b_x``, the input of `step`. ``x`` may be all steps at once, or only the input's first features."""
        weight, bias, _, _ = self._weights()
        return F.linear(x, weight[:, : x.shape[-1]], bias)

    def rest(self, width: int) -> Tensor:
        """The columns of W_x for the input's last features, a context or a fed-back state, known later. A loop calls
        this once, because the gradient of each call is as large as W_x."""
        weight, _, _, _ = self._weights()
        return weight[:, -width:]

    def step(self, projected: Tensor, state: CellState, observer: Observer = UNOBSERVED) -> CellState:
        """One step from an input that went through `project`."""
        _, _, weight, bias = self._weights()
        return self.cell.step(projected, state, weight, bias, observer)

    def _weights(self, direction: str = "") -> list[Tensor]:
        """``W_x, b_x, W_h, b_h`` of the forward direction, or of ``_reverse``."""
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        return [getattr(self.kernel, f"{name}_l0{direction}") for name in names]

    def _written_out(
        self, x: Tensor, state: CellState, mask: Tensor | None, observer: Observer
    ) -> tuple[Tensor, CellState]:
        if not self.bidirectional:
            return self._run(x, state, mask, "", observer)
        real = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        there, back = (_each(lambda both, side=side: both.chunk(2, -1)[side], state) for side in (0, 1))
        outputs, last = self._run(x, there, mask, "", observer.at("forward"))
        mirrored, first = self._run(masks.reverse(x, real), back, mask, "_reverse", observer.at("backward"))
        final = _each(lambda *ways: torch.cat(ways, -1), last, first)
        return torch.cat((outputs, masks.reverse(mirrored, real)), -1), final

    def _run(
        self, x: Tensor, state: CellState, mask: Tensor | None, direction: str, observer: Observer
    ) -> tuple[Tensor, CellState]:
        """The loop over time in one direction. A row keeps its state after its last token."""
        weight_x, bias_x, weight_h, bias_h = self._weights(direction)
        projected = F.linear(x, weight_x, bias_x)
        outputs = []
        for time in range(x.shape[1]):
            new = self.cell.step(projected[:, time], state, weight_h, bias_h, observer)
            real = None if mask is None else mask[:, time, None]
            state = new if real is None else _where(real, new, state)
            outputs.append(new.hidden if real is None else new.hidden * real)
        return torch.stack(outputs, 1), state

    def _fused(self, x: Tensor, state: CellState, lengths: Tensor | None) -> tuple[Tensor, CellState]:
        """Torch's kernel; rows of unequal length are packed, so that no step is computed for padding."""
        size = x.shape[1]
        if lengths is None or bool((lengths == size).all()):
            outputs, final = self.kernel(x, self._to_kernel(state))
            return outputs, self._from_kernel(final)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed, final = self.kernel(packed, self._to_kernel(state))
        outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=size)
        return outputs, self._from_kernel(final)

    def _to_kernel(self, state: CellState) -> Tensor | tuple[Tensor, Tensor]:
        """(B, directions · hidden) → torch's (directions, B, hidden)."""
        parts = [
            part.reshape(len(part), -1, self.hidden).transpose(0, 1).contiguous()
            for part in (state.hidden, state.cell)
            if part is not None
        ]
        return (parts[0], parts[1]) if self.cell.has_cell else parts[0]

    def _from_kernel(self, final: Tensor | tuple[Tensor, Tensor]) -> CellState:
        parts = final if isinstance(final, tuple) else (final,)
        return CellState(*(part.transpose(0, 1).flatten(1) for part in parts))


def row_lengths(x: Tensor, mask: Tensor | None, observer: Observer) -> Tensor | None:
    """The lengths of the rows, (B,) on the CPU, for the fused kernel; None if the loop runs instead: it needs none, and
    a graph that is being captured cannot wait for them."""
    if mask is None or observer.active or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None
    return mask.sum(1).cpu()


def _each(work: Callable[..., Tensor], *states: CellState) -> CellState:
    """Apply a function to the hidden states and, if there are any, to the cells."""
    cells = [state.cell for state in states if state.cell is not None]
    return CellState(work(*(state.hidden for state in states)), work(*cells) if cells else None)


def _where(real: Tensor, new: CellState, old: CellState) -> CellState:
    return _each(lambda one, other: torch.where(real, one, other), new, old)


class Stack(nn.Module):
    """Several layers (a deep RNN), with dropout between them.

    Plain dropout is drawn for every step; variational dropout once for a sequence (Gal and Ghahramani, 2016), so that a
    feature is dropped for the whole sentence or not at all.
    """

    def __init__(
        self,
        cell: Cell,
        width: int,
        hidden: int,
        depth: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        variational: bool = False,
    ) -> None:
        super().__init__()
        sizes = [width] + [hidden * (2 if bidirectional else 1)] * (depth - 1)
        self.layers = Chain[Layer](Layer(cell, size, hidden, bidirectional=bidirectional) for size in sizes)
        self.dropout = Dropout(dropout)
        self.variational = variational

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def width(self) -> int:
        """Of the outputs."""
        return self.layers[-1].width

    def zero_state(self, rows: int, like: Tensor) -> tuple[CellState, ...]:
        return tuple(layer.cell.zero_state(rows, layer.width, like) for layer in self.layers)

    def forward(
        self,
        x: Tensor,
        states: Sequence[CellState] | None = None,
        mask: Tensor | None = None,
        observer: Observer = UNOBSERVED,
    ) -> tuple[Tensor, tuple[CellState, ...]]:
        """``x`` (B, T, D) → the top layer's outputs and every layer's last state."""
        final, lengths = [], row_lengths(x, mask, observer)
        for level, layer in enumerate(self.layers):
            noise = self.noise(x) if level else None
            x = x if noise is None else x * noise
            before, watch = None if states is None else states[level], observer.at(level)
            x, state = layer(x, before, mask, watch.at("cell"), lengths=lengths)
            x = watch.see("states", x)
            final.append(state)
        return x, tuple(final)

    def step(
        self,
        projected: Tensor,
        states: Sequence[CellState],
        noises: Sequence[Tensor | None],
        time: int,
        observer: Observer = UNOBSERVED,
    ) -> tuple[CellState, ...]:
        """Step ``time`` through all layers; ``projected`` (B, G) went through the first layer's `project`.

        A layer's output is also its state: if an observer changes it, the next step starts from that.
        """
        final: list[CellState] = []
        for level, layer in enumerate(self.layers):
            if level:
                below = final[-1].hidden
                noise = noises[level - 1]
                if noise is not None:
                    below = below * noise[:, min(time, noise.shape[1] - 1)]
                projected = layer.project(below)
            watch = observer.at(level)
            state = layer.step(projected, states[level], watch.at("cell"))
            final.append(replace(state, hidden=watch.see("states", state.hidden[:, None])[:, 0]))
        return tuple(final)

    def noises(self, like: Tensor) -> tuple[Tensor | None, ...]:
        """The `noises` of `step` for a sequence: a dropout mask between each two layers, for ``like`` (B, T, …)."""
        hidden = like.new_empty(*like.shape[:2], self.width)
        return tuple(self.noise(hidden) for _ in range(self.depth - 1))

    def noise(self, like: Tensor) -> Tensor | None:
        """A dropout mask for ``like`` (B, T, D), already scaled; None if nothing is dropped."""
        if not self.training or self.dropout.p == 0.0:
            return None
        rows, steps, width = like.shape
        return self.dropout(like.new_ones(rows, 1 if self.variational else steps, width))
