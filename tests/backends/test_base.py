"""What two sequences have in common."""

from __future__ import annotations

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.backends.base import common_prefix

TOKENS = st.lists(st.integers(0, 2), max_size=12)


@given(TOKENS, TOKENS, TOKENS)
def test_as_many_as_agree(shared: list[int], left: list[int], right: list[int]) -> None:
    one, other = shared + left, shared + right
    expected = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    assert common_prefix(one, other) == common_prefix(other, one) == expected
    assert common_prefix(tuple(one), other) == common_prefix(one, tuple(other)) == expected


@given(TOKENS, TOKENS, TOKENS, st.integers(0, 12))
def test_what_is_known_is_not_compared_again(shared: list[int], left: list[int], right: list[int], known: int) -> None:
    one, other = shared + left, shared + right
    known = min(known, len(shared))
    assert common_prefix(one, other, known) == common_prefix(one, other)
    assert common_prefix(one, tuple(other), known) == common_prefix(one, other)


@pytest.mark.parametrize("place", [0, 1, 511, 512, 4999])
def test_one_difference_far_inside(place: int) -> None:
    tokens = list(range(5000))
    changed = [*tokens[:place], -1, *tokens[place + 1 :]]
    assert common_prefix(tokens, changed) == place
