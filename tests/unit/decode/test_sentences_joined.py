"""Outputs of sentences become one text again."""

from __future__ import annotations

from regard.decode.texts import _gaps


def test_outputs_of_sentences_without_a_space_between_them_have_one_if_they_are_written_so() -> None:
    assert list(_gaps(("", "", ""), ["The bank.", "I went."])) == ["", " ", ""]
    assert list(_gaps(("", "", ""), ["银行在河边。", "我去。"])) == ["", "", ""]
    assert list(_gaps(("", "", " "), ["The bank.", "我去。"])) == ["", "", " "]
    assert list(_gaps((" ", "  ", ""), ["One.", "Two."])) == [" ", "  ", ""]
