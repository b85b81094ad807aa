"""The list of earlier chats."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specchat.core.safe_text import safe_text

if TYPE_CHECKING:
    from specchat.chat.record import RecordSummary

_MOST = 100


class ChatsScreen(ModalScreen[Path | None]):
    """Answers with the record of the chat that was chosen.

    Args:
        folder: where the records are.
        current: the record that is being written, which is not listed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "back")]

    def __init__(self, folder: Path, current: Path | None) -> None:
        super().__init__()
        self._folder = folder
        self._current = current

    def compose(self) -> ComposeResult:
        """A list that fills itself: reading many records takes a moment."""
        with Vertical(classes="dialog") as frame:
            frame.border_title = "earlier chats"
            frame.border_subtitle = "Enter opens, Esc goes back"
            yield OptionList(Option("reading the records …", disabled=True))

    def on_mount(self) -> None:
        """Reads the records in the background."""
        self._read()

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        from specchat.chat.record import list_records

        found = [each for each in list_records(self._folder, _MOST) if each.path != self._current]
        self.app.call_from_thread(self._show, found)

    def _show(self, found: Sequence[RecordSummary]) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(_line(each), id=str(each.path)) for each in found])
        if not found:
            options.add_option(Option("there are none yet", disabled=True))
        options.highlighted = 0
        options.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if event.option.id is not None:
            self.dismiss(Path(event.option.id))


def _line(summary: RecordSummary) -> Content:
    when = dt.datetime.fromtimestamp(summary.modified).strftime("%d %b %Y %H:%M")
    count = f"{summary.turns} question{'' if summary.turns == 1 else 's'}"
    pair = safe_text(summary.pair, keep_newlines=False)
    file = safe_text(summary.path.name, keep_newlines=False)
    return Content.assemble((summary.title, "bold"), "\n", (f"{when}   {count}   {file}   {pair}", "$quiet"))
