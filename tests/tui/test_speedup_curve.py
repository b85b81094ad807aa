import pytest

from specchat.core.experience import Experience
from specchat.core.stats import ReplyStats
from specchat.core.theory import RoundCosts, predicted_speedup
from specchat.engine.interface import Learned
from specchat.tui.charts import curve
from specchat.tui.speedup_curve import speedup_curve
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply, sky_rounds

PASSES = {1: 0.034, 2: 0.036, 3: 0.037, 5: 0.042, 9: 0.08}


def learned(passes=None, draft=None):
    experience = Experience()
    experience.target.learn(PASSES if passes is None else passes)
    experience.draft.learn({1: 0.012, 2: 0.013} if draft is None else draft)
    return experience


def folded(events):
    stats = ReplyStats()
    for event in events:
        stats.add(event)
    return stats


def test_the_curve_is_theory_with_what_was_measured():
    stats = folded(sky_reply())
    found = speedup_curve(stats, learned())
    costs = RoundCosts.from_seconds(PASSES, 0.012, 0.001)
    acceptance = (*stats.window.acceptance_by_position, stats.window.acceptance_rate)
    expected = {length: predicted_speedup(acceptance, length, costs) for length in (1, 2, 4, 8)}
    assert found.predicted == pytest.approx(expected)
    assert found.now == (4, stats.speedup)


@pytest.mark.parametrize(
    ("events", "experience"),
    [
        (sky_reply(), None),
        (sky_reply(), learned(passes={5: 0.042})),
        (sky_reply(), learned(passes={1: 0.034})),
        (sky_reply(), learned(draft={})),
        (reply_events(sky_rounds()[:7]), learned()),
        (reply_events([round_of("a|p")] * 20), learned()),
    ],
    ids=["nothing learned", "no plain step", "no longer pass", "no draft step", "too few rounds", "nothing drafted"],
)
def test_nothing_is_invented(events, experience):
    assert speedup_curve(folded(events), experience) is None


def test_sizes_and_steps_that_are_guesses_are_left_out():
    experience = learned()
    experience.target.observe(4, 0.039)  # once is not enough
    assert set(speedup_curve(folded(sky_reply()), experience).predicted) == {1, 2, 4, 8}


def test_a_free_drafter_counts_in_the_rounds_in_which_it_finds_something():
    from dataclasses import replace

    def copied(played):
        tokens = tuple(replace(token, drafter="ngram") for token in played.drafted)
        return replace(played, drafted=tokens, seconds=replace(played.seconds, draft=0.0))

    rounds = [copied(played) for played in sky_rounds()]
    plain = [round_of("a|p")] * len(rounds)
    always, half = (
        speedup_curve(folded(reply_events(each)), learned(draft={})) for each in (rounds, [*rounds, *plain])
    )
    assert always.predicted[4] > half.predicted[4] > 1
    costs = RoundCosts.from_seconds(PASSES)
    stats = folded(reply_events(rounds))
    acceptance = (*stats.window.acceptance_by_position, stats.window.acceptance_rate)
    assert always.predicted[4] == pytest.approx(predicted_speedup(acceptance, 4, costs))


def test_dots_stand_at_their_height():
    assert curve([0.0, 0.4, 0.6, 1.0, None], 0.0, 1.0, 2) == ["  ⡀⠁ ", "⡀⠁   "]
    assert curve([1.0], 1.0, 1.0, 1) == ["⠂"]


async def test_the_panel_shows_the_curve_once_costs_are_known():
    engine = ScriptedEngine([sky_reply(), sky_reply()])
    async with running(engine) as (app, pilot):
        await say(pilot, "why?")
        assert "speedup vs γ" not in screen_text(app)
        engine.say(Learned("cpu", learned().to_dict()))
        await settle(pilot)
        text = screen_text(app)
        assert "speedup vs γ   ⠒⠒ theory   ● now" in text
        assert "γ  1  2  4  8" in text
        assert "other" in text, "all of the panel fits"
        engine.say(Learned("cpu", learned(passes={1: 0.034, 5: 0.042}).to_dict()))
        await settle(pilot)
        assert "theory at γ 4" in screen_text(app)
        engine.say(Learned("cpu", {"version": 99}))
        await settle(pilot)
        assert "theory at γ 4" in screen_text(app), "what cannot be read changes nothing"
