"""How sure a draft is, and what was learned about how far it can be trusted."""

import math

import numpy as np
import pytest

from specchat.core.acceptance import Acceptance, margin
from specchat.core.sampling import Distribution


def test_the_margin_is_the_distance_of_the_two_largest_logits() -> None:
    logits = np.array([0.5, 3.0, -1.0, 2.25], dtype=np.float32)
    assert margin(Distribution.one_hot(1), logits) == pytest.approx(0.75)
    assert margin(Distribution.one_hot(1), logits[::-1]) == pytest.approx(0.75)
    assert margin(Distribution.one_hot(0), np.array([2.0, 2.0], dtype=np.float32)) == 0


@pytest.mark.parametrize("logits", [[1.0], [1.0, -math.inf], [-math.inf, 4.0, -math.inf]])
def test_a_single_possible_token_is_as_sure_as_can_be(logits: list[float]) -> None:
    assert margin(Distribution.one_hot(0), np.array(logits, dtype=np.float32)) == math.inf


def test_without_logits_q_tells_it() -> None:
    assert margin(Distribution.from_dense([0.2, 0.6, 0.2])) == pytest.approx(math.log(3))
    assert margin(Distribution.one_hot(3)) == math.inf


def test_surer_drafts_are_trusted_more_before_anything_was_learned() -> None:
    acceptance = Acceptance()
    before = [acceptance.before_draw(margin, 0.9) for margin in (0.1, 0.7, 1.7, 3.5, 7.0, math.inf)]
    assert before == sorted(before)
    assert before[0] < 0.6
    after = [acceptance.after_draw(margin, True) for margin in (0.1, 0.7, 1.7, 3.5, 7.0, math.inf)]
    assert after == sorted(after)
    assert after[-1] > 0.99
    following = [acceptance.next(margin) for margin in (0.1, 0.7, 1.7, 3.5, 7.0, math.inf)]
    assert following == sorted(following)
    assert acceptance.after_draw(0.1, False) < acceptance.after_draw(0.1, True)
    assert acceptance.first("rejected") < acceptance.first("kept")
    assert acceptance.recent is None


def test_verdicts_move_the_chance_of_their_own_margin() -> None:
    acceptance = Acceptance()
    untouched = acceptance.after_draw(7.0, True)
    for _ in range(200):
        acceptance.observe_draw(0.1, True, False)
        acceptance.observe_draw(0.1, False, True)
    assert acceptance.after_draw(0.2, True) < 0.05
    assert acceptance.after_draw(0.2, False) > 0.95
    assert acceptance.after_draw(7.0, True) == untouched
    assert acceptance.before_draw(0.1, 0.75) == pytest.approx(0.25, abs=0.05)


def test_the_share_kept_lately() -> None:
    acceptance = Acceptance()
    acceptance.observe_draw(2.0, True, True)
    assert acceptance.recent == 1.0
    for _ in range(100):
        acceptance.observe_draw(2.0, True, False)
    assert acceptance.recent is not None
    assert acceptance.recent < 0.01


def test_the_text_is_followed_faster_than_the_pair() -> None:
    acceptance = Acceptance()
    unsure = acceptance.before_draw(0.1, 0.5)
    for _ in range(20):
        acceptance.observe_first("kept", 0.1, 0.5)
        acceptance.observe_next(5.0, 0.1, 0.5)
    assert acceptance.first("kept") == pytest.approx(unsure, abs=0.12)
    assert acceptance.first("rejected") == Acceptance().first("rejected")
    assert acceptance.later == pytest.approx(unsure, abs=0.12)
    assert unsure < acceptance.next(5.0) < Acceptance().next(5.0) - 0.2
    assert acceptance.next(5.0) == acceptance.next(4.5)
    assert acceptance.next(1.2) == Acceptance().next(1.2)


def test_a_text_on_which_being_sure_means_little() -> None:
    """Verdicts at one margin count for all, because the draft is lost in this text; and it is found out again."""
    acceptance = Acceptance()
    for _ in range(25):
        acceptance.observe_draw(7.0, True, False)
    assert acceptance.after_draw(1.2, True) < 0.45
    assert acceptance.first("plain") < 0.5
    assert acceptance.later < 0.5
    for _ in range(80):
        acceptance.observe_draw(7.0, True, True)
    assert acceptance.after_draw(1.2, True) > 0.65


def test_chance_alone_does_not_shake_trust() -> None:
    acceptance, before = Acceptance(), Acceptance().first("plain")
    for kept in (True, True, False, True, True, True, False, True, True, True) * 3:
        acceptance.observe_draw(2.2, True, kept)
        assert acceptance.first("plain") == before


def test_after_a_long_silence_one_sample_says_more() -> None:
    fresh, stale = Acceptance(), Acceptance()
    for acceptance in (fresh, stale):
        for _ in range(30):
            acceptance.observe_first("plain", 0.1, 0.5)
    for _ in range(80):
        stale.grow_stale()
    assert stale.first("plain") == fresh.first("plain")
    before = fresh.first("plain")
    for acceptance in (fresh, stale):
        acceptance.observe_first("plain", 9.0, 1.0)
    assert before < fresh.first("plain") < before + 0.05
    assert stale.first("plain") > before + 0.15


def test_it_can_be_kept() -> None:
    acceptance = Acceptance()
    for _ in range(30):
        acceptance.observe_draw(0.3, True, False)
        acceptance.observe_first("plain", 0.3, 0.5)
        acceptance.observe_next(3.0, 0.4, 0.5)
    again = Acceptance()
    again.restore(acceptance.to_dict())
    assert again.after_draw(0.3, True) == pytest.approx(acceptance.after_draw(0.3, True), abs=1e-3)
    assert again.first("plain") == pytest.approx(acceptance.first("plain"), abs=1e-3)
    assert again.later == pytest.approx(acceptance.later, abs=1e-3)
    assert again.recent == pytest.approx(acceptance.recent, abs=1e-3)


@pytest.mark.parametrize("change", [{"later": None}, {"first": {"rates": [2, 0, 0], "weights": [1, 1, 1]}}])
def test_damaged_data_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="learned of a draft"):
        Acceptance().restore(Acceptance().to_dict() | change)
    with pytest.raises(ValueError, match="learned of a draft"):
        Acceptance().restore({})
