"""Every method of attribution, held against the same computed directly, for every preset it applies to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tiny
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.explain.attribution import FOLLOWING, METHODS, Asked, is_transformer, word_map
from regard.explain.mixing import _blocks, alti, norms, pool_block, zeroing
from regard.explain.passes import (
    PREFIX,
    SOURCE,
    Subject,
    _parts_at,
    fitted,
    gradients,
    integrated_gradients,
    masking,
    placed,
    saliency,
    unknown,
)
from regard.explain.replay import PLAIN, Model, replay
from regard.explain.trace import Side, so_far, spell
from regard.explain.views import View
from regard.nn.observe import UNOBSERVED, Recorder
from regard.text.vocabulary import END, UNK

READ, WRITTEN = [5, 9, 7, 11, END], [8, 11, 6, 20, END]
TRANSFORMERS = [preset for preset in tiny.PRESETS if preset.startswith("transformer")]
ENCODERS = ("rnn", "gru", "lstm-reversed", "lstm-deep", "bahdanau", "transformer-tiny", "transformer-base")
KINDS = [
    *((preset,) for preset in TRANSFORMERS),
    ("transformer-tiny", "model.norm_place=after"),
    ("transformer-tiny", "model.norm_place=before", "model.norm=rms", "model.positions=none"),
    ("transformer-tiny", "model.norm_place=after", "model.norm=rms"),
    ("transformer-tiny", "model.norm_place=after", "model.norm=batch", "model.embedding_norm=true"),
    ("transformer-small", "model.norm_place=after", "model.embedding_norm=true"),
    ("transformer-ssru", "model.norm_place=after"),
    ("transformer-tiny", "model.positions=learned", "model.activation=gelu"),
    ("transformer-tiny", "model.positions=rotary", "model.width=18"),
]
EXACT = {"atol": 1e-9, "rtol": 1e-7}


def translators() -> list[tuple[str, Model]]:
    return [(" ".join(kind), tiny.translator(*kind)) for kind in KINDS]


def models() -> list[tuple[str, Model]]:
    """Every preset as whatever it can be."""
    found: list[tuple[str, Model]] = [(preset, tiny.translator(preset)) for preset in tiny.PRESETS]
    found.append(("rotary", tiny.translator("transformer-tiny", "model.positions=rotary", "model.width=18")))
    found += [(f"{preset} writes", tiny.writer(preset)) for preset in tiny.PRESETS if tiny.writes_alone(preset)]
    found += [(f"{preset} tags", tiny.tagger(preset)) for preset in ENCODERS]
    pools = [("gru", "final"), *(("transformer-tiny", pool) for pool in ("mean", "max", "attention"))]
    return found + [(f"{preset} classifies {pool}", tiny.tagger(preset, pool)) for preset, pool in pools]


EVERY = pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in models()])
OURS = pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in translators()])
LAYERED = pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=name)
        for name, model in [*translators(), *models()[len(tiny.PRESETS) + 1 :]]
        if is_transformer(model)
    ],
)


def subject(model: Model, **more: object) -> Subject:
    labels = len(READ) if model.task == "label" and model.pool is None else 1
    targets = tuple([2, 0, 4, 1, 3][:labels] if model.task == "label" else WRITTEN)
    return Subject(model, () if model.task == "language" else READ, targets, **more)  # type: ignore[arg-type]


def sides(model: Model) -> tuple[Side, Side]:
    return spell(READ), PLAIN.spell_target(model, subject(model).targets)


def directly(model: Model, source: Sequence[int] = READ, embedded: dict[str, Tensor] | None = None) -> Tensor:
    """Logits (T, V) of a plain call, with other embeddings where some are given: through hooks, not observers."""
    targets, hooks = subject(model).targets, []
    waiting: dict[nn.Module, list[Tensor]] = {}  # an embedding that both sides share is called for one, then the other
    for place, given in (embedded or {}).items():
        waiting.setdefault(getattr(model, place.partition(".")[0]).embedding, []).append(given)
    for module, values in waiting.items():
        hooks.append(module.register_forward_hook(lambda *_, values=values: values.pop(0)))
    try:
        if model.task == "label":
            found = model(torch.tensor([list(source)]))
            return found[0] if found.dim() == 3 else found
        read = torch.tensor([[model.first, *targets[:-1]]])
        if model.task == "language":
            return model(read)[0]
        return model(torch.tensor([list(source)]), read)[0]
    finally:
        for hook in hooks:
            hook.remove()


def embeddings(model: Model) -> dict[str, Tensor]:
    """What is read at each place, (1, S, D), in the order in which the model reads."""
    found = {}
    for place in subject(model).places:
        half = getattr(model, place.partition(".")[0])
        ids = READ if place == SOURCE else [model.first, *subject(model).targets[:-1]]  # type: ignore[union-attr]
        ids = ids[::-1] if place == SOURCE and getattr(half, "reverse", False) else ids
        found[place] = half.embedding(torch.tensor([ids])).detach()
    return found


def own(logits: Tensor, targets: Sequence[int]) -> Tensor:
    return logits.log_softmax(-1)[torch.arange(len(targets)), list(targets)]


def in_text_order(model: Model, place: str, values: Tensor, axis: int) -> Tensor:
    backwards = place == SOURCE and getattr(getattr(model, "encoder", None), "reverse", False)
    return values.flip(axis) if backwards else values


def autograd(model: Model, embedded: dict[str, Tensor], number: object = own) -> dict[str, Tensor]:
    """``∂ number_t / ∂ x``, (T, S, D), by a backward pass for each step."""
    leaves = {place: value.clone().requires_grad_() for place, value in embedded.items()}
    numbers = number(directly(model, embedded=leaves), subject(model).targets)  # type: ignore[operator]
    rows = [
        torch.autograd.grad(one, list(leaves.values()), retain_graph=True, materialize_grads=True) for one in numbers
    ]
    return {place: torch.stack([row[at][0] for row in rows]) for at, place in enumerate(leaves)}


# By changing what is read


@EVERY
def test_masking_is_running_again_without_the_word(model: Model) -> None:
    before, targets = own(directly(model), subject(model).targets), subject(model).targets
    for place, embedded in embeddings(model).items():
        found = masking(subject(model), place, [[1], [0, 2]] if len(embedded[0]) > 2 else [[0]])
        for column, group in enumerate([[1], [0, 2]] if len(embedded[0]) > 2 else [[0]]):
            blank = in_text_order(model, place, embedded.clone(), 1)
            blank[:, group] = 0
            again = {**embeddings(model), place: in_text_order(model, place, blank, 1)}
            torch.testing.assert_close(
                found[:, column], before - own(directly(model, embedded=again), targets), **EXACT
            )


@EVERY
def test_unknown_words_and_removed_ones_are_other_sources(model: Model) -> None:
    if model.task == "language":
        return
    before, targets = own(directly(model), subject(model).targets), subject(model).targets
    found = masking(subject(model), SOURCE, [[1]], "unknown")[:, 0]
    torch.testing.assert_close(found, before - own(directly(model, [5, UNK, 7, 11, END]), targets), **EXACT)
    if model.task == "translate":
        found = masking(subject(model), SOURCE, [[1]], "removed")[:, 0]
        torch.testing.assert_close(found, before - own(directly(model, [5, 7, 11, END]), targets), **EXACT)


@pytest.mark.parametrize("preset", ["bahdanau", "transformer-tiny", "gru"])
def test_an_unknown_word_of_the_prefix_is_another_input(preset: str) -> None:
    model = tiny.translator(preset)
    found = masking(subject(model), PREFIX, [[2]], "unknown")[:, 0]
    read = torch.tensor([[model.first, 8, UNK, 6, 20]])  # type: ignore[union-attr]
    after = own(model(torch.tensor([READ]), read)[0], WRITTEN)
    torch.testing.assert_close(found, own(directly(model), WRITTEN) - after, **EXACT)


@EVERY
def test_gradients_are_those_of_a_backward_pass_for_each_step(model: Model) -> None:
    found, numbers = gradients(subject(model))
    expected = autograd(model, embeddings(model))
    torch.testing.assert_close(numbers[0], own(directly(model), subject(model).targets), **EXACT)
    for place, (grads, given) in found.items():
        torch.testing.assert_close(grads[:, 0], in_text_order(model, place, expected[place], 1), **EXACT)
        torch.testing.assert_close(given, in_text_order(model, place, embeddings(model)[place], 1), **EXACT)
    for place, norm in saliency(subject(model)).items():
        torch.testing.assert_close(norm, found[place][0][:, 0].norm(dim=-1))
    assert any(float(grads.abs().max()) > 0 for grads, _ in found.values())


def unknown_text(model: Model) -> dict[str, Tensor]:
    """What is read where every word is unknown, (1, S, D), in the order in which the model reads."""
    found = {}
    for place in subject(model).places:
        half = getattr(model, place.partition(".")[0])
        ids = [UNK] * (len(READ) - 1) + [END] if place == SOURCE else [model.first, *[UNK] * (len(WRITTEN) - 1)]  # type: ignore[union-attr]
        ids = ids[::-1] if place == SOURCE and getattr(half, "reverse", False) else ids
        found[place] = half.embedding(torch.tensor([ids])).detach()
    return found


@EVERY
def test_integrated_gradients_are_the_mean_on_the_way_from_unknown_words(model: Model) -> None:
    """At two points written out; all in all, that of very many, within 5 % of the largest part (ReLU has corners)."""
    asked, begin, end = subject(model), unknown_text(model), embeddings(model)
    for place, values in unknown(asked).items():
        torch.testing.assert_close(values, in_text_order(model, place, begin[place][0], 0), **EXACT)
    alphas = torch.tensor([0.2, 0.7])
    for place, parts in _parts_at(asked, unknown(asked), alphas).items():
        for alpha, found in zip(alphas, parts, strict=True):
            between = {at: begin[at] + alpha * (end[at] - begin[at]) for at in end}
            expected = (autograd(model, between)[place] * (end[place] - begin[place])[0]).sum(-1)
            torch.testing.assert_close(found, in_text_order(model, place, expected, 1), **EXACT)
    found, first, last, missed = integrated_gradients(asked, 8, tolerance=1e-3)
    assert missed <= 1e-3
    torch.testing.assert_close(first, own(directly(model, embedded=begin), asked.targets), **EXACT)
    torch.testing.assert_close(last, own(directly(model), asked.targets), **EXACT)
    nodes, weights = np.polynomial.legendre.leggauss(53)
    many = _parts_at(asked, unknown(asked), torch.tensor(nodes + 1) / 2)
    for place, values in found.items():
        expected = torch.einsum("n,nrs->rs", torch.tensor(weights) / 2, many[place])
        torch.testing.assert_close(values, expected, atol=0.05 * float(expected.abs().max()), rtol=0)


@EVERY
def test_integrated_gradients_sum_to_the_difference_of_outputs(model: Model) -> None:
    found, begin, end, missed = integrated_gradients(subject(model), 16, tolerance=0.01)
    total = sum(each.sum(-1) for each in found.values())
    assert missed <= 0.01
    assert float((total - (end - begin)).abs().sum() / (end - begin).abs().sum()) <= 1e-6  # type: ignore[operator]


def test_points_lie_where_numbers_change_and_few_are_fitted_to_what_is_known() -> None:
    line = torch.linspace(0, 1, 17, dtype=torch.float64)
    curves = [lambda t: torch.sigmoid(60 * (t - 0.4)), lambda t: -torch.sigmoid(60 * (t - 0.5)), torch.square]
    values = torch.stack([curve(line) for curve in curves], 1)
    alphas, weights = placed(values, 6)
    assert bool((alphas.diff() > 0).all())
    assert 0 < float(alphas[0]) < float(alphas[-1]) < 1
    assert int(((alphas > 0.3) & (alphas < 0.6)).sum()) >= 4  # where the steep ones change
    whole, slopes = values[-1] - values[0], []
    for curve in curves:
        at = alphas.clone().requires_grad_()
        slopes.append(torch.autograd.grad(curve(at).sum(), at)[0])
    sums, shares = torch.stack(slopes, 1), weights[:, None].expand(-1, 3)
    before = ((shares * sums).sum(0) - whole).abs()
    assert float(before.max()) < 0.2
    torch.testing.assert_close((fitted(shares, sums, whole) * sums).sum(0), whole)
    nothing = torch.zeros(6, 1)
    torch.testing.assert_close(fitted(weights[:, None], nothing, torch.ones(1)), weights[:, None])
    evenly, _ = placed(torch.zeros(17, 2), 3)  # nothing changes: as on any line
    torch.testing.assert_close(evenly, torch.tensor(np.polynomial.legendre.leggauss(3)[0] + 1) / 2)


@pytest.mark.parametrize("preset", ["transformer-tiny", "transformer-ssru", "gru", "bahdanau"])
def test_steps_of_a_large_model_go_through_it_without_later_ones(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (tiny.translator(preset), *([tiny.writer(preset)] if tiny.writes_alone(preset) else [])):
        for asked in (subject(model), subject(model, against=(2, 3))):
            whole, numbers = gradients(asked)
            with monkeypatch.context() as patch:
                patch.setattr("regard.explain.passes.LARGE", 0)
                parts, again = gradients(asked)
            torch.testing.assert_close(again, numbers, **EXACT)
            for place, (grads, given) in parts.items():
                torch.testing.assert_close(grads, whole[place][0], **EXACT)
                read = slice(None) if place == SOURCE else slice(asked.steps[-1] + 1)
                torch.testing.assert_close(given[:, read], whole[place][1][:, read], **EXACT)


def test_what_is_asked_of_every_model_says_how_complete_it_is() -> None:
    for model in (tiny.translator(*KINDS[-1]), tiny.translator("transformer-tiny"), tiny.tagger("bahdanau")):
        view = View(words=False, special=True)
        *_, error, missed = Asked(subject(model), *sides(model), "integrated-gradients", view, None, 16).halves()
        assert error is not None
        assert missed is not None
        assert error <= 1e-6
        assert missed <= 0.01


@pytest.mark.parametrize("of", ["probability", "log-odds", "entropy"])
@pytest.mark.parametrize("preset", ["bahdanau", "transformer-tiny"])
def test_other_numbers_have_the_gradients_of_their_definitions(preset: str, of: str) -> None:
    model = tiny.translator(preset)

    def number(logits: Tensor, targets: Sequence[int]) -> Tensor:
        chance = logits.softmax(-1)[torch.arange(len(targets)), list(targets)]
        if of == "entropy":
            return -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)
        return chance if of == "probability" else chance.log() - (1 - chance).log()

    asked = subject(model, of=of)
    torch.testing.assert_close(asked.values(), number(directly(model), WRITTEN), **EXACT)
    expected = autograd(model, embeddings(model), number)
    for place, (grads, _) in gradients(asked)[0].items():
        torch.testing.assert_close(grads[:, 0], in_text_order(model, place, expected[place], 1), **EXACT)


@EVERY
def test_a_contrast_is_a_difference_of_log_probabilities(model: Model) -> None:
    step, other = len(subject(model).targets) - 1, 3
    asked = subject(model, against=(step, other))

    def number(logits: Tensor, targets: Sequence[int]) -> Tensor:
        scores = logits.log_softmax(-1)[step]
        return (scores[targets[step]] - scores[other])[None]

    torch.testing.assert_close(asked.values(), number(directly(model), asked.targets), **EXACT)
    expected = autograd(model, embeddings(model), number)
    for place, (grads, _) in gradients(asked)[0].items():
        torch.testing.assert_close(grads[:, 0], in_text_order(model, place, expected[place], 1), **EXACT)
    place = asked.places[0]
    blank = in_text_order(model, place, embeddings(model)[place].clone(), 1)
    blank[:, 0] = 0
    again = {**embeddings(model), place: in_text_order(model, place, blank, 1)}
    after = number(directly(model, embedded=again), asked.targets)
    torch.testing.assert_close(masking(asked, place, [[0]])[:, 0], asked.values() - after, **EXACT)


# By what a state is made of


def blocks(model: Model) -> dict[str, Tensor]:
    asked = subject(model)
    return dict(replay(model, asked.source, asked.targets, detail="blocks").tensors)


@LAYERED
@torch.no_grad()
def test_the_parts_of_every_block_sum_to_its_output(model: Model) -> None:
    below, above = _blocks(model, blocks(model))
    for block in [*below, *(each for pair in above for each in pair if each is not None)]:
        whole = block.parts.sum(1) + block.stream + block.rest
        torch.testing.assert_close(whole, block.output, atol=1e-6, rtol=0)
        assert block.error < 1e-6


@pytest.mark.parametrize("pool", ["mean", "max", "attention"])
@torch.no_grad()
def test_the_parts_of_a_pool_sum_to_what_the_label_is_read_from(pool: str) -> None:
    model, seen = tiny.tagger("transformer-tiny", pool), []
    hook = model.head.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    try:
        found = pool_block(model, blocks(model))
    finally:
        hook.remove()
    torch.testing.assert_close(found.parts.sum(1) + found.rest, seen[0], atol=1e-6, rtol=0)


def layers(model: Model, half: str) -> Sequence[nn.Module]:
    return getattr(getattr(model, half, None), "layers", ())


@LAYERED
def test_rows_of_contributions_sum_to_one(model: Model) -> None:
    read, written = sides(model)
    above = layers(model, "decoder")
    for method in FOLLOWING:
        if method == "rollout" and any(layer.attention is None for layer in above):
            continue
        asked = Asked(subject(model), read, written, method, View(special=True, words=False), None, 0)
        source, prefix, error, _ = asked.halves()
        found = [half for half in (source, prefix) if half is not None]
        whole = torch.stack([half[0].sum(-1) for half in found]).sum(0)
        torch.testing.assert_close(whole, torch.ones_like(whole), atol=1e-6, rtol=0)
        assert error is not None
        assert error < 1e-6
        assert (source is None) == (model.task == "language")
        assert (prefix is None) == (model.task == "label")
        if prefix is not None:
            assert prefix[0].triu(1).eq(0).all()
        if model.task == "translate":
            assert len(source[2]) == len(prefix[2]) == len(above)


class Hooked:
    """A plain pass with hooks on the modules: the inputs and outputs of each."""

    def __init__(self, model: Model, kinds: Sequence[type[nn.Module]]) -> None:
        self.seen: dict[str, tuple[Tensor, Tensor]] = {}
        hooks = []
        for name, module in model.named_modules():
            if isinstance(module, tuple(kinds)):
                hooks.append(module.register_forward_hook(partial(self._keep, name)))
        try:
            directly(model)
        finally:
            for hook in hooks:
                hook.remove()

    def _keep(self, name: str, _: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        self.seen[name] = (inputs[0][0].detach(), output[0].detach())


def weights_by_hand(model: Model, name: str, queries: Tensor, keys: Tensor) -> Tensor:
    """``α_hts`` of a dot-product attention, (H, T, S), from its linear maps; a decoder's own sees nothing later."""
    module = model.get_submodule(name)
    split = lambda x: x.reshape(len(x), module.heads, -1).transpose(0, 1)  # noqa: E731
    q, k = split(module.projections.query(queries)), split(module.projections.key(keys))
    if module.rotary is not None:
        q, k = module.rotary(q[None])[0], module.rotary(k[None])[0]
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    if name.startswith("decoder") and name.endswith("attention"):
        scores = scores.masked_fill(torch.ones_like(scores[0]).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def attention_by_hand(model: Model, name: str, queries: Tensor, keys: Tensor) -> Tensor:
    """``α_hts · W_o^h W_v^h x_s``, (H, T, S, D)."""
    maps, heads = model.get_submodule(name).projections, model.get_submodule(name).heads
    v = maps.value(keys).reshape(len(keys), heads, -1).transpose(0, 1)
    weights, width = weights_by_hand(model, name, queries, keys), v.shape[-1]
    rows = [v[head] @ maps.output.weight[:, head * width : (head + 1) * width].T for head in range(heads)]
    return weights[..., None] * torch.stack(rows)[:, None]


def contributions_by_hand(layer: nn.Module, kind: str, parts: Tensor, stream: Tensor) -> Tensor:
    """ALTI's of parts (T, S, D) and of what the residual connection carried (T, D): to each token, where they are of
    the same side, else with the residual connection last."""
    module, residual = getattr(layer, kind), layer.residuals[kind == "cross"]
    output = stream + parts.sum(1) + module.projections.output.bias
    if kind == "attention":
        parts = parts + torch.eye(len(parts)).to(parts)[..., None] * stream
    else:
        parts = torch.cat((parts, stream[:, None]), 1)
    if not residual.before:
        norm = residual.norm
        scale = (output.var(-1, correction=0) + norm.epsilon).sqrt()[:, None, None]
        parts = norm.gain * (parts - parts.mean(-1, keepdim=True)) / scale
        output = F.layer_norm(output, output.shape[-1:], norm.gain, norm.shift, norm.epsilon)
    near = (output.abs().sum(-1)[:, None] - (output[:, None] - parts).abs().sum(-1)).clamp(min=0)
    for row in (near.sum(-1) == 0).nonzero().flatten():  # nothing is near: all of it is what was there
        near[row, row if kind == "attention" else -1] = 1
    return near / near.sum(-1, keepdim=True)


@pytest.mark.parametrize("preset", [*TRANSFORMERS])
@pytest.mark.parametrize("place", ["before", "after"])
@torch.no_grad()
def test_norms_and_contributions_are_those_of_the_linear_maps(preset: str, place: str) -> None:
    """Kobayashi's norms and ALTI's contributions once more, from inputs of modules that plain hooks have seen."""
    model = tiny.translator(preset, f"model.norm_place={place}")
    seen, tensors = Hooked(model, [nn.Linear]).seen, blocks(model)
    below, read, cross = norms(model, tensors)
    encoder, decoder, _ = alti(model, tensors)

    def parts_of(name: str, shown: Tensor) -> Tensor:
        """Those of one attention, whose norms are also ``shown``."""
        asking, keys = (seen[f"{name}.projections.{side}"][0] for side in ("query", "value"))
        parts = attention_by_hand(model, name, asking, keys).sum(0)
        lengths = parts.norm(dim=-1)
        torch.testing.assert_close(shown, lengths / lengths.sum(-1, keepdim=True), **EXACT)
        return parts

    def entered(half: str, level: int) -> Tensor:
        return tensors[f"{half}.{level - 1}.states" if level else f"{half}.placed"]

    for level, layer in enumerate(model.encoder.layers):
        parts = parts_of(f"encoder.layers.{level}.attention", below[level])
        expected = contributions_by_hand(layer, "attention", parts, entered("encoder", level))
        torch.testing.assert_close(encoder[level], expected, **EXACT)
    for level, layer in enumerate(model.decoder.layers):
        parts = parts_of(f"decoder.layers.{level}.cross", cross[level])
        look = contributions_by_hand(layer, "cross", parts, tensors[f"decoder.{level}.attended"])
        torch.testing.assert_close(decoder[level][1], look[:, :-1], **EXACT)
        if layer.attention is not None:
            parts = parts_of(f"decoder.layers.{level}.attention", read[level])
            own_look = contributions_by_hand(layer, "attention", parts, entered("decoder", level))
            torch.testing.assert_close(decoder[level][0], look[:, -1:] * own_look, **EXACT)


@LAYERED
@torch.no_grad()
def test_a_zeroed_value_is_one_that_a_hook_takes_away(model: Model) -> None:
    """One pass for each token and layer: the value is set to zero where the linear map gives it."""
    below, above = zeroing(model, blocks(model), UNOBSERVED)

    def turned(layer: nn.Module, value: nn.Module, token: int) -> Tensor:
        outputs: list[Tensor] = []

        def take(_: nn.Module, __: object, output: Tensor) -> Tensor:
            output = output.clone()
            output[:, token] = 0
            return output

        keep = layer.register_forward_hook(
            lambda _, __, out: outputs.append((out[0] if isinstance(out, tuple) else out)[0])
        )
        try:
            directly(model)
            hook = value.register_forward_hook(take)
            directly(model)
            hook.remove()
        finally:
            keep.remove()
        return 1 - torch.cosine_similarity(*outputs, dim=-1)

    for level, layer in enumerate(layers(model, "encoder")):
        for token in (0, 3):
            expected = turned(layer, layer.attention.projections.value, token)
            torch.testing.assert_close(below[level][:, token], expected, atol=1e-9, rtol=1e-6)
    for level, layer in enumerate(layers(model, "decoder")):
        value = layer.recurrence.candidate if layer.attention is None else layer.attention.projections.value
        torch.testing.assert_close(above[level][0][:, 1], turned(layer, value, 1), atol=1e-9, rtol=1e-6)
        if layer.cross is None:
            continue
        expected = turned(layer, layer.cross.projections.value, 2)
        torch.testing.assert_close(above[level][1][:, 2], expected, atol=1e-9, rtol=1e-6)


def looks(model: Model) -> dict[str, list[Tensor]]:
    """The weights (L, H, T, S) of every attention, written out from what plain hooks have seen."""
    seen, found = Hooked(model, [nn.Linear]).seen, dict[str, list[Tensor]]()
    for half in ("encoder", "decoder"):
        for level, layer in enumerate(layers(model, half)):
            for kind in ("attention", "cross"):
                if getattr(layer, kind, None) is not None:
                    name = f"{half}.layers.{level}.{kind}"
                    asking, keys = (seen[f"{name}.projections.{side}"][0] for side in ("query", "key"))
                    found.setdefault(f"{half}.{kind}", []).append(weights_by_hand(model, name, asking, keys))
    return found


@LAYERED
@torch.no_grad()
def test_attention_and_rollout_are_those_of_weights_written_out(model: Model) -> None:
    read, written = sides(model)
    view, found = View(special=True, words=False, head="mean"), looks(model)

    def asked(method: str) -> list[Tensor | None]:
        halves = Asked(subject(model), read, written, method, view, None, 0).halves()[:2]
        return [None if half is None else half[0] for half in halves]

    mean = {name: torch.stack(each).mean((0, 1)) for name, each in found.items()}
    if not mean:
        with pytest.raises(ModelError, match="method = attention: this model has no attention"):
            asked("attention")
        return
    if model.task != "label" or model.pool is None:  # else the label looks through the pool, not through these
        source, prefix = asked("attention")
        expected = {"label": mean.get("encoder.attention"), "language": None, "translate": mean.get("decoder.cross")}
        torch.testing.assert_close(source, expected[model.task], **EXACT)
        torch.testing.assert_close(prefix, mean.get("decoder.attention"), **EXACT)
        late = asked("attention-reading")[0]
        if late is not None:
            torch.testing.assert_close(late[:-1], expected[model.task][1:], **EXACT)
    if model.task == "label" or "decoder.attention" not in mean:
        return
    size = len(subject(model).targets)
    source, prefix = asked("rollout")
    encoder = torch.eye(len(READ)).double()
    for layer in found.get("encoder.attention", []):
        encoder = (layer.mean(0) + torch.eye(len(READ))) / 2 @ encoder
    mixed, taken = torch.eye(size).double(), torch.zeros(size, len(READ)).double()
    for level, layer in enumerate(found["decoder.attention"]):
        own_look = (layer.mean(0) + torch.eye(size)) / 2
        mixed, taken = own_look @ mixed, own_look @ taken
        if "decoder.cross" in found:
            mixed, taken = mixed / 2, (taken + found["decoder.cross"][level].mean(0) @ encoder) / 2
    torch.testing.assert_close(prefix, mixed, **EXACT)
    if source is not None:
        torch.testing.assert_close(source, taken, **EXACT)


@pytest.mark.parametrize("preset", [name for name in tiny.PRESETS if name.startswith(("bahdanau", "cond", "luong"))])
@torch.no_grad()
def test_the_one_look_of_a_recurrent_decoder_is_that_of_its_live_steps(preset: str) -> None:
    """Weights as step after step records them, the norm of what they take from the states of the encoder."""
    model, watch = tiny.translator(preset), Recorder()
    _, state = model.start(torch.tensor([READ]), observer=watch)
    for token in [model.first, *WRITTEN[:-1]]:
        _, state = model.step(torch.tensor([token]), state, watch)
    weights, values = watch["decoder.cross.weights"][0], watch["decoder.cross.values"][0]  # (H, T, S), (H, S, K)
    read, written = sides(model)

    def asked(method: str) -> Tensor:
        found = Asked(subject(model), read, written, method, View(special=True, words=False), None, 0).halves()[0]
        assert found is not None
        return found[0]

    torch.testing.assert_close(asked("attention"), weights.mean(0), **EXACT)
    torch.testing.assert_close(asked("attention-reading")[:-1], weights.mean(0)[1:], **EXACT)
    maps = model.decoder.attention.projections
    carried = weights[..., None] * values[:, None]  # (H, T, S, K)
    parts = carried.permute(1, 2, 0, 3).flatten(2)
    parts = parts if maps is None else parts @ maps.output.weight.T
    lengths = parts.norm(dim=-1)
    expected = lengths / lengths.sum(-1, keepdim=True)
    torch.testing.assert_close(asked("norm"), expected, **EXACT)


@torch.no_grad()
def test_rollout_hands_on_half_of_everything() -> None:
    """Abnar and Zuidema have encoders only; in a decoder every block does the same, cross-attention too."""
    model = tiny.translator("transformer-tiny")
    read, written = sides(model)
    asked = Asked(subject(model), read, written, "rollout", View(special=True, words=False), None, 0)
    source, prefix, *_ = asked.halves()
    trace, eye = replay(model, READ, WRITTEN), torch.eye(5).double()
    encoder, read, expected = eye, eye, torch.zeros(5, 5).double()
    for layer in trace.encoder_self.mean(1):
        encoder = (layer + eye) / 2 @ encoder
    for own_weights, cross in zip(trace.decoder_self.mean(1), trace.cross.mean(1), strict=True):
        mix = (own_weights + eye) / 2
        read, expected = mix @ read / 2, (mix @ expected + cross @ encoder) / 2
    torch.testing.assert_close(source[0], expected)
    torch.testing.assert_close(prefix[0], read)


@EVERY
def test_every_method_has_a_map_between_words_or_says_why_not(model: Model) -> None:
    read, written = sides(model)
    columns = so_far(written).words if model.task == "language" else read.words
    for method in METHODS:
        try:
            found = word_map(model, read, written, method, points=2)
        except (ModelError, DataError) as problem:
            assert str(problem).startswith(f"method = {method}: ")  # noqa: PT017
            assert "would be right" in str(problem)  # noqa: PT017
            assert method not in ("masking", "gradient", "saliency", "integrated-gradients")
            assert method not in FOLLOWING or not is_transformer(model) or method == "rollout"
            continue
        assert found.weights.shape == (len(written.words), len(found.columns))
        assert found.columns == columns[: len(found.columns)]
        assert found.weights.isfinite().all()


@torch.no_grad()
def test_attention_is_read_as_it_is_asked_for() -> None:
    model = tiny.translator("transformer-tiny")
    read, written = sides(model)
    cross = replay(model, READ, WRITTEN).cross

    def asked(method: str, aligner: Aligner | None = None, **view: object) -> Tensor:
        shown = View(words=False, special=True, **view)  # type: ignore[arg-type]
        found = Asked(subject(model), read, written, method, shown, aligner, 0).halves()[0]
        assert found is not None
        return found[0]

    torch.testing.assert_close(asked("attention"), cross.mean((0, 1)))
    torch.testing.assert_close(asked("attention", layer=2, head="3"), cross[1, 2])
    torch.testing.assert_close(asked("attention", Aligner(((1, 0),), late=True))[:-1], cross[1, 0][1:])
    torch.testing.assert_close(asked("attention-reading", layer=1, head="mean")[:-1], cross[0].mean(0)[1:])
    torch.testing.assert_close(asked("norm", layer=2), norms(model, blocks(model))[2][1])
    with pytest.raises(DataError, match="layer = 3: this model has no such layer; 1 to 2 would be right"):
        asked("norm", layer=3)


def test_effects_are_the_same_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.translator("gru")
    whole = masking(subject(model), SOURCE, [[0], [1], [2]])
    parts, begin, end, missed = integrated_gradients(subject(model), 5)
    monkeypatch.setattr("regard.explain.passes._NUMBERS", 1)
    monkeypatch.setattr("regard.explain.passes._STATES", 1)
    torch.testing.assert_close(masking(subject(model), SOURCE, [[0], [1], [2]]), whole)
    torch.testing.assert_close(integrated_gradients(subject(model), 5), (parts, begin, end, missed))


def test_words_are_sums_of_their_pieces() -> None:
    """Of columns always; of rows where numbers add up, as log-probabilities do, else their means."""
    model = tiny.translator("transformer-tiny")
    read = Side(tuple(READ), ("a", "b", "c", "d", "<end>"), (0, 0, 1, 2, -1), ("ab", "c", "d"))
    written = Side(tuple(WRITTEN), ("e", "f", "g", "h", "<end>"), (0, 1, 1, 2, -1), ("e", "fg", "h"))
    pieces = masking(subject(model), SOURCE, [[0, 1], [2], [3]])
    found = word_map(model, read, written)
    assert (found.rows, found.columns) == (("e", "fg", "h"), ("ab", "c", "d"))
    torch.testing.assert_close(found.weights, torch.stack((pieces[0], pieces[1] + pieces[2], pieces[3])))
    mean = masking(subject(model, of="probability"), SOURCE, [[2]])[1:3].mean()
    torch.testing.assert_close(word_map(model, read, written, of="probability").weights[1, 1], mean)
    whole = word_map(model, read, written, "alti", special=True)
    assert (whole.rows[-1], whole.columns[-1]) == ("<end>", "<end>")


def test_what_has_no_meaning_is_refused() -> None:
    model = tiny.translator("gru")
    read, written = sides(model)
    with pytest.raises(SettingsError, match="method = rolout: no such method; did you mean 'rollout'"):
        word_map(model, read, written, "rolout")
    with pytest.raises(SettingsError, match="of = entropies: cannot be explained; did you mean 'entropy'"):
        word_map(model, read, written, of="entropies")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="of = entropy: alti explains a state"):
        word_map(model, read, written, "alti", of="entropy")
    with pytest.raises(ModelError, match="method = alti: follows the layers of a Transformer"):
        word_map(model, read, written, "alti")
    with pytest.raises(ModelError, match="method = attention: this model has no attention; masking"):
        word_map(model, read, written, "attention")
    with pytest.raises(ModelError, match="method = rollout: this decoder keeps one vector"):
        word_map(tiny.translator("transformer-ssru"), read, written, "rollout")
    pooled = tiny.tagger("transformer-tiny", "mean")
    with pytest.raises(ModelError, match="method = norm: no attention leads to the label"):
        word_map(pooled, *sides(pooled), "norm")
    with pytest.raises(DataError, match="method = masking-unknown: would change what is written too"):
        word_map(tiny.writer("gru"), read, written, "masking-unknown")
    tagger = tiny.tagger("gru")
    with pytest.raises(DataError, match="method = masking-removed: would change what is written too"):
        word_map(tagger, *sides(tagger), "masking-removed")
