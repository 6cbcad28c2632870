"""Sequences to numbers: vocabularies and tokenizers. Nothing here imports torch."""

from regard.text.foreign import ByteMergesTokenizer, MergesTokenizer, SentencePieceTokenizer
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizers import Tokenizers, learn, load
from regard.text.vocabulary import END, PAD, SPECIAL_TOKENS, START, UNK, Kind, Tokenizer, Vocabulary
from regard.text.words import ByteTokenizer, CharacterTokenizer, SpaceTokenizer, WordTokenizer

__all__ = [
    "END",
    "PAD",
    "SPECIAL_TOKENS",
    "START",
    "UNK",
    "ByteMergesTokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "Kind",
    "MergesTokenizer",
    "SentencePieceTokenizer",
    "SpaceTokenizer",
    "SubwordTokenizer",
    "Tokenizer",
    "Tokenizers",
    "Vocabulary",
    "WordTokenizer",
    "learn",
    "load",
]
