"""A pair's row in words: the detail pane of the picker, and the JSON of ``specchat --pair --list --json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from specchat.pairs.fetching import size_text
from specchat.pairs.measured import Measured
from specchat.pairs.memory import Fit
from specchat.pairs.rows import MatchVerdict, ModelState, PairRow

_FITS: dict[str, tuple[str, str, Literal["good", "fair", "bad"]]] = {
    "fits the GPU": ("✓", "GPU", "good"),
    "fits in memory": ("✓", "memory", "good"),
    "partly on the GPU": ("◐", "part GPU", "fair"),
    "does not fit": ("✗", "too big", "bad"),
}
_PLACES = {"folder": "on disk", "hub": "in the hub's cache", "own": "a file of your own"}


@dataclass(frozen=True, slots=True)
class Detail:
    """A heading of the detail pane with its lines. Names from files stand in them: show them through `safe_text`."""

    heading: str
    lines: tuple[str, ...]


def details(row: PairRow) -> tuple[Detail, ...]:
    """What there is to say about a pair, the most pressing first; headings without anything to say are left out."""
    memory = ("Memory", _memory(row))
    is_short = row.fit is not None and row.fit.verdict in ("does not fit", "partly on the GPU")
    parts = (
        ("Cannot be used", row.problems),
        *((memory,) if is_short else ()),
        ("Vocabulary", _vocabulary(row)),
        ("Measured here", _measured(row)),
        *(() if is_short else (memory,)),
        ("Good to know", (*row.warnings, *((row.pair.pair.note,) if row.pair.pair.note else ()))),
        ("Files", _files(row)),
    )
    found = [Detail(heading, tuple(lines)) for heading, lines in parts]
    return tuple(detail for detail in found if detail.lines)


def where(row: PairRow) -> str:
    """Whether the pair is here, for the table: "on disk", or how much must be fetched."""
    if row.is_here:
        return "on disk"
    return "to fetch" if row.missing is None else f"to fetch {size_text(row.missing)}"


def fit_text(row: PairRow) -> str:
    """How it fits, for the table; with the context where it is not the one that one would expect."""
    if row.fit is None:
        return "not known"
    rough = "about: " if row.fit.is_rough else ""
    shorter = any("The context is" in note for note in row.fit.notes)
    return f"{rough}{row.fit.verdict}" + (f" ({row.fit.n_ctx:,} tokens)" if shorter else "")


def measured_text(row: PairRow) -> str:
    """α and speedup measured here, for the table: ``α 0.78, 1.41×``; "about" marks a prediction."""
    if row.measured is None:
        return "not measured"
    rate = "" if row.measured.acceptance is None else f"α {row.measured.acceptance:.2f}, "
    return f"{rate}{'about ' if row.measured.is_predicted else ''}{row.measured.speedup:.2f}×"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict for the table: a mark that needs no colour, a word or two, and how good it is."""

    mark: str
    word: str
    level: Literal["good", "fair", "bad", "open"]


def fit_verdict(row: PairRow) -> Verdict:
    """Whether it fits, in a word."""
    if row.problems:
        return Verdict("✗", "unusable", "bad")
    if row.fit is None:
        return Verdict("?", "not known" if row.is_examined else "…", "open")
    mark, word, level = _FITS[row.fit.verdict]
    return Verdict(mark, f"~{word}" if row.fit.is_rough else word, level)


def match_verdict(row: PairRow) -> Verdict:
    """Whether the draft has the target's vocabulary, in a word."""
    return _MATCHES[row.match]


def best_text(measured: Measured) -> str:
    """What a measurement recommends; empty where it was not asked."""
    if measured.best is None:
        return ""
    drafter, length, speedup = measured.best
    if drafter == "none":
        return "Recommended here: none. Plain decoding is as fast as anything."
    name = {"draft": "the draft model", "ngram": "n-gram (the text so far)"}.get(drafter, drafter)
    return f"Recommended here: {name} with γ {length}, about {speedup:.2f}×."


def row_json(row: PairRow) -> dict[str, Any]:
    """The row as plain values: sizes in bytes, null for what is not known."""
    fit, found = row.fit, row.compatibility
    difference = None if found is None else found.first_difference
    return {
        "key": row.key,
        "name": row.pair.name,
        "recommended": row.is_recommended,
        "trial": row.pair.pair.trial,
        "note": row.pair.pair.note,
        "target": _model_json(row.target),
        "draft": None if row.draft is None else _model_json(row.draft),
        "size": row.size,
        "missing": row.missing,
        "on_disk": row.is_here,
        "fit": None if fit is None else _fit_json(fit),
        "vocabulary": {
            "verdict": row.match,
            "usable": None if found is None else found.usable,
            "reason": None if found is None else found.reason,
            "first_difference": None if difference is None else asdict(difference),
            "target_only": None if found is None else found.target_only,
            "draft_only": None if found is None else found.draft_only,
        },
        "measured": None if row.measured is None else _measured_json(row.measured),
        "license": row.licenses,
        "problems": list(row.problems),
        "warnings": list(row.warnings),
    }


_MATCHES: dict[MatchVerdict, Verdict] = {
    "same vocabulary": Verdict("✓", "same", "good"),
    "same, padded": Verdict("✓", "padded", "good"),
    "same model": Verdict("✓", "itself", "good"),
    "differs": Verdict("✗", "differs", "bad"),
    "checked when fetched": Verdict("?", "later", "open"),
    "cannot be read": Verdict("✗", "unread", "bad"),
    "no draft": Verdict("–", "no draft", "open"),
}


def _measured_json(measured: Measured) -> dict[str, Any]:
    figures = asdict(measured)
    best = figures.pop("best")
    names = ("drafter", "num_draft_tokens", "speedup")
    recommended = None if best is None else dict(zip(names, best, strict=True))
    return figures | {"pays": measured.pays, "recommended": recommended}


def _fit_json(fit: Fit) -> dict[str, Any]:
    return {
        "verdict": fit.verdict,
        "n_ctx": fit.n_ctx,
        "needed": fit.needed,
        "target_layers_on_gpu": fit.target_layers[0],
        "target_layers": fit.target_layers[1],
        "parts": [asdict(part) for part in fit.parts],
        "devices": [asdict(use) for use in fit.devices],
        "advice": list(fit.advice),
        "notes": list(fit.notes),
        "is_rough": fit.is_rough,
    }


def _model_json(state: ModelState) -> dict[str, Any]:
    return {
        "key": state.model.key,
        "name": state.model.name,
        "path": None if state.path is None else str(state.path),
        "checked": None if state.stored is None else state.stored.checked,
        "size": state.size,
        "missing": state.missing,
        "license": state.license,
    }


def _memory(row: PairRow) -> Iterator[str]:
    fit = row.fit
    if fit is None:
        if not row.problems:
            yield "Not known: the devices, or the files' sizes, are not."
        return
    about = "About: nothing but the files' sizes is known. " if fit.is_rough else ""
    yield f"{about}{fit.verdict[0].upper()}{fit.verdict[1:]}, with a context of {fit.n_ctx:,} tokens."
    yield from (f"{size_text(part.size):>8}  {part.what} ({part.where})" for part in fit.parts)
    for use in fit.devices:
        yield f"{use.name}: {size_text(use.needed)} of {size_text(use.free)} that are free"
    yield from fit.notes
    yield from fit.advice


def _vocabulary(row: PairRow) -> Iterator[str]:
    if row.compatibility is not None:
        yield row.compatibility.reason
    elif row.match == "checked when fetched":
        yield "It is compared once both files are here."
    elif row.match == "same model":
        yield "The target drafts for itself."


def _measured(row: PairRow) -> Iterator[str]:
    measured = row.measured
    if measured is None:
        yield "Not measured."
        return
    plain = f"plain {measured.plain_tokens_per_second:.1f} tokens a second"
    yield f"{measured_text(row)}; {plain} ({measured.measured_at[:10]})."
    if row.draft is not None and not measured.pays:
        yield "Drafting with this model does not pay here: n-gram or none is faster."
    if best := best_text(measured):
        yield best
    elif measured.num_draft_tokens:
        yield f"Best with γ {measured.num_draft_tokens}."


def _files(row: PairRow) -> Iterator[str]:
    for who, state in zip(("target", "draft"), row.states, strict=False):
        size = "? bytes" if state.size is None else size_text(state.size)
        yield f"{who}: {state.model.name}, {size}, {_place(state)}"
        if state.path is not None:
            yield f"  {state.path}"
    yield f"Licence: {row.licenses}"


def _place(state: ModelState) -> str:
    if state.stored is not None:
        return _PLACES[state.stored.place] + ("" if state.stored.checked else ", not checked yet")
    if state.begun:
        return f"to fetch; {size_text(state.begun)} are here already"
    return f"to fetch from {state.model.hub}" if state.model.hub else "to fetch"
