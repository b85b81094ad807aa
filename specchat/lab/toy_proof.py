"""``specchat verify --toy``: the decoding loop on a Markov pair, held against the law that the target really has.

Each setting writes one long reply. What follows a state, and what follows two, must come as often as the transition
matrix says; and so must the tokens that the draft overrates, which mistakes of a rule bring too often or too seldom.
The law is worked out here from the matrix and the settings alone, not by the code that is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from specchat.core.events import Event, Round
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import ReplySettings, Rule
from specchat.lab.checks import Tested
from specchat.lab.engine_talk import OnProgress
from specchat.lab.goodness_of_fit import Table, binomial_fit, chi_square_fit

Matrix = NDArray[np.float64]
"""``[n, n]``: row i is the law of what follows state i."""
Write = Callable[[ReplySettings], Iterable[Event]]
"""Writes one reply with these settings."""

NUM_TOKENS = 6_000
"""The length of each reply, unless told otherwise."""
RULES: tuple[Rule, ...] = ("token", "block", "match")
_WHOLE = SamplingParams(temperature=0.7, top_k=0, top_p=1.0, min_p=0.0)
_CUT = SamplingParams(temperature=0.7, top_k=4, top_p=0.95, min_p=0.05)
WAYS: tuple[tuple[SamplingParams, str, int | None], ...] = (
    (_WHOLE, "stranger", 4),
    (_CUT, "stranger", 1),
    (_WHOLE, "blurred", None),
    (_CUT, "blurred", None),
)
"""How replies are written, with every rule: what is drawn from, the drafter, and γ.

A stranger's tokens are mostly refused: with γ 4 the residual shows, with γ 1 the bonus token. None is the adaptive
length rule, which would seldom ask a stranger.
"""
_OVERRATED = 1e-3
"""By how much q exceeds p for a token that the draft overrates."""


@dataclass(frozen=True, slots=True)
class ToyWorld:
    """A pair whose law is known.

    Attributes:
        target: what it draws from at temperature 1.
        drafts: the same of the drafts, by name.
        start: the state that a reply follows.
        write: has the decoding loop write a reply, speculatively.
    """

    target: Matrix
    drafts: Mapping[str, Matrix]
    start: int
    write: Write


@dataclass(frozen=True, slots=True)
class Counted:
    """What a reply brought: how often each token followed each other one, and each two. ``[n, n]``, ``[n, n, n]``."""

    settings: ReplySettings
    pairs: NDArray[np.int64]
    triples: NDArray[np.int64]


@dataclass(slots=True)
class ToyProof:
    """The replies of the settings that were finished; ``complete`` tells whether all were."""

    world: ToyWorld
    num_tokens: int
    replies: list[Counted] = field(default_factory=list)
    complete: bool = False

    @property
    def tokens_a_rule(self) -> int:
        """How many tokens were counted with each rule whose replies are finished."""
        return min((int(reply.pairs.sum()) for reply in self.replies), default=0) * len(WAYS)

    def tests(self) -> list[Tested]:
        """Two tests of each reply, and one of all replies with the same rule."""
        rules = dict.fromkeys(reply.settings.rule for reply in self.replies)
        return [
            *(test for reply in self.replies for test in _tests(self.world, reply)),
            *(_overrated(self.world, [each for each in self.replies if each.settings.rule == rule]) for rule in rules),
        ]


def toy_settings(num_tokens: int = NUM_TOKENS, seed: int = 1) -> list[ReplySettings]:
    """Every rule in every way, each with a seed of its own."""
    return [
        ReplySettings(
            sampling=sampling,
            num_draft_tokens=length,
            rule=rule,
            drafter=drafter,
            max_tokens=num_tokens,
            seed=seed * 1000 + i,
        )
        for i, (rule, (sampling, drafter, length)) in enumerate(product(RULES, WAYS))
    ]


def prove_toy(
    world: ToyWorld,
    settings: Sequence[ReplySettings],
    on_progress: OnProgress = lambda *_: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> ToyProof:
    """Writes a reply with each of the settings and tests it."""
    proof = ToyProof(world, max((each.max_tokens or 0 for each in settings), default=0))
    for i, each in enumerate(settings):
        tokens = [world.start]
        for played in _rounds(world.write(each)):
            if should_stop():
                return proof
            tokens += [token.id for token in played.committed]
            share = min(1.0, len(tokens) / (each.max_tokens or len(tokens)))
            on_progress("toy replies", (i + share) / len(settings), label(each))
        proof.replies.append(_count(each, np.array(tokens), world.target.shape[0]))
    proof.complete = True
    return proof


def label(settings: ReplySettings) -> str:
    """A setting in a few words."""
    length = "auto" if settings.num_draft_tokens is None else settings.num_draft_tokens
    truncated = " cut" if settings.sampling.truncates else ""
    return f"{settings.rule}, {settings.drafter} γ{length}{truncated}"


def exact_law(matrix: Matrix, params: SamplingParams) -> Matrix:
    """What is really drawn from: top-k, top-p, min-p and temperature in llama.cpp's order, row by row."""
    return np.array([_sampled(row, params) for row in matrix])


def _sampled(row: NDArray[np.float64], params: SamplingParams) -> NDArray[np.float64]:
    law = np.zeros(row.size)
    if params.temperature == 0:
        law[row.argmax()] = 1.0
        return law
    order = np.argsort(-row, kind="stable")
    kept = order[: params.top_k or row.size]
    if params.top_p < 1:
        before = row[kept].cumsum() - row[kept]  # what the more likely ones hold
        kept = kept[before < params.top_p * row[kept].sum()]
    kept = kept[row[kept] >= params.min_p * row.max()]
    law[kept] = row[kept] ** (1 / params.temperature)
    law /= law.sum()
    return law


def _rounds(events: Iterable[Event]) -> Iterator[Round]:
    return (event for event in events if isinstance(event, Round))


def _count(settings: ReplySettings, tokens: NDArray[np.int64], num_states: int) -> Counted:
    pairs = np.zeros((num_states,) * 2, dtype=np.int64)
    np.add.at(pairs, (tokens[:-1], tokens[1:]), 1)
    triples = np.zeros((num_states,) * 3, dtype=np.int64)
    np.add.at(triples, (tokens[:-2], tokens[1:-1], tokens[2:]), 1)
    return Counted(settings, pairs, triples)


def _tests(world: ToyWorld, reply: Counted) -> Iterator[Tested]:
    law = exact_law(world.target, reply.settings.sampling)
    subject = label(reply.settings)
    yield Tested(subject, "what follows a token", chi_square_fit(_tables(reply.pairs, law)))
    after_two = (table for counts in reply.triples for table in _tables(counts, law))
    yield Tested(subject, "what follows two tokens", chi_square_fit(after_two))


def _overrated(world: ToyWorld, replies: Sequence[Counted]) -> Tested:
    """Whether tokens that q overrates come as often as p says, over all replies with one rule.

    A mistake of the rule brings all of them too often, or too seldom: one figure shows it long before the others do.
    """
    groups: list[tuple[int, float]] = []
    successes = 0
    for reply in replies:
        params = reply.settings.sampling
        law = exact_law(world.target, params)
        drawn_with = replace(params, temperature=0.0) if reply.settings.rule == "match" else params
        overrated = exact_law(world.drafts[reply.settings.drafter], drawn_with) > law + _OVERRATED
        chances = (law * overrated).sum(axis=1)
        groups += zip(reply.pairs.sum(axis=1).tolist(), chances.tolist(), strict=True)
        successes += int(reply.pairs[overrated].sum())
    return Tested(
        f"{replies[0].settings.rule}, all", "tokens that the draft overrates", binomial_fit(successes, groups)
    )


def _tables(counts: NDArray[np.int64], law: Matrix) -> Iterator[Table]:
    return zip(counts, law, strict=True)
