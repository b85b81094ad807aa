import pytest

from specchat.core.stats import ReplyStats
from specchat.core.theory import expected_tokens
from specchat.tui.figures import break_even, gain_sentence, seconds_text
from tests.tui.scripted_engine import reply_events, round_of
from tests.tui.stories import sky_rounds


def folded(events):
    stats = ReplyStats()
    for event in events:
        stats.add(event)
    return stats


def test_break_even_is_the_alpha_at_which_a_round_yields_what_it_costs():
    stats = folded(reply_events(sky_rounds()))
    found = break_even(stats)
    assert found.num_draft_tokens == 4
    lengths = [played for played in stats.recent if len(played.drafted) == 4]
    cost = sum(played.seconds.total for played in lengths) / len(lengths) * stats.plain.tokens_per_second
    assert expected_tokens(found.acceptance, 4) == pytest.approx(cost)


def test_break_even_needs_a_plain_speed_and_a_draft():
    assert break_even(folded(reply_events(sky_rounds(), plain=False))) is None
    assert break_even(folded(reply_events([round_of("a|p")]))) is None


def test_gains_and_costs_are_said_in_words():
    assert gain_sentence(1.61) == "drafting gains 1.61× here"
    assert gain_sentence(0.62) == "drafting costs 38% here"
    assert gain_sentence(1.0) == "drafting neither gains nor costs here"


def test_durations():
    assert [seconds_text(n) for n in (54, 170, 7500)] == ["54 s", "3 min", "2 h 5 min"]
