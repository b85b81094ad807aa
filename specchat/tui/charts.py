"""Small charts out of block characters, always on the scale that their caption names."""

from __future__ import annotations

from collections.abc import Sequence

_HEIGHTS = " ▁▂▃▄▅▆▇█"
_DOTS = "⡀⠄⠂⠁"
_WIDTHS = " ▏▎▍▌▋▊▉█"


def columns(shares: Sequence[float | None], height: int) -> list[str]:
    """A column chart of shares between 0 and 1, top line first; None leaves a gap.

    The scale is fixed: a chart that is stretched between its own smallest and largest value makes a steady rate
    look wild. Even 0 draws a thin line, so that it can be told from a gap.
    """
    lines = [""] * height
    for share in shares:
        eighths = -1 if share is None else max(1, round(min(1.0, max(0.0, share)) * 8 * height))
        for row in range(height):
            filled = min(8, max(0, eighths - 8 * (height - 1 - row)))
            lines[row] += _HEIGHTS[filled]
    return lines


def bar(share: float, width: int) -> str:
    """A bar of a share between 0 and 1, padded to ``width`` cells."""
    eighths = round(min(1.0, max(0.0, share)) * 8 * width)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_WIDTHS[part] if part else "")).ljust(width)


def progress_bar(share: float, width: int) -> str:
    """A bar with its empty part shown."""
    cells = round(min(1.0, max(0.0, share)) * width)
    return "▓" * cells + "░" * (width - cells)


def stacked(shares: Sequence[float], width: int) -> list[int]:
    """How many of ``width`` cells each part of a stacked bar takes; together exactly ``width``, unless all are 0."""
    total = sum(shares)
    if total <= 0:
        return [0] * len(shares)
    ends, so_far = [], 0.0
    for share in shares:
        so_far += share
        ends.append(round(so_far / total * width))
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def grouped(pairs: Sequence[tuple[int, int]], width: int) -> list[float | None]:
    """At most ``width`` shares from (part, whole) pairs: neighbours are added up where there are more pairs.

    None where nothing was counted.
    """
    count = min(width, len(pairs))
    shares: list[float | None] = []
    for column in range(count):
        group = pairs[column * len(pairs) // count : (column + 1) * len(pairs) // count]
        whole = sum(total for _, total in group)
        shares.append(sum(part for part, _ in group) / whole if whole else None)
    return shares


def curve(values: Sequence[float | None], low: float, high: float, height: int) -> list[str]:
    """A row of dots, one a column, top line first, each at its height between ``low`` and ``high``; None is a gap."""
    lines = [""] * height
    for value in values:
        level = None if value is None else dot_level(value, low, high, height)
        for row in range(height):
            here = level is not None and level // len(_DOTS) == height - 1 - row
            lines[row] += _DOTS[level % len(_DOTS)] if here and level is not None else " "
    return lines


def dot_level(value: float, low: float, high: float, height: int) -> int:
    """At which of ``4 · height`` levels a value is drawn; 0 is the lowest."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(min(1.0, max(0.0, share)) * (len(_DOTS) * height - 1))
