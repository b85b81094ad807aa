"""Up to which size a pass of several tokens gives the very bits that single tokens give: the limit of *exact* mode.

llama.cpp computes a pass of several tokens with other routines than a single one, and sums differ in the last bits;
near-ties then flip (product.md, "Greedy").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specchat.backends.base import LanguageModel, PassInput

_SHORT, _LONG = 8, 300
"""Tokens before the passes that are tried: attention over more than 256 takes other routines on a CPU."""


def largest_identical_pass(model: LanguageModel, upto: int, *, sequence: int = 0) -> int:
    """The largest n up to which passes of n tokens give the very bits that passes of single tokens give.

    Up to this n greedy decoding with n - 1 drafted tokens writes exactly what plain decoding writes. Every n is tried
    after a short text and once more after a longer one. It takes about as long as n² / 2 single steps at most and
    reading that text, and the sequence is empty afterwards.

    Args:
        model: the model as it will be used. What it holds in ``sequence`` is lost.
        upto: the largest pass to try, at most ``max_batch`` and ``max_logits``.
        sequence: which sequence to use.
    """
    short = min(_SHORT, model.max_batch)
    upto = min(upto, model.max_batch, model.max_logits, model.n_ctx - short - 1)
    if upto < 2:
        return 1
    try:
        found = _first_run(model, sequence, short, range(2, upto + 1))
        if found > 1 and _LONG + found + 1 <= model.n_ctx:
            found = _first_run(model, sequence, _LONG, range(2, found + 1))
        return found
    finally:
        model.truncate(sequence, 0)


def _first_run(model: LanguageModel, sequence: int, num_before: int, sizes: Sequence[int]) -> int:
    """The last of these ascending sizes up to which all are identical after so many tokens; 1 where none is."""
    ids = _ordinary_tokens(model, num_before + sizes[-1] + 1)
    before, ids = ids[:num_before], ids[num_before:]
    model.truncate(sequence, 0)
    _restart(model, sequence, before)
    single = [model.decode([PassInput(sequence, [token], 1)])[0][0].copy() for token in ids]
    identical = 1
    for size in sizes:
        _restart(model, sequence, before)
        together = model.decode([PassInput(sequence, ids[:size], size)])[0].copy()
        # one more token reads what the pass wrote into the cache
        after = model.decode([PassInput(sequence, ids[size : size + 1], 1)])[0]
        if not np.array_equal(np.concatenate([together, after]), np.array(single[: size + 1])):
            break
        identical = size
    return identical


def _ordinary_tokens(model: LanguageModel, count: int) -> list[int]:
    """Ids that are no control tokens, always the same ones; with repetitions where there are few."""
    ids = np.random.default_rng(0).integers(0, model.vocabulary.n_vocab, 100 * count).tolist()
    ordinary = [token for token in ids if not model.vocabulary.is_control(token)]
    return (ordinary or ids)[:count]


def _restart(model: LanguageModel, sequence: int, before: list[int]) -> None:
    """Makes the cache hold these tokens, always evaluated in the same passes."""
    if model.truncate(sequence, len(before)) < len(before):
        model.truncate(sequence, 0)
        for start in range(0, len(before), model.max_batch):
            model.decode([PassInput(sequence, before[start : start + model.max_batch], 0)])
