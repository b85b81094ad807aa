"""What can be done with pairs in the picker besides fetching: remove, add, combine, measure."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from specchat.cli.remembering import RememberingEngine, StateMemory, keys_of
from specchat.config import load_state
from specchat.engine.interface import Calibrate, Failed, Load, Prediction, Stop
from specchat.pairs.verify import remember_good
from tests.gguf_writer import write_tiny_model
from tests.pairs.kept import Kept
from tests.tiny_vocabulary import bpe
from tests.tui.picking import (
    Files,
    MeasuringEngine,
    go_to,
    line_of,
    lines,
    looked,
    picker,
    shelf_on,
    until,
    words,
)
from tests.tui.screens import running, screen_text


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path / "served")


@pytest.fixture
def here(files, folder):
    """A models folder with all files, the target and the draft fetched by specchat, the other put there by hand."""
    folder.mkdir()
    for key, path in files.paths.items():
        copy = folder / path.name
        shutil.copy(path, copy)
        remember_good(folder, path.name, copy, files.models[key].sha256, fetched=key != "other")
    return folder


async def in_terminal(pilot, *keys):
    await pilot.press(*keys)
    await pilot.pause()


class TestRemoving:
    async def test_a_question_comes_first_and_its_first_answer_keeps_everything(self, files, here):
        async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "x")
            assert "remove Tiny target ⟵ draft" in words(app)
            assert "Tiny target is also used by: Tiny target ⟵ other." in words(app)
            await in_terminal(pilot, "enter")
            assert (here / "target.gguf").exists()

    async def test_one_file_or_both_are_removed(self, files, here):
        async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "x", "end", "enter")
            assert not (here / "draft.gguf").exists()
            assert (here / "target.gguf").exists()
            await until(pilot, lambda: "to fetch" in line_of(pilot, "⟵ draft"))
            assert "are free again" in words(app)
            await in_terminal(pilot, "x")

    async def test_what_specchat_did_not_fetch_is_never_removed(self, files, here):
        async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ other")
            await in_terminal(pilot, "x")
            assert "is not specchat's own: it is left there." in words(app)
            assert "Remove Tiny other" not in words(app)
            await in_terminal(pilot, "end", "enter")
            assert (here / "other.gguf").exists()
            assert not (here / "target.gguf").exists()

    async def test_the_loaded_pair_stays(self, files, here):
        async with running(pair="good", shelf=shelf_on(files, here)) as (app, pilot):
            app.screen.commands.run("/pair")
            await pilot.pause()
            await looked(pilot)
            await in_terminal(pilot, "x", "end", "enter")
            assert "The engine uses that file now." in words(app)
            assert (here / "draft.gguf").exists()


class TestAdding:
    async def add(self, pilot, text):
        await looked(pilot)
        await in_terminal(pilot, "a")
        pilot.app.screen.query_one("Input").value = str(text)
        await in_terminal(pilot, "enter")
        await until(pilot, lambda: "added:" in words(pilot.app) or "It is being looked at" not in words(pilot.app))

    async def test_a_folder_is_searched_and_remembered(self, files, folder, tmp_path):
        kept = Kept()
        async with running(pair=None, shelf=shelf_on(files, folder, kept)) as (app, pilot):
            await self.add(pilot, tmp_path / "served")
            assert "3 models added" in words(app)
            await until(pilot, lambda: any(line.lstrip(" ●★").startswith("target ") for line in lines(pilot)))
            assert kept.state.added == (str(tmp_path / "served"),)
        async with running(pair=None, shelf=shelf_on(files, folder, kept)) as (app, pilot):
            await looked(pilot)
            assert {line.split()[0] for line in lines(pilot)} == {"★", "Tiny", "target", "draft", "other"}

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("missing.gguf", "There is no file or folder"),
            ("empty", "There is no .gguf file in"),
            ("text.gguf", "text.gguf"),
            ("cut.gguf", "cut"),
            ("big-00001-of-00003.gguf", "big-00002-of-00003.gguf"),
            ("bert.gguf", "bert.gguf is an embedding model"),
        ],
    )
    async def test_what_cannot_be_used_is_refused_with_its_own_sentence(self, files, folder, tmp_path, name, said):
        (tmp_path / "empty").mkdir()
        (tmp_path / "text.gguf").write_text("not a model")
        whole = files.content("target")
        (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
        split = {"split.no": 0, "split.count": 3, "split.tensors.count": 60}
        write_tiny_model(tmp_path / "big-00001-of-00003.gguf", metadata={k: np.uint16(v) for k, v in split.items()})
        write_tiny_model(tmp_path / "bert.gguf", metadata={"general.architecture": "bert"})
        kept = Kept()
        async with running(pair=None, shelf=shelf_on(files, folder, kept)) as (app, pilot):
            await self.add(pilot, tmp_path / name)
            text = words(app)
            assert "add models" in text
            assert said in text
            assert kept.state.added == ()
            await in_terminal(pilot, "escape")
            assert picker(pilot) is app.screen

    async def test_a_file_that_was_added_can_be_taken_off_the_list(self, files, folder, tmp_path):
        kept = Kept()
        mine = write_tiny_model(tmp_path / "mine.gguf")
        async with running(pair=None, shelf=shelf_on(files, folder, kept)) as (app, pilot):
            await self.add(pilot, mine)
            await until(pilot, lambda: any("mine" in line for line in lines(pilot)))
            await looked(pilot)
            await go_to(pilot, "mine")
            await in_terminal(pilot, "x")
            assert "no file is touched" in words(app)
            await in_terminal(pilot, "down", "enter")
            await until(pilot, lambda: not any("mine" in line for line in lines(pilot)))
            assert kept.state.added == ()
            assert mine.exists()


class TestAnyTargetWithAnyDraft:
    async def test_another_draft_is_chosen_with_its_verdicts(self, files, here):
        kept = Kept()
        async with running(pair=None, shelf=shelf_on(files, here, kept)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ other")
            assert "✗ differs" in line_of(pilot, "⟵ other")
            assert "d chooses another draft" in words(app)
            await in_terminal(pilot, "d")
            assert "n-gram" in words(app)
            await until(
                pilot, lambda: "✗ differs" in words(app) and "✓ same" in words(app) and "✓ itself" in words(app)
            )
            await in_terminal(pilot, "end")
            await until(pilot, lambda: "the draft one of the kind 'llama'" in words(app))
            await in_terminal(pilot, "home", "enter")
            await until(pilot, lambda: "Tiny target ⟵ n-gram" in words(app))
            assert kept.state.combined == (("target", "ngram"),)
            await looked(pilot)
            await in_terminal(pilot, "enter")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            assert app.chat.settings.drafter == "ngram"
            load = next(command for command in app.engine.commands if isinstance(command, Load))
            assert load.draft is None

    async def test_a_new_pair_of_any_two_models_is_remembered(self, files, here):
        kept = Kept()
        async with running(pair=None, shelf=shelf_on(files, here, kept)) as (app, pilot):
            await looked(pilot)
            await in_terminal(pilot, "n")
            assert "target of a new pair" in words(app)
            await in_terminal(pilot, "home", "enter")
            first = next(model for model in files.models.values() if f"draft for {model.name}" in words(app))
            await looked(pilot)
            await in_terminal(pilot, "end", "enter")
            (combined,) = kept.state.combined
            assert combined[0] == first.key
            await looked(pilot)
            assert picker(pilot).picking.collection.is_combined(picker(pilot).picking.highlighted)
        async with running(pair=None, shelf=shelf_on(files, here, kept)) as (app, pilot):
            await looked(pilot)
            assert len(lines(pilot)) == 3

    async def test_a_draft_that_differs_is_explained_and_not_simply_refused(self, files, here):
        async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ other")
            await in_terminal(pilot, "enter")
            assert "Chat with n-gram in its place" in words(app)
            await in_terminal(pilot, "end", "enter")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            assert app.chat.settings.drafter == "ngram"

    async def test_a_pair_with_a_draft_drafts_again_after_one_without(self, files, here):
        async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ other")
            await in_terminal(pilot, "enter", "end", "enter")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            await until(pilot, lambda: app.chat.loaded is not None)
            app.screen.open_pair("good")
            assert app.chat.settings.drafter == "draft"


async def test_what_does_not_fit_is_a_warning_and_not_a_refusal(files, here):
    async with running(pair=None, shelf=shelf_on(files, here, ram=0.0001)) as (app, pilot):
        await looked(pilot)
        await go_to(pilot, "⟵ draft")
        assert "✗ too big" in line_of(pilot, "⟵ draft")
        await in_terminal(pilot, "enter")
        assert "does not fit the memory that is free" in words(app)
        assert len(app.screen_stack) == 3
        await in_terminal(pilot, "end", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert any(isinstance(command, Load) for command in app.engine.commands)


class TestMeasuring:
    async def test_it_is_shown_recommended_and_stored(self, files, here, tmp_path):
        memory = StateMemory(tmp_path / "state.json")
        inner = MeasuringEngine()
        engine = RememberingEngine(inner, tmp_path / "state.json", keys_of(files.catalog))
        async with running(engine, pair=None, shelf=shelf_on(files, here, memory)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            assert "not measured" in line_of(pilot, "⟵ draft")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: "α 0.80" in line_of(pilot, "⟵ draft"))
            assert "was measured in" in words(app)
            assert "Recommended here: the draft model with γ 4, about 1.41×." in words(app)
            load = inner.commands[0]
            assert (load.exact, load.draft_if_it_pays) == (False, False)
        (stored,) = load_state(tmp_path / "state.json")[0].measurements
        assert (stored.pair, stored.recommended.drafter) == ("good", "draft")

    async def test_none_is_a_recommendation(self, files, here, tmp_path):
        inner = MeasuringEngine()
        inner.recommended = Prediction("none", 0, 1.0)
        engine = RememberingEngine(inner, tmp_path / "state.json", keys_of(files.catalog))
        shelf = shelf_on(files, here, StateMemory(tmp_path / "state.json"))
        async with running(engine, pair=None, shelf=shelf) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: "Recommended here: none." in words(app))

    async def test_progress_is_shown_and_esc_stops(self, files, here):
        async with running(MeasuringEngine(hold=True), pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: "measuring passes of the target. Esc stops it." in words(app))
            assert "40%" in words(app)
            assert "measuring" in line_of(pilot, "⟵ draft")
            await in_terminal(pilot, "f", "enter")
            assert len(app.screen_stack) == 2
            await in_terminal(pilot, "escape")
            await until(pilot, lambda: "Measuring was stopped." in words(app))
            assert sum(isinstance(command, Stop) for command in app.engine.commands) == 1
            assert len(app.screen_stack) == 2

    async def test_the_loaded_pair_is_measured_as_it_is(self, files, here):
        async with running(MeasuringEngine(), pair="good", shelf=shelf_on(files, here)) as (app, pilot):
            app.screen.commands.run("/pair")
            await pilot.pause()
            await looked(pilot)
            await in_terminal(pilot, "m")
            await until(pilot, lambda: any(isinstance(command, Calibrate) for command in app.engine.commands))
            await until(pilot, lambda: "was measured" in words(app))
            await in_terminal(pilot, "escape")
            assert sum(isinstance(command, Load) for command in app.engine.commands) == 1
            assert app.chat.phase == "ready"

    async def test_the_chats_pair_comes_back_after_another_was_measured(self, files, here):
        async with running(MeasuringEngine(), pair="good", shelf=shelf_on(files, here)) as (app, pilot):
            app.screen.commands.run("/pair")
            await pilot.pause()
            await looked(pilot)
            await go_to(pilot, "⟵ other")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: "was measured" in words(app))
            await in_terminal(pilot, "escape")
            await until(pilot, lambda: app.chat.phase == "ready")
            loads = [command.draft for command in app.engine.commands if isinstance(command, Load)]
            assert [draft.rsplit("/", 1)[-1] for draft in loads] == ["draft.gguf", "other.gguf", "draft.gguf"]

    async def test_a_failure_is_told_and_the_picker_stays(self, files, here):
        engine = MeasuringEngine(hold=True)
        async with running(engine, pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: any(isinstance(command, Calibrate) for command in engine.commands))
            engine.say(Failed("MemoryShortError", "No memory.", "Choose a smaller pair.", died=True))
            await until(pilot, lambda: "No memory. Choose a smaller pair." in words(app))
            await in_terminal(pilot, "s")
            assert not picker(pilot).picking.measuring.is_going

    async def test_leaving_in_the_middle_stops_it_and_gives_the_engine_back(self, files, here):
        engine = MeasuringEngine(hold=True)
        async with running(engine, pair=None, shelf=shelf_on(files, here)) as (app, pilot):
            await looked(pilot)
            await go_to(pilot, "⟵ draft")
            await in_terminal(pilot, "m")
            await until(pilot, lambda: any(isinstance(command, Calibrate) for command in engine.commands))
            await in_terminal(pilot, "ctrl+c")
            assert len(app.screen_stack) == 1
            await until(pilot, lambda: not app.screen.opening.measuring.is_going)
            assert any(isinstance(command, Stop) for command in engine.commands)


async def test_models_of_other_programs_are_offered_where_they_are(files, folder, tmp_path):
    lm_studio = Path.home() / ".lmstudio" / "models" / "someone" / "tiny"
    lm_studio.mkdir(parents=True)
    mine = write_tiny_model(lm_studio / "elsewhere.gguf")
    (lm_studio / "half.gguf").write_bytes(mine.read_bytes()[:5000])
    async with running(pair=None, shelf=shelf_on(files, folder)) as (app, pilot):
        await looked(pilot)
        assert "1 file left out" in words(app)
        await go_to(pilot, "elsewhere")
        assert "Found: LM Studio." in words(app)
        assert "on disk" in line_of(pilot, "elsewhere")
        await in_terminal(pilot, "x")
        assert len(app.screen_stack) == 2
        assert "specchat removes only what it fetched itself." in words(app)
        await in_terminal(pilot, "l")
        assert "half.gguf" in words(app)
        await in_terminal(pilot, "escape", "enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        load = next(command for command in app.engine.commands if isinstance(command, Load))
        assert load.target == str(mine)
    assert not folder.exists() or not list(folder.rglob("*.gguf"))


async def test_the_first_differing_token_is_named(files, here, tmp_path):
    tokens = bpe().tokens
    tokens[300] = "else\x1bwhere"
    write_tiny_model(Path.home() / "changed.gguf", metadata={"tokenizer.ggml.tokens": tokens})
    kept = Kept()
    kept.add_place(str(Path.home() / "changed.gguf"))
    kept.add_pair("target", str(Path.home() / "changed.gguf"))
    async with running(pair=None, shelf=shelf_on(files, here, kept)) as (app, pilot):
        await looked(pilot)
        await go_to(pilot, "⟵ changed")
        assert "Token 300 is " in words(app)
        assert "'else\\x1bwhere' for the draft: their vocabularies differ." in words(app)


async def test_a_click_looks_and_a_double_click_opens(files, here):
    async with running(pair=None, shelf=shelf_on(files, here)) as (app, pilot):
        await looked(pilot)
        await pilot.click("#pairs-list", offset=(10, 1))
        await pilot.pause()
        assert picker(pilot).picking.highlighted == "bad"
        assert len(app.screen_stack) == 2
        await pilot.click("#pairs-list", offset=(10, 0), times=2)
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert any(isinstance(command, Load) for command in app.engine.commands)


async def test_a_fetch_of_the_chat_goes_on_in_the_picker():
    async with running(pair="large") as (app, pilot):
        await until(pilot, lambda: app.screen.opening.fetch.latest is not None)
        app.screen.commands.run("/pair")
        await pilot.pause()
        await until(pilot, lambda: "fetch 2" in line_of(pilot, "7B"))
        assert not app.screen_stack[0].opening.is_fetching
        app.shelf.arrived.set()
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await until(pilot, lambda: any(isinstance(command, Load) for command in app.engine.commands))


async def test_names_of_files_are_neither_markup_nor_terminal_control(files, folder, tmp_path):
    evil = "[bold red]x \x1b]52;c;QQ==\x07 \u202e$(id)"
    own = write_tiny_model(Path.home() / f"{evil}.gguf", metadata={"general.license": f"[link=x]{evil}"})
    kept = Kept()
    kept.add_place(str(own))
    async with running(pair=None, shelf=shelf_on(files, folder, kept), size=(140, 40)) as (app, pilot):
        await looked(pilot)
        await go_to(pilot, "[bold red]x")
        text = screen_text(app)
        assert text.count("[bold red]x ␛]52;c;QQ==␇ ⟨U+202E⟩$(id)") >= 3  # the table, the pane's title, the path
        for keys in ("d", "n", "x"):
            await in_terminal(pilot, keys)
            text = screen_text(app)
            assert "[bold red]x ␛]52" in text
            assert not set(text) & set("\x1b\x07\u202e")
            await in_terminal(pilot, "escape")


async def test_leaving_while_folders_are_looked_through_leaves_no_thread_at_work(files, here):
    async with running(pair=None, shelf=shelf_on(files, here)) as (_, pilot):
        looking = picker(pilot).picking.looking
        await in_terminal(pilot, "escape")
    looking._thread.join(30)
    assert not looking._thread.is_alive()
