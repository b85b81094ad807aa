"""Where the two models of a pair go: how many layers on the GPUs, what stays on the CPU, and how large the context is.

Memory of the GPUs goes to the target first, then to the draft, then to the context. Nothing here asks llama.cpp: the
devices are given, so that a screen and the loader reckon alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from specchat.backends.gguf_description import GgufHeader
from specchat.backends.gguf_memory import DEFAULT_ROWS, Memory, ModelMemory, estimate
from specchat.core.theory import RoundCosts, best_num_draft_tokens
from specchat.errors import UsageError

DEFAULT_CONTEXT: Final = 8192
SMALLEST_CONTEXT: Final = 1024
"""Where memory is short, a context that nobody asked for is halved down to this."""

_SMALLEST_BESIDE_DRAFT = 4096
"""… and down to this so that the GPU holds both models: a shorter one serves a chat worse than a draft helps it."""

_SPARE = 0.05
"""The part of a device's free memory that is left alone: other programs, fragmentation."""
_DRIVER_BYTES = 128 * 2**20
"""What a GPU's libraries take for themselves on each GPU while they compute."""

# Assumed before anything is measured: how much faster a GPU reads weights than a CPU, how often a draft is right, what
# each further token in a pass costs the CPU in plain steps (on a GPU: next to nothing), and which gain is worth it.
_GPU_SPEED, _ACCEPTANCE, _CPU_TOKEN_COST, _LEAST_GAIN = 8.0, 0.7, 0.6, 1.1


class DeviceMemory(Protocol):
    """What must be known of a device; sizes in bytes, of the CPU those of the RAM."""

    @property
    def name(self) -> str:
        """llama.cpp's name for it."""

    @property
    def kind(self) -> str:
        """What it is: "cpu", "gpu", "igpu", "accel" or "meta"."""

    @property
    def free(self) -> int:
        """How much of its memory is free."""


DeviceT = TypeVar("DeviceT", bound=DeviceMemory)


@dataclass(frozen=True, slots=True)
class Placement:
    """What was decided for a pair.

    Attributes:
        n_ctx: tokens of context, for both models.
        target: what the target takes, and how many of its layers are on GPUs.
        draft: the same of the draft; None where there is none or it is left out.
        in_ram: bytes that must stay in RAM, with those on a GPU that is part of it.
        fits: whether they do.
        notes: sentences that a person should see: what had to be decided or given up.
    """

    n_ctx: int
    target: ModelMemory
    draft: ModelMemory | None
    in_ram: int
    fits: bool
    notes: tuple[str, ...] = ()

    @property
    def gpu(self) -> Memory:
        """What both take on the GPUs."""
        return self.target.gpu + (self.draft.gpu if self.draft else Memory())

    @property
    def cpu(self) -> Memory:
        """What both take in RAM."""
        return self.target.cpu + (self.draft.cpu if self.draft else Memory())


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants, and what the machine does with weights.

    Attributes:
        n_ctx: tokens of context; None for the default, which may then be made smaller.
        gpu_layers: layers of the target on GPUs; None for as many as fit.
        repacked: types of tensors that the processor keeps in a second order (`gguf_memory.repacked_types`).
        max_logits: rows of logits that a pass can return.
        draft_shares_weights: the target drafts for itself.
    """

    n_ctx: int | None = None
    gpu_layers: int | None = None
    repacked: frozenset[str] = frozenset()
    max_logits: int = DEFAULT_ROWS
    draft_shares_weights: bool = False


def offload_devices(devices: Iterable[DeviceT]) -> list[DeviceT]:
    """The devices that llama.cpp puts layers on: all GPUs, or the built-in one where there is no other."""
    found = list(devices)
    return [device for device in found if device.kind == "gpu"] or [d for d in found if d.kind == "igpu"]


def usable_devices(devices: Iterable[DeviceT], name: str | None) -> list[DeviceT]:
    """What a model may use: the CPU, and the device of that name, or all that `offload_devices` finds.

    Raises:
        UsageError: there is no such device.
    """
    found = list(devices)
    chosen = offload_devices(found) if name is None else [each for each in found if each.name.lower() == name.lower()]
    if name is not None and not chosen:
        raise UsageError(f"There is no device {name!r}.", f"Choose one of: {', '.join(each.name for each in found)}.")
    cpus = [each for each in found if each.kind == "cpu"]
    return cpus + [each for each in chosen if each.kind not in ("cpu", "accel")]


def usable_by_each(
    devices: Iterable[DeviceT], target_device: str | None, draft_device: str | None
) -> tuple[list[DeviceT], list[DeviceT] | None]:
    """What the target and the draft may use; None for the draft where it is the same, as it is unless it has a name.

    Raises:
        UsageError: there is no such device.
    """
    found = list(devices)
    of_draft = None if draft_device in (None, target_device) else usable_devices(found, draft_device)
    return usable_devices(found, target_device), of_draft


def shares_ram(device: DeviceMemory) -> bool:
    """Whether what lies on the device lies in RAM: a processor's own GPU."""
    return device.kind == "igpu" or device.name.startswith(("Metal", "MTL"))


def room_on(devices: Sequence[DeviceMemory]) -> int:
    """How many bytes may be used on these GPUs together."""
    return sum(max(0, int(device.free * (1 - _SPARE)) - _DRIVER_BYTES) for device in devices)


def ram_room(devices: Iterable[DeviceMemory]) -> int | None:
    """How many bytes of RAM may be used; None where no device is a CPU."""
    free = [device.free for device in devices if device.kind == "cpu"]
    return int(free[0] * (1 - _SPARE)) if free else None


def wanted_context(header: GgufHeader, n_ctx: int | None) -> int:
    """The context to aim at: what is asked for or the default, and not more than the model was trained on."""
    return min(n_ctx or DEFAULT_CONTEXT, header.n_ctx_train or DEFAULT_CONTEXT)


def layers_that_fit(
    header: GgufHeader, room: int, n_ctx: int, *, n_devices: int = 1, max_logits: int = DEFAULT_ROWS
) -> int:
    """How many layers ``room`` bytes on GPUs can hold, weights, cache and buffers, the output layer counted as one.

    Returns:
        Between 0 and ``n_layers + 1``.
    """
    fitting, too_many = 0, (header.n_layers or 0) + 2
    while too_many - fitting > 1:
        layers = (fitting + too_many) // 2
        needed = _on_gpus(estimate(header, n_ctx, gpu_layers=layers, max_logits=max_logits), n_devices)
        fitting, too_many = (layers, too_many) if needed <= room else (fitting, layers)
    return fitting


def draft_pays(target: ModelMemory, draft: ModelMemory) -> bool:
    """Whether drafting can be expected to pay where the models lie, before anything is measured.

    A step takes as long as reading the weights; a draft is assumed to be right seven times out of ten.
    """
    if not _step(target):
        return True
    token, step = expected_shares(target, draft)
    costs = RoundCosts({size: 1 + token * (size - 1) for size in range(1, 10)}, draft_step=step)
    return best_num_draft_tokens(_ACCEPTANCE, costs)[1] >= _LEAST_GAIN


def expected_shares(target: ModelMemory, draft: ModelMemory | None) -> tuple[float, float]:
    """What one token more in a pass and what a draft step cost, in plain target steps, before anything is measured."""
    step = _step(target)
    on_cpu = target.cpu.weights / step if step and target.gpu_layers else 1.0
    return on_cpu * _CPU_TOKEN_COST, _step(draft) / step if step and draft is not None else 0.0


def place(
    target: GgufHeader,
    draft: GgufHeader | None,
    devices: Sequence[DeviceMemory],
    wish: Wish | None = None,
    *,
    draft_devices: Sequence[DeviceMemory] | None = None,
) -> Placement:
    """Decides where a pair goes.

    Args:
        target: the target's header.
        draft: the draft's header, if there is one.
        devices: what the target may use, with the CPU among them.
        wish: what a person asked for; nothing in particular by default.
        draft_devices: what the draft may use where that is other devices than the target's.
    """
    return _Placing(target, draft, devices, wish or Wish(), draft_devices).decide()


class _Placing:
    def __init__(
        self,
        target: GgufHeader,
        draft: GgufHeader | None,
        devices: Sequence[DeviceMemory],
        wish: Wish,
        draft_devices: Sequence[DeviceMemory] | None,
    ) -> None:
        self._target, self._draft, self._wish = target, draft, wish
        self._gpus = offload_devices(devices)
        self._draft_gpus = self._gpus if draft_devices is None else offload_devices(draft_devices)
        self._together = draft_devices is None
        self._ram = ram_room(devices)
        self._wanted = wanted_context(target, wish.n_ctx)
        self._all = (target.n_layers or 0) + 1

    def decide(self) -> Placement:
        if self._wish.gpu_layers == 0 or not (self._gpus or self._draft_gpus):
            return self._on_cpu()
        for n_ctx in self._contexts(_SMALLEST_BESIDE_DRAFT):
            placed = self._beside(n_ctx, self._layers(n_ctx))
            if self._is_whole(placed.target.gpu_layers) and self._draft_fits(placed):
                return self._checked(placed)
        return self._checked(self._target_first())

    def _is_whole(self, layers: int) -> bool:
        """Whether all of the target is where it is wanted."""
        return self._wish.gpu_layers is not None or not self._gpus or layers == self._all

    def _contexts(self, smallest: int) -> list[int]:
        """The wanted context, and smaller ones where nobody asked for this one."""
        sizes = [self._wanted]
        while self._wish.n_ctx is None and sizes[-1] // 2 >= smallest:
            sizes.append(sizes[-1] // 2)
        return sizes

    def _layers(self, n_ctx: int) -> int:
        if self._wish.gpu_layers is not None:
            return min(self._wish.gpu_layers, self._all)
        room = room_on(self._gpus)
        return layers_that_fit(
            self._target, room, n_ctx, n_devices=len(self._gpus), max_logits=self._wish.max_logits
        )  # fmt: skip

    def _beside(self, n_ctx: int, layers: int) -> Placement:
        """The target with so many layers on GPUs, and the draft there too, whether or not that fits."""
        on_gpu = 0
        if self._draft is not None and self._draft_gpus:
            on_gpu = layers if self._wish.draft_shares_weights else (self._draft.n_layers or 0) + 1
        return self._placed(n_ctx, layers, on_gpu)

    def _draft_fits(self, placed: Placement) -> bool:
        """Whether there is no draft, or it is to run on the CPU, or GPUs have room for all of it beside the target."""
        left = room_on(self._gpus) - _on_gpus(placed.target, len(self._gpus))
        if placed.draft is None or not self._draft_gpus:
            return left >= 0 or self._wish.gpu_layers is not None  # what is asked for is tried
        room = left if self._together else room_on(self._draft_gpus)
        return placed.draft.gpu_layers > 0 and _on_gpus(placed.draft, len(self._draft_gpus)) <= room

    def _target_first(self) -> Placement:
        """Both do not fit: the target takes what it can, and the draft stays on the CPU or is left out."""
        sizes = self._contexts(_SMALLEST_BESIDE_DRAFT)
        n_ctx = next((size for size in sizes if self._is_whole(self._layers(size))), sizes[0])
        layers = self._layers(n_ctx)
        if not layers and self._gpus:
            placed = self._on_cpu()
            return replace(placed, notes=("The GPU has no room for a layer of the target.", *placed.notes))
        placed = self._beside(n_ctx, layers)
        notes = list(placed.notes)
        if not self._is_whole(layers):
            notes.append(f"{layers} of the target's {self._all} layers fit the GPU; the others are on the CPU.")
        if self._draft_fits(placed):
            return replace(placed, notes=tuple(notes))
        where = "the GPU beside the target" if self._together else "its GPU"
        draft = self._draft_at(n_ctx, 0)
        if draft is not None and not self._wish.draft_shares_weights and draft_pays(placed.target, draft):
            notes.append(f"The draft does not fit {where} and stays on the CPU; it should still pay.")
            return replace(placed, draft=draft, notes=tuple(notes))
        notes.append(
            f"The draft is not used: it does not fit {where}, and on the CPU it would cost more than it saves."
            f" {'A smaller context (--ctx) or draft' if self._is_whole(layers) else 'A smaller target'} makes room."
        )
        return replace(placed, draft=None, notes=tuple(notes))

    def _on_cpu(self) -> Placement:
        placed = [self._checked(self._placed(n_ctx, 0, 0)) for n_ctx in self._contexts(SMALLEST_CONTEXT)]
        return next((each for each in placed if each.fits), placed[0])

    def _target_at(self, n_ctx: int, gpu_layers: int) -> ModelMemory:
        wish = self._wish
        return estimate(
            self._target, n_ctx, gpu_layers=gpu_layers, max_logits=wish.max_logits, repacked=wish.repacked
        )  # fmt: skip

    def _draft_at(self, n_ctx: int, gpu_layers: int) -> ModelMemory | None:
        if self._draft is None:
            return None
        return estimate(
            self._draft,
            n_ctx,
            gpu_layers=gpu_layers,
            max_logits=self._wish.max_logits,
            repacked=self._wish.repacked,
            has_own_weights=not self._wish.draft_shares_weights,
        )

    def _placed(self, n_ctx: int, layers: int, draft_layers: int) -> Placement:
        target, draft = self._target_at(n_ctx, layers), self._draft_at(n_ctx, draft_layers)
        return Placement(n_ctx, target, draft, 0, True, self._about_context(n_ctx))

    def _checked(self, placed: Placement) -> Placement:
        shared = placed.gpu.needed if any(shares_ram(gpu) for gpu in self._gpus) else 0
        in_ram = placed.cpu.needed + shared
        return replace(placed, in_ram=in_ram, fits=self._ram is None or in_ram <= self._ram)

    def _about_context(self, n_ctx: int) -> tuple[str, ...]:
        if n_ctx == self._wanted:
            return ()
        return (f"The context is {n_ctx:,} tokens rather than {self._wanted:,}, which memory is short for.",)


def _on_gpus(memory: ModelMemory, n_devices: int) -> int:
    """What a model takes on GPUs: each of several computes in buffers of its own."""
    return memory.gpu.needed + max(0, n_devices - 1) * memory.gpu.compute


def _step(memory: ModelMemory) -> float:
    return memory.cpu.weights + memory.gpu.weights / _GPU_SPEED
