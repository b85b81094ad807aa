"""A running llama.cpp server, asked over HTTP to write the replies that we write, for comparison.

It is asked directly, never through a proxy, and answers whole replies: streaming would only cost it time. Its own
clock counts (`timings`), which leaves out HTTP as ours leaves out the pipe.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from specchat.core.sampling import SamplingParams
from specchat.errors import ServerError, UsageError
from specchat.lab.bench_samples import Sample

_CONNECT_SECONDS = 5.0
_REPLY_SECONDS = 900.0
_WAKE_SECONDS = 0.1
_LARGEST_ANSWER = 64 << 20
_START = "Start it with `llama-server -m FILE.gguf` and give its address, for example http://127.0.0.1:8080."
_REFUSED = "Its own log says more; its option -c makes a context that is too small larger."
_NOT_LLAMA = "Give the address of llama.cpp's own server, for example http://127.0.0.1:8080."


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server says of itself."""

    build: str
    model: str
    slots: int | None


class LlamaServer:
    """One server, reached by its address.

    Args:
        url: ``http://HOST:PORT``, perhaps with a path before the server's own paths.
        reply_seconds: how long a reply may take.

    Raises:
        UsageError: that is no address.
        ServerError: nobody answers there, or something else than llama.cpp's server.
    """

    def __init__(self, url: str, *, reply_seconds: float = _REPLY_SECONDS) -> None:
        self._address = _Address.of(url)
        self._reply_seconds = reply_seconds
        self.facts = self._find_facts()

    @property
    def address(self) -> str:
        """Host and port."""
        return self._address.text

    def reply(
        self,
        text: str,
        sampling: SamplingParams,
        max_tokens: int,
        seed: int,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Sample | None:
        """One reply to one message, read from a cold cache; None where it was stopped.

        Raises:
            ServerError: the server failed, or its answer tells no times.
        """
        request = {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": max_tokens,
            "seed": seed,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "repeat_penalty": sampling.repeat_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
            "repeat_last_n": sampling.penalty_last_n,
            # ours and no others: the server may have been started with more
            "samplers": ["penalties", "top_k", "top_p", "min_p", "temperature"],
            "cache_prompt": False,
            "stream": False,
        }
        exchange = _Exchange(self._address, "POST", "/v1/chat/completions", request, self._reply_seconds)
        answer = exchange.wait(should_stop)
        return None if answer is None else self._sample(answer)

    def _sample(self, answer: dict[str, Any]) -> Sample:
        """The first token comes out of the prompt's last pass, so the passes after it wrote the others."""
        timings = answer.get("timings")
        try:
            assert isinstance(timings, dict)
            read, cached = int(timings["prompt_n"]), int(timings.get("cache_n") or 0)
            return Sample(
                tokens=max(0, int(timings["predicted_n"]) - 1),
                seconds=float(timings["predicted_ms"]) / 1000,
                prompt_tokens=read + cached,
                prompt_seconds=float(timings["prompt_ms"]) / 1000 if read >= cached else None,
                first_seconds=0.0,
            )
        except (AssertionError, KeyError, TypeError, ValueError, OverflowError):
            raise ServerError(
                f"The server at {self.address} wrote a reply without saying how long it took.",
                "Use a recent llama.cpp server: its replies have timings.",
            ) from None

    def _find_facts(self) -> ServerFacts:
        answer = _Exchange(self._address, "GET", "/props", None, _CONNECT_SECONDS).wait(lambda: False) or {}
        build, path, slots = answer.get("build_info"), answer.get("model_path"), answer.get("total_slots")
        if not isinstance(build, str):
            raise _not_llama(self._address)
        model = path.replace("\\", "/").rpartition("/")[2] if isinstance(path, str) else ""
        return ServerFacts(build, model, slots if isinstance(slots, int) else None)


@dataclass(frozen=True, slots=True)
class _Address:
    """Where a server is, and the path before its own paths."""

    host: str
    port: int
    path: str
    secure: bool

    @classmethod
    def of(cls, url: str) -> _Address:
        wrong = UsageError(f"{url[:200]!r} is no address of a server.", _NOT_LLAMA)
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
            raise wrong
        secure = parts.scheme == "https"
        return cls(host, port or (443 if secure else 80), parts.path.rstrip("/"), secure)

    @property
    def text(self) -> str:
        return f"{self.host}:{self.port}{self.path}"

    def connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        return kind(self.host, self.port, timeout=_CONNECT_SECONDS)


class _Exchange:
    """A request and its answer, in a thread of its own, so that it can be given up."""

    def __init__(
        self, address: _Address, method: str, path: str, request: dict[str, Any] | None, seconds: float
    ) -> None:
        self._address = address
        self._method = method
        self._path = address.path + path
        self._body = None if request is None else json.dumps(request).encode()
        self._seconds = seconds
        self._connection = address.connection()
        self._answer: dict[str, Any] | None = None
        self._error: ServerError | None = None
        self._thread = threading.Thread(target=self._run, name="llama-server", daemon=True)
        self._thread.start()

    def wait(self, should_stop: Callable[[], bool]) -> dict[str, Any] | None:
        """The answer; None where it was given up, which ends the server's work as well.

        Raises:
            ServerError: nobody answers, or the answer is an error or no JSON object.
        """
        while self._thread.is_alive():
            self._thread.join(_WAKE_SECONDS)
            if should_stop():
                self._give_up()
                return None
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = _read(self._address, *self._talk())
        except ServerError as error:
            self._error = error
        finally:
            self._connection.close()

    def _talk(self) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("LLAMA_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        where = self._address.text
        try:
            self._connection.connect()
            self._connection.sock.settimeout(self._seconds)
            self._connection.request(self._method, self._path, self._body, headers)
            response = self._connection.getresponse()
            return response.status, response.read(_LARGEST_ANSWER)
        except TimeoutError:
            raise ServerError(f"The server at {where} did not answer in time.", _START) from None
        except (OSError, ValueError, http.client.HTTPException) as problem:
            reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
            raise ServerError(f"Nobody answers at {where} ({reason}).", _START) from None

    def _give_up(self) -> None:
        waiting = self._connection.sock
        if waiting is not None:
            with contextlib.suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)  # wakes the thread, and tells the server
        self._thread.join(_CONNECT_SECONDS)


def _read(address: _Address, status: int, content: bytes) -> dict[str, Any]:
    """The answer's JSON object.

    Raises:
        ServerError: it is an error, or no such object.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if status == http.client.UNAUTHORIZED:
        raise ServerError(f"The server at {address.text} wants a key.", "Put it into LLAMA_API_KEY.")
    if status == http.client.SERVICE_UNAVAILABLE:
        raise ServerError(f"The server at {address.text} is still loading its model.", "Try again in a moment.")
    if not isinstance(answer, dict):
        raise _not_llama(address)
    if status != http.client.OK:
        said = answer.get("error")
        message = said.get("message") if isinstance(said, dict) else None
        if not isinstance(message, str):
            raise _not_llama(address)
        raise ServerError(f"The server at {address.text} refused: {message[:300].rstrip('.')}.", _REFUSED)
    return answer


def _not_llama(address: _Address) -> ServerError:
    return ServerError(f"What answers at {address.text} is not llama.cpp's server.", _NOT_LLAMA)
