"""From texts to texts: long ones, empty ones, what must and must not be written, looking into the result."""

from __future__ import annotations

import copy
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import corpora_for_tests as small
from regard.cli import streams
from regard.cli.main import run
from regard.cli.streams import printable
from regard.decode.constraints import parse_terms, terms_in
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.texts import Output, Part, _by_risk, copied_in_order, split
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.models.generator import EncoderDecoder
from regard.tasks.load import load
from regard.tasks.translator import Link, Translation, Translator
from regard.text.vocabulary import UNK
from regard.text.words import space_words
from regard.trainer.start import start

Capture = pytest.CaptureFixture[str]
CAT = "the black cat ate the mouse"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with attention and words, trained just long enough to write something."""
    folder = tmp_path_factory.mktemp("translator")
    learned = ("train.steps=120", "train.validate_every=120", "train.rate=1e-2", "model.dropout=0.0", "model.depth=1")
    start(folder / "run", small.settings("luong-dot", *small.animals(folder), *learned), small.Notes(), device="cpu")
    return folder / "run"


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return load(trained)


def texts(translator: Translator, options: Options) -> list[str]:
    sources = [CAT, "the bear ate the honey", "", "a small bird sees the river"]
    return [output.text for found in translator.translate(sources, options) for output in found.outputs]


# Cutting


def words(text: str) -> int:
    return len(text.split())


def test_a_text_that_fits_is_not_cut() -> None:
    assert split("One two. Three four.", words, 4) == ["One two. Three four."]


def test_a_long_sentence_is_cut_at_commas_then_at_spaces_then_anywhere() -> None:
    assert split("one two, three four five, six", words, 3) == ["one two,", "three four five,", "six"]
    assert split("one two three four five", words, 2) == ["one two", "three four", "five"]
    assert split("abcdefgh ij", len, 3) == ["ab", "cd", "ef", "gh", "ij"]


def test_what_was_cut_is_all_there() -> None:
    text = "A b, c d. E f g h i; j. " * 7 + "k" * 31
    parts = split(text, len, 11)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, parts)) <= 11


def test_a_long_sentence_is_translated_in_parts_with_a_warning(translator: Translator) -> None:
    short = replace(translator, longest=4)
    found = short.translate("the bear ate, the cat sleeps. the bear sleeps", beam=2)
    assert [part.source for part in found.outputs[0].parts] == ["the bear ate,", "the cat sleeps.", "the bear sleeps"]
    assert [part.sentence for part in found.outputs[0].parts] == [0, 0, 1]
    assert [part.source_word for part in found.outputs[0].parts] == [0, 3, 6]
    assert "sentence 1 is longer than the 4 pieces this model learned with; done in 2 parts" in found.warning
    parts = short.translate(["the bear ate,", "the cat sleeps.", "the bear sleeps"], beam=2)
    assert found.text == " ".join(each.text for each in parts)
    assert found.log_probability == pytest.approx(sum(each.log_probability for each in parts), rel=1e-5)
    with pytest.raises(DataError, match="went through the model in 2 parts"):
        found.trace(sentence=1)
    assert found.trace(sentence=2).source.words == ("the", "bear", "sleeps")


def test_a_text_is_translated_sentence_by_sentence_and_keeps_its_paragraphs(translator: Translator) -> None:
    first, second, third = (found.text for found in translator.translate([f"{CAT}.", "the bear sleeps!", "a bird"]))
    text = f"{CAT}. the bear sleeps!\n\n- a bird 🙂\n"
    found = translator.translate(text)
    assert found.text == f"{first} {second}\n\n- {third} 🙂\n"
    assert [text[start:end] for start, end in found.sentences] == [f"{CAT}.", "the bear sleeps!", "a bird"]
    places = {link.target_place: link.source_place for link in found.alignment()}
    words = space_words(found.text)
    assert {words[link.target_place] for link in found.alignment()} <= set(words)
    assert all(words[link.target_place] == link.target for link in found.alignment())
    assert all(space_words(text)[link.source_place] == link.source for link in found.alignment())
    assert words.index("-") not in places


def test_every_output_of_a_text_has_all_its_sentences(translator: Translator) -> None:
    options = Options(Beam(3, best=3))
    found = translator.translate("the bear sleeps.\nthe cat sleeps.", options)
    parts = translator.translate(["the bear sleeps.", "the cat sleeps."], options)
    pairs = zip(*(each.outputs for each in parts), strict=True)
    assert [output.text for output in found.outputs] == [f"{one.text}\n{other.text}" for one, other in pairs]


def test_a_prefix_begins_the_first_sentence_alone(translator: Translator) -> None:
    found = translator.translate("the bear sleeps. the cat sleeps.", Options(Beam(2), prefix="la"))
    alone = translator.translate("the cat sleeps.", beam=2)
    assert found.text.split()[0] == "la"
    assert found.outputs[0].parts[1].text == alone.text


def test_of_several_sentences_the_one_to_look_into_is_named(translator: Translator) -> None:
    found = translator.translate("the bear sleeps. the cat sleeps.", beam=1)
    with pytest.raises(DataError, match=r"has 2 sentences, and a trace is of one; choose it with sentence=1: 1 'the b"):
        found.trace()
    with pytest.raises(DataError, match="sentence = 3: there are 2; they count from 1"):
        found.trace(sentence=3)
    assert found.trace(sentence=2).source.words[1] == "cat"
    assert found.explanation(sentence=2).trace.source.words[1] == "cat"
    assert translator.explain(found.source, sentence=1).trace.source.words[1] == "bear"


def test_the_limit_of_a_run_is_what_it_was_trained_with(trained: Path, translator: Translator) -> None:
    assert translator.longest == translator.run.settings.data.longest - 1  # type: ignore[union-attr]
    assert translator.search.most is None  # test_train_lengths.py has models with so many positions
    assert trained.exists()


# Order, emptiness, streams


def test_a_device_of_any_name_is_refused_unless_it_is_one(trained: Path) -> None:
    assert load(trained, device="auto").device.type in {"cpu", "cuda"}
    with pytest.raises(SettingsError, match="device = gpu: no such device; auto, cpu and cuda are"):
        load(trained, device="gpu")


def test_empty_texts_stay_empty_and_in_their_place(translator: Translator) -> None:
    found = translator.translate(["", CAT, "   "], beam=1)
    assert [each.text.strip() == "" for each in found] == [True, False, True]
    assert found[0].log_probability == 0.0
    assert found[0].alignment() == []
    with pytest.raises(DataError, match="is empty; give it a word"):
        found[0].trace()
    with pytest.raises(DataError, match="text = '🙂': has no word; give it a word"):
        translator.translate("🙂").trace()


def test_a_stream_is_read_as_it_is_needed(translator: Translator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "the bear sleeps"

    stream = translator.stream(endless(), Options(Beam(1)))
    assert next(stream).source == "the bear sleeps"
    assert read == 1024


def test_one_text_gives_one_translation_and_many_give_many(translator: Translator) -> None:
    alone = translator.translate(CAT, beam=3, trace=True)
    assert alone.text == translator.translate([CAT, CAT], beam=3)[1].text
    assert alone.attention.cross.shape[2] == len(alone.outputs[0].parts[0].tokens) + 1
    assert alone.score == pytest.approx(alone.log_probability / (len(alone.outputs[0].parts[0].tokens) + 1))


STRANGE = ("\x00\x07\x1b[31m", "😀 🏳️‍🌈 the cat", "القط الأسود", "काली बिल्ली", "a\u2028b\u0085c", "\ud800")


@pytest.mark.parametrize("text", STRANGE)
def test_any_characters_are_translated(translator: Translator, text: str) -> None:
    assert isinstance(translator.translate(text, beam=2).text, str)


# What must and must not be there


def test_constraints_hold_on_every_output(translator: Translator) -> None:
    plain = texts(translator, Options(Beam(3, best=3)))
    common = max(set(" ".join(plain).split()), key=" ".join(plain).split().count)
    without = texts(translator, Options(Beam(3, best=3), forbidden=(common,)))
    assert not any(re.search(rf"(?<!\w){re.escape(common)}(?!\w)", text) for text in without)
    begun = texts(translator, Options(Beam(3, best=3), prefix="le chat"))
    assert all(text.startswith("le chat") for text in begun if text)
    glossary = {"cat": "le chat"}
    cats = translator.translate(["the CAT sleeps", "the bear sleeps"], Options(Beam(3), glossary=glossary))
    assert "le chat" in cats[0].text
    long = translator.translate([CAT], Options(Beam(2), shortest=1.5))[0]
    assert len(long.outputs[0].parts[0].tokens) >= 9
    short = translator.translate([CAT], Options(Beam(2), longest=0.0))[0]
    assert len(short.outputs[0].parts[0].tokens) <= 9
    once = translator.translate([CAT], Options(Beam(2), shortest=2.0, no_repeat=1))[0].outputs[0].parts[0].tokens
    assert len(set(once)) == len(once)


def test_a_forbidden_word_is_found_however_it_is_spelled(tmp_path: Path) -> None:
    settings = small.settings("gru", "train.steps=3", "text.tokenizer=character")
    start(tmp_path / "run", settings, small.Notes(), device="cpu")
    translator = load(tmp_path / "run")
    plain = translator.translate(CAT, beam=2).text
    word = max(plain.split(), key=len)
    assert word not in translator.translate(CAT, Options(Beam(2), forbidden=(word,))).text.split()


@pytest.mark.parametrize("where", ["prefix", "forbidden", "glossary"])
def test_what_the_vocabulary_cannot_write_is_refused(translator: Translator, where: str) -> None:
    wish = {"prefix": "xyzzy", "forbidden": ("xyzzy",), "glossary": {"cat": "xyzzy"}}[where]
    with pytest.raises(DataError, match=rf"{where} = 'xyzzy': has pieces that this model's vocabulary does not"):
        translator.translate(CAT, replace(Options(), **{where: wish}))  # type: ignore[arg-type]


def test_a_forbidden_word_inside_the_prefix_does_not_go_on_for_ever(translator: Translator) -> None:
    found = translator.translate(CAT, Options(Beam(2), prefix="le chat", forbidden=("chat",)))
    assert found.text.startswith("le chat")
    assert "chat" not in found.text.removeprefix("le chat").split()


def test_forbidding_gives_up_when_it_must(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.decode.texts._Requirements.slips", lambda self, found, row: {(5,)})  # noqa: ARG005
    with pytest.raises(DataError, match="finds ever new ways to write this"):
        translator.translate(CAT, Options(Beam(1), forbidden=("chat",)))


def test_options_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"shortest = 3: must be between 0 and longest = 2\.0"):
        Options(shortest=3)
    with pytest.raises(SettingsError, match="no_repeat = -1"):
        Options(no_repeat=-1)
    with pytest.raises(SettingsError, match="risk = true: compares samples"):
        Options(Beam(), risk=True)


def test_a_glossary_matches_whole_words_in_any_case_and_the_longest_first() -> None:
    lines = ["# terms", "", "black cat\tchat noir", "cat\tchat", "Müller & Co.\tM"]
    glossary = parse_terms(lines, "terms.tsv")
    assert terms_in(["The Black Cat saw a cat and a caterpillar"], glossary) == [["chat noir", "chat"]]
    assert terms_in(["MÜLLER & CO. wrote"], glossary) == [["M"]]
    assert terms_in(["concatenate"], glossary) == [[]]
    assert terms_in(["cat", "a Cat"], {"Cat": "chat"}) == [["chat"], ["chat"]]
    assert terms_in(["cat"], {}) == [[]]
    with pytest.raises(DataError, match=r"terms\.tsv line 1 = 'cat': must be a term, a tab and its translation"):
        parse_terms(["cat"], "terms.tsv")


# Samples and several models


def test_the_same_seed_samples_the_same_texts_in_any_company(translator: Translator) -> None:
    options = Options(Sample(3, seed=7))
    together = translator.translate([CAT, "the bear sleeps"], options)
    assert [each.text for each in together[0].outputs] == [
        each.text for each in translator.translate([CAT], options)[0].outputs
    ]
    other = translator.translate([CAT], Options(Sample(3, seed=8)))[0]
    assert [each.text for each in other.outputs] != [each.text for each in together[0].outputs]


def test_the_least_risky_sample_comes_first_and_each_text_once() -> None:
    samples = [Output(text, -1.0, -1.0, (Part("", ()),)) for text in ("aaaa", "abab", "abab", "abaa")]
    ranked = _by_risk(samples)
    assert [sample.text for sample in ranked] == ["abab", "abaa", "aaaa"]
    assert ranked[0].score > ranked[1].score > ranked[2].score


def test_risk_is_taken_of_samples(translator: Translator) -> None:
    found = translator.translate(CAT, Options(Sample(7), risk=True))
    scores = [output.score for output in found.outputs]
    assert scores == sorted(scores, reverse=True)
    assert len({output.text for output in found.outputs}) == len(scores)


def test_an_ensemble_of_one_run_twice_is_that_run(trained: Path, translator: Translator) -> None:
    twice = load(trained, trained)
    assert twice.translate(CAT, beam=3).text == translator.translate(CAT, beam=3).text
    assert twice.translate(CAT, beam=3).log_probability == pytest.approx(
        translator.translate(CAT, beam=3).log_probability, rel=1e-4
    )


def test_runs_with_different_vocabularies_do_not_vote_together(trained: Path, tmp_path: Path) -> None:
    start(tmp_path / "other", small.settings("gru", "train.steps=2", "text.size=40"), small.Notes(), device="cpu")
    with pytest.raises(ModelError, match="has another vocabulary than"):
        load(trained, tmp_path / "other")


# Looking


def test_the_alignment_names_the_words_of_both_sides(translator: Translator, trained: Path) -> None:
    found = translator.translate(CAT, beam=2)
    links = found.alignment()
    assert [link.target for link in links] == found.text.split()
    assert all(CAT.split()[link.source_place] == link.source for link in links)
    assert all(0 <= link.weight <= 1.001 for link in links)
    assert Aligner.load(trained) == translator.aligner


def test_the_alignment_of_parts_counts_words_through(translator: Translator) -> None:
    found = replace(translator, longest=7).translate(f"{CAT}. {CAT}.", beam=1)
    links = found.alignment()
    assert [link.target_place for link in links] == list(range(len(links)))
    assert [link.target for link in links] == found.text.split()
    assert max(link.source_place for link in links) >= 6


def moved(trained: Path, folder: Path, sides: str) -> Path:
    """A copy of a run that remembers no aligner and was trained on other files, which may be gone."""
    shutil.copytree(trained, folder)
    (folder / "aligner.json").unlink(missing_ok=True)
    settings = (folder / "settings.toml").read_text(encoding="utf-8")
    settings = re.sub(r'^((?:valid_)?(?:source|target)) = ".*"', rf'\1 = "{sides}"', settings, flags=re.MULTILINE)
    (folder / "settings.toml").write_text(settings, encoding="utf-8")
    return folder


def test_without_a_run_or_its_validation_text_all_heads_are_read(
    translator: Translator, trained: Path, tmp_path: Path
) -> None:
    assert replace(translator, run=None).aligner == Aligner()
    gone = moved(trained, tmp_path / "gone", str(tmp_path / "nowhere"))
    assert load(gone).aligner == Aligner()
    assert not (gone / "aligner.json").exists()


def test_without_gold_the_aligner_is_what_agrees_with_masking(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("the cat sleeps\n\nthe bear ate the honey\n", encoding="utf-8")
    run = moved(trained, tmp_path / "run", str(tmp_path / "text"))
    chosen = load(run).aligner
    assert chosen.chosen_on == "agreement with masking, 2 validation sentences"
    assert chosen.error_rate is None
    assert Aligner.load(run) == chosen


def test_an_unknown_word_is_copied_from_where_it_was_looked_at(translator: Translator) -> None:
    chat = translator.tokenizers.target.id("chat")
    part = Part("the zyx sleeps", (UNK, chat, UNK))
    assert translator._copied([part]) == ["zyx chat zyx"]
    part = Part("the zyx ate qwx%", (UNK, chat, UNK, UNK))
    (text,) = translator._copied([part])
    assert sorted(text.replace("%", " %").split()) == sorted(["zyx", "qwx", "%", "chat"])


def test_a_trace_shows_the_words_that_were_copied(translator: Translator) -> None:
    chat = translator.tokenizers.target.encode("chat")[0]
    trace = translator.trace(Part("the zyx ate", (UNK, chat, UNK), "zyx chat zyx"))
    assert trace.target.words == ("zyx", "chat", "zyx")
    assert trace.target.pieces == ("zyx", "chat", "zyx", "<end>")


def test_without_attention_unknown_words_are_copied_in_their_order(translator: Translator) -> None:
    chat = translator.tokenizers.target.id("chat")
    copied = copied_in_order(translator.tokenizers, Part("the zyx ate qwx"), (UNK, chat, UNK, UNK))
    assert copied == "zyx chat qwx"


def test_unknown_words_are_copied_by_default_and_not_on_request(translator: Translator) -> None:
    """A model that writes <unk> for the second word, whatever it reads."""
    forced = replace(translator, models=(_writing_unknown(translator.model),), searcher=None)
    found = forced.translate("the zyx sleeps", beam=1)
    assert "zyx" in found.text.split()
    assert found.warning == "1 word this run has never seen: zyx (copied)"
    assert [(each.start, each.end, each.word) for each in found.unknown] == [(4, 7, "zyx")]
    kept = forced.translate("the zyx sleeps", Options(Beam(1), copy_unknown=False))
    assert "zyx" not in kept.text
    assert kept.warning == "1 word this run has never seen; left out: zyx"
    known = forced.translate("the bear sleeps", beam=1)
    assert "<unk>" not in known.text + found.text + kept.text
    assert "<unk>" not in " ".join(texts(translator, Options(Sample(5))))


def _writing_unknown(model: EncoderDecoder) -> EncoderDecoder:
    """The model, with a bias that makes <unk> the likeliest piece."""
    changed = copy.deepcopy(model)
    output = changed.get_submodule("decoder").output
    with torch.no_grad():
        output.bias[UNK] = 4 + output.bias.max()
    return changed


def test_a_sentence_of_which_nothing_was_seen_is_left_as_it_is(translator: Translator) -> None:
    found = translator.translate("ذهب القط. the bear sleeps. qwertyuiop zxcvb!", beam=1)
    alone = translator.translate("the bear sleeps.", beam=1)
    assert found.text == f"ذهب القط. {alone.text} qwertyuiop zxcvb!"
    assert found.warning == "no word of 2 sentences was in the training text: left as they are"
    assert [each.word for each in found.unknown] == ["ذهب", "القط", "qwertyuiop", "zxcvb"]
    with pytest.raises(DataError, match="no word of it was seen in training; use words that were"):
        found.trace(sentence=1)
    arabic = translator.translate("ذهب القط", beam=1)
    assert arabic.text == "ذهب القط"
    assert "no word of this sentence was in the training text (Arabic script; this run reads Latin)" in arabic.warning
    assert arabic.alignment() == []


def test_a_word_in_other_capitals_is_read_as_the_one_that_was_seen(translator: Translator) -> None:
    found, plain = translator.translate(["The BEAR sleeps", "the bear sleeps"], beam=2)
    assert (found.text, found.read_as, found.warning) == (plain.text, "the bear sleeps", "")
    assert plain.read_as == ""


def test_a_text_in_another_language_is_asked_about(translator: Translator) -> None:
    found = translator.translate("der kleine Hund the schläft", beam=1)
    assert "4 of 5 words were never seen in training: is this English?" in found.warning


def test_a_vocabulary_that_spells_every_word_has_nothing_to_copy(tmp_path: Path) -> None:
    start(tmp_path / "run", small.settings("gru", "train.steps=2", "text.tokenizer=byte"), small.Notes(), device="cpu")
    with pytest.raises(SettingsError, match="a vocabulary of kind 'byte' spells every word"):
        load(tmp_path / "run").translate(CAT, Options(copy_unknown=True))


# The command line


def test_translate_shows_scores_links_and_several_outputs(trained: Path, capsys: Capture) -> None:
    assert run(["translate", str(trained), CAT, "--nbest", "2", "--show", "scores", "--beam", "1"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert float(rows[0][0]) >= float(rows[1][0])
    assert run(["translate", str(trained), CAT, "--show", "align"]) == 0
    shown = capsys.readouterr()
    assert "← " in shown.out
    assert shown.err.startswith("1 word this run has never seen; left out: mouse\nweights: cross-attention, ")
    assert run(["translate", str(trained), CAT, "--json", "--nbest", "3"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["target"] == content["outputs"][0]["target"]
    assert len(content["outputs"]) == 3


def test_a_link_without_weight_is_shown_as_none(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = [Link("le", "the", 0.0049, 0, 0), Link("chat", "cat", 0.005, 1, 1)]
    monkeypatch.setattr(Translation, "alignment", lambda *_: links)
    assert run(["translate", str(trained), CAT, "--show", "align", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[2:4] == ["  le    ← –    0.00", "  chat  ← cat  0.01"]


def test_a_word_that_no_output_word_is_linked_with_has_no_link(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.explain.meaning.translations", lambda *_: [("", "le chien"), ("chat", "le chat")])
    assert run(["meaning", str(trained), "cat", "the cat sleeps", "the black cat", "--quiet"]) == 0
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if "→" in line]
    assert told == ["→ no link (le chien)", "→ chat (le chat)"]


def test_translate_reads_a_file_and_writes_one_whole_or_not_at_all(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "in").write_text(f"{CAT}\n\nthe bear sleeps, {'the bear sleeps, ' * 90}\n", encoding="utf-8")
    files = ["--file", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert run(["translate", str(trained), *files, "--beam", "1"]) == 0
    assert "line 3: longer than" in capsys.readouterr().err
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert (len(lines), lines[1], lines[3]) == (4, "", "")
    (tmp_path / "in").write_bytes(b"the cat\n\xff\n")
    assert run(["translate", str(trained), "--file", str(tmp_path / "in"), "--out", str(tmp_path / "new")]) == 3
    assert "line 2" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_line_of_a_megabyte_is_translated_in_parts(trained: Path) -> None:
    long = load(trained).search.parts("the black cat, " * 70_000)
    assert len(long) > 1000
    assert sum(part.count("cat") for part in long) == 70_000


MISTAKES = {
    "beam 0": (["--beam", "0"], 2, "beam = 0: a beam holds at least one hypothesis"),
    "a view that is not there": (["--show", "alin"], 2, "did you mean 'align'?"),
    "texts and a file": (["--file", "x"], 2, "--file = x: given together with texts"),
    "a glossary that is not there": (["--constrain", "nowhere"], 3, "nowhere: cannot be read"),
    "a run that is not there": (["--with", "nowhere"], 4, "nowhere: no such folder"),
    "groups that do not divide": (["decode.groups=3"], 2, "groups = 3: must divide the beam of 5 evenly"),
    "a temperature of zero": (["decode.sample=true", "decode.temperature=0"], 2, "temperature = 0.0: must be above 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_its_exit_code(trained: Path, capsys: Capture, mistake: str) -> None:
    flags, code, message = MISTAKES[mistake]
    assert run(["translate", str(trained), CAT, *flags]) == code
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("missing", ["tokenizer", "checkpoints", "settings.toml"])
def test_half_a_run_is_refused_by_name(trained: Path, tmp_path: Path, capsys: Capture, missing: str) -> None:
    half = tmp_path / "half"
    shutil.copytree(trained, half)
    (half / missing).rename(tmp_path / "away")
    assert run(["translate", str(half), CAT]) == 4
    assert str(half) in capsys.readouterr().err


def test_a_dash_is_stdin(trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [load(trained).translate(text, beam=1).text for text in ("the bear sleeps", "the cat sleeps")]
    for arguments in (["-"], ["--file", "-"], []):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the bear sleeps\n\nthe cat sleeps")))
        assert run(["translate", str(trained), *arguments, "--beam", "1"]) == 0
        assert capsys.readouterr().out.split("\n") == [alone[0], "", alone[1], ""]
    assert run(["translate", str(trained), "the cat", "--file", "-"]) == 2
    assert "given together with texts" in capsys.readouterr().err


def test_lines_before_a_bad_one_are_answered(trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the bear sleeps\n\xff\n")))
    assert run(["translate", str(trained), "-"]) == 3
    shown = capsys.readouterr()
    assert "stdin line 2: byte 1 is not UTF-8" in shown.err
    assert shown.out.count("\n") == 1


def test_a_line_of_stdin_without_an_end_is_refused_and_those_before_it_are_answered(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(io.RawIOBase):
        """A line, and then one that never ends."""

        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            part = b"the bear sleeps\n" if self.given == 0 else b"x" * len(buffer)
            buffer[: len(part)] = part
            self.given += len(part)
            assert self.given < 4 << 20, "all of it was asked for"
            return len(part)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    assert run(["translate", str(trained), "-"]) == 3
    shown = capsys.readouterr()
    assert shown.err.endswith("stdin line 2: longer than 1,048,576 bytes, the most of a line; cut or drop it\n")
    assert shown.out.count("\n") == 1


def test_lines_are_held_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ROOM", 100)
    assert [len(chunk) for chunk in streams._chunks(iter(["x" * 60] * 5))] == [2, 2, 1]
    held = streams._Lines(100)
    held.put(b"x" * 60)
    assert held.full()
    assert held.get() == b"x" * 60
    assert held.empty()


def test_a_line_is_answered_before_the_next_one_is_sent(trained: Path) -> None:
    command = [sys.executable, "-m", "regard", "translate", str(trained), "-", "--beam", "1", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in (b"the bear sleeps\n", b"The wizard sleeps\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_remarks_are_one_line_a_text_and_not_without_end(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(["translate", str(trained), "tHe zyx .", "--beam", "1"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "1 word this run has never seen; left out: zyx; read as: the zyx ."
    (tmp_path / "in").write_text("the zyx\n" * 13, encoding="utf-8")
    assert run(["translate", str(trained), "--file", str(tmp_path / "in"), "--beam", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[9].startswith("line 10: 1 word")
    assert lines[10] == "… and remarks on 3 more lines; --json has them all"
    assert run(["translate", str(trained), "tHe zyx .", "--show", "align", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_json_has_the_remarks_where_there_are_some(trained: Path, capsys: Capture) -> None:
    assert run(["translate", str(trained), "tHe zyx .", "the .", "--json", "--quiet"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["unknown"] == [{"start": 4, "end": 7, "word": "zyx"}]
    assert first["read_as"] == "the zyx ."
    assert "zyx" in first["warning"]
    assert not {"unknown", "read_as", "warning"} & set(second)


def test_a_text_with_paragraphs_keeps_them_and_a_line_is_a_line(trained: Path, capsys: Capture) -> None:
    assert run(["translate", str(trained), "the bear sleeps.\n\nthe cat sleeps.", "--beam", "1"]) == 0
    first, gap, second, end = capsys.readouterr().out.split("\n")
    assert "" not in (first, second)
    assert (gap, end) == ("", "")
    assert run(["translate", str(trained), "the bear sleeps. the cat sleeps.", "--beam", "1"]) == 0
    assert capsys.readouterr().out == f"{first} {second}\n"


def test_nothing_in_a_text_commands_the_terminal(trained: Path, capsys: Capture) -> None:
    assert printable("\x1b[31mred\x1b[0m \x1b]0;title\x07a\tb\x07\x9b1m\x1bc") == "red a\tb1m"
    assert run(["translate", str(trained), "the \x1b[31mbear sleeps", "--show", "align"]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
