"""The chat screen: what the engine says is folded into the widgets thirty times a second; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, TextArea

from specchat.engine.interface import Load
from specchat.errors import SpecchatError
from specchat.tui.clipboard import copy_with_program
from specchat.tui.commands import Command, is_command
from specchat.tui.live_chat import LiveChat
from specchat.tui.messages import CursorMoved, EditorFailed, NewLines, RoundClicked, Sent
from specchat.tui.occurrences import Wrote
from specchat.tui.pair_opening import PairOpening
from specchat.tui.pair_shelf import PairShelf
from specchat.tui.screens.chat_commands import ChatCommands
from specchat.tui.screens.chat_fold import ChatFold
from specchat.tui.screens.dashboard import Dashboard
from specchat.tui.unsent import Unsent
from specchat.tui.widgets.chat_pane import ChatPane
from specchat.tui.widgets.inspector import Inspector
from specchat.tui.widgets.now_panel import NowPanel
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.rounds import RoundsView
from specchat.tui.widgets.status import QuietStatic, StateLine, StatusLine
from specchat.tui.widgets.transcript import Transcript

_FRAME = 1 / 30
_FRAMES_A_FIGURE = 6  # figures change five times a second: more could not be read
_QUIT_SECONDS = 3.0  # how long the first Ctrl+C is remembered


class ChatScreen(Screen[None]):
    """One chat."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "escape", "stop"),
        Binding("f2", "next_mode", "mode"),
        Binding("f3", "toggle_rounds", "rounds", show=False),
        Binding("f1", "help", "help"),
        Binding("ctrl+r", "load_again", "load again", show=False),
    ]

    def __init__(
        self, chat: LiveChat, pairs: PairShelf, first_pair: str | None, load_options: Load, still: bool = False
    ) -> None:
        super().__init__()
        self.still = still
        self.chat = chat
        self.opening = PairOpening(chat, pairs, load_options)
        self._first_pair = first_pair
        self.commands = ChatCommands(self)
        self._frame = 0
        self._interrupted_at = -_QUIT_SECONDS

    def compose(self) -> ComposeResult:
        """Status, chat and figures, what is going on, prompt, keys."""
        yield StatusLine(id="status")
        with Horizontal(id="main"):
            with Vertical(id="left"):
                yield ChatPane(id="chat")
                yield RoundsView(id="rounds")
            yield NowPanel(id="now")
        yield Inspector(id="inspector")
        yield QuietStatic(id="folded")
        yield StateLine(id="state")
        yield Prompt(id="prompt", cursor_blink=not self.still)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Paints first, and begins to load after that."""
        self.pane = self.query_one(ChatPane)
        self.prompt = self.query_one(Prompt)
        self.fold = ChatFold(self.pane, self.chat, self.opening)
        self.unsent = Unsent(self.prompt)
        self.dashboard = Dashboard(self, self.chat, self.opening, self.unsent)
        self.query_one(Inspector).display = False
        self.prompt.focus()
        self.prompt.on_tab = self.action_look
        self.pane.transcript.to_prompt = {
            "tab": self.action_type,
            "slash": lambda: self.action_type("/"),
            "e": self.action_edit_here,
        }
        self.fold.show_conversation()
        if not self.still:
            self.set_interval(_FRAME, self.pump)
        self.call_after_refresh(self._open_first_pair)

    def on_unmount(self) -> None:
        """Nothing is fetched for a screen that is gone."""
        self.opening.cancel()

    # --- pairs ----------------------------------------------------------------------------------------------------

    def _open_first_pair(self) -> None:
        if self._first_pair is None:
            self.commands.choose_pair()
        else:
            self.open_pair(self._first_pair)

    def open_pair(self, key: str, *, is_warned: bool = False) -> None:
        """Fetches what is missing of a pair, and loads it; ``is_warned``: whether it fits is known to the person."""
        self._try(lambda: self.opening.open(key, is_warned=is_warned))

    def action_load_again(self) -> None:
        """Loads the pair again, or goes on fetching it."""
        self._try(self.opening.again)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except SpecchatError as error:
            self.say("error", error.message, error.next_step)
        self.show_figures()

    # --- every frame ----------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Takes what has happened since the last frame, and shows it."""
        happened = self.chat.pump()
        self.fold.take(happened)
        if (problem := self.opening.look()) is not None:
            self.say("error", problem.message, problem.next_step)
        if (warning := self.opening.look_at_memory()) is not None:
            self.say("warning", warning.message, warning.next_step)
        self._frame += 1
        if self._frame % _FRAMES_A_FIGURE == 0 or any(not isinstance(each, Wrote) for each in happened):
            self.show_figures()

    def show_figures(self) -> None:
        """Shows the figures of now."""
        self.dashboard.show(self.fold.stats, self.fold.why, self.prompt.text)

    # --- what is said ---------------------------------------------------------------------------------------------

    def say(self, kind: Literal["info", "warning", "error"], message: str, next_step: str = "") -> None:
        """A notice in the chat."""
        self.fold.say(kind, message, next_step)

    @on(Sent)
    def _sent(self, event: Sent) -> None:
        text = event.text
        if is_command(text):
            if not self.commands.run(text):
                self.prompt.set_message(text)
        else:
            self.send(text.removeprefix("/") if text.startswith("//") else text)
        self.unsent.give_back()

    def send(self, text: str) -> None:
        """Sends a message, or lets it wait."""
        self.pane.show_tokens()
        if self.commands.send_edited(text):
            return
        self.fold.ask(text)
        self.pump()

    @on(EditorFailed)
    def _editor_failed(self, event: EditorFailed) -> None:
        self.say("error", f"The editor did not open: {event.reason}.", "Set EDITOR to the editor that you use.")

    @on(NewLines)
    def _new_lines(self, event: NewLines) -> None:
        self.dashboard.new_lines = event.count
        self.dashboard.show_state(self.fold.stats, self.fold.why, self.prompt.text)

    @on(TextArea.Changed, "#prompt")
    def _prompt_changed(self) -> None:
        self.dashboard.show_state(self.fold.stats, self.fold.why, self.prompt.text)

    def offer(self, command: Command) -> None:
        """A command that was chosen in the palette: carried out, or put into the prompt where it takes something."""
        if command.takes and not command.takes.startswith("["):
            self.unsent.begin_command(f"/{command.name} ")
            self.prompt.focus()
        else:
            self.commands.run(f"/{command.name}")

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """What a selection begins or ends at: one that began in the chat stays in it, however far the mouse goes.

        Otherwise two cells too far to the right would select all that follows.
        """
        state = self._select_state
        if self._selecting and state is not None and isinstance(state.start.content_widget, Transcript):
            region = state.start.content_widget.scrollable_content_region
            x = min(max(x, region.x), region.right - 1)
            y = min(max(y, region.y), region.bottom - 1)
        return super().get_widget_and_offset_at(x, y)

    # --- keys -----------------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Ctrl+C: copies the selection, or stops; a second one quits."""
        selected = self.get_selected_text() or self.prompt.selected_text
        now = monotonic()
        if selected:
            self.copy(selected)
            self.clear_selection()
        elif now - self._interrupted_at < _QUIT_SECONDS:
            self.app.exit()
        elif not self.stop():
            self.notify("Ctrl+C once more quits", timeout=_QUIT_SECONDS)
        self._interrupted_at = now

    def stop(self) -> bool:
        """Stops what is going on, and takes waiting messages back into the prompt; False where there is neither."""
        busy = self.opening.cancel() or self.chat.is_busy
        if busy:
            self.chat.stop()
        waiting = self.chat.take_back_waiting()
        if waiting:
            self.unsent.take_back(waiting)
            self.fold.forget_waiting()
        return busy or bool(waiting)

    def copy(self, text: str) -> None:
        """Puts text on the clipboard, and says how."""
        self.app.copy_to_clipboard(text)
        program = copy_with_program(text)
        how = f"with {program} and through the terminal" if program else "through the terminal (OSC 52)"
        self.notify(f"{len(text)} characters copied {how}", timeout=2)

    def action_escape(self) -> None:
        """Stops; or leaves what was begun in the prompt; or closes the inspector; or goes back to the prompt."""
        if self.stop() or self.unsent.leave_command() or self.unsent.stop_editing():
            return
        if self.pane.transcript.has_chosen_token:
            self.pane.transcript.close_cursor()
        elif not self.pane.show_tokens():
            self.prompt.focus()

    def action_run(self, command: str) -> None:
        """Carries out a command, for keys."""
        self.commands.run(command)

    def action_type(self, text: str = "") -> None:
        """Goes from the chat to the prompt, perhaps beginning a command there."""
        if text:
            self.unsent.begin_command(text)
        self.set_focus(self.prompt)  # at once: the next keys may be waiting already

    def action_look(self) -> None:
        """Goes from the prompt to the chat."""
        self.pane.focus_view()

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        self.query_one(Inspector).show(event.block, event.token)

    @on(RoundClicked)
    def _round_clicked(self, event: RoundClicked) -> None:
        self.pane.transcript.look_at_round(event.played)

    def action_edit_here(self) -> None:
        """Edits the question that is looked at, or that the reply answers that is."""
        self.commands.edit(self.pane.transcript.message_looked_at)

    def action_answer_again(self) -> None:
        """Answers that question once more."""
        self.commands.regenerate(self.pane.transcript.message_looked_at)

    def action_version(self, step: int) -> None:
        """Goes to another version of the message that is looked at, or of the last one that has several."""
        self.commands.step_version(self.pane.transcript.message_looked_at, step)

    def action_next_mode(self) -> None:
        """Goes from watch to fast to exact."""
        modes = ("watch", "fast", "exact")
        mode = modes[(modes.index(self.chat.settings.mode) + 1) % len(modes)]
        self.commands.run(f"/mode {mode}")

    def action_toggle_rounds(self) -> None:
        """Shows or hides the rounds view."""
        rounds = self.query_one(RoundsView)
        rounds.display = not rounds.display

    def action_help(self) -> None:
        """All keys and commands."""
        self.commands.run("/help")

    def forget_reason(self) -> None:
        """The settings have changed: what the engine said about the old ones does not hold any longer."""
        self.fold.why = ""
        self.show_figures()
