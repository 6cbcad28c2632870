"""Which languages a run translates between; see `regard.settings.languages`."""

from regard.settings.languages import NAMES, Languages, languages_of, name_of

__all__ = ["NAMES", "Languages", "languages_of", "name_of"]
