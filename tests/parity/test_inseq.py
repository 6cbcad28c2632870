"""Attribution beside inseq's, of one small Marian model: theirs through `transformers`, ours imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from importing import imported, opus
from regard.explain.importance import attribute
from regard.explain.mixing import zeroing
from regard.explain.passes import PREFIX, SOURCE, Subject, integrated_gradients
from regard.explain.replay import replay
from regard.nn.observe import UNOBSERVED
from regard.tasks.load import open_translator
from regard.tasks.translator import Translator

inseq = pytest.importorskip("inseq", reason="inseq is not installed; it is a peer for development: pip install inseq")
READ, WRITTEN, OTHER = "a b", "b a", "b b"
pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, about packages it would like
CLOSE = {"atol": 1e-6, "rtol": 1e-4}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Translator]:
    """Its outputs begin with a piece of their own: where that is <pad>, as in OPUS models, inseq hides it. And its
    embeddings are not scaled, which inseq does once more where a decoder of `transformers` already has."""
    folder = tmp_path_factory.mktemp("marian")
    model = opus(folder / "theirs", "<begin>")
    begin = model.config.vocab_size - 2
    for name in ("config.json", "generation_config.json"):
        path = folder / "theirs" / name
        changed = {"decoder_start_token_id": begin, **({"scale_embedding": False} if name == "config.json" else {})}
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    return folder / "theirs", open_translator(imported(folder / "theirs", folder / "ours"))


def theirs(models: tuple[Path, Translator], method: str, **how: Any) -> Any:
    """The source and prefix parts of every step, one row a step."""
    model = inseq.load_model(str(models[0]), method, device="cpu")
    found = model.attribute(READ, WRITTEN, attribute_target=True, show_progress=False, **how)
    return found.sequence_attributions[0]


def compare(found: Any, source: Tensor, prefix: Tensor, *, norm: bool) -> None:
    """Theirs has the width of the embeddings as a last axis, and columns before rows."""
    for their, ours in ((found.source_attributions, source), (found.target_attributions[: prefix.shape[1]], prefix)):
        folded = their.norm(dim=-1) if norm else their.sum(-1)
        torch.testing.assert_close(ours.float(), folded.nan_to_num(0.0).T.float(), **CLOSE)


@pytest.mark.parametrize(("method", "name"), [("saliency", "saliency"), ("gradient", "input_x_gradient")])
def test_gradients_are_theirs(models: tuple[Path, Translator], method: str, name: str) -> None:
    ours = attribute(models[1], READ, method, "probability", target=WRITTEN, words=False, special=True)
    compare(theirs(models, name, attributed_fn="probability"), ours.source, ours.prefix, norm=method == "saliency")


def test_integrated_gradients_are_theirs(models: tuple[Path, Translator]) -> None:
    """Their way begins where ours does: where every piece but the last, and but for <start>, is unknown."""
    translator = models[1]
    trace = translator.explain(READ, WRITTEN).trace
    subject = Subject(translator.model, trace.source.ids, trace.target.ids, "probability")
    found, first, last, _ = integrated_gradients(subject, 40)
    compare(theirs(models, "integrated_gradients", n_steps=40), found[SOURCE], found[PREFIX], norm=False)
    total = found[SOURCE].sum(-1) + found[PREFIX].sum(-1)
    torch.testing.assert_close(total, last - first, atol=1e-6, rtol=1e-4)


def test_contrasts_are_theirs(models: tuple[Path, Translator]) -> None:
    """A difference of logits is one of log-probabilities; theirs has a row for every step, ours for the one."""
    how = {"attributed_fn": "contrast_logits_diff", "contrast_targets": OTHER}
    for method, name in (("saliency", "saliency"), ("gradient", "input_x_gradient")):
        ours = attribute(models[1], READ, method, against=OTHER, target=WRITTEN, words=False, special=True)
        found = theirs(models, name, **how)
        assert ours.step == 1
        their = found.source_attributions[:, 1]
        folded = their.norm(dim=-1) if method == "saliency" else their.sum(-1)
        torch.testing.assert_close(ours.source[0].float(), folded.float(), **CLOSE)


def test_value_zeroing_is_theirs(models: tuple[Path, Translator], monkeypatch: pytest.MonkeyPatch) -> None:
    from inseq.attr.feat.ops.value_zeroing import ValueZeroing  # noqa: PLC0415

    def patched(self: Any, block_idx: int, hidden_state_idx: int = 0) -> Any:  # noqa: ARG001
        """Layers of newer `transformers` return a tensor where inseq 0.7.1 expects a tuple."""

        def hook(_: Any, __: Any, output: Tensor) -> Tensor:
            self.corrupted_block_output_states[block_idx] = output.clone().float().detach().cpu()
            return self.clean_block_output_states[block_idx].to(output.device)

        return hook

    def cosine(one: Tensor, other: Tensor) -> Tensor:
        """Near one, a cosine in single precision would lose the digits that are compared."""
        return torch.cosine_similarity(one.double(), other.double(), -1)

    monkeypatch.setattr(ValueZeroing, "get_states_extract_and_patch_hook", patched)
    monkeypatch.setitem(ValueZeroing.SIMILARITY_METRICS, "cosine", cosine)
    found = theirs(models, "value_zeroing")
    translator = models[1]
    trace = translator.explain(READ, WRITTEN).trace
    tensors = replay(translator.model, trace.source.ids, trace.target.ids, detail="blocks").tensors
    with torch.no_grad():
        below, above = zeroing(translator.model, tensors, UNOBSERVED)
    close = {"atol": 1e-4, "rtol": 0}
    share = lambda each: each / each.sum(-1, keepdim=True)  # noqa: E731
    for layer, (own, cross) in enumerate(above):
        torch.testing.assert_close(share(cross), found.source_attributions[..., layer].T.float(), **close)
        their = found.target_attributions[: len(own), :, layer].nan_to_num(0.0).T.float()
        torch.testing.assert_close(share(own), their, **close)
    for layer, each in enumerate(below):
        their = found.sequence_scores["encoder_self_scores"][..., layer].T.float()
        torch.testing.assert_close(share(each), their, **close)
