"""The devices that llama.cpp can use, and what this build of it can do."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import psutil

from specchat.backends.llama_library import ggml_function, llama_cpp, start, system_info
from specchat.backends.placement import usable_devices

DeviceKind: TypeAlias = Literal["cpu", "gpu", "igpu", "accel", "meta"]
_KINDS: tuple[DeviceKind, ...] = ("cpu", "gpu", "igpu", "accel", "meta")
_REQUIREMENT = "llama-cpp-python>=0.3.36,<0.4"  # as pyproject.toml has it
_PCI_VENDORS = {"0x1002": "AMD", "0x8086": "Intel"}


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device. Sizes in bytes; RAM for the CPU."""

    name: str
    description: str
    kind: DeviceKind
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """What this build of llama.cpp is."""

    version: str
    system_info: str
    has_gpu: bool
    note: str | None
    """A sentence that a person should see with every load: there is a GPU that this build cannot use."""
    advice: str | None = None
    """The same for whoever asks; also of AMD's and Intel's, many of which are no faster than the processor."""


def build() -> BuildFacts:
    """What this build of llama.cpp is, and what it leaves unused."""
    engine = llama_cpp.llama_version().decode() if hasattr(llama_cpp, "llama_version") else ""
    has_gpu = any(device.kind in ("gpu", "igpu") for device in devices())
    makers = set() if has_gpu else gpu_makers()
    here = (platform.system(), platform.machine(), sys.executable or "python3")
    return BuildFacts(
        version=f"llama-cpp-python {llama_cpp.__version__}" + (f" (llama.cpp {engine})" if engine else ""),
        system_info=system_info(),
        has_gpu=has_gpu,
        note=None if has_gpu else unused_gpu_note(makers & {"NVIDIA"}, *here),
        advice=None if has_gpu else unused_gpu_note(makers, *here),
    )


def devices() -> tuple[DeviceFacts, ...]:
    """All devices, in llama.cpp's order."""
    return tuple(facts for facts, _ in device_handles())


def device_handles() -> list[tuple[DeviceFacts, int]]:
    """All devices with llama.cpp's pointers to them; only the CPU where this build does not export them."""
    start()
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    count = ggml_function("ggml_backend_dev_count", size)
    get = ggml_function("ggml_backend_dev_get", pointer, size)
    name = ggml_function("ggml_backend_dev_name", text, pointer)
    description = ggml_function("ggml_backend_dev_description", text, pointer)
    kind = ggml_function("ggml_backend_dev_type", ctypes.c_int, pointer)
    memory = ggml_function("ggml_backend_dev_memory", None, pointer, ctypes.POINTER(size), ctypes.POINTER(size))
    if not (count and get and name and description and kind and memory):
        return [(DeviceFacts("CPU", platform.processor() or platform.machine(), "cpu", *_ram()), 0)]
    found = []
    for index in range(count()):
        device = get(index)
        device_kind = _KINDS[min(kind(device), len(_KINDS) - 1)]
        free, total = size(), size()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        # ggml says that all of the RAM is free
        sizes = _ram() if device_kind == "cpu" else (free.value, total.value)
        label, long = (entry(device).decode("utf-8", "replace") for entry in (name, description))
        found.append((DeviceFacts(label, long, device_kind, *sizes), device))
    return found


def choose_devices(name: str | None) -> list[tuple[DeviceFacts, int]]:
    """The device of that name, or all GPUs; an empty list stands for the CPU.

    Raises:
        UsageError: there is no such device.
    """
    found = device_handles()
    usable = usable_devices((facts for facts, _ in found), name)
    return [entry for entry in found if entry[0] in usable and entry[0].kind != "cpu"]


def unused_gpu_note(makers: Collection[str], system: str, machine: str, python: str) -> str | None:
    """What to install where a GPU is there and llama.cpp was built without one; None where none is known.

    Args:
        makers: of the GPUs that are there (`gpu_makers`).
        system: as `platform.system` names it.
        machine: as `platform.machine` names it.
        python: the interpreter for which llama-cpp-python is installed.
    """
    if system == "Darwin" and machine == "arm64":
        return f"This llama.cpp does not use the Mac's GPU. To change that: {_install('GGML_METAL', system, python)}"
    if "NVIDIA" in makers:
        return (
            "There is an NVIDIA GPU, and this llama.cpp was built without CUDA. To use it, with the CUDA toolkit (or "
            f"GGML_VULKAN in place of GGML_CUDA, with the Vulkan SDK): {_install('GGML_CUDA', system, python)}"
        )
    if makers:
        return (
            f"There is an {' and an '.join(sorted(makers))} GPU, and this llama.cpp was built without Vulkan. To use "
            f"it, with the Vulkan SDK: {_install('GGML_VULKAN', system, python)}"
        )
    return None


def gpu_makers(root: Path = Path("/")) -> set[str]:
    """Who made the GPUs that programs can reach: NVIDIA by its driver, AMD and Intel by Linux' devices."""
    makers: set[str] = set()
    if (root / "proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None:
        makers.add("NVIDIA")
    if (root / "dev/kfd").exists():
        makers.add("AMD")
    for node in (root / "dev/dri").glob("renderD*"):
        with contextlib.suppress(OSError, KeyError):  # not on the PCI bus, hidden from a container, or somebody else's
            vendor = (root / "sys/class/drm" / node.name / "device/vendor").read_text("ascii", "replace")
            makers.add(_PCI_VENDORS[vendor.strip()])
    return makers


def _install(option: str, system: str, python: str) -> str:
    """The line that builds llama-cpp-python with an option of ggml's, for that system's shell."""
    setting = f'CMAKE_ARGS="-D{option}=on"'
    quoted: Callable[[str], str] = shlex.quote
    if system == "Windows":
        setting, quoted = f'set "CMAKE_ARGS=-D{option}=on" &&', '"{}"'.format
    return f"{setting} {quoted(python)} -m pip install --force-reinstall --no-cache-dir {quoted(_REQUIREMENT)}"


def _ram() -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.available, memory.total
