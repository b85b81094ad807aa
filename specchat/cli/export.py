"""``specchat export``: a recorded chat as Markdown, HTML or SVG."""

from __future__ import annotations

import argparse
import sys

from specchat.chat.export import export as to_text
from specchat.chat.export import form_of
from specchat.chat.record_reader import read_record
from specchat.cli.records import record_path
from specchat.cli.terminal import is_terminal, say, write_text
from specchat.core.safe_text import safe_text
from specchat.errors import SpecchatError
from specchat.files import expanded


def export(options: argparse.Namespace) -> int:
    """Writes the chat to a file, or to standard output. Returns the exit status."""
    record = read_record(record_path(options.record))
    for notice in record.notices:
        say(notice)
    output = expanded(options.output) if hasattr(options, "output") else None
    form = getattr(options, "format", None) or ("markdown" if output is None else form_of(output))
    text = to_text(record.conversation, record.header, form)
    if output is None:
        write_text(safe_text(text) if is_terminal(sys.stdout) else text)
        return 0
    try:
        output.write_text(text, "utf-8", "replace", newline="\n")
    except OSError as problem:
        raise SpecchatError(
            f"{output} cannot be written: {problem.strerror or problem}.", "Choose another place with --output."
        ) from None
    return 0
