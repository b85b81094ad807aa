"""A package index on this machine, with wheels made by hand, that can be slow, cut off, or wrong."""

from __future__ import annotations

import io
import os
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MEMBER = "data/part*.bin"


def make_wheel(name: str, version: str, members: dict[str, bytes]) -> bytes:
    """A wheel with those files, whose own code would end whoever imports it."""
    package = name.replace("-", "_")
    about = f"{package}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{package}/__init__.py", "raise SystemExit('code of a wheel ran')\n")
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return buffer.getvalue()


def piece_wheel(name: str, version: str, index: int, content: bytes) -> bytes:
    """A wheel with one piece of a model."""
    return make_wheel(name, version, {f"{name.replace('-', '_')}/data/part{index:02}.bin": content})


class WheelIndex:
    """Serves wheels on 127.0.0.1.

    Attributes:
        fetched: the wheels that were asked for, in order.
        stop_after: for a wheel's name, how many bytes of it to send before ``cut`` or silence.
        cut: end the connection there; otherwise it stays open and silent.
    """

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.stop_after: dict[str, int] = {}
        self.cut = False
        self.stopped = threading.Event()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    def add(self, name: str, version: str, wheel: bytes) -> None:
        self.wheels[f"{name.replace('-', '_')}-{version}-py3-none-any.whl"] = wheel

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(index) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # the inner class has the self
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, _, name = self.path.strip("/").partition("/")
                if kind == "simple":
                    project = name.strip("/").replace("-", "_")
                    links = [
                        f'<a href="/files/{file}">{file}</a>' for file in index.wheels if file.startswith(f"{project}-")
                    ]
                    self._send(200 if links else 404, "".join(links).encode(), "text/html")
                elif name in index.wheels:
                    index.fetched.append(name)
                    self._send(200, index.wheels[name], "application/octet-stream", index.stop_after.get(name))
                else:
                    self._send(404, b"", "text/html")

            def _send(self, status: int, body: bytes, kind: str, stop_after: int | None = None) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:stop_after])
                self.wfile.flush()
                if stop_after is not None:
                    index.stopped.set()
                    while not index.cut and not index._closing.wait(0.05):
                        continue
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        return Handler


def wait_until(condition, seconds: float = 20.0) -> None:
    """Waits for something that another process or thread will do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def pip_environment(url: str) -> dict[str, str]:
    """What makes pip use that index and nothing else."""
    return {
        "PIP_INDEX_URL": url,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_RETRIES": "0",
        "PIP_DEFAULT_TIMEOUT": "20",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


UNSET = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_CERT", "PIP_CONSTRAINT", "PIP_TRUSTED_HOST")
