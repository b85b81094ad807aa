"""Does a pair fit this machine? The sum by part, against what is free, and what would help where it does not.

The arithmetic is `specchat.backends.gguf_memory`, and where things go is `specchat.backends.placement`, which the
loader uses as well: what is said here is what happens. It warns and never forbids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from specchat.backends.gguf_header import GgufHeader
from specchat.backends.gguf_memory import Memory, ModelMemory, estimate, repacked_types
from specchat.backends.placement import (
    SMALLEST_CONTEXT,
    DeviceMemory,
    Placement,
    Wish,
    offload_devices,
    place,
    ram_room,
    room_on,
    usable_by_each,
    wanted_context,
)
from specchat.pairs.fetching import size_text

__all__ = [
    "DeviceMemory",
    "DeviceUse",
    "Fit",
    "Machine",
    "Memory",
    "ModelMemory",
    "Part",
    "Surroundings",
    "Verdict",
    "estimate",
    "fits",
]

Verdict: TypeAlias = Literal["fits the GPU", "partly on the GPU", "fits in memory", "does not fit"]

RANK: dict[Verdict, int] = {"fits the GPU": 0, "fits in memory": 1, "partly on the GPU": 2, "does not fit": 3}
"""From best to worst, for sorting; a machine has either GPUs or none, so that 1 and 2 seldom meet."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is known of this machine: the engine's answer to `Devices`.

    Attributes:
        devices: llama.cpp's devices, with the CPU among them.
        system_info: what llama.cpp says of the processor.
        device: the one that the person chose for the target; None for what llama.cpp would use.
        draft_device: for the draft; None for the target's.

    Raises:
        UsageError: there is no device of such a name.
    """

    devices: Sequence[DeviceMemory]
    system_info: str = ""
    device: str | None = None
    draft_device: str | None = None

    def __post_init__(self) -> None:
        self._usable()

    @property
    def target_devices(self) -> list[DeviceMemory]:
        """What the target may use."""
        return self._usable()[0]

    @property
    def draft_devices(self) -> list[DeviceMemory] | None:
        """What the draft may use; None for the same."""
        return self._usable()[1]

    def _usable(self) -> tuple[list[DeviceMemory], list[DeviceMemory] | None]:
        return usable_by_each(self.devices, self.device, self.draft_device)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is to run a pair on.

    Attributes:
        machine: its devices.
        build: the llama.cpp that is here.
        problem: why the devices are not known, where they are not.
    """

    machine: Machine | None
    build: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One term of the sum: what it is ("target: weights"), where it lies ("GPU" or "RAM"), and its bytes."""

    what: str
    where: Literal["GPU", "RAM"]
    size: int


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a pair takes of one device, and how much of it is free; bytes."""

    name: str
    needed: int
    free: int


@dataclass(frozen=True, slots=True)
class Fit:
    """How a pair fits.

    Attributes:
        verdict: in words for the table.
        n_ctx: the context that was reckoned with.
        parts: the sum, largest first.
        devices: what each device has to hold, those that hold something.
        target_layers: how many of the target's layers are on GPUs, and how many it has.
        advice: what would help, a sentence each.
        notes: what was decided or given up so that it fits.
        is_rough: nothing but the files' sizes is known.
    """

    verdict: Verdict
    n_ctx: int
    parts: tuple[Part, ...]
    devices: tuple[DeviceUse, ...]
    target_layers: tuple[int, int] = (0, 0)
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_rough: bool = False

    @property
    def needed(self) -> int:
        """Bytes in all that must stay in memory."""
        return sum(part.size for part in self.parts)


def fits(
    target: GgufHeader,
    draft: GgufHeader | None,
    machine: Machine,
    *,
    n_ctx: int | None = None,
    gpu_layers: int | None = None,
    is_rough: bool = False,
) -> Fit:
    """How a pair fits a machine.

    Args:
        target: the target's header, from its file or from `specchat.pairs.unfetched.header_of`.
        draft: the draft's.
        machine: its devices.
        n_ctx: tokens of context; None for the default.
        gpu_layers: layers of the target on GPUs; None for as many as fit.
        is_rough: the headers are made from nothing but sizes.
    """
    wish = Wish(
        n_ctx=n_ctx,
        gpu_layers=gpu_layers,
        repacked=repacked_types(machine.system_info),
        draft_shares_weights=draft is not None and draft.path == target.path,
    )
    placed = _place(target, draft, machine, wish)
    verdict = _verdict(placed, target, draft)
    return Fit(
        verdict=verdict,
        n_ctx=placed.n_ctx,
        parts=tuple(sorted(_parts(placed), key=lambda part: -part.size)),
        devices=tuple(_devices(placed, machine)),
        target_layers=(placed.target.gpu_layers, (target.n_layers or 0) + 1),
        advice=tuple(_advice(verdict, placed, target, draft, machine, wish)),
        notes=placed.notes,
        is_rough=is_rough,
    )


def _place(target: GgufHeader, draft: GgufHeader | None, machine: Machine, wish: Wish) -> Placement:
    return place(target, draft, machine.target_devices, wish, draft_devices=machine.draft_devices)


def _verdict(placed: Placement, target: GgufHeader, draft: GgufHeader | None) -> Verdict:
    if not placed.fits:
        return "does not fit"
    layers = placed.target.gpu_layers + (placed.draft.gpu_layers if placed.draft else 0)
    if not layers:
        return "fits in memory"
    target_on_gpu = placed.target.gpu_layers == (target.n_layers or 0) + 1
    draft_on_gpu = draft is None or (placed.draft is not None and placed.draft.gpu_layers > 0)
    return "fits the GPU" if target_on_gpu and draft_on_gpu else "partly on the GPU"


def _parts(placed: Placement) -> Iterator[Part]:
    for who, memory in (("target", placed.target), ("draft", placed.draft)):
        if memory is None:
            continue
        places: tuple[tuple[Literal["GPU", "RAM"], Memory], ...] = (("GPU", memory.gpu), ("RAM", memory.cpu))
        for where, held in places:
            sizes = (("weights", held.weights), ("cache", held.kv_cache), ("computing", held.compute))
            yield from (Part(f"{who}: {what}", where, size) for what, size in sizes if size)


def _devices(placed: Placement, machine: Machine) -> Iterator[DeviceUse]:
    """Layers are spread over several GPUs by how much of each is free."""
    needed: dict[str, int] = defaultdict(int)
    draft_devices = machine.target_devices if machine.draft_devices is None else machine.draft_devices
    for memory, devices in ((placed.target, machine.target_devices), (placed.draft, draft_devices)):
        gpus = offload_devices(devices)
        free = sum(gpu.free for gpu in gpus)
        for gpu in gpus if memory is not None and memory.gpu.needed and free else ():
            assert memory is not None
            needed[gpu.name] += memory.gpu.needed * gpu.free // free
    yield from (DeviceUse(each.name, needed[each.name], each.free) for each in machine.devices if each.name in needed)
    for cpu in (device for device in machine.devices if device.kind == "cpu"):
        yield DeviceUse("RAM", placed.in_ram, cpu.free)


def _advice(
    verdict: Verdict, placed: Placement, target: GgufHeader, draft: GgufHeader | None, machine: Machine, wish: Wish
) -> Iterator[str]:
    """What would make it fit better, each tried on the same arithmetic."""
    if verdict in ("fits the GPU", "fits in memory"):
        return

    def verdict_with(with_draft: GgufHeader | None, **changes: int | None) -> Verdict:
        other = _place(target, with_draft, machine, replace(wish, **changes))  # type: ignore[arg-type]
        return _verdict(other, target, with_draft)

    size = wanted_context(target, wish.n_ctx) // 2
    while size >= SMALLEST_CONTEXT:
        better = verdict_with(draft, n_ctx=size)
        if RANK[better] < RANK[verdict]:
            yield f"With a context of {size:,} tokens it {_fits(better)} (--ctx {size})."
            break
        size //= 2
    if wish.gpu_layers is not None and RANK[better := verdict_with(draft, gpu_layers=None)] < RANK[verdict]:
        yield f"With --gpu-layers auto it {_fits(better)}."
    if draft is not None and RANK[better := verdict_with(None)] < RANK[verdict]:
        yield f"Without the draft it {_fits(better)}: --draft ngram needs no memory. A smaller draft may fit."
    if verdict == "does not fit":
        room = size_text(ram_room(machine.devices) or 0)
        yield (
            f"It needs {size_text(placed.in_ram)} of RAM, and {room} can be used: close what else takes memory, or"
            " choose a smaller model or quantisation."
        )
    elif placed.target.gpu_layers <= (target.n_layers or 0):
        whole = estimate(target, placed.n_ctx, gpu_layers=(target.n_layers or 0) + 1).gpu.needed
        room = size_text(room_on(offload_devices(machine.target_devices)))
        yield (
            f"All of the target takes {size_text(whole)} of the GPU, and {room} can be used: a smaller model or"
            " quantisation would run faster."
        )


def _fits(verdict: Verdict) -> str:
    return "is " + verdict if verdict == "partly on the GPU" else verdict
