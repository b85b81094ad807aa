"""What a calibration makes of rounds. (That it measures at all is tested with the engine.)"""

from __future__ import annotations

import pytest

from specchat.core.events import DraftedToken, Fate, Round, RoundSeconds
from specchat.engine.measuring import _ExpectedAcceptance


def played(*drafted: tuple[Fate, float]) -> Round:
    """A round whose drafted tokens had these fates and thresholds."""
    tokens = tuple(DraftedToken(1, b"a", "a", "draft", 0.5, 0.5, threshold, 0.5, fate) for fate, threshold in drafted)
    return Round(0, 0.0, "token", len(tokens), tokens, (), RoundSeconds(0, 1, 0, 0), None)


def test_acceptance_is_the_mean_of_what_judged_tokens_had_as_chances() -> None:
    found = _ExpectedAcceptance()
    assert found.by_position == ()
    found.add(played((Fate.ACCEPTED, 0.9), (Fate.REJECTED, 0.3), (Fate.IGNORED, 0.8)))
    found.add(played((Fate.REJECTED, 0.1), (Fate.IGNORED, 1.0)))
    found.add(played())
    assert found.by_position == pytest.approx((0.5, 0.3))
