"""A server on this machine that answers as llama.cpp's does, or otherwise."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROPS = {"build_info": "b9999-abc", "model_path": "/models/toy.gguf", "total_slots": 4}
TIMINGS = {"prompt_n": 30, "prompt_ms": 60.0, "cache_n": 1, "predicted_n": 11, "predicted_ms": 500.0}


@dataclass
class Script:
    """What it answers, and what it was asked. ``reply_status`` and ``reply`` are those of a chat completion."""

    props: Any = field(default_factory=lambda: dict(PROPS))
    props_status: int = 200
    reply: Any = field(default_factory=lambda: {"choices": [], "timings": dict(TIMINGS)})
    reply_status: int = 200
    delay: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    script: Script

    def do_GET(self) -> None:
        known = self.path.endswith("/props")
        self._answer(self.script.props_status if known else 404, self.script.props if known else {"error": "no"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.script.requests.append(json.loads(body) | {"path": self.path})
        self.script.headers.append(dict(self.headers))
        time.sleep(self.script.delay)
        self._answer(self.script.reply_status, self.script.reply)

    def _answer(self, status: int, content: Any) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients that hang up are part of the tests."""


@contextmanager
def fake_server(script: Script | None = None) -> Iterator[tuple[str, Script]]:
    script = script or Script()
    server = QuietServer(("127.0.0.1", 0), type("OneHandler", (Handler,), {"script": script}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
