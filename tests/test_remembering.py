"""What a pair teaches and what is measured of it is kept from one start to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.cli import main
from specchat.cli.remembering import RememberingEngine, keys_of
from specchat.config import Lesson, State, load_state, update_state
from specchat.engine.interface import Calibration, Learned, Load, Loaded, ModelDescription, Stop
from specchat.pairs.catalog import DEFAULT_PAIR, load_catalog
from specchat.tui.app import SpecchatApp

MODEL = ModelDescription("m", "/m.gguf", "a", "q", 1, 1, 1, 0, 1, 1, 1, "CPU")
LOADED = Loaded(MODEL, None, 4096, 16, True, "build 1")


class Scripted:
    """Answers with what it is given."""

    def __init__(self, *messages) -> None:
        self.messages, self.sent, self.closed = list(messages), [], False

    def send(self, command) -> None:
        self.sent.append(command)

    def receive(self, timeout=None):
        return self.messages.pop(0) if self.messages else None

    def drain(self):
        messages, self.messages = self.messages, []
        return messages

    def close(self) -> None:
        self.closed = True


def remembering(file: Path, *messages) -> tuple[RememberingEngine, Scripted]:
    scripted = Scripted(*messages)
    return RememberingEngine(scripted, file, lambda load: f"pair of {load.target}"), scripted


def test_lessons_are_kept_and_given_back_to_their_pair(tmp_path: Path) -> None:
    file = tmp_path / "state" / "state.json"
    learned = Learned("CPU, 4 threads", {"target": {"1": [0.5, 3]}})
    engine, _ = remembering(file, learned)
    engine.send(Load("a"))
    assert engine.receive() == learned
    assert load_state(file)[0].lessons == (
        Lesson(pair="pair of a", setup="CPU, 4 threads", experience={"target": {"1": [0.5, 3]}}),
    )
    again, scripted = remembering(file)
    again.send(Load("b"))
    again.send(Load("a"))
    again.send(Stop())
    assert [command.learned for command in scripted.sent[:2]] == [(), (learned,)]
    assert scripted.sent[2] == Stop()
    assert engine.problem is None


def test_measurements_are_kept_with_what_they_hold_for(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    found = Calibration({1: 0.03, 2: 0.05}, 0.02, 0.01, (0.8, 0.7), 33.0)
    engine, _ = remembering(file, found, LOADED, found)
    engine.send(Load("a"))
    assert engine.drain() == [found, LOADED, found]
    [kept] = load_state(file)[0].measurements
    assert (kept.pair, kept.device, kept.version, kept.n_ctx) == ("pair of a", "CPU", "build 1", 4096)
    assert kept.pass_seconds == found.pass_seconds
    assert (kept.draft_step_seconds, kept.draft_catch_up_seconds) == (0.02, 0.01)
    assert kept.acceptance_by_position == (0.8, 0.7)
    assert load_state(file)[0].measurement("pair of a", "CPU", "build 1") == kept


def test_measurements_of_two_contexts_stand_side_by_side(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    found = Calibration({1: 0.03}, None, None, (), 33.0)
    small = Loaded(MODEL, None, 1024, 16, True, "build 1")
    engine, _ = remembering(file, LOADED, found, small, found, small, found)
    engine.send(Load("a"))
    engine.drain()
    assert [each.n_ctx for each in load_state(file)[0].measurements] == [4096, 1024]


def test_the_oldest_lessons_are_dropped() -> None:
    state = State()
    for number in range(60):
        state = state.with_lesson(Lesson(pair=str(number), setup="s", experience={}))
    state = state.with_lesson(Lesson(pair="59", setup="s", experience={"new": 1}))
    assert [each.pair for each in state.lessons] == [str(number) for number in range(20, 60)]
    assert state.lessons[-1].experience == {"new": 1}


def test_a_file_that_cannot_be_written_is_told_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> State:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("specchat.cli.remembering.update_state", full)
    learned = Learned("s", {})
    engine, scripted = remembering(tmp_path / "state.json", learned)
    engine.send(Load("a"))
    assert engine.receive() == learned
    assert engine.receive() is None
    assert "No space left" in (engine.problem or "")
    engine.close()
    assert scripted.closed


def test_other_memories_stay(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    update_state(file, lambda _: State(last_pair="p"))
    engine, _ = remembering(file, Learned("s", {}))
    engine.send(Load("a"))
    engine.receive()
    assert load_state(file)[0].last_pair == "p"


def test_pairs_have_the_catalogue_s_name_or_one_of_their_files() -> None:
    catalog = load_catalog()
    key, pair = keys_of(catalog), catalog.pair(DEFAULT_PAIR)
    assert pair.draft is not None
    assert key(Load(f"/models/{pair.target.file}", f"/models/{pair.draft.file}")) == DEFAULT_PAIR
    assert key(Load(f"/models/{pair.target.file}")) == Path(pair.target.file).stem
    assert key(Load("/x/big.gguf", "/y/small.gguf")) == "big+small"


def test_the_chat_tells_at_its_end_what_was_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("config", "data", "cache", "state"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    (tmp_path / "state").touch()  # a file, where there should be a folder
    monkeypatch.setattr("specchat.cli.chat.is_terminal", lambda stream: True)
    monkeypatch.setattr("specchat.cli.chat.ProcessEngine", lambda: Scripted(Learned("s", {})))
    monkeypatch.setattr(SpecchatApp, "run", lambda app: app.engine.drain())
    assert main([]) == 0
    assert "what was learned is not kept." in capfd.readouterr().err.splitlines()[-1]
