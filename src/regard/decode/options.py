"""How a text is to be translated, in words and not in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from regard.decode.constraints import checked_terms
from regard.decode.rules import Beam, Sample
from regard.errors import SettingsError
from regard.settings.call import DecodeSettings
from regard.settings.loading import overrides_of

SLACK = 10  # tokens that an output may always have


@dataclass(frozen=True)
class Options:
    """A rule of search, and what the output may and must contain."""

    rule: Beam | Sample = Beam()  # noqa: RUF009  it is frozen
    risk: bool = False  # of the samples drawn, the one most like all others comes first
    shortest: float = 0.0  # target pieces for each source piece, at the least
    longest: float = 2.0  # at the most, plus `SLACK`
    no_repeat: int = 0  # no sequence of so many pieces twice; 0: no limit
    forbidden: tuple[str, ...] = ()  # words
    prefix: str = ""  # of the output
    glossary: Mapping[str, str] | None = None  # source terms with the translations that they must have
    copy_unknown: bool | None = None  # copy unknown source words; None: where both vocabularies are of words

    def __post_init__(self) -> None:
        if not 0 <= self.shortest <= self.longest:
            raise SettingsError(
                f"shortest = {self.shortest}: must be between 0 and longest = {self.longest}, in target pieces "
                "for each source piece"
            )
        if self.no_repeat < 0:
            raise SettingsError(f"no_repeat = {self.no_repeat}: is the length of what must not repeat; 0 for no limit")
        if self.risk and not isinstance(self.rule, Sample):
            raise SettingsError("risk = true: compares samples, and this rule draws none; use rule = Sample(count=16)")

    @classmethod
    def of(cls, asked: DecodeSettings) -> Options:
        """The options that a command line or a request asks for. A beam is as wide as there are outputs to give."""
        return cls(
            rule_of(asked),
            bool(asked.risk),
            asked.shortest,
            asked.longest,
            asked.no_repeat,
            asked.forbid,
            asked.prefix,
            checked_terms(asked.glossary) if asked.glossary else None,
            asked.copy_unknown,
        )


def how(asked: DecodeSettings) -> tuple[str, ...]:
    """How outputs are made, in a few words: the beam, or *drawn*, and every setting that is not the default."""
    first = "drawn" if asked.sample or asked.risk else f"beam {asked.beam}"
    return first, *overrides_of("decode", asked.model_copy(update={"beam": 5, "sample": False}))


def rule_of(asked: DecodeSettings) -> Beam | Sample:
    """How hypotheses are chosen."""
    if asked.sample or asked.risk:
        return Sample(asked.risk or asked.best, asked.temperature, asked.top_k, asked.nucleus, asked.seed)
    width = max(asked.beam, asked.best) if asked.beam >= 1 else asked.beam
    diversity = asked.diversity if asked.groups > 1 else 0.0
    return Beam(width, asked.length_penalty, asked.coverage, asked.best, asked.groups, diversity)
