"""A plain list of pairs to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specchat.core.safe_text import safe_text
from specchat.pairs.fetching import size_text
from specchat.tui.pair_shelf import PairChoice


class PairsScreen(ModalScreen[str | None]):
    """Enter on a pair fetches what is missing and loads it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(self, choices: Sequence[PairChoice]) -> None:
        super().__init__()
        self._choices = choices

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical(classes="dialog") as page:
            page.border_title = "pairs"
            page.border_subtitle = "Enter loads, Esc goes back"
            yield OptionList(*(Option(_row(choice), id=choice.key) for choice in self._choices))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


def _row(choice: PairChoice) -> Content:
    if choice.is_here:
        state = ("on disk", "$success")
    elif choice.missing is None:
        state = ("to fetch", "$warning")
    else:
        state = (f"to fetch: {size_text(choice.missing)}", "$warning")
    size = "" if choice.size is None else size_text(choice.size)
    name = safe_text(choice.name, keep_newlines=False)
    return Content.assemble((f"{name:<44}", "bold"), (f"{size:>9}  ", "$quiet"), state, "\n", (choice.note, "$quiet"))
