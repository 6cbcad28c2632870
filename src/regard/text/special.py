"""The four special tokens. They come first in every vocabulary, so that their ids are constants."""

from typing import Final

PAD: Final = 0  # fills a row up to the length of its longest batch-mate; never attended, never scored
START: Final = 1  # what a decoder reads before it has written anything
END: Final = 2  # what a decoder writes when it is done
UNK: Final = 3  # stands for a token outside the vocabulary

SPECIAL_TOKENS: Final = ("<pad>", "<start>", "<end>", "<unk>")  # by id
