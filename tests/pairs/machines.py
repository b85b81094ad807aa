"""Machines that are made up."""

from __future__ import annotations

from dataclasses import dataclass

from specchat.pairs.memory import Machine

GIB = 2**30


@dataclass(frozen=True)
class Device:
    """A device as the engine describes it, as far as memory is concerned."""

    name: str
    kind: str
    free: int


def machine(ram: float = 64, *gpus: float, system_info: str = "") -> Machine:
    """A machine with so many GiB of free RAM, and GPUs with so many each."""
    cards = [Device(f"CUDA{number}", "gpu", int(size * GIB)) for number, size in enumerate(gpus)]
    return Machine((*cards, Device("CPU", "cpu", int(ram * GIB))), system_info)
