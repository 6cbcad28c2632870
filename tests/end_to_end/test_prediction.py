"""Tagging, classification and language modelling as a user does them: train, predict, evaluate."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from regard.cli.main import run as cli
from regard.data.readers import Corpus
from regard.errors import DataError, ModelError, ResourceError
from regard.fable.corpus import generate
from regard.metrics.labels import ClassResult, TagResult
from regard.metrics.language import LanguageResult
from regard.tasks.classify import Classifier
from regard.tasks.labels import groups
from regard.tasks.language import Writer
from regard.tasks.load import evaluate, load_predictor
from regard.tasks.tag import Tagger
from regard.tasks.translator import Translator
from regard.trainer.start import preflight, resume, start

Capture = pytest.CaptureFixture[str]
TEXTS = ["the cat sleeps", "", "the old dog saw a bird near the house", "xyzzy sleeps"]
LEARN = ("train.steps=60", "train.validate_every=30", "train.rate=0.01", "train.smoothing=0.0")
TAG = ("model.letters=9", "model.bidirectional=true", "model.bridge=dense", "text.tokenizer=space")
RUNS = {
    "tag": ("lstm", *TAG, "train.steps=100", "train.rate=0.02", "data.pairs=900"),  # words enough to know most of them
    "classify": ("transformer-tiny", "pool=mean", "model.letters=9", "text.tokenizer=space"),
    "language": ("gru", "text.tokenizer=word"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@cache
def trained(folder: Path, task: str) -> Path:
    """One run a task, shared by the tests: do not change it."""
    torch.manual_seed(0)
    preset, *overrides = RUNS[task]
    start(folder / task, small.settings(preset, f"task={task}", *LEARN, *overrides), small.Notes(), device="cpu")
    return folder / task


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Path:
    """Held-out sentences of the built-in corpus as files, for every task."""
    sentences = list(generate("fr", count=60, split="test", minimum_words=5, maximum_words=8))
    (folder / "words").write_text("".join(f"{' '.join(sentence.tokens)}\n" for sentence in sentences))
    (folder / "tags").write_text("".join(f"{' '.join(sentence.tags)}\n" for sentence in sentences))
    rows = "".join(f"{sentence.source}\t{sentence.sentiment}\n" for sentence in sentences)
    (folder / "classes.tsv").write_text(rows)
    return folder


@pytest.mark.parametrize("task", RUNS)
def test_what_is_loaded_is_not_filled_with_chance_first(task: str, folder: Path) -> None:
    """Weights that are about to be read over need no beginning; drawing one makes a large model slow to load."""
    run = trained(folder, task)
    before = torch.get_rng_state()
    load_predictor(run)
    assert torch.equal(torch.get_rng_state(), before)


# Tagging


def test_a_tagger_gives_each_word_one_tag_and_learns_them(folder: Path, corpus: Path) -> None:
    tagger = load_predictor(trained(folder, "tag"))
    assert isinstance(tagger, Tagger)
    tagged = tagger.tag(TEXTS)
    assert [list(row.words) for row in tagged] == [text.split() for text in TEXTS]
    assert all(len(row.tags) == len(row.words) == len(row.probabilities) for row in tagged)
    assert str(tagged[0]).startswith("the/DET cat/NOUN")
    assert str(tagged[1]) == ""
    result = evaluate(trained(folder, "tag"), Corpus((str(corpus / "words"), str(corpus / "tags"))))
    assert isinstance(result, TagResult)
    assert result.texts == 60
    assert result.accuracy > 0.7  # a guess at the commonest tag has less than 0.4
    assert result.words.count > result.unknown.count


def test_tags_do_not_depend_on_who_else_is_in_the_batch(folder: Path) -> None:
    tagger = load_predictor(trained(folder, "tag"))
    assert isinstance(tagger, Tagger)
    together = tagger.tag(TEXTS)
    alone = [tagger.tag([text])[0] for text in TEXTS]
    assert [row.tags for row in together] == [row.tags for row in alone]
    for first, second in zip(together, alone, strict=True):
        torch.testing.assert_close(first.probabilities, second.probabilities, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_word_of_several_pieces_has_the_tag_of_its_first(kind: str, tmp_path: Path) -> None:
    size = ("text.size=320",) if kind == "bpe" else ()
    settings = small.settings("gru", "task=tag", f"text.tokenizer={kind}", *size, "train.steps=2", "model.letters=5")
    start(tmp_path / "run", settings, small.Notes(), device="cpu")
    tagger = load_predictor(tmp_path / "run")
    assert isinstance(tagger, Tagger)
    rows, first = tagger.reader.words(["cat", "don't", "owls"])
    assert len(rows) > 3
    assert len(first) == 3
    (tagged,) = tagger.tag(["cat don't owls"])
    odds = tagger.model(tagger.reader.batch([rows])).softmax(-1)[0]
    assert tagged.tags == tuple(tagger.labels.token(int(odds[place].argmax())) for place in first)


# Classification


def test_a_classifier_gives_probabilities_and_learns(folder: Path, corpus: Path) -> None:
    classifier = load_predictor(trained(folder, "classify"))
    assert isinstance(classifier, Classifier)
    results = classifier.classify(TEXTS)
    for result in (results[0], results[2], results[3]):
        assert sum(value for _, value in result.classes) == pytest.approx(1.0, abs=1e-5)
        assert result.label == max(result.classes, key=lambda entry: entry[1])[0]
    assert (results[1].label, str(results[1]), results[1].classes) == ("", "", ())
    assert str(results[0]) == f"{results[0].label}\t{results[0].classes[0][1]:.3f}"
    outcome = evaluate(trained(folder, "classify"), Corpus((str(corpus / "classes.tsv"),)))
    assert isinstance(outcome, ClassResult)
    assert outcome.confusion.count == 60


# Language modelling


def test_a_writer_goes_on_from_its_prompt(folder: Path) -> None:
    writer = load_predictor(trained(folder, "language"))
    assert isinstance(writer, Writer)
    prompts = ["the cat", "the", "", "the old king"]
    written = writer.write(prompts, length=6)
    for prompt, continuation in zip(prompts, written, strict=True):
        assert continuation.text.startswith(prompt)
        assert continuation.text == (prompt + continuation.added)
        assert len(writer.tokenizer.encode(continuation.text)) <= len(writer.tokenizer.encode(prompt)) + 6
    assert [row.text for row in written] == [writer.write([prompt], length=6)[0].text for prompt in prompts]


def test_a_greedy_continuation_is_what_the_model_finds_likeliest(folder: Path) -> None:
    writer = load_predictor(trained(folder, "language"))
    assert isinstance(writer, Writer)
    assert writer.write([""], length=0)[0].text == ""
    (continuation,) = writer.write(["the cat"], length=1)
    ids = writer.tokenizer.encode(continuation.text)
    logits = writer.model(torch.tensor([[1, *writer.tokenizer.encode("the cat")]]))[0, -1]
    logits[[0, 1, 2, 3]] = -torch.inf if len(ids) == 3 else 0.0
    assert len(ids) < 3 or ids[-1] == int(logits.argmax())


def test_log_probabilities_are_those_of_teacher_forcing(folder: Path, corpus: Path) -> None:
    run = trained(folder, "language")
    writer = load_predictor(run)
    assert isinstance(writer, Writer)
    texts = ["the cat sleeps", "", "the old dog saw a bird"]
    together = writer.log_probabilities(texts)
    for text, total in zip(texts, together, strict=True):
        ids = [1, *writer.tokenizer.encode(text), 2]
        odds = writer.model(torch.tensor([ids[:-1]])).detach().log_softmax(-1)[0]
        assert total == pytest.approx(sum(float(odds[place, token]) for place, token in enumerate(ids[1:])), abs=1e-4)
    outcome = evaluate(run, Corpus((str(corpus / "words"),)))
    assert isinstance(outcome, LanguageResult)
    assert outcome.lines == 60
    assert 1 < outcome.perplexity_per_byte < outcome.perplexity_per_word


# The command line


def test_predict_answers_line_by_line(folder: Path, capsys: Capture, tmp_path: Path) -> None:
    run = str(trained(folder, "tag"))
    assert cli(["predict", run, *TEXTS, "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.split("\n")[:-1]
    assert [len(line.split()) for line in lines] == [3, 0, 9, 2]
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n")
    out = tmp_path / "deep" / "out.txt"
    assert cli(["predict", run, "--file", str(tmp_path / "in.txt"), "--out", str(out), "--device", "cpu"]) == 0
    assert out.read_text().split("\n")[:-1] == lines
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("task", ["tag", "classify", "language"])
def test_predict_says_which_words_a_run_has_never_seen(task: str, folder: Path, capsys: Capture) -> None:
    run, text = str(trained(folder, task)), "the qwertyuiop qwertyuiop"
    assert cli(["predict", run, text, "--json", "--device", "cpu"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["unknown"] == [{"start": place, "end": place + 10, "word": "qwertyuiop"} for place in (4, 15)]
    assert found["warning"] == shown.err.strip() == "1 word this run has never seen: qwertyuiop"
    assert cli(["predict", run, text, "--quiet", "--device", "cpu"]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("tag", {"words", "tags", "probabilities"}),
        ("classify", {"text", "label", "probabilities"}),
        ("language", {"prompt", "text", "added", "score"}),
    ],
)
def test_predict_speaks_json(task: str, names: set[str], folder: Path, capsys: Capture) -> None:
    arguments = ["--json", "decode.length=5", "decode.beam=2", "--device", "cpu"]
    assert cli(["predict", str(trained(folder, task)), *TEXTS, *arguments]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    assert len(rows) == len(TEXTS)
    assert all(set(row) - {"warning", "unknown"} == names for row in rows)


def test_predict_reads_a_file_a_piece_at_a_time(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.streams.TOGETHER", 2)
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n")
    out = tmp_path / "out.txt"
    run = str(trained(folder, "language"))
    assert cli(["predict", run, "--file", str(tmp_path / "in.txt"), "--out", str(out), "--device", "cpu"]) == 0
    lines = out.read_text().split("\n")[:-1]
    assert lines[1] == ""
    assert [line.startswith(text.split(" ")[0]) for line, text in zip(lines, TEXTS, strict=True)][:3] == [True] * 3


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["x", "decode.length=0"], 2, "length = 0: a continuation has at least one piece"),
        (["x", "decode.beam=0"], 2, "beam = 0: a beam holds at least one hypothesis"),
        (["x", "--file", "y"], 2, "--file = y: given together with texts"),
        (["--file", "nowhere.txt"], 3, "nowhere.txt: cannot be read"),
    ],
)
def test_predict_refuses_what_it_cannot_mean(
    arguments: list[str], code: int, problem: str, folder: Path, capsys: Capture
) -> None:
    assert cli(["predict", str(trained(folder, "tag")), *arguments, "--device", "cpu"]) == code
    assert problem in capsys.readouterr().err


def test_a_translator_is_sent_to_the_right_verb(tmp_path: Path, capsys: Capture) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=1"), small.Notes(), device="cpu")
    assert isinstance(load_predictor(tmp_path / "run"), Translator)
    assert cli(["predict", str(tmp_path / "run"), "x", "--device", "cpu"]) == 4
    assert "is a run for task 'translate'; use regard translate" in capsys.readouterr().err
    with pytest.raises(ModelError, match="is a run for task 'translate'"):
        evaluate(tmp_path / "run", Corpus(("x", "y")))


def test_a_run_without_its_labels_is_told_so(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(trained(folder, "tag"), tmp_path / "run")
    (tmp_path / "run" / "labels.tsv").unlink()
    with pytest.raises(ModelError, match=r"labels\.tsv: missing; a run for labels has this file"):
        load_predictor(tmp_path / "run")


def test_answers_that_the_run_cannot_know_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.tsv").write_text("the cat\tpositive\nthe dog\tlovely\n")
    with pytest.raises(DataError, match=r"classes\.tsv line \d: label = '\w+': not one the run knows"):
        evaluate(trained(folder, "classify"), Corpus((str(tmp_path / "classes.tsv"),)))
    (tmp_path / "words").write_text("the cat\n")
    (tmp_path / "tags").write_text("DET\n")
    with pytest.raises(DataError, match="tags line 1: 2 words but 1 tags; every word needs one tag"):
        evaluate(trained(folder, "tag"), Corpus((str(tmp_path / "words"), str(tmp_path / "tags"))))


def test_the_end_of_a_training_names_the_verb_that_fits(tmp_path: Path, capsys: Capture) -> None:
    settings = small.settings("gru", "task=language", "train.steps=1").to_toml()
    (tmp_path / "small.toml").write_text(settings)
    arguments = ["--out", str(tmp_path / "run"), "--device", "cpu"]
    assert cli(["train", str(tmp_path / "small.toml"), *arguments]) == 0
    assert f"try: regard predict {tmp_path / 'run'}" in capsys.readouterr().err


# Word vectors


@pytest.mark.parametrize("frozen", ["true", "false"])
def test_a_run_needs_its_vectors_no_more_once_it_has_begun(frozen: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2 3 4 5\nplatypus 5 4 3 2 1\n")
    settings = small.settings(
        *("gru", "task=tag", "text.tokenizer=space", "model.width=5", "train.steps=4", "train.validate_every=2"),
        *(f"model.vectors.file={path}", f"model.vectors.frozen={frozen}", "model.letters=7"),
    )
    notes = small.Notes()
    start(tmp_path / "run", settings, notes, device="cpu")
    assert any(line.startswith("word vectors: 1 of the ") for line in notes.lines)
    path.unlink()
    for step in (tmp_path / "run" / "checkpoints").glob("step-4"):
        shutil.rmtree(step)
    assert resume(tmp_path / "run", small.Notes(), device="cpu").reason == "steps"
    tagger = load_predictor(tmp_path / "run")
    assert isinstance(tagger, Tagger)
    assert tagger.reader.tokenizer.encode("platypus") != [3]


def test_resuming_without_a_checkpoint_begins_with_the_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2 3 4 5\n")
    settings = small.settings(
        "gru", "task=tag", "text.tokenizer=space", "model.width=5", "train.steps=2", f"model.vectors.file={path}"
    )
    start(tmp_path / "run", settings, small.Notes(), device="cpu")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    notes = small.Notes()
    resume(tmp_path / "run", notes, device="cpu")
    assert any(line.startswith("word vectors: 1 of the ") for line in notes.lines)


def test_rows_go_together_by_length_and_empty_ones_in_none() -> None:
    assert list(groups([3, 0, 7, 2, 5], 10)) == [[2], [4, 0], [3]]


def test_an_estimate_counts_words_and_not_their_letters(tmp_path: Path) -> None:
    settings = small.settings("gru", "task=tag", "text.tokenizer=space", "model.letters=9")
    estimate = preflight(tmp_path / "run", settings, small.Notes(), device="cpu")
    assert estimate.longest <= 16  # eight words, with punctuation and clitics apart
    assert estimate.unknown == 0.0


# Side by side


def told(capsys: Capture) -> dict[str, object]:
    content: dict[str, object] = json.loads(capsys.readouterr().out)
    return content


def test_regard_evaluate_measures_every_task(folder: Path, corpus: Path, capsys: Capture) -> None:
    files = {"tag": ["words", "tags"], "classify": ["classes.tsv"], "language": ["words"]}
    for task, names in files.items():
        flags = [flag for pair in zip(("--source", "--target"), names, strict=False) for flag in pair]
        flags = [str(corpus / flag) if flag in names else flag for flag in flags]
        assert cli(["evaluate", str(trained(folder, task)), *flags, "--device", "cpu", "--json"]) == 0
        found = told(capsys)
        assert found["task"] == task
        assert cli(["evaluate", str(trained(folder, task)), *flags, "--device", "cpu"]) == 0
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("perplexity" if task == "language" else "accuracy") in shown.err


def test_classifiers_stand_beside_what_counting_words_reaches(folder: Path, corpus: Path, capsys: Capture) -> None:
    run, page = trained(folder, "classify"), corpus / "classes.html"
    flags = ["--source", str(corpus / "classes.tsv"), "--device", "cpu", "--out", str(page), "--json"]
    assert cli(["compare", str(run), *flags]) == 0
    rows = {row["name"]: row for row in told(capsys)["rows"]}  # type: ignore[attr-defined]
    assert list(rows) == ["classify", "commonest label", "bag of words", "TF-IDF"]
    result = evaluate(run, Corpus((str(corpus / "classes.tsv"),)))
    assert rows["classify"]["scores"][0]["score"] == pytest.approx(100 * result.accuracy)  # type: ignore[union-attr]
    assert rows["classify"]["cost"]["parameters"] > 1000
    assert "TF-IDF" in page.read_text(encoding="utf-8")


def test_runs_of_one_task_are_compared_on_the_validation_text_they_share(folder: Path, capsys: Capture) -> None:
    for task, score in (("tag", "accuracy"), ("language", "perplexity/word")):
        run = trained(folder, task)
        shutil.copytree(run, folder / f"{task}-again", dirs_exist_ok=True)
        assert cli(["compare", str(run), str(folder / f"{task}-again"), "--device", "cpu", "--json"]) == 0
        content = told(capsys)
        first, second = content["rows"]  # type: ignore[misc]
        assert first["scores"] == second["scores"]
        assert content["metrics"][0] == score  # type: ignore[index]
        assert content["conditions"]["sentences"] == 101  # type: ignore[index]


def test_without_scikit_learn_the_baselines_are_left_out(
    folder: Path, corpus: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise ResourceError("scikit-learn is not installed")

    monkeypatch.setattr("regard.evaluate.compare.baselines", missing)
    flags = ["--source", str(corpus / "classes.tsv"), "--device", "cpu", "--json"]
    assert cli(["compare", str(trained(folder, "classify")), *flags]) == 0
    shown = capsys.readouterr()
    assert "baselines left out: scikit-learn is not installed" in shown.err
    assert len(json.loads(shown.out)["rows"]) == 1


def test_a_prompt_is_continued_by_chance_with_a_seed(folder: Path, capsys: Capture) -> None:
    def drawn(seed: str) -> str:
        flags = ["decode.sample=true", f"decode.seed={seed}", "decode.temperature=2", "--device", "cpu"]
        assert cli(["predict", str(trained(folder, "language")), "the cat", "the dog", *flags]) == 0
        return capsys.readouterr().out

    assert drawn("1") == drawn("1") != drawn("2")
