"""The rounds view: one column is one round, its height the tokens that it kept."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.widget import Widget

from specchat.core.events import Fate, Round
from specchat.core.fate_style import FATE_STYLES
from specchat.tui.messages import RoundClicked

_FEWEST_ROWS = 4
_MOST_ROWS = 9
_LABEL = 12
_CELL = {fate: style.mark for fate, style in FATE_STYLES.items()}


class RoundsView(Widget):
    """The last rounds, newest at the right."""

    ALLOW_SELECT = False
    BORDER_TITLE = "rounds: one column = one round"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._rounds: tuple[Round, ...] = ()

    def show(self, rounds: Sequence[Round]) -> None:
        """Shows these rounds, the last one at the right."""
        if tuple(rounds) == self._rounds:
            return
        self._rounds = tuple(rounds)
        rows = 1 + max([_FEWEST_ROWS, *(len(played.drafted) for played in rounds)])
        self.styles.height = min(rows, _MOST_ROWS) + 2
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A column leads to its round."""
        offset, rounds = event.get_content_offset(self), self._visible
        if offset is not None and offset.x // 2 < len(rounds):
            self.post_message(RoundClicked(rounds[offset.x // 2]))

    @property
    def _visible(self) -> tuple[Round, ...]:
        """The last rounds, as many as there is room for."""
        return self._rounds[-max(1, (self.size.width - _LABEL) // 2) :]

    def render(self) -> Content:
        """Rows from the target's own token at the top down to position 1."""
        height, rounds = self.size.height, self._visible
        positions = max([_FEWEST_ROWS, *(len(played.drafted) for played in rounds)])
        rows = [self._row(rounds, None, "own token")]
        first = min(positions, max(1, height - 1))
        for position in range(first, 0, -1):
            label = f"position {position}" if position == first else f"         {position}"
            rows.append(self._row(rounds, position, label))
        return Content("\n").join(rows)

    def _row(self, rounds: Sequence[Round], position: int | None, label: str) -> Content:
        cells: list[tuple[str, str]] = []
        for played in rounds:
            fate = _own_fate(played) if position is None else _fate_at(played, position)
            cells.append((f"{_CELL[fate] if fate else ' '} ", f"$fate-{fate}" if fate else ""))
        empty = max(0, (self.size.width - _LABEL) // 2 - len(rounds)) * 2
        return Content.assemble(*cells, " " * empty, ("  " + label, "$quiet"))


def _fate_at(played: Round, position: int) -> Fate | None:
    return played.drafted[position - 1].fate if position <= len(played.drafted) else None


def _own_fate(played: Round) -> Fate | None:
    """How the target's own token of that round came about; None where the reply ended with a drafted one."""
    if not played.committed or played.committed[-1].fate is Fate.ACCEPTED:
        return None
    return played.committed[-1].fate
