"""An engine in a child process: what every command and the screen use.

llama.cpp aborts the whole process on some inputs and can be killed for memory. It does so in the child; the screen,
the chat and the record live on, and the next `Load` starts a new child. Nothing of `specchat.engine.local` is
imported here. Three threads serve the child's pipes, so that nothing that a screen calls can block.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import IO

from specchat.core.events import Finished
from specchat.engine.codec import decode_message, encode_command
from specchat.engine.interface import Command, Devices, Failed, Load, Message, Reply, ReplyEvent
from specchat.engine.mailbox import Mailbox

# The child sees the very packages that we see, and nothing from the folder that it happens to start in.
_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from specchat.engine.child import main; main()"
_LOG_LINES = 200
_LOG_LINE_BYTES = 4096
_PATIENCE = 2.0  # seconds that an ending child is given before it is killed

_RELOAD = "Load the pair again."
_SMALLER = "Load the pair again; if it happens again, choose a smaller context, fewer GPU layers or a smaller pair."


class ProcessEngine:
    """The `Engine` whose models live in a child process.

    The child is started by the first command. When it dies, `Failed` with ``died`` is delivered once, and the next
    `Load` or `Devices` starts a new one; anything else is answered by `Failed`.

    Args:
        loader: ``"module:function"``, another loader for the child than llama.cpp's (`specchat.engine.child`).
    """

    def __init__(self, loader: str | None = None) -> None:
        self._arguments = [] if loader is None else ["--loader", loader]
        self._mailbox = Mailbox()
        self._lock = threading.Lock()
        self._children: list[_Child] = []
        self._closed = False
        # Also at the interpreter's end: no child may outlive us, even if nobody closes the engine.
        self._finalizer = weakref.finalize(self, _end_all, self._children)

    @property
    def pid(self) -> int | None:
        """The child's process id, while it is alive."""
        child = self._child
        return None if child is None or child.over else child.process.pid

    @property
    def log(self) -> list[str]:
        """The last lines that the child, llama.cpp included, wrote to its standard output and error."""
        child = self._child
        return [] if child is None else list(child.log)

    def send(self, command: Command) -> None:
        """Hands a command over and returns at once."""
        problem = "The model process is not running."
        with self._lock:
            if self._closed:
                return
            if isinstance(command, Load | Devices) and (self._child is None or self._child.over):
                try:
                    self._start()
                except OSError as error:
                    problem = f"The model process cannot be started: {error}."
            sent = self._child is not None and self._child.send(command)
        if not sent:
            reply = command.reply if isinstance(command, Reply) else None
            self._mailbox.put(Failed("EngineDiedError", problem, _RELOAD, reply=reply, died=True))

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when there was none within ``timeout`` seconds, or after `close`."""
        return self._mailbox.receive(timeout)

    def drain(self) -> list[Message]:
        """All messages that have arrived, without waiting."""
        return self._mailbox.drain()

    def restart(self) -> None:
        """Ends the child, whatever it is doing, and starts a new, empty one."""
        with self._lock:
            if not self._closed:
                _end_all(self._children)
                self._start()

    def close(self) -> None:
        """Ends the child and frees its memory. Safe to call twice."""
        with self._lock:
            self._closed = True
            self._finalizer()
            self._mailbox.close()

    @property
    def _child(self) -> _Child | None:
        return self._children[-1] if self._children else None

    def _start(self) -> None:
        _end_all(self._children)
        self._children.append(_Child(self._arguments, self._mailbox))


def _end_all(children: list[_Child]) -> None:
    while children:
        children.pop().end()


class _Child:
    """One run of the child process, and the threads that serve its pipes."""

    def __init__(self, arguments: list[str], mailbox: Mailbox) -> None:
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self.over = False
        self._ending = False
        self._replies: list[int] = []
        self._lock = threading.Lock()
        self._mailbox = mailbox
        self._commands: SimpleQueue[bytes | None] = SimpleQueue()
        paths = json.dumps([os.path.abspath(path) for path in sys.path])  # noqa: PTH100 - "" means the current folder
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-c", _START, paths, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(),
            # Ctrl+C in the terminal goes to the whole foreground group; ours to handle, not the child's.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._log_thread = _thread(self._read_log, self.process.stderr)
        self._threads = [
            self._log_thread,
            _thread(self._write_commands, self.process.stdin),
            _thread(self._read_messages, self.process.stdout),
        ]

    def send(self, command: Command) -> bool:
        """Queues a command; False where the child has ended, and has been reported as ended."""
        line = encode_command(command)
        with self._lock:
            if self.over:
                return False
            if isinstance(command, Reply):
                self._replies.append(command.reply)
            self._commands.put(line)
            return True

    def end(self) -> None:
        """Closes the child's standard input, which ends it; kills it where that takes too long."""
        with self._lock:
            self._ending = True
        self._commands.put(None)
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _write_commands(self, pipe: IO[bytes]) -> None:
        try:
            with pipe:
                while (line := self._commands.get()) is not None:
                    pipe.write(line)
                    pipe.flush()
        except OSError:
            pass  # the child has ended; the thread that reads its messages says so

    def _read_messages(self, pipe: IO[bytes]) -> None:
        told = False
        with pipe:
            for line in pipe:
                try:
                    message = decode_message(line)
                except ValueError:
                    self.log.append(line.decode(errors="replace").rstrip())
                    continue
                if isinstance(message, Failed) and message.died:
                    message, told = self._last_message(message), True  # it could say why itself: do not say it twice
                self._forget_finished(message)
                self._mailbox.put(message)
        status = self._wait()
        with self._lock:
            self.over = True
            self._commands.put(None)
            if not self._ending and not told:
                self._mailbox.put(_death(status, list(self.log), self._lost_reply()))

    def _last_message(self, failed: Failed) -> Failed:
        """What a child says before it ends. Nothing is sent to it any more: the next `Load` is another's."""
        with self._lock:
            self.over = True
            return replace(failed, reply=self._lost_reply())

    def _lost_reply(self) -> int | None:
        return self._replies[0] if self._replies else None

    def _read_log(self, pipe: IO[bytes]) -> None:
        with pipe:
            while line := pipe.readline(_LOG_LINE_BYTES):
                if text := line.decode(errors="replace").strip():
                    self.log.append(text)

    def _forget_finished(self, message: Message) -> None:
        """A reply is over with its `Finished` or its `Failed`; one that is not over dies with the child."""
        if isinstance(message, ReplyEvent) and isinstance(message.event, Finished):
            reply: int | None = message.reply
        else:
            reply = message.reply if isinstance(message, Failed) else None
        with self._lock:
            if reply in self._replies:
                self._replies.remove(reply)

    def _wait(self) -> int:
        """Its exit status, once its last words have been read as well."""
        try:
            status = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:  # it closed its pipes and lives on: not a state to keep
            self.process.kill()
            status = self.process.wait()
        self._log_thread.join(_PATIENCE)
        return status


def _thread(function: Callable[[IO[bytes]], None], pipe: IO[bytes]) -> threading.Thread:
    thread = threading.Thread(target=function, args=(pipe,), name=f"engine{function.__name__}", daemon=True)
    thread.start()
    return thread


def child_environment() -> dict[str, str]:
    """What the child must know before llama.cpp is loaded; what a person has set stays.

    GGML_NO_BACKTRACE: a backtrace would print pages of debugger output. GOMP_SPINCOUNT: OpenMP's threads wait for each
    other by spinning, by default so long that they starve each other as soon as another program uses a core. Measured
    on two cores at load 6: 340 to 510 ms a token by default, 86 to 176 with this; on a quiet machine no difference.
    GLIBC_TUNABLES: memory that llama.cpp allocates asks for huge pages, which many a Linux gives only to who asks; its
    rearranged weights are read from end to end for each token. Measured in turn with and without, three times 50 single
    steps: 1.01, 1.04 and 1.03 times as fast; passes of five tokens are not memory's business, and stay as they are.
    """
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", "10000")
    environment.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    return environment


def _death(status: int, log: list[str], reply: int | None) -> Failed:
    """What to say of a child that ended by itself."""
    try:
        name = signal.Signals(-status).name if status < 0 else ""
    except ValueError:
        name = f"signal {-status}"
    next_step = _RELOAD
    if name == "SIGKILL":
        what, next_step = "The model process was killed (SIGKILL), as systems do when memory runs out.", _SMALLER
    elif name == "SIGABRT":
        what, next_step = "llama.cpp gave up (SIGABRT).", _SMALLER
    elif name:
        what = f"The model process was ended by {name}."
    else:
        what = f"The model process ended with status {status}."
    telling = [line for line in log if "GGML_ASSERT" in line or "error" in line.lower()] or log[-1:]
    if telling:
        what += f" Its last words: {'; '.join(telling[-2:])}"
    return Failed("EngineDiedError", what, next_step, reply=reply, died=True)
