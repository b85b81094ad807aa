"""Any target with any draft: pairs that a person makes, and how they are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from specchat.errors import ModelFileError
from specchat.pairs.catalog import Catalog, Model, ModelPair, Pair, model_from_file

Free: TypeAlias = Literal["none", "ngram"]
"""What can stand in a draft's place: nothing, or the text so far."""

FREE: tuple[Free, ...] = ("ngram", "none")


def pair_of(target: Model, draft: Model | Free) -> ModelPair:
    """The target with another draft, or without one."""
    if isinstance(draft, Model):
        pair = Pair(key=f"{target.key}+{draft.key}", target=target.key, draft=draft.key)
        return ModelPair(pair, target, draft)
    key = target.key if draft == "none" else f"{target.key}+ngram"
    return ModelPair(Pair(key=key, target=target.key, draft=None if draft == "none" else draft), target, None)


def reference(model: Model | Free) -> str:
    """What a model is remembered by: its name in the catalogue, or its file."""
    if isinstance(model, str):
        return model
    return model.key if model.path is None else model.path


def references(pair: ModelPair) -> tuple[str, str]:
    """What a pair is remembered by."""
    return reference(pair.target), pair.drafter if pair.draft is None else reference(pair.draft)


def remembered_pair(target: str, draft: str, catalog: Catalog) -> ModelPair | None:
    """The pair that was remembered by these two references; None where one of them is not there any more."""
    first = _model(target, catalog.models)
    second: Model | Free | None = next((free for free in FREE if free == draft), None) or _model(draft, catalog.models)
    return None if first is None or second is None else pair_of(first, second)


def _model(text: str, models: Mapping[str, Model]) -> Model | None:
    if text in models:
        return models[text]
    try:
        return model_from_file(Path(text)) if Path(text).is_absolute() else None
    except (ModelFileError, OSError, ValueError):
        return None
