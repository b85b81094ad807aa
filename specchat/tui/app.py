"""The application: the engine's life, the chat and its record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.screen import Screen

from specchat.chat.conversation import Conversation
from specchat.core.settings import ReplySettings
from specchat.engine.interface import Engine, Load
from specchat.tui.chat_record import RecordedConversation
from specchat.tui.live_chat import LiveChat
from specchat.tui.pair_shelf import PairShelf
from specchat.tui.palette import SlashCommands
from specchat.tui.screens.chat import ChatScreen
from specchat.tui.theme import DARK
from specchat.tui.themed_app import ThemedApp

if TYPE_CHECKING:
    from specchat.chat.record import RecordWriter


class SpecchatApp(ThemedApp):
    """specchat's terminal screen.

    It paints before anything is loaded; the models load while one can type already.

    Args:
        engine_factory: makes the engine; called once, and closed at the end.
        pairs: the pairs that there are.
        pair: the key of the pair to begin with; None shows the list of pairs.
        settings: of the first reply.
        load: how to load (context, layers, threads, devices); its target and draft are set by the pair.
        conversation: an earlier chat to go on with.
        records: the folder in which chats are recorded; None records nothing.
        record: writes on at the end of the record that ``conversation`` was read from.
        theme: "specchat-dark", "specchat-light", or the name of any Textual theme.
        still: nothing moves by itself, neither the cursor nor what the engine says (`ChatScreen.pump`): for tests.
    """

    COMMANDS = ThemedApp.COMMANDS | {SlashCommands}

    def __init__(
        self,
        engine_factory: Callable[[], Engine],
        pairs: PairShelf,
        pair: str | None,
        settings: ReplySettings | None = None,
        load: Load | None = None,
        conversation: Conversation | None = None,
        records: Path | None = None,
        record: RecordWriter | None = None,
        theme: str = DARK.name,
        still: bool = False,
    ) -> None:
        super().__init__(theme)
        self.engine = engine_factory()
        self.pairs = pairs
        self.first_pair = pair
        self.load_options = load or Load(target="")
        self.still = still
        self.kept = RecordedConversation(conversation or Conversation(), records, record)
        self.chat = LiveChat(self.engine, self.kept, settings or ReplySettings())

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return ChatScreen(self.chat, self.pairs, self.first_pair, self.load_options, self.still)

    async def on_event(self, event: events.Event) -> None:
        """A paste goes to the prompt from anywhere in the chat: Textual hands it to what has the focus."""
        if isinstance(event, events.Paste) and not event.is_forwarded and isinstance(self.screen, ChatScreen):
            self.screen.action_type()
        await super().on_event(event)

    def action_interrupt(self) -> None:
        """Ctrl+C: copies the selection or stops; a second one quits."""
        screen = self.screen
        if isinstance(screen, ChatScreen):
            screen.interrupt()
        else:
            super().action_interrupt()

    def on_unmount(self) -> None:
        """Ends the engine with the screen; what it had still to say is recorded before."""
        with contextlib.suppress(Exception):  # an error here would hide the one that ended the screen
            self.chat.pump()
        self.let_go()

    def let_go(self) -> None:
        """Closes the record, and ends the engine."""
        self.kept.close()
        self.engine.close()
