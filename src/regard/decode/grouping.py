"""Rows of like length go together, so that little of a batch is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def of_like_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """The numbers of all rows, in groups of at most ``budget`` padded tokens, or of one row.

    The longest come first, so that a batch that does not fit into memory shows at once.
    """
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if group and (len(group) + 1) * lengths[group[0]] > budget:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
