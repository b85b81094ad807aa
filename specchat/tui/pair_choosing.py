"""Which target and which draft: the lists of the pair picker, and what is known of each candidate."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from specchat.pairs.catalog import Model
from specchat.pairs.combining import FREE, Free, pair_of, reference, references
from specchat.pairs.fetching import size_text
from specchat.pairs.row_text import fit_verdict, match_verdict
from specchat.pairs.rows import PairRow
from specchat.pairs.store import locate
from specchat.tui.pair_picking import PairPicking
from specchat.tui.pair_words import fitted, shown, verdict_cell
from specchat.tui.screens.pairs_models import Choice

_NAME, _SIZE, _WHERE, _WORD = 30, 8, 9, 12
_ORDER = {"same vocabulary": 0, "same, padded": 0, "checked when fetched": 1, "same model": 3, "differs": 4}

DRAFT_HEADING = f"{'draft':<{_NAME}} {'size':<{_SIZE}} {'where':<{_WHERE}} {'vocabulary':<{_WORD}} memory"
TARGET_HEADING = f"{'target':<{_NAME}} {'size':<{_SIZE}} where"


class Choosing:
    """The candidates for a target, or for the draft of one.

    Args:
        picking: looks at them.
    """

    def __init__(self, picking: PairPicking) -> None:
        self._picking = picking
        self._models = {reference(model): model for model in picking.collection.models()}
        self._here = {
            name: locate(model, picking.collection.folder) is not None for name, model in self._models.items()
        }

    def model(self, name: str) -> Model | Free:
        """What was chosen by that name."""
        return next((free for free in FREE if free == name), None) or self._models[name]

    def targets(self) -> list[Choice]:
        """Every model, those on this disk first."""
        names = sorted(self._models, key=lambda name: (not self._here[name], self._models[name].size or 0))
        return [Choice(name, _line(self._cells(name)), self._models[name].note) for name in names]

    def drafts_for(self, target: Model) -> Callable[[], list[Choice]]:
        """Every draft for a target, the ones that go with it first; looking at them begins now."""
        pairs = {name: pair_of(target, model) for name, model in self._models.items()}
        self._picking.looking.compare(list(pairs.values()))

        def choices() -> list[Choice]:
            rows = {name: self._picking.tried.get(references(pair)) for name, pair in pairs.items()}

            def rank(name: str) -> tuple[int, bool, int]:
                row, size = rows[name], self._models[name].size or 0
                is_larger = size > (target.size or size)
                return _ORDER.get(row.match, 5) if row is not None else 2, is_larger, size

            models = [self._draft(name, rows[name]) for name in sorted(self._models, key=rank)]
            return [*_free(), *models]

        return choices

    def _draft(self, name: str, row: PairRow | None) -> Choice:
        if row is None:
            return Choice(name, _line([*self._cells(name), ("…", "$quiet"), ("", "")]), "It is being looked at.")
        reasons = [*row.problems, row.compatibility.reason if row.compatibility is not None else ""]
        reasons += [text for text in row.warnings if row.compatibility is None or row.compatibility.reason not in text]
        reasons += row.fit.advice if row.fit is not None else ()
        cells = [*self._cells(name), verdict_cell(match_verdict(row)), verdict_cell(fit_verdict(row))]
        return Choice(name, _line(cells), " ".join(text for text in reasons if text))

    def _cells(self, name: str) -> list[tuple[str, str]]:
        model = self._models[name]
        where = ("on disk", "$success") if self._here[name] else ("to fetch", "$quiet")
        return [(model.name, "bold"), ("?" if model.size is None else size_text(model.size), ""), where]


def _free() -> list[Choice]:
    ngram = [("n-gram", "bold"), ("0", ""), ("built in", "$success"), ("✓ any", "$success"), ("✓ none", "$success")]
    none = [("no draft", "bold"), ("0", ""), ("", ""), ("– none", "$quiet"), ("✓ none", "$success")]
    return [
        Choice("ngram", _line(ngram), "Proposes what the text so far suggests: no second model, and no memory."),
        Choice("none", _line(none), "Plain decoding: the target alone."),
    ]


def _line(cells: list[tuple[str, str]]) -> Content:
    parts: list[tuple[str, str]] = []
    for (text, style), width in zip(cells, (_NAME, _SIZE, _WHERE, _WORD, _WORD), strict=False):
        parts += [(fitted(shown(text), width), style), (" ", "")]
    return Content.assemble(*parts)
