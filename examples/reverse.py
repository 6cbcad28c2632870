"""Watch attention learn where to look: a model that writes a sequence back to front.

    python examples/reverse.py [PRESET] [--steps N]

Nothing tells the model which source position matters for which output; after a minute on two cores its
attention has become an anti-diagonal all the same.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from torch import Tensor

import regard
from regard.models.generator import EncoderDecoder
from regard.text.vocabulary import END, PAD, START

LETTERS = "abcdefghijklmnopqrstuvwxyz"
OFFSET = 4  # the special tokens come first
SIZE = OFFSET + len(LETTERS)


def batch(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random words of 3 to 10 letters and the same words reversed, between <start> and <end>."""
    lengths = torch.randint(3, 11, (rows,), generator=generator)
    source = torch.full((rows, 11), PAD)
    target = torch.full((rows, 12), PAD)
    for row, length in enumerate(lengths.tolist()):
        word = torch.randint(OFFSET, SIZE, (length,), generator=generator)
        source[row, : length + 1] = torch.cat((word, torch.tensor([END])))
        target[row, : length + 2] = torch.cat((torch.tensor([START]), word.flip(0), torch.tensor([END])))
    return source, target


def train(model: EncoderDecoder, steps: int) -> None:
    """Teacher forcing, cross-entropy, Adam: the least that trains."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    began = time.monotonic()
    for step in range(1, steps + 1):
        source, target = batch(64, generator)
        logits = model(source, target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % max(1, steps // 6) == 0:
            print(f"step {step:4d}   loss {loss.item():.3f}   {time.monotonic() - began:3.0f} s", file=sys.stderr)


@torch.no_grad()
def write(model: EncoderDecoder, source: Tensor, longest: int = 20) -> Tensor:
    """Greedy generation: each step reads what the step before wrote, until <end>."""
    token, state = model.start(source)
    written = [token]
    while len(written) < longest and token.item() != END:
        logits, state = model.step(token, state)
        token = logits.argmax(-1)
        written.append(token)
    return torch.stack(written, 1)


@torch.no_grad()
def cross_attention(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor | None:
    """Replay a finished output with a recorder beside it; the last layer's weights, heads averaged, (T, S)."""
    watch = regard.Recorder()
    model(source, target, observer=watch)
    names = [name for name in watch.names() if name.endswith("cross.weights")]
    return watch[names[-1]][0].mean(0) if names else None


def letters(ids: Tensor) -> list[str]:
    return [LETTERS[number - OFFSET] if number >= OFFSET else "·" for number in ids.tolist()]


def show(weights: Tensor, source: Tensor, target: Tensor) -> None:
    """One row for each written letter: the darker, the more it looked there."""
    print("\n     " + " ".join(letters(source)))
    for token, row in zip(letters(target), weights.tolist(), strict=True):
        print(f"  {token}  " + " ".join(" ░▒▓█"[min(4, int(weight * 5))] for weight in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("preset", nargs="?", default="bahdanau", choices=regard.preset_names())
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    sizes = ["model.width=64", "model.hidden=128"]
    model = regard.encoder_decoder(regard.load_settings(arguments.preset, *sizes).model, SIZE, SIZE)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{arguments.preset}: {count:,} parameters, {arguments.steps} steps of 64 words", file=sys.stderr)
    train(model, arguments.steps)

    model.eval()
    word = "regard"
    source = torch.tensor([[*(OFFSET + LETTERS.index(letter) for letter in word), END]])
    output = write(model, source)
    print(f"{word} → {''.join(letters(output[0, 1:])).rstrip('·')}")
    weights = cross_attention(model, source, output[:, :-1])
    if weights is None:
        print(f"{arguments.preset} has no attention: all it knows of the word is one vector", file=sys.stderr)
    else:
        show(weights, source[0], output[0, 1:])


if __name__ == "__main__":
    main()
