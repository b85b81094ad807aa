"""What the pair picker asks before it does something that one may not want."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.pairs.catalog import Model
from specchat.pairs.combining import reference
from specchat.pairs.fetching import size_text
from specchat.pairs.rows import ModelState
from specchat.tui.pair_choosing import DRAFT_HEADING, TARGET_HEADING, Choosing
from specchat.tui.pair_picking import PairPicking
from specchat.tui.screens.pairs_dialogs import Question
from specchat.tui.screens.pairs_models import ModelsScreen

if TYPE_CHECKING:
    from specchat.tui.screens.pairs import PairsScreen

_MOST_LEFT_OUT = 12


class PairQuestions:
    """Asks, and then does what was answered.

    Args:
        screen: is shown anew after an answer.
        picking: does it.
        still: nothing happens by itself: for tests.
    """

    def __init__(self, screen: PairsScreen, picking: PairPicking, still: bool) -> None:
        self._screen = screen
        self._picking = picking
        self._still = still

    def open(self, key: str) -> None:
        """Opens a pair; asks first where it does not fit."""
        row = self._picking.row(key)
        if row is None:
            return
        if row.fit is not None and row.fit.verdict == "does not fit":
            lines = [f"{row.pair.name} does not fit the memory that is free.", *row.fit.advice]
            answers = [("", "Go back"), ("open", "Try it all the same")]
            self._ask("memory", lines, answers, lambda _: self._picking.open(key))
        elif row.match == "differs":
            lines = [*row.warnings, "It cannot draft for this target."]
            answers = [("", "Go back"), ("draft", "Choose another draft"), ("ngram", "Chat with n-gram in its place")]
            self._ask("vocabulary", lines, answers, lambda name: self._instead(key, name))
        else:
            self._picking.open(key)

    def _instead(self, key: str, name: str) -> None:
        row = self._picking.row(key)
        if row is not None and name == "ngram":
            self._picking.open(self._picking.combine(row.target.model, "ngram"))
        else:
            self.choose_draft(key)

    def choose_target(self) -> None:
        """Any model as target, and then its draft."""
        choosing = Choosing(self._picking)
        row = self._picking.row(self._picking.highlighted)
        preselected = None if row is None else reference(row.target.model)

        def chosen(name: str | None) -> None:
            model = None if name is None else choosing.model(name)
            if isinstance(model, Model):
                self._choose_draft(choosing, model)

        screen = ModelsScreen("target of a new pair", TARGET_HEADING, choosing.targets, preselected, self._still)
        self._screen.app.push_screen(screen, chosen)

    def choose_draft(self, key: str) -> None:
        """Another draft for a pair's target."""
        row = self._picking.row(key)
        if row is not None:
            self._choose_draft(Choosing(self._picking), row.target.model)

    def _choose_draft(self, choosing: Choosing, target: Model) -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self._picking.combine(target, choosing.model(name))
            self._screen.show()

        title = f"draft for {target.name}"
        screen = ModelsScreen(title, DRAFT_HEADING, choosing.drafts_for(target), still=self._still)
        self._screen.app.push_screen(screen, chosen)

    def remove(self, key: str) -> None:
        """Removes files of a pair, or takes it off the list."""
        picking, row = self._picking, self._picking.row(key)
        if row is None:
            return
        own = [state for state in row.states if state.stored is not None and state.stored.fetched]
        lines = [f"{state.model.name}: {_what_of(state)}" for state in row.states if state.stored is not None]
        users = {each.model.name: [pair.name for pair in picking.collection.users_of(each.model, key)] for each in own}
        lines += [f"{name} is also used by: {', '.join(others)}." for name, others in users.items() if others]
        answers = [("", "Keep everything")]
        if place := picking.collection.put_there_by(key):
            what = "this pair" if place == "combined" else place
            answers.append(("list", f"Take {what} off the list; no file is touched"))
        if len(own) > 1:
            answers.append(("all", f"Remove both files ({size_text(sum(state.size or 0 for state in own))})"))
        answers += [(reference(each.model), f"Remove {each.model.name} ({size_text(each.size or 0)})") for each in own]
        if len(answers) == 1:
            picking.say("info", "specchat removes only what it fetched itself.", " ".join(lines))
            return
        self._ask(f"remove {row.pair.name}", lines, answers, lambda name: picking.remove(key, name))

    def measure(self, key: str) -> None:
        """Measures a pair; asks first where it does not fit."""
        row = self._picking.row(key)
        if row is not None and row.is_here and row.fit is not None and row.fit.verdict == "does not fit":
            lines = [f"{row.pair.name} does not fit the memory that is free.", *row.fit.advice]
            answers = [("", "Go back"), ("measure", "Measure it all the same")]
            self._ask("memory", lines, answers, lambda _: self._picking.measure(key))
        else:
            self._picking.measure(key)

    def tell_left_out(self) -> None:
        """Names the files that were found and cannot be used."""
        left_out = self._picking.collection.left_out
        lines = [f"{each.path}: {each.reason} {each.next_step}".rstrip() for each in left_out[:_MOST_LEFT_OUT]]
        if len(left_out) > len(lines):
            lines.append(f"… and {len(left_out) - len(lines)} more.")
        self._ask("left out", lines, [("", "Go back")], lambda _: None)

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


def _what_of(state: ModelState) -> str:
    assert state.stored is not None
    size = size_text(state.stored.size)
    if state.stored.fetched:
        shared = " Other programs that use it there would fetch it again." if state.stored.place == "hub" else ""
        return f"{size}, {state.stored.path}.{shared}"
    return f"{state.stored.path} is not specchat's own: it is left there."
