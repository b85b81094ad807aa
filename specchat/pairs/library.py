"""The models on this disk that are not the catalogue's own: what else a person could chat with or draft with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from specchat.pairs.catalog import Catalog
from specchat.pairs.found import FoundModel, LeftOut, find_models
from specchat.pairs.places import known_places
from specchat.pairs.store import locate


@dataclass(frozen=True, slots=True)
class Library:
    """Models that were found, in the order of the places, and what was left out of them with the reasons."""

    models: tuple[FoundModel, ...]
    left_out: tuple[LeftOut, ...]


def other_models(
    catalog: Catalog, folder: Path, added: Iterable[str] = (), cancelled: Callable[[], bool] = lambda: False
) -> Library:
    """Looks through all known places; about 0.1 seconds a model.

    Args:
        catalog: whose models are left out: they have rows of their own.
        folder: the models folder.
        added: files and folders that the person added.
        cancelled: asked between files whether to stop.
    """
    stored = (locate(model, folder) for model in catalog.models.values())
    own = {each.path.resolve() for each in stored if each is not None}
    findings = list(find_models(known_places(folder, added), cancelled))
    models = (each for each in findings if isinstance(each, FoundModel) and each.path.resolve() not in own)
    return Library(tuple(models), tuple(each for each in findings if isinstance(each, LeftOut)))
