"""CTranslate2, a fast engine for CPUs in C++: a Transformer converted into a folder that it reads, and the search.

It computes what our modules compute, so weights are written as they are, or after a map that changes no output:

- queries and keys of an inner score go through ``qᵀk / √K`` there; another scale, and the W of ``qᵀ W k``, are
  multiplied into the projections;
- sinusoids are written out as a table, and "no positions" is a table of zeros;
- the bias of ``<pad>``, ``<start>`` and ``<unk>`` is -∞, because search never writes them. That is before the
  softmax there and after it here, so that the other tokens share the probability of these three.

Anything else is refused in one line. Nothing is approximated, except by the quantization that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.decode.constraints import Constraint
from regard.decode.fused import maps_of
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.search import Hypothesis
from regard.errors import ModelError, SettingsError, did_you_mean, optional
from regard.models.generator import EncoderDecoder
from regard.models.transformer import Positions, TransformerDecoder, TransformerEncoder
from regard.nn.attention import AdditiveScore, Attention, CosineScore, GeneralScore, InnerScore, softmax
from regard.nn.embeddings import Embedding, Learned, Sinusoidal
from regard.nn.layers import BatchNorm, FeedForward, GatedFeedForward, LayerNorm, RMSNorm
from regard.nn.transformer import DecoderLayer, EncoderLayer, Norm
from regard.nn.words import SourceEmbedding
from regard.text.tokenizers import Tokenizers
from regard.text.vocabulary import END, SPECIAL_TOKENS, START, UNK

QUANTIZATIONS = ("float32", "int8", "int16", "float16", "bfloat16")
_AS_GOOD_AS_NONE = 1e-9  # without a length penalty CTranslate2 ends a search by another rule; length^1e-9 rounds to 1
_NEVER_WRITTEN = [token for token in range(len(SPECIAL_TOKENS)) if token != END]


@torch.no_grad()
def to_ctranslate2(
    model: EncoderDecoder,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    folder: Path,
    *,
    end: bool = True,
    quantization: str = "float32",
    places: int = 1024,
    aligner: tuple[int, int] | None = None,
) -> None:
    """Write ``model`` into an empty folder, with ``places`` positions where they are computed and not learned.

    With ``end``, CTranslate2 adds `<end>` to a source itself. The cross-attention that it returns on request is that of
    the ``aligner``, a layer and a head, from 0.
    """
    if quantization not in QUANTIZATIONS:
        raise SettingsError(
            f"quantization = {quantization}: no such kind of numbers; {did_you_mean(quantization, QUANTIZATIONS)}"
        )
    spec = _Converter(optional("ctranslate2.specs", "to = ctranslate2"), model, places, aligner).spec()
    spec.register_source_vocabulary(list(source_tokens))
    spec.register_target_vocabulary(list(target_tokens))
    for name, token in (("bos", START), ("eos", END), ("unk", UNK)):
        setattr(spec.config, f"{name}_token", SPECIAL_TOKENS[token])
    spec.config.decoder_start_token = target_tokens[model.first]
    spec.config.add_source_eos = end
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def unfit(model: EncoderDecoder) -> str:
    """Why CTranslate2 cannot compute this model, in one line; empty if it can."""
    try:
        _check(model)
    except ModelError as problem:
        return str(problem)
    return ""


def _check(model: EncoderDecoder) -> tuple[TransformerEncoder, TransformerDecoder]:
    encoder, decoder = model.encoder, model.decoder
    if not isinstance(encoder, TransformerEncoder) or not isinstance(decoder, TransformerDecoder):
        raise ModelError("model.kind = recurrent: CTranslate2 computes Transformers alone; use the engine native")
    if not isinstance(encoder.embedding, Embedding):
        raise ModelError("model.letters, text.source: CTranslate2 reads plain ids alone; use the engine native")
    for reader in encoder.layers:
        _check_attention(reader.attention, "encoder_attention")
    for writer in decoder.layers:
        assert writer.cross is not None
        if writer.attention is None:
            raise ModelError("model.autoregression = ssru: CTranslate2 has attention alone; use the engine native")
        _check_attention(writer.attention, "decoder_attention")
        _check_attention(writer.cross, "cross_attention")
    if isinstance(encoder.layers[0].residuals[0].norm, BatchNorm):
        raise ModelError("model.norm = batch: CTranslate2 has layer and RMS norm alone; use the engine native")
    if encoder.norm is not None and not encoder.layers[0].residuals[0].before:
        raise ModelError(
            "model.final_norm = yes: with norms after the sublayers CTranslate2 has none at the end; "
            "use the engine native"
        )
    return encoder, decoder


def _check_attention(attention: Attention, where: str) -> None:
    wrong = ""
    if isinstance(attention.score, AdditiveScore):
        wrong = f"score = {'concat' if attention.score.bias is None else 'additive'}"
    elif isinstance(attention.score, CosineScore):
        wrong = "score = cosine"
    elif attention.normaliser is not softmax:
        wrong = f"normaliser = {attention.normaliser.__name__}"
    elif attention.hard:
        wrong = "selection = hard"
    elif attention.window is not None:
        wrong = "window"
    if wrong:
        raise ModelError(
            f"model.{where}.{wrong}: CTranslate2 has soft attention with inner products alone; use the engine native"
        )


class _Converter:
    """Walks our modules and fills in the specification's."""

    def __init__(self, specs: Any, model: EncoderDecoder, places: int, aligner: tuple[int, int] | None) -> None:
        self.specs = specs
        self.encoder, self.decoder = _check(model)
        self.places = places
        self.aligner = aligner

    def spec(self) -> Any:
        readers, writers = list(self.encoder.layers), list(self.decoder.layers)
        encoder = self._side(self.specs.TransformerEncoderSpec, self.encoder)
        decoder = self._side(self.specs.TransformerDecoderSpec, self.decoder)
        _embedding(encoder.embeddings[0], encoder, self.encoder.embedding)
        _embedding(decoder.embeddings, decoder, self.decoder.embedding)
        decoder.start_from_zero_embedding = self.decoder.embedding.zero is not None
        for side, ours in ((encoder, self.encoder), (decoder, self.decoder)):
            if _own(ours.layers[0]).rotary is None:
                side.position_encodings.encodings = self._places(ours.positions, ours.embedding.width)
            if ours.norm is not None:
                _norm(side.layer_norm, ours.norm)
            if ours.embedding_norm is not None:
                _norm(side.layernorm_embedding, ours.embedding_norm)
        layers: list[EncoderLayer | DecoderLayer] = [*readers, *writers]
        for theirs, layer in zip([*encoder.layer, *decoder.layer], layers, strict=True):
            self._layer(theirs, layer)
        if self.aligner is not None:
            self._align(decoder, *self.aligner)
        decoder.projection.weight = _array(self.decoder.output.weight)
        bias = self.decoder.output.bias.clone()
        bias[_NEVER_WRITTEN] = -torch.inf
        decoder.projection.bias = _array(bias)
        spec = self.specs.TransformerSpec(encoder, decoder)
        spec.config.layer_norm_epsilon = readers[0].residuals[0].norm.epsilon
        return spec

    def _side(self, kind: Any, ours: TransformerEncoder | TransformerDecoder) -> Any:
        layer = ours.layers[0]
        rotary = _own(layer).rotary
        return kind(
            len(ours.layers),
            _own(layer).heads,
            pre_norm=layer.residuals[0].before,
            no_final_norm=ours.norm is None,
            layernorm_embedding=ours.embedding_norm is not None,
            activation=self._activation(layer.feed_forward),
            ffn_glu=isinstance(layer.feed_forward, GatedFeedForward),
            rms_norm=isinstance(layer.residuals[0].norm, RMSNorm),
            rotary_dim=None if rotary is None else rotary.width,
            rotary_interleave=True,
        )

    def _activation(self, feed_forward: FeedForward | GatedFeedForward) -> Any:
        known = self.specs.Activation
        if isinstance(feed_forward, GatedFeedForward):
            return known.SWISH
        return {F.relu: known.RELU, F.gelu: known.GELU, F.silu: known.SWISH}[feed_forward.activation]

    def _places(self, positions: Positions, width: int) -> Any:
        if isinstance(positions, Learned):
            return _array(positions.weight)
        if isinstance(positions, Sinusoidal):
            return _array(positions.make(torch.arange(self.places))["table"])
        return _array(torch.zeros(self.places, width))

    def _layer(self, theirs: Any, ours: EncoderLayer | DecoderLayer) -> None:
        query, key, value = _projected(_own(ours))
        _join(theirs.self_attention.linear[0], query, key, value)
        _join(theirs.self_attention.linear[1], _affine(maps_of(_own(ours)).output))
        norms = [theirs.self_attention.layer_norm]
        if isinstance(ours, DecoderLayer):
            assert ours.cross is not None
            query, key, value = _projected(ours.cross)
            _join(theirs.attention.linear[0], query)
            _join(theirs.attention.linear[1], key, value)
            _join(theirs.attention.linear[2], _affine(maps_of(ours.cross).output))
            norms.append(theirs.attention.layer_norm)
        for place, residual in zip([*norms, theirs.ffn.layer_norm], ours.residuals, strict=True):
            _norm(place, residual.norm)
        _feed_forward(theirs.ffn, ours.feed_forward)

    def _align(self, decoder: Any, layer: int, head: int) -> None:
        """CTranslate2 returns the mean of a layer's first heads: here one, the head that aligns, which is put first."""
        decoder.alignment_layer, decoder.alignment_heads = np.int16(layer), np.int16(1)
        cross = self.decoder.layers[layer].cross
        assert cross is not None
        theirs = decoder.layer[layer].attention.linear
        order = [head, *(other for other in range(cross.heads) if other != head)]
        query, key, value = (_ordered(each, order) for each in _projected(cross))
        _join(theirs[0], query)
        _join(theirs[1], key, value)
        weight, bias = _affine(maps_of(cross).output)
        _join(theirs[2], (_ordered((weight.T, None), order)[0].T, bias))


Affine = tuple[Tensor, Tensor | None]  # the weight (out, in) and the bias (out) of a linear map


def _own(layer: EncoderLayer | DecoderLayer) -> Attention:
    """The self-attention of a layer; `_check` has made sure that there is one."""
    assert layer.attention is not None
    return layer.attention


def _projected(attention: Attention) -> tuple[Affine, Affine, Affine]:
    """The maps to queries, keys and values, such that the score is ``qᵀk / √K``."""
    ours, score = maps_of(attention), attention.score
    assert isinstance(score, InnerScore)
    width = ours.width // attention.heads
    query, key = _affine(ours.query), _affine(ours.key)
    if isinstance(score, GeneralScore):  # keys @ Wᵀ, a head at a time, is W @ keys
        key = _map_heads(key, score.weight)
    factor = score.scale * width**0.5
    if factor != 1:
        query = _map_heads(query, factor * torch.eye(width).expand(attention.heads, -1, -1))
    return query, key, _affine(ours.value)


def _map_heads(affine: Affine, maps: Tensor) -> Affine:
    """A linear map followed by one more for each head, ``maps`` (H, K, K)."""
    weight, bias = affine
    heads, width, _ = maps.shape
    wide = maps.double()
    mapped = (wide @ weight.double().reshape(heads, width, -1)).reshape(weight.shape)
    shifted = None if bias is None else (wide @ bias.double().reshape(heads, width, 1)).reshape(bias.shape)
    return mapped, shifted


def _ordered(affine: Affine, order: Sequence[int]) -> Affine:
    """The same map with its heads in another order."""
    weight, bias = affine
    places = torch.arange(len(weight)).reshape(len(order), -1)[list(order)].flatten().to(weight.device)
    return weight[places], None if bias is None else bias[places]


def _affine(linear: nn.Linear) -> Affine:
    return linear.weight, linear.bias


def _join(theirs: Any, *affine: Affine) -> None:
    """Linear maps of the same input as one."""
    theirs.weight = _array(torch.cat([weight for weight, _ in affine]))
    biases = [bias for _, bias in affine if bias is not None]
    if biases:
        theirs.bias = _array(torch.cat(biases))


def _embedding(theirs: Any, side: Any, ours: SourceEmbedding) -> None:
    """CTranslate2 scales by √width or not at all; another scale is multiplied into the table."""
    assert isinstance(ours, Embedding)
    usual = ours.scale == ours.width**0.5
    side.scale_embeddings = usual
    theirs.weight = _array(ours.weight if usual else ours.weight * ours.scale)


def _norm(theirs: Any, ours: Norm) -> None:
    assert not isinstance(ours, BatchNorm)
    theirs.gamma = _array(ours.gain)
    if isinstance(ours, LayerNorm):
        theirs.beta = _array(ours.shift)


def _feed_forward(theirs: Any, ours: FeedForward | GatedFeedForward) -> None:
    if isinstance(ours, GatedFeedForward):
        _join(theirs.linear_0, _affine(ours.gate))
        _join(theirs.linear_0_noact, _affine(ours.expand))
    else:
        _join(theirs.linear_0, _affine(ours.expand))
    _join(theirs.linear_1, _affine(ours.contract))


def _array(tensor: Tensor) -> Any:
    """A copy: quantization writes into what it is given."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous().numpy()


# Searching with a converted model


@dataclass
class CTranslate2:
    """The CTranslate2 library. Its beam search is ours, step for step, as long as no limit is reached.

    In both, the W best continuations count at each step, an end among them is an output, W outputs end the search, and
    they are compared by ``log p / length^a`` with ``<end>`` in the length. At a limit we end a hypothesis and
    CTranslate2 cuts it, so a sentence whose search came that far goes to our own loop. Given first tokens of a target
    count as certain in both; CTranslate2 does not always consider an output with nothing after them.
    """

    program: Any
    tokenizers: Tokenizers
    places: int
    name: str = "ctranslate2"
    tell: Callable[[str], object] = lambda _: None
    bytes: int = 0  # of the converted model, which it keeps in memory
    _told: set[str] = field(default_factory=set)

    def refuses(self, options: Options) -> str:
        why = unsupported(options)
        if why and why not in self._told:
            self._told.add(why)
            self.tell(f"engine: native: {self.name} does not support {why}")
        return why

    def search(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        rule: Beam | Sample,
        budget: int,
        *,
        constraints: Sequence[Constraint] = (),  # noqa: ARG002  given first tokens are all that it does not refuse
        numbers: Sequence[int] | None = None,  # noqa: ARG002
    ) -> list[list[Hypothesis]]:
        assert isinstance(rule, Beam)
        results: list[list[Hypothesis]] = [[] for _ in sources]
        short = [row for row, limit in enumerate(limits) if max(limit, len(sources[row])) <= self.places]
        if not short:
            return results
        found = self.program.translate_batch(
            [self._pieces(sources[row]) for row in short],
            target_prefix=[list(self.tokenizers.frame.begin)] * len(short) if self.tokenizers.begin else None,
            max_batch_size=max(1, budget // rule.width),
            batch_type="tokens",
            beam_size=rule.width,
            num_hypotheses=rule.width,
            length_penalty=rule.length_penalty or _AS_GOOD_AS_NONE,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,  # no limit
            min_decoding_length=0,  # an output may be empty
            max_decoding_length=max(limits[row] for row in short),
        )
        for row, outputs in zip(short, found, strict=True):
            results[row] = self._read(outputs, limits[row], rule)
        return results

    def _pieces(self, source: Sequence[int]) -> list[str]:
        """The pieces of a source without the `<end>` that CTranslate2 adds itself."""
        read = source[:-1] if ends_plainly(self.tokenizers) else source
        return [self.tokenizers.source.token(number) for number in read]

    def _read(self, outputs: Any, limit: int, rule: Beam) -> list[Hypothesis]:
        """The outputs; none if the search may have reached its limit: with a beam, when one is as long as that."""
        id_of, longest = self.tokenizers.target.id, limit if rule.width == 1 else limit - 1
        if any(len(tokens) > longest or not tokens or id_of(tokens[-1]) != END for tokens in outputs.hypotheses):
            return []
        return [
            Hypothesis([id_of(token) for token in tokens[:-1]], score * len(tokens) ** rule.length_penalty, score)
            for tokens, score in zip(outputs.hypotheses[: rule.best], outputs.scores, strict=False)
        ]


def ends_plainly(tokenizers: Tokenizers) -> bool:
    """Whether the last token that a model reads of a source is `<end>`."""
    return tokenizers.framed(())[-1:] == [END]


def unsupported(options: Options) -> str:
    """The first option that CTranslate2 does not have, or understands in another way."""
    rule = options.rule
    if not isinstance(rule, Beam):
        return "sampling by seed"
    asked = {
        "coverage": rule.coverage_penalty > 0,
        "groups": rule.groups > 1,
        "a least length": options.shortest > 0,
        "a limit on repeated pieces": options.no_repeat > 0,
        "forbidden words": bool(options.forbidden),
        "a prefix": bool(options.prefix),
        "a glossary": options.glossary is not None,
        "copied words": options.copy_unknown or rule.unknown,
    }
    return next((name for name, wanted in asked.items() if wanted), "")
