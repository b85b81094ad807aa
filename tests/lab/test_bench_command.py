"""``specchat bench``, as somebody types it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.cli import bench as command
from specchat.cli import main
from specchat.engine.interface import Load
from specchat.errors import LoadError
from tests.lab.fake_llama_server import TIMINGS, Script, fake_server
from tests.lab.toys import ToyEngine, tiny_pair

pytestmark = pytest.mark.usefixtures("home")
SHORT = ("--repetitions", "1", "--max-tokens", "6", "--categories", "list", "--quick")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return tiny_pair(tmp_path_factory.mktemp("gguf"), 0.1)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ProcessEngine", ToyEngine)


def bench(*words: str) -> int:
    return main(["bench", *words])


def test_help_says_what_can_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bench("--help")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for option in ("--quick", "--settings", "--categories", "--repetitions", "--against", "--json", "--html", "--pair"):
        assert option in text


def test_a_real_pair_from_the_shell(models: tuple[str, ...], tmp_path: Path) -> None:
    """The whole way: a child process, llama.cpp, a tiny GGUF pair."""
    words = [*models, *SHORT, "--threads", "1", "--ctx", "2000", "--settings", "draft γ2 T0"]
    page, data = tmp_path / "b.html", tmp_path / "b.json"
    result = subprocess.run(
        [sys.executable, "-m", "specchat", "bench", *words, "--html", str(page), "--json", str(data)],
        capture_output=True, timeout=120, check=False, encoding="utf-8",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "draft γ2 block T0" in result.stdout
    assert max(map(len, result.stdout.partition("setting ")[2].splitlines())) <= 100  # names above may be longer
    assert "\x1b" not in result.stdout
    assert f"{page} was written." in result.stderr
    assert page.read_text("utf-8").startswith("<!doctype html>")
    read = json.loads(data.read_text("utf-8"))
    assert {reply["who"] for reply in read["replies"]} == {"plain", "ours"}
    assert read["memory_bytes"] > 10 << 20
    assert read["build"].startswith("llama-cpp-python")


@pytest.mark.usefixtures("toys")
def test_json_alone_on_standard_output(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(*models, *SHORT, "--settings", "γ1", "--json", "-", "--seed", "9") == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["plan"]["seed"] == 9
    assert [prompt["category"] for prompt in data["plan"]["prompts"]] == ["list"]
    assert [row["label"] for row in data["rows"]] == ["plain T0.7", "draft γ1 block T0.7"]
    assert "measuring" in captured.err


@pytest.mark.usefixtures("toys")
def test_a_quick_plan_has_one_prompt_of_each_category(
    models: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*models, "--quick", "--repetitions", "1", "--max-tokens", "2", "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["plan"]["prompts"]) == 6
    assert len(data["rows"]) == 5


@pytest.mark.usefixtures("toys")
def test_against_a_server(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server() as (url, _):
        assert bench(*models, *SHORT, "--settings", "γ1", "--against", url) == 0
    assert "× server" in capsys.readouterr().out


@pytest.mark.usefixtures("toys")
def test_against_several_servers(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server() as (one, _), fake_server() as (two, _), fake_server() as (three, _):
        against = ("--against", one, "--against", f"mod={two}", "--against", three)
        assert bench(*models, *SHORT, "--settings", "γ1", *against, "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data["servers"]) == ["server", "mod", "server3"]
    assert {row["who"] for row in data["rows"]} == {"plain", "ours", "server", "mod", "server3"}


@pytest.mark.usefixtures("toys")
def test_servers_of_the_same_name(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server() as (one, _):
        assert bench(*models, "--against", f"mod={one}", "--against", f"mod={one}") == 2
        assert bench(*models, "--against", f"ours={one}") == 2
    assert "'mod' cannot be the name of this server" in capsys.readouterr().err


@pytest.mark.usefixtures("toys")
def test_a_server_that_fails_half_way_leaves_a_report_and_status_1(
    models: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    with fake_server(script) as (url, _):
        monkeypatch.setattr(
            command.ProgressLine, "show", lambda _line, what, fraction, _detail="": fraction > 0.4
            and what == "measuring" and script.reply.update(timings=TIMINGS | {"prompt_n": None}),
        )  # fmt: skip
        assert bench(*models, *SHORT, "--repetitions", "2", "--settings", "γ1", "--against", url) == 1
    captured = capsys.readouterr()
    assert "draft γ1 block T0.7" in captured.out
    assert "how long it took" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--settings", "gamma4"), "'gamma4' is no word for a setting."),
        (("--categories", "poetry"), "There is no category 'poetry'."),
        (("--categories", ","), "There is no category ','."),
        (("--html", "/no/such/folder/b.html"), "/no/such/folder/b.html cannot be written: No such file"),
        (("--html", "b" * 300), "cannot be written: File name too long"),
        (("--json", "/"), "/ cannot be written"),
        (("--against", "ftp://x"), "'ftp://x' is no address of a server."),
        (("--pair", "no-such-pair"), "no-such-pair"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_loaded(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 2  # what is wrong, and what to do
    assert captured.out == ""


@pytest.mark.parametrize("words", [("--repetitions", "0"), ("--max-tokens", "x"), ("--unknown",), ("word",)])
def test_words_that_are_no_options(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        bench(*words)
    assert caught.value.code == 2


def test_nobody_at_that_address(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert bench("--against", f"http://127.0.0.1:{port}") == 1
    assert f"Nobody answers at 127.0.0.1:{port}" in capsys.readouterr().err


def test_a_pair_that_cannot_be_loaded(
    models: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(ToyEngine):
        @staticmethod
        def load(command: Load, on_progress):
            raise LoadError("llama.cpp: no.", "Another file.")

    monkeypatch.setattr(command, "ProcessEngine", Broken)
    assert bench(*models, *SHORT) == 1
    assert "llama.cpp: no." in capsys.readouterr().err


def test_a_page_that_cannot_be_written_in_the_end(
    toys: None, models: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "b.html"
    page.symlink_to(tmp_path / "gone" / "b.html")
    assert bench(*models, *SHORT, "--settings", "γ1", "--html", str(page)) == 1
    captured = capsys.readouterr()
    assert "draft γ1 block T0.7" in captured.out
    assert f"{page} cannot be written: No such file or directory." in captured.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_figures_that_cannot_be_saved_do_not_keep_the_page_from_being_saved(
    toys: None, models: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "b.html"
    words = ("--settings", "γ1", "--json", "/dev/full", "--html", str(page))
    assert bench(*models, *SHORT, *words) == 1
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert "/dev/full cannot be written: No space left on device." in capsys.readouterr().err


def test_a_place_is_tried_without_a_change(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("mine")
    for path in (new, old):
        command._try_to_write(path)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["old"]
    assert old.read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_keeps_what_was_measured(models: tuple[str, ...]) -> None:
    words = [*models, "--quick", "--repetitions", "400", "--max-tokens", "30", "--threads", "1", "--ctx", "2000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "specchat", "bench", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("measuring: "):
            break
    # The report needs one finished trial: the next progress line may be minutes away, so wait for nothing else.
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped before all was measured" in output
