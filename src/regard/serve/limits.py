"""The limits of a request, and the errors of requests that exceed them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from regard.errors import DataError, ResourceError, SettingsError
from regard.settings.call import TRANSLATING, DecodeSettings, check_drawn

# Limits of single fields of a body. Those that depend on the machine are in `Limits`.
TEXT = 5_000  # characters of a text; also the largest index of a word, layer or head
VECTORS = 1 << 20  # characters of numbers, a picture or a sound, where a run reads these
LINE = 1_000  # characters of a prefix, a sentence among several, an override
WORD = 200  # characters of a word
NAME = 100  # characters of a name
BEAM = 20  # hypotheses
LENGTH = 200  # pieces that a language model generates
RANGES = {"length_penalty": 5.0, "coverage": 100.0, "diversity": 100.0, "shortest": 20.0, "longest": 20.0}  # of decode
SENTENCES = 20  # in which a word is compared
OVERRIDES = 50
COMPARED = 12  # runs


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TooLargeError(DataError):
    """More than the service accepts in one request: status 413."""


class KindError(DataError):
    """A kind of file that the service does not accept: status 415."""


class BusyError(ResourceError):
    """The queue is full: status 429, with the seconds after which to ask again."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class LateError(ResourceError):
    """Not done within the time limit: status 504."""


@dataclass(frozen=True)
class Limits:
    """The limits of a service; `regard serve` has settings for those that depend on the machine."""

    text: int = TEXT  # characters of one text
    vectors: int = VECTORS  # characters of one text of numbers, or of the contents of a picture or a sound
    texts: int = 256  # in one request
    beam: int = BEAM  # hypotheses at the most
    body: int = 2 << 20  # bytes of a request
    depth: int = 20  # nested lists and objects of JSON
    digits: int = 100  # of a number in JSON
    fields: int = 1_000  # of a form
    upload: int = 1 << 30  # bytes of a file that is sent to a corpus
    queue: int = 1024  # texts that wait for one model
    together: int = 256  # texts in one batch; 1 does not batch
    gather: float = 0.004  # seconds that a text waits for others to share its batch
    seconds: float = 60.0  # that a request may take
    reading: float = 20.0  # seconds in which the head and the body of a request must arrive
    connections: int = 800  # and requests at once; below the 1,024 files that a process may usually open
    memory: int = 4 << 30  # bytes of weights in memory; the least recently used run is unloaded first

    def check(self, texts: Sequence[str], where: str = "texts", *, vectors: bool = False) -> None:
        """Refuse too many or too long texts before any is translated."""
        longest = self.vectors if vectors else self.text
        if len(texts) > min(self.texts, self.queue):
            most = min(self.texts, self.queue)
            raise TooLargeError(f"{where} = {len(texts):,} texts: too many at once; send at most {most:,} in a request")
        for number, text in enumerate(texts):
            if len(text) > longest:
                place = f"{where}.{number}" if len(texts) > 1 else where
                raise TooLargeError(f"{place} = {len(text):,} characters: too long; send at most {longest:,} in a text")

    def decode(
        self,
        usual: DecodeSettings,
        fields: Mapping[str, Any],
        asked: DecodeSettings | None = None,
        *,
        known: Collection[str] = TRANSLATING,
        what: str = "translations",
    ) -> DecodeSettings:
        """How a request is decoded: the service's ``usual`` settings, then the fields of its body, then its ``decode``.

        ``what`` is asked for takes only the ``known`` settings: usual ones that it does not take are left out, those of
        a request are refused.
        """
        own = {} if asked is None else asked.model_dump(exclude_unset=True)
        if "engine" in own:
            raise SettingsError("decode.engine: is chosen when a run is loaded; set it when you start the service")
        if asked is not None:
            asked.only(known, what)
        found = DecodeSettings(**usual.model_dump(include=set(known), exclude_unset=True) | dict(fields) | own)
        check_drawn(own, found)
        most = {name: float(self.beam) for name in ("beam", "best", "risk")} | {"length": float(LENGTH)} | RANGES
        for name, value in most.items():
            if abs(given := getattr(found, name)) > value:
                raise SettingsError(f"decode.{name} = {given}: too much for one request; at most {value:g}")
        words = {
            "prefix": found.prefix,
            "forbid": "".join(found.forbid),
            "glossary": "".join(sum(found.glossary.items(), ())),
        }
        for name, text in words.items():
            if len(text) > LINE:
                raise SettingsError(f"decode.{name} = {len(text):,} characters: too long; send at most {LINE:,}")
        return found
