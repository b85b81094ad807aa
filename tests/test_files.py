"""Files that survive a kill at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specchat.errors import UsageError
from specchat.files import exclusive, expanded, is_held, text_or_file, write_atomically

ROOT = str(Path(__file__).parents[1])


def test_a_file_is_replaced_as_a_whole(tmp_path: Path):
    path = tmp_path / "new" / "x"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["x"]


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x"
    write_atomically(path, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_leaves_the_old_content_or_the_new(tmp_path: Path):
    """A process writes two contents in turn as fast as it can and is killed at ten different moments."""
    path = tmp_path / "x"
    contents = {bytes([letter]) * 100_000 for letter in b"ab"}
    code = (
        "import pathlib, sys; from specchat.files import write_atomically\n"
        "while True:\n"
        "    for letter in b'ab': write_atomically(pathlib.Path(sys.argv[1]), bytes([letter]) * 100_000)\n"
    )
    for moment in range(10):
        writing = subprocess.Popen([sys.executable, "-c", code, str(path)], env=os.environ | {"PYTHONPATH": ROOT})
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.003 * moment)
        writing.kill()
        writing.wait()
        assert path.read_bytes() in contents


class TestLock:
    def test_one_at_a_time_in_one_process(self, tmp_path: Path):
        lock = tmp_path / "locks" / "x"

        def give_up() -> None:
            raise TimeoutError

        with exclusive(lock, give_up):
            assert is_held(lock)
            with pytest.raises(TimeoutError), exclusive(lock, give_up):
                pass
        assert not is_held(lock)
        with exclusive(lock, give_up):
            assert is_held(lock)

    def test_nobody_holds_what_is_not_there(self, tmp_path: Path):
        assert not is_held(tmp_path / "x")

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
    def test_a_kill_gives_it_back(self, tmp_path: Path):
        code = (
            "import pathlib, sys, time; from specchat.files import exclusive\n"
            "with exclusive(pathlib.Path(sys.argv[1]), lambda: None): time.sleep(60)\n"
        )
        lock = tmp_path / "x"
        holding = subprocess.Popen([sys.executable, "-c", code, str(lock)], env=os.environ | {"PYTHONPATH": ROOT})
        while not is_held(lock):
            time.sleep(0.01)
        holding.kill()
        holding.wait()
        with exclusive(lock, lambda: None):
            assert is_held(lock)


def test_a_text_or_what_stands_in_a_file(tmp_path: Path):
    (tmp_path / "x").write_bytes("première\r\nligne\n".encode())
    assert text_or_file("mail me@example.org") == "mail me@example.org"
    assert text_or_file(f"@{tmp_path / 'x'}") == "première\nligne\n"


def test_homes_in_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert expanded("~/x") == tmp_path / "x"
    assert expanded("x~") == Path("x~")
    assert expanded("./~no-such-user") == Path("~no-such-user")
    for text in ("~no-such-user/x", "~\0"):
        with pytest.raises(UsageError, match="nobody's home"):
            expanded(text)
    with pytest.raises(UsageError, match="nobody's home"):
        text_or_file("@~no-such-user/x")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file that never ends")
def test_a_file_that_never_ends_is_refused():
    with pytest.raises(UsageError, match="longer than"):
        text_or_file("@/dev/zero")
