"""Sequences to numbers: vocabularies and tokenizers. Nothing here imports torch."""

from regard.text.characters import ByteTokenizer, CharacterTokenizer
from regard.text.foreign import ByteMergesTokenizer, MergesTokenizer, SentencePieceTokenizer
from regard.text.special import END, PAD, SPECIAL_TOKENS, START, UNK
from regard.text.subwords import SubwordTokenizer
from regard.text.tokenizer import Kind, Tokenizer
from regard.text.tokenizers import Tokenizers, learn, load
from regard.text.vocabulary import Vocabulary
from regard.text.words import SpaceTokenizer, WordTokenizer

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
