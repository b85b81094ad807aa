"""Up to which size a pass of several tokens gives the very bits that single tokens give: the limit of *exact* mode.

llama.cpp computes a pass of several tokens with other routines than a single one, and sums differ in the last bits;
near-ties then flip (product.md, "Greedy").
"""

from __future__ import annotations

import numpy as np

from specchat.backends.base import LanguageModel, PassInput


def largest_identical_pass(model: LanguageModel, upto: int, *, sequence: int = 0) -> int:
    """The largest n up to which passes of n tokens give the very bits that passes of single tokens give.

    Up to this n greedy decoding with n - 1 drafted tokens writes exactly what plain decoding writes. It takes about
    as long as 5n single steps, and the sequence is empty afterwards.

    Args:
        model: the model as it will be used. What it holds in ``sequence`` is lost.
        upto: the largest pass to try, at most ``max_batch`` and ``max_logits``.
        sequence: which sequence to use.
    """
    prompt_length = min(8, model.max_batch)
    upto = min(upto, model.max_batch, model.max_logits, model.n_ctx - prompt_length - 1)
    ids = _ordinary_tokens(model, prompt_length + max(upto, 1) + 1)
    prompt, ids = ids[:prompt_length], ids[prompt_length:]
    if upto < 2:
        return 1
    try:
        model.truncate(sequence, 0)
        _restart(model, sequence, prompt)
        single = [model.decode([PassInput(sequence, [token], 1)])[0][0].copy() for token in ids]
        for size in range(2, upto + 1):
            _restart(model, sequence, prompt)
            together = model.decode([PassInput(sequence, ids[:size], size)])[0].copy()
            # one more token reads what the pass wrote into the cache
            after = model.decode([PassInput(sequence, ids[size : size + 1], 1)])[0]
            if not np.array_equal(np.concatenate([together, after]), np.array(single[: size + 1])):
                return size - 1
        return upto
    finally:
        model.truncate(sequence, 0)


def _ordinary_tokens(model: LanguageModel, count: int) -> list[int]:
    """Ids that are no control tokens, always the same ones; with repetitions where there are few."""
    ids = np.random.default_rng(0).integers(0, model.vocabulary.n_vocab, 100 * count).tolist()
    ordinary = [token for token in ids if not model.vocabulary.is_control(token)]
    return (ordinary or ids)[:count]


def _restart(model: LanguageModel, sequence: int, prompt: list[int]) -> None:
    """Makes the cache hold the prompt, always evaluated in one pass."""
    if model.truncate(sequence, len(prompt)) < len(prompt):
        model.truncate(sequence, 0)
        model.decode([PassInput(sequence, prompt, 0)])
