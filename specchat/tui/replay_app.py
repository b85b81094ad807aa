"""The application that plays a recorded chat. No model is loaded."""

from __future__ import annotations

from textual.screen import Screen

from specchat.chat.conversation import Conversation
from specchat.tui.screens.replay import ReplayScreen
from specchat.tui.theme import DARK
from specchat.tui.themed_app import ThemedApp


class ReplayApp(ThemedApp):
    """Plays one conversation, and ends with it.

    Args:
        conversation: its current branch is played.
        title: what the status line calls it.
        theme: as of `ThemedApp`.
        still: nothing moves by itself, for tests.
    """

    def __init__(self, conversation: Conversation, title: str, theme: str = DARK.name, still: bool = False) -> None:
        super().__init__(theme)
        self._conversation = conversation
        self._title = title
        self._still = still

    def get_default_screen(self) -> Screen[None]:
        """The replay."""
        return ReplayScreen(self._conversation, self._title, on_close=self.exit, still=self._still)
