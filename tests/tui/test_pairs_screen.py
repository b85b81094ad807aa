"""The pair picker in the application: real files and servers where they matter, a scripted engine."""

from __future__ import annotations

from specchat.engine.interface import Load
from tests.tui.picking import lines, looked, picker, until
from tests.tui.screens import running, screen_text
from tests.tui.shelf import FakeShelf


async def test_the_recommended_pair_is_preselected_and_enter_opens_it():
    async with running(pair=None) as (app, pilot):
        await looked(pilot)
        assert picker(pilot).picking.highlighted == "small"
        assert lines(pilot)[0].startswith("★ qwen2.5-coder 1.5B ⟵ 0.5B")
        assert "recommended for this machine" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.engine.commands[-1] == app.engine.commands[0]
        assert [c.target for c in app.engine.commands if isinstance(c, Load)] == ["/models/target.gguf"]
        assert [files.key for files in app.shelf.used] == ["small"]


async def test_typing_filters_and_single_letters_are_no_actions_meanwhile():
    async with running(pair=None) as (app, pilot):
        await looked(pilot)
        await pilot.press("slash", *"7b")
        assert [line[2:18] for line in lines(pilot)] == ["qwen2.5-coder 7B"]
        assert "1 of 3" in screen_text(app)
        await pilot.press("space", *"fmx")
        assert lines(pilot) == []
        assert "No pair has these words in it." in screen_text(app)
        assert not picker(pilot).picking.fetches.is_fetching
        await pilot.press("escape")
        assert len(lines(pilot)) == 3
        assert picker(pilot).focused.id == "pairs-list"


async def test_the_filter_stays_when_one_goes_back_to_the_table():
    async with running(pair=None) as (app, pilot):
        await looked(pilot)
        await pilot.press("slash", *"coder", "down")
        assert len(lines(pilot)) == 2
        await pilot.press("down", "s")
        assert picker(pilot).picking.sort == "speedup"
        assert picker(pilot).picking.highlighted == "large"
        await pilot.press("escape")
        assert len(lines(pilot)) == 3
        await pilot.press("escape")
        assert len(app.screen_stack) == 1


async def test_rows_are_sorted_by_fit_speedup_and_size():
    async with running(pair=None) as (_, pilot):
        await looked(pilot)
        names = [line.split()[-8:] and line[2:20].strip() for line in lines(pilot)]
        assert names == ["qwen2.5-coder 1.5B", "qwen2.5-coder 7B ⟵", "gone"]
        await pilot.press("s", "s")
        assert [line[2:20].strip() for line in lines(pilot)] == ["gone", "qwen2.5-coder 1.5B", "qwen2.5-coder 7B ⟵"]


async def test_the_cursor_stays_on_its_pair_when_rows_move():
    async with running(pair=None) as (_, pilot):
        await looked(pilot)
        await pilot.press("down")
        key = picker(pilot).picking.highlighted
        await pilot.press("s", "s")
        assert picker(pilot).picking.highlighted == key == picker(pilot).query_one("#pairs-list").key


async def test_keys_that_would_do_nothing_are_not_shown():
    async with running(pair=None) as (app, pilot):
        await looked(pilot)
        await pilot.press("end")
        await pilot.pause()
        footer = screen_text(app).splitlines()[-1]
        assert "f fetch" in footer
        assert "measure" not in footer
        assert "remove" not in footer


async def test_esc_goes_back_to_the_chat():
    async with running(pair=None) as (app, pilot):
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        assert app.engine.commands == []


async def test_the_picker_opens_from_within_a_chat_on_the_pair_that_is_loaded():
    shelf = FakeShelf()
    async with running(shelf=shelf) as (app, pilot):
        app.screen.commands.run("/pair")
        await pilot.pause()
        await looked(pilot)
        assert picker(pilot).picking.highlighted == "small"
        assert "loaded" in lines(pilot)[0]
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert sum(isinstance(command, Load) for command in app.engine.commands) == 1
