"""What is said of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.engine.interface import Device, DeviceList, Failed
from specchat.errors import LoadError
from specchat.lab import machine as machines
from specchat.lab.machine import find_machine
from tests.lab.bench_results import machine


class AnsweringEngine:
    """Answers whatever is asked with one message."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def send(self, command) -> None:
        pass

    def receive(self, timeout=None):
        return self.answer


def test_the_machine_in_one_line() -> None:
    assert machine().text == "A processor, 2 cores (4 logical), 16 GiB, A GPU"
    assert machine(devices=(), cores=None, threads=3).text == "A processor, --threads 3, 16 GiB, no GPU"


@pytest.mark.parametrize(("load", "busy"), [(0.0, False), (1.3, False), (1.4, True), (None, False)])
def test_a_busy_machine_is_told(load: float | None, busy: bool) -> None:
    found = machine(load=load)
    assert found.is_busy is busy
    if load:
        assert found.load_text == f"a load of {load:.1f} on 4 logical cores"


def test_this_machine() -> None:
    devices = (Device("CPU", "", "cpu", 1, 2), Device("CUDA0", "A GPU", "gpu", 1, 2))
    found = find_machine(AnsweringEngine(DeviceList(devices, "b1", "AVX = 1")), threads=2)
    assert [device.name for device in found.devices] == ["CUDA0"]
    assert (found.build, found.system_info, found.threads) == ("b1", "AVX = 1", 2)
    assert found.memory_bytes > 0
    assert found.processor


def test_an_engine_that_cannot_tell_leaves_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machines, "_CPU_INFO", tmp_path / "missing")
    found = find_machine(AnsweringEngine(Failed("EngineDiedError", "gone", "")), threads=None)
    assert found.build == "unknown"
    assert found.devices == ()
    assert found.processor


def test_an_engine_that_ended_is_an_error() -> None:
    engine = AnsweringEngine(Failed("LoadError", "It cannot start.", "Reinstall.", died=True))
    with pytest.raises(LoadError, match="cannot start"):
        find_machine(engine, threads=None)
