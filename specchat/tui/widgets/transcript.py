"""The chat, token by token: every token in the colour of its fate.

A Line-API widget: it renders the lines that are on the screen and keeps what it made of them, so that a frame costs
the same however long the chat is. Positions in a selection are cells, not characters: the right half of a wide glyph
belongs to that glyph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from specchat.core.events import Fate, Round
from specchat.tui.blocks import Block
from specchat.tui.key_order import moves_on, take
from specchat.tui.line_index import LineIndex
from specchat.tui.messages import CursorMoved, NewLines
from specchat.tui.reply_block import Reply
from specchat.tui.strips import selected, strip_of
from specchat.tui.token_cursor import WHOLE, TokenCursor, cursor_at, first_token, is_sent, last_cursor

_SLICE = 0.02  # seconds of typesetting between two looks at the keyboard
LOOKS = (*Fate, "question", "question-mark", "dim", "figures", "info", "warning", "error", "next-step")


class Transcript(ScrollView, can_focus=True):
    """All messages of a chat."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES = {f"transcript--{look}" for look in LOOKS} | {"transcript--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "beside(-1)", "token", key_display="↑↓←→"),
        Binding("right", "beside(1)", "next token", show=False),
        Binding("up", "above_or_below(-1)", "token above", show=False),
        Binding("down", "above_or_below(1)", "token below", show=False),
        Binding("p", "question(-1)", "question before", show=False),
        Binding("n", "question(1)", "question after", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.index = LineIndex()
        self.following = True
        self.cursor: TokenCursor | None = None
        self._is_offered = False  # the cursor stands where Tab put it: nobody has chosen that token yet
        self.show_rejected = False
        self._styles_by_look: dict[str, Style] = {}
        self.to_prompt: dict[str, Callable[[], None]] = {}  # keys that lead to the prompt; set by the screen
        self._seen = 0  # lines that were there when the end was last on the screen
        self._column = 0  # the cell that ↑ and ↓ stay near
        self._typesetting = False

    def _on_key(self, event: events.Key) -> None:  # type: ignore[override]
        if moves_on(self, event):
            return
        action = self.to_prompt.get(event.key)
        if action is not None:
            take(event)
            action()

    # --- what is shown --------------------------------------------------------------------------------------------

    def add(self, block: Block, before: Block | None = None) -> None:
        """Adds a block, at the end or before another one."""
        if isinstance(block, Reply):
            block.show(self.show_rejected)
        looked_at = self._looked_at()
        self.index.insert(block, before)
        self._moved(looked_at)

    def flush(self, block: Block) -> None:
        """Shows what was added to a block."""
        if block is not self.index.blocks[-1]:
            self.index.changed(block)
            self.refresh()
        self._grew()

    def changed(self, block: Block) -> None:
        """Makes a block's lines again."""
        block.typeset(self.index.width)
        self.index.changed(block)
        self.refresh()
        self._grew()

    def remove_block(self, block: Block) -> None:
        """Takes a block out."""
        looked_at = self._looked_at()
        if looked_at is block:
            self.close_cursor()
        self.index.remove(block)
        self._moved(looked_at)

    def _looked_at(self) -> Block | None:
        return None if self.cursor is None else self.index.blocks[self.cursor.block]

    def _moved(self, looked_at: Block | None) -> None:
        """Blocks have other numbers now; the cursor stays on its token."""
        if self.cursor is not None and looked_at is not None:
            self.cursor = TokenCursor(self.index.blocks.index(looked_at), self.cursor.token)
        self.refresh()
        self._grew()

    def clear(self) -> None:
        """Removes everything."""
        self.index.clear()
        self._move_cursor(None)
        self.following = True
        self._set_height()
        self.refresh()

    def show(self, rejected: bool) -> None:
        """Shows or hides rejected tokens in the text."""
        self.show_rejected = rejected
        if self.cursor is not None:
            reply = self.index.blocks[self.cursor.block]
            if isinstance(reply, Reply) and not rejected and reply.tokens[self.cursor.token].rejected:
                self._move_cursor(self.cursor.beside(self.index, 1))
        self._keeping_place(self._reshow)

    def _reshow(self) -> None:
        for block in self.index.blocks:
            if isinstance(block, Reply):
                block.show(self.show_rejected)
                if block.width != self.index.width:
                    block.typeset(self.index.width)
                    self.index.changed(block)

    def to_end(self) -> None:
        """Goes to the end, and stays there while more comes."""
        self.following = True
        self._grew()

    # --- size and scrolling ---------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Breaks lines anew where the width has changed."""
        width = self.scrollable_content_region.width
        if width != self.index.width and width > 0:
            self._keeping_place(lambda: self.index.set_width(width))
        elif self.following:
            self._grew()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end while it is on the screen."""
        super().watch_scroll_y(old_value, new_value)
        self.following = round(new_value) >= self.max_scroll_y
        self._tell_new_lines()

    def _grew(self) -> None:
        """There is more (or less) than before."""
        if not self.is_attached or not self.index.width:
            return
        old = self.virtual_size.height
        following = self.following
        self._set_height()
        self.refresh_lines(max(0, old - 2), max(1, self.index.height - old + 3))
        if following:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
            self.following = True
        self._tell_new_lines()

    def _set_height(self) -> None:
        size = Size(self.index.width, self.index.height)
        if size != self.virtual_size:
            # set in the usual way, it would lay out the whole screen at every new line: half of a frame's cost
            self.set_reactive(Transcript.virtual_size, size)
            self._scroll_update(size)

    def _tell_new_lines(self) -> None:
        height = self.index.height
        if self.following:
            self._seen = height
        self.post_message(NewLines(max(0, height - self._seen)))

    def _keeping_place(self, change: Callable[[], None]) -> None:
        """Changes how lines are made, without moving what is being read."""
        number, index = self.index.find(self.scroll_offset.y)
        following = self.following
        place = self.index.blocks[number].place_of(index) if self.index.blocks else 0
        self.screen.clear_selection()
        change()
        height = self.size.height
        if following:
            self.index.typeset_up_from(len(self.index.blocks) - 1, height)
        else:
            self.index.typeset_down_from(number, height)
        self._go_to(following, number, place)
        self.refresh()
        if not self._typesetting:
            self._typesetting = True
            self._typeset_some()

    def _typeset_some(self) -> None:
        """Makes lines for the present width, as long as nobody notices."""
        number, index = self.index.find(self.scroll_offset.y)
        following = self.following
        place = self.index.blocks[number].place_of(index) if self.index.blocks else 0
        self._typesetting = self.index.typeset_some(_SLICE)
        self._go_to(following, number, place)
        if self._typesetting:
            self.set_timer(_SLICE / 2, self._typeset_some)

    def _go_to(self, following: bool, number: int, place: int) -> None:
        self._set_height()
        y = self.max_scroll_y
        if not following and self.index.blocks:
            y = min(y, self.index.start(number) + self.index.blocks[number].line_at(place))
        self.scroll_to(y=y, animate=False, immediate=True)
        self.following = following
        self._tell_new_lines()

    # --- drawing --------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Forgets styles, and with them all kept strips."""
        super().notify_style_update()
        self._styles_by_look = {}

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        y += self.scroll_offset.y
        width = self.size.width
        line = self.index.line(y)
        if line is None:
            return Strip.blank(width, self.rich_style)
        styles = self._styles()
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is None and (self.cursor is None or self.index.find(y)[0] != self.cursor.block):
            kept = line.strip
            if kept is None or kept[:2] != (y, width) or kept[2] is not styles:
                line.strip = kept = (y, width, styles, strip_of(line, y, width, styles, self.rich_style))
            made: Strip = kept[3]
            return made
        cursor = None
        if self.cursor is not None and self.index.find(y)[0] == self.cursor.block:
            cursor = self.cursor.token, self.get_component_rich_style("transcript--cursor", partial=True)
        strip = strip_of(line, y, width, styles, self.rich_style, cursor)
        if span is None:
            return strip
        return selected(strip, *span, self.screen.get_component_rich_style("screen--selection"))

    def _styles(self) -> dict[str, Style]:
        if not self._styles_by_look:
            self._styles_by_look = {look: self.get_component_rich_style(f"transcript--{look}") for look in LOOKS}
        return self._styles_by_look

    # --- copying --------------------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """What was said in the selected cells: logical lines, no rejected tokens."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self.index.height - 1
        spans = ((y, selection.get_span(y)) for y in range(max(0, first), min(last, self.index.height - 1) + 1))
        return self.index.copied((y, *span) for y, span in spans if span is not None), "\n"

    # --- the token cursor -----------------------------------------------------------------------------------------

    def offer_cursor(self) -> None:
        """Puts the cursor on the last token, or on the first that is on the screen where the end is not.

        Only where there is none. Until it is moved, no message is looked at, and it goes when the focus does.
        """
        if self.cursor is not None:
            return
        top = self.scroll_offset.y
        shown = range(top, top + self.size.height)
        found = last_cursor(self.index) if self.following else first_token(self.index, shown)
        if found is not None:
            self._move_cursor(found)
            self._column = self._cursor_cell()
            self._is_offered = True

    def on_blur(self) -> None:
        """Takes back what was offered."""
        if self._is_offered:
            self.close_cursor()

    def action_beside(self, step: int) -> None:
        """← and →: the token before and after."""
        if self.cursor is None:
            self._move_cursor(last_cursor(self.index))
        elif (found := self.cursor.beside(self.index, step)) is not None:
            self._move_cursor(found)
        self._column = self._cursor_cell()

    def action_above_or_below(self, step: int) -> None:
        """↑ and ↓: the token above and below."""
        if self.cursor is None:
            self._move_cursor(last_cursor(self.index))
            self._column = self._cursor_cell()
        elif (found := self.cursor.above_or_below(self.index, step, self._column)) is not None:
            self._move_cursor(found)

    def action_question(self, step: int) -> None:
        """`p` and `n`: the question before and after."""
        here = self.cursor or TokenCursor(len(self.index.blocks), WHOLE)
        if (found := here.question(self.index, step)) is not None:
            self._move_cursor(found)
            self._column = 0

    def look_at_message(self, message: int) -> None:
        """Looks at a question, or at the first token of a reply that is shown."""
        number = self._block_of(message)
        if number is None:
            return
        if is_sent(self.index.blocks[number]):
            self._move_cursor(TokenCursor(number, WHOLE))
        else:
            self._move_cursor(TokenCursor(number, WHOLE).beside(self.index, 1))

    def show_message(self, message: int) -> None:
        """Scrolls so that the beginning of a message is on the screen."""
        number = self._block_of(message)
        if number is not None:
            y, top = self.index.start(number), self.scroll_offset.y
            if not top <= y < top + self.size.height:
                self.scroll_to(y=y, animate=False, immediate=True)

    @property
    def message_looked_at(self) -> int | None:
        """The id of the message that a person put the cursor in."""
        block = None if self._is_offered else self._looked_at()
        return None if block is None else block.message_id

    @property
    def has_chosen_token(self) -> bool:
        """Whether a person put the cursor on a token, and not only Tab."""
        return self.cursor is not None and not self._is_offered

    @property
    def round_looked_at(self) -> tuple[int, int] | None:
        """The id of the reply that the cursor is in, and the number of the round of its token."""
        block = self._looked_at()
        if self.cursor is None or not isinstance(block, Reply) or block.message_id is None:
            return None
        return block.message_id, block.tokens[self.cursor.token].round

    def _block_of(self, message: int) -> int | None:
        return next((n for n, block in enumerate(self.index.blocks) if block.message_id == message), None)

    def look_at(self, reply: Reply, token: int) -> None:
        """Looks at a token of a reply."""
        self._move_cursor(TokenCursor(self.index.blocks.index(reply), token))

    def look_at_round(self, played: Round) -> None:
        """Looks at the first token of a round."""
        for block in self.index.blocks:
            if isinstance(block, Reply) and (token := block.first_token(played)) is not None:
                self.look_at(block, token)

    def close_cursor(self) -> None:
        """No token is being looked at any longer."""
        self._move_cursor(None)

    def on_click(self, event: events.Click) -> None:
        """Looks at the token that was clicked on; the end of a drag is no click."""
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        if (found := cursor_at(self.index, offset.y + self.scroll_offset.y, offset.x)) is not None:
            self._move_cursor(found)
            self._column = offset.x

    def _cursor_cell(self) -> int:
        if self.cursor is None:
            return 0
        line = self.index.line(self.cursor.lines(self.index)[0])
        spans = line.spans() if line is not None else ()
        return next((left for left, _, piece in spans if piece.first <= self.cursor.token <= piece.last), 0)

    def _move_cursor(self, cursor: TokenCursor | None) -> None:
        for old in (self.cursor, cursor):
            if old is not None and old.block < len(self.index.blocks):
                self.index.typeset_block(old.block)
                lines = old.lines(self.index)
                self.refresh_lines(lines[0], len(lines))
        self.cursor, self._is_offered = cursor, False
        if cursor is None:
            self.post_message(CursorMoved(None, -1))
            return
        lines = cursor.lines(self.index)
        top, height = self.scroll_offset.y, self.size.height
        if not top <= lines[0] < top + height:
            self.scroll_to(y=lines[0] - height // 2, animate=False, immediate=True)
        self.post_message(CursorMoved(self.index.blocks[cursor.block], cursor.token))
