"""What a pair has taught: costs of drafting from what rounds took, and what of it survives being stored."""

import json

import pytest

from specchat.core.experience import Experience


def taught(step: float = 0.2, plain: float = 1.0) -> Experience:
    experience = Experience(token_share=0.1, draft_share=0.4)
    experience.target.learn({size: plain * (1 + 0.05 * (size - 1)) for size in (1, 2, 3, 5, 9, 17)})
    for _ in range(4):
        experience.observe_draft(4 * step, 4, 1)
    return experience


def test_before_anything_was_measured_it_expects() -> None:
    experience = Experience(token_share=0.5, draft_share=0.4)
    assert experience.plain == 1.0
    assert experience.verify(3) == 2.0
    assert experience.step() == 0.4
    assert experience.first_step(1) == 0.4
    assert experience.first_step(5) == pytest.approx(0.4 + 4 * 0.1)


def test_steps_are_a_round_s_time_by_its_passes() -> None:
    experience = taught(step=0.2)
    assert experience.step() == pytest.approx(0.2)
    for _ in range(5):
        experience.observe_draft(0.5 + 3 * 0.2, 4, 2)
    assert experience.first_step(2) == pytest.approx(0.5, rel=0.05)
    assert experience.step() == pytest.approx(0.2)


def test_reading_what_was_missed() -> None:
    experience = taught(step=0.2)
    assert experience.first_step(11) == pytest.approx(0.2 + 10 * 0.02), "what a token more costs, until it was measured"
    for _ in range(40):
        experience.observe_draft(2 * 0.2 + 10 * 0.01, 2, 11)
    assert experience.first_step(11) == pytest.approx(0.2 + 10 * 0.01, rel=0.1)
    experience.observe_reading(5.0, 100)
    assert experience.first_step(101) > 0.2 + 100 * 0.015
    experience.observe_reading(1e6, 100)
    assert experience.first_step(2 + 1) < 0.2 + 2 * 0.2, "a stall: never more than two steps a token"


@pytest.mark.parametrize(("token_share", "expected"), [(0.0, 0.05), (0.6, 0.25)])
def test_before_reading_was_measured_it_is_cheap_on_a_gpu_and_not_on_a_cpu(token_share: float, expected: float) -> None:
    experience = Experience(token_share=token_share, draft_share=0.4)
    assert experience.first_step(1001) == pytest.approx(0.4 * (1 + 1000 * expected))


def test_whether_a_draft_can_pay_is_a_matter_of_costs_and_not_of_the_last_text() -> None:
    experience = taught(step=0.2)
    for _ in range(200):
        experience.acceptance.observe_first("kept", 1.0, 0.5)
        experience.acceptance.observe_draw(1.0, True, False)
    assert experience.could_gain(8)
    assert not taught(step=0.95).could_gain(8)


def test_the_draft_follows_the_machine_and_grows_little_known_while_it_is_not_used() -> None:
    experience = taught(step=0.2)
    for _ in range(60):
        experience.target.observe(1, 2.0)
    assert experience.step() > 1.2 * 0.2, "the machine is slower"
    assert experience.step(hopeful=True) == experience.step()
    for _ in range(300):
        experience.target.observe(1, 0.2)
    assert experience.step(hopeful=True) == pytest.approx(0.4 * 0.2, rel=0.05), "what is expected of it"


def test_a_first_round_that_had_to_read_still_gives_a_step() -> None:
    experience = Experience()
    experience.observe_draft(1.0, 2, 9)
    assert experience.step() == pytest.approx(1.0 / (2 + 8 / 4))


def test_hope_counts_only_while_little_is_known() -> None:
    experience = Experience(token_share=0.0, draft_share=0.1)
    experience.target.learn({1: 1.0})
    experience.observe_draft(0.9, 1, 1)
    assert experience.step() > experience.step(hopeful=True) == pytest.approx(0.1)
    for _ in range(3):
        experience.observe_draft(0.9, 1, 1)
    assert experience.step(hopeful=True) == pytest.approx(0.9)


@pytest.mark.parametrize(("seconds", "steps"), [(0.0, 1), (1.0, 0), (float("nan"), 1), (float("inf"), 2)])
def test_impossible_rounds_are_ignored(seconds: float, steps: int) -> None:
    experience = taught(step=0.2)
    experience.observe_draft(seconds, steps, 1)
    experience.observe_reading(seconds if steps else 1.0, 0)
    assert experience.step() == pytest.approx(0.2)


def test_costs_as_the_theory_takes_them() -> None:
    experience = taught(step=0.1, plain=0.5)
    costs = experience.costs(5)
    assert costs.draft_step == pytest.approx(0.2)
    assert costs.verify(5) == pytest.approx(1.2)
    assert costs.largest_draft == 4
    cheap = experience.break_even(17)
    assert cheap is not None
    assert 0.2 < cheap < 0.3
    dear = Experience(draft_share=1.5)
    dear.target.learn({1: 1.0, 2: 1.64, 3: 2.2})
    assert dear.break_even(3) is None


def test_it_can_be_kept() -> None:
    experience = taught()
    experience.observe_reading(0.3, 10)
    experience.interval, experience.waited = 64, 7
    experience.acceptance.observe_draw(1.0, True, False)
    data = json.loads(json.dumps(experience.to_dict()))
    again = Experience(token_share=0.1)
    again.restore(data)
    assert again.to_dict() == experience.to_dict()
    assert again.first_step(9) == pytest.approx(experience.first_step(9))
    assert (again.interval, again.waited) == (64, 7)


@pytest.mark.parametrize(
    "change",
    [{"version": 99}, {"target": 3}, {"reading": -1.0}, {"interval": "x"}, {"acceptance": {}}, {"waited": None}],
)
def test_damaged_data_is_refused_and_changes_nothing(change: dict[str, object]) -> None:
    experience = taught()
    before = experience.to_dict()
    with pytest.raises(ValueError):
        experience.restore(taught().to_dict() | change)
    assert experience.to_dict() == before
    with pytest.raises(ValueError):
        experience.restore({})


def test_a_share_must_make_sense() -> None:
    with pytest.raises(ValueError, match="share"):
        Experience(draft_share=-1)
