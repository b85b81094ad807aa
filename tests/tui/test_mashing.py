"""Keys pressed at random, at every moment of loading, reading and writing: nothing breaks, nothing is lost."""

import random

import pytest

from specchat.chat.record import read_record
from specchat.core.events import Prefill
from specchat.engine.interface import Failed, Learned, Note, PromptSize, Reading, Reply, ReplyEvent
from tests.tui.screens import running, settle
from tests.tui.scripted_engine import LOADED, ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply
from tests.tui.test_speedup_curve import learned

HOSTILE = "\x1b]52;c;QQ==\x07\x9b2J\u202eevil\u200b\u2066[bold]x[/] 天👩‍👩‍👧‍👦 ́"
KEYS = [
    "enter", "escape", "tab", "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "f1", "f3", "ctrl+r",
    "ctrl+j", "backspace", "delete", "r", "v", "y", "e", "g", "p", "n", "f", "slash", "question_mark",
    "less_than_sign", "greater_than_sign", "f2", "ctrl+a", "ctrl+z", "space", "x", "ctrl+c",
]  # fmt: skip
COMMANDS = [
    *("/edit", "/edit 1", "/edit 99", "/edit x", "/regenerate", "/regenerate 1", "/version 1", "/version -1", "/open"),
    *("/continue", "/delete", "/new", "/copy", "/pair", "/pair nope", "/pair small", "/load", "/help", "/gamma"),
    *("/gamma 3", "/gamma x", "/temp nan", "/temp 0", "/rule", "/rule block", "/draft ngram", "/mode exact"),
    *("/mode watch", "/mode", "/seed -1", "/max-tokens 0", "/system", "/system be brief", "/", "//", "/ x", "/quitt"),
    *("why?", HOSTILE, "[/bold]", "x" * 30_000),
]
REPLIES = [
    sky_reply(),
    reply_events([round_of(f"{HOSTILE}|a{HOSTILE}|x{HOSTILE}|r")], reason="length"),
    reply_events([round_of("half|p")], reason="length"),
    reply_events([])[:2],
]


def happens(dice, engine):
    """Something that an engine says, in an order that it should not have."""
    last = next((c for c in reversed(engine.commands) if isinstance(c, Reply)), None)
    number = last.reply if last else 1
    engine.say(
        dice.choice(
            [
                LOADED,
                Note(number, HOSTILE),
                Failed("EngineDiedError", HOSTILE, "", reply=None, died=True),
                Failed("DecodeError", "It failed.", "Again.", reply=number),
                PromptSize(100, 0, 8192),
                Learned("cpu", learned().to_dict()),
                Reading(number, "target", 5, 0, 0, 0.0),
                ReplyEvent(number, Prefill("target", 0, 0, 0.0)),
                ReplyEvent(number, round_of("late|p")),
            ]
        )
    )


async def mash(pilot, dice, steps):
    app = pilot.app
    for _ in range(steps):
        what = dice.random()
        if what < 0.55:
            await pilot.press(dice.choice(KEYS))
        elif what < 0.75 and len(app.screen_stack) == 1:
            app.screen.prompt.set_text(dice.choice(COMMANDS))
            app.screen.prompt.focus()
            await pilot.press("enter")
        elif what < 0.85:
            await pilot.resize_terminal(dice.choice([1, 3, 20, 59, 80, 120]), dice.choice([1, 5, 24, 40]))
        elif what < 0.9:
            happens(dice, app.engine)
        app.screen_stack[0].pump()
        app.screen_stack[0]._interrupted_at = -99.0  # or a second Ctrl+C would quit
        if not app.is_running:
            return


@pytest.mark.parametrize("seed", [1, 5])
async def test_nothing_breaks_and_everything_is_in_the_record(seed, tmp_path):
    dice = random.Random(seed)
    engine = ScriptedEngine([dice.choice(REPLIES) for _ in range(100)], slow_load=dice.random() < 0.5, step=1)
    async with running(engine, records=tmp_path / "records") as (app, pilot):
        await mash(pilot, dice, 100)
        await pilot.resize_terminal(120, 40)
        engine.say(Failed("EngineDiedError", "It died.", "", died=True))  # whatever is being written ends here
        await settle(pilot, frames=50)
        assert app.is_running
        said = [(m.role, m.content) for m in app.chat.conversation.messages]
        app.kept.close()
    if said:
        last = max((tmp_path / "records").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        assert [(m.role, m.content) for m in read_record(last).conversation.messages] == said
