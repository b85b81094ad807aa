"""A fixed length is what was asked for, as far as there is room."""

import pytest

from specchat.core.draft_length import DraftLength, FixedLength, RoundOutcome
from specchat.core.sampling import Distribution


@pytest.mark.parametrize(("wanted", "limit", "expected"), [(4, 10, 4), (4, 2, 2), (0, 10, 0), (4, 0, 0)])
def test_a_fixed_length(wanted: int, limit: int, expected: int) -> None:
    length: DraftLength = FixedLength(wanted)
    assert length.begin_round(limit) == expected
    assert length.more(0, Distribution.one_hot(1))
    length.observe(RoundOutcome(expected, 0, 1.0, 1.0))
    assert length.begin_round(limit) == expected
    assert length.reason is None


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        FixedLength(-1)
