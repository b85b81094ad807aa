"""The table of pass costs: each size for itself, one pace for all, and no stall that matters."""

import pytest

from specchat.core.pass_costs import PassCosts


def seen(table: PassCosts, times: dict[int, float], rounds: int = 5) -> PassCosts:
    for _ in range(rounds):
        for size, seconds in times.items():
            table.observe(size, seconds)
    return table


CURVE = {1: 0.034, 2: 0.056, 5: 0.112, 12: 0.262, 16: 0.245}


def test_nothing_is_known_in_the_beginning() -> None:
    table = PassCosts()
    assert table.seconds(1) is None
    assert table.hopeful_seconds(3) is None
    assert table.sizes == ()
    assert not table.is_well_known(1)


def test_each_size_has_its_own_cost_also_where_the_curve_falls() -> None:
    table = seen(PassCosts(), CURVE)
    assert {size: table.seconds(size) for size in CURVE} == pytest.approx(CURVE)
    assert table.sizes == (1, 2, 5, 12, 16)


def test_unknown_sizes_cost_as_much_as_their_dearer_neighbour_or_lie_on_the_line() -> None:
    table = seen(PassCosts(), CURVE)
    assert table.seconds(3) == pytest.approx(0.112)
    assert table.seconds(14) == pytest.approx(0.262), "not the cheaper 16"
    slope = (0.245 - 0.034) / 15
    assert table.seconds(20) == pytest.approx(0.245 + 4 * slope)
    assert seen(PassCosts(), {4: 1.0}).seconds(2) == pytest.approx(1.0)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.5)])
def test_a_single_size_and_the_expected_share_of_a_token(share: float, expected: float) -> None:
    assert seen(PassCosts(share), {1: 1.0}).seconds(4) == pytest.approx(expected)
    assert seen(PassCosts(share), {2: 1 + share}).seconds(4) == pytest.approx(expected)


def test_a_first_sample_that_was_a_stall_is_bounded_and_soon_forgotten() -> None:
    table = seen(PassCosts(0.1), {1: 1.0})
    table.observe(2, 50.0)
    assert table.seconds(2) == pytest.approx(2.2), "twice what other sizes make likely"
    table.observe(2, 1.2)
    assert table.seconds(2) == pytest.approx(1.2)


def test_a_size_that_is_really_dear_is_believed_at_its_second_sample() -> None:
    table = seen(PassCosts(0.1), {1: 1.0})
    table.observe(2, 5.0)
    table.observe(2, 5.2)
    assert table.seconds(2) == pytest.approx(5.0)


def test_one_stall_changes_no_ratio_by_much() -> None:
    table = seen(PassCosts(), CURVE)
    table.observe(5, 10 * CURVE[5])
    assert table.seconds(5) / table.seconds(1) < 1.05 * CURVE[5] / CURVE[1]
    assert table.seconds(1) < 1.05 * CURVE[1]


def test_a_slower_machine_is_followed_at_all_sizes_though_only_one_is_used() -> None:
    table = seen(PassCosts(), CURVE)
    seen(table, {5: 2 * CURVE[5]}, rounds=60)
    assert table.seconds(5) == pytest.approx(2 * CURVE[5], rel=0.02)
    assert table.seconds(1) > 1.2 * CURVE[1]
    seen(table, {1: 2 * CURVE[1]}, rounds=60)
    assert table.seconds(1) == pytest.approx(2 * CURVE[1], rel=0.02)
    assert table.seconds(5) / table.seconds(1) == pytest.approx(CURVE[5] / CURVE[1], rel=0.35)


def test_what_was_not_seen_for_long_is_little_known_and_may_be_hoped_to_be_cheap() -> None:
    table = seen(PassCosts(0.1), {1: 1.0, 2: 3.0})
    assert table.is_well_known(2)
    assert table.hopeful_seconds(2) == pytest.approx(3.0)
    seen(table, {1: 1.0}, rounds=300)
    assert not table.is_well_known(2)
    assert table.seconds(2) == pytest.approx(3.0)
    assert table.hopeful_seconds(2) == pytest.approx(1.1)
    assert not table.is_well_known(7)


def test_two_models_share_the_pace_of_the_machine_and_its_time() -> None:
    target = seen(PassCosts(), {1: 1.0})
    draft = seen(PassCosts(0.1, beside=target), {1: 0.4, 2: 0.8})
    assert draft.is_well_known(1)
    seen(target, {1: 2.0}, rounds=60)
    assert 1.2 * 0.4 < draft.seconds(1) < 2.0 * 0.4
    seen(target, {1: 2.0}, rounds=300)
    assert not draft.is_well_known(1)
    again = PassCosts(0.1, beside=target)
    again.restore(draft.to_dict())
    assert again.seconds(2) == pytest.approx(draft.seconds(2))
    assert target.seconds(1) == pytest.approx(2.0, rel=0.02), "what is restored beside it changes nothing"


def test_what_was_measured_with_care_is_taken_over() -> None:
    table = seen(PassCosts(), {1: 2.0}, rounds=40)
    table.learn({1: 1.0, 2: 1.5, 0: 1.0, 3: -1.0, 4: float("inf")})
    assert table.seconds(1) == pytest.approx(1.0)
    assert table.seconds(2) == pytest.approx(1.5)
    assert table.sizes == (1, 2)
    assert table.is_well_known(2)


@pytest.mark.parametrize(("size", "seconds"), [(0, 1.0), (2, 0.0), (2, -1.0), (2, float("nan")), (2, float("inf"))])
def test_impossible_samples_are_ignored(size: int, seconds: float) -> None:
    table = seen(PassCosts(), {1: 1.0})
    table.observe(size, seconds)
    assert table.sizes == (1,)


def test_it_can_be_kept() -> None:
    table = seen(PassCosts(), CURVE)
    table.observe(9, 0.3)
    seen(table, {1: 0.05}, rounds=10)
    again = PassCosts()
    again.restore(table.to_dict())
    assert {size: again.seconds(size) for size in (*CURVE, 9)} == pytest.approx(
        {size: table.seconds(size) for size in (*CURVE, 9)}
    )
    assert again.is_well_known(1)
    assert not again.is_well_known(9)


@pytest.mark.parametrize(
    "data", [[], {"1": 3}, {"x": [1.0, 3]}, {"1": [0.0, 3]}, {"1": [1.0, 0]}, {"0": [1.0, 1]}, {"1": [float("nan"), 1]}]
)
def test_damaged_tables_are_refused(data: object) -> None:
    table = seen(PassCosts(), CURVE)
    with pytest.raises(ValueError, match="table of pass costs"):
        table.restore(data)
    assert table.sizes == tuple(CURVE)


def test_a_share_must_make_sense() -> None:
    with pytest.raises(ValueError, match="share"):
        PassCosts(-0.1)
