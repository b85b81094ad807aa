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
_BAR = 16
_CANDIDATES = 6
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
    """The panel below the chat; hidden while no token is looked at."""

    BORDER_TITLE = "inspector"

    def show(self, block: Block | None, index: int) -> None:
        """Shows a token of a reply, what can be done with a question, or nothing."""
        self.display = block is not None
        if block is None:
            return
        if isinstance(block, Reply):
            seen = Inspected.of(block, index)
            lines = [_title(seen), *_bars(seen), _candidates(seen)]
            if shared := _sharing(block, index):
                lines.append(shared)
        else:
            lines = [_question(block)]
        self.update(Content("\n").join([Content.assemble(*line) for line in lines]))


def quoted(text: str, raw: bytes) -> str:
    """A token's text as it can be read on one line; its bytes where it is not a whole character."""
    return f'"{safe_text(text, keep_newlines=False, keep_tabs=False)}"' if text else f"bytes {raw.hex(' ').upper()}"


def _question(block: Block) -> list[_Part]:
    number, count = block.version
    which = f"version {number} of {count}" if count > 1 else "the only version"
    keys = "e edit   g answer again" + ("   < > versions" if count > 1 else "")
    return [("question", "$primary bold"), (f"   {which}   ", "$quiet"), (keys, "")]


def _title(seen: Inspected) -> list[_Part]:
    style = FATE_STYLES[seen.token.fate]
    return [
        (quoted(seen.token.text, seen.token.bytes), f"$fate-{seen.token.fate} bold"),
        (f"   round {seen.round.index + 1}, position {seen.position}   ", "$quiet"),
        (f"{style.mark} {seen.token.fate}", f"$fate-{seen.token.fate}"),
        (f"   {style.meaning}", "$quiet"),
    ]


def _bars(seen: Inspected) -> Iterator[list[_Part]]:
    verdict = _verdict(seen)
    yield [*_bar_line("p target", seen.token.p, "$fate-bonus"), *verdict]
    if seen.drafted is None:
        yield [("q draft    not drafted: the target's own token", "$quiet")]
    else:
        label = _PROPOSERS.get(seen.drafted.drafter, "q draft ") if seen.has_other_drafts else "q draft "
        yield [*_bar_line(label, seen.drafted.q, "$fate-accepted"), *_outcome(seen)]


def _bar_line(label: str, probability: float, style: str) -> list[_Part]:
    return [(f"{label}  ", "$quiet"), (bar(probability, _BAR), style), (f" {probability:.3f}   ", "bold")]


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
    return [("→ ", ""), (quoted(replacement.text, replacement.bytes), "$fate-resampled"), (" resampled", "$quiet")]


def _candidates(seen: Inspected) -> list[_Part]:
    detail = seen.detail
    if detail is None:
        return [("no candidates were recorded for this round", "$quiet")]
    if seen.token.fate in (Fate.REJECTED, Fate.RESAMPLED) and detail.residual:
        return _candidate_line("residual", detail.residual, seen.token.id)
    return _candidate_line("p target", detail.p, seen.token.id)


def _candidate_line(label: str, candidates: Sequence[Candidate], chosen: int) -> list[_Part]:
    parts: list[_Part] = [(f"{label}  ", "$quiet")]
    for candidate in candidates[:_CANDIDATES]:
        text = safe_text(candidate.text, keep_newlines=False, keep_tabs=False).strip() or "␣"
        parts.append((text, "bold" if candidate.id == chosen else ""))
        cells = bar(candidate.probability, 8).rstrip()
        parts.append((f" {cells}{' ' if cells else ''}{candidate.probability:.2f}   ", "$quiet"))
    if len(candidates) > _CANDIDATES:
        parts.append(("…", "$quiet"))
    return parts


def _sharing(reply: Reply, index: int) -> list[_Part]:
    """The tokens that make one character together with this one; nothing where it is whole."""
    group = reply.sharing(index)
    if len(group) < 2:
        return []
    parts: list[_Part] = [("one character of several tokens:", "$quiet")]
    for number in group:
        token = reply.token(number)
        parts.append((f"  {quoted(token.text, token.bytes)} {token.fate}", f"$fate-{token.fate}"))
    return parts
