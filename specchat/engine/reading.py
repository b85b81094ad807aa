"""How far the models have read a prompt: told by the way, whenever it is asked whether to stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from specchat.backends.base import LanguageModel
from specchat.core.events import Event, ModelRole, PlainSpeed, Prefill
from specchat.engine.interface import Reading

_EVERY = 0.1
"""Seconds between two messages: more could not be read."""


class PromptReading:
    """Watches the target, and then the draft model, read the prompt of a reply.

    Args:
        reply: its number.
        num_tokens: how many tokens are to be read.
        target: reads first.
        draft: reads after it, where there is one.
        tell: takes the messages.
        clock: seconds.
    """

    def __init__(
        self,
        reply: int,
        num_tokens: int,
        target: LanguageModel,
        draft: LanguageModel | None,
        tell: Callable[[Reading], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._reply = reply
        self._total = num_tokens
        self._draft = draft
        self._tell = tell
        self._clock = clock
        self._role: ModelRole = "target"
        self._model: LanguageModel | None = None
        self._began = self._next = 0.0
        self._reused, self._told = 0, -1
        self._watch("target", target)

    def look(self) -> None:
        """Tells how far it is, unless that was told just now or nothing is being read.

        Cheap: it is called from within the passes, hundreds of times in each.
        """
        if self._model is None:
            return
        now = self._clock()
        if now < self._next:
            return
        read = self._model.num_read()
        if read < self._reused:  # a cache may be cut before anything is read
            self._reused, self._began, self._told = read, now, min(self._told, read)
        elif read > self._told:
            self._tell(Reading(self._reply, self._role, read, self._total, self._reused, now - self._began))
            self._told, self._next = read, now + _EVERY

    def observe(self, event: Event) -> None:
        """Something happened in the reply: after the target's prefill comes the draft's, and then no other."""
        if isinstance(event, Prefill) and event.model == "target":
            self._watch("draft", self._draft)
        elif isinstance(event, PlainSpeed):
            self._began = self._clock()  # what was measured until now took its time, and none of it went into reading
        else:
            self._model = None

    def _watch(self, role: ModelRole, model: LanguageModel | None) -> None:
        self._role, self._model = role, model
        self._began = self._clock()
        self._next = self._began + _EVERY
        self._reused = 0 if model is None else model.num_read()
        self._told = -1 if role == "target" else self._reused  # the draft may have something else to wait for first
