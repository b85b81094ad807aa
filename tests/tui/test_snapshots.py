"""Pictures of the screen. After a wanted change: ``pytest tests/tui/test_snapshots.py --snapshot-update``."""

import pytest

from specchat.engine.interface import Failed, Learned, Reading
from tests.tui.screens import app_on, say, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply
from tests.tui.test_speedup_curve import learned

HOSTILE = "\x1b]52;c;QQ==\x07 \x9b2J \u202eevil [/INST] [bold]x[/bold] 天空 👩‍👩‍👧‍👦"


@pytest.fixture
def picture(snap_compare):
    """Compares the screen after some steps with the stored picture."""

    def compare(steps, engine=None, size=(120, 40), **options):
        async def before(pilot):
            await settle(pilot)
            await steps(pilot)
            await settle(pilot)

        return snap_compare(
            app_on(engine or ScriptedEngine([sky_reply()]), **options), run_before=before, terminal_size=size
        )

    return compare


async def ask(pilot):
    await say(pilot, "why is the sky blue?")


async def inspect(pilot):
    await ask(pilot)
    await pilot.press("tab", "r")
    transcript = pilot.app.screen.pane.transcript
    reply = transcript.index.blocks[-1]
    transcript.look_at(reply, next(n for n in range(20) if reply.token(n).text == " colors"))


async def hostile(pilot):
    await say(pilot, HOSTILE)
    pilot.app.engine.say(Failed("DecodeError", HOSTILE, HOSTILE))


@pytest.mark.parametrize("theme", ["specchat-dark", "specchat-light"])
def test_chat(picture, theme):
    assert picture(ask, theme=theme)


def test_without_colour_the_marks_tell_the_fates_apart(picture, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert picture(inspect)


@pytest.mark.parametrize("size", [(80, 24), (50, 16)])
def test_narrow(picture, size):
    assert picture(ask, size=size)


def test_inspector_with_rejected_tokens_shown(picture):
    assert picture(inspect)


def test_loading_with_a_message_that_waits(picture):
    async def type_ahead(pilot):
        await say(pilot, "hello?")

    assert picture(type_ahead, engine=ScriptedEngine(slow_load=True))


def test_versions_of_a_question_and_of_a_reply(picture):
    async def branch(pilot):
        await say(pilot, "why is the sky blue?")
        await say(pilot, "/edit")
        await say(pilot, "why is the sea blue?")
        await say(pilot, "/regenerate")
        await pilot.press("tab", "p")

    replies = [reply_events([round_of(f"{text}|p")]) for text in ("scattering", "the sky", "absorption of red light")]
    assert picture(branch, engine=ScriptedEngine(replies), size=(80, 24))


def test_the_predicted_speedup_at_each_length(picture):
    async def learn(pilot):
        await ask(pilot)
        pilot.app.engine.say(Learned("cpu", learned().to_dict()))

    assert picture(learn)


def test_reading_a_long_prompt(picture):
    async def read(pilot):
        pilot.app.engine._step = 0
        pilot.app.screen.send("a long question")
        pilot.app.engine._messages.clear()
        pilot.app.engine._step = 1
        pilot.app.engine.say(Reading(pilot.app.engine.commands[-1].reply, "target", 1124, 3100, 500, 6.5))

    assert picture(read, size=(80, 24))


def test_dead_engine(picture):
    async def die(pilot):
        await ask(pilot)
        pilot.app.engine.say(
            Failed("EngineDiedError", "The model process was killed (SIGKILL).", "Load the pair again.", died=True)
        )

    assert picture(die, engine=ScriptedEngine([reply_events([round_of("half|a an|b")])[:-1]]))


def test_hostile_text(picture):
    assert picture(hostile, engine=ScriptedEngine([reply_events([round_of(f"{HOSTILE}|a|b")])]))


def test_help(picture):
    async def open_help(pilot):
        await pilot.press("f1")

    assert picture(open_help, size=(100, 60))


def test_reading_view(picture):
    async def read(pilot):
        await say(pilot, "show me code")
        await pilot.press("tab", "v")

    text = "## Sorting\n\nUse **sorted**:\n\n```python\nprint(sorted([3, 1]))\n```\n\n- fast\n- stable\n"
    assert picture(read, engine=ScriptedEngine([reply_events([round_of(f"{text}|p")])]))
