"""What the hub's library raises, and what to tell a person about it."""

from __future__ import annotations

import os
from pathlib import Path

from specchat.errors import DiskFullError, DownloadError, GatedError, NetworkError, NotFoundError
from specchat.pairs.fetching import disk_error, without_secrets

_CHECK_NETWORK = "Check the connection (and HF_ENDPOINT, HTTPS_PROXY), or run it again later."
_LOG_IN = "run `hf auth login` (or set HF_TOKEN)"


def unreached(timeout: float) -> NetworkError:
    """The hub did not answer in time."""
    return NetworkError(f"The Hugging Face hub did not answer within {timeout:.0f} seconds.", _CHECK_NETWORK)


def translate(error: Exception, repository: str, file: str) -> DownloadError:
    """Our error for one of the library's.

    Args:
        error: what was raised.
        repository: the repository that was asked.
        file: the file that was asked for.
    """
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):  # before its parent, RepositoryNotFoundError
        return _gated(_status(error), repository)
    if isinstance(error, errors.RepositoryNotFoundError):
        message = f"The hub has no repository {repository}, or it is private."
        return NotFoundError(message, f"Check its name in models.toml; if it is private, {_LOG_IN}.")
    if isinstance(error, errors.RevisionNotFoundError):
        return NotFoundError(f"{repository} has no such revision.", "Check `revision` in models.toml.")
    if isinstance(error, errors.LocalEntryNotFoundError):  # before its parent; its cause says why
        cause = error.__cause__
        return translate(cause, repository, file) if isinstance(cause, Exception) else _no_answer(error)
    if isinstance(error, errors.EntryNotFoundError):
        return NotFoundError(f"{repository} has no file {file}.", "Check `file` in models.toml.")
    if isinstance(error, errors.DisabledRepoError):
        return NotFoundError(f"{repository} has been disabled on the hub.", "Choose another model.")
    if isinstance(error, errors.HfHubHTTPError):
        return _by_status(_status(error), repository, file)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return NetworkError("The hub's library is offline (HF_HUB_OFFLINE).", "Unset HF_HUB_OFFLINE to fetch.")
    if isinstance(error, errors.FileMetadataError):
        return NetworkError("What answered is not a Hugging Face hub.", "Check HF_ENDPOINT and the proxy.")
    if _is_network(error):
        return _no_answer(error)
    if isinstance(error, OSError):
        return disk_error(error, _cache_folder()) if error.errno is not None else _broken(error)
    if "No space left" in str(error):  # from the library's native part, which has no error numbers
        return DiskFullError(f"The disk of {_cache_folder()} is full.", "Free some room and run it again.")
    return DownloadError(f"Fetching from {repository} failed: {_one_line(error)}", _CHECK_NETWORK)


def _gated(status: int | None, repository: str) -> GatedError:
    address = f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co').rstrip('/')}/{repository}"
    if status == 403:  # the hub knows who asks
        message = f"Your account has not been given access to {repository}."
        return GatedError(message, f"Accept its licence at {address} and run it again.")
    message = f"{repository} can be fetched only by people who have accepted its licence."
    return GatedError(message, f"Accept it at {address}, {_LOG_IN}, and run it again.")


def _by_status(status: int | None, repository: str, file: str) -> DownloadError:
    if status == 401:
        return GatedError("The hub refused your token.", f"Make a new one and {_LOG_IN}, or unset HF_TOKEN.")
    if status == 403:
        return GatedError(f"The hub refuses access to {repository}.", f"Use a token that may read it: {_LOG_IN}.")
    if status == 404:
        return NotFoundError(f"{repository} has no file {file}.", "Check `hub` and `file` in models.toml.")
    if status == 429:
        return NetworkError("The hub says that you have asked too often.", f"Wait some minutes, or {_LOG_IN}.")
    return NetworkError(f"The hub answered with error {status}.", "Run it again later.")


def _no_answer(error: Exception) -> NetworkError:
    reason = _one_line(error)
    return NetworkError(f"The Hugging Face hub cannot be reached: {reason}", _CHECK_NETWORK)


def _broken(error: OSError) -> NetworkError:
    return NetworkError(f"The connection to the hub broke: {_one_line(error)}", "Run it again.")


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def _is_network(error: Exception) -> bool:
    """Whether it comes from the library's HTTP client, whose module has had several names."""
    return type(error).__module__.partition(".")[0].startswith(("httpx", "httpcore", "requests")) or isinstance(
        error, ConnectionError | TimeoutError
    )


def _one_line(error: Exception) -> str:
    lines = without_secrets(str(error)).strip().splitlines()
    return f"{lines[0][:200]}." if lines else f"{type(error).__name__}."


def _cache_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)
