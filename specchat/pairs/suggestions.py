"""Pairs made of models that people have: each found model with the smallest other one that can draft for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from specchat.backends.gguf_header import GgufHeader
from specchat.errors import ModelFileError
from specchat.pairs.catalog import ModelPair, Pair
from specchat.pairs.compatibility import compare_files
from specchat.pairs.found import FoundModel

_LARGEST_SHARE = 1 / 3
"""Of the target's size: a larger draft takes too long."""
_FIRST_TOKENS = 4096


def suggest_pairs(found: Sequence[FoundModel], cancelled: Callable[[], bool] = lambda: False) -> list[ModelPair]:
    """One pair for each model, in their order; without a draft where none of the others has its vocabulary.

    Reads vocabularies: about 0.1 seconds a model, and 0.5 a comparison.
    """
    groups: dict[str, list[FoundModel]] = {}
    for each in found:
        if cancelled():
            return []
        groups.setdefault(_fingerprint(each.header), []).append(each)
    drafts = {each.path: _draft_for(each, group, cancelled) for group in groups.values() for each in group}
    taken: set[str] = set()
    return [_pair(each, drafts[each.path], taken) for each in found]


def _fingerprint(header: GgufHeader) -> str:
    """The same for all vocabularies that could match: cheap to compare, and never different for a pair that fits."""
    digest = hashlib.sha256((header.text("tokenizer.ggml.model") or "").encode())
    try:
        tokens = header.tokens()
    except ModelFileError:
        return str(header.path)
    for token in tokens[:_FIRST_TOKENS]:
        digest.update(token + b"\0")
    return digest.hexdigest()


def _draft_for(target: FoundModel, group: Sequence[FoundModel], cancelled: Callable[[], bool]) -> FoundModel | None:
    for draft in sorted(group, key=lambda each: each.size):
        if draft.size > target.size * _LARGEST_SHARE or cancelled():
            break
        try:
            if compare_files(target.header, draft.header).usable:
                return draft
        except ModelFileError:  # gone, just now
            continue
    return None


def _pair(target: FoundModel, draft: FoundModel | None, taken: set[str]) -> ModelPair:
    model = target.model
    key = model.key if draft is None else f"{model.key}+{draft.model.key}"
    number = 1
    while key in taken:  # the same name in two places
        number += 1
        key = f"{key.removesuffix(f'-{number - 1}')}-{number}"
    taken.add(key)
    note = f"Found: {target.origin}."
    pair = Pair(key=key, target=model.key, draft=None if draft is None else draft.model.key, note=note)
    return ModelPair(pair, model, None if draft is None else draft.model)
