"""What the colours, the keys and the commands are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.core.fate_style import FATE_STYLES
from specchat.tui.commands import COMMANDS

_KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send"),
    ("Ctrl+J", "begin a new line"),
    ("Ctrl+G", "write in $EDITOR"),
    ("↑ ↓", "earlier and later messages, at the first and last line"),
    ("Esc", "stop, and keep what came; close the inspector; go back"),
    ("Ctrl+C", "copy the selection, or stop; a second one quits"),
    ("Tab", "between the prompt and the chat"),
    ("F2", "mode: watch, fast, exact"),
    ("F3", "show or hide the rounds"),
    ("Ctrl+R", "load the pair again"),
    ("Ctrl+P", "the palette: every command, themes"),
    ("Ctrl+Q", "quit"),
)
_CHAT_KEYS: tuple[tuple[str, str], ...] = (
    ("← → ↑ ↓", "look at a token, or at a question; so does a click on it, or on its round"),
    ("p n", "the question before, the question after"),
    ("e", "edit that question; what followed stays as a branch"),
    ("g", "answer that question again"),
    ("< >", "the other versions of that message ‹1/2›, with what followed them"),
    ("r", "show or hide rejected tokens"),
    ("v", "reading view: the chat as formatted text"),
    ("y", "copy the message that is looked at, or the last answer"),
    ("s", "slow motion: the round that is looked at, by draft, verify, correct"),
    ("f", "fast mode"),
    ("End", "go to the end, and follow it"),
    ("?", "this page"),
)


class HelpScreen(ModalScreen[None]):
    """The legend, all keys, all commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "dismiss", "close"),
    ]

    def compose(self) -> ComposeResult:
        """One page that scrolls."""
        with VerticalScroll(classes="dialog") as page:
            page.border_title = "help"
            page.border_subtitle = "Esc closes"
            yield Static(_page(self.app.no_color))


def _page(no_color: bool) -> Content:
    lines = [Content.styled("What became of a token", "bold")]
    for fate, style in FATE_STYLES.items():
        look = f"$fate-{fate} {style.attribute if no_color or fate == 'rejected' else ''}"
        name, space = Content.styled(str(fate), look), " " * (10 - len(fate))
        lines.append(Content.assemble((f"  {style.mark} ", f"$fate-{fate}"), name, space, style.meaning))
    lines += _section("Keys", _KEYS)
    lines += _section("Keys in the chat", _CHAT_KEYS)
    commands = [(f"/{each.name} {each.takes}", each.summary) for each in COMMANDS.values()]
    lines += _section("Commands, typed into the prompt", commands)
    lines += [Content(""), Content("A message that begins with a slash is written with two.")]
    return Content("\n").join(lines)


def _section(title: str, entries: Sequence[tuple[str, str]]) -> list[Content]:
    width = max(len(key) for key, _ in entries) + 2
    return [
        Content(""),
        Content.styled(title, "bold"),
        *(Content.assemble((f"  {key:<{width}}", "$primary"), meaning) for key, meaning in entries),
    ]
