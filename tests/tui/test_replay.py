"""A recorded chat is played back: in time, faster, slower, and by phases of a round."""

from contextlib import asynccontextmanager
from dataclasses import replace

from specchat.chat.conversation import Conversation
from specchat.chat.playback import Phase
from specchat.core.settings import ReplySettings
from specchat.tui.replay_app import ReplayApp
from specchat.tui.replaying import Replaying
from tests.tui.screens import running, say, screen_text
from tests.tui.scripted_engine import PLAIN, ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply

HOSTILE = "\x1b]52;c;QQ==\x07[bold]x[/bold] [/]"


def sky(*more):
    """Two questions and their replies."""
    made = Conversation()
    for question, events in (("why?", sky_reply()), (HOSTILE, reply_events([round_of("on|p"), round_of("!|p", 1)]))):
        made.add_user(question)
        made.add_reply(made.begin_reply(), events)
    return made


@asynccontextmanager
async def replay(conversation, size=(100, 36)):
    app = ReplayApp(conversation, "why?", still=True)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app.screen, pilot


def test_time_speed_and_phases():
    replaying = Replaying(sky())
    replaying.advance(1.0)
    assert replaying.position == 0, "it stands still until it is told to play"
    replaying.play()
    replaying.advance(0.01)
    assert (replaying.position, replaying.shown) == (1, (None, Phase.CORRECTED))
    replaying.change_speed(1)
    replaying.advance(0.61)
    first = replaying.playback.steps[1].round
    assert replaying.shown == (first, Phase.CORRECTED), "1.2 seconds at twice the speed"
    assert replaying.stats.total.rounds == 1
    replaying.change_speed(-9)
    assert replaying.speed == 0.0625
    phases = []
    while replaying.position < 3:
        replaying.advance(0.02)
        if replaying.phase not in phases[-1:]:
            phases.append(replaying.phase)
    assert phases == [Phase.DRAFTED, Phase.VERIFIED, Phase.DRAFTING], "slowly enough to be seen"
    replaying.change_speed(9)
    for _ in range(100):
        replaying.advance(0.1)
    assert replaying.is_over
    assert not replaying.is_playing
    assert replaying.stats.total.rounds == 2, "the figures are those of the last reply"
    replaying.play()
    assert replaying.position == 0, "once more from the beginning"


def test_stepping_by_phases():
    replaying = Replaying(sky())
    replaying.step_phase()
    assert replaying.position == 1, "a question has no phases"
    seen = []
    for _ in range(4):
        replaying.step_phase()
        seen.append((replaying.position, replaying.shown[1]))
    assert seen == [(1, Phase.DRAFTED), (1, Phase.VERIFIED), (2, Phase.CORRECTED), (2, Phase.DRAFTED)]
    replaying.step(-1)
    assert (replaying.position, replaying.phase) == (2, Phase.DRAFTING), "first back to where the round began"
    replaying.step(-1)
    assert replaying.position == 1
    replaying.step(-5)
    assert (replaying.position, replaying.stats.total.rounds) == (0, 0)
    replaying.go_to(99)
    replaying.step_phase()
    assert replaying.is_over


async def test_a_round_under_the_glass_and_the_keys():
    async with replay(sky()) as (screen, pilot):
        assert "Nothing has been asked yet" in screen_text(pilot.app)
        await pilot.press("right", "right", "enter")
        text = screen_text(pilot.app)
        assert "> why?" in text
        assert "round 2" in text
        assert '" sunlight"' in text
        assert "× rejected" not in text, "the target has not looked at it"
        await pilot.press("enter")
        text = screen_text(pilot.app)
        assert "× rejected" in text.partition("round 2")[2]
        assert "wavelengths" not in text, "what comes instead is not drawn yet"
        await pilot.press("enter")
        text = screen_text(pilot.app)
        assert '" wavelengths"' in text
        assert "the residual" in text
        await pilot.press("n")
        text = screen_text(pilot.app)
        assert "␛]52;c;QQ==␇[bold]x[/bold] [/]" in text
        assert "tok/s" in text, "the first reply has its figures"
        await pilot.press("end", "left", "left", "p", "home")
        await pilot.pause()
        assert "Nothing has been asked yet" in screen_text(pilot.app)
        await pilot.press("space")
        screen.advance(1.3)
        await pilot.pause()
        assert "playing ×1" in screen_text(pilot.app)
        assert "because" in screen_text(pilot.app)
        await pilot.press("space", "5", "tab", "right")
        await pilot.pause()
        assert "inspector" in screen_text(pilot.app)
        assert "p target" in screen_text(pilot.app)
        await pilot.press("escape")
        assert pilot.app.is_running
        assert "inspector" not in screen_text(pilot.app)
        await pilot.press("q")
    assert not pilot.app.is_running


async def test_slow_motion_begins_with_the_round_that_is_looked_at():
    async with running(ScriptedEngine([sky_reply()]), size=(100, 36)) as (app, pilot):
        await say(pilot, "/slow")
        assert "There is no reply yet." in screen_text(app)
        await say(pilot, "why?")
        await pilot.press("tab", *["right"] * 2, *["left"] * 4, "s")
        await pilot.pause()
        text = screen_text(app)
        assert "inspector" not in text
        assert "round 13" in text, "the one before the last, which is looked at"
        assert "verify" in text
        assert "× rejected" not in text.partition("round 13")[2]
        await pilot.press("enter", "enter", "enter")
        assert "round 14" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert "inspector" in screen_text(app)


async def test_what_a_record_calls_its_pair_its_rule_and_its_plain_speed_is_shown_and_not_obeyed():
    made = Conversation()
    made.add_user("why?")
    events = [replace(PLAIN, source=HOSTILE), replace(round_of("on|a|b"), rule=HOSTILE)]
    made.add_reply(made.begin_reply(), reply_events(events, plain=False), ReplySettings(), HOSTILE)
    async with replay(made, size=(140, 36)) as (_, pilot):
        await pilot.press("end")
        await pilot.pause()
        text = screen_text(pilot.app)
        assert text.count("␛]52;c;QQ==␇[bold]x[/bold]") == 4, "on the status line, in the panel, the round, the figures"
        assert not {"\x1b", "\x07"} & set(text)


async def test_small_terminals_and_empty_chats():
    for size in ((80, 24), (50, 20), (40, 12)):
        async with replay(sky(), size=size) as (screen, pilot):
            await pilot.press("end")
            assert screen.replaying.is_over
            assert "on!" in screen_text(pilot.app)
    async with replay(Conversation()) as (screen, pilot):
        await pilot.press("right", "enter", "left", "n", "p", "5", "space")
        screen.advance(1.0)
        assert screen.replaying.is_over
