"""The lines of the pair picker's table: which columns have room, and what stands in them. Every verdict has a mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.content import Content

from specchat.pairs.fetching import size_text
from specchat.pairs.row_text import fit_verdict, match_verdict, where
from specchat.pairs.rows import PairRow
from specchat.tui.pair_fetches import FetchState
from specchat.tui.pair_words import fitted, shown, verdict_cell

_NARROW_MATCH = {
    "padded": "same",
    "itself": "same",
    "differs": "no",
    "unread": "no",
    "later": "open",
    "no draft": "none",
}
_NARROW_FIT = {"part GPU": "partly", "~part GPU": "~partly", "not known": "?", "unusable": "no"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair as the table shows it.

    Attributes:
        row: the pair.
        fetch: how its fetch stands.
        is_loaded: it is the pair that one chats with.
        is_measured_now: it is being measured.
    """

    row: PairRow
    fetch: FetchState | None = None
    is_loaded: bool = False
    is_measured_now: bool = False


Cell: TypeAlias = tuple[str, str]
"""Text and style."""


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int  # 0: what is left
    cell: Callable[[Entry], Cell]


def header(width: int) -> Content:
    """The titles of the columns that have room in so many cells."""
    return _line([(column.title, "$quiet") for column in _columns(width)], width)


def line(entry: Entry, width: int) -> Content:
    """A pair in one line of so many cells."""
    return _line([column.cell(entry) for column in _columns(width)], width)


def here_text(entry: Entry) -> Cell:
    """Where the pair is, or what is going on with it: in words that are the same in the detail pane."""
    if entry.is_measured_now:
        return "measuring", "$warning"
    if (fetch := entry.fetch) is not None:
        share = "" if fetch.share is None else f" {fetch.share:.0%}"
        return {
            "waiting": ("waiting", "$warning"),
            "fetching": (f"fetch{share or 'ing'}", "$warning"),
            "paused": (f"paused{share}", "$warning"),
            "failed": (f"failed{share}", "$error"),
        }[fetch.status]
    if entry.is_loaded:
        return "loaded", "$primary bold"
    if entry.row.is_here:
        return "on disk", "$success"
    begun = sum(state.begun for state in entry.row.states)
    if begun and entry.row.size:
        whole = sum(state.size or 0 for state in entry.row.states if state.stored is not None)
        return f"paused {(whole + begun) / entry.row.size:.0%}", "$warning"
    return "to fetch", "$quiet"


def _columns(width: int) -> Sequence[_Column]:
    return next(columns for least, columns in _LAYOUTS if width >= least)


def _line(cells: Sequence[Cell], width: int) -> Content:
    columns = _columns(width)
    fixed = sum(column.width for column in columns) + len(columns) - 1
    widths = [column.width or max(1, width - fixed) for column in columns]
    parts: list[Cell] = []
    for (text, style), room in zip(cells, widths, strict=True):
        parts += [(fitted(text, room), style), (" ", "")]
    return Content.assemble(*parts[:-1])


def _mark(entry: Entry) -> Cell:
    if entry.row.is_recommended:
        return "★", "$warning"
    return ("●", "$primary") if entry.is_loaded else ("", "")


def _name(entry: Entry) -> Cell:
    return shown(entry.row.pair.name), "bold"


def _size(entry: Entry) -> Cell:
    return ("?" if entry.row.size is None else size_text(entry.row.size)), ""


def _sizes(entry: Entry) -> Cell:
    return " + ".join("?" if each.size is None else size_text(each.size) for each in entry.row.states), ""


def _here(entry: Entry) -> Cell:
    return here_text(entry)


def _here_with_size(entry: Entry) -> Cell:
    text, style = here_text(entry)
    return (where(entry.row) if text == "to fetch" else text), style


def _fit(entry: Entry) -> Cell:
    return verdict_cell(fit_verdict(entry.row))


def _narrow_fit(entry: Entry) -> Cell:
    verdict = fit_verdict(entry.row)
    return verdict_cell(verdict, _NARROW_FIT.get(verdict.word))


def _match(entry: Entry) -> Cell:
    return verdict_cell(match_verdict(entry.row))


def _narrow_match(entry: Entry) -> Cell:
    verdict = match_verdict(entry.row)
    return verdict_cell(verdict, _NARROW_MATCH.get(verdict.word))


def _measured(entry: Entry) -> Cell:
    measured = entry.row.measured
    if measured is None:
        return "not measured", "$quiet"
    rate = "" if measured.acceptance is None else f" α {measured.acceptance:.2f}"
    return f"{_speedup(entry)}{rate}", "$success" if measured.pays else "$warning"


def _narrow_measured(entry: Entry) -> Cell:
    measured = entry.row.measured
    if measured is None:
        return "–", "$quiet"
    rate = "" if measured.acceptance is None else f" {measured.acceptance:.2f}"
    return f"{_speedup(entry)}{rate}", "$success" if measured.pays else "$warning"


def _speedup(entry: Entry) -> str:
    measured = entry.row.measured
    return "" if measured is None else f"{'~' if measured.is_predicted else ''}{measured.speedup:.2f}×"


def _license(entry: Entry) -> Cell:
    return shown(entry.row.licenses), "$quiet"


_MARK, _NAME = _Column("", 1, _mark), _Column("pair", 0, _name)
_MIDDLE = (
    _Column("target + draft", 16, _sizes),
    _Column("where", 10, _here),
    _Column("memory", 11, _fit),
    _Column("vocabulary", 10, _match),
    _Column("measured", 13, _measured),
)
_LAYOUTS: tuple[tuple[int, tuple[_Column, ...]], ...] = (
    (
        116,
        (
            _MARK,
            _NAME,
            _MIDDLE[0],
            _Column("where", 16, _here_with_size),
            *_MIDDLE[2:],
            _Column("licence", 14, _license),
        ),
    ),
    (94, (_MARK, _NAME, *_MIDDLE)),
    (
        66,
        (
            _MARK,
            _NAME,
            _Column("size", 7, _size),
            _Column("where", 10, _here),
            _Column("memory", 9, _narrow_fit),
            _Column("vocab.", 6, _narrow_match),
            _Column("speedup α", 11, _narrow_measured),
        ),
    ),
    (0, (_MARK, _NAME, _Column("where", 10, _here), _Column("memory", 9, _narrow_fit))),
)
"""From how many cells on which columns are shown."""
