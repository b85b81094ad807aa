"""Who may import whom: the contracts of pyproject.toml, and what importing each room really loads."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import specchat

ROOT = Path(__file__).parent.parent
ENGINE_INSIDE = ("specchat.engine.local", "specchat.decoding", "specchat.backends.llama", "llama_cpp", "jinja2")
THIRD_PARTY = (
    "numpy", "textual", "rich", "llama_cpp", "huggingface_hub", "jinja2", "msgspec", "psutil", "platformdirs",
)  # fmt: skip

FORBIDDEN = {
    "specchat.core": [name for name in THIRD_PARTY if name != "numpy"] + ["specchat.errors", "specchat.backends"],
    "specchat.chat": ["llama_cpp", "textual", "huggingface_hub", "jinja2", "specchat.backends", "specchat.engine"],
    "specchat.pairs": ["llama_cpp", "textual", "jinja2", "specchat.backends.llama", "specchat.decoding"],
    "specchat.decoding": ["llama_cpp", "textual", "huggingface_hub", "specchat.backends.llama", "specchat.engine"],
    "specchat.lab": ["textual", *ENGINE_INSIDE],
    "specchat.tui": ENGINE_INSIDE,
    "specchat.engine.interface": [name for name in THIRD_PARTY if name != "numpy"] + ["specchat.backends"],
    "specchat.engine.process": ["textual", "huggingface_hub", "psutil", "specchat.backends", *ENGINE_INSIDE],
    "specchat.engine.child": ["textual", "huggingface_hub", "psutil", "specchat.backends", *ENGINE_INSIDE],
    "specchat.engine.local": ["llama_cpp", "textual", "huggingface_hub", "specchat.pairs"],
    "specchat.config": ["llama_cpp", "textual", "huggingface_hub", "jinja2", "psutil"],
    "specchat.errors": [*THIRD_PARTY, "specchat.core"],
    "specchat.cli": [*THIRD_PARTY, "specchat.engine", "specchat.pairs", "specchat.tui", "asyncio"],
    "specchat.cli.ask": ["textual", "huggingface_hub", "psutil", *ENGINE_INSIDE],
}
"""By room, what must not be loaded by importing it; a package stands for all of its modules but the command line's,
which import each other only when a command runs."""


def modules(room: str) -> Iterator[str]:
    yield room
    package = sys.modules.get(room) or __import__(room, fromlist=["_"])
    if hasattr(package, "__path__") and room != "specchat.cli":
        yield from (found.name for found in pkgutil.walk_packages(package.__path__, f"{room}."))


@pytest.mark.parametrize("room", FORBIDDEN)
def test_importing_a_room_loads_only_what_it_may(room: str) -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {list(modules(room))!r}:\n"
        "    importlib.import_module(name)\n"
        "print(*sys.modules, sep='\\n')"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = output.stdout.split()
    assert room in loaded
    forbidden = FORBIDDEN[room]
    assert [name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in forbidden)] == []


def test_every_room_is_looked_at() -> None:
    rooms = {found.name for found in pkgutil.iter_modules(specchat.__path__, "specchat.")}
    covered = {name.rpartition(".")[0] if name.count(".") > 1 else name for name in FORBIDDEN}
    # what is left: the room that may import llama.cpp, the entry point, and files that two rooms share
    shared = {"specchat.files", "specchat.html_page", "specchat.strict_toml"}
    assert rooms - covered == {"specchat.backends", "specchat.__main__", *shared}


def test_the_contracts_hold() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout
