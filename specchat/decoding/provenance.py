"""Which characters of a rendered prompt came from a message, and which from the template.

A control token's text inside somebody's message is text; the same characters written by the template are the token.
After rendering they look alike, so the messages are marked before: private-use characters that occur nowhere else go
*into* every control text and around every message, and are taken out of the rendered text again. Whatever the template
does with a message (trims it, drops its reasoning, moves it), the marks that are left say where it is, and a control
text that lost its mark has lost its meaning too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from specchat.decoding.template import MessagesRefusedError

_PRIVATE_USE = range(0x100000, 0x10FFFE)


@dataclass(frozen=True, slots=True)
class Located:
    """A rendered text and where the messages are in it.

    ``cuts`` are the ranges that look like control tokens but are (partly) somebody's text, in order. ``spans`` tell
    for a message's index where it stands, if the template put it in unchanged. ``seen`` are the messages of which
    something is there.
    """

    text: str
    cuts: tuple[tuple[int, int], ...]
    spans: dict[int, tuple[int, int]]
    seen: frozenset[int]


def locate(
    render: Callable[[Sequence[str]], str], contents: Sequence[str], control_texts: frozenset[str], source: str
) -> Located:
    """Renders messages and finds them in the result.

    Args:
        render: gives the text for the messages' contents.
        contents: the messages.
        control_texts: the texts that would become control tokens.
        source: the template, whose own characters cannot serve as marks.

    Raises:
        TemplateError: what ``render`` raises.
    """
    controls = _control_texts(control_texts)
    free = _unused_characters("".join([source, *contents]))
    inside, edge = next(free), next(free)
    frames = [(next(free), next(free)) for _ in contents]
    marked = [controls.mark_inside(content, inside) for content in contents]
    bare = _Marked(render([controls.mark_edges(content, edge) for content in marked]), (inside, edge))
    try:
        framed = _Marked(
            render([_frame(content, *frame) for content, frame in zip(marked, frames, strict=True)]),
            (inside, *(mark for frame in frames for mark in frame)),
        )
    except MessagesRefusedError:  # a mark at the edge can matter to a template
        framed = None
    if framed is None or framed.text != bare.text:
        seen = frozenset(i for i, content in enumerate(contents) if content.strip() in bare.text)
        return Located(bare.text, _cuts(bare, controls, inside), {}, seen)
    placed = enumerate(_span(framed, content, *frame) for content, frame in zip(contents, frames, strict=True))
    spans = {index: span for index, span in placed if span}
    marks = {mark for _, mark in framed.marks}
    seen = frozenset(i for i, frame in enumerate(frames) if not marks.isdisjoint(frame))
    return Located(framed.text, _cuts(framed, controls, inside), spans, seen)


class _ControlTexts:
    def __init__(self, texts: frozenset[str]) -> None:
        ordered = sorted(filter(None, texts), key=len, reverse=True)  # the longest that fits, as the tokenizers do
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
        self.longest = max(map(len, ordered), default=0)
        self._beginnings = {text[:n] for text in ordered for n in range(1, len(text))}
        self._endings = {text[n:] for text in ordered for n in range(1, len(text))}

    def end_at(self, text: str, start: int) -> int:
        """Where the control text that begins at ``start`` ends; ``start`` where there is none."""
        match = self._pattern.match(text, start)
        return match.end() if match else start

    def mark_inside(self, content: str, mark: str) -> str:
        """Puts the mark behind the first character of every control text (before it, if there is only one)."""
        return self._pattern.sub(lambda found: _insert(found[0], min(1, len(found[0]) - 1), mark), content)

    def mark_edges(self, content: str, mark: str) -> str:
        """Puts the mark where the content could make a control text together with what stands next to it."""
        core = content.strip()
        lengths = range(1, min(self.longest, len(core) + 1))
        before = mark if any(core[:n] in self._endings for n in lengths) else ""
        after = mark if any(core[-n:] in self._beginnings for n in lengths) else ""
        return _frame(content, before, after)


@functools.lru_cache(maxsize=4)
def _control_texts(texts: frozenset[str]) -> _ControlTexts:
    return _ControlTexts(texts)


class _Marked:
    """A rendered text without its marks, and the marks with the index of the character that followed each."""

    def __init__(self, rendered: str, marks: Sequence[str]) -> None:
        parts, self.marks, at, length = [], [], 0, 0
        for match in re.finditer(f"[{''.join(marks)}]", rendered):
            parts.append(rendered[at : match.start()])
            length += len(parts[-1])
            self.marks.append((length, match[0]))
            at = match.end()
        self.text = "".join([*parts, rendered[at:]])


def _unused_characters(text: str) -> Iterator[str]:
    used = set(text)
    return (chr(code) for code in _PRIVATE_USE if chr(code) not in used)


def _insert(text: str, place: int, mark: str) -> str:
    return text[:place] + mark + text[place:]


def _frame(content: str, before: str, after: str) -> str:
    """Puts marks around the content, inside its outer white space, which templates like to trim."""
    core = content.strip()
    if not core:
        return content
    start = content.index(core)
    return content[:start] + before + core + after + content[start + len(core) :]


def _span(marked: _Marked, content: str, opening: str, closing: str) -> tuple[int, int] | None:
    starts = [index for index, mark in marked.marks if mark == opening]
    ends = [index for index, mark in marked.marks if mark == closing]
    if not starts or not ends:
        return None
    start = starts[0] - (len(content) - len(content.lstrip()))
    end = ends[0] + (len(content) - len(content.rstrip()))
    return (start, end) if start >= 0 and marked.text[start:end] == content else None


def _cuts(marked: _Marked, controls: _ControlTexts, inside: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for index, mark in marked.marks:
        if mark == inside:
            found += [(start, controls.end_at(marked.text, start)) for start in (index - 1, index) if start >= 0]
        starts = range(max(0, index - controls.longest + 1), index)
        found += [(start, end) for start in starts if (end := controls.end_at(marked.text, start)) > index]
    return tuple(sorted({(start, end) for start, end in found if end > start}))
