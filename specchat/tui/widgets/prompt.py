"""Where a message is written: Enter sends, Ctrl+J begins a line, a paste is one message."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult

from specchat.core.safe_text import safe_text
from specchat.tui.key_order import moves_on, own_action, take
from specchat.tui.messages import EditorFailed, Sent
from specchat.tui.widgets.chat_pane import ChatPane

_KEPT = 200  # messages that ↑ can bring back
_LARGE_PASTE = 20_000  # characters; more than that would hold up the keyboard, and nobody reads it here


class Prompt(TextArea):
    """The message that is being written.

    What a terminal would obey is turned into visible marks as it is put in: what is seen is what is sent.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send"),
        Binding("ctrl+j", "new_line", "new line"),
        Binding("ctrl+g", "open_editor", "editor"),
        Binding("tab", "screen.look", "tokens"),
        Binding("up", "older", "older", show=False),
        Binding("down", "newer", "newer", show=False),
        Binding("end", "to_end", "end", show=False),
    ]

    def __init__(self, *, cursor_blink: bool = True, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(placeholder="Ask something, or / for commands", id=id)
        self.cursor_blink = cursor_blink
        self.sent: list[str] = []
        self._place = 0  # which of them is shown; their number: what is being written
        self._left: dict[int, str] = {}  # what stood at these places when they were left
        self.on_tab: Callable[[], None] = lambda: None  # where Tab leads; set by the screen
        self._pasted: dict[str, str] = {}  # large pastes, by the words that stand for them

    def edit(self, edit: Edit) -> EditResult:
        """Puts text in, made visible first."""
        edit.text = _visible(edit.text)
        return super().edit(edit)

    @property
    def message(self) -> str:
        """What is written, large pastes included."""
        text = self.text
        for words, pasted in self._pasted.items():
            text = text.replace(words, pasted)
        return text

    def render_line(self, y: int) -> Strip:
        """One line; in no columns at all Textual's placeholder cannot be wrapped."""
        return super().render_line(y) if self.content_size.width > 0 else Strip.blank(self.size.width)

    def set_text(self, text: str) -> None:
        """Replaces everything, and puts the cursor at the end."""
        self.text = _visible(text)
        self.move_cursor(self.document.end)

    def set_message(self, message: str) -> None:
        """Replaces everything by a message of any length."""
        self.text = ""
        if len(message) > _LARGE_PASTE:
            self._stand_aside(message)
        else:
            self.set_text(message)

    def action_send(self) -> None:
        """Sends what is written, unless that is nothing."""
        text, message = self.text, self.message
        if not message.strip():
            return
        if not self.sent or self.sent[-1] != text:
            self.sent = [*self.sent[-_KEPT:], text]
        self._place, self._left = len(self.sent), {}
        self.text = ""
        self.post_message(Sent(message))

    def action_new_line(self) -> None:
        """Begins a new line."""
        self.insert("\n")

    def action_older(self) -> None:
        """Up: on the first row the message before, elsewhere the row above."""
        if self._place and self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(self._place - 1)
        else:
            self.action_cursor_up()

    def action_newer(self) -> None:
        """Down: on the last row the message after, elsewhere the row below."""
        if self._place < len(self.sent) and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self._place + 1)
        else:
            self.action_cursor_down()

    def _recall(self, place: int) -> None:
        """Shows what stands at another place; what was typed at this one is there when it is come back to."""
        self._left[self._place] = self.text
        self._place = place
        self.set_text(self._left[place] if place in self._left else self.sent[place])

    def action_to_end(self) -> None:
        """End: the end of the line; at the end of all that is written, also that of the chat."""
        if self.cursor_at_end_of_text:
            self.screen.query_one(ChatPane).action_to_end()
        self.action_cursor_line_end()

    def action_open_editor(self) -> None:
        """Opens the message in $VISUAL or $EDITOR, and takes what comes back."""
        try:
            command = _editor()
        except ValueError as problem:
            self.post_message(EditorFailed(f"its command cannot be read ({problem})"))
            return
        try:
            with tempfile.TemporaryDirectory(prefix="specchat-") as folder:
                path = Path(folder) / "message.md"
                path.write_text(self.message, encoding="utf-8")
                with self.app.suspend():
                    subprocess.run([*command, str(path)], check=True)  # noqa: S603 - the person's own editor
                self.set_message(path.read_text(encoding="utf-8", errors="replace").rstrip("\n"))
        except SuspendNotSupported:
            self.post_message(EditorFailed("this terminal cannot be handed to an editor"))
        except (OSError, subprocess.CalledProcessError) as problem:
            self.post_message(EditorFailed(f"{command[0]} did not work: {problem}"))

    # Textual calls TextArea's own handlers after these, unless they prevent it.

    def _on_key(self, event: events.Key) -> None:  # type: ignore[override]
        if moves_on(self, event):
            return
        # Here and not as bindings, which are carried out later: the characters that follow would overtake them
        action = self.on_tab if event.key == "tab" else own_action(self, event.key)
        if action is not None:
            take(event)
            action()

    def _on_paste(self, event: events.Paste) -> None:  # type: ignore[override]
        if len(event.text) <= _LARGE_PASTE:
            return
        event.prevent_default()
        self._stand_aside(event.text)

    def _stand_aside(self, text: str) -> None:
        """Inserts words that stand for a long text."""
        words = f"[pasted text {len(self._pasted) + 1}: {len(text):,} characters]"
        self._pasted[words] = _visible(text)
        self.insert(words)


def _editor() -> list[str]:
    """The words of the command in $VISUAL or $EDITOR.

    Raises:
        ValueError: a quotation does not end.
    """
    named = (shlex.split(os.environ.get(variable, "")) for variable in ("VISUAL", "EDITOR"))
    return next(filter(None, named), ["vi"])


def _visible(text: str) -> str:
    """Text as it is put in: any line ends, and nothing that a terminal would obey."""
    return safe_text(text.replace("\r\n", "\n").replace("\r", "\n"))
