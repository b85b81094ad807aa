"""The application in a real pseudo-terminal: what bytes reach it, and in what state it is left."""

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

pty = pytest.importorskip("pty")

ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds; only a hang takes so long
ACCEPTED = b"38;2;150;192;236"
LEFT_AS_IT_WAS = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l", b"\x1b[?25h")


class Terminal:
    """A pseudo-terminal with the application in it."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)} | variables
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.tui.scripted_app", *arguments],
            stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.output = b""

    def wait_for(self, *wanted: bytes) -> None:
        """Reads until all of these have come."""
        until = monotonic() + PATIENCE
        while not all(each in self.output for each in wanted):
            assert self._read(until), f"{wanted} did not come; the end of the output: {self.output[-3000:]!r}"

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def wait_for_end(self) -> int:
        """Reads all that is left, and returns the exit status."""
        until = monotonic() + PATIENCE
        while self._read(until):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def _read(self, until: float) -> bool:
        if not select.select([self.master], [], [], max(0.0, until - monotonic()))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.output += data
        return bool(data)


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments, **variables):
        opened.append(Terminal(*arguments, **variables))
        opened[-1].wait_for(b"Ask something", b"watch")
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def was_left_as_it_was(output):
    for sequence in LEFT_AS_IT_WAS:
        on = sequence[:-1] + (b"l" if sequence.endswith(b"h") else b"h")
        assert output.rfind(sequence) > output.rfind(on), sequence


def test_a_question_a_coloured_answer_stop_and_quit(terminal):
    screen = terminal()
    screen.type(b"why is the sky blue?\r")
    screen.wait_for(b"sunlight", ACCEPTED, "␛".encode(), b"]52;c;QQ==", "␇".encode())
    screen.type(b"\x1b")
    screen.wait_for(b"stopped")
    screen.type(b"\x11")
    assert screen.wait_for_end() == 0
    was_left_as_it_was(screen.output)
    for obeyed in (b"\x1b]52", b"\x1b]0;", b"\x1b[2J\x1b[6n", b"\xc2\x9b", "\u202e".encode()):
        assert obeyed not in screen.output


def test_bytes_that_are_no_text_are_shown_as_such_and_end_nothing(terminal):
    screen = terminal()
    screen.type(b"caf\xe9 \x82\xff, \xf0\x9f")
    screen.wait_for("caf� ��,".encode())
    screen.type(b"\x98\x80 and on")
    screen.wait_for("😀".encode(), b"on")
    screen.type(b"\x1b[200~pasted \x82 \x1b[31m\r\x11\x1b[201~")
    screen.wait_for("pasted � ␛[31m".encode(), "␑".encode())
    screen.type(b"\x11")
    assert screen.wait_for_end() == 0
    was_left_as_it_was(screen.output)


def test_no_color_means_none_and_the_marks_remain(terminal):
    screen = terminal(NO_COLOR="1")
    screen.type(b"why is the sky blue?\r")
    screen.wait_for(b"wavelengths", b"because")
    screen.type(b"\x11")
    assert screen.wait_for_end() == 0
    assert b"38;2;" not in screen.output
    assert b"48;2;" not in screen.output
    assert re.search(rb"\x1b\[4[;m][^\x1b]*wavelengths", screen.output)
    assert re.search(rb"\x1b\[1[;m][^\x1b]* because", screen.output)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_the_terminal_as_it_was(terminal, name):
    screen = terminal()
    number = getattr(signal, name)
    screen.process.send_signal(number)
    assert screen.wait_for_end() == 128 + number
    was_left_as_it_was(screen.output)


def test_a_bug_leaves_the_terminal_as_it_was(terminal):
    screen = terminal("crash")
    screen.type(b"why?\r")
    assert screen.wait_for_end() == 1
    was_left_as_it_was(screen.output)
    assert b"a bug" in screen.output


def test_ctrl_c_twice_quits(terminal):
    screen = terminal()
    screen.type(b"\x03")
    screen.wait_for(b"once more quits")
    screen.type(b"\x03")
    assert screen.wait_for_end() == 0
    was_left_as_it_was(screen.output)


def test_a_closed_window_ends_the_application(terminal):
    """No signal comes here, as the terminal is not the controlling one: the hang-up itself must be noticed."""
    app = terminal()
    os.close(app.master)
    assert app.process.wait(PATIENCE) == 129
    app.master = os.open(os.devnull, os.O_RDONLY)
