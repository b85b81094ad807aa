"""What a screen or a command says to an engine, and what the engine says back.

An engine is one chat's decoder behind one interface: `specchat.engine.local` in this process,
`specchat.engine.process` in a child process. Commands and messages are frozen records of plain values, so that they
can cross a pipe. Logits never do.

The order of messages: a `Load` is answered by `LoadProgress`… and then `Loaded` or `Failed`. A `Reply` is answered
by `ReplyEvent`s (`Prefill`, perhaps `PlainSpeed`, `Round`…, `Finished`) or by `Failed`; a `Note` comes before them
where a person should know something about its prompt, `Reading`s before a `Prefill` that takes long, and a reply that
fails half-way gives a ``Finished(reason="error")`` and then `Failed`. A draft that was left out is loaded before the
first reply that wants it: then `LoadProgress`… and `Loaded` come again before the reply's events. `Learned` comes
right before `Finished` and before a `Calibration`. Everything else is answered by one message or `Failed`; `Stop` and
`Set` have no answer of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from specchat.core.events import Event
from specchat.core.settings import ChatMessage, ReplySettings


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What there is to say about a loaded model."""

    name: str
    path: str
    architecture: str
    quantization: str
    n_params: int
    n_vocab: int
    n_layers: int
    gpu_layers: int
    n_ctx_train: int
    file_bytes: int
    memory_bytes: int
    device: str


@dataclass(frozen=True, slots=True)
class Learned:
    """What a pair has taught about drafting (`specchat.core.experience.Experience.to_dict`), and where that holds.

    A message after each reply and each calibration; whoever wants it to be known at the next start keeps it, and
    gives it back with `Load`. ``setup`` names everything but the pair that costs depend on: the device, the layers
    on it, threads, context, exactness and llama.cpp's build.
    """

    setup: str
    experience: dict[str, Any]


# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Load a target and perhaps a draft, in place of what is loaded. None means: decide for this machine.

    Devices are named as `DeviceList` has them; the draft is on the target's unless it has one of its own.
    """

    target: str
    draft: str | None = None
    n_ctx: int | None = None
    gpu_layers: int | None = None
    threads: int | None = None
    target_device: str | None = None
    draft_device: str | None = None
    exact: bool = False
    """Set up for *exact* mode: flash attention on, weights not repacked (product.md, "Greedy")."""
    draft_if_it_pays: bool = False
    """Leave the draft out for now where it is not expected to pay: *fast* does not use it then."""
    learned: tuple[Learned, ...] = ()
    """What was learned of this pair before, on this device and on others."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Write the next reply.

    With ``continue_last`` the last message is an assistant's that was cut, and the reply goes on from there.
    ``details`` adds the ten largest entries of p, q and the residual to every round.
    ``measure_plain`` asks for a short plain stretch first, where no `PlainSpeed` is known for this chat.
    """

    reply: int
    messages: tuple[ChatMessage, ...]
    settings: ReplySettings
    continue_last: bool = False
    details: bool = False
    measure_plain: bool = True


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop what is going on (a reply, its prefill, or loading) and keep what came."""


@dataclass(frozen=True, slots=True)
class Set:
    """Change the settings, also of the reply that is being written, from its next round on."""

    settings: ReplySettings


@dataclass(frozen=True, slots=True)
class Inspect:
    """Ask for the sizes of the prompt that these messages would make."""

    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """Ask which devices there are. Works before anything is loaded."""


@dataclass(frozen=True, slots=True)
class Calibrate:
    """Measure the loaded pair: the cost of passes by size, the draft's step, acceptance by position."""

    quick: bool = True


Command: TypeAlias = Load | Reply | Stop | Set | Inspect | Devices | Calibrate


# --- messages -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How much of a model's file has been read, 0 to 1."""

    model: Literal["target", "draft"]
    fraction: float


@dataclass(frozen=True, slots=True)
class Loaded:
    """The pair is ready. ``notes`` are sentences that a person should see (no GPU build, a smaller context, …)."""

    target: ModelDescription
    draft: ModelDescription | None
    n_ctx: int
    max_draft_tokens: int
    has_chat_template: bool
    build: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyEvent:
    """Something happened in the reply of that number."""

    reply: int
    event: Event


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a model has read the prompt of that reply.

    It holds ``read`` of ``total`` tokens, ``reused`` of which were in its cache before; ``seconds`` is how long it has
    been at the others. Several times a second, where reading takes that long.
    """

    reply: int
    model: Literal["target", "draft"]
    read: int
    total: int
    reused: int
    seconds: float

    @property
    def tokens_per_second(self) -> float | None:
        """How fast it reads; None before the first token."""
        return (self.read - self.reused) / self.seconds if self.seconds > 0 and self.read > self.reused else None


@dataclass(frozen=True, slots=True)
class PromptSize:
    """Answer to `Inspect`: tokens of the prompt, and how many of them are in the target's cache already."""

    tokens: int
    reused: int
    n_ctx: int


@dataclass(frozen=True, slots=True)
class Device:
    """A device that llama.cpp can use. Sizes in bytes; RAM for the CPU."""

    name: str
    description: str
    kind: Literal["cpu", "gpu", "igpu", "accel", "meta"]
    free: int
    total: int


@dataclass(frozen=True, slots=True)
class DeviceList:
    """Answer to `Devices`."""

    devices: tuple[Device, ...]
    build: str
    system_info: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """How much faster than plain decoding a drafter should be with γ fixed; "none" and 0 stand for plain decoding."""

    drafter: str
    num_draft_tokens: int
    speedup: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Answer to `Calibrate`. ``pass_seconds[n]`` is the median time of a target pass of n tokens.

    ``predictions`` are for every drafter at hand and every γ whose pass was measured, on the built-in prompts;
    ``recommended`` is the best of them, or plain decoding.
    """

    pass_seconds: dict[int, float]
    draft_step_seconds: float | None
    draft_catch_up_seconds: float | None
    acceptance_by_position: tuple[float, ...]
    plain_tokens_per_second: float
    predictions: tuple[Prediction, ...] = ()
    recommended: Prediction | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work is, 0 to 1, and what it is doing."""

    what: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that a person should see about a reply: what its prompt had to change. Said once a pair."""

    reply: int
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A command failed. The engine is alive unless ``died``; the chat is untouched either way.

    ``kind`` is the name of the error's class (`specchat.errors`), ``reply`` the reply that it ended, if any.
    """

    kind: str
    message: str
    next_step: str
    reply: int | None = None
    died: bool = False


Message: TypeAlias = (
    LoadProgress
    | Loaded
    | ReplyEvent
    | Reading
    | PromptSize
    | DeviceList
    | Calibration
    | Progress
    | Note
    | Learned
    | Failed
)


class Engine(Protocol):
    """Commands in, messages out. Nothing here blocks but `receive` with a timeout."""

    def send(self, command: Command) -> None:
        """Hands a command over and returns at once. An engine that has died answers with `Failed`."""

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when there was none within ``timeout`` seconds (None: wait for ever)."""

    def drain(self) -> list[Message]:
        """All messages that have arrived, without waiting."""

    def close(self) -> None:
        """Ends the engine and frees its memory. Safe to call twice."""
