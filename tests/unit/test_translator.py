"""From texts to texts: long ones, empty ones, what must and must not be written, looking into the result."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import corpora_for_tests as small
from regard.cli.main import run
from regard.decode.glossary import Glossary
from regard.decode.options import Options
from regard.decode.rules import Beam, Sample
from regard.decode.split import split
from regard.decode.texts import Output, Part, _by_risk
from regard.errors import DataError, ModelError, SettingsError
from regard.explain.alignment import Aligner
from regard.loading import load
from regard.text.special import UNK
from regard.training import start
from regard.translator import Translator

Capture = pytest.CaptureFixture[str]
CAT = "the black cat ate the mouse"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with attention and words, trained just long enough to write something."""
    folder = tmp_path_factory.mktemp("translator") / "run"
    learned = ("train.steps=120", "train.validate_every=120", "train.rate=1e-2", "model.dropout=0.0", "model.depth=1")
    start(folder, small.settings("luong-dot", *learned), small.Notes(), device="cpu")
    return folder


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


def test_a_long_text_is_cut_at_sentence_ends_into_as_few_parts_as_fit() -> None:
    text = 'One two. Three four! "Five six?" Seven… eight nine ten. एक दो। तीन'
    assert split(text, words, 4) == ["One two. Three four!", '"Five six?" Seven…', "eight nine ten.", "एक दो। तीन"]


def test_a_long_sentence_is_cut_at_commas_then_at_spaces_then_anywhere() -> None:
    assert split("one two, three four five, six", words, 3) == ["one two,", "three four five,", "six"]
    assert split("one two three four five", words, 2) == ["one two", "three four", "five"]
    assert split("abcdefgh ij", len, 3) == ["ab", "cd", "ef", "gh", "ij"]


def test_what_was_cut_is_all_there() -> None:
    text = "A b, c d. E f g h i; j. " * 7 + "k" * 31
    parts = split(text, len, 11)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert max(map(len, parts)) <= 11


def test_a_long_text_is_translated_in_parts_with_a_warning(translator: Translator) -> None:
    short = replace(translator, longest=7)
    found = short.translate(f"{CAT}. {CAT}. the bear sleeps.", beam=2)
    assert [part.source for part in found.outputs[0].parts] == [f"{CAT}.", f"{CAT}.", "the bear sleeps."]
    assert "longer than the 7 pieces" in found.warning
    assert "3 parts" in found.warning
    first, last = short.translate([f"{CAT}.", "the bear sleeps."], beam=2)
    assert found.text == f"{first.text} {first.text} {last.text}"
    assert found.log_probability == pytest.approx(2 * first.log_probability + last.log_probability, rel=1e-5)
    with pytest.raises(DataError, match="went through the model in 3 parts"):
        found.trace()


def test_the_limit_of_a_run_is_what_it_was_trained_with(trained: Path, translator: Translator) -> None:
    assert translator.longest == translator.run.settings.data.longest - 1  # type: ignore[union-attr]
    assert translator.most is None
    assert replace(translator, most=3).search.most == 3
    capped = replace(translator, most=3).translate([CAT, CAT], beam=2)
    assert all(len(part.tokens) <= 2 for found in capped for part in found.outputs[0].parts)
    assert trained.exists()


# Order, emptiness, streams


def test_empty_texts_stay_empty_and_in_their_place(translator: Translator) -> None:
    found = translator.translate(["", CAT, "   "], beam=1)
    assert [each.text == "" for each in found] == [True, False, True]
    assert found[0].log_probability == 0.0
    assert found[0].alignment() == []
    with pytest.raises(DataError, match="is empty; a trace is of one pass"):
        found[0].trace()


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
    glossary = Glossary({"cat": "le chat"})
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
    wish = {"prefix": "xyzzy", "forbidden": ("xyzzy",), "glossary": Glossary({"cat": "xyzzy"})}[where]
    with pytest.raises(DataError, match=rf"{where} = 'xyzzy': has pieces that this model's vocabulary does not"):
        translator.translate(CAT, replace(Options(), **{where: wish}))  # type: ignore[arg-type]


def test_a_forbidden_word_inside_the_prefix_does_not_go_on_for_ever(translator: Translator) -> None:
    found = translator.translate(CAT, Options(Beam(2), prefix="le chat", forbidden=("chat",)))
    assert found.text.startswith("le chat")
    assert "chat" not in found.text.removeprefix("le chat").split()


def test_forbidding_gives_up_when_it_must(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.decode.texts._Wishes.slips", lambda self, found: {(5,)})  # noqa: ARG005
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
    glossary = Glossary.parse(lines, "terms.tsv")
    assert glossary.find("The Black Cat saw a cat and a caterpillar") == ["chat noir", "chat"]
    assert glossary.find("MÜLLER & CO. wrote") == ["M"]
    assert glossary.find("concatenate") == []
    assert Glossary({}).find("cat") == []
    with pytest.raises(DataError, match=r"terms\.tsv line 1 = 'cat': must be a term, a tab and its translation"):
        Glossary.parse(["cat"], "terms.tsv")


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
    """A copy of a run that remembers no aligner and was trained on files, which may be gone."""
    shutil.copytree(trained, folder)
    (folder / "aligner.json").unlink(missing_ok=True)
    settings = (folder / "settings.toml").read_text(encoding="utf-8").replace('"fable:fr"', '""')
    settings = re.sub(r'^((?:valid_)?(?:source|target)) = ""', rf'\1 = "{sides}"', settings, flags=re.MULTILINE)
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
    part = Part("the zyx sleeps", (UNK, 5))
    output = Output("", -1.0, -1.0, (part,))
    pair = translator.attended([part])[0]
    looked = int(translator.aligner.weights((pair.late if translator.aligner.late else pair).cross)[0, :-1].argmax())
    copied = translator._copy_unknown(output).text.split()[0]
    assert copied == ["the", "zyx", "sleeps"][looked]
    assert translator._copy_unknown(replace(output, parts=(Part("the cat", (5,)),))).text == ""


def test_unknown_words_can_be_written_only_on_request(translator: Translator) -> None:
    options = Options(Beam(3, best=3), copy_unknown=True)
    assert "<unk>" not in " ".join(texts(translator, options))
    assert "<unk>" not in " ".join(texts(translator, Options(Sample(5))))


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
    assert shown.err.startswith("weights: cross-attention, ")
    assert run(["translate", str(trained), CAT, "--json", "--nbest", "3"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["target"] == content["outputs"][0]["target"]
    assert len(content["outputs"]) == 3


def test_translate_reads_a_file_and_writes_one_whole_or_not_at_all(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "in").write_text(f"{CAT}\n\nthe bear sleeps. {'the bear sleeps. ' * 90}\n", encoding="utf-8")
    files = ["--file", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert run(["translate", str(trained), *files, "--beam", "1"]) == 0
    assert "text 3: longer than" in capsys.readouterr().err
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
    "texts and a file": (["--file", "x"], 2, "--file = x: there are texts on the command line too"),
    "a glossary that is not there": (["--constrain", "nowhere"], 3, "nowhere: cannot be read"),
    "a run that is not there": (["--with", "nowhere"], 4, "nowhere: no such folder"),
    "groups that do not divide": (["--groups", "3"], 2, "groups = 3: must divide the beam of 5 evenly"),
    "a temperature of zero": (["--sample", "--temperature", "0"], 2, "temperature = 0.0: must be above 0"),
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
