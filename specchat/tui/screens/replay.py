"""A chat played back: as it happened, faster or slower, or step by step through draft, verify and correct."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer

from specchat.chat.conversation import Conversation, Message
from specchat.chat.figures import figures_line
from specchat.chat.playback import Step
from specchat.tui.blocks import Notice, Question
from specchat.tui.charts import progress_bar
from specchat.tui.figures import seconds_text
from specchat.tui.messages import CursorMoved, RoundClicked
from specchat.tui.replaying import Replaying
from specchat.tui.reply_block import Reply
from specchat.tui.widgets.inspector import Inspector
from specchat.tui.widgets.now_panel import NowPanel, one_line
from specchat.tui.widgets.round_glass import RoundGlass
from specchat.tui.widgets.rounds import RoundsView
from specchat.tui.widgets.status import Legend, QuietStatic, StateLine, StatusLine
from specchat.tui.widgets.transcript import Transcript

_FRAME = 1 / 30
_PROGRESS = 12


class ReplayScreen(Screen[None]):
    """Plays a conversation.

    Args:
        conversation: its current branch is played.
        title: what the status line calls it.
        start: a message's id and the number of the round of it whose draft is shown first, standing still; None plays
            from the beginning.
        on_close: what leaving does; by default the screen below is shown again.
        still: nothing moves by itself (tests call `advance`).
    """

    AUTO_FOCUS = ""  # the arrows move in time until Tab leads them to the tokens
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "play / pause", key_display="Space"),
        Binding("right", "step(1)", "round", key_display="←→"),
        Binding("left", "step(-1)", "round before", show=False),
        Binding("enter,s", "phase", "slow motion", key_display="Enter"),
        Binding("plus,equals_sign", "speed(1)", "speed", key_display="+-"),
        Binding("minus", "speed(-1)", "slower", show=False),
        Binding("n", "question(1)", "question", key_display="pn"),
        Binding("p", "question(-1)", "question before", show=False),
        Binding("home", "seek(0)", "beginning", show=False),
        Binding("end", "seek(100)", "end", show=False),
        *(Binding(str(tenth), f"seek({10 * tenth})", f"{10 * tenth}%", show=False) for tenth in range(10)),
        Binding("r", "toggle_rejected", "rejected", show=False),
        Binding("tab", "look", "tokens"),
        Binding("f3", "toggle_rounds", "rounds", show=False),
        Binding("escape,q", "close", "back"),
    ]

    def __init__(
        self,
        conversation: Conversation,
        title: str,
        start: tuple[int, int] | None = None,
        on_close: Callable[[], object] | None = None,
        still: bool = False,
    ) -> None:
        super().__init__()
        self.replaying = Replaying(conversation)
        self._conversation = conversation
        self._title = title
        self._start = start
        self._on_close = on_close
        self._still = still
        self._last_frame = 0.0
        self._shown = 0  # steps that the transcript shows
        self._reply: Reply | None = None
        self._message: Message | None = None

    def compose(self) -> ComposeResult:
        """As the chat, with the round that is looked at in the inspector's place, and no prompt."""
        yield StatusLine(id="status")
        with Horizontal(id="main"):
            with Vertical(id="left"):
                with Vertical(id="chat") as frame:
                    frame.border_title = "replay"
                    yield Transcript(id="transcript")
                    yield Legend(id="legend")
                yield RoundsView(id="rounds")
            yield NowPanel(id="now")
        yield RoundGlass(id="glass")
        yield Inspector(id="inspector")
        yield QuietStatic(id="folded")
        yield StateLine(id="state")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begins to play, or stands before the round that is to be looked at."""
        self.transcript = self.query_one(Transcript)
        self.query_one(Inspector).display = False
        if self._start is not None:
            self.replaying.go_to(self.replaying.playback.before_round_of(*self._start) or 0)
            self.replaying.step_phase()
        elif not self._still:
            self.replaying.play()
        self._last_frame = monotonic()
        if not self._still:
            self.set_interval(_FRAME, self._on_frame)
        self.call_after_refresh(self._show)

    def _on_frame(self) -> None:
        now = monotonic()
        passed, self._last_frame = now - self._last_frame, now
        if self.replaying.is_playing:
            self.advance(passed)

    def advance(self, seconds: float) -> None:
        """So much time has passed."""
        self.replaying.advance(seconds)
        self._show()

    # --- what is shown --------------------------------------------------------------------------------------------

    def _show(self) -> None:
        replaying = self.replaying
        self._show_transcript(replaying.position)
        self.query_one(StatusLine).show(self._title, self._settings(), None)
        self.query_one(NowPanel).show(replaying.stats)
        self.query_one("#folded", QuietStatic).show_content(one_line(replaying.stats))
        self.query_one(RoundsView).show(replaying.stats.recent)
        self.query_one(RoundGlass).show(*replaying.shown)
        self.query_one(StateLine).show(*self._state())

    def _show_transcript(self, position: int) -> None:
        if position < self._shown or (position and not self._shown):
            self.transcript.clear()
            self._shown, self._reply, self._message = 0, None, None
        for step in self.replaying.playback.steps[self._shown : position]:
            self._add(step)
        if self._reply is not None and position > self._shown:
            self.transcript.flush(self._reply)
        if position == 0 and not self.transcript.index.blocks:
            self.transcript.add(Notice("info", "Nothing has been asked yet.", "Space plays, → goes on by one round."))
        self._shown = position

    def _add(self, step: Step) -> None:
        message = step.message
        if message.role == "user":
            self.transcript.add(Question(message.content))
            return
        if self._message is not message:
            self._message = message
            self._reply = Reply(before=self._conversation.beginning(message.id))
            self.transcript.add(self._reply)
        assert self._reply is not None
        if step.round is not None:
            self._reply.add(step.round)
        if step.ends:
            self._reply.finish(message.content, figures_line(self._conversation, message))
            self.transcript.changed(self._reply)

    def _settings(self) -> list[tuple[str, str]]:
        message = self._message
        if message is None or message.settings is None:
            return []
        settings = message.settings
        temperature = f"{settings.sampling.temperature:g}"
        return [("", message.pair), ("", settings.mode), ("T", temperature), ("", settings.rule)]

    def _state(self) -> tuple[str, str]:
        replaying = self.replaying
        duration = replaying.playback.duration
        share = replaying.seconds / duration if duration else 1.0
        word = "playing" if replaying.is_playing else "at the end" if replaying.is_over else "paused"
        return (
            f"{word} ×{replaying.speed:g}",
            f"{progress_bar(share, _PROGRESS)} {seconds_text(replaying.seconds)} of {seconds_text(duration)}",
        )

    # --- keys -----------------------------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Lets time go on, or stops it."""
        self.replaying.play()
        self._show()

    def action_step(self, count: int) -> None:
        """The next round, or the one before."""
        self.replaying.step(count)
        self._show()

    def action_phase(self) -> None:
        """The next phase of the round: draft, verify, correct."""
        self.replaying.step_phase()
        self._show()

    def action_speed(self, step: int) -> None:
        """Twice as fast, or half."""
        self.replaying.change_speed(step)
        self._show()

    def action_question(self, step: int) -> None:
        """The question after, or before."""
        self.replaying.question(step)
        self._show()

    def action_seek(self, percent: int) -> None:
        """To a share of the whole time."""
        playback = self.replaying.playback
        ends = {0: 0, 100: len(playback.steps)}
        self.replaying.go_to(ends.get(percent, playback.position_at(playback.duration * percent / 100)))
        self._show()

    def action_toggle_rejected(self) -> None:
        """Shows or hides rejected tokens."""
        self.transcript.show(rejected=not self.transcript.show_rejected)

    def action_toggle_rounds(self) -> None:
        """Shows or hides the rounds view."""
        rounds = self.query_one(RoundsView)
        rounds.display = not rounds.display

    def action_look(self) -> None:
        """To the tokens and back."""
        if self.focused is self.transcript:
            self.transcript.close_cursor()
            self.set_focus(None)
        else:
            self.set_focus(self.transcript)

    def action_close(self) -> None:
        """Back to where one came from."""
        if self.focused is self.transcript:
            self.action_look()
        elif self._on_close is not None:
            self._on_close()
        else:
            self.dismiss()

    @on(CursorMoved)
    def _cursor_moved(self, event: CursorMoved) -> None:
        self.query_one(Inspector).show(event.block, event.token)
        self.query_one(RoundGlass).set_class(event.block is not None, "-covered")

    @on(RoundClicked)
    def _round_clicked(self, event: RoundClicked) -> None:
        position = self.replaying.playback.before_round(event.played)
        if position is not None:
            self.replaying.step(position - self.replaying.position)
            self._show()
