"""Where something was measured: without that a time means nothing."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

from specchat.engine.interface import Device, DeviceList, Devices, Engine, Failed
from specchat.errors import from_dict

_ENGINE_SECONDS = 60.0
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as far as it matters to times.

    Attributes:
        processor: its name.
        cores, logical: physical cores and what the system counts, None where nobody knows.
        memory_bytes: of RAM.
        devices: what llama.cpp can use beside the processor.
        build: of llama.cpp.
        system_info: the processor features that llama.cpp was built for.
        system: name and version of the operating system.
        threads: what was asked for, None for the default.
        load: how many threads were running on average in the minute before.
    """

    processor: str
    cores: int | None
    logical: int | None
    memory_bytes: int
    devices: tuple[Device, ...]
    build: str
    system_info: str
    system: str
    threads: int | None
    load: float | None

    @property
    def is_busy(self) -> bool:
        """Whether other programs had work for more than a third of the processor."""
        return self.load is not None and self.load > (self.logical or 1) / 3

    @property
    def load_text(self) -> str:
        """The load, in words."""
        return f"a load of {self.load:.1f} on {self.logical} logical cores" if self.load is not None else ""

    @property
    def text(self) -> str:
        """Processor, threads, memory and GPUs in one line."""
        cores = f", {self.cores} cores ({self.logical} logical)" if self.cores else ""
        threads = f", --threads {self.threads}" if self.threads else ""
        gpus = "; ".join(device.description or device.name for device in self.devices) or "no GPU"
        return f"{self.processor}{cores}{threads}, {self.memory_bytes / 2**30:.0f} GiB, {gpus}"


def find_machine(engine: Engine, threads: int | None) -> Machine:
    """This machine; llama.cpp's devices and build as the engine sees them.

    Raises:
        SpecchatError: the engine ended, or could not be started.
    """
    load = _load()  # before we add to it
    engine.send(Devices())
    answer = engine.receive(_ENGINE_SECONDS)
    if isinstance(answer, Failed) and answer.died:
        raise from_dict({"kind": answer.kind, "message": answer.message, "next_step": answer.next_step})
    found = answer if isinstance(answer, DeviceList) else DeviceList((), "unknown", "")
    return Machine(
        processor=_processor(),
        cores=psutil.cpu_count(logical=False),
        logical=psutil.cpu_count(),
        memory_bytes=psutil.virtual_memory().total,
        devices=tuple(device for device in found.devices if device.kind != "cpu"),
        build=found.build,
        system_info=found.system_info,
        system=f"{platform.system()} {platform.release()}",
        threads=threads,
        load=load,
    )


def resident_bytes(pid: int | None) -> int | None:
    """Resident memory of a process and of all that it started; None where it has ended."""
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(int(each.memory_info().rss) for each in family)
    except psutil.Error:
        return None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows has none
        return None


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), "") or platform.processor() or platform.machine() or "unknown processor"
