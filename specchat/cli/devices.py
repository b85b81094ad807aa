"""What devices there are: llama.cpp is asked in the child process, which may crash without ending the command."""

from __future__ import annotations

from specchat.engine.interface import DeviceList, Devices, Failed
from specchat.engine.process import ProcessEngine

_ENGINE_SECONDS = 60.0


def ask_devices() -> DeviceList | Failed:
    """llama.cpp's devices, or why they are not known."""
    engine = ProcessEngine()
    try:
        engine.send(Devices())
        message = engine.receive(_ENGINE_SECONDS)
    finally:
        engine.close()
    if isinstance(message, DeviceList | Failed):
        return message
    return Failed("EngineDiedError", "llama.cpp did not answer.", "Reinstall llama-cpp-python.", died=True)
