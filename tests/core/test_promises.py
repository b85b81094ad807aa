"""Bad luck is told from broken promises."""

import numpy as np
import pytest

from specchat.core.promises import Promises


def play(promises: Promises, claimed: float, true: float, rounds: int, count: int = 15, cost: float = 7.2) -> float:
    """Plain steps lost by using proposals whenever that is allowed; negative: gained."""
    rng, lost = np.random.default_rng(1), 0.0
    for _ in range(rounds):
        if promises.allow(cost):
            promises.accept([claimed] * count, cost)
            kept = min(count, int(rng.geometric(1 - true)) - 1)
            promises.end_round(kept + 1, cost)
            lost += cost - kept - 1
        else:
            promises.end_round(1, 1.0)
    return lost


@pytest.mark.parametrize("chance", [0.92, 0.95, 0.99])
def test_an_honest_proposer_is_never_stopped(chance: float) -> None:
    promises = Promises()
    assert play(promises, chance, chance, 2000) < 0
    assert promises.are_kept


@pytest.mark.parametrize(("claimed", "true"), [(0.99, 0.05), (0.95, 0.3), (0.92, 0.4), (0.95, 0.7)])
def test_one_that_misleads_is_stopped_soon_and_for_long(claimed: float, true: float) -> None:
    promises = Promises()
    assert play(promises, claimed, true, 50) < 35
    assert not promises.are_kept
    assert play(promises, claimed, true, 2000) < 0.025 * 2000


def test_one_that_promises_too_little_is_welcome() -> None:
    promises = Promises()
    assert play(promises, 0.8, 0.97, 200) < 0
    assert promises.are_kept


def test_what_is_distrusted_may_win_trust_back_with_what_was_put_aside() -> None:
    promises = Promises()
    play(promises, 0.99, 0.05, 20)
    assert not promises.are_kept
    assert not promises.allow(7.2)
    for _ in range(200):
        promises.end_round(1, 1.0)
    assert promises.allow(1.6)
    assert not promises.allow(7.2)
    for _ in range(30):
        promises.accept([0.9], 1.6)
        promises.end_round(2, 1.6)
    assert promises.are_kept


def test_rounds_without_a_proposal_say_nothing() -> None:
    promises = Promises()
    for _ in range(50):
        promises.end_round(1, 5.0)
    assert promises.are_kept
    assert promises.allow(100.0)
