"""A walkthrough shows the model's own numbers, and its snippets give them again."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
import tiny
from regard.errors import DataError, ModelError
from regard.explain.replay import Model, Spelling, replay
from regard.explain.trace import Trace
from regard.explain.walkthrough.prose import PROSE
from regard.explain.walkthrough.render import headline, markdown, table, terminal
from regard.explain.walkthrough.step import Step, Walkthrough
from regard.explain.walkthrough.walk import NoSuchPlaceError, walkthrough
from regard.models.generator import EncoderDecoder, Labeller
from regard.nn import attention
from regard.nn.layers import BatchNorm
from regard.tasks.labels import Reader
from regard.text.vocabulary import END, SILENT
from regard.text.words import WordTokenizer

SOURCE, TARGET = [5, 9, 7, 11, 13, END], [8, 21, 5, 17, END]
ATTENTIONS = ("encoder_attention", "decoder_attention", "cross_attention")


def every(setting: str) -> tuple[str, ...]:
    return tuple(f"model.{attention}.{setting}" for attention in ATTENTIONS)


VARIANTS = {
    "learned positions, after, rms, gelu": (
        "transformer-tiny",
        ("model.positions=learned", "model.norm_place=after", "model.norm=rms", "model.activation=gelu"),
    ),
    "rotary, batch, swiglu": (
        "transformer-tiny",
        ("model.positions=rotary", "model.width=18", "model.norm=batch", "model.activation=swiglu"),
    ),
    "no positions, silu, one-hot": (
        "transformer-tiny",
        ("model.positions=none", "model.activation=silu", "model.embedding=one_hot"),
    ),
    "ssru, halves, zero start": (
        "transformer-tiny",
        ("model.autoregression=ssru", "model.interleaved=false", "model.frequencies=marian", "model.start=zero"),
    ),
    "embedding norm, no scale, first position, ssru after": (
        "transformer-tiny",
        (
            *("model.embedding_norm=true", "model.embedding_scale=false", "model.first_position=2"),
            *("model.autoregression=ssru", "model.norm_place=after", "model.final_norm=yes"),
        ),
    ),
    "batch after, halves": (
        "transformer-tiny",
        ("model.norm=batch", "model.norm_place=after", "model.interleaved=false"),
    ),
    "additive": ("transformer-tiny", every("score=additive")),
    "general, frequencies to the last": ("transformer-tiny", (*every("score=general"), "model.frequencies=marian")),
    "cosine, relu": ("transformer-tiny", (*every("score=cosine"), *every("normaliser=relu"))),
    "dot, hard": ("transformer-tiny", (*every("score=dot"), *every("selection=hard"))),
    "monotonic windows": (
        "transformer-tiny",
        (*every("window.kind=monotonic"), *every("window.reach=1")),
    ),
    "predicted windows, hard": (
        "transformer-tiny",
        (
            "model.cross_attention.selection=hard",
            *(f"model.{name}.window.{knob}" for name in ATTENTIONS[::2] for knob in ("kind=predicted", "reach=2")),
        ),
    ),
    "a bridge, both ways, Elman": ("rnn", ("model.bidirectional=true", "model.bridge=dense")),
    "both ways, LSTM": ("lstm", ("model.bidirectional=true", "model.bridge=dense", "model.depth=2")),
    "a mean, two layers, LSTM": ("lstm", ("model.bridge=mean", "model.depth=2")),
    "deep conditional, LSTM": ("conditional", ("model.depth=2", "model.cell=lstm")),
    "conditional with a layer from zeros": (
        "conditional",
        ("model.decoder.second=layer", "model.bridge=zero", "model.annotations=dense"),
    ),
    "deep Bahdanau": ("bahdanau", ("model.depth=2",)),
    "Bahdanau with projected heads": (
        "bahdanau",
        ("model.hidden=6", "model.decoder.attention.heads=2", "model.decoder.attention.projected=true"),
    ),
    "Luong with plain heads": ("luong-dot", ("model.hidden=6", "model.decoder.attention.heads=2")),
    "Luong without feeding": ("luong-general", ("model.decoder.feeding=false", "model.cell=gru")),
    "Luong, monotonic": (
        "luong-concat",
        ("model.decoder.attention.window.kind=monotonic", "model.decoder.attention.window.reach=1"),
    ),
}
CASES = {preset: (preset, ()) for preset in tiny.PRESETS} | VARIANTS


def made(case: str) -> EncoderDecoder:
    preset, overrides = CASES[case]
    model = tiny.translator(preset, *overrides)
    if "batch" in case:
        model = copy.deepcopy(model)
        for part in model.modules():
            if isinstance(part, BatchNorm):
                part.running_mean.normal_(std=0.3)
                part.running_variance.uniform_(0.5, 2.0)
    return model


def alone(step: Step) -> Tensor:
    """The snippet as a reader runs it: torch, the inputs, and nothing else."""
    namespace: dict[str, Any] = {"torch": torch, **step.inputs}
    exec(compile(step.snippet, step.name, "exec"), namespace)
    result = namespace["result"]
    assert isinstance(result, Tensor)
    return result


def same(shown: Tensor, used: Tensor, tolerance: float, where: str) -> None:
    assert shown.shape == used.shape, where
    finite = used.isfinite()
    assert torch.equal(shown.isfinite(), finite), where
    shown, used = shown[finite].double(), used[finite].double()
    largest = max(1.0, float(used.abs().max()))
    assert float((shown - used).abs().max()) <= tolerance * largest, where


def look_up(origin: str, walk: Walkthrough, trace: Trace, model: nn.Module) -> Tensor:
    """The tensor that an origin names, found without the walkthrough's help."""
    kind, _, rest = origin.partition(" ")
    name, _, index = rest.partition("[")
    value = walk[name].output if kind == "step" else trace.tensors[name] if kind == "trace" else weight(model, name)
    return eval(f"value[{index}", {"value": value.detach()}) if index else value.detach()  # type: ignore[no-any-return]


def weight(model: nn.Module, name: str) -> Tensor:
    """A parameter or a buffer."""
    place, _, last = name.rpartition(".")
    part = model.get_submodule(place)
    return dict((*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)))[last]


def verify(walk: Walkthrough, model: Model, trace: Trace, tolerance: float) -> None:
    """All that a walkthrough promises."""
    names = [step.name for step in walk]
    assert len(set(names)) == len(names)
    used: set[str] = set()
    for step in walk:
        same(alone(step), step.output, tolerance, step.name)
        same(step.run(), step.output, tolerance, step.name)
        assert len(step.snippet.splitlines()) <= 8
        assert all(len(line) <= 110 for line in step.snippet.splitlines())
        assert len(step.axes) == step.output.dim()
        assert [axis.size for axis in step.axes] == list(step.output.shape)
        assert all(len(axis.labels) == len(axis.shown) for axis in step.axes)
        for name, origin in step.origins.items():
            if origin == "zeros":
                assert step.inputs[name].eq(0).all()
            else:
                assert torch.equal(step.inputs[name], look_up(origin, walk, trace, model)), f"{step.name}: {name}"
        used |= {re.split(r"[ \[]", origin)[1] for origin in step.origins.values() if origin.startswith("step ")}
        if step.recorded:
            assert torch.equal(step.output, look_up(f"trace {step.recorded}", walk, trace, model)), step.name
        else:  # something later is made of it, up to the end
            assert (
                step.part in ("context", "output") or ".first." in step.name or step.name in used or later(walk, step)
            )
    if "probability" in names:
        row = 0 if len(trace.target) == 1 else walk.position
        same(walk["probability"].output.log(), trace.log_probability[row], tolerance, "probability")


def later(walk: Walkthrough, step: Step) -> bool:
    return any(f"step {step.name}" in origin for other in walk for origin in other.origins.values())


def hooked(model: nn.Module, source: list[int], target: list[int]) -> dict[str, Tensor]:
    """What each module gave in an ordinary, unobserved pass, by the module's name."""
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                seen[name] = output[0].detach()

        return hook

    handles = [part.register_forward_hook(keep(name)) for name, part in model.named_modules()]
    with torch.no_grad():
        model(torch.tensor([source]), torch.tensor([[1, *target[:-1]]]))
    for handle in handles:
        handle.remove()
    return seen


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", ["first", "later"])
def test_every_snippet_gives_the_number_shown_and_the_model_used_it(case: str, place: str) -> None:
    model = made(case)
    deep = case.startswith(("transformer", "luong", "lstm-deep", "both ways, LSTM", "deep", "Luong"))
    layer, position = (0, 0) if place == "first" else (int(deep), 3)
    heads = 3 if "transformer" in CASES[case][0] else 2 if "heads" in case else 1
    trace = replay(model, SOURCE, TARGET, detail="all")
    walk = walkthrough(model, SOURCE, TARGET, layer=layer, head=heads - 1, position=position)
    verify(walk, model, trace, 1e-9)


def test_a_normaliser_that_nobody_described_is_shown_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def squared(scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return attention.relu(scores.masked_fill(scores.isinf(), 0.0).square(), mask)

    monkeypatch.setattr(attention, "squared", squared, raising=False)
    model = copy.deepcopy(made("transformer-tiny"))
    for part in model.modules():
        if isinstance(part, attention.Attention):
            part.normaliser = squared
    walk = walkthrough(model, SOURCE, TARGET, position=3)
    verify(walk, model, replay(model, SOURCE, TARGET, detail="all"), 1e-9)
    assert sum("squared(scores" in step.snippet for step in walk) == 3


@pytest.mark.parametrize("case", ["bahdanau", "both ways, LSTM"])
def test_the_decoder_begins_with_what_the_bridge_gave(case: str) -> None:
    """At the first step the state is made of it, as the test above holds; later it is shown all the same."""
    first, later = (walkthrough(made(case), SOURCE, TARGET, position=position) for position in (0, 3))
    assert (
        "step decoder.0.first.hidden"
        in first["decoder.0.cell.hidden" if case == "bahdanau" else "decoder.0.cell.input"].origins.values()
    )
    assert torch.equal(first["decoder.0.first.hidden"].output, later["decoder.0.first.hidden"].output)
    assert torch.equal(first["encoder.0.final.hidden"].output, later["encoder.0.final.hidden"].output)


@pytest.mark.parametrize("preset", tiny.PRESETS)
def test_in_single_precision_numbers_agree_to_a_millionth(preset: str) -> None:
    model = copy.deepcopy(tiny.translator(preset)).float()
    trace = replay(model, SOURCE, TARGET, detail="all")
    verify(walkthrough(model, SOURCE, TARGET, position=2), model, trace, 1e-6)


@pytest.mark.parametrize("begin", [0, 2])
@pytest.mark.parametrize("frequencies", ["paper", "marian"])
@pytest.mark.parametrize("interleaved", ["true", "false"])
def test_the_formula_of_positions_is_that_of_the_model(interleaved: str, frequencies: str, begin: int) -> None:
    how = f"model.interleaved={interleaved}", f"model.frequencies={frequencies}", f"model.first_position={begin}"
    step = walkthrough(tiny.translator("transformer-tiny", "model.width=12", *how), SOURCE, TARGET)["encoder.positions"]
    for said, wave in zip(step.formula.split(", PE"), (math.sin, math.cos), strict=True):
        where, exponent = re.findall(r"p, ([^)]+)\) = .*10000\^\((.+)\)\)$", said)[0]
        for p, i in itertools.product(range(len(SOURCE)), range(6)):
            values = {"D": 12, "i": i}
            column, power = (eval(re.sub(r"2i", "2*i", each).replace("−", "-"), values) for each in (where, exponent))
            assert float(step.output[p, int(column)]) == pytest.approx(wave((p + begin) / 10000**power), abs=1e-6)


@pytest.mark.parametrize("position", [0, 3])
@pytest.mark.parametrize("case", [case for case in CASES if "conditional" in CASES[case][0]])
def test_the_second_cell_of_a_conditional_decoder_is_a_layer_more(case: str, position: int) -> None:
    model = made(case)
    depth = 2 if "deep" in case else 1
    walk = walkthrough(model, SOURCE, TARGET, layer=depth, position=position, side="decoder")
    verify(walk, model, replay(model, SOURCE, TARGET, detail="all"), 1e-9)
    assert f"decoder.{depth}.cell.hidden" in [step.name for step in walk]


@pytest.mark.parametrize("case", [case for case in CASES if "transformer" in CASES[case][0]])
def test_what_a_replay_does_not_show_is_what_the_modules_gave(case: str) -> None:
    model = made(case)
    seen, walk = hooked(model, SOURCE, TARGET), walkthrough(model, SOURCE, TARGET, layer=1, position=2)
    for side, kinds in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for number, kind in enumerate(kinds):
            layer = f"{side}.layers.1"
            attention = f"{layer}.{'attention' if kind == 'self' else 'cross'}"
            if ("ssru" in case or "student" in case) and (side, kind) == ("decoder", "self"):
                shown, used = walk["decoder.1.cell.candidate"].output, seen["decoder.layers.1.recurrence.candidate"]
            else:
                shown, used = walk[f"{side}.1.{kind}.projected"].output, seen[f"{attention}.projections.output"]
            same(shown, used, 1e-9, attention)
            before = f"{side}.1.{kind}.norm" in [step.name for step in walk]
            norm = f"{side}.1.{kind}.norm" if before else f"{side}.1.{('attended', 'crossed')[number]}"
            same(walk[norm].output, seen[f"{layer}.residuals.{number}.norm"], 1e-9, norm)
        same(walk[f"{side}.1.feed.found"].output, seen[f"{side}.layers.1.feed_forward"], 1e-9, side)
    same(walk["logits"].output, seen["decoder.output"][2], 1e-9, "logits")


def test_a_walk_passes_everything_that_a_layer_shows() -> None:
    for preset in ("transformer-tiny", "transformer-base", "transformer-ssru", "bahdanau", "luong-hard", "lstm"):
        model = tiny.translator(preset)
        names = {re.split(r"\[", step.recorded)[0] for step in walkthrough(model, SOURCE, TARGET)}
        trace = replay(model, SOURCE, TARGET, detail="all")
        walked = {name for name in trace.tensors if not re.search(r"coder\.1\.|log_probability", name)}
        left = walked - names
        again = ("states", "features", "queries", "keys", "values", "products")  # the same tensor under another name
        assert all(name.endswith(again) for name in left), left
        if preset in ("transformer-tiny", "transformer-ssru"):
            assert left == set()


@pytest.mark.parametrize("preset", [preset for preset in tiny.PRESETS if tiny.writes_alone(preset)])
def test_a_language_model_is_walked_through(preset: str) -> None:
    model = tiny.writer(preset)
    trace = replay(model, target_ids=TARGET, detail="all")
    for position in (0, 4):
        walk = walkthrough(model, (), TARGET, position=position)
        verify(walk, model, trace, 1e-9)
        assert {step.part for step in walk} == {"decoder", "output"}


@pytest.mark.parametrize("pool", [None, "mean", "max", "final", "attention"])
@pytest.mark.parametrize("preset", ["bahdanau", "transformer-tiny"])
def test_a_labeller_is_walked_through(preset: str, pool: str | None) -> None:
    if (preset, pool) == ("transformer-tiny", "final"):
        return  # it has no final state
    model, source = tiny.tagger(preset, pool), [5, 6, 7]
    trace = replay(model, source, detail="all")
    walk = walkthrough(model, source, position=1)
    verify(walk, model, trace, 1e-9)
    assert walk.steps[-1].name == "probability"


@pytest.mark.parametrize("preset", ["lstm", "transformer-tiny"])
def test_words_with_vectors_from_elsewhere_are_walked_through(preset: str) -> None:
    settings = tiny.settings(preset, "model.vectors.frozen=true", "model.vectors.width=3")
    model = regard.labeller(settings.model, 23, 5, seen=7).double().eval()
    model.encoder.embedding.vectors.normal_()  # type: ignore[attr-defined]
    source = [5, 6, 19]  # the last one is beyond the learned table
    verify(walkthrough(model, source, position=2), model, replay(model, source, detail="all"), 1e-9)


LETTERS = WordTokenizer.learn([f"{'abcdefg'[: 1 + number % 7]}{number}" for number in range(19)])
WRITTEN = "a0 abcdef5 é"


def reading_letters(preset: str, *overrides: str) -> tuple[Labeller, Spelling, list[list[int]]]:
    """A tagger that reads five letters of each word, and what it reads of three."""
    torch.manual_seed(0)
    settings = tiny.settings(preset, "model.letters=5", *overrides)
    model = regard.labeller(settings.model, LETTERS.size, 5, seen=7).double().eval()
    rows = Reader(LETTERS, 5, torch.device("cpu")).text(WRITTEN)
    return model, Spelling(LETTERS, source_text=WRITTEN), rows


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("preset", ["lstm", "transformer-tiny"])
def test_words_with_letters_are_walked_through(preset: str, frozen: bool) -> None:
    vectors = ("model.vectors.frozen=true", "model.vectors.width=3") if frozen else ()
    model, spelling, rows = reading_letters(preset, *vectors)
    for told in (spelling, Spelling()):
        trace = replay(model, rows, spelling=told, detail="all")
        walk = walkthrough(model, rows, spelling=told, position=1)
        verify(walk, model, trace, 1e-9)
        assert walk["encoder.letters"].output.tolist() == [row[1:] for row in rows]
        seen = model.encoder.embedding.spelling(torch.tensor([rows])[..., 1:])[0]  # type: ignore[attr-defined]
        same(walk["encoder.spelling"].output, seen.detach(), 1e-9, "spelling")
    assert "pieces = ['a0', 'abcdef5', 'é']" in walkthrough(model, rows, spelling=spelling)["encoder.letters"].snippet


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau", "luong-general"])
@pytest.mark.parametrize("side", ["encoder", "decoder", "cross"])
def test_one_side_alone_has_the_same_steps(preset: str, side: Any) -> None:
    model = tiny.translator(preset)
    whole = walkthrough(model, SOURCE, TARGET, position=2, source_position=2)
    walk = walkthrough(model, SOURCE, TARGET, position=2, side=side)
    trace = replay(model, SOURCE, TARGET, detail="all")
    assert 0 < len(walk) < len(whole)
    if side != "encoder":
        assert {step.part for step in walk} <= {"context", "decoder", "cross", "output"}
    for step in walk:
        assert torch.equal(step.output, whole[step.name].output)
        for name, origin in step.origins.items():
            assert torch.equal(
                step.inputs[name], look_up(origin, walk, trace, model) if origin != "zeros" else step.inputs[name]
            )


def test_the_source_piece_marked_is_the_one_looked_at_most() -> None:
    model = tiny.translator("transformer-tiny")
    walk = walkthrough(model, SOURCE, TARGET, layer=1, head=2, position=3)
    weights = replay(model, SOURCE, TARGET).cross[1, 2]
    assert walk.source_position == int(weights[3].argmax())
    assert walk["encoder.1.self.weights"].row == walk.source_position
    assert walkthrough(tiny.translator("lstm"), SOURCE, TARGET).source_position == 5
    assert walkthrough(tiny.translator("lstm-reversed"), SOURCE, TARGET).source_position == 0


def test_what_is_hidden_weighs_nothing_and_the_past_is_seen() -> None:
    walk = walkthrough(tiny.translator("transformer-tiny"), SOURCE, TARGET)
    masked, weights = walk["decoder.0.self.masked"].output, walk["decoder.0.self.weights"].output
    assert torch.equal(masked.isinf(), torch.ones_like(masked).triu(1).bool())
    assert weights[masked.isinf()].eq(0).all()


def test_plain_data_is_small_rounded_and_strict_json() -> None:
    walk = walkthrough(tiny.translator("transformer-tiny"), SOURCE, TARGET, position=1)
    text = json.dumps(walk.to_dict(), allow_nan=False)
    content = json.loads(text)
    assert len(text) < 80_000
    assert [step["name"] for step in content["steps"]] == [step.name for step in walk]
    scores = next(step for step in content["steps"] if step["name"] == "decoder.0.self.masked")
    assert scores["shown"][0][1] is None
    value = float(walk["decoder.0.self.scores"].output[0, 0])
    assert scores["shown"][0][0] == float(f"{value:.6g}")
    assert scores["inputs"] == {"scores": {"from": "step decoder.0.self.scores", "shape": [5, 5]}}
    assert scores["row"] == 1
    embedded = next(step for step in content["steps"] if step["name"] == "encoder.embedded")
    assert embedded["shape"] == [6, 15]
    assert [len(row) for row in embedded["shown"]] == [6] * 6
    logits = content["steps"][-3]
    assert logits["axes"][0]["size"] == tiny.TARGET_SIZE
    assert TARGET[1] in logits["axes"][0]["shown"]


def test_sixty_tokens_through_six_layers_stay_small() -> None:
    model = tiny.translator("transformer-tiny", "model.encoder_depth=6", "model.decoder_depth=6")
    source, target = [4 + n % 19 for n in range(59)] + [END], [4 + n % 23 for n in range(59)] + [END]
    walk = walkthrough(model, source, target, layer=5, position=40)
    assert len(json.dumps(walk.to_dict())) < 1_000_000
    lines = terminal(walk).splitlines()
    assert all(len(line) <= 110 for line in lines)
    assert any(line.strip().startswith("▸") for line in lines)


def wrong(model: Model, *places: Any, **choices: Any) -> str:
    with pytest.raises((DataError, ModelError)) as caught:
        walkthrough(model, *places, **choices)
    return str(caught.value)


def test_what_is_not_there_is_said_in_one_line() -> None:
    model, plain = tiny.translator("transformer-tiny"), tiny.translator("lstm")
    assert wrong(model, SOURCE, TARGET, layer=2) == "layer = 2: the encoder has 2 layers; 0 to 1 would be right"
    assert wrong(model, SOURCE, TARGET, layer=7, side="decoder").startswith("layer = 7: the decoder has 2 layers")
    assert wrong(model, SOURCE, TARGET, head=3).startswith("head = 3: a layer of the encoder has 3 heads; 0 to 2")
    assert wrong(model, SOURCE, TARGET, head=-1, side="cross").startswith("head = -1: a layer of the decoder has 3")
    assert wrong(model, SOURCE, TARGET, position=5).startswith("position = 5: the text has 5 pieces; 0 to 4")
    assert wrong(model, SOURCE, TARGET, position=6, side="encoder").startswith("position = 6: the text has 6 pieces")
    assert wrong(model, SOURCE, TARGET, source_position=9).startswith("source_position = 9: the source has 6")
    assert wrong(plain, SOURCE, TARGET, layer=1) == "layer = 1: the encoder has 1 layer; 0 would be right"
    assert wrong(plain, SOURCE, TARGET, head=1) == "head = 1: this model has no heads; leave it out"
    assert wrong(plain, SOURCE, TARGET, head=1, side="encoder").startswith("head = 1: a recurrent encoder has no heads")
    assert wrong(tiny.tagger("lstm"), SOURCE, head=1).startswith("head = 1: this model has no heads")
    assert wrong(plain, SOURCE, TARGET, side="cross").startswith("side = cross: this model has no such side; all or")
    assert wrong(tiny.writer("lstm"), (), TARGET, side="encoder").startswith("side = encoder: this model has no")
    assert wrong(tiny.tagger("lstm"), SOURCE, side="decoder").startswith("side = decoder: this model has no such")
    assert wrong(model, SOURCE, TARGET, side="cros") == "side = cros: no such side; did you mean 'cross'?"
    assert wrong(model, [END], TARGET).startswith("source = ''")
    error = NoSuchPlaceError("layer", 8, 2, "the encoder")
    assert error.line(first=1, flag="--layer") == "--layer = 9: the encoder has 2 layers; 1 to 2 would be right"
    walk = walkthrough(plain, SOURCE, TARGET)
    with pytest.raises(DataError, match=r"did you mean 'encoder\.embedded'"):
        walk["encoder.embeded"]
    letters = regard.labeller(tiny.settings("lstm", "model.letters=5").model, 23, 5)
    assert wrong(letters, SOURCE).startswith("source = 6 pieces, 0 with letters: this model reads them")
    assert wrong(tiny.tagger("lstm"), [[5, 1, 9]]).startswith(
        "source = 1 pieces, 1 with letters: this model reads none"
    )


class Script:
    """A tokenizer whose pieces are markup and control characters."""

    kind = "word"
    silent = SILENT

    def token(self, number: int) -> str:
        return f"<script>|*a_{number}\x1b[0m\n"

    def word_of(self, pieces: list[str]) -> list[int]:
        return list(range(len(pieces)))

    def decode(self, ids: list[int]) -> str:
        return " ".join("<script>" for _ in ids)

    def pieces(self, text: str) -> list[str]:
        return text.split()


def test_pieces_are_shown_as_text_whatever_they_are() -> None:
    script: Any = Script()
    spelling = Spelling(script, script)
    walk = walkthrough(tiny.translator("transformer-tiny"), SOURCE, TARGET, spelling, position=1)
    page = markdown(walk)
    assert "<script" not in page
    assert "&lt;script&gt;\\|\\*a" in page
    for text in (page, terminal(walk)):
        assert "\x1b" not in text
        assert "decoder.0.self.scores" in text or "decoder.0.self.scores".replace("_", "\\_") in text
    assert headline(walk).endswith("…")


def test_renderings_have_every_step_and_mark_the_piece() -> None:
    walk = walkthrough(tiny.translator("luong-local"), SOURCE, TARGET, position=1)
    text, page = terminal(walk), markdown(walk)
    for number, step in enumerate(walk, start=1):
        assert f"{number}. {step.title}  ({step.name})" in text
        assert step.formula in text
        assert f"$${step.tex}$$" in page
        assert step.snippet in page
    assert "layer 1, head 1, on the way to 21" in text
    encoder = walkthrough(tiny.translator("lstm"), SOURCE, TARGET, side="encoder", position=1)
    assert headline(encoder) == "5 9 7 11 13: layer 1, at 9"
    tagged = walkthrough(tiny.tagger("transformer-tiny"), [5, 6], position=1)
    assert headline(tagged) == "5 6: layer 1, head 1, at 6"
    written = walkthrough(tiny.writer("lstm"), (), TARGET)
    assert headline(written) == "8 21 5 17: layer 1, on the way to 8"


def test_a_table_keeps_the_marked_row_and_its_peak() -> None:
    source = [4 + n % 19 for n in range(40)] + [END]
    walk = walkthrough(tiny.translator("transformer-tiny"), source, TARGET, side="encoder", position=33)
    step = walk["encoder.0.self.weights"]
    columns, rows, marked, left_out = table(step, 7, 5)
    assert len(columns) == 7
    assert len(rows) == 5
    assert marked is not None
    label, cells = rows[marked]
    assert label == str(source[33])
    assert f"{float(step.output[33].max()):.4f}" in cells
    assert left_out == "(5 × 7 shown of 41 × 41)"


def test_every_text_has_an_idea_a_formula_and_tex_that_closes() -> None:
    for title, idea, formula, tex in PROSE.values():
        assert title
        assert idea.endswith(".")
        assert formula
        assert tex.count("{") == tex.count("}")
        assert len(re.findall(r"\\left\b", tex)) == len(re.findall(r"\\right\b", tex))


def test_every_text_is_used() -> None:
    titles = {idea for _, idea, _, _ in PROSE.values()}
    for case in CASES:
        titles -= {step.idea for step in walkthrough(made(case), SOURCE, TARGET)}
    second = walkthrough(made("conditional with a layer from zeros"), SOURCE, TARGET, layer=1, side="decoder")
    titles -= {step.idea for step in second}
    for preset, pool in (("lstm", "mean"), ("lstm", "max"), ("lstm", "final"), ("bahdanau", "final")):
        titles -= {step.idea for step in walkthrough(tiny.tagger(preset, pool), SOURCE)}
    titles -= {step.idea for step in walkthrough(tiny.writer("gru"), (), TARGET)}
    model: Labeller = regard.labeller(
        tiny.settings("transformer-tiny", "model.vectors.frozen=true", "model.vectors.width=3").model, 23, 5, seen=7
    )
    titles -= {step.idea for step in walkthrough(model.eval(), SOURCE)}
    for vectors in ((), ("model.vectors.frozen=true", "model.vectors.width=3")):
        model, spelling, rows = reading_letters("lstm", *vectors)
        titles -= {step.idea for step in walkthrough(model, rows, spelling=spelling)}
    titles -= {PROSE[kind][1] for kind in ("vectors", "from_vectors", "filtered")}  # of end_to_end/test_vectors.py
    titles -= {PROSE["normaliser"][1]}  # of test_a_normaliser_that_nobody_described_is_shown_by_its_name
    assert titles == set()
