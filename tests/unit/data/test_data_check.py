"""Checking, cleaning, counting and splitting corpora."""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

from regard.cli.main import run
from regard.cli.streams import LineCounter
from regard.data import CheckReport, Corpus, check, clean, mend, split, stats
from regard.data.check import SIDES, Finding, Seen
from regard.data.clean import suffixes
from regard.errors import DataError, SettingsError
from regard.text import ByteTokenizer, Tokenizers

GOOD = [(f"der Bär frisst Honig Nummer {n}", f"the bear eats honey number {n}") for n in range(40)]


def write(folder: Path, rows: list[tuple[str, str]], name: str = "train") -> Corpus:
    paths = (folder / f"{name}.de", folder / f"{name}.en")
    for side, path in enumerate(paths):
        path.write_bytes("".join(f"{row[side]}\n" for row in rows).encode("utf-8", "surrogateescape"))
    return Corpus(tuple(map(str, paths)))


def found(report: CheckReport) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def lines(finding: Finding) -> list[int]:
    return [example.line for example in finding.examples]


def test_a_good_corpus_has_no_findings(tmp_path) -> None:
    report = check(write(tmp_path, GOOD))
    assert report.clean
    assert (report.pairs, report.findings, report.sides) == (40, (), ())
    assert report.typical_ratio == pytest.approx(34 / 33, rel=0.05)


def test_each_fault_is_found_with_its_line(tmp_path) -> None:
    bad = [
        ("", "nothing"),
        ("etwas", "  "),
        ("gleich und gleich", "gleich und gleich"),
        GOOD[3],
        ("ja", "a very long answer to so very short a question, and it goes on and on for ever"),
        ("sch\udcf6n ist das Leben", "life is beautiful"),
    ]
    report = check(write(tmp_path, [*GOOD, *bad]))
    findings = found(report)
    assert {kind: lines(finding) for kind, finding in findings.items()} == {
        "empty": [41, 42],
        "identical": [43],
        "duplicate": [44],
        "ratio": [45],
        "encoding": [46],
    }
    assert [example.note for example in findings["empty"].examples] == [
        "the source is empty",
        "the target is empty",
    ]
    assert findings["ratio"].examples[0].source == "ja"
    assert findings["encoding"].examples[0].line == 46
    assert "train.de: not UTF-8 (byte 0xf6" in findings["encoding"].examples[0].note
    assert not report.clean


def test_examples_are_few_but_the_count_is_whole(tmp_path) -> None:
    finding = found(check(write(tmp_path, GOOD * 3), shown=2))["duplicate"]
    assert (finding.count, lines(finding)) == (80, [41, 42])


def test_test_sentences_in_the_training_set_are_found(tmp_path) -> None:
    corpus = write(tmp_path, GOOD)
    held_out = write(tmp_path, [("etwas anderes", "something else"), GOOD[7]], name="test")
    assert lines(found(check(corpus, held_out=held_out))["leak"]) == [8]


def test_files_of_different_length_are_reported_not_raised(tmp_path) -> None:
    corpus = write(tmp_path, GOOD)
    path = Path(corpus.paths[0])
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-2]), encoding="utf-8")
    report = check(corpus)
    assert report.pairs == 38
    assert "38 lines but" in found(report)["mismatch"].examples[0].note


def test_a_tokenizer_tells_what_it_does_not_know(tmp_path) -> None:
    corpus = write(tmp_path, [("ein Bär", "a bear"), ("ein Çöp", "a bear")])
    words = Tokenizers.learn("word", ["ein Bär"], ["a bear"], joint=False)
    source, target = check(corpus, tokenizers=words).sides
    assert (source.tokens, source.unknown, source.unknown_share) == (4, 1, 0.25)
    assert source.outside == {"p": 1, "Ç": 1, "ö": 1}
    assert (target.unknown, target.outside) == (0, {})
    characters = Tokenizers.learn("character", ["einBär"], ["abear"], joint=False)
    assert check(corpus, tokenizers=characters).sides[1].outside == {" ": 2}
    everything = Tokenizers(ByteTokenizer(), ByteTokenizer())
    assert check(corpus, tokenizers=everything).sides[0].outside == {}


def test_reports_are_json(tmp_path) -> None:
    corpus = write(tmp_path, [*GOOD, ("", "x")])
    tokenizers = Tokenizers(ByteTokenizer(), ByteTokenizer())
    report = check(corpus, tokenizers=tokenizers)
    content = json.loads(json.dumps(asdict(report)))
    assert content["findings"][0]["kind"] == "empty"
    assert json.loads(json.dumps(asdict(stats(corpus, tokenizers))))["pairs"] == 41


def test_progress_is_told(tmp_path) -> None:
    steps: list[tuple[int, int | None]] = []
    corpus = write(tmp_path, GOOD)
    check(corpus, progress=lambda *step: steps.append(step))
    clean(corpus, tmp_path / "a", tmp_path / "b", tmp_path / "c", progress=lambda *step: steps.append(step))
    assert steps == [(40, None), (40, None)]


def test_an_empty_corpus_can_be_checked_and_counted(tmp_path) -> None:
    corpus = write(tmp_path, [])
    assert check(corpus, tokenizers=Tokenizers(ByteTokenizer(), ByteTokenizer())).sides[0].unknown_share == 0
    assert stats(corpus).sides[0].words.total == 0


def test_mending_composes_and_tidies_but_keeps_joiners() -> None:
    assert mend(" a\u0308 \t b\x00\x07\u200b\ufeff\u00a0c\u2028d ") == "ä b c d"
    assert mend("क्\u200dष می\u200cخواهم \u200fشلوم") == "क्\u200dष می\u200cخواهم \u200fشلوم"


def test_cleaning_mends_drops_and_says_why(tmp_path) -> None:
    bad = [
        ("ein  Bär\x00", "a bear"),
        ("", "nothing"),
        ("sch\udcf6n", "nice"),
        GOOD[0],
        ("gleich", "gleich"),
        ("ja\tdoch", "this is far too long to be a translation of it, whatever it may be that it says"),
    ]
    corpus = write(tmp_path, [*GOOD, *bad])
    out = [tmp_path / name for name in ("clean.de", "clean.en", "dropped.tsv")]
    report = clean(corpus, *out)
    assert (report.read, report.kept, report.mended) == (46, 41, 1)
    assert report.dropped == {"empty": 1, "encoding": 1, "duplicate": 1, "identical": 1, "ratio": 1}
    assert asdict(report)["files"] == tuple(map(str, out))
    pairs = [row for _, row in Corpus((str(out[0]), str(out[1]))).rows(SIDES)]
    assert pairs == [*GOOD, ("ein Bär", "a bear")]
    rows = [line.split("\t") for line in out[2].read_text(encoding="utf-8").splitlines()]
    assert [row[:2] for row in rows] == [
        ["line", "reason"],
        ["42", "empty"],
        ["43", "encoding"],
        ["44", "duplicate"],
        ["45", "identical"],
        ["46", "ratio"],
    ]
    assert rows[5][2] == "ja doch"
    assert check(Corpus((str(out[0]), str(out[1])))).clean


def test_what_is_to_be_kept_is_kept(tmp_path) -> None:
    corpus = write(tmp_path, [*GOOD, ("gleich", "gleich"), GOOD[0]])
    out = [tmp_path / name for name in ("a", "b", "c")]
    assert clean(corpus, *out, keep=("identical",)).dropped == {"duplicate": 1}
    assert clean(corpus, *out, keep=("identical", "duplicate")).dropped == {}


def test_cleaning_takes_out_held_out_sentences_however_spaced(tmp_path) -> None:
    corpus = write(tmp_path, GOOD)
    held_out = write(tmp_path, [("der  Bär frisst Honig Nummer 7 ", "x")], name="test")
    out = [tmp_path / name for name in ("a", "b", "c")]
    assert clean(corpus, *out, held_out=held_out).dropped == {"leak": 1}


def test_a_table_that_has_no_such_column_anywhere_gets_one_line(tmp_path, capsys) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"translation": {"de": "ein Bär", "en": "a bear"}}\n', encoding="utf-8")
    assert run(["data", "check", str(path)]) == 3
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith(f"{path} line 1: column = source: no text under that name; known: translation;")
    assert len(found.err.splitlines()) == 1
    assert run(["data", "check", str(path), "--columns", "translation.de,translation.en"]) == 0


def test_what_is_wrong_with_a_line_names_the_line_once(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{\n', encoding="utf-8")
    first = check(Corpus((str(path),))).findings[0].examples[0]
    assert (first.line, first.note.partition("(")[0]) == (2, "not JSON ")


def test_rows_that_cannot_be_read_are_dropped_in_their_place(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    records = [
        '{"source": "ein Bär", "target": "a bear"}',
        "{",
        '{"source": "Honig", "target": "honey"}',
        "nonsense",
    ]
    path.write_text("\n".join(records), encoding="utf-8")
    report = clean(Corpus((str(path),)), tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert (report.read, report.kept, report.dropped) == (4, 2, {"format": 2})
    dropped = (tmp_path / "c").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split("\t")[0] for line in dropped] == ["2", "4"]


def test_cleaning_refuses_mismatched_files_and_its_own_input(tmp_path) -> None:
    corpus = write(tmp_path, GOOD)
    with pytest.raises(SettingsError, match=r"train\.de: is read and written; write to another name"):
        clean(corpus, corpus.paths[0], tmp_path / "b", tmp_path / "c")
    Path(corpus.paths[0]).write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 lines but"):
        clean(corpus, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.de", "train.en"]


def test_stats_count_characters_words_and_tokens(tmp_path) -> None:
    corpus = write(tmp_path, [("a bb", "x"), ("a", "y z"), ("a bb cc dd", "x")])
    report = stats(corpus, Tokenizers(ByteTokenizer(), ByteTokenizer()))
    source, target = report.sides
    assert report.pairs == 3
    assert (source.words.total, source.words.median, source.words.longest) == (7, 2, 4)
    assert source.words.mean == pytest.approx(7 / 3)
    assert (source.different_words, target.different_words) == (4, 3)
    assert source.tokens == source.characters
    assert stats(corpus).sides[0].tokens is None


def test_a_split_is_whole_seeded_and_disjoint_by_source(tmp_path) -> None:
    rows = [(f"Satz {n % 200}", f"sentence {n}") for n in range(400)]
    corpus = write(tmp_path, rows)

    def parts(seed: int) -> dict[str, list[tuple[str, ...]]]:
        folder = tmp_path / f"split{seed}"
        report = split(corpus, folder, valid=41, test=20, seed=seed)
        sets = {n: Corpus((str(folder / f"{n}.de"), str(folder / f"{n}.en"))) for n in ("test", "valid", "train")}
        read = {name: [row for _, row in part.rows(SIDES)] for name, part in sets.items()}
        assert {name: len(part) for name, part in read.items()} == {
            "test": report.test,
            "valid": report.valid,
            "train": report.train,
        }
        assert len(asdict(report)["files"]) == 6
        return read

    first = parts(0)
    assert (len(first["test"]), len(first["valid"]), len(first["train"])) == (
        20,
        42,
        338,
    )  # pairs stay together
    assert sorted(pair for part in first.values() for pair in part) == sorted(rows)
    sources = [source for part in first.values() for source in {source for source, _ in part}]
    assert len(sources) == len(set(sources)) == 200
    assert parts(0) == first
    assert parts(1) != first


def test_a_split_may_leave_sets_empty_but_not_the_training_set(tmp_path) -> None:
    corpus = write(tmp_path, GOOD)
    report = split(corpus, tmp_path / "split", valid=0, test=0)
    assert (report.test, report.valid, report.train) == (0, 0, 40)
    with pytest.raises(SettingsError, match="valid, test = 20, 20: leave no training pair of 40"):
        split(corpus, tmp_path / "split", valid=20, test=20)


def test_sets_are_called_as_their_files_are() -> None:
    assert suffixes(Corpus(("data/train.de.gz", "data/train.en.gz"))) == ("de", "en")
    assert suffixes(Corpus(("a.tsv",))) == ("source", "target")
    assert suffixes(Corpus(("a.txt", "b.txt"))) == ("source", "target")


def test_things_are_seen_once_however_they_are_grouped() -> None:
    seen = Seen()
    assert seen.add(["a", "b", "a"]).tolist() == [True, True, False]
    assert seen.add(["c", "b"]).tolist() == [True, False]
    assert seen.has(["c", "d"]).tolist() == [True, False]
    assert len(seen) == 3
    for start in range(0, 1000, 100):
        assert seen.add(range(start, start + 100)).all()
    assert len(seen) == 1003
    assert seen.has(range(1000)).all()


def test_reading_says_in_a_log_how_far_it_is(tmp_path, capsys, monkeypatch) -> None:
    paths = write(tmp_path, GOOD).paths
    monkeypatch.setattr("regard.cli.data.LineCounter", partial(LineCounter, every=0.0))
    assert run(["data", "check", *paths]) == 0
    assert "40 pairs read\n" in capsys.readouterr().err
    assert run(["data", "check", *paths, "--quiet"]) == 0
    assert "pairs read" not in capsys.readouterr().err
