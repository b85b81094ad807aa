"""The chat itself: the token view, the reading view, and the legend below them."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import ContentSwitcher

from specchat.chat.conversation import Conversation, Message
from specchat.chat.figures import figures_line
from specchat.core.events import Round
from specchat.tui.blocks import Notice, Question
from specchat.tui.messages import NewLines
from specchat.tui.reply_block import Reply
from specchat.tui.widgets.status import Legend
from specchat.tui.widgets.transcript import Transcript

WELCOME = (
    "A small draft model proposes tokens, the target checks them all in one pass, and every token that is kept "
    "follows the target's own distribution. Each is shown in the colour of its fate."
)
FIRST_STEP = "Type a question. Then Tab goes to the last token, the arrow keys walk on from there; F1 shows all keys."


class ChatPane(Vertical):
    """The frame around the two views of a chat."""

    BORDER_TITLE = "chat"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "toggle_rejected", "rejected"),
        Binding("v", "toggle_reading", "reading"),
        Binding("y", "screen.run('/copy')", "copy"),
        Binding("e", "screen.edit_here", "edit"),
        Binding("g", "screen.answer_again", "answer again", show=False),
        Binding("less_than_sign", "screen.version(-1)", "versions", key_display="<>"),
        Binding("greater_than_sign", "screen.version(1)", "next version", show=False),
        Binding("f", "screen.run('/mode fast')", "fast", show=False),
        Binding("s", "screen.run('/slow')", "slow motion", show=False),
        Binding("end", "to_end", "end", show=False),
        Binding("question_mark", "screen.help", "legend", key_display="?"),
        Binding("tab", "screen.type", "type"),
        Binding("slash", "screen.type('/')", "command", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Tokens and reading, one of which is shown."""
        with ContentSwitcher(initial="transcript"):
            yield Transcript(id="transcript")
            yield VerticalScroll(id="reading")
        yield Legend(id="legend")

    def on_mount(self) -> None:
        """Remembers the parts."""
        self.transcript = self.query_one(Transcript)
        self._conversation: Conversation | None = None

    # --- what is shown --------------------------------------------------------------------------------------------

    def show_conversation(self, conversation: Conversation) -> None:
        """Shows the current branch of a conversation, from its beginning."""
        self._conversation = conversation
        self.transcript.clear()
        if not conversation.messages:
            self.transcript.add(Notice("info", WELCOME, FIRST_STEP))
        for message in conversation.messages:
            block = Question(message.content) if message.role == "user" else _reply_of(conversation, message)
            block.stands_for(message.id, conversation.version(message.id))
            self.transcript.add(block)
        self.chat_changed()

    def show_tokens(self) -> bool:
        """Goes back from the reading view to the token view; False where it is there already."""
        if not self.is_reading:
            return False
        was_here = self.has_focus_within
        self.query_one(ContentSwitcher).current = "transcript"
        if was_here:  # who types meanwhile goes on typing
            self.screen.set_focus(self.transcript)
        return True

    def focus_view(self) -> None:
        """Looks at the view that is shown; of tokens at one of them, from which the arrow keys walk on."""
        self.screen.set_focus(self.query_one("#reading") if self.is_reading else self.transcript)
        if not self.is_reading:
            self.transcript.offer_cursor()

    @property
    def is_reading(self) -> bool:
        """Whether the reading view is shown."""
        return self.query_one(ContentSwitcher).current == "reading"

    def chat_changed(self) -> None:
        """The reading view, where it is shown, shows what has become of the chat."""
        if self.is_reading:
            self.call_later(self._show_reading)

    async def action_toggle_reading(self) -> None:
        """Shows the chat as formatted text, or as tokens."""
        if self.show_tokens() or self._conversation is None:
            return
        reading = self.query_one("#reading", VerticalScroll)
        await self._show_reading()
        self.query_one(ContentSwitcher).current = "reading"
        reading.focus()
        reading.scroll_end(animate=False)

    async def _show_reading(self) -> None:
        """Makes formatted text of what has changed in the chat; who was at its end stays there."""
        from specchat.tui.widgets.formatted import Formatted, markdown_of  # slow to import, and seldom wanted

        if self._conversation is None:
            return
        reading = self.query_one("#reading", VerticalScroll)
        was_at_end = reading.is_vertical_scroll_end
        async with reading.batch():
            wanted = [markdown_of(message) for message in self._conversation.messages]
            shown = list(reading.query_children(Formatted))
            pairs = enumerate(zip(shown, wanted, strict=False))
            same = next((n for n, (old, new) in pairs if old.markdown != new), min(len(shown), len(wanted)))
            await reading.remove_children(shown[same:])
            await reading.mount_all(Formatted(markdown) for markdown in wanted[same:])
        if was_at_end:
            reading.scroll_end(animate=False)

    # --- keys -----------------------------------------------------------------------------------------------------

    def action_toggle_rejected(self) -> None:
        """Shows or hides rejected tokens."""
        self.transcript.show(rejected=not self.transcript.show_rejected)

    def action_to_end(self) -> None:
        """Goes to the end, and follows it."""
        if self.is_reading:
            self.query_one("#reading").scroll_end(animate=False)
        self.transcript.to_end()

    @on(NewLines)
    def _new_lines(self, event: NewLines) -> None:
        lines = "line" if event.count == 1 else "lines"
        self.border_subtitle = f"↓ {event.count} new {lines}, End" if event.count else ""


def _reply_of(conversation: Conversation, message: Message) -> Reply:
    """A reply that was written before, as it looked then."""
    reply = Reply(before=conversation.beginning(message.id))
    for event in conversation.events(message.id):
        if isinstance(event, Round):
            reply.add(event)
    reply.finish(message.content, figures_line(conversation, message))
    return reply
