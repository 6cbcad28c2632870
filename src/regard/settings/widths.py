"""Arithmetic that both the settings and the mathematics insist on. Nothing here imports torch."""

from __future__ import annotations

from regard.errors import SettingsError


def head_width(width: int, heads: int, where: str = "heads") -> int:
    """``width / heads``: every head gets an equal share of the features."""
    if heads < 1 or width % heads:
        fitting = ", ".join(str(count) for count in range(1, width + 1) if width % count == 0)
        raise SettingsError(f"{where} = {heads}: does not divide the width {width}; one of {fitting} would")
    return width // heads


def common_width(score: str, query_width: int, key_width: int) -> int:
    """The one width that an inner product of query and key needs."""
    if query_width != key_width:
        raise SettingsError(
            f"attention.score = {score}: needs queries and keys of one width, not {query_width} and {key_width}; "
            "use 'general' or 'additive', or set attention.projected = true"
        )
    return query_width


def even_width(width: int) -> int:
    """Rotary positions turn features in pairs."""
    if width % 2:
        raise SettingsError(
            f"model.positions = rotary: turns pairs of features, but a head has {width} of them; "
            "choose width and heads so that width / heads is even"
        )
    return width
