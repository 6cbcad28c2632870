"""Settings of one call, not of a run: how to decode, to measure and to serve.

They are written ``decode.beam=3`` on the command line of every verb that decodes, and ``{"decode": {"beam": 3}}`` in a
request; common ones are flags, too. Ranges are checked where the values are used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from regard.errors import SettingsError
from regard.settings.reading import Count, Frozen


def listed(value: Any) -> Any:
    """A value as a tuple: ``a,b`` is one, and so is a single value."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return tuple(value) if isinstance(value, list) else value if isinstance(value, tuple) else (value,)


def _numbered(value: Any) -> Any:
    return tuple(int(word) if isinstance(word, str) and word.isdecimal() else word for word in listed(value))


# Limits for every call; those of a request are narrower and in `serve.limits`.
Whole = Annotated[int, Field(le=1_000_000)]
Real = Annotated[float, Field(ge=-1e6, le=1e6)]
Line = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]  # may become a word of a command
Words = Annotated[tuple[Line, ...], Field(max_length=1000), BeforeValidator(listed)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_numbered)]


class DecodeSettings(Frozen):
    """How outputs are searched or sampled, and what they may and must contain."""

    model_config = ConfigDict(allow_inf_nan=False)

    beam: Whole = 5
    """Hypotheses kept at each step; 1 is greedy."""
    best: Whole = 1
    """Outputs of each text, best first."""
    length_penalty: Real = 1.0
    """Outputs are compared by log p / length^this."""
    coverage: Real = 0.0
    """Penalty for source words without attention; 0.2 is usual."""
    groups: Whole = 1
    """Groups of the beam that must differ; see `diversity`."""
    diversity: Real = 0.5
    """Penalty of a group for a word that an earlier group chose."""
    sample: bool = False
    """Sample the outputs instead of searching for them."""
    temperature: Real = 1.0
    """Of sampling; below 1 is more cautious."""
    top_k: Whole = 0
    """Sample from so many pieces, the most probable ones; 0 from all."""
    nucleus: Real = 1.0
    """Sample from the fewest pieces that have this probability together."""
    epsilon: Real = 0.0
    """Sample no piece less probable than this; 0.02 is usual with `risk`."""
    seed: Annotated[int, Field(le=2**31)] = 1
    """Of sampling."""
    risk: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Sample so many outputs, and give the one most like all others (chrF)."""
    shortest: Real = 0.0
    """Target pieces for each source piece, at the least."""
    longest: Real = 2.0
    """At the most, plus ten."""
    length: Whole = 40
    """Language models: how many pieces to add at the most."""
    no_repeat: Whole = 0
    """No sequence of so many pieces twice; 3 is usual."""
    forbid: Words = ()
    """Words not to write, with commas."""
    prefix: Line = ""
    """The beginning of each output."""
    glossary: dict[Line, Line] = Field(default={})
    """Source terms and how they must be translated: `{bank = 'rive'}`."""
    copy_unknown: bool | None = None
    """Whether to copy words the model cannot write; not set: if the tokenizer does not spell them."""
    engine: Line = "auto"
    """What searches: auto, native, native-bfloat16 (GPU), ctranslate2 or ctranslate2-int8."""


def check_drawn(given: Collection[str], found: DecodeSettings) -> None:
    """Refuse, of the settings that somebody gave, what shapes samples where none are drawn: it would change nothing."""
    about = sorted({"temperature", "top_k", "nucleus", "epsilon"}.intersection(given))
    if about and not (found.sample or found.risk):
        value = getattr(found, about[0])
        raise SettingsError(f"decode.{about[0]} = {value}: is about samples; add decode.sample=true or decode.risk=16")


class MeasureSettings(Frozen):
    """How outputs are measured and compared."""

    metrics: Words = ("bleu", "chrf")
    """Of bleu, chrf, chrf++, ter, exact (outputs that are the reference) and edits (characters to change for every
    hundred); the first decides, and is also measured by length."""
    tokenize: str = "13a"
    """BLEU's tokenizer: 13a, intl, char, zh or none."""
    edges: Numbers = ()
    """Where groups of source lengths end, in words: 10,20,30."""
    rarity: Literal["rarest", "mean"] = "rarest"
    """By the rarest word of a source, or by their mean."""
    resamples: int = 1000
    """Draws of the bootstrap; 0 for no intervals of a single run."""
    trials: int = 10_000
    """Trials of the approximate randomisation."""
    seed: int = 12345
    """Of tests and of sampled sentences; the default is sacreBLEU's."""
    limit: int = 0
    """Use at most so many sentences; 0 for all."""
    examples: int = 10
    """Sentences to show where runs differ most."""
    comet: str = ""
    """Also COMET with this model, if comet-score is installed."""
    alignment: str = ""
    """A file of gold word alignments, Pharaoh or NAACL format."""
    links: str = ""
    """A file of alignments to compare with the gold instead of the run's."""
    reverse: str = ""
    """A run of the other direction, whose links are joined with the run's."""
    reverse_links: str = ""
    """A file of links of the other direction, to be joined."""
    symmetrise: Literal["intersection", "union", "grow-diag", "grow-diag-final-and"] = "grow-diag-final-and"
    """How to join them."""
    texts: str = ""
    """A folder for all texts of a comparison, a sentence a line."""
    every: float = 10.0
    """Seconds between two lines of progress in a log."""


class ServeSettings(Frozen):
    """What a service accepts, and its limits."""

    host: str = "127.0.0.1"
    """The address to listen on; any but this machine's needs a token."""
    token: str = ""
    """What clients must send; REGARD_TOKEN does the same, unseen by other users. Made up if one is needed."""
    pin: Words = ()
    """Runs to use for their task and languages instead of the best."""
    admin_token: str = ""
    """Needed to train, upload, rename and remove; REGARD_ADMIN_TOKEN does the same. None: serve.token is enough."""
    read_only: bool = False
    """Refuse to train, upload, rename and remove."""
    allow_host: Words = ()
    """Further host names of this service."""
    allow_origin: Words = ()
    """Origins of web pages that may use it: https://example.org."""
    queue: Count = 1024
    """Texts that may wait for one model; more get 429."""
    batch: Count = 256
    """Texts in one batch at the most; 1 does not batch."""
    gather: Annotated[float, Field(ge=0)] = 4.0
    """Milliseconds that a text waits for others of its batch."""
    timeout: Annotated[float, Field(ge=0.1)] = 60.0
    """Seconds that a request may take."""
    memory: str = "4G"
    """For weights, at the most: 512M, 4G. The run that was not used longest is unloaded first."""
    drain: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Seconds to go on answering after SIGTERM while /health says 503, so that new requests are sent elsewhere."""
    stop_trainings: bool = False
    """Stop trainings when the service ends."""
    browser: bool = True
    """Open a browser when the studio is ready."""
    log: bool | None = None
    """Log requests; not set: `serve` does, `studio` does not."""


class BulkSettings(Frozen):
    """How a long file is divided."""

    lines: Annotated[int, Field(ge=1, le=1_000_000)] = 8192
    """Lines in a block, which is finished whole or not at all."""
    workers: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Of a Ray cluster: how many actors; 0 is one a GPU or, without GPUs, one a core."""


class CallSettings(Frozen):
    """All settings of a call."""

    decode: DecodeSettings = DecodeSettings()
    measure: MeasureSettings = MeasureSettings()
    serve: ServeSettings = ServeSettings()
    bulk: BulkSettings = BulkSettings()


# Which settings a call takes: to continue a text, to draw the tree of a search, to measure one run or several.
CONTINUED = (
    *(
        "beam",
        "length_penalty",
        "groups",
        "diversity",
        "sample",
        "temperature",
        "top_k",
        "nucleus",
        "epsilon",
        "seed",
        "length",
    ),
)
DRAWN = ("beam", "length_penalty", "coverage", "groups", "diversity", "prefix")
TRANSLATING = tuple(name for name in DecodeSettings.model_fields if name != "length")
LOOKED = tuple(name for name in TRANSLATING if name not in ("best", "engine"))
EVALUATED = (
    *("metrics", "tokenize", "edges", "rarity", "resamples", "comet"),
    *("alignment", "links", "reverse", "reverse_links", "symmetrise"),
)
COMPARED = ("metrics", "tokenize", "edges", "resamples", "trials", "seed", "limit", "examples", "every")
SERVING = tuple(ServeSettings.model_fields)
BULK = tuple(BulkSettings.model_fields)
# The settings of each verb, by section.
TAKEN: dict[str, dict[str, tuple[str, ...]]] = {
    "translate": {"decode": TRANSLATING, "bulk": BULK},
    "score": {"bulk": BULK},
    "backtranslate": {"decode": TRANSLATING, "bulk": BULK},
    "distil": {"decode": TRANSLATING, "bulk": BULK},
    "predict": {"decode": CONTINUED},
    "evaluate": {"decode": TRANSLATING, "measure": EVALUATED, "bulk": BULK},
    "compare": {"decode": TRANSLATING, "measure": (*COMPARED, "texts")},
    "report": {"decode": TRANSLATING, "measure": COMPARED},
    "explain": {"decode": LOOKED},
    "faithful": {"measure": ("limit", "resamples", "seed", "alignment")},
    "walk": {"decode": LOOKED},
    "beam": {"decode": DRAWN},
    "serve": {
        "serve": tuple(name for name in SERVING if name != "browser"),
        "decode": tuple(DecodeSettings.model_fields),
    },
    "studio": {"serve": SERVING, "decode": tuple(DecodeSettings.model_fields)},
}
