"""An engine in this process: a thread that owns the models and does one thing after the other.

The child process runs it, and so do tests and programs that use specchat as a library. `Stop` and `Set` take effect
at once, also while the thread is busy; everything else waits its turn.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic

import numpy as np

from specchat.backends.base import Interrupted, common_prefix
from specchat.core.events import Finished, ModelRole, PlainSpeed, Round
from specchat.core.settings import ReplySettings
from specchat.decoding.decoder import generate
from specchat.decoding.plain_speed import remembered
from specchat.decoding.prompt import render_prompt
from specchat.engine import measuring
from specchat.engine.draft_lengths import DraftLengths
from specchat.engine.interface import (
    Calibrate,
    Command,
    DeviceList,
    Devices,
    Failed,
    Inspect,
    Learned,
    Load,
    Loaded,
    LoadProgress,
    Message,
    Note,
    PromptSize,
    Reply,
    ReplyEvent,
    Set,
    Stop,
)
from specchat.engine.mailbox import Mailbox
from specchat.engine.pair import LoadedPair, Loader, OnProgress
from specchat.engine.reading import PromptReading
from specchat.engine.round_plans import RoundPlans
from specchat.errors import LoadError, SpecchatError

_PROGRESS_STEP = 0.01
_PLAIN_LASTS = 120.0
"""Seconds after which the machine may be as fast as before or not: plain decoding is measured again."""
_PLAIN_TOKENS = 1024
"""So many tokens more make no step slow; more than that and twice as many as before might."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A command with its number. A `Stop` or `Set` that came later has a higher one, and so concerns it."""

    number: int
    command: Command


class LocalEngine:
    """The `Engine` whose models live in this process, in a thread of their own.

    Args:
        loader: loads models; llama.cpp's unless told otherwise.
        list_devices: what answers `Devices`; llama.cpp unless told otherwise.
    """

    def __init__(self, loader: Loader | None = None, list_devices: Callable[[], DeviceList] | None = None) -> None:
        self._loader = loader or _load_with_llama
        self._list_devices = list_devices or _llama_devices
        self._mailbox = Mailbox()
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._last = 0
        self._stopped = 0
        self._set: tuple[int, ReplySettings] | None = None
        self._closing = False
        self._rng = np.random.default_rng()
        self._pair: LoadedPair | None = None
        self._lengths: DraftLengths | None = None
        self._plain_speed: PlainSpeed | None = None
        self._plain_at = 0.0, 0
        self._noted: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()
        atexit.register(self.close)  # native code must not run on while the interpreter is taken down

    def send(self, command: Command) -> None:
        """Hands a command over and returns at once."""
        with self._lock:
            if self._closing:
                return
            self._last += 1
            if isinstance(command, Stop):
                self._stopped = self._last
            elif isinstance(command, Set):
                self._set = (self._last, command.settings)
            else:
                self._tasks.put(_Task(self._last, command))

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when there was none within ``timeout`` seconds, or after `close`."""
        return self._mailbox.receive(timeout)

    def drain(self) -> list[Message]:
        """All messages that have arrived, without waiting."""
        return self._mailbox.drain()

    def close(self) -> None:
        """Ends the thread and frees the models. Safe to call twice."""
        with self._lock:
            self._closing = True
            self._tasks.put(None)
        self._thread.join()
        self._mailbox.close()
        atexit.unregister(self.close)

    def _work(self) -> None:
        try:
            while (task := self._tasks.get()) is not None:
                if not self._closing:
                    self._do_and_report(task)
        finally:
            self._unload()

    def _do_and_report(self, task: _Task) -> None:
        reply = task.command.reply if isinstance(task.command, Reply) else None
        try:
            self._do(task)
        except SpecchatError as error:
            self._mailbox.put(Failed(type(error).__name__, error.message, error.next_step, reply=reply))
        except Interrupted:
            self._mailbox.put(Failed("CancelledError", "It was stopped before it was done.", "", reply=reply))
        except Exception as problem:  # a fault of ours must not end the chat either
            what = f"Something unforeseen went wrong: {type(problem).__name__}: {problem}"
            self._mailbox.put(Failed(type(problem).__name__, what, "This is a fault in specchat.", reply=reply))

    def _do(self, task: _Task) -> None:
        match task.command:
            case Load():
                self._load(task, task.command)
            case Reply():
                self._reply(task, task.command)
            case Inspect():
                self._inspect(task.command)
            case Devices():
                self._mailbox.put(self._list_devices())
            case Calibrate():
                self._calibrate(task, task.command)

    def _should_stop(self, task: _Task) -> bool:
        return self._closing or self._stopped > task.number

    def _load(self, task: _Task, command: Load) -> None:
        self._unload()
        if self._should_stop(task):
            raise Interrupted
        pair = self._pair = self._loader(command, self._progress(task))
        if self._should_stop(task):
            self._unload()
            raise Interrupted
        self._lengths = DraftLengths(pair.experience)
        self._tell_loaded(pair)

    def _tell_loaded(self, pair: LoadedPair) -> None:
        self._mailbox.put(
            Loaded(
                target=pair.description,
                draft=pair.draft_description,
                n_ctx=pair.target.n_ctx,
                max_draft_tokens=pair.max_draft_tokens,
                has_chat_template=pair.target.vocabulary.chat_template is not None,
                build=pair.build,
                notes=pair.notes,
            )
        )

    def _progress(self, task: _Task) -> OnProgress:
        told: dict[ModelRole, float] = {}

        def on_progress(model: ModelRole, fraction: float) -> bool:
            if model not in told or fraction >= min(1.0, told[model] + _PROGRESS_STEP):
                told[model] = fraction
                self._mailbox.put(LoadProgress(model, fraction))
            return not self._should_stop(task)

        return on_progress

    def _unload(self) -> None:
        pair, self._pair = self._pair, None
        self._lengths = None
        self._plain_speed = None
        self._noted.clear()
        if pair is not None:
            pair.close()

    def _loaded(self) -> LoadedPair:
        if self._pair is None:
            raise LoadError("No model is loaded.", "Load a pair first.")
        return self._pair

    def _reply(self, task: _Task, command: Reply) -> None:
        pair = self._with_draft_if_wanted(task, self._settings_for(task, command))
        assert self._lengths is not None
        prompt = render_prompt(pair.target.vocabulary, command.messages, continue_last=command.continue_last)
        for note in prompt.notes:
            if note not in self._noted:
                self._noted.add(note)
                self._mailbox.put(Note(command.reply, note))
        plans = RoundPlans(pair, self._lengths, lambda: self._settings_for(task, command))
        reading = PromptReading(command.reply, len(prompt.tokens) - 1, pair.target, pair.draft, self._mailbox.put)
        seed = command.settings.seed
        known = self._known_plain_speed(command, len(prompt.tokens))

        def should_stop() -> bool:
            reading.look()
            return self._should_stop(task)

        events = generate(
            pair.target,
            prompt.tokens,
            plans,
            self._rng if seed is None else np.random.default_rng(seed),
            max_tokens=command.settings.max_tokens,
            stop=prompt.stop,
            details=command.details,
            plain_speed=known,
            measure_plain=command.measure_plain,
            should_stop=should_stop,
        )
        for event in events:
            reading.observe(event)
            if isinstance(event, PlainSpeed) and event is not known:  # one that was handed in grows no younger
                if self._plain_speed is None:
                    pair.experience.target.learn({1: 1 / event.tokens_per_second})
                self._plain_speed = event
                self._plain_at = monotonic(), len(prompt.tokens)
            elif isinstance(event, Round):
                plans.observe(event)
            elif isinstance(event, Finished):
                self._tell_learned(pair)  # first, because the end of a reply is where some stop listening
            self._mailbox.put(ReplyEvent(command.reply, event))

    def _known_plain_speed(self, command: Reply, num_tokens: int) -> PlainSpeed | None:
        """What is known of plain decoding; None where that is too old, or of a much shorter context, to compare with.

        *Fast* renews it in passing, from the rounds in which it drafts nothing: it does not stop to measure.
        """
        seconds, tokens = self._plain_at
        is_stale = monotonic() - seconds > _PLAIN_LASTS or num_tokens > 2 * tokens + _PLAIN_TOKENS
        if self._plain_speed is None or (is_stale and command.settings.mode != "fast"):
            return None
        return remembered(self._plain_speed)

    def _with_draft_if_wanted(self, task: _Task, settings: ReplySettings) -> LoadedPair:
        """The pair, with the draft model where it was left out and is wanted now, or expected to pay by now."""
        pair = self._loaded()
        if pair.load_draft is None or settings.drafter not in ("draft", "auto"):
            return pair
        if settings.mode == "fast" and not pair.experience.could_gain(pair.max_draft_tokens):
            return pair
        pair = self._pair = pair.load_draft(pair, self._progress(task))
        self._tell_loaded(pair)
        return pair

    def _tell_learned(self, pair: LoadedPair) -> None:
        self._mailbox.put(Learned(pair.setup, pair.experience.to_dict()))

    def _settings_for(self, task: _Task, command: Reply) -> ReplySettings:
        """The settings of the moment: the reply's own, or those of a `Set` that came after it."""
        with self._lock:
            if self._set is not None and self._set[0] > task.number:
                return self._set[1]
        return command.settings

    def _inspect(self, command: Inspect) -> None:
        target = self._loaded().target
        tokens = render_prompt(target.vocabulary, command.messages).tokens
        self._mailbox.put(PromptSize(len(tokens), common_prefix(target.tokens(), tokens), target.n_ctx))

    def _calibrate(self, task: _Task, command: Calibrate) -> None:
        pair = self._loaded()
        measured = measuring.calibrate(
            pair,
            quick=command.quick,
            on_progress=self._mailbox.put,
            should_stop=lambda: self._should_stop(task),
        )
        self._tell_learned(pair)
        self._mailbox.put(measured)


def _load_with_llama(command: Load, on_progress: Callable[[ModelRole, float], bool]) -> LoadedPair:
    from specchat.engine.loading import load_pair  # llama.cpp's libraries, only where they are needed

    return load_pair(command, on_progress)


def _llama_devices() -> DeviceList:
    from specchat.engine.loading import list_devices

    return list_devices()
