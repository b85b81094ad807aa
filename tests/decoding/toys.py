"""Drafters and models for the decoder's tests."""

from collections.abc import Sequence

import numpy as np

from specchat.backends.base import Draft, PassInput
from specchat.backends.markov import MarkovModel
from specchat.core.events import Round
from specchat.core.sampling import distribution
from specchat.errors import DecodeError


class ChainDrafter:
    """Draws from a Markov model without a cache: the shortest drafter that is honest about its q."""

    name = "chain"

    def __init__(self, model: MarkovModel) -> None:
        self.model = model
        self.observed: list[tuple[int, int]] = []

    def behind(self, context):
        return 0

    def prefill(self, prompt, should_stop):
        return None

    def propose(self, context, length, limit, params, rng):
        tokens, q = [], []
        history = list(context)
        if not length.pays(1):
            return Draft((), (), self.name)
        evaluated = 0
        while len(tokens) < limit:
            [row] = MarkovModel(self.model.transitions).decode([PassInput(0, history[-1:], 1)])
            evaluated += 1
            there = distribution(row[0], params, history)
            if not length.more(len(tokens), there, row[0]):
                break
            tokens.append(there.sample(rng))
            q.append(there)
            history.append(tokens[-1])
            if self.model.vocabulary.is_end(tokens[-1]) or not length.go_on(len(tokens), there.probability(tokens[-1])):
                break
        return Draft(tuple(tokens), tuple(q), self.name, evaluated=evaluated)

    def observe(self, draft, num_accepted, committed):
        self.observed.append((num_accepted, len(committed)))


class ScriptedDrafter(ChainDrafter):
    """Proposes given tokens with certainty, whatever the context."""

    name = "scripted"

    def __init__(self, model: MarkovModel, blocks: Sequence[Sequence[int]]) -> None:
        super().__init__(model)
        self.blocks = list(blocks)

    def propose(self, context, length, limit, params, rng):
        from specchat.core.sampling import Distribution

        block = tuple(self.blocks.pop(0))[:limit] if self.blocks else ()
        return Draft(block, tuple(Distribution.one_hot(token) for token in block), self.name)


class ForgetfulModel(MarkovModel):
    """A cache that can only be cut to nothing, like a recurrent state without checkpoints."""

    def truncate(self, sequence, length):
        return super().truncate(sequence, length if length >= len(self.tokens(sequence)) else 0)


class FailingModel(MarkovModel):
    """Fails in the pass of that number."""

    fail_at = 10**9
    passes = 0

    def decode(self, inputs):
        self.passes += 1
        if self.passes == self.fail_at:
            raise DecodeError("The device was lost.", "Load the pair again.")
        return super().decode(inputs)


def rounds(events) -> list[Round]:
    return [event for event in events if isinstance(event, Round)]


def reply_tokens(events) -> list[int]:
    return [token.id for event in rounds(events) for token in event.committed]


def cyclic(n_vocab: int) -> np.ndarray:
    """Each state is followed by the next one, with certainty."""
    return np.roll(np.eye(n_vocab), 1, axis=1)
