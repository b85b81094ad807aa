"""Prompt lookup: what it proposes, how much of it it trusts, and what it learns without proposing."""

import numpy as np
import pytest

from specchat.backends.ngram import NgramDrafter
from specchat.core.draft_length import FixedLength
from specchat.core.sampling import SamplingParams

END = 9
TEXT = [1, 2, 3, 4, 5, 6, 7, 8]


class Listening(FixedLength):
    """Takes so many tokens, and keeps what it was told."""

    def __init__(self, num_draft_tokens: int = 64) -> None:
        super().__init__(num_draft_tokens)
        self.chances: list[float] = []

    def choose(self, chances):
        self.chances = list(chances)
        return super().choose(chances)


def drafter(**changes) -> NgramDrafter:
    return NgramDrafter(lambda token: token == END, **changes)


def propose(ngram, context, length=None, limit=64):
    return ngram.propose(context, length or Listening(), limit, SamplingParams(), np.random.default_rng(0))


def test_what_followed_before_follows_again() -> None:
    draft = propose(drafter(), [*TEXT, 1, 2, 3])
    assert draft.tokens == (4, 5, 6, 7, 8, 1, 2, 3)
    assert draft.drafter == "ngram"
    assert all(q.probability(token) == 1 for q, token in zip(draft.q, draft.tokens, strict=True))


@pytest.mark.parametrize("context", [[1, 2, 3], [*TEXT, 1, 2], [*TEXT, 1, 3, 2]])
def test_nothing_is_proposed_where_too_little_agrees(context) -> None:
    assert len(propose(drafter(), context)) == 0


def test_the_longest_match_wins_and_the_latest_of_equal_ones() -> None:
    long = [4, 1, 2, 3, 5]
    short = [6, 1, 2, 3, 7]
    assert propose(drafter(), [*long, *short, 4, 1, 2, 3]).tokens[0] == 5
    assert propose(drafter(), [*long, *short, 8, 1, 2, 3]).tokens[0] == 7


def test_limits() -> None:
    context = [*TEXT, 1, 2, 3]
    assert propose(drafter(), context, limit=2).tokens == (4, 5)
    assert propose(drafter(), context, Listening(3)).tokens == (4, 5, 6)
    assert propose(drafter(), context, Listening(0)).tokens == ()
    assert propose(drafter(), [1, 2, 3, 4, END, 6, 1, 2, 3]).tokens == (4, END)
    with pytest.raises(ValueError, match="match"):
        drafter(min_match=5, max_match=4)


def test_the_longer_the_match_the_likelier_the_next_token() -> None:
    length = Listening()
    propose(drafter(), [*TEXT, *TEXT], length)
    assert length.chances == sorted(length.chances)
    assert length.chances[0] > 0.8
    short = Listening()
    propose(drafter(), [*TEXT, 0, 1, 2, 3], short)
    assert short.chances[0] < 0.6


def test_it_learns_from_what_is_written_whether_its_proposal_was_used_or_not() -> None:
    """Matches of three that always go on otherwise: their chance sinks, and that of longer ones stays."""
    ngram, length = drafter(), Listening(0)
    context = [1, 2, 3, 4]
    before = None
    for other in range(10, 40):
        context += [other, 1, 2, 3]
        propose(ngram, context, length)
        before = before or length.chances[0]
    assert length.chances[0] < before / 2
    same = Listening(0)
    propose(ngram, [*TEXT, *TEXT, 50], same)  # another chat: it begins anew, and keeps what it has learned
    propose(ngram, [*TEXT, *TEXT], same)
    assert same.chances[0] > 0.8


def test_what_agrees_raises_the_chance_and_stops_counting_at_the_first_difference() -> None:
    ngram, length = drafter(), Listening(0)
    propose(ngram, [*TEXT, 0, 1, 2, 3], length)
    first = length.chances
    propose(ngram, [*TEXT, 0, 1, 2, 3, 4, 7, 1, 2, 3], length)
    assert length.chances[0] > first[0], "4 was proposed and written"
    assert ngram._chances[1] < first[1], "then 5 was, and 7 was written"
    assert ngram._chances[2] == first[2], "what came after was not judged"


def test_a_chat_that_was_edited_teaches_nothing() -> None:
    ngram = drafter()
    propose(ngram, [*TEXT, 0, 1, 2, 3])
    before = list(ngram._chances)
    propose(ngram, [7, 7, *TEXT, 0, 1, 2, 3, 4])
    assert ngram._chances == before
    propose(ngram, [1, 2])
    assert propose(ngram, [*TEXT, 1, 2, 3]).tokens[:2] == (4, 5)


def test_there_is_no_model_to_be_behind() -> None:
    assert drafter().behind(TEXT) == 0
    assert drafter().prefill(TEXT, lambda: False) is None
