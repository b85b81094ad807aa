"""``specchat replay``: plays a recorded chat on the terminal's screen."""

from __future__ import annotations

import argparse
import sys

from specchat.chat.conversation import title_of
from specchat.chat.record_reader import read_record
from specchat.cli.choices import look_around, theme_of
from specchat.cli.records import last_record, record_path
from specchat.cli.terminal import is_terminal, say
from specchat.errors import UsageError


def replay(options: argparse.Namespace) -> int:
    """Plays the chat. Returns the exit status when the screen is closed."""
    record = read_record(record_path(options.record) if hasattr(options, "record") else last_record())
    messages = record.conversation.messages
    if not messages:
        raise UsageError(f"There is nothing to play in {record.path}.", "Choose the record of another chat.")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("A replay needs a terminal.", "Without one: specchat export shows the chat as text.")

    from specchat.tui.replay_app import ReplayApp

    theme = theme_of(look_around())
    app = ReplayApp(record.conversation, title_of(messages[0].content), theme)
    app.run()
    for notice in record.notices:
        say(notice)
    return app.return_code or 0
