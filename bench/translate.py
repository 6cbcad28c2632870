"""Search against `generate` of `transformers` on the same weights, and how its time grows with sentence length.

    python bench/translate.py [--run RUN --source FILE] [--sentences N] [--batch 64] [--rounds N] [--ledger]
    python bench/translate.py --growth [--ledger]

Without a run, both sides have the same random weights (3 + 3 layers, width 256, 8,000 tokens) and every sentence
is made to end at a length of its own, as long as its source; with a run (a Transformer with model.norm_place=after
and model.tie=all), its weights are copied into a MarianMTModel, and FILE is translated. Regard sorts sentences by
length and fills batches as `regard translate` does; `generate` gets batches of 64 twice, in the order of the file and
sorted by length. Rounds are interleaved; the figures are medians of ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, MarianConfig, MarianMTModel

import regard
from ledger import enter, exponent
from regard.convert.huggingface import from_transformers
from regard.decode.rules import Beam
from regard.decode.search import of_like_length, search
from regard.decode.texts import BUDGET
from regard.models.generator import EncoderDecoder
from regard.settings import TransformerModel
from regard.tasks.load import load
from regard.text.vocabulary import END, PAD, START, UNK

NEVER = -1e4  # a bias that lets nothing end before its limit
LENGTHS = (10, 20, 40, 80, 160)


@dataclass(frozen=True)
class Match:
    """The same model twice, and what it is to translate."""

    theirs: MarianMTModel
    ours: EncoderDecoder
    rows: list[list[int]]
    limits: list[int]
    batch: int
    budget: int = BUDGET

    def batches(self, *, ordered: bool, budget: int | None = None) -> list[tuple[list[int], Tensor, Tensor]]:
        """Numbers of sentences, sources (B, S) and limits (B,); ``ordered`` by length or as they come.

        With a ``budget`` a batch has so many tokens, as in `regard.decode.texts`, and not so many sentences.
        """
        numbers = sorted(range(len(self.rows)), key=lambda row: len(self.rows[row]) if ordered else row)
        groups = [numbers[start : start + self.batch] for start in range(0, len(numbers), self.batch)]
        if budget is not None:
            groups = list(of_like_length([len(row) for row in self.rows], budget))
        result = []
        for group in groups:
            width = max(len(self.rows[row]) for row in group)
            source = torch.tensor([self.rows[row] + [PAD] * (width - len(self.rows[row])) for row in group])
            result.append((group, source, torch.tensor([self.limits[row] for row in group])))
        return result


class EndAtLimit(LogitsProcessor):
    """Ends each sentence at its own limit, as search does."""

    def __init__(self, limits: Tensor, beam: int) -> None:
        self.limits = limits.repeat_interleave(beam)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        rows = (input_ids.shape[1] >= self.limits).nonzero().squeeze(1)
        if len(rows):
            ends = scores[rows, END]
            scores[rows] = -torch.inf
            scores[rows, END] = ends
        return scores


def marian(model: TransformerModel, vocabulary: int) -> MarianMTModel:
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=model.width,
        encoder_layers=model.encoder_depth,
        decoder_layers=model.decoder_depth,
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        encoder_ffn_dim=model.hidden,
        decoder_ffn_dim=model.hidden,
        max_position_embeddings=1024,
        activation_function=model.activation,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        scale_embedding=True,
    )
    return MarianMTModel(config).eval()


def random_match(sentences: int, batch: int) -> Match:
    torch.manual_seed(0)
    settings = regard.load_settings("transformer-small").model
    assert isinstance(settings, TransformerModel)
    theirs = marian(settings, 8000)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.mul_(3)  # so that the odds differ
        theirs.final_logits_bias[0, END] = NEVER
    lengths = torch.randn(sentences).mul(5).add(15).round().clamp(4, 40).long().tolist()
    rows = [[*torch.randint(4, 8000, (length,)).tolist(), END] for length in lengths]
    return Match(theirs, from_transformers(theirs)[0], rows, lengths, batch)


def run_match(run: Path, source: Path, sentences: int, batch: int) -> Match:
    translator = load(run)
    settings = regard.load_settings(str(run / "settings.toml")).model
    assert isinstance(settings, TransformerModel)
    theirs = marian(settings, translator.tokenizers.target.size)
    copy_into(theirs, translator.model)
    lines = source.read_text(encoding="utf-8").splitlines()[:sentences]
    rows = [[*translator.tokenizers.source.encode(line), END] for line in lines]
    return Match(theirs, translator.model, rows, [2 * len(row) + 10 for row in rows], batch)


@torch.no_grad()
def copy_into(theirs: MarianMTModel, ours: EncoderDecoder) -> None:
    """`from_transformers` backwards: let it carry numbers instead of weights, and see where each arrives."""
    named = {name: tensor for name, tensor in theirs.double().state_dict().items() if "embed_positions" not in name}
    tensors = {tensor.data_ptr(): tensor for tensor in named.values()}.values()  # tied ones once
    first = 0
    for tensor in tensors:
        tensor.copy_(torch.arange(first, first + tensor.numel()).reshape(tensor.shape))
        first += tensor.numel()
    values = torch.zeros(first, dtype=torch.float64)
    numbers = from_transformers(theirs)[0].state_dict()
    for name, tensor in ours.state_dict().items():
        if name in numbers:
            values[numbers[name].round().long().flatten()] = tensor.double().flatten()
    for tensor in tensors:
        tensor.copy_(values[tensor.round().long()])
    theirs.float().eval()


def regard_outputs(match: Match, beam: int) -> list[list[int]]:
    outputs: list[list[int]] = [[] for _ in match.rows]
    with torch.inference_mode():
        for numbers, source, limits in match.batches(ordered=True, budget=match.budget // beam):
            first, state = match.ours.start(source)
            found = search(match.ours, first, state, limits, rule=Beam(beam))
            for number, (best,) in zip(numbers, found, strict=True):
                outputs[number] = best.tokens
    return outputs


def their_outputs(match: Match, beam: int, *, ordered: bool) -> list[list[int]]:
    outputs: list[list[int]] = [[] for _ in match.rows]
    for numbers, source, limits in match.batches(ordered=ordered):
        config = GenerationConfig(
            num_beams=beam,
            early_stopping=beam > 1,
            do_sample=False,
            max_length=int(limits.max()) + 1,
            suppress_tokens=[PAD, START, UNK],
            pad_token_id=PAD,
            eos_token_id=END,
            decoder_start_token_id=START,
        )
        found = match.theirs.generate(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            generation_config=config,
            logits_processor=LogitsProcessorList([EndAtLimit(limits, beam)]),
        )
        for number, row in zip(numbers, found.tolist(), strict=True):
            outputs[number] = [token for token in row if token not in (PAD, START, END)]
    return outputs


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def compare(match: Match, beam: int, rounds: int) -> dict[str, object]:
    """`generate` on batches as the sentences come, and on our batches, sorted by length."""
    sides: dict[str, Callable[[], list[list[int]]]] = {
        "regard": lambda: regard_outputs(match, beam),
        "generate": lambda: their_outputs(match, beam, ordered=False),
        "generate_sorted": lambda: their_outputs(match, beam, ordered=True),
    }
    outputs = {name: side() for name, side in sides.items()}
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            spent[name].append(seconds(side))
    result: dict[str, object] = {"beam": beam, "sentences": len(match.rows)}
    for name, times in spent.items():
        result[f"{name}_sentences_per_second"] = round(len(match.rows) / statistics.median(times), 1)
    for name in ("generate", "generate_sorted"):
        ratios = [theirs / ours for ours, theirs in zip(spent["regard"], spent[name], strict=True)]
        equal = sum(a == b for a, b in zip(outputs["regard"], outputs[name], strict=True))
        result[f"times_{name}"] = round(statistics.median(ratios), 2)
        result[f"times_{name}_range"] = [round(min(ratios), 2), round(max(ratios), 2)]
        result[f"equal_to_{name}"] = equal / len(match.rows)
    return result


def growth(preset: str, rounds: int) -> dict[str, object]:
    """Seconds a sentence, greedy, source and output of the same length; the exponent of ``time ∝ length^e``."""
    torch.manual_seed(0)
    model = regard.encoder_decoder(regard.load_settings(preset).model, 8000, 8000).eval()
    with torch.no_grad():
        model.decoder.output.bias[END] = NEVER
    spent: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for trial in range(rounds + 1):
        for length in LENGTHS:
            source, limits = torch.randint(4, 8000, (8, length)), torch.full((8,), length)

            def once(source: Tensor = source, limits: Tensor = limits) -> None:
                with torch.inference_mode():
                    search(model, *model.start(source), limits, rule=Beam(1))

            took = seconds(once)
            if trial:  # the first round warms up
                spent[length].append(took / 8)
    medians = [statistics.median(spent[length]) for length in LENGTHS]
    each = [round(value, 5) for value in medians]
    return {"preset": preset, "sizes": LENGTHS, "seconds": each, "exponent": round(exponent(LENGTHS, medians), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Sentences a second against generate; above 1 Regard is faster.")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--presets", nargs="+", default=["lstm", "bahdanau", "transformer-small"])
    parser.add_argument("--ledger", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    measured = {"torch": torch.__version__, "threads": options.threads}
    if (options.run is None) != (options.source is None):
        parser.error("--run and --source go together")
    if options.growth:
        for preset in options.presets:
            result = growth(preset, options.rounds)
            print(json.dumps(result), flush=True)
            if options.ledger:
                enter("growth", measured | result, "python bench/translate.py --growth --ledger")
        return
    if options.run is None:
        match, weights = random_match(options.sentences, options.batch), "random"
    else:
        match = run_match(options.run, options.source, options.sentences, options.batch)
        weights = f"{options.run.name}, {options.source.name}"
    for beam in options.beams:
        result = {"weights": weights, "batch": options.batch, **compare(match, beam, options.rounds)}
        print(json.dumps(result), flush=True)
        if options.ledger:
            flags = "" if options.run is None else f" --run {options.run.name} --source {options.source.name}"
            enter("translate", measured | result, f"python bench/translate.py{flags} --batch {options.batch} --ledger")


if __name__ == "__main__":
    main()
