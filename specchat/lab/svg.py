"""Small plots as inline SVG: no scripts, no fonts, no network. Colours are classes that the page defines.

``c0``…``c7`` colour the series; ``axis``, ``grid`` and ``mark`` draw axes, grid lines and the line of reference.
Texts are made safe and escaped here, so that they can be anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specchat.html_page import escaped

NUM_COLOURS = 8
_WIDTH = 760
_MARGIN = 14
_ROW = 19
_LABELS = 170
_HEIGHT = 260


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a row: where it is, its colour, what it says under the mouse, and its interval."""

    at: float
    colour: int
    title: str
    low: float | None = None
    high: float | None = None
    small: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points, connected."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Some round numbers within its range."""
        step = _round_step((self.high - self.low) / 6)
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def dot_rows(rows: Sequence[tuple[str, Sequence[Dot]]], reference: float, title: str) -> str:
    """One row a label, with its dots on a common scale, and a line at ``reference``."""
    values = [value for _, dots in rows for dot in dots for value in (dot.at, dot.low, dot.high) if value is not None]
    bottom = _MARGIN + _ROW * len(rows)
    axis = _Axis(*_range([*values, reference]), _LABELS, _WIDTH - _MARGIN)
    parts = [*_vertical_grid(axis, bottom), _rule(axis(reference), _MARGIN, axis(reference), bottom, "mark")]
    for i, (label, dots) in enumerate(rows):
        y = _MARGIN + _ROW * (i + 0.5)
        parts.append(_text(_LABELS - 8, y + 4, label, "end"))
        for dot in dots:
            if dot.low is not None and dot.high is not None:
                parts.append(_rule(axis(dot.low), y, axis(dot.high), y, f"whisker c{dot.colour}"))
            parts.append(_circle(axis(dot.at), y, 3 if dot.small else 5, dot.colour, dot.title))
    return _svg(bottom + 24, parts, title)


def line_chart(lines: Sequence[Line], title: str, across: str, upward: str, *, from_zero: bool = False) -> str:
    """Series of points over a common pair of axes; a point says its values under the mouse."""
    points = [point for line in lines for point in line.points]
    bottom = _HEIGHT - 36
    heights = [height for _, height in points] + ([0.0] if from_zero else [])
    x = _Axis(*_range([at for at, _ in points]), 52, _WIDTH - _MARGIN)
    y = _Axis(*_range(heights), bottom, _MARGIN)
    parts = [*_vertical_grid(x, bottom), *_horizontal_grid(y)]
    for i, line in enumerate(lines):
        colour = i % NUM_COLOURS
        path = " ".join(f"{x(at):.1f},{y(height):.1f}" for at, height in line.points)
        parts.append(f'<polyline class="line c{colour}" points="{path}"/>')
        for at, height in line.points:
            parts.append(_circle(x(at), y(height), 3, colour, f"{line.name}: {at:g}, {height:.3g}"))
    parts += [_text(_WIDTH - _MARGIN, _HEIGHT - 4, across, "end"), _text(52, _MARGIN - 3, upward, "start")]
    return _svg(_HEIGHT, parts, title)


def scatter(dots: Sequence[tuple[float, Dot]], title: str, across: str, upward: str) -> str:
    """Points with the diagonal on which both coordinates are the same. A dot's `Dot.at` is its height."""
    values = [value for at, dot in dots for value in (at, dot.at)]
    low, high = _range([*values, 1.0])
    bottom = _HEIGHT - 36
    x, y = _Axis(low, high, 52, _WIDTH - _MARGIN), _Axis(low, high, bottom, _MARGIN)
    parts = [*_vertical_grid(x, bottom), *_horizontal_grid(y), _rule(x(low), y(low), x(high), y(high), "mark")]
    parts += [_circle(x(at), y(dot.at), 5, dot.colour, dot.title) for at, dot in dots]
    parts += [_text(_WIDTH - _MARGIN, _HEIGHT - 4, across, "end"), _text(52, _MARGIN - 3, upward, "start")]
    return _svg(_HEIGHT, parts, title)


def stacked_rows(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], title: str) -> str:
    """One bar a label, cut into the shares (which sum to 1) of the parts that ``names`` names."""
    bottom = _MARGIN + _ROW * len(rows)
    axis = _Axis(0.0, 1.0, _LABELS, _WIDTH - _MARGIN)
    parts = list(_vertical_grid(axis, bottom))
    for i, (label, shares) in enumerate(rows):
        top = _MARGIN + _ROW * i
        parts.append(_text(_LABELS - 8, top + _ROW / 2 + 4, label, "end"))
        start = 0.0
        for colour, (name, share) in enumerate(zip(names, shares, strict=True)):
            hint = f"<title>{escaped(f'{label}: {name} {share:.1%}')}</title>"
            left, width = axis(start), axis(share) - axis(0.0)
            parts.append(
                f'<rect class="c{colour}" x="{left:.1f}" y="{top + 3:.1f}" width="{width:.1f}" '
                f'height="{_ROW - 6}">{hint}</rect>'
            )
            start += share
    return _svg(bottom + 24, parts, title)


def legend(names: Iterable[str]) -> str:
    """The names of the series, each behind a square in its colour."""
    items = "".join(
        f'<span><svg class="key" viewBox="0 0 10 10"><rect class="c{i % NUM_COLOURS}" width="10" height="10"/></svg>'
        f"{escaped(name)}</span>"
        for i, name in enumerate(names)
    )
    return f'<p class="legend">{items}</p>'


def _svg(height: float, parts: Iterable[str], title: str) -> str:
    body = "\n".join(parts)
    name = escaped(title)
    return f'<svg class="plot" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{name}">\n{body}\n</svg>'


def _vertical_grid(axis: _Axis, bottom: float) -> Iterator[str]:
    for tick in axis.ticks():
        yield _rule(axis(tick), _MARGIN, axis(tick), bottom, "grid")
        yield _text(axis(tick), bottom + 14, f"{tick:.4g}", "middle")


def _horizontal_grid(axis: _Axis) -> Iterator[str]:
    for tick in axis.ticks():
        yield _rule(52, axis(tick), _WIDTH - _MARGIN, axis(tick), "grid")
        yield _text(46, axis(tick) + 4, f"{tick:.4g}", "end")


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _circle(x: float, y: float, radius: int, colour: int, title: str) -> str:
    hint = f"<title>{escaped(title)}</title>"
    return f'<circle class="c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{hint}</circle>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'


def _range(values: Sequence[float]) -> tuple[float, float]:
    """From the smallest to the largest value, with some room; never empty."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return (low if low == 0 else low - room), high + room


def _round_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, not below ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= step * (1 - 1e-9)), 10 * power)
