"""From a line of pieces to a Strip of styled segments.

Every segment carries the cell at which it begins and its line: that is how Textual finds out where a selection
begins and ends. Glyphs whose cells are not their characters are segments of their own, so that both halves of a wide
glyph lead to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from specchat.tui.typesetting import Line


def strip_of(
    line: Line,
    y: int,
    width: int,
    styles: Mapping[str, Style],
    background: Style,
    cursor: tuple[int, Style] | None = None,
) -> Strip:
    """The strip of a line, exactly ``width`` cells long.

    Args:
        line: the line.
        y: its number in the transcript.
        width: of the strip, in cells.
        styles: by the looks of the pieces.
        background: of what follows the line's end.
        cursor: a token, and the style that marks its pieces.
    """
    runs: list[tuple[str, Style, bool]] = []
    for piece in line.pieces:
        if not piece.shown:
            continue
        style = styles[piece.look]
        if cursor is not None and piece.first <= cursor[0] <= piece.last:
            style += cursor[1]
        if runs and not piece.whole and not runs[-1][2] and runs[-1][1] is style:
            runs[-1] = (runs[-1][0] + piece.shown, style, False)
        else:
            runs.append((piece.shown, style, piece.whole))
    if line.width < width:
        runs.append((" " * (width - line.width), background, False))
    segments: list[Segment] = []
    cell = 0
    for text, style, _ in runs:
        segment = Segment(text, style + Style.from_meta({"offset": (cell, y)}))
        cell += segment.cell_length
        segments.append(segment)
    return Strip(segments, cell).crop(0, width)


def selected(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with the cells from ``start`` to before ``end`` marked; -1 is its end."""
    end = strip.cell_length if end == -1 else min(end, strip.cell_length)
    if end <= start:
        return strip
    return Strip.join([strip.crop(0, start), strip.crop(start, end).apply_style(style), strip.crop(end)])
