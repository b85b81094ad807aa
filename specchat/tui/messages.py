"""What the widgets tell the screen."""

from __future__ import annotations

from textual.message import Message

from specchat.core.events import Round
from specchat.tui.blocks import Reply


class CursorMoved(Message):
    """Another token is being looked at, or none."""

    def __init__(self, reply: Reply | None, token: int) -> None:
        super().__init__()
        self.reply = reply
        self.token = token


class NewLines(Message):
    """How many lines have come below the end of what is on the screen."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class RoundClicked(Message):
    """A round is to be looked at."""

    def __init__(self, played: Round) -> None:
        super().__init__()
        self.played = played


class Sent(Message):
    """A message is to be sent, or a command to be carried out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class EditorFailed(Message):
    """The editor could not be used."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
