"""Looking inside through the service: every number is the one that the Python calls give."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor
from torch.nn.functional import normalize

import corpora_for_tests as small
from regard.decode.options import Options
from regard.decode.rules import Beam
from regard.decode.tree import Trees
from regard.explain import look
from regard.explain import look as inside
from regard.explain.alignment import Aligner, Attended
from regard.explain.answer import pack
from regard.explain.attribution import METHODS
from regard.explain.edits import KINDS, Editor, from_data, what_if
from regard.explain.importance import attribute
from regard.explain.look import checks
from regard.explain.meaning import cosines, find, meaning, nearest, plane, spelled, validation_texts, words_of
from regard.explain.recurrent import filling, saliency
from regard.explain.recurrent import gates as gate_views
from regard.explain.replay import replay
from regard.explain.statistics import statistics
from regard.explain.trace import Trace
from regard.explain.walkthrough.walk import walk_text
from regard.fable.corpus import generate
from regard.serve.app import create_app
from regard.serve.library import Library
from regard.serve.worker import Worker
from regard.settings.call import DecodeSettings
from regard.tasks.engines import CTranslate2
from regard.tasks.load import load_predictor
from regard.tasks.translator import Translator
from regard.text.vocabulary import END
from regard.trainer.start import start

CAT = "the cat sees a bird"
SEEN = next(iter(generate("fr", count=1, split="train", maximum_words=8)))  # the first pair that every run has read
BEGUN = {side: " ".join(text.split()[:2]) for side, text in (("source", SEEN.source), ("target", SEEN.target))}
BRIEF = ("train.steps=1", "train.validate_every=1", "train.step=eager", "data.pairs=103")
RUNS = {
    "heads": ("transformer-tiny", "model.decoder_depth=2", "model.encoder_depth=2", "train.seed=6"),  # several words
    "bahdanau": ("bahdanau",),
    "plain": ("lstm", "model.depth=1"),
    "simple": ("lstm", "model.depth=1", "model.cell=elman"),
    "tag": ("transformer-tiny", "task=tag", "text.tokenizer=space"),
    "classify": ("transformer-tiny", "task=classify", "pool=attention"),
    "language": ("transformer-tiny", "task=language"),
    "writer": ("lstm", "task=language"),
    "letters": ("transformer-tiny", "task=tag", "text.tokenizer=space", "model.letters=5"),
}
JSON = {"Content-Type": "application/json"}
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each kind; do not change them."""
    place = tmp_path_factory.mktemp("runs")
    for name, (preset, *overrides) in RUNS.items():
        start(place / name, small.settings(preset, *BRIEF, *overrides), small.Notes(), device="cpu")
    Aligner(((1, 0), (0, 1)), late=True, error_rate=0.25, chosen_on="valid").save(place / "heads")
    Aligner(((0, 0),)).save(place / "bahdanau")
    return place


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Library(folder)), base_url="http://localhost") as made:
        yield made


@pytest.fixture
def ask(client: TestClient) -> Ask:
    """The answer of a route; without its status when it is a success."""

    def post(path: str, run: str = "heads", status: int = 200, /, **body: Any) -> Any:
        answer: httpx.Response = client.post(f"/api/v1/{path}", content=json.dumps({"run": run, **body}), headers=JSON)
        assert answer.status_code == status, answer.text
        return answer.json()

    return post


@pytest.fixture(scope="module")
def translator(folder: Path) -> Translator:
    return loaded(folder, "heads")


def loaded(folder: Path, name: str) -> Translator:
    found = load_predictor(folder / name)
    assert isinstance(found, Translator)
    return found


def unpack(packed: dict[str, Any]) -> Tensor:
    """What a client does with packed numbers."""
    found = torch.frombuffer(bytearray(base64.b64decode(packed["data"])), dtype=torch.float32)
    return found.reshape(packed["shape"])


def same(packed: dict[str, Any], tensor: Tensor) -> bool:
    """Equal in shape and in every bit."""
    return packed["shape"] == list(tensor.shape) and torch.equal(unpack(packed), tensor)


def test_packed_numbers_come_back_in_every_bit() -> None:
    values = torch.tensor([[0.1, -math.inf, math.nan], [1e-45, 3.0, -0.0]])
    found = unpack(pack(values.T).model_dump())
    assert torch.equal(found.view(torch.int32), values.T.contiguous().view(torch.int32))
    assert pack(torch.tensor([0.5], dtype=torch.float64)).data == "AAAAPw=="


# A trace


def test_a_trace_has_the_weights_of_the_python_call(ask: Ask, translator: Translator) -> None:
    found, trace = ask("trace", text=CAT, beam=3), translator.translate(CAT, beam=3).trace()
    names = [one["name"] for one in found["attentions"]]
    sides = [(one["side"], one["layer"], one["heads"]) for one in found["attentions"]]
    assert names == [f"{name}" for name in (*_self("encoder"), *_self("decoder"), "decoder.0.cross", "decoder.1.cross")]
    assert sides == [(side, layer, 2) for side in ("encoder", "decoder", "cross") for layer in (0, 1)]
    for one in found["attentions"]:
        assert same(one["weights"], trace.tensors[f"{one['name']}.weights"]), one["name"]
    assert found["log_probability"] == pytest.approx(trace.score)
    assert found["log_probabilities"] == trace.log_probability.tolist()
    assert found["ranks"] == trace.rank.tolist()
    assert found["output"] == translator.translate(CAT, beam=3).text
    assert (found["run"], found["task"], found["text"]) == ("heads", "translate", CAT)


def _self(side: str) -> list[str]:
    return [f"{side}.0.self", f"{side}.1.self"]


def test_a_trace_has_its_sides_candidates_and_statistics(ask: Ask, translator: Translator) -> None:
    found, trace = ask("trace", text=CAT), translator.translate(CAT).trace()
    for name, side in (("source", trace.source), ("target", trace.target)):
        assert found[name] == {part: list(getattr(side, part)) for part in ("pieces", "ids", "words", "word_of")}
    assert found["inputs"]["pieces"] == list(trace.inputs)
    assert found["inputs"]["word_of"] == [-1, *trace.target.word_of[:-1]]
    for row, pieces, odds in zip(found["top"], trace.top_pieces, trace.top_log_probability, strict=True):
        assert [one["piece"] for one in row] == list(pieces)
        assert [one["probability"] for one in row] == pytest.approx(odds.exp().tolist())
    for side in ("encoder", "decoder", "cross"):
        mine = [one for one in found["statistics"] if one["side"] == side]
        assert [(one["entropy"], one["role"]) for one in mine] == [
            (one.entropy, one.role) for one in statistics(trace, side)
        ]


def test_a_trace_names_its_aligner_and_has_its_links(ask: Ask, translator: Translator) -> None:
    found = ask("trace", text=CAT)
    assert found["aligner"] == {
        "heads": [{"layer": 1, "head": 0}, {"layer": 0, "head": 1}],
        "late": True,
        "description": "cross-attention, mean of heads 2.1 + 1.2 (best aligner on valid, AER 0.25)",
    }
    expected = translator.aligner.strongest(translator.translate(CAT).trace())
    assert [(one["source"], one["weight"]) for one in found["links"]] == expected
    assert [one["target"] for one in found["links"]] == list(range(len(expected)))


def test_any_of_the_best_outputs_can_be_looked_into(ask: Ask, translator: Translator) -> None:
    outputs = translator.translate(CAT, Options(Beam(4, best=3))).outputs
    for rank in range(3):
        assert ask("trace", text=CAT, beam=4, rank=rank)["output"] == outputs[rank].text


def test_what_is_looked_into_is_searched_for_as_the_request_says(ask: Ask, translator: Translator) -> None:
    decode = {"beam": 2, "prefix": "un chat"}
    output = translator.translate(CAT, Options.of(DecodeSettings(beam=2, prefix="un chat"))).text
    assert ask("trace", text=CAT, decode=decode)["output"] == output
    assert ask("importance", text=CAT, decode=decode)["rows"] == output.split()
    assert ask("walkthrough", text=CAT, decode=decode)["target"]["words"] == output.split()
    assert "there is no search here" in ask("trace", "heads", 400, text=CAT, target="le chat", decode=decode)["error"]
    assert "there is no search here" in ask("trace", "tag", 404, text=CAT, decode=decode)["error"]
    assert ask("walkthrough", "tag", 404, text=CAT, decode=decode)["error"].startswith("decode:")
    assert ask("trace", "heads", 400, text=CAT, decode={"best": 2})["error"].startswith("decode.best: not for what is")


def test_a_translation_by_somebody_else_can_be_looked_into(ask: Ask, translator: Translator) -> None:
    found = ask("trace", text=CAT, target="le chat voit un oiseau")
    trace = translator.explain(CAT, "le chat voit un oiseau").trace
    assert found["output"] == "le chat voit un oiseau"
    assert same(found["attentions"][-1]["weights"], trace.tensors["decoder.1.cross.weights"])


def test_a_checkpoint_is_looked_into_by_its_name(ask: Ask, folder: Path) -> None:
    found = ask("trace", text=CAT, checkpoint="step-1")
    assert found["output"] == ask("trace", text=CAT)["output"]
    assert found["aligner"]["late"]  # the run's own
    for name in ("step-2", "../heads/checkpoints/step-1", "best"):
        assert ask("trace", "heads", 404, text=CAT, checkpoint=name)["error"].startswith(f"checkpoint = {name}: run")
    assert ask("trace", "tag", text=CAT, checkpoint="step-1")["task"] == "tag"
    (folder / "bahdanau" / "aligner.json").unlink()
    assert ask("trace", "bahdanau", text=CAT, checkpoint="step-1")["aligner"] is None
    assert not (folder / "bahdanau" / "aligner.json").exists()  # nothing was chosen for it
    Aligner(((0, 0),)).save(folder / "bahdanau")


def test_several_views_of_one_output_take_one_search(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    translate = Translator.translate

    def watched(translator: Translator, text: str, options: Options) -> Any:
        searched.append(text)
        return translate(translator, text, options)

    monkeypatch.setattr(Translator, "translate", watched)
    for path in ("trace", "importance", "gates"):
        ask(path, "plain", text="a bird sees the cat")
    assert searched == ["a bird sees the cat"]
    ask("trace", "plain", text="a bird sees the cat", beam=2)
    assert len(searched) == 2


# Is what is shown what was used?


def test_the_checks_are_measured(ask: Ask, translator: Translator) -> None:
    found, trace = ask("trace", text=CAT)["checks"], translator.translate(CAT).trace()
    weights = [value for name, value in trace.tensors.items() if name.endswith("weights")]
    assert found["largest_row_error"] == max(float((value.sum(-1) - 1).abs().max()) for value in weights) < 1e-5
    assert found["largest_difference_from_decoding"] < 1e-5
    assert found["largest_difference_in_log_probability"] < 1e-5


def test_weights_that_were_not_used_are_found_out(translator: Translator) -> None:
    trace = translator.translate(CAT).trace()
    name = "decoder.1.cross.weights"
    moved = trace.tensors[name].clone()
    moved[1, 2, 0] += 0.125
    wrong = Trace(**{**vars(trace), "tensors": {**trace.tensors, name: moved}})
    found = checks(translator.model, wrong)
    assert found.largest_difference_from_decoding == pytest.approx(0.125, abs=1e-5)
    assert found.largest_row_error == pytest.approx(0.125, abs=1e-5)


@pytest.mark.parametrize("run", sorted(RUNS))
def test_runs_of_every_task_are_looked_into_and_checked(ask: Ask, run: str) -> None:
    found = ask("trace", run, text=CAT)
    rows = {"encoder": "source", "decoder": "inputs", "cross": "target"}
    columns = {"encoder": "source", "decoder": "inputs", "cross": "source"}
    for one in found["attentions"]:
        sizes = [len(found[sides[one["side"]]]["pieces"]) for sides in (rows, columns)]
        assert one["weights"]["shape"] == [one["heads"], *sizes]
    assert all(value < 1e-5 for value in found["checks"].values())
    tasks = {"tag": "tag", "letters": "tag", "classify": "classify", "language": "language", "writer": "language"}
    assert found["task"] == tasks.get(run, "translate")
    assert len(found["top"]) == len(found["target"]["pieces"]) == len(found["log_probabilities"])


def test_a_classifiers_pool_is_shown_as_attention_of_its_label(ask: Ask) -> None:
    pool = ask("trace", "classify", text=CAT)["attentions"][-1]
    assert (pool["name"], pool["side"], pool["weights"]["shape"][1]) == ("pool", "cross", 1)


# What if

EDITS: dict[str, dict[str, Any]] = {
    "replace-word": {"word": 1, "by": "black dog"},
    "mask-word": {"word": 1},
    "force-prefix": {"prefix": BEGUN["target"]},
    "set-row": {"attention": "decoder.1.cross", "head": 0, "row": 0, "weights": [0, 0, 0.5, 0, 0.5, 0]},
    "mute-head": {"attention": "decoder.0.cross", "head": 1},
    "force-head": {"attention": "decoder.1.cross", "head": 1, "word": 3},
    "no-positions": {"side": "encoder"},
    "no-scale": {"attention": "encoder.0.self"},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_edit_does_what_the_python_call_does(ask: Ask, translator: Translator, kind: str) -> None:
    edits = [{"kind": kind, **EDITS[kind]}]
    found = ask("trace", text=CAT, edits=edits)
    outcome = what_if(translator, CAT, from_data(edits))
    difference = found["difference"]
    assert (difference["before"]["text"], difference["after"]["text"]) == (outcome.before.text, outcome.after.text)
    assert difference["change_in_log_probability"] == pytest.approx(outcome.change_in_log_probability)
    assert difference["same"]["log_probability"] == pytest.approx(outcome.traces[1].score)
    assert difference["fall"] == list(outcome.fall)
    assert difference["changes"] == json.loads(json.dumps(outcome.changes))
    for one in found["attentions"]:
        assert same(one["weights"], outcome.traces[2].tensors[f"{one['name']}.weights"])
    assert found["source"]["words"] == found["text"].split() == list(outcome.traces[2].source.words)
    assert all(value < 1e-5 for value in found["checks"].values())


def test_edits_follow_a_given_output(ask: Ask, translator: Translator) -> None:
    edits = [{"kind": "mask-word", "word": 1}]
    found = ask("trace", text=CAT, target="le chat", edits=edits)["difference"]
    written = [*translator.tokenizers.target.encode("le chat"), END]
    outcome = what_if(translator, CAT, from_data(edits), output=written)
    assert found["before"] == {"text": "le chat", "log_probability": pytest.approx(outcome.traces[0].score)}


def test_a_prefix_that_cannot_be_written_is_said_by_its_words(ask: Ask) -> None:
    edits = [{"kind": "force-prefix", "prefix": "zyx"}]
    assert (
        "prefix = 'zyx': has pieces that this model's vocabulary does not"
        in ask("trace", "heads", 400, text=CAT, edits=edits)["error"]
    )


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("tag", {"kind": "mask-word", "word": 1}),
    ("letters", {"kind": "replace-word", "word": 1, "by": "dog"}),
    ("classify", {"kind": "set-row", "attention": "pool", "head": 0, "row": 0, "weights": [0, 1, 0, 0, 0]}),
    ("language", {"kind": "force-head", "attention": "decoder.0.self", "head": 1, "word": 2}),
    ("writer", {"kind": "force-prefix", "prefix": BEGUN["source"]}),
]


@pytest.mark.parametrize(("run", "edit"), OTHERS)
def test_edits_of_other_tasks_do_what_the_python_call_does(
    ask: Ask, folder: Path, run: str, edit: dict[str, Any]
) -> None:
    found, outcome = (
        ask("trace", run, text=CAT, edits=[edit]),
        inside.look(load_predictor(folder / run), CAT, edits=from_data([edit])).difference,
    )
    assert outcome is not None
    difference = found["difference"]
    assert (difference["before"]["text"], difference["after"]["text"]) == (outcome.before.text, outcome.after.text)
    assert difference["change_in_log_probability"] == pytest.approx(outcome.change_in_log_probability)
    assert difference["fall"] == list(outcome.fall)
    assert len(difference["pieces"]) == len(difference["fall"])
    assert all(value < 1e-5 for value in found["checks"].values())
    answer = ask("importance", run, text=CAT, edits=[edit])
    words = len(answer["columns"] or answer["read"])
    assert words == len((found["source"] if found["source"]["words"] else found["inputs"])["words"]) - (
        run in {"language", "writer"} and found["inputs"]["word_of"][-1] < len(found["inputs"]["words"]) - 1
    )


# Importance


@pytest.mark.parametrize("method", METHODS)
def test_importance_is_that_of_the_python_calls(ask: Ask, translator: Translator, method: str) -> None:
    found, expected = ask("importance", text=CAT, method=method, points=4), attribute(translator, CAT, method, points=4)
    assert (found["method"], found["of"], found["against"]) == (method, "log-probability", "")
    assert (found["rows"], found["columns"]) == (list(expected.rows), list(expected.columns))
    assert found["read"] == list(expected.read)
    for part in ("source", "prefix", "source_layers", "prefix_layers", "values", "source_share"):
        value = getattr(expected, part)
        assert found[part] is None if value is None else same(found[part], value)
    assert found["completeness_error"] == pytest.approx(expected.completeness_error)


def test_importance_of_attention_is_read_by_the_aligner(ask: Ask, translator: Translator) -> None:
    found, trace = ask("importance", text=CAT, method="attention"), translator.translate(CAT).trace()
    assert same(found["source"], translator.aligner.weights(Attended.of(trace).late.by_word))


def test_importance_says_why_not_another_word(ask: Ask, translator: Translator) -> None:
    trace = translator.translate(CAT).trace()
    place = 1 if int(trace.rank[1]) == 0 else 0  # the best of those that were not written
    other, word = trace.top_pieces[1][place], trace.target.words[1]
    found = ask("importance", text=CAT, against=other, step=1)
    assert (found["rows"], found["of"], found["against"], found["step"]) == ([word], "contrast", other, 1)
    apart = trace.log_probability[1] - trace.top_log_probability[1, place]
    assert unpack(found["values"]).tolist() == pytest.approx([float(apart)], abs=1e-5)
    assert found["source"]["shape"] == [1, 5]
    assert ask("importance", text=CAT, against=other)["against"] == other  # where it came nearest
    line = ask("importance", "heads", 400, text=CAT, against=other, step=500)["error"]
    assert line.startswith("step = 500: the output has no such step; 0 to ")
    line = ask("importance", "heads", 400, text=CAT, against=trace.target.pieces[1], step=1)["error"]
    assert line.endswith("is what was written; give another word or another translation")
    assert ask("importance", "heads", 400, text=CAT, against=" ")["error"].startswith("against = '': has no piece")
    line = ask("importance", "heads", 400, text=CAT, against=other, of="entropy")["error"]
    assert line == "of = entropy: a contrast is a difference of log-probabilities; leave it out"


def test_another_translation_is_held_against_the_output_where_they_part(ask: Ask, translator: Translator) -> None:
    written = translator.translate(CAT)
    trace, words = written.trace(), written.text.split()
    other = " ".join([*words[:2], "chat", "noir"])
    found = ask("importance", text=CAT, against=other, method="gradient")
    assert found["step"] == 2
    scores = replay(translator.model, trace.source.ids, trace.target.ids, logits=True).logits.log_softmax(-1)
    piece = translator.tokenizers.written(other)[2]
    apart = scores[2, trace.target.ids[2]] - scores[2, piece]
    assert unpack(found["values"]).tolist() == pytest.approx([float(apart)], abs=1e-5)


@pytest.mark.parametrize("run", ["tag", "classify", "language"])
def test_other_tasks_can_be_asked_why_not(ask: Ask, folder: Path, run: str) -> None:
    predictor = load_predictor(folder / run)
    trace = inside.look(predictor, CAT).trace
    other = next(piece for piece in trace.top_pieces[0] if piece != trace.target.pieces[0])
    found = ask("importance", run, text=CAT, against=other, step=0, method="saliency")
    assert (found["against"], found["step"], len(found["rows"])) == (other, 0, 1)
    if run != "language":
        assert ask("importance", run, text=CAT, against=other)["of"] == "contrast"
        assert "is no label of this run" in ask("importance", run, 400, text=CAT, against="nonsense")["error"]


def test_importance_under_edits_is_that_of_the_edited_model(ask: Ask, translator: Translator) -> None:
    """A word that is blanked out already has no effect any more, and a muted head changes that of the others."""
    for method in ("masking", "gradient", "saliency", "integrated-gradients"):
        masked = ask("importance", text=CAT, edits=[{"kind": "mask-word", "word": 1}], method=method, points=3)
        assert unpack(masked["source"])[:, 1].abs().max() < 1e-5
        assert unpack(masked["source"])[:, 3].abs().max() > 0  # a word that this run knows
    edits = [{"kind": "mute-head", **EDITS["mute-head"]}, {"kind": "no-positions", "side": "encoder"}]
    muted = ask("importance", text=CAT, edits=edits)
    after = what_if(translator, CAT, from_data(edits)).traces[2]
    blank = (*from_data(edits), *from_data([{"kind": "mask-word", "word": 2}]))
    without = replay(translator.model, after.source.ids, after.target.ids, Editor(blank, after.source))
    fall = (after.log_probability - without.log_probability)[: len(after.target.words)]
    assert torch.allclose(unpack(muted["source"])[:, 2], fall, atol=1e-5)  # words are pieces here
    for method in ("alti", "zeroing", "rollout", "norm"):
        one, other = (ask("importance", text=CAT, edits=each, method=method)["source"] for each in (edits, edits[1:]))
        assert one["shape"] != other["shape"] or not torch.allclose(unpack(one), unpack(other))


@pytest.mark.parametrize("run", ["tag", "classify", "language", "plain", "writer"])
def test_importance_of_other_tasks_has_attention_where_it_has_rows_for_it(ask: Ask, run: str) -> None:
    found = ask("importance", run, text=CAT)
    part, columns = ("prefix", "read") if found["source"] is None else ("source", "columns")
    shape = [len(found["rows"]), len(found[columns])]
    assert found[part]["shape"] == shape
    assert (part == "prefix") == (run in {"language", "writer"})
    if run in {"plain", "writer"}:
        line = ask("importance", run, 404, text=CAT, method="attention")["error"]
        assert line.startswith("method = attention: this model has no attention; masking")
    else:
        assert ask("importance", run, text=CAT, method="attention")[part]["shape"] == shape


def test_where_no_word_was_read_before_none_mattered(ask: Ask) -> None:
    """A language model that predicts the first word has read nothing but its own beginning."""
    found = ask("importance", "language", text="cat")
    assert (found["rows"], found["read"], found["prefix"]["shape"]) == (["cat"], [], [1, 0])


def test_a_pooled_class_without_attention_has_no_row_of_it(ask: Ask, folder: Path) -> None:
    settings = small.settings("transformer-tiny", *BRIEF, "task=classify", "pool=mean")
    start(folder / "mean", settings, small.Notes(), device="cpu")
    line = ask("importance", "mean", 404, text=CAT, method="attention")["error"]
    assert line.startswith("method = attention: no attention leads to the label")
    assert ask("importance", "mean", text=CAT, method="alti")["source"]["shape"] == [1, 5]


# Recurrent models


@pytest.mark.parametrize("run", ["plain", "bahdanau"])
def test_gates_are_those_of_the_python_calls(ask: Ask, folder: Path, run: str) -> None:
    found, model = ask("gates", run, text=CAT), loaded(folder, run)
    trace = model.translate(CAT).trace()
    expected = gate_views(trace)
    assert [one["name"] for one in found["gates"]] == [one.name for one in expected]
    for one, view in zip(found["gates"], expected, strict=True):
        assert all(same(one[part], getattr(view, part)) for part in ("values", "mean", "opened", "closed"))
        side = trace.source if view.name.startswith("encoder") else trace.target
        assert one["rows"] == list(side.pieces)
    for one in found["states"]:
        assert same(one["values"], trace.tensors[one["name"]])
    for one, full in zip(found["filling"], filling(trace), strict=True):
        assert one["name"] == full.name
        assert all(same(one[part], getattr(full, part)) for part in ("likeness", "change", "length"))
    assert same(found["saliency"], saliency(model.model, trace.source.ids, trace.target.ids))
    assert (found["rows"], found["columns"]) == (list(trace.target.pieces), list(trace.source.pieces))


def test_a_plain_recurrent_network_has_states_and_no_gates(ask: Ask) -> None:
    found = ask("gates", "simple", text=CAT)
    assert found["gates"] == []
    assert {one["name"].split(".")[0] for one in found["states"]} == {"encoder", "decoder"}


def test_a_recurrent_language_model_has_no_encoder_to_fill(ask: Ask) -> None:
    found = ask("gates", "writer", text=CAT)
    assert found["filling"] == []
    assert found["saliency"]["shape"] == [len(found["rows"]), len(found["columns"])]


def test_gates_follow_edits(ask: Ask) -> None:
    before, after = (ask("gates", "plain", text=CAT, edits=edits) for edits in ([], [{"kind": "mask-word", "word": 1}]))
    assert unpack(after["saliency"])[:, 1].abs().max() == 0
    first, second = (unpack(one["gates"][0]["values"]) for one in (before, after))
    assert torch.equal(first[0], second[0])  # before the masked word
    assert not torch.equal(first[1], second[1])


# Beams


def test_a_tree_is_that_of_the_search(ask: Ask, translator: Translator) -> None:
    rule = Beam(3, 0.5, best=3)
    listener = Trees(rule)
    (outputs,) = translator.search([CAT], Options(rule), listener=listener)
    found, tree = ask("beam", text=CAT, beam=3, length_penalty=0.5), listener.trees[0]
    added = [{name: one.pop(name) for name in ("piece", "text")} for one in found["nodes"]]
    assert {"nodes": found["nodes"], "outputs": found["outputs"]} == asdict(tree)
    assert [added[number]["text"] for number in found["outputs"]] == [output.text for output in outputs]
    assert found["text"] == outputs[0].text
    assert added[0] == {"piece": "<start>", "text": ""}
    assert {one["piece"] for one, node in zip(added, tree.nodes, strict=True) if node.token == END} == {"<end>"}


def test_other_beams_give_what_they_would(ask: Ask, translator: Translator) -> None:
    others = ask("beam", text=CAT, beam=3, length_penalty=0.5)["others"]
    assert [one["beam"] for one in others] == [1, 2, 5, 10]
    for one in others:
        output = translator.translate(CAT, Options(Beam(one["beam"], 0.5))).outputs[0]
        assert one["text"] == output.text
        assert one["score"] == pytest.approx(output.score)
        assert one["log_probability"] == pytest.approx(output.log_probability)


def test_a_prefix_begins_every_output_of_a_tree(ask: Ask) -> None:
    found = ask("beam", text=CAT, prefix=BEGUN["target"])
    assert found["outputs"]
    assert all(found["nodes"][number]["text"].startswith(BEGUN["target"]) for number in found["outputs"])


def test_a_language_model_searches_for_what_follows(ask: Ask) -> None:
    found = ask("beam", "language", text="the cat", beam=2)
    best = found["nodes"][found["outputs"][0]]
    assert found["text"] == best["text"]
    assert best["piece"] == "<end>"


# Meaning


def test_meanings_are_those_of_the_python_calls(ask: Ask, translator: Translator, folder: Path) -> None:
    sentences = [CAT, "a bird hears the cat ."]
    found = ask("meaning", word="cat", sentences=sentences, control="bird", neighbours=3)
    tokenizer = translator.tokenizers.source
    occurrences = [*find("cat", sentences), *find("bird", sentences)]
    expected = meaning(translator.model, tokenizer, occurrences)
    assert same(found["cosines"], cosines(expected))
    points, explained = plane(expected, 2)  # the axes are the word's, not the control's
    assert same(found["points"], torch.stack(points))
    assert found["explained"] == explained
    assert found["layers"] == ["embedding", "layer 1", "layer 2"]
    told = [(one["sentence"], one["word"], one["place"], one["control"]) for one in found["occurrences"]]
    assert told == [
        (one[0], spelled(one), one[1], control)
        for one, control in zip(occurrences, (False, False, True, True), strict=True)
    ]
    corpus = list(dict.fromkeys([*sentences, *validation_texts(folder / "heads")]))
    assert found["searched"] == len(corpus) > 50
    words, every = words_of(translator.model, tokenizer, corpus)
    for layer, vectors in enumerate(expected):
        unit = normalize(every[layer], dim=-1)
        for one, vector, near in zip(occurrences, vectors, found["neighbours"][layer], strict=True):
            known = nearest(vector, words, unit, 3, besides=one)
            assert [(other["word"], other["sentence"]) for other in near] == [
                (spelled(each), each[0]) for each, _ in known
            ]
            assert [other["cosine"] for other in near] == pytest.approx([cosine for _, cosine in known], abs=1e-5)


def test_meanings_need_no_translation_no_control_and_no_validation_text(ask: Ask) -> None:
    for run in ("tag", "letters", "plain"):
        (found,) = ask("meaning", run, word="cat", sentences=[CAT])["occurrences"]
        assert not found["control"]
    assert ask("meaning", "tag", word="cat", sentences=[CAT])["occurrences"][0]["translation"]  # its tag
    assert ask("meaning", "classify", word="cat", sentences=[CAT])["occurrences"][0]["translation"] == ""
    assert validation_texts(None) == validation_texts(Path("nowhere")) == []


# Walkthroughs


@pytest.mark.parametrize("run", ["heads", "bahdanau", "tag", "language"])
def test_a_walkthrough_is_that_of_the_python_call(ask: Ask, folder: Path, run: str) -> None:
    expected = walk_text(load_predictor(folder / run), CAT, word=1).to_dict()
    found = ask("walkthrough", run, text=CAT, word=1)
    assert {name: found[name] for name in expected} == expected


# Texts of several sentences

SEVERAL = "The cat sleeps.\n\n  - the wizard ate the honey! the bear slept"
CUT = ["The cat sleeps.", "the wizard ate the honey!", "the bear slept"]


def test_sentences_are_where_everything_else_cuts(client: TestClient) -> None:
    found = client.post("/api/v1/sentences", json={"text": SEVERAL}).json()["sentences"]
    assert [each["text"] for each in found] == CUT
    assert [SEVERAL[each["start"] : each["end"]] for each in found] == CUT
    assert client.post("/api/v1/sentences", json={"text": " "}).json() == {"sentences": []}


@pytest.mark.parametrize("path", ["trace", "importance", "beam", "walkthrough"])
def test_of_several_sentences_one_is_looked_into_and_all_are_told(ask: Ask, path: str) -> None:
    for number, sentence in enumerate(CUT):
        found, alone = ask(path, text=SEVERAL, sentence=number), ask(path, text=sentence)
        assert [each["text"] for each in found.pop("sentences")] == CUT
        assert [each["text"] for each in alone.pop("sentences")] == [sentence]
        assert (found.pop("sentence"), alone.pop("sentence")) == (number, 0)
        assert found == alone
    assert ask(path, text=SEVERAL)["sentence"] == 0
    line = ask(path, "heads", 400, text=SEVERAL, sentence=3)["error"]
    assert line == "sentence = 3: the text has 3, counted from 0; choose one of these"


def test_a_quotation_is_cut_for_looking_as_the_run_reads_it(client: TestClient, ask: Ask) -> None:
    text, parts = "“The cat sleeps,” said the bear.", ["The cat sleeps,", "said the bear."]
    for number, part in enumerate(parts):
        found = ask("trace", text=text, sentence=number)
        assert [each["text"] for each in found["sentences"]] == parts
        assert found["output"] == ask("trace", text=part)["output"]
    for more, expected in (({"run": "heads"}, parts), ({}, [text])):
        found = client.post("/api/v1/sentences", json={"text": text, **more}).json()
        assert [each["text"] for each in found["sentences"]] == expected


def test_gates_are_those_of_the_chosen_sentence(ask: Ask) -> None:
    found = ask("gates", "bahdanau", text=SEVERAL, sentence=1)
    assert (found["sentence"], found["columns"]) == (1, ask("gates", "bahdanau", text=CUT[1])["columns"])


@pytest.mark.parametrize("path", ["trace", "importance", "beam", "walkthrough"])
def test_words_that_the_run_has_never_seen_are_told_with_their_place_in_the_sentence(ask: Ask, path: str) -> None:
    first, rest = SEEN.source.split(" ", 1)
    found = ask(path, text=f"{SEEN.source}\n{first} qwertyuiop {rest}", sentence=1)
    (unknown,) = found["unknown"]
    assert (unknown["word"], unknown["start"], unknown["end"]) == ("qwertyuiop", len(first) + 1, len(first) + 11)
    assert "1 word this run has never seen" in found["warning"]
    known = ask(path, text=SEEN.source)
    assert (known["unknown"], known["warning"]) == ([], "")


@pytest.mark.parametrize("run", ["tag", "language"])
def test_what_does_not_translate_reads_a_text_whole(ask: Ask, run: str) -> None:
    found = ask("trace", run, text="the cat sleeps . the bear slept")
    assert [each["text"] for each in found["sentences"]] == ["the cat sleeps . the bear slept"]
    assert (found["unknown"], found["warning"]) == ([], "")


# What cannot be answered

REFUSED: list[tuple[str, str, int, dict[str, Any], str]] = [
    ("trace", "nobody", 404, {"text": CAT}, "run = nobody: no such run"),
    ("trace", "heads", 400, {"text": "  "}, "text = '': an empty sentence"),
    ("trace", "heads", 400, {"text": CAT, "beam": 2, "rank": 2}, "rank = 2: a beam of 2 has outputs 0 to 1"),
    ("trace", "heads", 400, {"text": CAT, "edits": [{"kind": "mask"}]}, "edit = mask: no such edit"),
    ("trace", "heads", 400, {"text": CAT, "edits": [{"kind": []}]}, "edit = []: no such edit"),
    (
        "trace",
        "heads",
        400,
        {"text": CAT, "edits": [{"kind": "mask-word", "word": 9}]},
        "word = 9: the sentence has no such word",
    ),
    ("trace", "heads", 413, {"text": "x" * 6000}, "text = 6,000 characters: too long; send at most 5,000"),
    ("trace", "heads", 400, {"text": CAT, "surprise": 1}, "surprise: "),
    ("trace", "heads", 400, {"text": CAT, "edits": [{"kind": "force-prefix", "prefix": "\ud800"}]}, "body: "),
    ("trace", "tag", 404, {"text": CAT, "target": "x"}, "target: run 'tag' does not translate"),
    ("gates", "heads", 404, {"text": CAT}, "gates: this run has no recurrent cells"),
    ("beam", "heads", 400, {"text": " "}, "text = ' ': there is nothing to search"),
    ("beam", "heads", 400, {"text": "the cat sees a bird " * 40}, "text: goes through the model in"),
    ("beam", "tag", 404, {"text": CAT}, "beam: this run gives labels"),
    ("beam", "language", 400, {"text": CAT, "prefix": "the"}, "prefix: a language model goes on"),
    ("meaning", "language", 404, {"word": "cat", "sentences": [CAT]}, "meaning: a language model has no encoder"),
    ("meaning", "heads", 400, {"word": "dog", "sentences": [CAT]}, "word = dog: does not stand in"),
    ("meaning", "heads", 400, {"word": "cat", "sentences": [CAT], "control": "x"}, "control = x: stands in none"),
    ("walkthrough", "heads", 400, {"text": CAT, "layer": 7}, "layer = 7: "),
]


@pytest.mark.parametrize(("path", "run", "status", "body", "line"), REFUSED)
def test_what_cannot_be_answered_is_said_in_one_line(
    ask: Ask, path: str, run: str, status: int, body: dict[str, Any], line: str
) -> None:
    error = ask(path, run, status, **body)["error"]
    assert error.startswith(line)
    assert "\n" not in error


def test_an_output_that_the_beam_did_not_find_cannot_be_looked_into(
    ask: Ask, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = translator.translate(CAT)
    monkeypatch.setattr(Translator, "translate", lambda *_: single)
    assert ask("trace", "heads", 400, text=CAT, rank=1)["error"].startswith("rank = 1: only 1 outputs were found")


def test_more_weights_than_a_page_can_hold_are_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.explain.replay.MOST_NUMBERS", 100)
    assert "weights are too many to look at" in ask("trace", "heads", 400, text="a cat")["error"]


@pytest.mark.parametrize("path", ["importance", "gates"])
def test_a_gradient_for_each_of_too_many_pieces_is_refused(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(look, "MOST_STEPS", 10)
    error = ask(path, "plain", 400, text=CAT, **({"method": "gradient"} if path == "importance" else {}))["error"]
    assert error.startswith("text = ")
    assert "a gradient for each takes too long" in error


def test_a_checkpoint_that_is_named_is_loaded_once_and_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    kept = inside.load_run

    def watched(*arguments: Any, **named: Any) -> Any:
        loaded.append(named["checkpoint_name"])
        return kept(*arguments, **named)

    monkeypatch.setattr(inside, "load_run", watched)
    library = Library(folder)
    with TestClient(create_app(library), base_url="http://localhost") as client:
        body = {"run": "heads", "text": CAT, "checkpoint": "step-1"}
        first, second = (client.post("/api/v1/trace", json=body).json() for _ in range(2))
        assert first == second
        assert loaded == ["step-1"]
        assert library.loaded["heads@step-1"].bytes > 0
        library.forget("heads")
        assert library.loaded == {}


def test_memory_is_counted_with_what_searches_by_the_weights(folder: Path) -> None:
    """The fused form of a Transformer has its own copy of most of the decoder; a converted model is one more."""
    model = loaded(folder, "heads")
    weights = sum(each.numel() * each.element_size() for each in model.model.parameters())
    assert Worker(load_predictor(folder / "plain")).bytes < 1.1 * sum(
        each.numel() * each.element_size() for each in loaded(folder, "plain").model.parameters()
    )
    fused = Worker(model).bytes
    output = model.model.decoder.output.weight
    assert fused >= weights + output.numel() * output.element_size()
    converted = CTranslate2(None, model.tokenizers, 7, bytes=1000)
    searcher = replace(model.search.searcher, engine=converted)
    assert Worker(replace(model, searcher=searcher)).bytes == fused + 1000


def test_sixty_words_through_six_layers_of_eight_heads_are_below_five_megabytes() -> None:
    weights = torch.rand(8, 60, 60)
    assert 3 * 6 * len(pack(weights).data) < 5e6
