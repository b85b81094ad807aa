"""Fetching in the pair picker, from a hub on this machine: progress, pause, cancel, a network that goes away."""

from __future__ import annotations

import pytest

from specchat.engine.interface import Load
from specchat.pairs import hub_child
from tests.pairs.hub_server import HubFile, HubServer
from tests.tui.picking import Files, go_to, line_of, looked, picker, shelf_on, until, words
from tests.tui.screens import running, screen_text


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path / "served")


@pytest.fixture
def hub(hub_server: HubServer, files: Files) -> HubServer:
    """A hub that has all of them; the target comes only in part until the test says more."""
    for key in files.paths:
        hub_server.answers[f"me/{key}/{key}.gguf"] = HubFile(files.content(key))
    return hub_server


def stop_in_target(hub: HubServer, files: Files) -> None:
    content = files.content("target")
    hub.answers["me/target/target.gguf"] = HubFile(content, stop_after=hub_child._CHUNK + 1000)
    assert len(content) > hub_child._CHUNK + 1000


def whole_target(hub: HubServer, files: Files) -> None:
    hub.answers["me/target/target.gguf"] = HubFile(files.content("target"))


async def begin_fetch(pilot, key="f"):
    """Fetches the good pair, until it hangs in the middle of the target."""
    await looked(pilot)
    await go_to(pilot, "⟵ draft")
    await pilot.press(key)
    await until(pilot, lambda: picker(pilot).picking.fetches.state("good").done >= hub_child._CHUNK)
    await until(pilot, lambda: "fetch " in line_of(pilot, "⟵ draft"))


async def test_a_new_user_reaches_a_chat_with_the_recommended_pair(hub, files, folder):
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await looked(pilot)
        assert line_of(pilot, "★").startswith("★ Tiny target ⟵ draft")
        assert picker(pilot).picking.highlighted == "good"
        assert "to fetch" in line_of(pilot, "★")
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        (load,) = (command for command in app.engine.commands if isinstance(command, Load))
        assert load.target.endswith("target.gguf")
        assert load.draft is not None
        assert load.draft.endswith("draft.gguf")


async def test_fetching_alone_stays_in_the_picker(hub, files, folder):
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await looked(pilot)
        await pilot.press("f")
        await until(pilot, lambda: "on disk" in line_of(pilot, "⟵ draft"))
        await until(pilot, lambda: "✓ same" in line_of(pilot, "⟵ draft"))
        assert "is on this disk now. Enter opens it" in words(app)
        assert len(app.screen_stack) == 2


async def test_progress_is_shown_in_the_row_and_in_the_detail_pane(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot)
        total = len(files.content("target")) + len(files.content("draft"))
        share = f"{hub_child._CHUNK / total:.0%}"
        await until(pilot, lambda: share in line_of(pilot, "⟵ draft"))
        text = words(app)
        assert "262 kB of" in text
        assert "Tiny target: fetching from the Hugging Face hub" in text


async def test_a_fetch_is_paused_and_gone_on_with_where_it_stopped(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot)
        assert "p pause" in screen_text(app).splitlines()[-1]
        await pilot.press("p")
        await until(pilot, lambda: "paused" in line_of(pilot, "⟵ draft"))
        assert "%" in line_of(pilot, "⟵ draft")
        await pilot.pause()
        footer = screen_text(app).splitlines()[-1]
        assert "p resume" in footer
        assert "p pause" not in footer
        whole_target(hub, files)
        hub.starts.clear()
        await pilot.press("p")
        await until(pilot, lambda: "on disk" in line_of(pilot, "⟵ draft"))
        assert hub.starts[0] >= hub_child._CHUNK


async def test_a_pair_that_was_to_be_opened_is_opened_after_a_pause_too(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot, "enter")
        await pilot.press("p")
        await until(pilot, lambda: "paused" in line_of(pilot, "⟵ draft"))
        whole_target(hub, files)
        await pilot.press("p")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert any(isinstance(command, Load) for command in app.engine.commands)


async def test_what_was_paused_is_known_at_the_next_start(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot, "enter")
        screen = picker(pilot)
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        await until(pilot, lambda: screen.picking.tick() or not screen.picking.fetches.is_fetching)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await looked(pilot)
        assert "paused" in line_of(pilot, "⟵ draft")
        assert "are here already" in words(app)


async def test_cancelling_asks_first_and_keeps_everything_by_default(hub, files, folder, alone):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot)
        await pilot.press("c")
        assert "is thrown away. Pausing with p would keep it." in words(app)
        await pilot.press("enter")
        await pilot.pause()
        assert "fetch " in line_of(pilot, "⟵ draft")
        await pilot.press("c", "down", "enter")
        await until(pilot, lambda: "to fetch" in line_of(pilot, "⟵ draft"))
        await until(pilot, lambda: "The fetch was cancelled" in words(app))
        assert not list(alone.rglob("*.incomplete"))


async def test_the_picker_survives_losing_the_network_and_goes_on(hub, files, folder, monkeypatch):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await begin_fetch(pilot, "enter")
        hub.close()
        await until(pilot, lambda: "failed" in line_of(pilot, "⟵ draft"))
        text = words(app)
        assert "cannot be reached" in text
        assert "p goes on from there." in text
        await pilot.press("s", "s", "s")  # the picker is as it was
        again = HubServer(dict(hub.answers))
        whole_target(again, files)
        monkeypatch.setenv("HF_ENDPOINT", again.url)
        await go_to(pilot, "⟵ draft")
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert again.starts[0] >= hub_child._CHUNK
        assert any(isinstance(command, Load) for command in app.engine.commands)
        again.close()


async def test_a_second_fetch_waits_for_the_first(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (_, pilot):
        await begin_fetch(pilot)
        await go_to(pilot, "⟵ other")
        await pilot.press("f")
        await until(pilot, lambda: "waiting" in line_of(pilot, "⟵ other"))
        await pilot.press("p")
        await until(pilot, lambda: "waiting" not in line_of(pilot, "⟵ other"))


async def test_nobody_is_left_when_the_application_ends_in_the_middle(hub, files, folder):
    stop_in_target(hub, files)
    async with running(pair=None, shelf=shelf_on(files, folder)) as (_, pilot):
        await begin_fetch(pilot)
        fetch = picker(pilot).picking.fetches._fetch
    fetch._thread.join(60)
    assert not fetch._thread.is_alive()
    assert hub.left.is_set()
