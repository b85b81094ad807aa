"""``specchat doctor``: what this machine has, where files are, and whether the network answers."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from specchat import __version__
from specchat.cli.choices import World, look_around, theme_of
from specchat.cli.devices import ask_devices
from specchat.cli.terminal import say, write_text
from specchat.core.safe_text import safe_text
from specchat.engine.interface import DeviceList
from specchat.errors import SpecchatError

_HUB_SECONDS = 3.0


def doctor(options: argparse.Namespace) -> int:
    """Prints what there is. Returns 1 where llama.cpp or the settings cannot be used."""
    healthy = True
    _write([f"specchat {__version__}, Python {platform.python_version()}, {platform.platform()}", ""])
    devices = ask_devices()
    if isinstance(devices, DeviceList):
        _write(_device_lines(devices))
    else:
        healthy = False
        say(devices.message)
        say(devices.next_step)
    try:
        world = look_around()
        theme_of(world)  # only the screen would find its name to be wrong
    except SpecchatError as error:
        say(error.message)
        say(error.next_step)
        return error.exit_status
    _write(_folder_lines(world))
    offline = bool(getattr(options, "offline", world.settings.offline))
    _write(["", f"Hugging Face hub: {_hub_state(offline)}"])
    return 0 if healthy else 1


def _write(lines: list[str] | Iterator[str]) -> None:
    for line in lines:
        write_text(safe_text(line, keep_newlines=False) + "\n")


def _device_lines(found: DeviceList) -> Iterator[str]:
    yield f"Build: {found.build}"
    yield f"       {found.system_info}"
    yield "Devices"
    for device in found.devices:
        memory = f"{_gibibytes(device.free)} of {_gibibytes(device.total)} free"
        yield f"  {device.name:<10} {device.kind:<6} {memory:<28} {device.description}"
    yield from (f"  {note}" for note in found.notes)


def _folder_lines(world: World) -> Iterator[str]:
    from specchat.pairs.fetching import size_text
    from specchat.pairs.store import on_disk

    paths = world.paths
    inventory = on_disk(world.catalog, paths.models)
    yield ""
    yield "Files"
    free = size_text(shutil.disk_usage(_nearest_existing(paths.models)).free)
    yield f"  models     {paths.models} ({size_text(inventory.size)} in all, {free} free)"
    yield f"  hub cache  {_hub_cache()}"
    yield f"  chats      {paths.records}"
    yield f"  cache      {paths.cache}"
    for name, path in (("settings", paths.settings_file), ("catalogue", paths.models_file)):
        yield f"  {name:<10} {path}{'' if path.exists() else ' (not there: defaults hold)'}"
    yield f"  memory     {paths.state_file}"


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _hub_cache() -> str:
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)


def _hub_state(offline: bool) -> str:
    from specchat.pairs.fetching import without_secrets
    from specchat.pairs.sources import is_offline

    if is_offline(offline):
        return "not asked (offline)"
    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    if not address.startswith(("https://", "http://")):
        return f"{without_secrets(address)} is not an address (HF_ENDPOINT)"
    request = urllib.request.Request(address, method="HEAD")  # noqa: S310 - the scheme was checked
    try:
        with urllib.request.urlopen(request, timeout=_HUB_SECONDS):  # noqa: S310 - the scheme was checked
            return f"{without_secrets(address)} answers"
    except urllib.error.HTTPError as answer:
        return f"{without_secrets(address)} answers (with status {answer.code})"
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", problem)
        return f"{without_secrets(address)} cannot be reached ({without_secrets(str(reason))}); what is on disk works"


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
