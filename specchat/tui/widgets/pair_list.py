"""The table of the pair picker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specchat.tui.pair_table import Entry, line


class PairList(OptionList):
    """One line a pair. The cursor stays on its pair, wherever that goes."""

    DEFAULT_CSS = """
    PairList {
        height: 1fr;
        min-height: 3;
        border: none;
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        text-wrap: nowrap;
    }
    PairList:focus { border: none; background-tint: $foreground 0%; }
    PairList > .option-list--option { text-wrap: nowrap; }
    PairList > .option-list--option-highlighted { background: $primary 15%; color: $foreground; text-style: none; }
    PairList:focus > .option-list--option-highlighted {
        background: $primary 28%; color: $foreground; text-style: none;
    }
    PairList:nocolor > .option-list--option-highlighted, PairList:nocolor:focus > .option-list--option-highlighted {
        text-style: bold underline;  /* Textual's visual styles know no reverse */
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "chat")]

    def __init__(self, id: str) -> None:  # noqa: A002 - as Textual names it
        super().__init__(id=id, markup=False)
        self._shown: list[Entry] = []
        self._width = 0

    @property
    def room(self) -> int:
        """How many cells a line has; the scrollbar's is left free."""
        return max(20, self.size.width - 3)

    def show(self, entries: Sequence[Entry], highlighted: str | None) -> None:
        """Shows these pairs; only lines that have changed are drawn anew."""
        room = self.room
        keys, before = [entry.row.key for entry in entries], [entry.row.key for entry in self._shown]
        if keys != before:
            self.clear_options()
            self.add_options(Option(line(entry, room), id=entry.row.key) for entry in entries)
        else:
            for index, (entry, old) in enumerate(zip(entries, self._shown, strict=True)):
                if entry != old or room != self._width:
                    self.replace_option_prompt_at_index(index, line(entry, room))
        self._shown, self._width = list(entries), room
        place: int | None = keys.index(highlighted) if highlighted in keys else 0 if keys else None
        if self.highlighted != place:
            self.highlighted = place

    async def _on_click(self, event: Click) -> None:
        """A click goes to a line, a double click opens it."""
        event.prevent_default()
        index = event.style.meta.get("option")
        if index is None:
            return
        if index == self.highlighted and event.chain > 1:
            self.action_select()
        self.highlighted = index

    @property
    def key(self) -> str | None:
        """The pair that the cursor is on."""
        option = self.highlighted_option
        return None if option is None else option.id
