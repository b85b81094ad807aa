"""The pair picker: a table of pairs, what there is to say about one, and everything that can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList

from specchat.tui.charts import progress_bar
from specchat.tui.pair_opening import PairOpening
from specchat.tui.pair_picking import PairPicking
from specchat.tui.pair_rows import SORT_NAMES
from specchat.tui.pair_table import Entry, header
from specchat.tui.pair_words import shown
from specchat.tui.screens.pairs_dialogs import AddScreen
from specchat.tui.screens.pairs_questions import PairQuestions
from specchat.tui.widgets.pair_detail import PairDetail
from specchat.tui.widgets.pair_list import PairList
from specchat.tui.widgets.status import QuietStatic

_TICK = 0.1
_HINT = "★ recommended here. Enter fetches what is missing; Tab leads to the details."


class PairsScreen(ModalScreen[str | None]):
    """Its result is the key of the pair to chat with, whose files are here; None where one goes back.

    Args:
        opening: what is loaded now, and what measures.
        still: nothing happens by itself (`tick`): for tests.
    """

    DEFAULT_CSS = """
    PairsScreen { layout: vertical; background: $background; }
    PairsScreen > QuietStatic { height: auto; width: 100%; padding: 0 1; }
    PairsScreen > #pairs-title { background: $panel; height: 1; }
    PairsScreen > #pairs-header { height: 1; }
    PairsScreen > #pairs-notice { min-height: 1; max-height: 3; }
    PairsScreen > #pairs-filter { display: none; }
    PairsScreen > #pairs-filter, PairsScreen > #pairs-filter:focus {
        border: none; height: 1; padding: 0 1; background: $panel;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "fetch", "fetch"),
        Binding("p", "pause", "pause"),
        Binding("p", "resume", "resume"),
        Binding("c", "cancel", "cancel"),
        Binding("m", "measure", "measure"),
        Binding("d", "other_draft", "draft"),
        Binding("n", "new_pair", "new"),
        Binding("a", "add", "add"),
        Binding("x", "remove", "remove"),
        Binding("s", "sort", "sort"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("l", "left_out", "left out"),
        Binding("down", "to_list", "to the list", show=False),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, opening: PairOpening, still: bool = False) -> None:
        super().__init__()
        self._still = still
        self.picking = PairPicking(opening.shelf, opening.measuring, opening.loaded_key)
        self.questions = PairQuestions(self, self.picking, still)
        self._handed_over = opening.hand_over()
        self._keys_shown: object = None

    def compose(self) -> ComposeResult:
        """Title, table, detail pane, filter, what was said last, keys."""
        yield QuietStatic(id="pairs-title")
        yield QuietStatic(id="pairs-header")
        yield PairList("pairs-list")
        yield PairDetail()
        yield Input(id="pairs-filter", placeholder="words that a pair must have in it", select_on_focus=False)
        yield QuietStatic(id="pairs-notice")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Shows what can be seen at a glance, and begins to look closer after that."""
        self.query_one(PairList).focus()
        self.picking.begin()
        if self._handed_over is not None:
            self.picking.open(self._handed_over)
        if not self._still:
            self.set_interval(_TICK, self.tick)
        self.call_after_refresh(self.show)

    def on_unmount(self) -> None:
        """Nothing goes on for a screen that is gone."""
        self.picking.close()

    def on_resize(self) -> None:
        """Other columns may have room."""
        self.call_after_refresh(self.show)

    # --- every tick -----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Takes over what has happened, and shows it."""
        if self.picking.tick():
            self.show()
        if self.picking.chosen is not None and self.is_current:
            self.dismiss(self.picking.chosen)

    def show(self) -> None:
        """Shows the state as it is now."""
        picking = self.picking
        entries = picking.visible()
        highlighted = next((entry for entry in entries if entry.row.key == picking.highlighted), None)
        table, words = self.query_one(PairList), self.query_one("#pairs-filter", Input)
        if words.value != picking.filter and not words.has_focus:
            words.value, words.display = picking.filter, bool(picking.filter)
        with self.prevent(OptionList.OptionHighlighted):
            table.show(entries, picking.highlighted)
        current = highlighted or (entries[0] if entries else None)
        if current is not None:
            picking.highlighted = current.row.key
        self.query_one("#pairs-title", QuietStatic).show_content(self._title(len(entries)))
        self.query_one("#pairs-header", QuietStatic).show_content(header(table.room))
        self.query_one(PairDetail).show(current, picking.help_lines(current))
        self.query_one("#pairs-notice", QuietStatic).show_content(self._notice(), layout=True)
        if (keys := self._works(current)) != self._keys_shown:
            self._keys_shown = keys
            self.refresh_bindings()

    def _title(self, count: int) -> Content:
        picking = self.picking
        words = f"{count} of {picking.count}" if picking.filter else f"{picking.count}"
        looking = ", looking for more" if picking.looking.is_busy else ""
        if left_out := len(picking.collection.left_out):
            looking += f", {left_out} file{'s' if left_out > 1 else ''} left out"
        return Content.assemble(("pairs ", "bold"), (f" {words}, by {SORT_NAMES[picking.sort]}{looking}", "$quiet"))

    def _notice(self) -> Content:
        measuring = self.picking.measuring
        if measuring.is_going:
            bar = f"{progress_bar(measuring.fraction, 20)} {measuring.fraction:.0%} "
            return Content.assemble((bar, "$primary"), f"{measuring.what}. Esc stops it.")
        notice = self.picking.notice
        if notice is None:
            return Content.styled(_HINT, "$quiet")
        style = {"info": "$foreground", "warning": "$warning", "error": "$error bold"}[notice.kind]
        message, step = (shown(text) for text in (notice.message, notice.next_step))
        return Content.assemble((message, style), f" {step}" if step else "")

    # --- the table and the filter -----------------------------------------------------------------------------------

    @on(OptionList.OptionHighlighted, "#pairs-list")
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self.picking.move_to(event.option_id)
        self.show()

    @on(OptionList.OptionSelected, "#pairs-list")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_id is not None:
            self.picking.move_to(event.option_id)
            self._do(self.questions.open)

    @on(Input.Changed, "#pairs-filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self.picking.filter = event.value
        self.show()

    @on(Input.Submitted, "#pairs-filter")
    def _filter_submitted(self) -> None:
        self.action_to_list()

    def action_filter(self) -> None:
        """Typing filters from now on."""
        entry = self.query_one("#pairs-filter", Input)
        entry.display = True
        entry.focus()

    def action_to_list(self) -> None:
        """From the filter back to the table."""
        entry = self.query_one("#pairs-filter", Input)
        entry.display = bool(entry.value)
        self.query_one(PairList).focus()

    def action_back(self) -> None:
        """Stops a measurement, or clears the filter, or leaves."""
        entry = self.query_one("#pairs-filter", Input)
        if self.picking.measuring.is_going:
            self.picking.measuring.cancel()
            self.show()
        elif entry.has_focus or entry.value:
            entry.value = ""
            self.action_to_list()
        else:
            if self.picking.fetches.is_fetching:
                self.app.notify("The fetch was paused; the picker goes on from there.", timeout=4)
            self.dismiss(None)

    # --- what can be done with a pair -------------------------------------------------------------------------------

    def _works(self, entry: Entry | None) -> tuple[object, ...]:
        left_out = bool(self.picking.collection.left_out)
        return (left_out, *(name for name in _ON_A_PAIR if self._is_possible(name, entry)))

    def _is_possible(self, action: str, entry: Entry | None) -> bool:
        return entry is not None and self.picking.can(action, entry)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that would do nothing now are not shown."""
        if action in _ON_A_PAIR:
            return self._is_possible(action, self.picking.current())
        return action != "left_out" or bool(self.picking.collection.left_out)

    def action_fetch(self) -> None:
        """Fetches the pair, and stays here."""
        self._do(self.picking.fetch)

    def action_pause(self) -> None:
        """Pauses the fetch."""
        self._do(self.picking.pause)

    def action_resume(self) -> None:
        """Goes on with the fetch."""
        self._do(self.picking.resume)

    def action_measure(self) -> None:
        """Measures the pair."""
        self._do(self.questions.measure)

    def action_left_out(self) -> None:
        """Names the files that were found and cannot be used."""
        self.questions.tell_left_out()

    def action_cancel(self) -> None:
        """Cancels the fetch, after a question."""
        self._do(self.questions.cancel)

    def action_remove(self) -> None:
        """Removes the pair's files, or takes it off the list, after a question."""
        self._do(self.questions.remove)

    def action_other_draft(self) -> None:
        """Another draft for the pair's target."""
        self._do(self.questions.choose_draft)

    def action_new_pair(self) -> None:
        """Any target with any draft."""
        self.questions.choose_target()

    def action_sort(self) -> None:
        """Sorts in the next way."""
        self.picking.sort_next()
        self.show()

    def action_add(self) -> None:
        """Asks for a file or a folder."""
        self.app.push_screen(AddScreen(self.picking.collection, self._still), self._added)

    def _added(self, names: Sequence[str] | None) -> None:
        if names:
            self.picking.added(names)
        self.show()

    def _do(self, action: Callable[[str], None]) -> None:
        key = self.picking.highlighted
        if key is not None and self.picking.is_there(key):
            action(key)
        self.show()
        self.tick()


_ON_A_PAIR = ("fetch", "pause", "resume", "cancel", "measure", "other_draft", "remove")
