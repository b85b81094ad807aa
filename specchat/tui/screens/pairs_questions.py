"""What the pair picker asks before it does something that one may not want."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.pairs.fetching import size_text
from specchat.tui.pair_picking import PairPicking
from specchat.tui.screens.pairs_dialogs import Question

if TYPE_CHECKING:
    from specchat.tui.screens.pairs import PairsScreen


class PairQuestions:
    """Asks, and then does what was answered.

    Args:
        screen: is shown anew after an answer.
        picking: does it.
    """

    def __init__(self, screen: PairsScreen, picking: PairPicking) -> None:
        self._screen = screen
        self._picking = picking

    def open(self, key: str) -> None:
        """Opens a pair; asks first where it does not fit."""
        row = self._picking.row(key)
        if row is None:
            return
        if row.fit is not None and row.fit.verdict == "does not fit":
            lines = [f"{row.pair.name} does not fit the memory that is free.", *row.fit.advice]
            answers = [("", "Go back"), ("open", "Try it all the same")]
            self._ask("memory", lines, answers, lambda _: self._picking.open(key))
        else:
            self._picking.open(key)

    def cancel(self, key: str) -> None:
        """Cancels a fetch, after a question."""
        row = self._picking.row(key)
        if row is None:
            return
        here = sum(state.begun for state in row.states if state.stored is None)
        state = self._picking.fetches.state(key)
        size = max(here, state.done if state is not None else 0)
        lines = [
            f"What came of {row.pair.name} so far ({size_text(size)}) is thrown away. Pausing with p would keep it."
        ]
        answers = [("", "Keep it"), ("cancel", "Cancel the fetch and throw it away")]
        self._ask("cancel the fetch", lines, answers, lambda _: self._picking.cancel(key))

    def _ask(self, title: str, lines: list[str], answers: list[tuple[str, str]], then: Callable[[str], None]) -> None:
        def answered(name: str | None) -> None:
            if name:
                then(name)
            self._screen.show()

        self._screen.app.push_screen(Question(title, lines, answers), answered)
