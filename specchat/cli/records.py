"""Which record a person means."""

from __future__ import annotations

from pathlib import Path

from specchat.chat.record_reader import list_records
from specchat.config import find_paths
from specchat.errors import UsageError
from specchat.files import expanded


def record_path(name: str) -> Path:
    """The file as it was named, or a record of that name in the folder of records."""
    path = expanded(name)
    own = find_paths().records / path.name
    return own if not path.exists() and path.name == name and own.exists() else path


def last_record() -> Path:
    """The record of the chat that was used last.

    Raises:
        UsageError: there is none.
    """
    found = list_records(find_paths().records, 1)
    if not found:
        raise UsageError("No chat has been recorded yet.", "Have one first: specchat")
    return found[0].path
