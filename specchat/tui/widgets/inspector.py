"""One token under the glass: p, q, the draw against its threshold, and what the residual would have given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from specchat.core.events import Candidate, CommittedToken, DraftedToken, Fate, PositionDetail, Round
from specchat.core.fate_style import FATE_STYLES
from specchat.core.safe_text import safe_text
from specchat.tui.blocks import Block
from specchat.tui.charts import bar
from specchat.tui.reply_block import Reply

_Part = tuple[str, str]
_BAR, _SHORT_BAR = 16, 8
_WIDE = 70  # columns from which on the long bars leave room for what stands beside them
_CANDIDATES = 6
_LONGEST = 32  # columns of a token: some are nothing but a hundred spaces
_FRAME = 4  # columns of border and padding
_PROPOSERS = {"draft": "q model ", "ngram": "q copied"}
"""What q is of, where not all that was drafted is the draft model's."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """What there is to say about a token: its round, its position in it (1, 2, …), and its draft if it had one.

    ``has_other_drafts``: a draft model is not all that drafted for its reply.
    """

    round: Round
    position: int
    token: CommittedToken | DraftedToken
    drafted: DraftedToken | None
    detail: PositionDetail | None
    has_other_drafts: bool

    @classmethod
    def of(cls, reply: Reply, index: int) -> Inspected:
        """The token of that number of a reply."""
        place = reply.tokens[index]
        played, token = reply.rounds[place.round], reply.token(index)
        number = place.place
        drafted = played.drafted[number] if place.rejected or token.fate is Fate.ACCEPTED else None
        detail = played.details[number] if played.details is not None and number < len(played.details) else None
        other = any(each.drafter != "draft" for one in reply.rounds for each in one.drafted)
        return cls(played, number + 1, token, drafted, detail, other)


class Inspector(Static):
    """The panel below the chat; hidden while no token is looked at. Its lines are never broken: at most five fit."""

    BORDER_TITLE = "inspector"
    _looked_at: tuple[Block | None, int] = None, -1
    _width = 0

    def show(self, block: Block | None, index: int) -> None:
        """Shows a token of a reply, what can be done with a question, or nothing."""
        self._looked_at = block, index
        self.display = block is not None
        if block is None:
            return
        width = self._width = max(1, self.screen.size.width - _FRAME)
        if isinstance(block, Reply):
            seen = Inspected.of(block, index)
            shared = _sharing(block, index, width)
            candidates = _candidates(seen, width, rows=1 if shared else 2)
            lines = [_title(seen, width), *_bars(seen, width), *candidates, *([shared] if shared else [])]
        else:
            lines = [_question(block)]
        contents = [Content.assemble(*line).truncate(width, ellipsis=True) for line in lines]
        self.update(Content("\n").join(contents))

    def on_resize(self) -> None:
        """Other lines fit into another width."""
        if self._width != max(1, self.screen.size.width - _FRAME):
            self.show(*self._looked_at)


def quoted(text: str, raw: bytes) -> str:
    """A token's text as it can be read on one line; its bytes where it is not a whole character."""
    return f'"{safe_text(text, keep_newlines=False, keep_tabs=False)}"' if text else f"bytes {raw.hex(' ').upper()}"


def _question(block: Block) -> list[_Part]:
    number, count = block.version
    which = f"version {number} of {count}" if count > 1 else "the only version"
    keys = "e edit   g answer again" + ("   < > versions" if count > 1 else "")
    return [("question", "$primary bold"), (f"   {which}   ", "$quiet"), (keys, "")]


def _title(seen: Inspected, width: int) -> list[_Part]:
    style = FATE_STYLES[seen.token.fate]
    parts = [
        (_cut(quoted(seen.token.text, seen.token.bytes)), f"$fate-{seen.token.fate} bold"),
        (f"   round {seen.round.index + 1}, position {seen.position}   ", "$quiet"),
        (f"{style.mark} {seen.token.fate}", f"$fate-{seen.token.fate}"),
    ]
    meaning = (f"   {style.meaning}", "$quiet")
    return [*parts, meaning] if _cells([*parts, meaning]) <= width else parts


def _bars(seen: Inspected, width: int) -> Iterator[list[_Part]]:
    cells = _BAR if width >= _WIDE else _SHORT_BAR
    yield [*_bar_line("p target", seen.token.p, "$fate-bonus", cells), *_verdict(seen)]
    if seen.drafted is None:
        yield [("q draft    not drafted: the target's own token", "$quiet")]
    else:
        label = _PROPOSERS.get(seen.drafted.drafter, "q draft ") if seen.has_other_drafts else "q draft "
        yield [*_bar_line(label, seen.drafted.q, "$fate-accepted", cells), *_outcome(seen)]


def _bar_line(label: str, probability: float, style: str, cells: int) -> list[_Part]:
    return [(f"{label}  ", "$quiet"), (bar(probability, cells), style), (f" {probability:.3f}   ", "bold")]


def _verdict(seen: Inspected) -> list[_Part]:
    if seen.drafted is None:
        return []
    draw, threshold = seen.drafted.draw, seen.drafted.threshold
    what = "h" if seen.round.rule == "block" else "min(1, p/q)"
    sign = "<" if draw < threshold else ">"
    parts: list[_Part] = [(f"draw {draw:.3f} {sign} {threshold:.3f}", ""), (f" = {what}", "$quiet")]
    if seen.detail is not None and seen.detail.pi is not None:
        parts.append((f"   π {seen.detail.pi:.3f}", "$quiet"))
    return parts


def _outcome(seen: Inspected) -> list[_Part]:
    assert seen.drafted is not None
    if seen.drafted.fate is Fate.ACCEPTED:
        carried = seen.drafted.draw >= seen.drafted.threshold
        return [("→ kept", ""), (", carried by a later position" if carried else "", "$quiet")]
    replacement = next((token for token in seen.round.committed if token.fate is Fate.RESAMPLED), None)
    if replacement is None:
        return [("→ refused", "")]
    own = _cut(quoted(replacement.text, replacement.bytes))
    return [("→ ", ""), (own, "$fate-resampled"), (" resampled", "$quiet")]


def _candidates(seen: Inspected, width: int, rows: int) -> list[list[_Part]]:
    detail = seen.detail
    if detail is None:
        return [[("no candidates were recorded for this round", "$quiet")]]
    if seen.token.fate in (Fate.REJECTED, Fate.RESAMPLED) and detail.residual:
        return _candidate_lines("residual", detail.residual, seen.token.id, width, rows)
    return _candidate_lines("p target", detail.p, seen.token.id, width, rows)


def _candidate_lines(
    label: str, candidates: Sequence[Candidate], chosen: int, width: int, rows: int
) -> list[list[_Part]]:
    """As many of the most likely ones as so many rows have room for, each of them on one row."""
    gap, more = ("   ", ""), ("   …", "$quiet")
    lines: list[list[_Part]] = [[(f"{label}  ", "$quiet")]]
    is_first, shown = True, 0
    for candidate in candidates[:_CANDIDATES]:
        parts = _candidate(candidate, chosen)
        if not is_first and _cells([*lines[-1], gap, *parts, more]) > width:
            if len(lines) == rows:
                break
            lines.append([(" " * (len(label) + 2), "")])
            is_first = True
        lines[-1] += parts if is_first else [gap, *parts]
        is_first, shown = False, shown + 1
    if shown < len(candidates):
        lines[-1].append(more)
    return lines


def _candidate(candidate: Candidate, chosen: int) -> list[_Part]:
    text = safe_text(candidate.text, keep_newlines=False, keep_tabs=False).strip() or "␣"
    cells = bar(candidate.probability, 8).rstrip()
    return [
        (_cut(text), "bold" if candidate.id == chosen else ""),
        (f" {cells}{' ' if cells else ''}{candidate.probability:.2f}", "$quiet"),
    ]


def _sharing(reply: Reply, index: int, width: int) -> list[_Part]:
    """The tokens that make one character together with this one; nothing where it is whole."""
    group = reply.sharing(index)
    if len(group) < 2:
        return []
    parts: list[_Part] = []
    for number in group:
        token = reply.token(number)
        parts.append((f"  {quoted(token.text, token.bytes)} {token.fate}", f"$fate-{token.fate}"))
    long = ("one character of several tokens:", "$quiet")
    return [long if _cells([long, *parts]) <= width else ("one character:", "$quiet"), *parts]


def _cut(text: str) -> str:
    content = Content(text)
    return content.truncate(_LONGEST, ellipsis=True).plain if content.cell_length > _LONGEST else text


def _cells(parts: Sequence[_Part]) -> int:
    return Content.assemble(*parts).cell_length
