"""Every error that specchat raises on purpose.

    SpecchatError
    ├── UsageError              wrong options or arguments (exit status 2)
    ├── ConfigError             settings file or models.toml
    ├── ModelFileError          a model file that is missing, truncated, not GGUF, incomplete, …
    ├── PairMismatchError       target and draft have different vocabularies
    ├── LoadError               llama.cpp refused to load a model
    │   └── MemoryShortError    … because there is not enough memory
    ├── DecodeError             llama.cpp refused to evaluate tokens
    ├── ContextFullError        the prompt does not fit the context
    ├── TemplateError           the chat template failed, or took too long
    ├── DownloadError
    │   ├── NetworkError        nobody answered
    │   ├── NotFoundError       no such repository, file or package
    │   ├── GatedError          the licence must be accepted first
    │   ├── DiskFullError       not enough room
    │   ├── HashMismatchError   the file is not the one that the catalogue names
    │   └── CancelledError      a person stopped it
    ├── ServerError             a model server that is not there, or is not what it should be
    ├── RecordError             a record that cannot be read or written
    └── EngineDiedError         the child process that runs the models ended

Each has a *message* (one sentence: what is wrong) and a *next step* (one sentence: what to do), and nothing a
person can cause ends in any other kind of exception. Errors cross the pipe between screen and engine, so they
can be turned into a dictionary and back.
"""

from __future__ import annotations

from typing import Any


class SpecchatError(Exception):
    """What is wrong, and what to do next.

    Args:
        message: one sentence that says what is wrong. llama.cpp's own sentence is part of it where there is one.
        next_step: one sentence that says what the person can do now.
    """

    exit_status = 1

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}\n{self.next_step}" if self.next_step else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.next_step))


class UsageError(SpecchatError):
    """The command was written wrongly."""

    exit_status = 2


class ConfigError(SpecchatError):
    """A settings file or a catalogue cannot be used."""


class ModelFileError(SpecchatError):
    """A model file is missing, truncated, not GGUF, or of a kind that cannot chat."""


class PairMismatchError(SpecchatError):
    """The draft's vocabulary is not the target's."""


class LoadError(SpecchatError):
    """llama.cpp refused to load a model."""


class MemoryShortError(LoadError):
    """There is not enough memory for a model or its context."""


class DecodeError(SpecchatError):
    """llama.cpp refused to evaluate tokens, or returned no usable logits."""


class ContextFullError(SpecchatError):
    """The prompt does not fit the context."""


class TemplateError(SpecchatError):
    """A chat template failed or took too long."""


class DownloadError(SpecchatError):
    """A file could not be fetched."""


class NetworkError(DownloadError):
    """Nobody answered."""


class NotFoundError(DownloadError):
    """There is no such repository, file or package."""


class GatedError(DownloadError):
    """The repository's licence must be accepted first."""


class DiskFullError(DownloadError):
    """There is not enough room on the disk."""


class HashMismatchError(DownloadError):
    """A file's SHA-256 is not the one that the catalogue names."""


class CancelledError(DownloadError):
    """A person stopped the download."""


class ServerError(SpecchatError):
    """A model server cannot be reached, is of another kind, or refused."""


class RecordError(SpecchatError):
    """A record cannot be read or written."""


class EngineDiedError(SpecchatError):
    """The child process that runs the models has ended."""


def _kinds(root: type[SpecchatError]) -> dict[str, type[SpecchatError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found |= _kinds(child)
    return found


def to_dict(error: SpecchatError) -> dict[str, str]:
    """The error as plain text values, for the pipe and for ``--json``."""
    return {"kind": type(error).__name__, "message": error.message, "next_step": error.next_step}


def from_dict(data: dict[str, str]) -> SpecchatError:
    """The error that `to_dict` wrote; an unknown kind becomes a plain `SpecchatError`."""
    kind = _kinds(SpecchatError).get(data.get("kind", ""), SpecchatError)
    return kind(data.get("message", ""), data.get("next_step", ""))
