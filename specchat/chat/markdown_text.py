"""Markdown that a model or a person wrote, made safe to put into a file.

It stays Markdown, but it cannot bring HTML or pictures along: in a viewer that lets them through, a reply could run
scripts, or fetch an address with part of the chat in it. Code is left as it is. Where it is not certain that a viewer
takes something for code, it is taken for text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from specchat.core.safe_text import safe_text

_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_FENCE = re.compile(r"([>\s*+\-\d.)]*)(`{3,}|~{3,})(.*)")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def safe_markdown(text: str) -> str:
    """The same Markdown without HTML and pictures, so that other text can follow it after an empty line.

    A code fence that was left open is closed. Where it is not certain what is open, all of it becomes a quotation,
    which ends where its lines end.
    """
    reader = _Reader()
    lines = [reader.line(line) for line in safe_text(text).split("\n")]
    return "\n".join([*lines, *reader.close()] if reader.certain else quoted(lines))


def safe_markdown_line(text: str) -> str:
    """Text for one line of Markdown, without any code in it."""
    return _as_text(safe_text(text, keep_newlines=False, keep_tabs=False))


def quoted(lines: Iterable[str]) -> list[str]:
    """The lines as a quotation."""
    return [f"> {line}" if line else ">" for line in lines]


class _Reader:
    """Goes through the lines and knows what is code for certain.

    Attributes:
        fence: what opened the code block that we are in, empty outside.
        indent: how far its opening is indented.
        certain: whether a viewer sees the same fences; within lists and quotes it is hard to tell where code ends.
        spanning: whether code within a line may go on over its end, in this paragraph.
    """

    def __init__(self) -> None:
        self.fence = ""
        self.indent = 0
        self.certain = True
        self.spanning = False

    def line(self, line: str) -> str:
        marks = _FENCE.fullmatch(line)
        if self.certain and self.fence:
            self._in_code(line, *(marks.groups() if marks else ("", "", "")))
            return line if self.certain else _as_text(line)
        if self.certain and marks and not (marks[2][0] == "`" and "`" in marks[3]):
            self._open(*marks.groups())
            return line if self.certain else _as_text(line)
        self.spanning = (self.spanning and line.strip() != "") or _has_loose_backtick(line)
        return _outside_code(line) if self.certain and not self.spanning else _as_text(line)

    def close(self) -> list[str]:
        return [" " * self.indent + self.fence] if self.fence else []

    def _open(self, before: str, run: str, info: str) -> None:
        self.certain = before.strip(" ") == "" and len(before) <= 3 and "|" not in info  # it could head a table
        self.fence, self.indent, self.spanning = run, len(before), False

    def _in_code(self, line: str, before: str, run: str, info: str) -> None:
        indent = len(line) - len(line.lstrip(" "))
        if line.strip() and indent < self.indent:
            self.certain = False
        elif run.startswith(self.fence) and not before.strip(" ") and not info.strip():
            if indent <= 3:
                self.fence, self.indent = "", 0
            else:
                self.certain = indent > self.indent + 3  # code, too far in to close it


def _has_loose_backtick(line: str) -> bool:
    return "\\`" in line or "`" in _CODE_SPAN.sub("", line)


def _outside_code(line: str) -> str:
    parts, at = [], 0
    for span in _CODE_SPAN.finditer(line):
        code = _as_text(span[0]) if "|" in span[0] else span[0]  # a table's cells come before its code
        parts += [_as_text(line[at : span.start()]), code]
        at = span.end()
    return "".join([*parts, _as_text(line[at:])])


def _as_text(text: str) -> str:
    return _TAG.sub("&lt;", text).replace("![", "&#33;[")
