"""From files to batches: reading, checking, cleaning, encoding, batching. Nothing here imports torch."""

from regard.data.batches import NO_LABEL, Batch, Batches, Position, collate, menu_for
from regard.data.check import CheckReport, check
from regard.data.check_labels import check_labels
from regard.data.clean import CleanReport, clean, mend
from regard.data.encoding import LabelEncoder, PairEncoder, RowEncoder, TagEncoder, TextEncoder
from regard.data.examples import Examples, encode_examples
from regard.data.menu import BatchShape, choose_menu
from regard.data.plan import Plan, plan
from regard.data.readers import Corpus
from regard.data.shards import Shards, open_shards, prepare, prepare_corpus
from regard.data.shift import find_shift
from regard.data.split import SplitReport, split
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
