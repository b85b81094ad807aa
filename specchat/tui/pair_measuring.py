"""Measures a pair with the chat's own engine: two model processes at once would spoil both timings, and fill memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from specchat.engine.interface import Calibrate, Calibration, Failed, Load, Loaded, LoadProgress, Progress, Stop
from specchat.errors import SpecchatError, from_dict
from specchat.tui.live_chat import LiveChat
from specchat.tui.pair_shelf import PairFiles

_LOAD_SHARE = 0.25
"""Of the bar: loading. What the engine measures takes most of the time."""


class PairMeasuring:
    """Borrows the chat's engine, loads the pair in place of what is loaded, calibrates it, and gives the engine back.

    Args:
        chat: whose engine it is.
        options: how to load.

    Attributes:
        key: the pair that is, or was last, measured.
        what: what is going on, in words.
        fraction: how far it is, 0 to 1.
        result: what the last measurement found, or why it ended.
        seconds: how long it took.
        displaced: the chat's pair had to go for it.
    """

    def __init__(self, chat: LiveChat, options: Load) -> None:
        self.key = ""
        self.what = ""
        self.fraction = 0.0
        self.result: Calibration | SpecchatError | None = None
        self.seconds = 0.0
        self.displaced = False
        self._chat = chat
        self._options = options
        self._files: PairFiles | None = None
        self._is_ready: Callable[[], bool] = lambda: True
        self._stage: Literal["", "waiting", "loading", "measuring"] = ""
        self._began = 0.0
        self._stopped = False

    @property
    def is_going(self) -> bool:
        """Whether a pair is being measured, or waits for that."""
        return self._stage != ""

    def begin(self, key: str, files: PairFiles, is_ready: Callable[[], bool] = lambda: True) -> None:
        """Measures a pair, as soon as the engine has nothing else to do.

        Args:
            key: the pair.
            files: its files.
            is_ready: whether nothing else uses the processor any more.
        """
        if self.is_going:
            return
        self.key, self._files, self._is_ready = key, files, is_ready
        self.what, self.fraction, self._stage = "waiting for the engine", 0.0, "waiting"
        self._stopped, self._began = False, time.monotonic()

    def cancel(self) -> None:
        """Stops it; `look` gives the engine back once it has."""
        if self._stage == "waiting":
            self._end(_stopped())
        elif self.is_going and not self._stopped:
            self._stopped = True
            self.what = "stopping"
            self._chat.engine.send(Stop())

    def look(self) -> None:
        """Takes over what the engine has said."""
        if self._stage == "waiting" and not self._chat.is_busy and self._is_ready():
            self._start()
        if self._stage in ("loading", "measuring"):
            for message in self._chat.engine.drain():
                self._take(message)
                if not self.is_going:
                    return

    def _start(self) -> None:
        files = self._files
        assert files is not None
        self._chat.lend_engine()
        if self._is_loaded(files):
            self._calibrate()
            return
        comes_back = " (the chat's pair comes back afterwards)" if self._chat.loaded is not None else ""
        self._stage, self.what, self.displaced = "loading", f"loading the pair{comes_back}", True
        load = replace(self._options, target=files.target, draft=files.draft, exact=False, draft_if_it_pays=False)
        self._chat.engine.send(load)

    def _is_loaded(self, files: PairFiles) -> bool:
        loaded = self._chat.loaded
        if loaded is None or self._chat.is_exact:
            return False
        draft = None if loaded.draft is None else loaded.draft.path
        return (loaded.target.path, draft) == (files.target, files.draft)

    def _calibrate(self) -> None:
        self._stage, self.what, self.fraction = "measuring", "measuring", _LOAD_SHARE
        self._chat.engine.send(Calibrate())

    def _take(self, message: object) -> None:
        match message:
            case LoadProgress(fraction=fraction):
                self.fraction = max(self.fraction, _LOAD_SHARE * fraction * 0.9)
            case Loaded():
                if self._stopped:
                    self._end(_stopped())
                else:
                    self._calibrate()
            case Progress(what, fraction):
                self.what, self.fraction = what, _LOAD_SHARE + (1 - _LOAD_SHARE) * fraction
            case Calibration():
                self._end(message)
            case Failed():
                self.displaced = self.displaced or message.died
                told = {"kind": message.kind, "message": message.message, "next_step": message.next_step}
                self._end(_stopped() if self._stopped and not message.died else from_dict(told))

    def _end(self, result: Calibration | SpecchatError) -> None:
        was_lent = self._stage != "waiting"
        self._stage, self.what, self.fraction = "", "", 0.0
        self.seconds = time.monotonic() - self._began
        self.result = result
        if was_lent:
            self._chat.take_engine_back(keeps_pair=not self.displaced)


def _stopped() -> SpecchatError:
    return SpecchatError("Measuring was stopped.", "m measures the pair anew.")
