"""Speeds of *fast* by simulation: a real pair's acceptance, costs of several machines, no clock.

``pytest -s tests/core/test_simulated_speed.py`` prints the table. Every run has its own seed, so results repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import DraftLength, FixedLength
from specchat.core.experience import Experience
from tests.core.recorded_drafts import Machine, Simulated, cpu, gpu, recorded_replies, simulate

MACHINES = (gpu(0.05), gpu(0.1), gpu(0.2), gpu(0.4), gpu(0.2, 0.03), cpu())
GPUS = MACHINES[:-1]
SEEDS = 6
MEASURED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17)
ALL = "all"


def experience(machine: Machine, measured: bool = True) -> Experience:
    """What a calibration leaves; or only what files and device let expect."""
    known = Experience(token_share=0.6 if machine.is_cpu else 0.02, draft_share=0.44)
    if measured:
        known.target.learn({size: machine.verify[size] for size in MEASURED})
        known.draft.learn({1: machine.step, 2: machine.two})
        known.observe_reading(machine.read, 1)
    return known


def write_all(machine: Machine, make: Callable[[], DraftLength], seed: int) -> dict[str, Simulated]:
    """Every recorded reply, in an order of its own: what each category took, and all together."""
    rng, length = np.random.default_rng(seed), make()
    found: dict[str, Simulated] = {}
    replies = recorded_replies()
    for i in rng.permutation(len(replies)):
        if isinstance(length, AdaptiveLength):
            length.begin_reply()
        played = simulate(replies[i], length, machine, rng)
        for name in (replies[i].category, ALL):
            found.setdefault(name, Simulated()).add(played)
    return found


def over_seeds(machine: Machine, make: Callable[[], DraftLength]) -> dict[str, float]:
    total: dict[str, Simulated] = {}
    for seed in range(SEEDS):
        for name, played in write_all(machine, make, seed).items():
            total.setdefault(name, Simulated()).add(played)
    return {name: played.speedup for name, played in total.items()}


@cache
def fixed(machine_name: str) -> dict[int, dict[str, float]]:
    """The speedups of every fixed γ, by category."""
    machine = next(each for each in MACHINES if each.name == machine_name)
    return {length: over_seeds(machine, partial(FixedLength, length)) for length in (*range(9), 10, 12, 14, 16)}


@cache
def adaptive(machine_name: str, measured: bool = True) -> dict[str, float]:
    machine = next(each for each in MACHINES if each.name == machine_name)
    return over_seeds(machine, lambda: AdaptiveLength(experience(machine, measured)))


def best_of_hindsight(machine: Machine, category: str) -> tuple[int, float]:
    speeds = {length: found[category] for length, found in fixed(machine.name).items()}
    best = max(speeds, key=lambda length: speeds[length])
    return best, speeds[best]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_fast_beats_every_fixed_length_on_mixed_text_and_hindsight_in_no_category_by_much(machine: Machine) -> None:
    found = adaptive(machine.name)
    # at c = 0.05 the best of thirteen lengths, chosen with hindsight on two prompts a category, owes some to luck
    close = 0.97 if machine.verify[5] == 1 and 0.1 <= machine.step <= 0.2 else 0.95
    print(f"\n{machine.name}: speedup over plain decoding, fast | best fixed γ of hindsight")  # noqa: T201
    for category in sorted(found):
        length, speed = best_of_hindsight(machine, category)
        print(f"  {category:12} {found[category]:5.2f} | {speed:5.2f} (γ {length})")  # noqa: T201
        assert found[category] >= 0.98
        assert found[category] >= close * speed
    assert found[ALL] >= best_of_hindsight(machine, ALL)[1] - 1e-9


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_without_any_measurement_it_learns_as_it_goes(machine: Machine) -> None:
    found = adaptive(machine.name, measured=False)
    assert min(found.values()) >= 0.98
    assert found[ALL] >= 0.93 * adaptive(machine.name)[ALL]


@pytest.mark.parametrize("machine", GPUS, ids=lambda machine: machine.name)
def test_stalls_do_not_lock_it_in(machine: Machine) -> None:
    """Of a hundred rounds two take ten times as long: what it chooses then is as fast as without."""

    def run(share: float) -> float:
        rng, played = np.random.default_rng(5), Simulated()
        length, stalls = AdaptiveLength(experience(machine)), np.random.default_rng(6)
        for _ in range(2):
            for reply in recorded_replies():
                length.begin_reply()
                played.add(simulate(reply, length, machine, rng, slow=lambda: 10.0 if stalls.random() < share else 1.0))
        return played.speedup

    assert run(0.02) >= 0.94 * run(0.0)


@pytest.mark.parametrize("machine", GPUS, ids=lambda machine: machine.name)
def test_a_machine_that_is_three_times_slower_for_a_while_changes_nothing(machine: Machine) -> None:
    length, rng = AdaptiveLength(experience(machine)), np.random.default_rng(2)
    speeds = []
    for factor in (1.0, 3.0, 1.0):
        played = Simulated()
        for reply in recorded_replies():
            length.begin_reply()
            played.add(simulate(reply, length, machine, rng, slow=lambda factor=factor: factor))
        speeds.append(played.speedup)
    assert min(speeds) >= 0.9 * max(speeds)


def test_a_slow_spell_does_not_make_the_draft_model_look_cheap() -> None:
    """The draft was measured when the machine was quick; now plain passes take three times as long, and so would it."""
    machine = cpu()
    length, rng = AdaptiveLength(experience(machine)), np.random.default_rng(2)
    for factor in (1.0, 3.0, 1.0):
        played = Simulated()
        for reply in recorded_replies():
            length.begin_reply()
            played.add(simulate(reply, length, machine, rng, slow=lambda factor=factor: factor))
        assert played.speedup > 0.98, factor


@pytest.mark.parametrize("machine", GPUS, ids=lambda machine: machine.name)
def test_acceptance_that_collapses_and_recovers(machine: Machine) -> None:
    """For a while a tenth of what would be kept is kept, and the draft is as sure as ever."""
    length, rng = AdaptiveLength(experience(machine)), np.random.default_rng(3)
    speeds = []
    for spoil in (1.0, 0.1, 1.0):
        played = Simulated()
        for reply in recorded_replies():
            length.begin_reply()
            played.add(simulate(reply, length, machine, rng, spoil=spoil))
        speeds.append(played.speedup)
    before, meanwhile, after = speeds
    assert meanwhile >= 0.975
    assert after >= 0.8 * before


def test_on_two_cpu_cores_the_draft_model_is_never_asked() -> None:
    machine = cpu()
    length, rng = AdaptiveLength(experience(machine)), np.random.default_rng(0)
    for reply in recorded_replies():
        length.begin_reply()
        assert simulate(reply, length, machine, rng).speedup == 1.0
