"""The application: themes, the engine's life, and the screens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme

from specchat.chat.conversation import Conversation
from specchat.core.settings import ReplySettings
from specchat.engine.interface import Engine, Load
from specchat.tui.chat_record import RecordedConversation
from specchat.tui.live_chat import LiveChat
from specchat.tui.pair_shelf import PairShelf
from specchat.tui.palette import SlashCommands
from specchat.tui.screens.chat import ChatScreen
from specchat.tui.terminal_input import read_carefully
from specchat.tui.terminal_watch import leave_after, watch_terminal
from specchat.tui.theme import DARK, LIGHT, missing_variables

if TYPE_CHECKING:
    from specchat.chat.record import RecordWriter


class SpecchatApp(App[None]):
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

    TITLE = "specchat"
    CSS_PATH = "specchat.tcss"
    COMMANDS = App.COMMANDS | {SlashCommands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True, show=False),
        Binding("ctrl+c", "interrupt", "copy, stop, quit", priority=True, show=False, system=True),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-medium"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it

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
        read_carefully()
        # under NO_COLOR Textual would turn colours into greys unless native colours are allowed
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme
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

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The fates' colours, for themes that know nothing of them."""
        theme: Theme = self.current_theme
        return missing_variables(theme)

    def on_mount(self) -> None:
        """A polite end by signal gives the terminal back as well: mouse, paste and screen as they were."""
        if self.is_headless:
            return
        watch_terminal(self._close)
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows; not the main thread
                    asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, 128 + number)

    def _told_to_end(self, status: int) -> None:
        leave_after(5.0, self._close)  # where the terminal takes nothing any more, the screen cannot end by itself
        self.exit(return_code=status)

    def action_interrupt(self) -> None:
        """Ctrl+C: copies the selection or stops; a second one quits."""
        screen = self.screen
        if isinstance(screen, ChatScreen):
            screen.interrupt()
        elif len(self.screen_stack) > 1:
            screen.dismiss()

    def on_unmount(self) -> None:
        """Ends the engine with the screen; what it had still to say is recorded before."""
        with contextlib.suppress(Exception):  # an error here would hide the one that ended the screen
            self.chat.pump()
        self._close()

    def _close(self) -> None:
        self.kept.close()
        self.engine.close()
