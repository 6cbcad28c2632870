"""Tokenizers: how each kind cuts, that the text comes back, and what is refused."""

import json
import pickle
import re
from dataclasses import replace
from random import Random

import pytest

from regard.errors import DataError, ModelError, SettingsError
from regard.settings import load_settings
from regard.text import (
    END,
    PAD,
    SPECIAL_TOKENS,
    START,
    UNK,
    ByteTokenizer,
    Tokenizer,
    Tokenizers,
    learn,
    load,
)
from regard.text.subwords import SubwordTokenizer, draw
from regard.text.tokenizers import size_remarks
from regard.text.words import JOINER, WordTokenizer, join_words, space_words, split_words

LINES = [
    f"{subject} {verb} {thing} ."
    for subject in ("the bear", "a cat", "l'ours", "the old woman", "un chat noir", "भालू")
    for verb in ("doesn't eat", "saw", "a mangé", "will not find", "n'aime pas", "ने देखा")
    for thing in ("the honey", "a mouse", "la souris", "the bank of the river", "शहद", "bread 😀")
]
SYLLABLES = ("ba", "ri", "to", "lun", "ke")
LINES += [f"{a}{b}{c} {c}{a} {b}{b}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
KINDS = ("word", "space", "character", "byte", "bpe", "unigram")
TEXTS = ["", "the bear doesn't eat the honey .", "l'ours a mangé la souris .", "भालू ने शहद देखा .", "bread 😀"]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return learn(request.param, LINES, size=380)


def subwords(kind: str, size: int = 360) -> SubwordTokenizer:
    made = learn(kind, LINES, size=size)
    assert isinstance(made, SubwordTokenizer)
    return made


def test_a_clitic_is_cut_off_and_marked() -> None:
    assert split_words("He doesn't.") == ["He", "does", f"{JOINER}n't", f"{JOINER}."]
    assert split_words("L'ours qu'il voit") == ["L'", f"{JOINER}ours", "qu'", f"{JOINER}il", "voit"]
    assert split_words("the bear's; we’ll") == [
        "the",
        "bear",
        f"{JOINER}'s",
        f"{JOINER};",
        "we",
        f"{JOINER}’ll",
    ]


def test_what_is_one_word_stays_one_word() -> None:
    assert split_words("aujourd'hui 10,000 3.14 हिन्दी में") == ["aujourd'hui", "10,000", "3.14", "हिन्दी", "में"]
    assert split_words("शब्द\u200dसंधि") == ["शब्द\u200dसंधि"]
    amounts = ["$5", "€10,000.50", "10:30", "3/4/2024", "2024-03-04", "555-1234", "1990–1995", "U.S.", "p.m."]
    assert split_words(" ".join(amounts)) == amounts
    assert split_words("$3.5bn") == ["$", f"{JOINER}3.5", f"{JOINER}bn"]
    assert split_words("well-known and/or 5m. a.") == [
        *("well", f"{JOINER}-", f"{JOINER}known", "and", f"{JOINER}/", f"{JOINER}or"),
        *("5m", f"{JOINER}.", "a", f"{JOINER}."),
    ]


def test_what_follows_an_elided_word_is_glued_to_it_with_or_without_a_joiner() -> None:
    """A vocabulary that has *aider* alone reads m'aider as m' aider, and a model writes it so."""
    tokenizer = WordTokenizer.learn(["il veut aider", "il m'a vu"])
    ids = tokenizer.encode("il veut m'aider")
    assert tokenizer.decode(ids) == "il veut m'aider"
    assert join_words(["m'", "aider", "!"]) == "m'aider !"
    assert tokenizer.word_of(["il", "m'", "aider", "vu"]) == [0, 1, 1, 2]
    assert join_words(split_words("the dogs' house, rock 'n' roll, d' Artagnan")) == (
        "the dogs' house, rock 'n' roll, d' Artagnan"
    )


def test_a_joiner_in_the_text_is_not_taken_for_the_mark() -> None:
    for text in (JOINER, JOINER * 2, f"a{JOINER}b {JOINER}c", f"{JOINER} {JOINER}"):
        assert join_words(split_words(text)) == text


def test_every_kind_gives_known_text_back(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_pieces_are_the_tokens_of_the_ids(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        pieces = tokenizer.pieces(text)
        assert [tokenizer.token(number) for number in tokenizer.encode(text)] == pieces
        assert [tokenizer.id(piece) for piece in pieces] == tokenizer.encode(text)


def test_special_ids_are_the_same_everywhere_and_silent_when_decoded(tokenizer: Tokenizer) -> None:
    assert tuple(tokenizer.token(number) for number in range(4)) == SPECIAL_TOKENS
    ids = tokenizer.encode("the bear")
    assert tokenizer.decode([START, *ids, END, PAD, PAD]) == "the bear"
    assert tokenizer.decode([UNK]).strip() != ""
    assert all(UNK < number < tokenizer.size for number in ids)


def test_pieces_fold_into_whitespace_words(tokenizer: Tokenizer) -> None:
    text = "l'ours n'aime pas शहद ."
    words = tokenizer.word_of(tokenizer.pieces(text))
    assert len(words) == len(tokenizer.pieces(text))
    assert sorted(set(words)) == list(range(5))
    for number, word in enumerate(text.split()):
        ids = [i for i, w in zip(tokenizer.encode(text), words, strict=True) if w == number]
        assert tokenizer.decode(ids).strip() == word


def test_word_folding_of_nothing_is_nothing(tokenizer: Tokenizer) -> None:
    assert tokenizer.word_of([]) == []


def test_leading_and_trailing_spaces_belong_to_a_real_word() -> None:
    tokenizer = ByteTokenizer()
    assert tokenizer.word_of(tokenizer.pieces("  é b ")) == [0, 0, 0, 0, 0, 1, 1]
    assert tokenizer.word_of(["<0xC3>", "<0x20>", "<0x41>"]) == [0, 0, 1]


def test_a_saved_tokenizer_loads_as_it_was(tokenizer: Tokenizer, tmp_path) -> None:
    tokenizer.save(tmp_path / "tokenizer")
    loaded = load(tmp_path / "tokenizer")
    assert loaded == tokenizer
    assert loaded.fingerprint() == tokenizer.fingerprint()
    assert [loaded.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]


def test_learning_twice_gives_the_same_tokenizer(tokenizer: Tokenizer) -> None:
    again = learn(tokenizer.kind, LINES, size=380)
    assert again.fingerprint() == tokenizer.fingerprint()


def test_different_tokenizers_have_different_fingerprints() -> None:
    assert len({learn(kind, LINES, size=380).fingerprint() for kind in KINDS}) == len(KINDS)


def test_learning_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    subwords("bpe")
    subwords("unigram")
    assert capfd.readouterr() == ("", "")


def test_nothing_is_unknown_to_subwords_and_bytes() -> None:
    text = "Ω שלום 語 \x00 👩‍👩‍👧"
    for tokenizer in (subwords("bpe"), subwords("unigram"), ByteTokenizer()):
        assert UNK not in tokenizer.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_words_and_characters_show_what_they_do_not_know() -> None:
    assert learn("word", ["a b"]).decode(learn("word", ["a b"]).encode("a zebra b")) == "a <unk> b"
    assert learn("character", ["a b"]).decode(learn("character", ["a b"]).encode("azb")) == "a\ufffdb"


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    for tokenizer in (ByteTokenizer(), subwords("bpe")):
        assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_varies_the_cuts_but_never_the_text(kind: str) -> None:
    tokenizer = subwords(kind)
    text = "the old woman will not find the bank of the river 😀"
    samples = [tokenizer.sample(text, Random(seed)) for seed in range(30)]
    assert len({tuple(sample) for sample in samples}) > 5
    assert {tokenizer.decode(sample) for sample in samples} == {text}
    assert samples == [tokenizer.sample(text, Random(seed)) for seed in range(30)]


def test_bpe_that_drops_nothing_merges_as_sentencepiece_does() -> None:
    tokenizer = replace(subwords("bpe"), sampling=0.0)
    for line in [*LINES, "zebra Ω 👩‍👩‍👧"]:
        assert tokenizer.sample(line, Random(0)) == tokenizer.encode(line)


def test_unigram_sampling_prefers_the_likely_cut() -> None:
    tokenizer = replace(subwords("unigram"), sampling=50.0)
    assert [tokenizer.sample(line, Random(0)) for line in LINES] == [tokenizer.encode(line) for line in LINES]


def test_a_piece_that_is_not_one_is_unknown(tokenizer: Tokenizer) -> None:
    assert tokenizer.id("<0x>") == UNK


def test_sampling_is_encoding_where_there_is_one_way_to_cut() -> None:
    assert ByteTokenizer().sample("the bear", Random(0)) == ByteTokenizer().encode("the bear")


def test_a_subword_tokenizer_travels_to_another_process() -> None:
    tokenizer = subwords("bpe")
    tokenizer.encode("the bear")  # the processor is made, and must not be in the way
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


def test_a_drawn_sample_is_even_and_bounded() -> None:
    lines = [str(number) for number in range(100)]
    counts = dict.fromkeys(lines, 0)
    for seed in range(500):
        drawn = draw(lines, 20, Random(seed))
        assert len(set(drawn)) == 20
        for line in drawn:
            counts[line] += 1
    assert 60 < min(counts.values()) <= max(counts.values()) < 145  # 100 expected, spread about 9
    assert draw(lines, 1000, Random(0)) == lines


def test_a_joint_pair_shares_one_tokenizer(tmp_path) -> None:
    pair = Tokenizers.learn("word", ["a b"], ["c d"], joint=True)
    assert pair.joint
    assert pair.source.encode("d c") == pair.target.encode("d c")
    pair.save(tmp_path / "pair")
    loaded = Tokenizers.load(tmp_path / "pair")
    assert loaded.joint
    assert loaded == pair


def test_a_separate_pair_has_two_tokenizers(tmp_path) -> None:
    pair = Tokenizers.learn("word", ["a b"], ["c d"], joint=False)
    assert not pair.joint
    assert pair.source.encode("c") == [UNK]
    pair.save(tmp_path / "pair")
    assert Tokenizers.load(tmp_path / "pair") == pair
    assert not Tokenizers.load(tmp_path / "pair").joint


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("lines", [["the cat"], LINES[:3], [f"the cat {n} slept on mat {n}" for n in range(30)]])
def test_a_size_that_the_text_cannot_have_becomes_one_that_it_can(kind: str, lines: list[str]) -> None:
    large, small = learn(kind, lines, size=8000), learn(kind, lines, size=100)
    assert 100 < small.size <= large.size < 8000
    assert all(each.decode(each.encode(lines[0])) == lines[0] for each in (large, small))
    assert learn(kind, lines, size=8000).fingerprint() == large.fingerprint()


def test_a_size_that_became_another_is_told_in_one_line() -> None:
    found = Tokenizers.learn("bpe", ["the cat"], ["le chat"], joint=False)
    source, target = size_remarks(found, 8000)
    size = found.source.size
    assert source == f"the source text has {size} pieces at most: a vocabulary of {size} instead of 8,000"
    assert target.startswith("the target text has ")
    joint = Tokenizers.learn("bpe", ["the cat"], ["le chat"], joint=True, size=100)
    (line,) = size_remarks(joint, 100)
    assert re.fullmatch(r"the text has bytes and characters for \d+ pieces: a vocabulary of \d+ instead of 100", line)
    assert size_remarks(joint, joint.source.size) == []
    assert size_remarks(Tokenizers.learn("word", ["the cat"], ["le chat"], joint=True), 8000) == []


def test_subwords_need_text_to_learn_from() -> None:
    with pytest.raises(DataError, match="lines = 0: bpe has nothing to learn from"):
        learn("bpe", [], size=300)


def test_an_unforeseen_complaint_of_sentencepiece_is_one_line() -> None:
    with pytest.raises(DataError, match="bpe: sentencepiece cannot learn from this text; it says"):
        SubwordTokenizer.learn("bpe", LINES, size=380, coverage=0.5)


def test_an_unknown_kind_is_refused_with_its_neighbour() -> None:
    with pytest.raises(SettingsError, match="kind = 'words': no such tokenizer; did you mean 'word'"):
        learn("words", LINES)


def test_a_damaged_folder_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json: cannot be read \(No such file"):
        load(tmp_path)
    description = tmp_path / "tokenizer.json"
    description.write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json: not JSON"):
        load(tmp_path)
    description.write_text("[]", encoding="utf-8")
    with pytest.raises(ModelError, match="not a JSON object"):
        load(tmp_path)
    description.write_text(json.dumps({"kind": "pickle"}), encoding="utf-8")
    with pytest.raises(ModelError, match="kind = 'pickle': no such tokenizer; known: word"):
        load(tmp_path)


def test_a_damaged_model_or_vocabulary_is_refused(tmp_path) -> None:
    subwords("bpe").save(tmp_path / "bpe")
    (tmp_path / "bpe" / "sentencepiece.model").write_bytes(b"nonsense")
    with pytest.raises(ModelError, match="8 bytes: not a sentencepiece model"):
        load(tmp_path / "bpe").encode("a")
    learn("word", ["a"]).save(tmp_path / "word")
    (tmp_path / "word" / "vocabulary.tsv").write_text("a\t1\n", encoding="utf-8")
    with pytest.raises(ModelError, match="does not begin with the special tokens"):
        load(tmp_path / "word")


CASED = "The bear saw NATO, McDonald and I."


def test_a_capital_is_a_mark_before_its_word() -> None:
    tokenizer = learn("word", [CASED, "L'ours d'Anna. OK? iPhone"], size=100, case="mark")
    assert tokenizer.pieces(CASED) == ["⇧", "the", "bear", "saw", "⇪", "nato", "￭,", "McDonald", "and", "⇧", "i", "￭."]
    pieces = tokenizer.pieces("L'ours d'Anna. OK? iPhone")
    assert pieces == ["⇧", "l'", "￭ours", "d'", "⇧", "￭anna", "￭.", "⇪", "ok", "￭?", "iPhone"]
    assert tokenizer.decode(tokenizer.encode(CASED)) == CASED
    assert tokenizer.word_of(tokenizer.pieces("The bear d'Anna")) == [0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_share_pieces_between_the_and_the(kind: str) -> None:
    tokenizer = learn(kind, [CASED, "the bear saw nato"] * 5, size=400, case="mark")
    small, large = tokenizer.pieces("the nato"), tokenizer.pieces("The NATO")
    assert [piece for piece in large if piece not in ("▁⇧", "▁⇪")] == small
    assert len(large) == len(small) + 2
    assert tokenizer.decode(tokenizer.encode(CASED)) == CASED
    assert tokenizer.word_of(large)[:2] == [0, 0]
    assert len(set(tokenizer.word_of(large))) == 2


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram"])
def test_marks_have_ids_even_where_the_text_has_no_capital_and_survive_the_folder(kind: str, tmp_path) -> None:
    tokenizer = learn(kind, ["the cat slept"] * 3, size=300, case="mark")
    assert UNK not in tokenizer.encode("The CAT")
    assert tokenizer.decode(tokenizer.encode("The CAT")) == "The CAT"
    tokenizer.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again == tokenizer
    assert again.decode(again.encode("The CAT")) == "The CAT"
    assert again.fingerprint() != learn(kind, ["the cat slept"] * 3, size=300).fingerprint()


def test_marks_that_stand_nowhere_are_passed_over() -> None:
    tokenizer = learn("word", ["the cat ."], size=100, case="mark")
    the, up = tokenizer.id("the"), tokenizer.id("⇧")
    assert tokenizer.decode([up, up, the, up, UNK, up]) == "The <unk>"
    assert tokenizer.word_of(["⇧", "the", "⇧"]) == [0, 0, 0]
    subword = learn("bpe", ["the cat"], size=300, case="mark")
    up = subword.id("▁⇧")
    assert subword.decode([up, *subword.encode("the"), up]) == "The"


def test_only_words_and_subwords_have_marks() -> None:
    with pytest.raises(SettingsError, match=r"case = mark: a tokenizer of kind 'byte' has no marks"):
        learn("byte", ["The cat"], case="mark")
    with pytest.raises(SettingsError, match=r"text.case = mark: a tokenizer of kind 'space' has no marks"):
        load_settings("lstm", "text.tokenizer=space", "text.case=mark")


def test_no_break_spaces_stay_with_their_punctuation_and_divide_no_words() -> None:
    text = "« Où est la souris\u202f? » dit-il «\u00a0oui\u00a0!\u00a0» 10\u202f000"
    assert space_words("la souris\u202f? ah") == ["la", "souris\u202f?", "ah"]
    assert split_words("souris\u202f?") == ["souris", "￭\u202f?"]
    assert split_words("«\u00a0oui\u00a0!\u00a0»") == ["«\u00a0", "￭oui", "￭\u00a0!", "￭\u00a0»"]
    assert split_words("10\u202f000") == ["10\u202f000"]
    for kind in ("word", "space", "bpe", "unigram"):
        tokenizer = learn(kind, [text] * 3, size=330)
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert len(set(tokenizer.word_of(tokenizer.pieces("la souris\u202f?")))) == 2


def test_a_glued_word_without_an_id_of_its_own_has_that_of_the_word() -> None:
    tokenizer = learn("word", ["the bear ( slept )"], size=100)
    assert tokenizer.encode("(bear)") == [tokenizer.id("("), tokenizer.id("bear"), tokenizer.id(")")]
    assert tokenizer.pieces("(bear)") == ["(", "￭bear", "￭)"]
