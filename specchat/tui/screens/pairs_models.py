"""Any target with any draft: lists of models to choose from, with what would become of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from specchat.tui.pair_words import shown
from specchat.tui.screens.pairs_dialogs import dialog_css

_REFRESH = 0.2


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to choose.

    Attributes:
        name: what is returned where it is chosen.
        line: how it is listed.
        reason: what there is to say about it while the cursor is on it.
    """

    name: str
    line: Content
    reason: str = ""


class ModelsScreen(ModalScreen[str | None]):
    """A list to choose from. Its result is a choice's name; None where one goes back.

    Args:
        title: what is chosen.
        heading: the titles of the columns.
        choices: what there is, as far as it is known by now; asked some times a second.
        preselected: the name of the choice that the cursor is on at first.
        still: nothing happens by itself (`tick`): for tests.
    """

    DEFAULT_CSS = (
        dialog_css("ModelsScreen")
        + """
    ModelsScreen OptionList { max-height: 50vh; text-wrap: nowrap; }
    ModelsScreen #models-reason { height: auto; min-height: 2; margin: 1 0 0 0; color: $quiet; }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(
        self,
        title: str,
        heading: str,
        choices: Callable[[], Sequence[Choice]],
        preselected: str | None = None,
        still: bool = False,
    ) -> None:
        super().__init__()
        self._title, self._heading, self._choices = title, heading, choices
        self._wanted = preselected
        self._still = still
        self._shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        """Columns' titles, the list, and what there is to say about one."""
        with Vertical(classes="dialog") as page:
            page.border_title = Content(shown(self._title)).markup
            page.border_subtitle = "Enter chooses, Esc goes back"
            yield Static(Content.styled(self._heading, "$quiet"))
            yield OptionList(markup=False)
            yield Static(id="models-reason")

    def on_mount(self) -> None:
        """Shows what is known, and goes on asking."""
        self.tick()
        if not self._still:
            self.set_interval(_REFRESH, self.tick)

    def tick(self) -> None:
        """Shows what is known by now."""
        choices = list(self._choices())
        table = self.query_one(OptionList)
        if [each.name for each in choices] != [each.name for each in self._shown]:
            option = table.highlighted_option
            name = self._wanted or (None if option is None else option.id)
            table.clear_options()
            table.add_options(Option(each.line, id=each.name) for each in choices)
            names = [each.name for each in choices]
            table.highlighted = names.index(name) if name in names else 0 if names else None
            self._wanted = None
        else:
            for index, (each, old) in enumerate(zip(choices, self._shown, strict=True)):
                if not each.line.is_same(old.line):
                    table.replace_option_prompt_at_index(index, each.line)
        self._shown = choices
        self._show_reason()

    @on(OptionList.OptionHighlighted)
    def _show_reason(self) -> None:
        index = self.query_one(OptionList).highlighted
        reason = "" if index is None or index >= len(self._shown) else self._shown[index].reason
        self.query_one("#models-reason", Static).update(Content(shown(reason)))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)
