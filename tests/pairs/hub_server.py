"""A Hugging Face hub on this machine: what the real library asks for, with every answer that a hub may give."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


@dataclass
class HubFile:
    """A file of a repository. ``sha256`` is what the hub says of it; ``served`` is what it sends."""

    content: bytes
    sha256: str = ""
    served: bytes | None = None
    stop_after: int | None = None

    def __post_init__(self) -> None:
        self.sha256 = self.sha256 or hashlib.sha256(self.content).hexdigest()


@dataclass
class Refusal:
    """An answer that is no file."""

    status: int
    code: str = ""
    message: str = ""


@dataclass
class HubServer:
    """Serves repositories on 127.0.0.1.

    Attributes:
        answers: what to say for ``owner/name/file``.
        silent: accept connections and say nothing.
        gets: the files whose content was asked for.
        starts: from which byte on each was asked for.
        ranges: whether it can begin elsewhere than at the first byte.
        tokens: the authorisation of each request.
        stopped: set once a file's ``stop_after`` is reached.
        left: set once the other side has left such a download.
    """

    answers: dict[str, HubFile | Refusal] = field(default_factory=dict)
    silent: bool = False
    gets: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ranges: bool = True
    tokens: list[str | None] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(hub) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # the inner class has the self
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def _answer(self, *, with_body: bool) -> None:
                if hub.silent:
                    hub._closing.wait()
                    return
                hub.tokens.append(self.headers.get("Authorization"))
                repository, _, rest = self.path.strip("/").partition("/resolve/")
                name = rest.partition("/")[2]
                answer = hub.answers.get(f"{repository}/{name}", Refusal(404, "EntryNotFound"))
                if isinstance(answer, Refusal):
                    self._refuse(answer)
                    return
                served = answer.content if answer.served is None else answer.served
                start = self._start(len(served)) if with_body else 0
                hub.starts += [start] if with_body else []
                served, total = served[start:], len(served)
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{answer.sha256}"')
                self.send_header("Content-Length", str(len(served)))
                self.end_headers()
                if with_body:
                    hub.gets.append(name)
                    self._send(served, answer.stop_after)

            def _start(self, size: int) -> int:
                asked = self.headers.get("Range", "")
                return min(size, int(asked.removeprefix("bytes=").rstrip("-"))) if asked and hub.ranges else 0

            def _refuse(self, refusal: Refusal) -> None:
                self.send_response(refusal.status)
                if refusal.code:
                    self.send_header("X-Error-Code", refusal.code)
                if refusal.message:
                    self.send_header("X-Error-Message", refusal.message)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _send(self, served: bytes, stop_after: int | None) -> None:
                self.wfile.write(served[:stop_after])
                self.wfile.flush()
                if stop_after is None:
                    return
                hub.stopped.set()
                self.connection.settimeout(0.05)
                while not hub._closing.is_set():
                    try:
                        if not self.connection.recv(1):
                            break
                    except TimeoutError:
                        continue
                    except OSError:
                        break
                hub.left.set()
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        return Handler
