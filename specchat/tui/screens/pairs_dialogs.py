"""The small questions that the pair picker asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specchat.pairs.collection import Collection
from specchat.tui.pair_adding import Adding
from specchat.tui.pair_words import shown

_TICK = 0.1


def dialog_css(name: str) -> str:
    """What all dialogs of the picker look like."""
    return f"""
    {name} OptionList {{
        height: auto; max-height: 10; border: none; padding: 0; margin: 1 0 0 0; background: $background;
        scrollbar-size-vertical: 1;
    }}
    {name} OptionList:focus {{ background-tint: $foreground 0%; }}
    {name} OptionList > .option-list--option-highlighted {{
        background: $primary 28%; color: $foreground; text-style: none;
    }}
    {name}:nocolor OptionList > .option-list--option-highlighted {{ text-style: bold underline; }}
    {name} Static {{ height: auto; width: 100%; }}
    {name} Input, {name} Input:focus {{ border: none; height: 1; padding: 0; margin: 1 0; background: $panel; }}
    """


class Question(ModalScreen[str | None]):
    """A question with some answers; the first one, which does nothing, is the one that Enter chooses.

    Args:
        title: what it is about.
        lines: what one should know first.
        answers: what they are called, and their texts.
    """

    DEFAULT_CSS = dialog_css("Question")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(self, title: str, lines: Sequence[str], answers: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self._lines, self._answers = title, lines, answers

    def compose(self) -> ComposeResult:
        """The text and the answers."""
        with Vertical(classes="dialog") as page:
            page.border_title = Content(shown(self._title)).markup
            page.border_subtitle = "Enter chooses, Esc goes back"
            yield Static(Content("\n").join(Content(shown(text)) for text in self._lines))
            yield OptionList(*(Option(Content(shown(text)), id=name) for name, text in self._answers))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)


class AddScreen(ModalScreen[Sequence[str] | None]):
    """Asks for a file or a folder, until it is one that can be used. Its result is the names of the models.

    Args:
        collection: takes them.
        still: nothing happens by itself (`tick`): for tests.
    """

    DEFAULT_CSS = dialog_css("AddScreen")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(self, collection: Collection, still: bool = False) -> None:
        super().__init__()
        self._collection = collection
        self._still = still
        self._adding: Adding | None = None

    def compose(self) -> ComposeResult:
        """The input, and room for what is wrong."""
        with Vertical(classes="dialog") as page:
            page.border_title = "add models"
            page.border_subtitle = "Enter adds, Esc goes back"
            yield Static(
                "A GGUF file, or a folder that is searched for them. They are used where they lie: nothing is copied."
            )
            yield Input(placeholder="/path/to/model.gguf or /path/to/folder", select_on_focus=False)
            yield Static(id="add-problem")

    def on_mount(self) -> None:
        """One can type at once."""
        self.query_one(Input).focus()
        if not self._still:
            self.set_interval(_TICK, self.tick)

    def on_unmount(self) -> None:
        """Nobody waits for it any more."""
        if self._adding is not None:
            self._adding.cancel()

    def tick(self) -> None:
        """Takes over what was found."""
        adding = self._adding
        if adding is None:
            return
        if adding.names is not None:
            self.dismiss(adding.names)
        elif adding.error is not None:
            self._adding = None
            error = adding.error
            self._say(Content.assemble((shown(error.message), "$error bold"), "\n", shown(error.next_step)))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip().strip("'\"")
        if text and self._adding is None:
            self._adding = Adding(self._collection, text)
            self._say(Content.styled("It is being looked at. Esc stops that.", "$quiet"))

    def _say(self, text: Content) -> None:
        self.query_one("#add-problem", Static).update(text)
