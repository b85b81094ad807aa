"""Everything on the chat screen that is read and not written: one call shows all of it."""

from __future__ import annotations

from textual.screen import Screen

from specchat.chat.figures import draft_length_text
from specchat.core.stats import ReplyStats
from specchat.tui.commands import commands_like
from specchat.tui.figures import memory_text
from specchat.tui.live_chat import LiveChat
from specchat.tui.pair_opening import PairOpening
from specchat.tui.speedup_curve import speedup_curve
from specchat.tui.state import state_of
from specchat.tui.unsent import Unsent
from specchat.tui.widgets.now_panel import NowPanel, one_line
from specchat.tui.widgets.rounds import RoundsView
from specchat.tui.widgets.status import QuietStatic, StateLine, StatusLine


class Dashboard:
    """The status line, the figures, the rounds and the state of a screen.

    Attributes:
        new_lines: how many lines have come below what is on the screen.
    """

    def __init__(self, screen: Screen[None], chat: LiveChat, opening: PairOpening, unsent: Unsent) -> None:
        self.new_lines = 0
        self._screen = screen
        self._status = screen.query_one(StatusLine)
        self._now = screen.query_one(NowPanel)
        self._folded = screen.query_one("#folded", QuietStatic)
        self._rounds = screen.query_one(RoundsView)
        self._state = screen.query_one(StateLine)
        self._chat = chat
        self._opening = opening
        self._unsent = unsent

    def show(self, stats: ReplyStats, why: str, typed: str) -> None:
        """Shows the figures of now; ``typed`` is what stands in the prompt: a command explains itself."""
        settings, loaded = self._chat.settings, self._chat.loaded
        items = [
            ("", settings.mode),
            ("γ", draft_length_text(settings, stats.window)),
            ("T", f"{settings.sampling.temperature:g}"),
            ("", settings.rule),
        ]
        if settings.drafter != "draft":
            items.insert(2, ("draft", settings.drafter))
        context = (self._chat.context_used, loaded.n_ctx) if loaded is not None else None
        self._status.show(self._opening.name or "no pair", items, context)
        found = self._chat.devices
        memory = "" if loaded is None else memory_text(loaded, () if found is None else found.devices)
        self._now.show(stats, speedup_curve(stats, self._chat.experience), memory)
        self._folded.show_content(one_line(stats))
        self._rounds.show(stats.recent)
        self.show_state(stats, why, typed)

    def show_state(self, stats: ReplyStats, why: str, typed: str) -> None:
        """Shows what is going on, or what the command does that is being typed."""
        found = commands_like(typed)
        if len(found) == 1:
            state = f"/{found[0].name} {found[0].takes}".strip(), found[0].summary, ""
        elif found:
            state = "commands", "  ".join(f"/{command.name}" for command in found), ""
        else:
            is_editing = self._unsent.editing is not None
            state = state_of(self._chat, stats, why, self._opening.fetch, is_editing=is_editing)
        has_frame = not {"-tiny", "-low"} & self._screen.classes  # which says it as well
        self._state.show(*state, "" if has_frame or not self.new_lines else f"↓ {self.new_lines} new, End")
