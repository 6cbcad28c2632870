"""The card of a run: what it says, what it leaves unsaid, and where it goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard
import tiny
from regard.cli.main import run as cli
from regard.convert.foreign import Foreign, write
from regard.data import PairEncoder, prepare
from regard.errors import DataError, ModelError
from regard.runs.archive import pack, unpack
from regard.runs.card import CARD, SCORES, card, remember_scores, scores_of, write_card
from regard.runs.checkpoint import model_tensors
from regard.runs.folder import PACKAGED, Origin
from regard.text import Tokenizers, learn

EVALUATED = {
    "source": "there/news.en",
    "target": "there/news.pt",
    "sentences": 1234,
    "output": "beam 5",
    "qualities": [
        {"name": "BLEU", "score": 31.25, "signature": "nrefs:1|tok:13a"},
        {"name": "chrF2", "score": 57.0, "signature": "nrefs:1|nc:6"},
    ],
}


def imported(
    folder: Path, licence: str = "CC BY 4.0, as its README says", overrides: tuple[str, ...] = ("model.tie=none",)
) -> Path:
    both = learn("bpe", ["the bear sees the honey"] * 3, size=290)
    settings = tiny.settings("transformer-small", 'data.languages="eng_Latn-pt_BR"', *overrides)
    model = regard.encoder_decoder(settings.model, both.size, both.size)
    notices = (("LICENSE", "Anyone may ```use``` it."),)
    origin = Origin("CTranslate2 6, int8", "a model", licence, (("model.bin", "0" * 64),), notices)
    return write(Foreign(settings, model_tensors(model).items(), Tokenizers(both, both), origin), folder).folder


def test_the_demo_has_a_card_that_says_what_it_knows() -> None:
    text = card(PACKAGED)
    assert text.startswith("---\nlanguage:\n- en\n- fr\nlibrary_name: regard\npipeline_tag: translation\n---\n")
    for part in (
        "Translates English (`en`) into French (`fr`).",
        "fable:fr",
        "Its text is generated from a small grammar",
    ):
        assert part in text
    assert "No test set was measured" in text
    assert "Not stated: who trained this run" in text  # nobody may guess a licence
    assert "[model]" in text


def test_an_import_keeps_its_licence_and_its_notices(tmp_path: Path) -> None:
    text = card(imported(tmp_path / "run"), "transformers")
    assert "- en\n- pt\nlicense: cc-by-4.0\nlibrary_name: transformers" in text
    assert "\nLicence: CC BY 4.0, as its README says\n" in text
    assert "Anyone may ` ` `use` ` ` it." in text  # it cannot leave its block
    assert "AutoModelForSeq2SeqLM" in text
    assert "Not known: the model was trained elsewhere." in text
    other = card(imported(tmp_path / "other", ""))
    assert "license:" not in other
    assert "states none: ask those who made it" in other


def test_scores_are_kept_with_their_signatures_and_the_last_of_a_test_counts(tmp_path: Path) -> None:
    run, file = imported(tmp_path / "run"), tmp_path / "scores"
    for score in (10.0, 31.25):
        qualities = [EVALUATED["qualities"][0] | {"score": score}, EVALUATED["qualities"][1]]
        file.write_text(json.dumps(EVALUATED | {"qualities": qualities}))
        remember_scores(run, [file])
    assert len(scores_of(run)) == 1
    assert "| news.en, news.pt | 1,234 | beam 5 | BLEU | 31.2 | `nrefs:1|tok:13a` |" in card(run)
    assert write_card(run) == run / CARD
    assert (run / CARD).read_text() == card(run)


def test_files_of_the_corpus_are_hashed_where_they_still_are(tmp_path: Path) -> None:
    run = imported(tmp_path / "run")
    text = tmp_path / "train.en"
    text.write_text("the bear\n")
    settings = run / "settings.toml"
    settings.write_text(settings.read_text().replace('source = ""', f'source = "{text}"', 1))
    assert "- train.en, SHA-256 `" in card(run)
    text.unlink()
    assert "- train.en\n" in card(run)


def test_the_fingerprint_of_a_text_is_its_digits_alone(tmp_path: Path) -> None:
    run = imported(tmp_path / "run")
    rows = [(1, ("the bear", "the honey"))]
    prepare(
        rows, PairEncoder(Tokenizers.load(run / "tokenizer")), run / "data" / "train", fingerprint="0f" * 32 + "train"
    )
    assert f"- train: 1 rows, fingerprint of text and tokenizer `{'0f' * 32}`\n" in card(run)


def test_an_archive_has_the_card_and_the_scores(tmp_path: Path) -> None:
    run, file = imported(tmp_path / "run"), tmp_path / "scores"
    file.write_text(json.dumps(EVALUATED))
    remember_scores(run, [file])
    pack(run, tmp_path / "run.tar")
    back = unpack(tmp_path / "run.tar", tmp_path / "back")
    assert "nrefs:1|tok:13a" in (back.folder / CARD).read_text()
    assert scores_of(back.folder) == scores_of(run)


@pytest.mark.parametrize("content", ["[]", "{", '{"qualities": 3}', '{"qualities": [{"name": "BLEU"}]}'])
def test_what_is_no_evaluation_is_refused_and_nothing_is_kept(content: str, tmp_path: Path) -> None:
    run, file = imported(tmp_path / "run"), tmp_path / "scores"
    file.write_text(content)
    with pytest.raises(DataError, match="is not what regard evaluate RUN --json prints"):
        remember_scores(run, [file])
    assert not (run / SCORES).exists()
    (run / SCORES).write_text(content)
    if content != "[]":
        with pytest.raises(ModelError, match=r"scores\.json: is damaged"):
            card(run)


def test_a_file_too_large_for_scores_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "scores"
    file.write_text(json.dumps(EVALUATED))
    monkeypatch.setattr("regard.runs.card._LARGEST", 100)
    with pytest.raises(DataError, match="is not what regard evaluate RUN --json prints"):
        remember_scores(imported(tmp_path / "run"), [file])


def test_the_verbs_write_it_and_say_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, file = imported(tmp_path / "run"), tmp_path / "scores.json"
    file.write_text(json.dumps(EVALUATED))
    assert cli(["card", str(run), "--scores", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": str(run / CARD)}
    assert cli(["card", str(run), "--out", "card.md"]) == 0
    assert "chrF2" in Path("card.md").read_text()
    assert cli(["runs", "show", str(run)]) == 0
    assert "a model, CTranslate2 6, int8; licence: CC BY 4.0, as its README says" in capsys.readouterr().out
    assert cli(["runs", "export", str(run), "--to", "huggingface"]) == 2
    assert "FILE: missing; name the folder to write" in capsys.readouterr().err
    assert cli(["runs", "export", str(run), "hf", "--to", "huggingface-int8"]) == 2
    assert cli(["runs", "export", str(run), "hf", "--to", "huggingface"]) == 4  # its output is not tied
    assert "model.tie = none" in capsys.readouterr().err
    assert not Path("hf").exists()


def test_the_verb_writes_a_folder_for_transformers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = imported(tmp_path / "run", overrides=("model.tie=all",))
    for number, json_too in enumerate(([], ["--json"])):
        folder = tmp_path / f"hf-{number}"
        assert cli(["runs", "export", str(run), str(folder), "--to", "huggingface", *json_too]) == 0
        assert sorted(path.name for path in folder.iterdir()) == [
            *("README.md", "config.json", "generation_config.json", "model.safetensors", "source.spm", "target.spm"),
            *("tokenizer_config.json", "vocab.json"),
        ]
    assert json.loads(capsys.readouterr().out)["folder"] == str(folder)
