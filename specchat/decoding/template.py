"""Renders a model's chat template in a process that cannot hang, grow without end or touch anything.

The process (`specchat.decoding.template_process`) is started once and kept; it costs about a tenth of a second and
15 MB. A template that takes too long or too much memory is killed with it, and the next render starts another.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from specchat.errors import TemplateError

CPU_SECONDS = 2.0
MEMORY_BYTES = 256 * 2**20
WALL_SECONDS = 20.0
START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LONGEST_REASON = 300

OTHER_FILE = "Use another GGUF file of this model, one with a working template."
OTHER_MESSAGES = "Edit the chat so that the model can take it, or begin a new one."


class MessagesRefusedError(TemplateError):
    """The template works, but not for these messages: it said so, or stumbled over them."""


def render_template(
    source: str, messages: Sequence[Mapping[str, str]], *, bos: str = "", eos: str = "", generate: bool = True
) -> str:
    """The text of a prompt.

    Args:
        source: a Jinja chat template as Hugging Face and llama.cpp know them.
        messages: ``role`` and ``content`` of each.
        bos: the text of the token that begins a text, which the template may write.
        eos: the same for the token that ends a text.
        generate: whether the text ends where the next reply begins.

    Raises:
        MessagesRefusedError: the template does not take these messages.
        TemplateError: the template is not valid, is forbidden what it does, or was stopped: more than 2 seconds of
            processor time, more than 256 MiB, or more text than messages could need.
    """
    values = {
        "messages": [dict(message) for message in messages],
        "tools": None,
        "documents": None,
        "bos_token": bos,
        "eos_token": eos,
        "add_generation_prompt": generate,
    }
    length = sum(len(message["content"]) for message in messages)
    answer = _RENDERER.ask({"template": source, "values": values, "limit": 4 * length + 2**20})
    if "text" in answer:
        return answer["text"]
    kind, reason = next(iter(answer.items()))
    reason = reason.rstrip(".") if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "…"
    if kind == "refused":
        raise MessagesRefusedError(f"The model's chat template refuses these messages: {reason}.", OTHER_MESSAGES)
    if kind == "failed":
        raise MessagesRefusedError(f"The model's chat template fails: {reason}.", OTHER_FILE)
    raise TemplateError(f"The model's chat template cannot be used: {reason}.", OTHER_FILE)


class _Renderer:
    """The process, started when it is first needed. Threads take turns."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def ask(self, request: Mapping[str, Any]) -> dict[str, str]:
        with self._turn:
            process = self._running()
            watched = psutil.Process(process.pid)
            before = _cpu_seconds(watched)
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # it has died: the answer says so
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            end = time.monotonic() + WALL_SECONDS
            while (line := self._next_line(_POLL_SECONDS)) is None:
                if reason := _excess(watched, before, end):
                    self._stop()
                    return {"broken": reason}
            if not line.endswith(b"\n"):
                self._stop()
                return {"broken": "the process that renders it ended"}
            answer: dict[str, str] = json.loads(line)
            return answer

    def close(self) -> None:
        with self._turn:
            self._stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            program = Path(__file__).with_name("template_process.py")
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._answers = queue.SimpleQueue()
            threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()
            if not self._next_line(START_SECONDS):
                self._stop()
                raise TemplateError(
                    "The process that renders chat templates did not start.",
                    "Try again; if it stays so, install specchat anew.",
                )
        return self._process

    def _next_line(self, timeout: float) -> bytes | None:
        with contextlib.suppress(queue.Empty):
            return self._answers.get(timeout=timeout)
        return None

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            with contextlib.suppress(OSError):  # what was never sent
                assert self._process.stdin is not None
                self._process.stdin.close()
            self._process = None


def _read(process: subprocess.Popen[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    """Hands over the lines that a process writes, and an empty one when it has ended."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            answers.put(line)
    answers.put(b"")


def _cpu_seconds(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _excess(process: psutil.Process, cpu_before: float, end: float) -> str | None:
    """What a render that is still going on has too much of."""
    with contextlib.suppress(psutil.Error):
        if process.memory_info().rss > MEMORY_BYTES:
            return f"it needs more than {MEMORY_BYTES // 2**20} MiB of memory"
    if _cpu_seconds(process) - cpu_before > CPU_SECONDS or time.monotonic() > end:
        return f"it takes more than {CPU_SECONDS:.0f} seconds"
    return None


_RENDERER = _Renderer()
atexit.register(_RENDERER.close)
