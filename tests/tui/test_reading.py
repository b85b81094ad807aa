"""The reading view: formatted, and nothing of what was said is missing."""

from tests.tui.screens import running, say, screen_text
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of

FIRST = (
    "<think>\nhm, a & b\n</think>\n\nUse Vec<String>, <canvas>, `Box<T>`, a &lt; b.\n\n"
    "![A cat](http://c/d.png) in [the docs](http://b/x).\n\n"
    "Not &#x202e;seen: <http://a/%1b]52;c;QQ==%07>\n\n[1]: http://example.org\n\n"
    "- ~~old~~ **new**\n\n```rust\nlet v: Vec<u8>"
)
SECOND = "## All of it\n\n```\nclosed\n```"


async def test_nothing_is_lost_and_nothing_spills_into_the_next_message():
    replies = [reply_events([round_of(f"{text}|p")]) for text in (FIRST, SECOND)]
    async with running(ScriptedEngine(replies), size=(120, 50)) as (app, pilot):
        await say(pilot, "how?")
        await pilot.press("tab", "v")
        await pilot.pause()
        first = app.screen.pane.query("Markdown").last()
        await pilot.press("tab")
        app.screen.fold.ask("what is <b>,\n```\nin **bold**?")
        await say(pilot, "")
        await pilot.pause()
        text = screen_text(app)
        assert app.screen.pane.is_reading
        assert first.is_attached, "what has not changed is not made again"
        for said in ("<think> hm, a & b </think>", "Vec<String>, <canvas>, Box<T>, a < b.", "[1]: http://example.org"):
            assert said in text
        assert "!A cat (http://c/d.png) in the docs (http://b/x)." in text
        assert "Not ⟨U+202E⟩seen: http://a/␛]52;c;QQ==␇" in text
        assert not {"\x1b", "\u202e"} & set(text)
        for marks in ("**new**", "~~old", "```", "## All"):
            assert marks not in text
        for shown in ("let v: Vec<u8>", "what is <b>,", "in **bold**?", "All of it", "closed"):
            assert shown in text
