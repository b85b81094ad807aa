"""What the copy drafter is worth on replies of a real target, and whether its chances are honest.

Held out are the rewritings and summaries of ``specchat bench``, half of its free replies, everything at temperature 0.7
and half of the scripted rewritings: the first weights were fitted to the rest. Nothing here depends on the machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate
from operator import mul

import numpy as np
import pytest

from specchat.backends.copy_weights import FIRST_WEIGHTS
from specchat.backends.copying import CopyDrafter
from specchat.core.draft_length import FixedLength
from specchat.core.sampling import SamplingParams
from tests.backends.copy_fitting import PENALTY, fit, table_to_fit
from tests.backends.listening import Listening
from tests.backends.prompt_lookup import PromptLookup
from tests.backends.recorded_replies import Reply, recorded
from tests.backends.replaying import TWO_CORES, Played, fast, hindsight, play

DATA = recorded()
HELD_OUT = [reply for reply in DATA.replies if not reply.is_for_fitting]
KINDS = {"a check in each method": ["add checks"], "a renaming": ["rename"], "docstrings": ["docstrings", "加注释"]}


def played(replies: Iterable[Reply]) -> Played:
    """Each by a drafter and a length rule that have seen no reply before."""
    return Played.together(play(reply, CopyDrafter(DATA.vocabulary), fast()) for reply in replies)


def held_out(*categories: str, temperature: float = 0.0, is_scripted: bool = False) -> list[Reply]:
    return [
        reply
        for reply in HELD_OUT
        if reply.category in categories and reply.temperature == temperature and reply.is_scripted is is_scripted
    ]


def test_rewriting_is_half_as_fast_again() -> None:
    kinds = {kind: played(map(DATA.named, names)).speedup for kind, names in KINDS.items()}
    assert sum(kinds.values()) / len(kinds) > 1.5
    assert min(kinds.values()) > 1.3
    assert played(held_out("rewriting")).speedup > 1.4


@pytest.mark.parametrize(
    ("categories", "temperature", "is_scripted", "floor"),
    [
        (["summary"], 0.0, False, 1.7),
        (["rewriting"], 0.7, False, 1.3),
        (["summary"], 0.7, False, 1.3),
        (["rewriting"], 0.0, True, 1.4),
    ],
)
def test_other_text_that_is_copied_gains_too(categories, temperature, is_scripted, floor) -> None:
    assert played(held_out(*categories, temperature=temperature, is_scripted=is_scripted)).speedup > floor


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("category", ["code", "chat", "mathematics", "list"])
def test_where_nothing_is_copied_nothing_is_lost(category, temperature) -> None:
    replies = [reply for reply in DATA.replies if (reply.category, reply.temperature) == (category, temperature)]
    assert played(replies).speedup > 0.98


@pytest.mark.parametrize("name", [name for names in KINDS.values() for name in names])
def test_it_is_ahead_of_any_prompt_lookup_chosen_with_hindsight(name) -> None:
    """Fixed lengths after matches of a fixed length, the best for this very reply."""
    reply = DATA.named(name)
    lookups = (
        play(reply, PromptLookup(match), FixedLength(length)).speedup
        for match in (3, 4, 6, 8, 12)
        for length in (3, 5, 8, 15, 16)
    )
    assert played([reply]).speedup > 1.01 * max(lookups)


def test_most_of_what_its_proposals_allow_is_reached() -> None:
    """Against the lengths of hindsight. What is missing is that nobody knows beforehand where a copy ends."""
    reached, possible, tokens = 0.0, 0.0, 0
    for reply in held_out("rewriting"):
        drafter, context, right = CopyDrafter(DATA.vocabulary), list(reply.prompt), []
        for written, token in enumerate(reply.tokens):
            draft = drafter.propose(context, FixedLength(31), 31, SamplingParams(), np.random.default_rng(0))
            left = reply.tokens[written:]
            right.append(next((i for i, x in enumerate(draft.tokens) if x != left[i : i + 1][0]), len(draft)))
            context.append(token)
        tokens += len(right)
        possible += len(right) / hindsight(right)
        reached += play(reply, CopyDrafter(DATA.vocabulary), fast()).cost
    assert possible / reached > 0.8
    assert tokens / possible < 1.9, "proposals have got better: raise what is asked for above"


def test_chances_are_honest() -> None:
    """Of all tokens that were promised with such a chance, after those before them had come, so many came.

    A token is promised again and again while the copy comes nearer to it; it counts once, with the mean of its chances.
    """
    tokens: defaultdict[tuple[int, int], list[tuple[float, bool]]] = defaultdict(list)
    for number, reply in enumerate(HELD_OUT):
        drafter, context, length = CopyDrafter(DATA.vocabulary), list(reply.prompt), Listening(64)
        for written, token in enumerate(reply.tokens):
            length.chances = []
            proposed = drafter.propose(context, length, 16, SamplingParams(), np.random.default_rng(0)).tokens
            looked_at = zip(length.chances, proposed, reply.tokens[written:], strict=False)
            for at, (chance, claim, truth) in enumerate(looked_at, written):
                tokens[number, at].append((chance, claim == truth))
                if claim != truth:
                    break
            context.append(token)
    promises = np.array([np.mean(each, axis=0) for each in tokens.values()])
    for least in np.arange(0, 1, 0.1):
        inside = promises[(promises[:, 0] >= least) & (promises[:, 0] < least + 0.1)]
        assert len(inside) > 50
        mean, share = inside.mean(axis=0)
        assert abs(share - mean) < 0.08, (mean, share, len(inside))
    assert len(promises[promises[:, 0] > 0.9]) > 2000


def test_a_drafter_that_has_seen_other_replies_before_is_no_worse() -> None:
    drafter, length, parts = CopyDrafter(DATA.vocabulary), fast(), {}
    for reply in HELD_OUT:
        length.begin_reply()
        parts.setdefault((reply.category, reply.is_scripted, reply.temperature), []).append(
            play(reply, drafter, length)
        )
    speedups = {key: Played.together(each).speedup for key, each in parts.items()}
    assert speedups["rewriting", False, 0.0] > 1.4
    assert min(speedups.values()) > 0.97


def test_the_weights_are_those_that_the_fit_gives() -> None:
    """Fit them again (tests/backends/copy_fitting.py) when features change."""
    table = table_to_fit()
    fresh = fit(table)
    assert set(fresh) == set(FIRST_WEIGHTS)

    def penalised(weights: dict[str, float]) -> float:
        values = np.array([weights[name] for name in table.names])
        return table.loss(values)[0] + PENALTY * float(values @ values)

    assert penalised(FIRST_WEIGHTS) < penalised(fresh) * 1.002


def test_a_proposal_is_no_better_than_the_best_lengths_make_it() -> None:
    """The arithmetic of hindsight: all right is one full pass after another, nothing right is plain decoding."""
    assert hindsight([0] * 50) == 1
    everything = hindsight(list(range(159, -1, -1)))
    assert everything == pytest.approx(160 / (5 * TWO_CORES.passes[32]), rel=0.02)
    assert hindsight([3, 2, 1, 0]) == pytest.approx(4 / TWO_CORES.passes[4])
    assert math.isclose(sum(accumulate([0.5] * 3, mul)), 0.875)
