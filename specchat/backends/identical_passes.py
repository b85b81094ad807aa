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
    as long as 4n single steps, and the sequence is empty afterwards.

    Args:
        model: the model as it will be used. What it holds in ``sequence`` is lost.
        upto: the largest pass to try, at most ``max_batch`` and ``max_logits``.
        sequence: which sequence to use.
    """
    upto = min(upto, model.max_batch, model.max_logits, model.n_ctx // 2 - 1)
    rng = np.random.default_rng(0)
    ids = [int(token) for token in rng.integers(0, model.vocabulary.n_vocab, 4 * (upto + 16))]
    ids = [token for token in ids if not model.vocabulary.is_control(token)][: upto + 9]
    prompt, ids = ids[:8], ids[8:]
    try:
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


def _restart(model: LanguageModel, sequence: int, prompt: list[int]) -> None:
    model.truncate(sequence, 0)
    model.decode([PassInput(sequence, prompt, 0)])
