"""The application on a scripted engine, to be run in a terminal: ``python -m tests.tui.scripted_app [crash]``."""

from __future__ import annotations

import sys

from specchat.tui.app import SpecchatApp
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.shelf import FakeShelf
from tests.tui.stories import sky_rounds

HOSTILE = "\x1b]52;c;QQ==\x07\x1b]0;evil\x07\x1b[2J\x1b[6n\x9b2J\u202eevil"


class CrashingEngine(ScriptedEngine):
    """Fails in a way that nobody expected, as soon as something is asked."""

    def drain(self):
        if len(self.commands) > 1:
            raise RuntimeError("a bug")
        return super().drain()


def main() -> int:
    rounds = [round_of(f"{HOSTILE}|a{HOSTILE}|x{HOSTILE}|r"), *sky_rounds(30)]
    kind = CrashingEngine if "crash" in sys.argv else ScriptedEngine
    app = SpecchatApp(lambda: kind([reply_events(rounds)], step=1), FakeShelf(), "small")
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
