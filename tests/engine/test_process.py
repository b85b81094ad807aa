"""The engine in a child process, on toy pairs: what dies there must not hurt here."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from specchat.engine import process
from specchat.engine.codec import decode_message, encode_command
from specchat.engine.interface import Failed, Inspect, Load, Loaded, LoadProgress, ReplyEvent, Set, Stop
from specchat.engine.pair import LoadedPair, OnProgress
from specchat.engine.process import _START, ProcessEngine, _death
from tests.engine.conversing import LOAD, PATIENCE, events_of, is_round, reply, settings, until, until_kind, written
from tests.gguf_writer import write_tiny_model

LOADER = "tests.engine.toy_loader:load"
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals end processes on POSIX only")


@pytest.fixture
def engine() -> Iterator[ProcessEngine]:
    engine = ProcessEngine(LOADER)
    yield engine
    engine.close()
    assert engine.pid is None
    assert threads() == []


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("engine")]


def start(engine: ProcessEngine, target: str = "toy") -> int:
    engine.send(Load(target, "toy-draft"))
    until_kind(engine, Loaded)
    assert engine.pid is not None
    return engine.pid


def wait_for_end(pid: int) -> None:
    try:
        psutil.Process(pid).wait(PATIENCE)
    except psutil.NoSuchProcess:
        return


def test_a_reply_from_a_child_is_the_reply_from_here(engine: ProcessEngine) -> None:
    from specchat.engine.local import LocalEngine
    from tests.engine import toy_loader

    start(engine)
    engine.send(reply(details=True))
    there = events_of(engine, 1)
    local = LocalEngine(toy_loader.load)
    local.send(LOAD)
    local.send(reply(details=True))
    until_kind(local, Loaded)
    here = events_of(local, 1)
    local.close()
    assert written(there) == written(here)
    assert [type(event) for event in there] == [type(event) for event in here]


def test_nothing_is_started_before_it_is_needed() -> None:
    engine = ProcessEngine(LOADER)
    assert engine.pid is None
    assert engine.drain() == []
    assert engine.receive(0) is None
    engine.close()


def test_commands_before_a_pair_is_loaded(engine: ProcessEngine) -> None:
    engine.send(reply(3))
    failed = until_kind(engine, Failed)
    assert (failed.kind, failed.reply, failed.died) == ("EngineDiedError", 3, True)


def test_errors_keep_their_kind_and_words(engine: ProcessEngine) -> None:
    engine.send(Load("broken"))
    assert until_kind(engine, Failed) == Failed(
        "LoadError", "llama.cpp: the file is truncated.", "Fetch it again with `specchat pull`."
    )
    start(engine)


def test_stop_and_set_reach_a_child_that_is_busy(engine: ProcessEngine) -> None:
    start(engine, "slow")
    engine.send(reply(the_settings=settings(max_tokens=None)))
    until(engine, is_round)
    engine.send(Set(settings(max_tokens=None, num_draft_tokens=1)))
    until(engine, lambda message: is_round(message) and message.event.num_draft_tokens == 1)
    engine.send(Stop())
    assert events_of(engine, 1)[-1].reason == "interrupted"


def test_native_output_reaches_neither_the_protocol_nor_the_terminal(
    engine: ProcessEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    start(engine, "noisy")
    engine.send(reply(details=True))
    assert len(written(events_of(engine, 1))) == 24
    assert any("llama_decode: noise" in line for line in engine.log)
    assert any("printed by Python" in line for line in engine.log)
    assert len(engine.log) <= 200
    engine.close()
    assert capfd.readouterr() == ("", "")


def test_a_native_abort_is_told_with_its_last_words(engine: ProcessEngine) -> None:
    pid = start(engine, "abort")
    engine.send(reply(9))
    failed = until(engine, lambda message: isinstance(message, Failed))[-1]
    assert isinstance(failed, Failed)
    assert failed.died
    assert (failed.kind, failed.reply) == ("EngineDiedError", 9)
    assert "SIGABRT" in failed.message
    assert "GGML_ASSERT(n_tokens <= n_batch) failed" in failed.message
    assert failed.next_step
    assert not psutil.pid_exists(pid)
    assert start(engine) != pid
    engine.send(reply(10))
    assert written(events_of(engine, 10))


MOMENTS = [(seed, name) for seed in range(4) for name in ("SIGKILL", "SIGABRT", "SIGSEGV")]


@POSIX
@pytest.mark.parametrize(("seed", "name"), MOMENTS)
def test_killed_at_a_random_moment(engine: ProcessEngine, seed: int, name: str) -> None:
    """At a random message of loading or replying; always one `Failed`, and a new start that works."""
    moment = random.Random(f"{seed} {name}").randrange(1, 40)
    engine.send(Load("slow", "toy-draft"))
    engine.send(reply(1, the_settings=settings(max_tokens=None)))
    for _ in range(moment):
        message = engine.receive(PATIENCE)
        assert message is not None
        assert not isinstance(message, Failed), message
    assert engine.pid is not None
    os.kill(engine.pid, getattr(signal, name))
    messages = until(engine, lambda message: isinstance(message, Failed))
    failed = messages[-1]
    assert isinstance(failed, Failed)
    assert failed.died
    assert failed.reply == 1
    assert name in failed.message
    assert engine.pid is None
    engine.send(Inspect(()))
    again = until_kind(engine, Failed)
    assert again.died
    assert "not running" in again.message
    start(engine)
    engine.send(reply(2))
    assert written(events_of(engine, 2))
    assert engine.drain() == [], "death is told once"


@POSIX
def test_killed_while_it_has_nothing_to_do(engine: ProcessEngine) -> None:
    pid = start(engine)
    engine.send(reply(1))
    events_of(engine, 1)
    os.kill(pid, signal.SIGKILL)
    failed = until_kind(engine, Failed)
    assert failed.reply is None, "the reply was finished: it is not lost"
    assert "memory" in failed.message
    assert "smaller" in failed.next_step


def test_a_restart_ends_work_that_cannot_be_stopped(engine: ProcessEngine) -> None:
    pid = start(engine, "stuck")
    engine.send(reply(1))
    engine.restart()
    assert not psutil.pid_exists(pid)
    start(engine)
    engine.send(reply(2))
    assert events_of(engine, 2)


def test_closing_ends_a_child_in_the_middle_of_a_pass(engine: ProcessEngine) -> None:
    pid = start(engine, "stuck")
    engine.send(reply(1))
    engine.close()
    engine.close()
    assert not psutil.pid_exists(pid)
    engine.send(LOAD)
    engine.restart()
    assert engine.pid is None
    engine.drain()
    assert engine.receive() is None


def test_an_engine_that_nobody_holds_ends_its_child() -> None:
    engine = ProcessEngine(LOADER)
    pid = start(engine)
    del engine
    wait_for_end(pid)
    assert not psutil.pid_exists(pid)


@POSIX
def test_a_child_that_does_not_answer_is_killed() -> None:
    engine = ProcessEngine(LOADER)
    pid = start(engine)
    os.kill(pid, signal.SIGSTOP)
    engine.close()
    assert not psutil.pid_exists(pid)


def test_the_child_ends_when_its_input_closes_in_the_middle_of_a_pass() -> None:
    """Also when the parent is killed and can no longer ask for it."""
    with child() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_command(Load("stuck", "toy-draft")) + encode_command(reply()))
        process.stdin.flush()
        while not isinstance(decode_message(process.stdout.readline()), Loaded):
            pass
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@POSIX
def test_the_child_ignores_an_interrupt_from_the_terminal() -> None:
    with child() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_command(Load("slow", "toy-draft")))
        process.stdin.flush()
        assert isinstance(decode_message(process.stdout.readline()), LoadProgress)
        process.send_signal(signal.SIGINT)
        process.stdin.write(encode_command(reply()))
        process.stdin.flush()
        messages = (decode_message(line) for line in iter(process.stdout.readline, b""))
        assert any(isinstance(message, ReplyEvent) for message in messages)
        process.stdin.close()
        process.wait(PATIENCE)


def test_a_child_that_cannot_start_says_why() -> None:
    engine = ProcessEngine("tests.engine.no_such_module:load")
    engine.send(LOAD)
    failed = until_kind(engine, Failed)
    assert failed.died
    assert "no_such_module" in failed.message
    assert failed.next_step
    assert engine.pid is None, "what is sent now is not sent to a child that is ending"
    engine.send(LOAD)
    engine.send(reply(4))
    again = until_kind(engine, Failed)
    assert (again.message, again.died, again.reply) == (failed.message, True, 4)
    assert engine.receive(0.1) is None, "said once"
    engine.close()


def test_a_child_that_the_system_refuses_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    engine = ProcessEngine(LOADER)
    engine.send(LOAD)
    failed = until_kind(engine, Failed)
    assert failed.died
    assert "/no/such/python" in failed.message
    engine.close()


def test_nothing_of_the_models_is_loaded_in_the_parent() -> None:
    code = "import sys, specchat.engine.process; print(*sorted(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for name in ("specchat.engine.local", "specchat.decoding", "specchat.backends", "llama_cpp", "jinja2"):
        assert name not in output


@pytest.mark.parametrize(
    ("status", "words"),
    [(-9, "SIGKILL"), (-6, "SIGABRT"), (-11, "SIGSEGV"), (-200, "signal 200"), (3, "status 3"), (3221225477, "status")],
)
def test_what_is_said_of_a_death(status: int, words: str) -> None:
    failed = _death(status, ["loading", "llama_model_load: error: no such tensor", "bye"], 4)
    assert words in failed.message
    assert "no such tensor" in failed.message
    assert failed.reply == 4
    assert failed.died
    assert failed.next_step
    assert "last words" not in _death(status, [], None).message


def child() -> subprocess.Popen[bytes]:
    """A child process without the `ProcessEngine` around it."""
    import json

    return subprocess.Popen(
        [sys.executable, "-c", _START, json.dumps(sys.path), "--loader", LOADER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_llama_cpps_own_words_before_an_abort(tmp_path: Path) -> None:
    """As on a GPU that runs out of memory: the reason is logged as an error, and then the process aborts."""
    write_tiny_model(tmp_path / "tiny.gguf")
    engine = ProcessEngine("tests.engine.test_process:load_and_abort")
    engine.send(Load(str(tmp_path / "tiny.gguf"), n_ctx=64, threads=1))
    failed = until_kind(engine, Failed)
    engine.close()
    assert failed.died
    assert "SIGABRT" in failed.message
    assert "CUDA error: out of memory" in failed.message


def load_and_abort(command: Load, on_progress: OnProgress) -> LoadedPair:
    """A loader for the child: loads with llama.cpp, then fails as its CUDA code does."""
    from specchat.backends.llama_library import ggml_function, log
    from specchat.engine.child import _log
    from specchat.engine.loading import load_pair, tell_errors_to

    tell_errors_to(_log)
    pair = load_pair(command, on_progress)
    log.add(4, "CUDA error: out of memory\n")
    abort = ggml_function("ggml_abort", None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
    assert abort is not None
    abort(b"ggml-cuda.cu", 87, b"CUDA error")
    return pair


def test_threads_of_a_busy_machine_do_not_spin_for_long(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    assert process.child_environment()["GOMP_SPINCOUNT"] == "10000"
    assert process.child_environment()["GGML_NO_BACKTRACE"] == "1"


@pytest.mark.parametrize("chosen", [None, "glibc.malloc.arena_max=1"])
def test_memory_asks_for_huge_pages_unless_a_person_tuned_it(monkeypatch, chosen):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", chosen)
    assert process.child_environment()["GLIBC_TUNABLES"] == (chosen or "glibc.malloc.hugetlb=1")


@pytest.mark.parametrize(("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")])
def test_what_a_person_set_for_openmp_stays(monkeypatch, name, value):
    for each in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    environment = process.child_environment()
    assert {each: environment[each] for each in environment if each in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")} == {
        name: value
    }
