"""What every application of specchat is: themes, sizes, and a polite end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.theme import Theme

from specchat.tui.terminal_input import read_carefully
from specchat.tui.terminal_watch import leave_after, watch_terminal
from specchat.tui.theme import DARK, LIGHT, missing_variables


class ThemedApp(App[None]):
    """An application with specchat's themes that gives the terminal back however it ends.

    Args:
        theme: "specchat-dark", "specchat-light", or the name of any Textual theme.
    """

    TITLE = "specchat"
    CSS_PATH = "specchat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", priority=True, show=False),
        Binding("ctrl+c", "interrupt", "copy, stop, quit", priority=True, show=False, system=True),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-medium"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it

    def __init__(self, theme: str = DARK.name) -> None:
        read_carefully()
        # under NO_COLOR Textual would turn colours into greys unless native colours are allowed
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The fates' colours, for themes that know nothing of them."""
        theme: Theme = self.current_theme
        return missing_variables(theme)

    def on_mount(self) -> None:
        """A polite end by signal gives the terminal back as well: mouse, paste and screen as they were."""
        if self.is_headless:
            return
        watch_terminal(self.let_go)
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # Windows; not the main thread
                    asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, 128 + number)

    def _told_to_end(self, status: int) -> None:
        leave_after(5.0, self.let_go)  # where the terminal takes nothing any more, the screen cannot end by itself
        self.exit(return_code=status)

    def action_interrupt(self) -> None:
        """Ctrl+C: closes what lies above the first screen, or quits."""
        if len(self.screen_stack) > 1:
            self.screen.dismiss()
        else:
            self.exit()

    def let_go(self) -> None:
        """Ends what does not end with the screen by itself."""
