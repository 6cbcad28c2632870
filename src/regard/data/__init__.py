"""From files to batches: reading, checking, cleaning, encoding, batching. Nothing here imports torch."""

from regard.data.batches import NO_LABEL, Batch, Batches, Position, collate, menu_for
from regard.data.check import CheckReport, check, check_labels
from regard.data.clean import CleanReport, SplitReport, clean, mend, split
from regard.data.encoding import (
    Examples,
    LabelEncoder,
    PairEncoder,
    RowEncoder,
    TagEncoder,
    TextEncoder,
    encode_examples,
)
from regard.data.plan import BatchShape, Plan, choose_menu, plan
from regard.data.readers import Corpus, find_shift
from regard.data.shards import Shards, open_shards, prepare, prepare_corpus
from regard.data.stats import StatsReport, stats

__all__ = [
    "NO_LABEL",
    "Batch",
    "BatchShape",
    "Batches",
    "CheckReport",
    "CleanReport",
    "Corpus",
    "Examples",
    "LabelEncoder",
    "PairEncoder",
    "Plan",
    "Position",
    "RowEncoder",
    "Shards",
    "SplitReport",
    "StatsReport",
    "TagEncoder",
    "TextEncoder",
    "check",
    "check_labels",
    "choose_menu",
    "clean",
    "collate",
    "encode_examples",
    "find_shift",
    "mend",
    "menu_for",
    "open_shards",
    "plan",
    "prepare",
    "prepare_corpus",
    "split",
    "stats",
]
