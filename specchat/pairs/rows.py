"""One row a pair: what the picker's table and ``specchat --pair --list`` show, how it is sorted, and what is best.

Rows are made by `specchat.pairs.shelf`; everything here is plain values and pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from specchat.pairs.catalog import Model, ModelPair
from specchat.pairs.compatibility import Compatibility
from specchat.pairs.measured import Measured
from specchat.pairs.memory import RANK, Fit
from specchat.pairs.store import StoredModel

MatchVerdict: TypeAlias = Literal[
    "same vocabulary", "same, padded", "same model", "differs", "checked when fetched", "cannot be read", "no draft"
]
SortKey: TypeAlias = Literal["fit", "speedup", "size"]

SORT_KEYS: tuple[SortKey, ...] = ("fit", "speedup", "size")

_COMFORTABLE_ON_CPU = 2_000_000_000
"""Weights of a target that a processor reads some ten times a second; larger ones write more slowly than one reads."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """A model of a pair, and where it is.

    Attributes:
        model: what the catalogue says of it.
        stored: its file on this disk; None where it must be fetched.
        size: bytes, None where nobody knows.
        begun: bytes that an interrupted fetch left, which the next one goes on from.
        license: its licence, as the catalogue or its file names it; None where neither does.
    """

    model: Model
    stored: StoredModel | None
    size: int | None
    begun: int = 0
    license: str | None = None

    @property
    def path(self) -> Path | None:
        """Its file on this disk."""
        return None if self.stored is None else self.stored.path

    @property
    def missing(self) -> int | None:
        """Bytes still to be fetched: 0 where it is here, None where nobody knows."""
        if self.stored is not None:
            return 0
        return None if self.size is None else max(0, self.size - self.begun)


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair, with all that is known of it.

    Attributes:
        pair: the pair; its key names it everywhere.
        target: the target and where it is.
        draft: the same of the draft; the target's where it drafts for itself, None where there is none.
        fit: how it fits this machine; None where that was not reckoned, or cannot be.
        match: the verdict on the two vocabularies, in words for the table.
        compatibility: more on it, where both files were compared.
        measured: what was measured of it here; None for "not measured".
        is_recommended: it is the one to begin with on this machine.
        problems: why it cannot be used, each with what to do.
        warnings: what one should know before using it. Nothing forbids it.
        is_examined: its files have been looked at.
    """

    pair: ModelPair
    target: ModelState
    draft: ModelState | None
    fit: Fit | None = None
    match: MatchVerdict = "checked when fetched"
    compatibility: Compatibility | None = None
    measured: Measured | None = None
    is_recommended: bool = False
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_examined: bool = False

    @property
    def key(self) -> str:
        """What names it everywhere."""
        return self.pair.key

    @property
    def names(self) -> tuple[str, str]:
        """What it may have been measured under: its key, or the names of its files where they were given alone."""
        paths = [each.path for each in (self.target, self.draft) if each is not None]
        return self.key, "+".join(path.stem for path in paths if path is not None)

    @property
    def states(self) -> tuple[ModelState, ...]:
        """Its models; one where the target drafts for itself or there is no draft."""
        return (self.target,) if self.draft is None or self.draft.model == self.target.model else (
            self.target, self.draft
        )  # fmt: skip

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be fetched."""
        return all(state.stored is not None for state in self.states)

    @property
    def missing(self) -> int | None:
        """Bytes still to be fetched; None where nobody knows."""
        return _sum(state.missing for state in self.states)

    @property
    def size(self) -> int | None:
        """Bytes of both files."""
        return _sum(state.size for state in self.states)

    @property
    def licenses(self) -> str:
        """The licences of both models, each once; "not stated" where one is not known."""
        return ", ".join(dict.fromkeys(state.license or "not stated" for state in self.states))


def recommend(rows: Sequence[PairRow]) -> list[PairRow]:
    """The rows with the one marked that one should begin with: the largest target that runs well, if one does.

    It runs well where all of it fits the GPU, or on a machine without one where it is small enough for a processor.
    A pair that was measured to pay goes before one that was not measured, and that before one that does not pay.
    """
    suitable = [row for row in rows if _runs_well(row)]
    best = max(suitable, key=lambda row: (_hope(row), row.target.size or 0), default=None)
    return [replace(row, is_recommended=row is best) for row in rows]


def sorted_rows(rows: Iterable[PairRow], by: SortKey) -> list[PairRow]:
    """By how well they fit, by measured speedup, or by size (the smaller first).

    Of those that fit alike the larger target comes first, and the recommended one before all. What is not known comes
    last.
    """
    if by == "size":
        return sorted(rows, key=lambda row: (row.size is None, row.size or 0))
    if by == "speedup":
        return sorted(rows, key=lambda row: -(row.measured.speedup if row.measured else 0.0))

    def fit(row: PairRow) -> tuple[bool, int, int]:
        return not row.is_recommended, RANK[row.fit.verdict] if row.fit else len(RANK), -(row.target.size or 0)

    return sorted(rows, key=fit)


def matching_rows(rows: Iterable[PairRow], text: str) -> list[PairRow]:
    """The rows in which every word of ``text`` occurs: in names, files, licences, notes or verdicts."""
    words = text.casefold().split()

    def all_words(row: PairRow) -> str:
        models = [state.model for state in row.states]
        parts = [row.key, row.pair.name, row.pair.pair.note, row.licenses, row.match]
        parts += [row.fit.verdict if row.fit else "", "on disk" if row.is_here else "to fetch"]
        parts += [f"{model.key} {model.name} {model.file} {model.path or ''} {model.note}" for model in models]
        return " ".join(parts).casefold()

    return [row for row in rows if all(word in all_words(row) for word in words)]


def _runs_well(row: PairRow) -> bool:
    if row.pair.pair.trial or row.problems or row.fit is None or row.match in ("differs", "cannot be read"):
        return False
    if row.fit.verdict == "fits the GPU":
        return not row.fit.notes
    return row.fit.verdict == "fits in memory" and (row.target.size or 0) <= _COMFORTABLE_ON_CPU


def _hope(row: PairRow) -> int:
    return 1 if row.measured is None else 2 if row.measured.pays else 0


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)
