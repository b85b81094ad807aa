import pytest

from specchat.core.events import Finished
from specchat.core.settings import ReplySettings
from specchat.core.stats import ReplyStats
from specchat.core.theory import expected_tokens
from specchat.tui.figures import break_even, bytes_text, gain_sentence, reply_figures, seconds_text
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


def test_the_figures_below_a_reply_say_how_it_was_made():
    events = reply_events(sky_rounds())
    stats = folded(events)
    text = reply_figures(events[-1], ReplySettings(), stats.total, "A ⟵ B").replace("\u00a0", " ")
    assert text == (
        "55 tokens · 39.5 tok/s · 1.32× of plain 29.9 · α 0.89 · 3.93 tokens a round · γ auto (4) · draft model"
        " · token rule · A ⟵ B"
    )


def test_a_plain_reply_claims_nothing_about_drafting():
    events = reply_events([round_of("a|p")], reason="interrupted")
    text = reply_figures(events[-1], ReplySettings(drafter="none"), folded(events).total, "").replace("\u00a0", " ")
    assert text.startswith("stopped · 1 token · ")
    assert text.endswith("decoded plainly")
    assert "α" not in text


def test_unknown_figures_are_left_out():
    finished = Finished("end", 0, 0, 0.1, 0.1, None, (), None, None, None, None, None)
    text = reply_figures(finished, ReplySettings(), ReplyStats().total, "").replace("\u00a0", " ")
    assert text == "0 tokens · decoded plainly"


def test_sizes_and_durations():
    assert [bytes_text(n) for n in (8_000, 312_000_000, 1_040_000_000)] == ["8 kB", "312 MB", "1.04 GB"]
    assert [seconds_text(n) for n in (54, 170, 7500)] == ["54 s", "3 min", "2 h 5 min"]
