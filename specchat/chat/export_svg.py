"""A chat as an SVG picture: monospaced text, coloured by fate, in the colours of the viewer's light or dark theme."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specchat.chat.conversation import Conversation
from specchat.chat.figures import figures_line
from specchat.chat.pieces import reply_pieces
from specchat.core.events import Fate
from specchat.core.fate_style import DARK_BACKGROUND, DARK_TEXT, FATE_STYLES, LIGHT_BACKGROUND, LIGHT_TEXT
from specchat.core.safe_text import safe_pieces, safe_text

COLUMNS = 88
_CELL, _LINE, _MARGIN = 8.4, 19, 16
_ATTRIBUTES = {"underline": "text-decoration:underline", "bold": "font-weight:bold"}
_SHOWN = (Fate.ACCEPTED, Fate.RESAMPLED, Fate.BONUS, Fate.PLAIN)


@dataclass(frozen=True, slots=True)
class _Run:
    """Characters of one class that stand next to each other."""

    text: str
    kind: str


def to_svg(conversation: Conversation, title: str, facts: str, columns: int = COLUMNS) -> str:
    """The current branch as a picture, ``columns`` characters wide; rejected tokens are left out.

    Args:
        conversation: the chat.
        title: the first line.
        facts: a line about the pair and the time.
        columns: the width in characters.
    """
    paragraphs = [[_Run(_one_line(title), "title")], [_Run(_one_line(facts), "facts")], _legend(), []]
    if conversation.system:
        paragraphs += [[_Run(f"system: {safe_text(conversation.system)}", "facts")], []]
    for message in conversation.messages:
        if message.role == "user":
            paragraphs += [[_Run(f"> {safe_text(message.content)}", "user")], []]
            continue
        pieces = [piece for piece in reply_pieces(conversation, message) if piece.fate is not Fate.REJECTED]
        texts = safe_pieces([piece.text for piece in pieces])
        paragraphs.append([_Run(text, piece.fate.value) for text, piece in zip(texts, pieces, strict=True)])
        figures = figures_line(conversation, message)
        paragraphs += [[_Run(_one_line(figures), "facts")], []]
    lines = [line for paragraph in paragraphs for line in _wrapped(paragraph, columns)]
    return _picture(lines, columns)


def _legend() -> list[_Run]:
    return [
        run
        for fate in _SHOWN
        for run in (_Run(f"{fate.value}: {FATE_STYLES[fate].meaning}", fate.value), _Run("   ", "facts"))
    ]


def _picture(lines: list[list[_Run]], columns: int) -> str:
    width, height = columns * _CELL + 2 * _MARGIN, len(lines) * _LINE + 2 * _MARGIN
    rows = "\n".join(_row(line, _MARGIN + (number + 0.75) * _LINE) for number, line in enumerate(lines) if line)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">\n'
        f'<style>\n{_style()}\n</style>\n<rect width="100%" height="100%"/>\n{rows}\n</svg>\n'
    )


def _row(line: list[_Run], y: float) -> str:
    spans, cells = [], 0
    for run in line:
        count = sum(map(_cells, run.text))
        if run.text.strip():
            spans.append(
                f'<tspan class="{run.kind}" x="{_MARGIN + cells * _CELL:.1f}" textLength="{count * _CELL:.1f}">'
                f"{html.escape(run.text)}</tspan>"
            )
        cells += count
    return f'<text y="{y:.1f}" xml:space="preserve">{"".join(spans)}</text>'


def _style() -> str:
    kept = {fate: FATE_STYLES[fate] for fate in _SHOWN}
    attributes = [f".{fate.value} {{ {_ATTRIBUTES[s.attribute]} }}" for fate, s in kept.items() if s.attribute]
    return "\n".join(
        [
            "text { font: 14px ui-monospace, monospace; } .title { font-weight: bold; } .facts { fill-opacity: .75; }",
            *attributes,
            f"rect {{ fill: {LIGHT_BACKGROUND}; }} text {{ fill: {LIGHT_TEXT}; }}",
            *(f".{fate.value} {{ fill: {style.light}; }}" for fate, style in kept.items()),
            "@media (prefers-color-scheme: dark) {",
            f"rect {{ fill: {DARK_BACKGROUND}; }} text {{ fill: {DARK_TEXT}; }}",
            *(f".{fate.value} {{ fill: {style.dark}; }}" for fate, style in kept.items()),
            "}",
        ]
    )


# --- lines ----------------------------------------------------------------------------------------------------------


def _wrapped(paragraph: list[_Run], columns: int) -> Iterator[list[_Run]]:
    """The lines of a text, broken at spaces where there are any, each as runs of one class."""
    letters = [(letter, run.kind) for run in paragraph for letter in run.text.expandtabs(4)]
    line: list[tuple[str, str]] = []
    cells = 0
    for letter, kind in letters:
        if letter == "\n":
            yield _joined(line)
            line, cells = [], 0
            continue
        if cells + _cells(letter) > columns:
            at = max((i + 1 for i, (each, _) in enumerate(line) if each == " "), default=len(line))
            yield _joined(line[:at])
            line = line[at:]
            cells = sum(_cells(each) for each, _ in line)
        line.append((letter, kind))
        cells += _cells(letter)
    yield _joined(line)


def _joined(letters: Iterable[tuple[str, str]]) -> list[_Run]:
    runs: list[_Run] = []
    for letter, kind in letters:
        if runs and runs[-1].kind == kind:
            runs[-1] = _Run(runs[-1].text + letter, kind)
        else:
            runs.append(_Run(letter, kind))
    return runs


def _cells(letter: str) -> int:
    """How many columns a character takes: none for what joins the one before, two for wide ones."""
    if letter in "\u200d\ufe0e\ufe0f" or unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _one_line(text: str) -> str:
    return safe_text(text, keep_newlines=False, keep_tabs=False)
