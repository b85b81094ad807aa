"""What stands in the panels where there is little room."""

from dataclasses import replace

from textual.widgets import Digits

from specchat.core.events import Candidate
from specchat.engine.interface import Learned
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply
from tests.tui.test_speedup_curve import learned

MOST_WANTED = ("39.5 tok/s", "α 0.89", "time of a round 91 ms")


async def test_the_figures_fit_into_any_height():
    async with running(ScriptedEngine([sky_reply()]), size=(120, 24)) as (app, pilot):
        await say(pilot, "why?")
        for more in ((), (Learned("cpu", learned().to_dict()),)):
            app.engine.say(*more)
            await settle(pilot)
            text = screen_text(app)
            for figure in (*MOST_WANTED, "plain 29.9", "memory 2.0 GB", "tokens a round 3.93", "accepted at position"):
                assert figure in text
            assert "verify 4" in text, "the parts of the time have their names and shares"
        for size in ((120, 16), (120, 12), (120, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert app.screen.query_one(Digits).value == "1.32x"
            assert all(figure in screen_text(app) for figure in MOST_WANTED), size
        await pilot.press("tab")
        await pilot.pause()
        assert "inspector" in screen_text(app)
        assert all(figure in screen_text(app) for figure in (*MOST_WANTED, "verify 4"))


def with_candidates(played, count=10):
    residual = tuple(Candidate(n, f" word{n}", 0.5 / n) for n in range(1, count + 1))
    return replace(played, details=tuple(replace(detail, residual=residual) for detail in played.details))


async def test_the_inspector_shows_all_of_its_lines_at_80_columns():
    rounds = [with_candidates(round_of("Sun|a shine|a contains|a colors|x wavelengths|r"))]
    async with running(ScriptedEngine([reply_events(rounds)]), size=(80, 24)) as (app, pilot):
        await say(pilot, "why?")
        await pilot.press("tab")
        await pilot.pause()
        text = screen_text(app)
        assert '" wavelengths"   round 1, position 4   ~ resampled' in text
        assert "drawn from the residual" not in text
        assert "residual  word1 " in text
        assert "word6 ▋ 0.08   …" in text, "the last of those that are shown, and that there are more"
        await pilot.resize_terminal(120, 24)
        await pilot.pause()
        assert "drawn from the residual after a rejection" in screen_text(app)
        await pilot.resize_terminal(46, 24)
        await pilot.pause()
        assert "word2" in screen_text(app)
