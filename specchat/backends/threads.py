"""How many threads llama.cpp computes with on the CPU, unless a person says it.

All threads wait for each other many times a layer, so the slowest core sets the pace: hyper-threads of one core, and
the small cores of a hybrid processor, make passes slower, not faster. So it is one thread a fast core, as far as this
process may use them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import os
import sys
from contextlib import suppress
from pathlib import Path

import psutil

_FAST = 0.8
"""Cores of at least this share of the largest capacity count as fast."""


def default_threads() -> int:
    """One thread a fast core that this process may use; at least 1."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    return max(1, min(_fast_cores(allowed), len(allowed), _container_limit()))


def _fast_cores(allowed: set[int]) -> int:
    if sys.platform == "darwin":
        cores = _performance_cores_of_a_mac()
    else:
        cores = linux_fast_cores(allowed) if sys.platform == "linux" else None
    return cores or psutil.cpu_count(logical=False) or len(allowed)


def linux_fast_cores(allowed: set[int], root: Path = Path("/sys/devices")) -> int | None:
    """How many fast cores ``allowed`` processors belong to, from what Linux tells; None where it tells nothing.

    Intel's hybrid processors list the processors of their fast cores under ``cpu_core``, Arm's have a capacity each.
    Processors that share a core are counted once.

    Args:
        allowed: numbers of processors.
        root: where the files are.
    """
    fast = set(allowed)
    with suppress(OSError, ValueError):
        fast = _numbers((root / "cpu_core" / "cpus").read_text("ascii")) & allowed
    capacities: dict[int, int] = {}
    for processor in fast:
        with suppress(OSError, ValueError):
            text = (root / f"system/cpu/cpu{processor}/cpu_capacity").read_text("ascii")
            capacities[processor] = int(text)
    if capacities:
        enough = _FAST * max(capacities.values())
        fast = {processor for processor, capacity in capacities.items() if capacity >= enough}
    cores = set()
    for processor in fast or allowed:  # a process that is kept on the small cores uses those
        try:
            siblings = (root / f"system/cpu/cpu{processor}/topology/thread_siblings_list").read_text("ascii")
            cores.add(min(_numbers(siblings)))
        except (OSError, ValueError):
            return None
    return len(cores)


def _numbers(text: str) -> set[int]:
    """``0-3,8`` as Linux writes it."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        found.update(range(int(first), int(last if dash else first) + 1))
    return found


def _performance_cores_of_a_mac() -> int | None:
    try:
        sysctl = ctypes.CDLL(ctypes.util.find_library("c")).sysctlbyname
    except (OSError, AttributeError):
        return None
    count, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    failed = sysctl(b"hw.perflevel0.physicalcpu", ctypes.byref(count), ctypes.byref(size), None, ctypes.c_size_t(0))
    return None if failed else count.value


def _container_limit() -> int:
    """How many processors a container (cgroup) grants, rounded up; many where nothing limits them."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return 2**16 if quota == "max" else max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return 2**16
