"""Whether the files of a pair fit this machine, looked at right before they are loaded: their headers say it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from specchat.backends.gguf_header import read_header
from specchat.pairs.memory import Fit, Machine, fits


def fit_of_files(
    target: str | Path,
    draft: str | Path | None,
    machine: Machine,
    *,
    n_ctx: int | None = None,
    gpu_layers: int | None = None,
) -> Fit:
    """How two files fit. Reading a header takes about 0.1 seconds.

    Args:
        target: the target's file.
        draft: the draft's, if there is one.
        machine: what there is to hold them (see `once_unloaded` where a pair is loaded that will be gone).
        n_ctx: tokens of context; None for the default.
        gpu_layers: layers of the target on GPUs; None for as many as fit.

    Raises:
        ModelFileError: a file cannot be read.
    """
    headers = read_header(target), None if draft is None else read_header(draft)
    return fits(*headers, machine, n_ctx=n_ctx, gpu_layers=gpu_layers)


def emptied(machine: Machine) -> Machine:
    """The machine as if nothing were on it: there a pair lies as it was loaded."""
    return _with_free(machine, (_total(each) - each.free for each in machine.devices))


def once_unloaded(machine: Machine, held: Fit) -> Machine:
    """The machine with what a loaded pair holds free again. Weights in RAM are counted as free already.

    Args:
        machine: as it is while the pair is loaded.
        held: how the pair lies on the `emptied` machine.
    """
    on_gpus = {use.name: use.needed for use in held.devices if use.name != "RAM"}
    parts = (part for part in held.parts if part.where == "RAM" and not part.what.endswith("weights"))
    ram = sum(part.size for part in parts)
    return _with_free(machine, (ram if each.kind == "cpu" else on_gpus.get(each.name, 0) for each in machine.devices))


def _with_free(machine: Machine, more: Iterable[int]) -> Machine:
    devices: list[Any] = [
        replace(each, free=min(each.free + size, _total(each)))  # type: ignore[type-var]
        for each, size in zip(machine.devices, more, strict=True)
    ]
    return replace(machine, devices=devices)


def _total(device: Any) -> int:
    return int(getattr(device, "total", 0) or device.free)
