"""The commands, as somebody types them: run in processes of their own, on tiny models."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specchat.chat.conversation import Conversation
from specchat.chat.record import RecordWriter
from specchat.chat.record_lines import Header
from specchat.cli import main
from specchat.cli.choices import Choices, World
from specchat.cli.options import parser
from specchat.cli.terminal import Interrupt, ProgressLine, interrupts
from specchat.config import Paths, Settings, State, find_paths, load_state
from specchat.core.events import Event, Finished, FinishReason, PlainSpeed, Prefill, Round, from_json
from specchat.core.settings import ChatMessage
from specchat.engine.interface import (
    Command,
    Failed,
    Load,
    Loaded,
    LoadProgress,
    Message,
    ModelDescription,
    Note,
    Reply,
    ReplyEvent,
    Stop,
)
from specchat.engine.local import LocalEngine
from specchat.errors import UsageError
from specchat.pairs.catalog import DEFAULT_PAIR, load_catalog
from tests.engine import toy_loader
from tests.engine.conversing import events_of, reply, until_kind
from tests.gguf_writer import write_tiny_model

HEAVY = ("numpy", "textual", "llama_cpp", "huggingface_hub", "jinja2", "msgspec", "psutil", "platformdirs", "asyncio")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("gguf")
    made = {
        "target": write_tiny_model(folder / "target.gguf", seed=1, n_ctx_train=60_000),
        "draft": write_tiny_model(folder / "draft.gguf", seed=1, perturb=0.1, n_ctx_train=60_000),
        "other": write_tiny_model(folder / "other.gguf", seed=1, tokenizer="spm"),
    }
    return {name: str(path) for name, path in made.items()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own: no settings, no models, no memory of the person who runs the tests."""
    for name in ("config", "data", "cache", "state"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "specchat", *words]


def run(*words: str, text: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
    content = text.encode() if isinstance(text, str) else text
    return subprocess.run(command(*words), input=content, capture_output=True, timeout=120, check=False)


def ask(models: dict[str, str], *words: str, text: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
    files = ("--target", models["target"], "--draft", models["draft"])
    return run("ask", *files, "--threads", "1", "--seed", "5", "--ctx", "2000", *words, text=text)


def events(output: bytes) -> list[Any]:
    return [from_json(json.loads(line)) for line in output.decode().splitlines()]


# --- ask -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("home")
def test_the_text_and_nothing_else(models: dict[str, str]) -> None:
    plain = ask(models, "hello", "--max-tokens", "12")
    assert (plain.returncode, plain.stderr) == (0, b"")
    lines = ask(models, "hello", "--max-tokens", "12", "--json")
    assert lines.returncode == 0
    *before, finished = events(lines.stdout)
    assert isinstance(finished, Finished)
    assert finished.tokens == 12
    text = "".join(token.text for event in before if isinstance(event, Round) for token in event.committed)
    assert plain.stdout.decode() == text + finished.tail


@pytest.mark.usefixtures("home")
def test_fast_is_the_default_and_loads_no_draft_that_is_not_expected_to_pay(models: dict[str, str]) -> None:
    played = events(ask(models, "hello", "--max-tokens", "9", "--json").stdout)
    assert [event.model for event in played if isinstance(event, Prefill)] == ["target"]
    assert "draft" not in {token.drafter for event in played if isinstance(event, Round) for token in event.drafted}
    first = next(event for event in played if isinstance(event, Round))
    assert first.why == "fast: no draft model is loaded, it would cost more than it saves (break-even none)"


@pytest.mark.usefixtures("home")
def test_what_a_pair_taught_is_kept(models: dict[str, str]) -> None:
    ask(models, "hello", "--max-tokens", "9")
    [lesson] = load_state(find_paths().state_file)[0].lessons
    assert lesson.pair == f"{Path(models['target']).stem}+{Path(models['draft']).stem}"
    assert "CPU" in lesson.setup
    assert "2000 tokens" in lesson.setup
    assert lesson.experience["target"]["1"][0] > 0


@pytest.mark.usefixtures("home")
def test_watch_shows_every_fate(models: dict[str, str]) -> None:
    words = ("--mode", "watch", "--gamma", "1", "--temp", "0.9", "--max-tokens", "200", "--json", "--details")
    result = ask(models, "hello", *words)
    played = events(result.stdout)
    assert isinstance(played[0], Prefill)
    assert isinstance(played[1], PlainSpeed)
    fates = {token.fate.value for event in played if isinstance(event, Round) for token in event.drafted}
    fates |= {token.fate.value for event in played if isinstance(event, Round) for token in event.committed}
    assert {"accepted", "rejected", "resampled", "bonus"} <= fates
    assert all(event.details for event in played if isinstance(event, Round))
    assert result.stderr == b""


class ScriptedEngine:
    """Answers from a list, and keeps what it was told."""

    def __init__(self, *answers: Message) -> None:
        self.answers = list(answers)
        self.commands: list[Command] = []
        self.closed = False

    def __call__(self) -> ScriptedEngine:
        return self

    def send(self, command: Command) -> None:
        self.commands.append(command)

    def receive(self, timeout: float | None = None) -> Message | None:
        return self.answers.pop(0)

    def drain(self) -> list[Message]:
        return []

    def close(self) -> None:
        self.closed = True


MODEL = ModelDescription("m", "m.gguf", "llama", "Q4", 1, 1, 1, 0, 1, 1, 1, "CPU")
LOADED = Loaded(MODEL, None, 512, 16, True, "a build", ("A note.",))


def finished(reason: FinishReason = "end", tail: str = "") -> ReplyEvent:
    return ReplyEvent(1, Finished(reason, 0, 0, 0.0, 0.0, None, (), None, None, None, None, None, tail))


@pytest.fixture
def scripted(home: Path, models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs ``ask`` on a scripted engine; returns the engine and the exit status."""

    def run_scripted(*words: str, answers: Sequence[Message], text: str | bytes = b"") -> tuple[ScriptedEngine, int]:
        engine = ScriptedEngine(*answers)
        monkeypatch.setattr("specchat.cli.ask.ProcessEngine", engine)
        monkeypatch.setattr(sys, "stdin", typed(text))
        return engine, main(["ask", "--target", models["target"], *words])

    return run_scripted


def typed(text: str | bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize(
    ("words", "text", "question"),
    [
        (["one"], "", "one"),
        ([], "two\n", "two"),
        (["one"], "two\nthree\n", "one\n\ntwo\nthree"),
        (["one"], "\n", "one"),
        (["naïve"], b"\xff\xfe torn", "naïve\n\n\ufffd\ufffd torn"),
    ],
)
def test_what_is_asked(scripted: Any, words: list[str], text: str | bytes, question: str) -> None:
    engine, status = scripted(*words, text=text, answers=[LOADED, finished()])
    assert status == 0
    assert engine.commands[1].messages == (ChatMessage("user", question),)
    assert engine.closed


def test_a_system_message_comes_first(scripted: Any, tmp_path: Path) -> None:
    (tmp_path / "system.txt").write_text("be kind\n", "utf-8")
    for given, content in (("be quick", "be quick"), (f"@{tmp_path}/system.txt", "be kind\n")):
        engine, _ = scripted("x", "--system", given, answers=[LOADED, finished()])
        assert engine.commands[1].messages == (ChatMessage("system", content), ChatMessage("user", "x"))


def test_plain_speed_is_measured_only_where_it_is_shown(scripted: Any) -> None:
    for words, measured in (([], False), (["--mode", "watch"], False), (["--mode", "watch", "--json"], True)):
        engine, _ = scripted("x", *words, answers=[LOADED, finished()])
        assert engine.commands[1].measure_plain == measured


def test_notes_and_progress_stay_off_standard_output(scripted: Any, capfd: pytest.CaptureFixture[str]) -> None:
    answers = [LoadProgress("target", 0.5), LOADED, Note(1, "Merged\x1b[2J."), finished(tail="…")]
    _, status = scripted("x", answers=answers)
    assert status == 0
    assert capfd.readouterr() == ("…", "A note.\nMerged␛[2J.\n")


@pytest.mark.parametrize(
    ("answers", "status", "error"),
    [
        ([Failed("LoadError", "Truncated.", "Fetch it.")], 1, "Truncated.\nFetch it.\n"),
        ([Failed("EngineDiedError", "Killed.", "Again.", died=True)], 1, "Killed.\nAgain.\n"),
        ([LOADED, finished("error"), Failed("DecodeError", "Lost.", "Again.", 1)], 1, "A note.\nLost.\nAgain.\n"),
        ([LOADED, Failed("UsageError", "Wrong.", "", 1)], 2, "A note.\nWrong.\n"),
        ([Failed("CancelledError", "Stopped.", "")], 130, ""),
        ([LOADED, finished("interrupted")], 130, "A note.\n"),
        ([LOADED, finished("length")], 0, "A note.\n"),
    ],
)
def test_how_a_reply_ends(
    scripted: Any, capfd: pytest.CaptureFixture[str], answers: list[Message], status: int, error: str
) -> None:
    engine, ended = scripted("x", answers=answers)
    assert ended == status
    assert capfd.readouterr() == ("", error)
    assert engine.closed


def test_an_interrupt_is_passed_on_as_stop(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that came too late to stop the loading, and then did not reach the reply."""
    pressed = Interrupt()
    pressed.press()
    monkeypatch.setattr("specchat.cli.ask.interrupts", lambda: contextlib.nullcontext(pressed))
    engine, status = scripted("x", answers=[None, LOADED, None, finished("interrupted")])
    assert status == 130
    assert [type(command) for command in engine.commands] == [Load, Stop, Reply, Stop]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["ask"], 2, "There is no question."),
        (["ask", "  "], 2, "There is no question."),
        (["ask", "x", "--temp", "warm"], 2, "--temp: 'warm' is not a number"),
        (["ask", "x", "--top-p", "0"], 2, "top-p"),
        (["ask", "x", "--gamma", "-1"], 2, "--gamma"),
        (["ask", "x", "--gamma", "few"], 2, "--gamma: 'few' is not a whole number"),
        (["ask", "x", "--temp", "nan"], 2, "--temp"),
        (["ask", "x", "--mode", "slow"], 2, "--mode"),
        (["ask", "x", "--system", "@missing.txt"], 2, "missing.txt"),
        (["ask", "x", "--pair", "qwen2_5-coder"], 2, 'Did you mean "qwen2_5-coder-1_5b"?'),
        (["ask", "x", "--pair", DEFAULT_PAIR, "--target", "y.gguf"], 2, "--pair and --target"),
        (["ask", "x", "--target", "missing.gguf"], 1, "missing.gguf"),
        (["ask", "x", "--target", "~no-such-user/x.gguf"], 2, "nobody's home"),
        (["draft", "~no-such-user/x.gguf", "--layers", "2", "-o", "x"], 2, "nobody's home"),
        (["bench", "--html", "~no-such-user/x.html"], 2, "nobody's home"),
        (["export", "~no-such-user/x.jsonl"], 2, "nobody's home"),
        (["ask", "x"], 1, "offline"),
        (["pull", "nothing-like-this"], 2, "nothing-like-this"),
        (["pull"], 1, "offline"),
        (["frobnicate"], 2, "frobnicate"),
        ([], 2, "terminal"),
    ],
)
def test_exit_status_and_message(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", typed(""))
    try:
        ended: object = main(words)
    except SystemExit as end:  # argparse
        ended = end.code
    output, error = capfd.readouterr()
    assert ended == status
    assert output == ""
    assert message in error
    if "usage:" not in error:
        assert len(error.splitlines()) == 2, "what is wrong, and what to do"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", [["pull"], ["ask", "x"]])
def test_a_fetch_that_is_interrupted(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    pressed = Interrupt()
    pressed.press()
    monkeypatch.setattr(f"specchat.cli.{words[0]}.interrupts", lambda: contextlib.nullcontext(pressed))
    monkeypatch.setattr(sys, "stdin", typed(""))
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert main(words) == 130
    output, error = capfd.readouterr()
    assert output == ""
    assert "specchat pull" in error, "how to go on"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("words", "status"), [(["ask"], 2), (["ask", "x", "--target", "missing.gguf"], 1), ([], 2)])
def test_the_process_ends_with_that_status(words: list[str], status: int) -> None:
    result = run(*words)
    assert (result.returncode, result.stdout) == (status, b"")
    assert len(result.stderr.decode().splitlines()) == 2


@pytest.mark.usefixtures("home")
def test_a_draft_of_another_family_is_refused(models: dict[str, str]) -> None:
    result = run("ask", "x", "--target", models["target"], "--draft", models["other"], "--mode", "watch")
    assert (result.returncode, result.stdout) == (1, b"")
    assert "different vocabularies: token" in result.stderr.decode()


@pytest.mark.usefixtures("home")
def test_a_context_that_is_full_is_told(models: dict[str, str]) -> None:
    result = ask(models, "hello", "--ctx", "40", "--temp", "0")
    assert result.returncode == 0
    assert result.stdout
    assert "context is full" in result.stderr.decode()


def start(models: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    """A greedy reply of a random model: it repeats itself and hardly ever ends."""
    endless = ("--temp", "0", "--target", models["target"], "--ctx", "60000", "--threads", "1", *words)
    return subprocess.Popen(
        command("ask", "hello", *endless),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.usefixtures("home")
def test_an_interrupt_keeps_what_came(models: dict[str, str]) -> None:
    with start(models, "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = [process.stdout.readline() for _ in range(3)]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
        rest = process.stdout.read()
        assert process.wait(60) == 130
        assert process.stderr.read() == b""
    finished = events(b"".join(first) + rest)[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == "interrupted"
    assert finished.tokens > 0


@pytest.mark.usefixtures("home")
def test_a_reader_that_goes_away(models: dict[str, str]) -> None:
    with start(models) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(20)
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == b""


@pytest.mark.usefixtures("home")
def test_a_terminal_never_sees_what_it_would_obey(models: dict[str, str]) -> None:
    """The random model writes every byte, escape characters too: raw into a pipe, as marks on a terminal."""
    words = ("hello", "--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--max-tokens", "1500")
    raw = ask(models, *words).stdout
    assert any(byte < 32 and byte not in b"\n\t" for byte in raw)
    master, slave = pty.openpty()
    files = ("--target", models["target"], "--threads", "1", "--seed", "5", "--ctx", "2000")
    with subprocess.Popen(
        command("ask", *files, *words), stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE
    ) as process:
        os.close(slave)
        shown = b""
        while chunk := _read(master):
            shown += chunk
        assert process.wait(60) == 0
    os.close(master)
    text = shown.decode()
    assert text.endswith("\n")
    assert not [c for c in text if (ord(c) < 32 and c not in "\r\n\t") or 0x7F <= ord(c) < 0xA0]
    assert any("\u2400" <= c <= "\u2421" for c in text)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.usefixtures("home")
def test_what_the_system_refuses_is_told(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(_: object) -> int:
        raise PermissionError(13, "Permission denied", "/closed/x")

    monkeypatch.setattr("specchat.cli.export.export", refuse)
    assert main(["export", "x"]) == 1
    output, error = capfd.readouterr()
    assert output == ""
    assert error.startswith("/closed/x cannot be read or written: Permission denied.\n")
    assert len(error.splitlines()) == 2


@pytest.mark.usefixtures("home")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(command("pull", "--list"), stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert result.returncode == 1
    error = result.stderr.decode()
    assert "No space left on device" in error
    assert len(error.splitlines()) == 2


# --- pull and doctor -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("home")
def test_pull_lists_models_and_pairs() -> None:
    result = run("pull", "--list")
    assert result.returncode == 0
    text = result.stdout.decode()
    assert "qwen2_5-coder-1_5b" in text
    assert "not here" in text
    assert "qwen2_5-coder-1_5b ⟵ qwen2_5-coder-0_5b" in text


def test_pull_of_a_file_of_ones_own(home: Path, models: dict[str, str]) -> None:
    own = home / "config" / "specchat"
    own.mkdir(parents=True)
    (own / "models.toml").write_text(f'[models.mine]\nname = "Mine"\npath = "{models["target"]}"\n', "utf-8")
    result = run("pull", "mine")
    assert (result.returncode, result.stdout.decode()) == (0, f"Mine: {models['target']}\n")
    result = run("ask", "hello", "--target", "mine", "--max-tokens", "3", "--threads", "1")
    assert result.returncode == 0
    assert result.stdout


def test_doctor(home: Path) -> None:
    result = run("doctor")
    assert (result.returncode, result.stderr) == (0, b"")
    text = result.stdout.decode()
    for expected in ("llama", "CPU", "GiB free", str(home / "models"), "settings.toml", "models.toml", "offline"):
        assert expected in text


def test_doctor_tells_of_a_wrong_settings_file(home: Path) -> None:
    folder = home / "config" / "specchat"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text("tempp = 1\n", "utf-8")
    result = run("doctor")
    assert result.returncode == 1
    assert "tempp" in result.stderr.decode()
    assert "temp" in result.stderr.decode()
    assert "CPU" in result.stdout.decode(), "what can be told is told first"


# --- export --------------------------------------------------------------------------------------------------------


@pytest.fixture
def record(home: Path) -> Path:
    """A chat with one question, and a reply written by a toy pair."""
    conversation = Conversation()
    path = home / "data" / "specchat" / "records" / "chat.jsonl"
    with RecordWriter(path, Header()) as writer:
        writer.message(conversation.add_user("Which letters come next?"))
        place = conversation.begin_reply()
        writer.begin_reply(place)
        played = _toy_events()
        for event in played:
            writer.event(place.id, event)
        message = conversation.add_reply(place, played)
        assert message is not None
        writer.message(message)
    return path


def _toy_events() -> list[Event]:
    engine = LocalEngine(toy_loader.load)
    engine.send(Load("quiet", "toy-draft"))
    until_kind(engine, Loaded)
    engine.send(reply())
    played = events_of(engine, 1)
    engine.close()
    return played


def test_export_to_standard_output(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(record)]) == 0
    output, error = capfd.readouterr()
    assert output.startswith("# Which letters come next?")
    assert error == ""


@pytest.mark.parametrize(
    ("words", "name", "beginning"),
    [
        ([], "chat.html", "<!doctype html>"),
        ([], "chat.svg", "<svg "),
        ([], "chat.md", "# Which"),
        ([], "chat.txt", "# Which"),
        (["--format", "html"], "chat", "<!doctype html>"),
    ],
)
def test_export_to_a_file(record: Path, tmp_path: Path, words: list[str], name: str, beginning: str) -> None:
    assert main(["export", str(record), "-o", str(tmp_path / name), *words]) == 0
    assert (tmp_path / name).read_text("utf-8").lower().startswith(beginning.lower())


def test_export_finds_a_record_by_its_name(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["export", record.name]) == 0
    assert "Which letters" in capfd.readouterr().out


def test_export_tells_of_what_cannot_be_read_or_written(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["nothing.jsonl"], [__file__], [str(record), "-o", "/no/such/folder/x.md"]):
        assert main(["export", *words]) == 1
        output, error = capfd.readouterr()
        assert output == ""
        assert len(error.splitlines()) == 2


def test_a_replay_needs_a_chat_and_a_terminal(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in ([], [record.name], [str(record)]):
        assert main(["replay", *words]) == 2
        assert "A replay needs a terminal." in capfd.readouterr().err
    record.write_text('{"event":"header","format":1}\n', "utf-8")
    assert main(["replay", record.name]) == 2
    assert "There is nothing to play" in capfd.readouterr().err
    record.unlink()
    assert main(["replay"]) == 2
    assert "No chat has been recorded yet." in capfd.readouterr().err


def test_export_tells_what_was_lost(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with record.open("ab") as file:
        file.write(b'{"event": "message", "ro')
    assert main(["export", str(record)]) == 0
    output, error = capfd.readouterr()
    assert "Which letters" in output
    assert error


# --- help ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--help"], ["ask", "--help"], ["--version"], ["ask", "--temp", "warm"]])
def test_nothing_heavy_is_imported_for_help(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from specchat.cli import main\n"
        "try:\n"
        f"    main({words!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(result.stderr.split())
    assert "specchat.cli.options" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_help_names_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for word in ("ask", "pull", "doctor", "export", "--pair", "--gamma", "--rule", "--offline", "--system", "130"):
        assert word in text


# --- options, settings file, memory --------------------------------------------------------------------------------


def choices(words: list[str], settings: Settings | None = None, state: State | None = None) -> Choices:
    nowhere = Path("/nowhere")
    paths = Paths(nowhere, nowhere, nowhere, nowhere, nowhere)
    world = World(paths, settings or Settings(), state or State(), load_catalog())
    return Choices(parser().parse_args(words), world)


def test_defaults() -> None:
    found = choices(["ask", "x"])
    settings = found.reply_settings("fast")
    sampling = settings.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (0.7, 40, 0.95, 0.05)
    assert (settings.mode, settings.rule) == ("fast", "block")
    assert (settings.num_draft_tokens, settings.drafter) == (None, "auto")
    watch = found.reply_settings("watch")
    assert (watch.num_draft_tokens, watch.drafter) == (4, "draft")
    assert (settings.seed, settings.max_tokens) == (None, None)
    load = found.load(settings.mode)
    assert (load.n_ctx, load.gpu_layers, load.threads, load.exact) == (None, None, None, False)
    assert load.draft_if_it_pays
    assert not found.load("watch").draft_if_it_pays
    assert found.pair().key == DEFAULT_PAIR
    assert found.system == ""
    assert not found.offline


def test_every_option_arrives() -> None:
    line = (
        "--mode watch --gamma 6 --rule block --temp 1.5 --top-k 7 --top-p 0.5 --min-p 0.1 --repeat-penalty 1.2 "
        "--seed 3 --max-tokens 99 --ctx 512 --gpu-layers 4 --device CUDA0 --device-draft CPU --threads 2 --system hi "
        "--offline --draft ngram"
    )
    words = line.split()
    for command_words in ([*words], ["ask", *words, "x"], [*words, "ask", "x"]):
        found = choices(command_words)
        settings = found.reply_settings("fast")
        sampling = settings.sampling
        assert (sampling.temperature, sampling.top_k, sampling.top_p) == (1.5, 7, 0.5)
        assert (sampling.min_p, sampling.repeat_penalty) == (0.1, 1.2)
        assert (settings.mode, settings.num_draft_tokens, settings.rule) == ("watch", 6, "block")
        assert (settings.drafter, settings.seed, settings.max_tokens) == ("ngram", 3, 99)
        load = found.load(settings.mode)
        assert (load.n_ctx, load.gpu_layers, load.threads) == (512, 4, 2)
        assert (load.target_device, load.draft_device) == ("CUDA0", "CPU")
        assert (found.system, found.offline) == ("hi", True)
        assert found.pair().draft is None


def test_the_settings_file_fills_in_and_the_command_line_wins() -> None:
    file = Settings(temp=0.1, gamma="auto", mode="watch", ctx=77, pair="smollm2-135m", draft="none", offline=True)
    found = choices(["ask", "x", "--temp", "0.9"], file)
    settings = found.reply_settings("fast")
    assert (settings.sampling.temperature, settings.mode, settings.num_draft_tokens) == (0.9, "watch", None)
    assert found.load("watch").n_ctx == 77
    assert (found.pair().key, found.drafter("watch"), found.offline) == ("smollm2-135m", "none", True)
    assert choices(["--gamma", "auto"], Settings(gamma=5)).reply_settings("watch").num_draft_tokens is None


def test_exact_is_greedy_unless_told_otherwise() -> None:
    exact = choices(["--mode", "exact"])
    assert exact.reply_settings("watch").sampling.temperature == 0
    assert exact.load("exact").exact
    assert choices(["--mode", "exact", "--temp", "1"]).reply_settings("watch").sampling.temperature == 1


def test_which_pair_it_is(models: dict[str, str]) -> None:
    last = State(last_pair="smollm2-135m")
    assert choices([], state=last).pair().key == "smollm2-135m"
    assert choices([], Settings(pair="qwen3-8b"), last).pair().key == "smollm2-135m", "the last one used comes first"
    assert choices([], Settings(pair="qwen3-8b")).pair().key == "qwen3-8b"
    assert choices([], state=State(last_pair="gone")).pair().key == DEFAULT_PAIR
    assert choices(["--pair", "qwen3-8b"], state=last).pair().key == "qwen3-8b"
    files = choices([], state=State(last_target=models["target"], last_draft=models["draft"])).pair()
    assert (files.target.path, files.draft and files.draft.path) == (models["target"], models["draft"])
    made = choices([], state=State(last_target="qwen3-8b", last_draft="ngram")).pair()
    assert (made.key, made.drafter, made.draft) == ("qwen3-8b+ngram", "ngram", None)
    gone = choices([], state=State(last_target=models["target"], last_draft=f"{models['draft']}.gone")).pair()
    assert (gone.target.path, gone.drafter) == (models["target"], "none")
    assert choices([], state=State(last_target=f"{models['target']}.gone")).pair().key == DEFAULT_PAIR
    alone = choices(["--target", models["target"]], state=last).pair()
    assert (alone.target.path, alone.draft) == (models["target"], None)
    mixed = choices(["--pair", "qwen3-8b", "--draft", "smollm2-135m"]).pair()
    assert (mixed.target.key, mixed.draft and mixed.draft.key) == ("qwen3-8b", "smollm2-135m")
    assert mixed.key not in load_catalog().pairs, "it is not what the catalogue calls by that name"


def test_a_draft_of_the_settings_file_goes_with_no_pair_of_the_command_line() -> None:
    file = Settings(pair="qwen3-8b", draft="smollm2-135m")
    own = choices([], file).pair()
    assert own.draft is not None
    assert own.draft.key == "smollm2-135m"
    named = choices(["--pair", "qwen2_5-7b"], file).pair()
    assert named.draft is not None
    assert named.draft.key == "qwen2_5-0_5b"


def test_a_system_message_of_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("be kind", "utf-8")
    assert choices([], Settings(system=f"@{tmp_path}/s.txt")).system == "be kind"
    with pytest.raises(UsageError, match=r"missing\.txt"):
        _ = choices([], Settings(system="@missing.txt")).system


# --- what is printed on the way ------------------------------------------------------------------------------------


class Stream:
    def __init__(self, terminal: bool) -> None:
        self.text = ""
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_on_a_terminal_is_one_line() -> None:
    stream: Any = Stream(terminal=True)
    line = ProgressLine(stream)
    for fraction in (0.0, 0.25, 1.0):
        line.show("fetching \x1b[2J", fraction, "1 MB")
    line.show("waiting", None)
    line.clear()
    line.clear()
    assert "\n" not in stream.text
    assert stream.text.count("\r") == 5
    assert "\x1b[2J" not in stream.text
    assert " 25%" in stream.text


def test_progress_in_a_log_is_a_line_now_and_then() -> None:
    stream: Any = Stream(terminal=False)
    line = ProgressLine(stream)
    for hundredth in range(101):
        line.show("fetching", hundredth / 100)
    line.show("checking", 0.0)
    line.show("waiting", None)
    line.clear()
    lines = stream.text.splitlines()
    assert len(lines) == 13, "eleven, one, one"
    assert lines[0] == "fetching: 0%"
    assert lines[-1] == "waiting"
    assert "\r" not in stream.text


def test_a_second_interrupt_ends() -> None:
    interrupt = Interrupt()
    assert not interrupt
    interrupt.press()
    assert interrupt
    with pytest.raises(KeyboardInterrupt):
        interrupt.press()


def test_an_end_that_is_asked_for_is_an_interrupt_too() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which would end the tests where this fails
    try:
        with interrupts() as interrupt:
            signal.raise_signal(signal.SIGTERM)
            assert interrupt
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
