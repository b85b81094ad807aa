"""What a pair teaches and what is measured of it is kept from one start to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from specchat.config import Lesson, Measurement, Recommended, State, load_state, update_state
from specchat.engine.interface import Calibration, Command, Engine, Learned, Load, Loaded, Message
from specchat.pairs.catalog import Catalog

T = TypeVar("T")


class RememberingEngine:
    """An engine that is told with each `Load` what its pair taught before, and whose lessons are kept.

    Args:
        engine: does the work.
        state_file: where it is kept.
        pair_key: the name under which it is kept, of the pair that a `Load` names.

    Attributes:
        problem: why something could not be kept; None while all is well.
    """

    def __init__(self, engine: Engine, state_file: Path, pair_key: Callable[[Load], str]) -> None:
        self.problem: str | None = None
        self._engine = engine
        self._state_file = state_file
        self._pair_key = pair_key
        self._pair = ""
        self._loaded: Loaded | None = None

    def send(self, command: Command) -> None:
        """Hands a command over and returns at once."""
        if isinstance(command, Load):
            self._pair = self._pair_key(command)
            state, _ = load_state(self._state_file)
            lessons = (Learned(each.setup, each.experience) for each in state.lessons if each.pair == self._pair)
            command = replaced(command, learned=tuple(lessons))
        self._engine.send(command)

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when there was none within ``timeout`` seconds (None: wait for ever)."""
        message = self._engine.receive(timeout)
        if message is not None:
            self._keep(message)
        return message

    def drain(self) -> list[Message]:
        """All messages that have arrived, without waiting."""
        messages = self._engine.drain()
        for message in messages:
            self._keep(message)
        return messages

    def close(self) -> None:
        """Ends the engine and frees its memory. Safe to call twice."""
        self._engine.close()

    def _keep(self, message: Message) -> None:
        pair = self._pair
        match message:
            case Loaded():
                self._loaded = message
            case Learned():
                lesson = Lesson(pair=pair, setup=message.setup, experience=message.experience)
                self._update(lambda state: state.with_lesson(lesson))
            case Calibration() if self._loaded is not None:
                measurement = _measurement(pair, self._loaded, message)
                self._update(lambda state: state.with_measurement(measurement))

    def _update(self, change: Callable[[State], State]) -> None:
        try:
            update_state(self._state_file, change)
        except OSError as error:  # the reply matters more, and what is not kept is learned again
            self.problem = f"{self._state_file} cannot be written ({error.strerror}): what was learned is not kept."


class StateMemory:
    """What the pair picker remembers (`specchat.pairs.collection.Memory`), in the file of all that is remembered.

    Args:
        state_file: where it is kept.

    Attributes:
        problem: why something could not be kept; None while all is well.
    """

    def __init__(self, state_file: Path) -> None:
        self.problem: str | None = None
        self._state_file = state_file

    def read(self) -> State:
        """What is remembered now."""
        return load_state(self._state_file)[0]

    def add_place(self, path: str) -> None:
        """Remembers a file or a folder that was added."""
        self._change(lambda state: replace(state, added=_with(state.added, path)))

    def forget_place(self, path: str) -> None:
        """Forgets it again."""
        self._change(lambda state: replace(state, added=_without(state.added, path)))

    def add_pair(self, target: str, draft: str) -> None:
        """Remembers a pair that the person made."""
        self._change(lambda state: replace(state, combined=_with(state.combined, (target, draft))))

    def forget_pair(self, target: str, draft: str) -> None:
        """Forgets it again."""
        self._change(lambda state: replace(state, combined=_without(state.combined, (target, draft))))

    def _change(self, change: Callable[[State], State]) -> None:
        try:
            update_state(self._state_file, change)
        except OSError as error:  # nothing can be printed while the screen is up
            self.problem = f"{self._state_file} cannot be written ({error.strerror}): what you added is not remembered."


def _with(items: tuple[T, ...], new: T) -> tuple[T, ...]:
    return (*_without(items, new), new)


def _without(items: tuple[T, ...], old: T) -> tuple[T, ...]:
    return tuple(each for each in items if each != old)


def keys_of(catalog: Catalog) -> Callable[[Load], str]:
    """Names pairs as the catalogue does, by their files; others by the files' names."""
    known: dict[tuple[str, str | None], str] = {}
    for pair in catalog.all_pairs():
        known.setdefault((pair.target.file, None if pair.draft is None else pair.draft.file), pair.key)

    def key(load: Load) -> str:
        target, draft = Path(load.target), None if load.draft is None else Path(load.draft)
        made = target.stem if draft is None else f"{target.stem}+{draft.stem}"
        return known.get((target.name, None if draft is None else draft.name), made)

    return key


def _measurement(pair: str, loaded: Loaded, found: Calibration) -> Measurement:
    best = found.recommended
    return Measurement(
        pair=pair,
        device=loaded.target.device,
        version=loaded.build,
        n_ctx=loaded.n_ctx,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        pass_seconds=found.pass_seconds,
        draft_step_seconds=found.draft_step_seconds,
        draft_catch_up_seconds=found.draft_catch_up_seconds,
        acceptance_by_position=found.acceptance_by_position,
        plain_tokens_per_second=found.plain_tokens_per_second,
        recommended=None
        if best is None
        else Recommended(drafter=best.drafter, num_draft_tokens=best.num_draft_tokens, speedup=best.speedup),
    )
