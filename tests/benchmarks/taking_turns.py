"""Replies that are written a few tokens at a time, each by somebody else in turn.

Why not whole replies, as ``specchat bench`` compares? A machine that other people use as well changes its speed within
one. Here all meet the same seconds: each has a clock that stands still while it is somebody else's turn. A server of
llama.cpp streams its reply and is stopped (SIGSTOP) meanwhile, so that it need not be told to write in slices.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from specchat.backends.processor import TILED_SWITCH
from specchat.core.events import Event, Finished, Round
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.engine.draft_lengths import DraftLengths
from specchat.engine.pair import LoadedPair
from specchat.engine.round_plans import RoundPlans

TURN = 8
"""Tokens after which it is somebody else's turn."""
_OURS = (TILED_SWITCH, "GLIBC_TUNABLES", "GOMP_SPINCOUNT")
"""What we tell llama.cpp in our own process (`engine.process`, `backends.processor`), and a server's user does not."""
_PATIENCE = 120.0
"""Seconds for a server to load its model, and for a single token."""


class Stopwatch:
    """A clock that stands still while somebody else is at work."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """Seconds."""
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """It runs within."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self._seconds, self._since = self(), None


class Writer(Protocol):
    """Somebody who has read a prompt and writes the reply in turns."""

    @property
    def is_finished(self) -> bool:
        """Whether the reply is written."""

    def write(self, num_tokens: int) -> tuple[int, float]:
        """Writes about so many tokens, or to the end; returns how many it was, and the seconds they took."""


def take_turns(writers: Mapping[str, Writer]) -> dict[str, list[tuple[int, float]]]:
    """All write to their end; who began a turn ends the next. By name the tokens and seconds of each turn."""
    turns: dict[str, list[tuple[int, float]]] = {name: [] for name in writers}
    order = list(writers)
    while any(not writer.is_finished for writer in writers.values()):
        for name in order:
            if not writers[name].is_finished:
                tokens, seconds = writers[name].write(TURN)
                if tokens == 0 and turns[name]:  # it only noticed that it had finished
                    tokens, before = turns[name].pop()
                    seconds += before
                turns[name].append((tokens, seconds))
        order.reverse()
    return turns


class OurReply:
    """One of ours, in this process."""

    def __init__(self, pair: LoadedPair, lengths: DraftLengths, settings: ReplySettings, prompt: str) -> None:
        self.is_finished = False
        self._clock = Stopwatch()
        rendered = render_prompt(pair.target.vocabulary, (ChatMessage("user", prompt),))
        self._events: Iterator[Event] = generate(
            pair.target,
            rendered.tokens,
            RoundPlans(pair, lengths, lambda: settings),
            np.random.default_rng(1),
            max_tokens=settings.max_tokens,
            stop=rendered.stop,
            clock=self._clock,
        )
        with self._clock.running():
            next(self._events)  # the prompt is read

    def write(self, num_tokens: int) -> tuple[int, float]:
        """Writes about so many tokens, or to the end."""
        before, written = self._clock(), 0
        with self._clock.running():
            while written < num_tokens and not self.is_finished:
                match next(self._events):
                    case Round() as played:
                        written += len(played.committed)
                    case Finished():
                        self.is_finished = True
        return written, self._clock() - before


class Server:
    """A process of llama.cpp's server that computes only while it is awake.

    Args:
        program: ``llama-server``, with its libraries beside it.
        target: a GGUF file.
        options: further options of it.
    """

    def __init__(self, program: Path, target: Path, options: Sequence[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [program, "--model", target, "--port", str(self._port), *options],
            env={name: value for name, value in os.environ.items() if name not in _OURS}
            | {"LD_LIBRARY_PATH": str(program.parent)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _PATIENCE
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SystemExit(f"{program} did not start with {' '.join(options)}")
            time.sleep(0.2)
        self._process.send_signal(signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """It computes within."""
        self._process.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGSTOP)

    def ask(self, path: str, body: Mapping[str, Any]) -> http.client.HTTPResponse:
        """Posts JSON; only while it is awake."""
        connection = self._connection()
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise SystemExit(f"the server refused {path}: {response.read(500)!r}")
        return response

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE)

    def _is_ready(self) -> bool:
        connection = self._connection()
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()


class ServersReply:
    """A reply that a server streams at temperature 0.

    Its clock runs from its first token on: that comes out of the prompt's last pass. So it writes one more.
    """

    def __init__(self, server: Server, prompt: str, max_tokens: int) -> None:
        self.is_finished = False
        self._server = server
        self._clock = Stopwatch()
        self._num_tokens = 0
        with server.awake():
            message = {"messages": [{"role": "user", "content": prompt}]}
            request = {
                "prompt": json.loads(server.ask("/apply-template", message).read())["prompt"],
                "n_predict": max_tokens + 1,
                "temperature": 0,
                "samplers": ["penalties", "top_k", "top_p", "min_p", "temperature"],  # ours and no others
                "cache_prompt": False,
                "stream": True,
            }
            self._answers = _answers(server.ask("/completion", request))
            self._take()

    def write(self, num_tokens: int) -> tuple[int, float]:
        """Writes about so many tokens, or to the end."""
        before, already = self._clock(), self._num_tokens
        with self._server.awake(), self._clock.running():
            while self._num_tokens < already + num_tokens and not self.is_finished:
                self._take()
        return self._num_tokens - already, self._clock() - before

    def _take(self) -> None:
        answer = next(self._answers)
        self._num_tokens = max(self._num_tokens, int(answer.get("tokens_predicted", 0)))
        self.is_finished = bool(answer["stop"])


def _answers(response: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))
