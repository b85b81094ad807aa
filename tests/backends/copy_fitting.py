"""Fits the first weights of the copy drafter to recorded replies: ``python -m tests.backends.copy_fitting``.

It writes specchat/backends/copy_weights.py. Only the replies that are marked for it are used, so that the others tell
what the weights are worth. Run it again when features are added, changed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from specchat.backends import copy_weights
from specchat.backends.copy_chances import Chances, Feature
from specchat.backends.copying import CopyDrafter
from tests.backends.recorded_replies import RecordedVocabulary, Reply, recorded

PENALTY = 1.0
"""On the squares of the weights."""
_STEPS, _FIRST_RATE, _LAST_RATE = 400, 0.1, 0.03
_LARGEST_SCORE = 12.0

Listed = list[tuple[bool, tuple[Feature, ...]]]
"""The candidates at one token of a reply: whether each is right, and its features."""


def listed(reply: Reply, vocabulary: RecordedVocabulary) -> Iterable[Listed]:
    """What the drafter sees before each token of a reply. The weights play no part in it."""
    drafter = CopyDrafter(vocabulary, Chances(rate=0.0))
    drafter._follow(reply.prompt)
    for token in reply.tokens:
        candidates = drafter._candidates()
        yield [(candidate.token == token, candidate.features) for candidate in candidates]
        if candidates:
            drafter._chances.learn(candidates, token)
        drafter._reading.advance(token)


class Table:
    """All of it as arrays: one row for each feature of each candidate of each token."""

    def __init__(self, tokens: Iterable[Listed]) -> None:
        self.names: list[str] = []
        numbers: dict[str, int] = {}
        of_candidate, of_feature, values, of_token, right = [], [], [], [], []
        self.num_tokens = 0
        for candidates in tokens:
            for is_right, features in candidates:
                for name, value in features:
                    of_candidate.append(len(right))
                    of_feature.append(numbers.setdefault(name, len(numbers)))
                    values.append(value)
                of_token.append(self.num_tokens)
                right.append(float(is_right))
            self.num_tokens += 1
        self.names = list(numbers)
        self._of_candidate, self._of_feature, self._of_token = map(np.array, (of_candidate, of_feature, of_token))
        self._values, self._right = np.array(values), np.array(right)
        self._is_listed = np.bincount(self._of_token, self._right, self.num_tokens) > 0

    def loss(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """−log P of all tokens, "none of them" where that was right, and its gradient."""
        scores = np.bincount(self._of_candidate, weights[self._of_feature] * self._values, self._right.size)
        masses = np.exp(np.minimum(scores, _LARGEST_SCORE))
        total = 1 + np.bincount(self._of_token, masses, self.num_tokens)
        right = np.where(self._is_listed, np.bincount(self._of_token, masses * self._right, self.num_tokens), 1.0)
        slopes = masses / total[self._of_token]
        slopes -= np.where(self._is_listed[self._of_token], masses * self._right / right[self._of_token], 0.0)
        gradient = np.bincount(self._of_feature, slopes[self._of_candidate] * self._values, weights.size)
        return float(np.log(total / right).sum()), gradient


def fit(table: Table) -> dict[str, float]:
    """The weights of the largest penalised likelihood, by Adam (Kingma and Ba 2015) on all tokens at once."""
    weights, mean, square = (np.zeros(len(table.names)) for _ in range(3))
    for step in range(1, _STEPS + 1):
        gradient = table.loss(weights)[1] + 2 * PENALTY * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        rate = _FIRST_RATE if step < 0.6 * _STEPS else _LAST_RATE
        weights -= rate * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return dict(zip(table.names, weights.round(2).tolist(), strict=True))


def table_to_fit() -> Table:
    """Of the replies that are there to be fitted."""
    data = recorded()
    return Table(tokens for reply in data.replies if reply.is_for_fitting for tokens in listed(reply, data.vocabulary))


def main() -> None:
    lines = "".join(f'    "{name}": {weight},\n' for name, weight in sorted(fit(table_to_fit()).items()))
    Path(copy_weights.__file__).write_text(
        '"""What speaks for a candidate of the copy drafter, as tests/backends/copy_fitting.py has found it."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Final\n\n"
        f"FIRST_WEIGHTS: Final[dict[str, float]] = {{\n{lines}}}\n"
        '"""By the names of features (see `specchat.backends.copy_candidates`)."""\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
