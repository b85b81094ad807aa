"""Writes the chat that is open to a file."""

from __future__ import annotations

from pathlib import Path

from specchat.errors import SpecchatError, UsageError
from specchat.files import expanded
from specchat.tui.chat_record import RecordedConversation


def export_chat(kept: RecordedConversation, name: str = "") -> Path:
    """Writes the current branch in the form that the file's name asks for; returns the file.

    Args:
        kept: the chat.
        name: of the file. Without one it is named after the chat's record, and put into the current folder.

    Raises:
        UsageError: there is a file of that name, which is left as it is; or the name begins with the home of nobody.
        SpecchatError: it cannot be written.
        ValueError: nothing has been said yet.
    """
    from specchat.chat.export import export, form_of

    if not kept.conversation.messages:
        raise ValueError("nothing has been said yet")
    path = expanded(name) if name else None
    try:
        path = (path or _free_name(kept)).absolute()
        text = export(kept.conversation, kept.header, form_of(path))
        with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"There is a file {path} already.", "Write /export with another name.") from None
    except OSError as problem:
        reason = problem.strerror or problem
        what = path or "The chat"  # the current folder may be gone, and a name in it leads nowhere
        raise SpecchatError(f"{what} cannot be written: {reason}.", "Write /export with another place.") from None
    return path


def _free_name(kept: RecordedConversation) -> Path:
    stem = "chat" if kept.path is None else kept.path.stem
    path, number = Path(f"{stem}.md"), 2
    while path.exists():
        path, number = Path(f"{stem}_{number}.md"), number + 1
    return path
