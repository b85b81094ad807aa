"""What the widgets tell the screen."""

from __future__ import annotations

from textual.message import Message

from specchat.core.events import Round
from specchat.tui.blocks import Block


class CursorMoved(Message):
    """Another token of a reply is being looked at, or a question, or nothing."""

    def __init__(self, block: Block | None, token: int) -> None:
        super().__init__()
        self.block = block
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
