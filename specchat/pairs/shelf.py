"""Fills the rows of the picker's table from files and sizes; nothing is loaded and no connection is opened.

`glance` looks at names and sizes only; `examine` reads the files' headers, compares their vocabularies and reckons the
memory, which takes up to a second a pair and belongs into a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from specchat.backends.gguf_header import GgufHeader, check_can_chat, read_header
from specchat.backends.gguf_tables import SNAPSHOT_ARCHITECTURES
from specchat.errors import ModelFileError
from specchat.pairs.catalog import Model, ModelPair
from specchat.pairs.compatibility import Compatibility, compare_files
from specchat.pairs.fetching import size_text
from specchat.pairs.measured import Measured
from specchat.pairs.memory import Machine, fits
from specchat.pairs.rows import MatchVerdict, ModelState, PairRow
from specchat.pairs.store import begun, locate
from specchat.pairs.unfetched import header_of


def glance(pair: ModelPair, folder: Path) -> PairRow:
    """A pair with what its names and sizes tell; no file is opened.

    Args:
        pair: the pair.
        folder: the models folder.
    """
    target = _state(pair.target, folder)
    if pair.draft is None:
        return PairRow(pair, target, None, match="no draft")
    if pair.draft == pair.target:
        return PairRow(pair, target, target, match="same model")
    return PairRow(pair, target, _state(pair.draft, folder))


def examine(
    row: PairRow,
    machine: Machine | None = None,
    measured: Measured | None = None,
    *,
    n_ctx: int | None = None,
    gpu_layers: int | None = None,
) -> PairRow:
    """The row with what the files tell: vocabularies, memory, what one should know. Nothing is loaded.

    Args:
        row: from `glance`.
        machine: what there is to hold the pair; None leaves the fit out.
        measured: what was measured of the pair here.
        n_ctx: tokens of context; None for the default.
        gpu_layers: layers of the target on GPUs; None for as many as fit.
    """
    problems: list[str] = []
    target, draft = (_read(state, problems) for state in (row.target, row.draft))
    match, compatibility = _match(row, target, draft, problems)
    fit = None
    if machine is not None and not problems:
        outlines = [_outline(state, header) for state, header in ((row.target, target), (row.draft, draft)) if state]
        if None not in outlines:
            known = [outline for outline in outlines if outline is not None]
            fit = fits(
                known[0],
                known[1] if len(known) > 1 else None,
                machine,
                n_ctx=n_ctx,
                gpu_layers=gpu_layers,
                is_rough=any(state.stored is None and state.model.network is None for state in row.states),
            )
    return replace(
        row,
        target=_with_license(row.target, target),
        draft=None if row.draft is None else _with_license(row.draft, draft),
        fit=fit,
        match=match,
        compatibility=compatibility,
        measured=measured,
        problems=tuple(problems),
        warnings=tuple(_warnings(row, target, draft, compatibility)),
        is_examined=True,
    )


def _state(model: Model, folder: Path) -> ModelState:
    stored = locate(model, folder)
    size = stored.size if stored is not None else model.size
    return ModelState(model, stored, size, 0 if stored else begun(model, folder), model.license)


def _read(state: ModelState | None, problems: list[str]) -> GgufHeader | None:
    """The header of a file that is here; what is wrong with it becomes a problem."""
    if state is None:
        return None
    if state.path is None:
        if state.model.path is not None:
            problems.append(
                f"There is no file {state.model.path}. Put it back, or remove the pair from your models.toml."
            )
        return None
    try:
        header = read_header(state.path)
        check_can_chat(header)
    except ModelFileError as error:
        problem = f"{error.message} {error.next_step}"
        if problem not in problems:
            problems.append(problem)
        return None
    return header


def _match(
    row: PairRow, target: GgufHeader | None, draft: GgufHeader | None, problems: list[str]
) -> tuple[MatchVerdict, Compatibility | None]:
    if row.match in ("no draft", "same model"):
        return row.match, None
    if problems:
        return "cannot be read", None
    if target is None or draft is None:
        return "checked when fetched", None
    try:
        found = compare_files(target, draft)
    except ModelFileError as error:
        problems.append(f"{error.message} {error.next_step}")
        return "cannot be read", None
    if not found.usable:
        return "differs", found
    return ("same, padded" if found.target_only or found.draft_only else "same vocabulary"), found


def _outline(state: ModelState, header: GgufHeader | None) -> GgufHeader | None:
    """What is known of a model's sizes, from its file or from the catalogue."""
    if header is not None or state.size is None:
        return header
    return header_of(state.model.network, state.model.file or state.model.key, state.size)


def _with_license(state: ModelState, header: GgufHeader | None) -> ModelState:
    stated = state.license or (header.text("general.license") if header else None)
    return replace(state, license=stated)


def _warnings(
    row: PairRow, target: GgufHeader | None, draft: GgufHeader | None, compatibility: Compatibility | None
) -> Iterable[str]:
    if compatibility is not None and not compatibility.usable:
        yield f"{compatibility.reason} Choose a draft of the target's own family, or --draft ngram."
    yield from compatibility.notes if compatibility else ()
    sizes = [state.size or 0 for state in row.states]
    if len(sizes) == 2 and sizes[1] > sizes[0] > 0:
        yield (
            f"The draft ({size_text(sizes[1])}) is larger than its target ({size_text(sizes[0])}): drafting cannot pay."
            " Exchange them, or choose a smaller draft."
        )
    for who, header in (("target", target), ("draft", None if row.match == "same model" else draft)):
        if header is not None and header.is_recurrent:
            kept = header.architecture in SNAPSHOT_ARCHITECTURES
            how = "a few tokens can be taken back, more" if kept else "drafted tokens that are refused"
            yield f"The {who} keeps a running state, which cannot be cut: {how} are evaluated again. It costs time."
