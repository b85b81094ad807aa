"""Figures of hand-made rounds, worked out by hand."""

import pytest

from specchat.core.events import Event, Finished, PlainSpeed, Prefill, Round, from_json, to_json
from specchat.core.stats import WINDOW, ReplyStats, RoundTotals
from specchat.core.theory import RoundCosts, predicted_speedup
from tests.core.examples import played

PLAIN = PlainSpeed(tokens_per_second=20.0, steps=8, source="8 plain steps")
REPLY: list[Event] = [
    Prefill("target", tokens=100, reused=20, seconds=2.0),
    PLAIN,
    Prefill("draft", tokens=120, reused=0, seconds=0.5),
    played("aaaa"),
    played("arii"),
    played("rii"),
    played(""),
    played("aa"),
]


def folded(events: list[Event]) -> ReplyStats:
    stats = ReplyStats()
    for event in events:
        assert stats.add(event) is event
    return stats


def test_totals() -> None:
    total = folded(REPLY).total
    assert (total.rounds, total.drafting_rounds, total.tokens) == (5, 4, 5 + 2 + 1 + 1 + 3)
    assert (total.accepted, total.rejected, total.ignored, total.all_accepted) == (7, 2, 4, 2)
    assert total.acceptance_rate == pytest.approx(7 / 9)
    assert total.acceptance_by_position == pytest.approx((3 / 4, 2 / 3, 1, 1))
    assert total.tokens_per_round == pytest.approx(12 / 5)
    assert total.share_all_accepted == 0.5
    assert total.rounds_by_length == {0: 1, 2: 1, 3: 1, 4: 2}
    assert total.seconds == pytest.approx(0.5)
    assert total.tokens_per_second == pytest.approx(24)


def test_the_time_split() -> None:
    total = RoundTotals([played("a", seconds=0.8), played("", seconds=0.8)])
    split = (total.draft_seconds, total.verify_seconds, total.sample_seconds, total.other_seconds)
    assert split == pytest.approx((0.8, 0.4, 0.2, 0.2))


def test_tokens_after_the_end_of_a_reply_are_neither_accepted_nor_rejected() -> None:
    """Cut by a stop string after the second token: the third was kept by the rule and lies behind the end."""
    total = RoundTotals([played("aai", committed=2), played("aaa")])
    assert (total.accepted, total.rejected, total.ignored) == (5, 0, 1)
    assert total.acceptance_rate == 1
    assert total.acceptance_by_position == (1, 1, 1)
    assert total.all_accepted == 1
    assert RoundTotals([played("i", committed=1)]).acceptance_by_position == ()


def test_a_position_counts_only_where_it_was_judged() -> None:
    total = RoundTotals([played("ar"), played("ari"), played("ra"[:1]), played("aaar")])
    assert total.acceptance_by_position == pytest.approx((3 / 4, 1 / 3, 1, 0))


def test_nothing_yet() -> None:
    stats = ReplyStats()
    assert stats.total.acceptance_rate is None
    assert stats.total.acceptance_by_position == ()
    assert stats.total.tokens_per_round is None
    assert stats.total.tokens_per_second is None
    assert stats.total.share_all_accepted is None
    assert stats.total.predicted_speedup(RoundCosts({1: 1.0})) is None
    assert (stats.seconds, stats.tokens_per_second, stats.speedup) == (0, None, None)
    assert stats.window.rounds == 0
    assert stats.finished is None


def test_plain_rounds_have_no_acceptance_rate() -> None:
    total = RoundTotals([played(""), played("")])
    assert total.acceptance_rate is None
    assert total.share_all_accepted is None
    assert total.tokens_per_round == 1


def test_the_drafts_prefill_counts_and_the_targets_does_not() -> None:
    stats = folded(REPLY)
    assert stats.prefill_seconds == 2
    assert stats.draft_prefill_seconds == 0.5
    assert stats.seconds == pytest.approx(0.5 + 5 * 0.1)
    assert stats.tokens_per_second == pytest.approx(12)
    assert stats.speedup == pytest.approx(12 / 20)


def test_speedup_needs_a_plain_speed() -> None:
    stats = folded([event for event in REPLY if event is not PLAIN])
    assert stats.tokens_per_second is not None
    assert stats.speedup is None
    stats.add(PlainSpeed(10.0, 1, "later"))
    stats.add(PlainSpeed(6.0, 8, "a better one"))
    assert stats.speedup == pytest.approx(2)


def test_the_end_of_a_reply() -> None:
    stats = folded(REPLY)
    finished = stats.finish("end", 1.5, "held back")
    assert finished == Finished(
        reason="end",
        tokens=12,
        rounds=5,
        seconds=1.5,
        prefill_seconds=2.0,
        acceptance_rate=stats.total.acceptance_rate,
        acceptance_by_position=stats.total.acceptance_by_position,
        tokens_per_round=2.4,
        tokens_per_second=8.0,
        plain_tokens_per_second=20.0,
        plain_source="8 plain steps",
        speedup=0.4,
        tail="held back",
    )
    assert stats.finished is finished
    assert (stats.seconds, stats.tokens_per_second, stats.speedup) == (1.5, 8.0, 0.4)


def test_a_reply_that_was_stopped_before_its_first_token() -> None:
    finished = ReplyStats().finish("interrupted", 0.0)
    assert (finished.tokens, finished.rounds, finished.acceptance_by_position, finished.tail) == (0, 0, (), "")
    assert (
        finished.acceptance_rate is finished.tokens_per_round is finished.tokens_per_second is finished.speedup is None
    )


def test_a_replayed_record_gives_the_same_figures() -> None:
    live = folded(REPLY)
    live.finish("end", 1.5)
    assert live.finished is not None
    replayed = folded([from_json(to_json(event)) for event in [*REPLY, live.finished]])
    for figure in ("seconds", "tokens_per_second", "speedup", "finished", "prefill_seconds"):
        assert getattr(replayed, figure) == getattr(live, figure)
    assert replayed.finish("end", 1.5) == live.finished


def test_several_replies_of_a_chat() -> None:
    stats = folded(REPLY)
    first = stats.finish("end", 1.5)
    assert stats.finished is first
    stats.add(Prefill("target", 5, 200, 0.25))
    assert stats.finished is None
    stats.add(played("aaa"))
    assert stats.seconds == pytest.approx(1.6)
    assert stats.total.tokens == 16
    assert stats.tokens_per_second == pytest.approx(10)
    assert stats.prefill_seconds == 2.25


def test_the_rolling_window_forgets() -> None:
    old = [played("r", index=i) for i in range(20)]
    new = [played("a", index=20 + i) for i in range(WINDOW)]
    stats = folded([*old, *new])
    assert stats.window.rounds == WINDOW == 60
    assert stats.window.acceptance_rate == 1
    assert stats.total.acceptance_rate == pytest.approx(60 / 80)
    assert [recent.index for recent in stats.recent] == list(range(20, 80))


def test_predicted_speedup_is_tokens_over_the_rounds_cost() -> None:
    costs = RoundCosts({1: 1.0, 3: 1.5}, draft_step=0.2, catch_up=0.1)
    total = RoundTotals([played("aa"), played("ar"), played("ri"), played("")])
    cost = 3 * (2 * 0.2 + 1.5) + 1 * 0.1 + 1
    assert total.predicted_speedup(costs) == pytest.approx((3 + 2 + 1 + 1) / cost)


def test_predicted_speedup_agrees_with_the_theory_at_a_fixed_length() -> None:
    """Of 8 rounds of two drafted tokens 4 keep both and 2 keep one: exactly the acceptance (3/4, 2/3)."""
    costs = RoundCosts({1: 1.0, 3: 1.5}, draft_step=0.2, catch_up=0.1)
    rounds: list[Round] = [*(played("aa") for _ in range(4)), *(played("ar") for _ in range(2))]
    total = RoundTotals([*rounds, played("ri"), played("ri")])
    expected = predicted_speedup(total.acceptance_by_position, 2, costs)
    assert total.predicted_speedup(costs) == pytest.approx(expected)


def test_predicted_speedup_of_rounds_longer_than_measured() -> None:
    with pytest.raises(ValueError, match="passes of 4 tokens"):
        RoundTotals([played("aaa")]).predicted_speedup(RoundCosts({1: 1.0, 3: 1.5}))
