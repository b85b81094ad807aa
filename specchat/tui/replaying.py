"""A playback that runs: where it is, how fast it goes, and what is shown of it. No widgets."""

from __future__ import annotations

from specchat.chat.conversation import Conversation, Message
from specchat.chat.playback import Phase, Playback
from specchat.core.events import Round
from specchat.core.stats import ReplyStats

SPEEDS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_SLOW = 0.5
"""From this speed down the phases of a round are shown as they happen: faster, they would only flicker."""


class Replaying:
    """The state of a replay.

    Args:
        conversation: what to play.

    Attributes:
        playback: its steps.
        position: how many of them are done.
        phase: how much of the next one is shown, where that is a round.
        seconds: the moment that is shown.
        speed: seconds of the recording a second.
        is_playing: whether time goes on by itself.
        stats: the figures of the reply that is being shown.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.playback = Playback(conversation)
        self.position = 0
        self.phase = Phase.DRAFTING
        self.seconds = 0.0
        self.speed = 1.0
        self.is_playing = False
        self.stats = ReplyStats()
        self._folded = 0
        self._message: Message | None = None

    @property
    def is_over(self) -> bool:
        """Whether everything has been shown."""
        return self.position == len(self.playback.steps)

    @property
    def shown(self) -> tuple[Round | None, Phase]:
        """The round that is looked at, and how much of it: the one under way, or else the last one that is done."""
        following = self.playback.following(self.position)
        if self.phase > Phase.DRAFTING and following is not None and following.round is not None:
            return following.round, self.phase
        done = next((step.round for step in reversed(self.playback.steps[: self.position]) if step.round), None)
        return done, Phase.CORRECTED

    def play(self) -> None:
        """Lets time go on, or stops it. At the end it begins anew."""
        if not self.is_playing and self.is_over:
            self.go_to(0)
        self.is_playing = not self.is_playing

    def advance(self, seconds: float) -> None:
        """So much time has passed."""
        if not self.is_playing:
            return
        self.seconds = min(self.playback.duration, self.seconds + seconds * self.speed)
        self.position = max(self.position, self.playback.position_at(self.seconds))
        self.phase = self.playback.phase_at(self.seconds) if self.speed <= _SLOW else Phase.DRAFTING
        self._fold()
        if self.is_over:
            self.is_playing = False

    def go_to(self, position: int) -> None:
        """Shows what was there after so many steps, and stays there."""
        self.position = min(max(0, position), len(self.playback.steps))
        self.phase = Phase.DRAFTING
        self.seconds = self.playback.time_of(self.position)
        self._fold()

    def step(self, count: int) -> None:
        """Goes on, or back, by whole steps."""
        self.is_playing = False
        is_begun = count < 0 and self.phase > Phase.DRAFTING
        self.go_to(self.position if is_begun else self.position + count)

    def step_phase(self) -> None:
        """Goes on by one phase of a round, or by a step that has none."""
        self.is_playing = False
        following = self.playback.following(self.position)
        played = None if following is None else following.round
        first = Phase.DRAFTED if played is not None and played.drafted else Phase.VERIFIED
        if played is None or self.phase is Phase.VERIFIED:
            self.go_to(self.position + 1)
        else:
            self.phase = max(first, Phase(self.phase + 1))

    def question(self, step: int) -> None:
        """Goes to the question before or after."""
        playback = self.playback
        self.go_to(playback.question_before(self.position) if step < 0 else playback.question_after(self.position))

    def change_speed(self, step: int) -> None:
        """Twice as fast, or half."""
        self.speed = SPEEDS[min(max(0, SPEEDS.index(self.speed) + step), len(SPEEDS) - 1)]

    def _fold(self) -> None:
        """The figures of the last reply that has begun."""
        if self.position < self._folded:
            self._folded, self._message = 0, None
        for step in self.playback.steps[self._folded : self.position]:
            if step.message.role == "assistant" and step.message is not self._message:
                self._message, self.stats = step.message, ReplyStats()
            for event in step.events:
                self.stats.add(event)
        if self._message is None:
            self.stats = ReplyStats()
        self._folded = self.position
