"""Whether a pair fits the memory that is free, found out before it is loaded. It warns and never forbids."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from specchat.engine.interface import DeviceList, Load, Loaded
from specchat.errors import MemoryShortError
from specchat.tui.live_chat import LiveChat

if TYPE_CHECKING:
    from specchat.pairs.memory import Fit, Machine


class MemoryCheck:
    """Asks the engine for its devices, and reads the files' headers in a thread; the screen looks at it every frame.

    Args:
        chat: whose engine is about to load.
        load: the pair that it is about to load.

    Attributes:
        load: the same.
    """

    def __init__(self, chat: LiveChat, load: Load) -> None:
        self.load = load
        self._chat = chat
        self._known_before = chat.devices
        self._fit: Fit | None = None
        self._is_over = False
        self._is_told = False
        self._thread: threading.Thread | None = None
        chat.ask_for_devices()

    def look(self) -> bool:
        """Goes on with it; whether it is known by now."""
        devices = self._chat.devices
        if self._thread is None and devices is not None and devices is not self._known_before:
            self._thread = threading.Thread(target=self._run, args=(devices, self._chat.loaded), daemon=True)
            self._thread.start()
        return self._is_over

    def take_warning(self) -> MemoryShortError | None:
        """What a person should know before loading begins, once; None where it fits."""
        if self._is_told or self._fit is None or self._fit.verdict != "does not fit":
            return None
        self._is_told = True
        advice = " ".join((*self._fit.advice, "Esc stops loading."))
        return MemoryShortError(f"{self._chat.pair} does not fit the memory that is free.", advice)

    def _run(self, devices: DeviceList, loaded: Loaded | None) -> None:
        with contextlib.suppress(Exception):  # whatever is wrong with the files, loading them says it
            self._fit = _fit(self.load, devices, loaded)
        self._is_over = True


def _fit(load: Load, devices: DeviceList, loaded: Loaded | None) -> Fit:
    from specchat.pairs.file_fit import fit_of_files  # imports what reads files and reckons, seldom needed so early
    from specchat.pairs.memory import Machine

    system_info = "" if load.exact else devices.system_info  # exact mode repacks no weights
    machine = Machine(devices.devices, system_info, load.target_device, load.draft_device)
    if loaded is not None:
        machine = _without(loaded, machine)
    return fit_of_files(load.target, load.draft, machine, n_ctx=load.n_ctx, gpu_layers=load.gpu_layers)


def _without(loaded: Loaded, machine: Machine) -> Machine:
    """The machine once the pair is gone that is loaded now."""
    from specchat.pairs.file_fit import emptied, fit_of_files, once_unloaded

    draft = None if loaded.draft is None else loaded.draft.path
    layers = loaded.target.gpu_layers
    held = fit_of_files(loaded.target.path, draft, emptied(machine), n_ctx=loaded.n_ctx, gpu_layers=layers)
    return once_unloaded(machine, held)
