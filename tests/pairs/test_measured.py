"""What a stored measurement comes to."""

import pytest

from specchat.config import Measurement
from specchat.pairs.measured import summarise


def measurement(**changes):
    values = {
        "pair": "x",
        "device": "CPU",
        "version": "1",
        "measured_at": "2026-11-30T12:00:00",
        "pass_seconds": {1: 0.02, 2: 0.02, 3: 0.02, 4: 0.02, 5: 0.02},
        "draft_step_seconds": 0.004,
        "draft_catch_up_seconds": 0.0,
        "acceptance_by_position": (0.8, 0.75),
        "plain_tokens_per_second": 50.0,
    }
    return Measurement(**(values | changes))


def test_a_pair_that_pays():
    """A GPU's costs: v = 1, c = 0.2. E of γ = 3 is 1 + 0.8 + 0.6 + 0.45; a fourth token brings 0.34 for 0.2."""
    found = summarise(measurement())
    assert found.num_draft_tokens == 3
    assert found.speedup == pytest.approx((1 + 0.8 + 0.6 + 0.45) / 1.6)
    assert found.is_predicted
    assert found.pays
    assert found.acceptance == 0.8


def test_a_pair_that_does_not_pay():
    """This kind of processor: a pass of two tokens costs 1.64 of one, the draft's step 0.58."""
    found = summarise(measurement(pass_seconds={1: 0.034, 2: 0.056, 3: 0.075}, draft_step_seconds=0.02))
    assert (found.num_draft_tokens, found.speedup, found.pays) == (0, 1.0, False)


def test_what_was_measured_goes_before_what_is_predicted():
    found = summarise(measurement(speedup=1.31))
    assert (found.speedup, found.is_predicted, found.pays) == (1.31, False, True)
    assert not summarise(measurement(speedup=0.9)).pays


def test_without_a_draft():
    found = summarise(measurement(draft_step_seconds=None, acceptance_by_position=()))
    assert (found.acceptance, found.speedup, found.pays) == (None, 1.0, False)


@pytest.mark.parametrize("passes", [{}, {2: 0.1}, {1: 0.0}, {1: float("nan")}, {1: 0.1, 2: -1.0}])
def test_figures_that_make_no_sense(passes):
    assert summarise(measurement(pass_seconds=passes)) is None
