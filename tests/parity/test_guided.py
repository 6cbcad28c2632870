"""Guided alignment: what one head loses is the same on the fused path and written out, in every kind of step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import corpora_for_tests as small
import tiny
from regard.data.batches import Batches
from regard.decode.engines.ctranslate2 import to_ctranslate2
from regard.nn.observe import Recorder
from regard.runs.folder import Run
from regard.tasks.task import Tensors
from regard.tasks.translate import TranslateTask, guided_alignment
from regard.text.vocabulary import END, PAD, START, UNK
from regard.trainer.start import open_task

CPU = torch.device("cpu")
GOLD = ("train.alignment.kind=guided", "train.alignment.links=gold")
PRESETS = {
    "transformer-tiny": ("model.decoder_depth=2", "train.alignment.layer=2", "train.alignment.head=2"),
    "transformer-ssru": ("model.decoder_depth=2",),
    "bahdanau": (),
    "luong-dot": (),
    "luong-local": (),
    "conditional": (),
}


def opened(tmp_path: Path, preset: str, *overrides: str) -> tuple[TranslateTask, list[Tensors]]:
    settings = small.settings(preset, "model.dropout=0.0", *GOLD, *PRESETS[preset], *overrides)
    task = open_task(Run.create(tmp_path / "run", settings), small.Notes().tell).train()
    assert isinstance(task, TranslateTask)
    batches = [Tensors.of(batch, CPU) for batch in Batches(task.train_examples, 128).epoch(0)]
    assert all(batch.links.any() for batch in batches[:3])
    return task, batches[:3]


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_head_loses_is_that_of_its_weights_written_out(preset: str, tmp_path: Path) -> None:
    task, batches = opened(tmp_path, preset)
    head = task.guided
    assert head is not None
    transformer = preset.startswith("transformer")
    name = f"decoder.{head[0]}.cross.weights" if transformer else "decoder.cross.weights"
    for batch in batches:
        watch = Recorder()
        task.model(batch.source, batch.target_in, observer=watch)
        weights = watch[name][:, head[1]].detach()  # (B, T, S)
        total = 0.0
        for row, step in (batch.target_out > UNK).nonzero().tolist():
            linked = batch.links[row, step]
            if transformer and not linked.any() and batch.links[row].any():
                linked = torch.arange(len(linked)) == int((batch.source[row] != PAD).sum()) - 1  # <end>
            if linked.any():
                total -= float(weights[row, step + transformer][linked].clamp_min(1e-9).log().mean())
        bare = task(Tensors(*batch.columns()[:-1], batch.links[:, :0, :0])).detach()
        found = float(task(batch).detach() - bare) / task.learn.alignment.weight
        torch.testing.assert_close(found, total, rtol=2e-3, atol=2e-2)


def test_words_without_links_and_padding_lose_nothing() -> None:
    links = torch.zeros(1, 3, 2, dtype=torch.bool)
    weights = torch.tensor([[[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]]).log()
    assert float(guided_alignment(weights, links)) == 0.0
    links[0, 0] = True  # both share it
    torch.testing.assert_close(guided_alignment(weights, links), -(weights[0, 0].mean()))


@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau"])
def test_the_gradient_reaches_the_head_and_validation_sees_none_of_it(preset: str, tmp_path: Path) -> None:
    task, (batch, *_) = opened(tmp_path, preset)
    task(batch).backward()
    with_links = [parameter.grad.clone() for parameter in task._guided().parameters() if parameter.grad is not None]
    task.zero_grad()
    task(Tensors(*batch.columns()[:-1], batch.links[:, :0, :0])).backward()
    without = [parameter.grad for parameter in task._guided().parameters() if parameter.grad is not None]
    assert any(not torch.equal(a, b) for a, b in zip(with_links, without, strict=True))
    assert not any(each.links.size for each in task.valid_batches())
    task.eval()
    assert float(task(batch).detach()) == float(task(Tensors(*batch.columns()[:-1], batch.links[:, :0, :0])).detach())


def test_compiled_parts_give_the_eager_loss(tmp_path: Path) -> None:
    torch._dynamo.reset()
    task, batches = opened(tmp_path, "transformer-tiny")
    eager = [float(task(batch, static=True).detach()) for batch in batches]
    task.compile_parts(backend="eager")
    torch.testing.assert_close(
        [float(task(batch, static=True).detach()) for batch in batches], eager, rtol=1e-4, atol=0
    )


def test_ctranslate2_returns_the_attention_of_the_head_that_was_taught(tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    torch.manual_seed(7)
    model = tiny.regard.encoder_decoder(
        tiny.settings("transformer-small").model, tiny.SOURCE_SIZE, tiny.TARGET_SIZE
    ).eval()
    with torch.no_grad():
        model.decoder.output.bias[[PAD, START, UNK]] = -40.0
    names = ["<pad>", "<start>", "<end>", "<unk>", *map(str, range(4, tiny.TARGET_SIZE))]
    (tmp_path / "model").mkdir()
    to_ctranslate2(model, names[: tiny.SOURCE_SIZE], names, tmp_path / "model", aligner=(0, 2))
    reader = ctranslate2.Translator(str(tmp_path / "model"), inter_threads=1, intra_threads=1)
    source = [5, 11, 7, 13]
    (answer,) = reader.translate_batch(
        [[names[number] for number in source]], return_attention=True, beam_size=1, max_decoding_length=6
    )
    written = [names.index(piece) for piece in answer.hypotheses[0]]
    watch = Recorder()
    with torch.no_grad():
        model(torch.tensor([[*source, END]]), torch.tensor([[START, *written]]), observer=watch)
    ours = watch["decoder.0.cross.weights"][0, 2, : len(written)].numpy()
    assert len(written) > 2
    np.testing.assert_allclose(np.array(answer.attention[0])[:, : len(source)], ours[:, : len(source)], atol=1e-5)
