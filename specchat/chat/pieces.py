"""A reply as pieces of text with their fates: what the exports colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specchat.chat.conversation import Conversation, Message, reply_from_events
from specchat.core.events import CommittedToken, DraftedToken, Event, Fate, Finished, Round
from specchat.core.fate_style import worst


@dataclass(frozen=True, slots=True)
class Piece:
    """A bit of text and what became of its token. ``title`` says more: p, q, threshold, draw, round and position.

    A piece with the fate *rejected* is no part of the reply's text; it stands where the token would have stood.
    """

    text: str
    fate: Fate
    title: str = ""


def reply_pieces(conversation: Conversation, message: Message) -> list[Piece]:
    """The pieces of a reply, in order; without those that were rejected they give its content.

    A reply without events, such as an edited one, is one plain piece.
    """
    pieces = [piece for part in conversation.parts(message.id) for piece in _pieces(part.events)]
    text = "".join(piece.text for piece in pieces if piece.fate is not Fate.REJECTED)
    return pieces if text == message.content else [Piece(message.content, Fate.PLAIN)]


def _pieces(events: Sequence[Event]) -> Iterator[Piece]:
    """The pieces of one stretch of writing, no longer than the text that it gave."""
    left = len(reply_from_events(events)[0])
    for piece in _all_pieces(events):
        if piece.fate is Fate.REJECTED:
            if left:
                yield piece
            continue
        if piece.text[:left]:
            yield Piece(piece.text[:left], piece.fate, piece.title)
        left -= min(left, len(piece.text))


def _all_pieces(events: Sequence[Event]) -> Iterator[Piece]:
    waiting: list[Fate] = []  # of tokens whose text comes with a later one
    for played in (event for event in events if isinstance(event, Round)):
        for position, token in enumerate(played.committed):
            drafted = played.drafted[position] if position < len(played.drafted) else None
            if drafted is not None and drafted.fate is Fate.REJECTED:
                text = drafted.text or drafted.bytes.decode("utf-8", "replace")
                yield Piece(text, Fate.REJECTED, _title(played, position, drafted, drafted))
            waiting.append(token.fate)
            if token.text:
                yield Piece(token.text, worst(*waiting), _title(played, position, token, drafted))
                waiting.clear()
    tail = next((event.tail for event in reversed(events) if isinstance(event, Finished)), "")
    if tail:
        yield Piece(tail, worst(*waiting) if waiting else Fate.PLAIN)


def _title(played: Round, position: int, token: CommittedToken | DraftedToken, drafted: DraftedToken | None) -> str:
    parts = [f"{token.fate.value}, round {played.index + 1}, position {position + 1}", f"p {token.p:.3g}"]
    if drafted is not None and drafted.id == token.id and token.fate in (Fate.ACCEPTED, Fate.REJECTED):
        parts += [f"q {drafted.q:.3g}", f"threshold {drafted.threshold:.3g}", f"draw {drafted.draw:.3g}"]
    elif drafted is not None and drafted.fate is Fate.REJECTED:
        parts.append(f"instead of “{drafted.text}”")
    return " · ".join(parts)
