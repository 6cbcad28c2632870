"""Sequences to numbers: vocabularies and tokenizers. Nothing here imports torch."""
