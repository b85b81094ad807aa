"""Keys that move the focus, and the keys after them.

Textual hands a key to what has the focus when it arrives, and carries out bindings later. Where keys come faster than
that, as they do on a busy machine, those after a Tab or a / would go to what was left.
"""

from __future__ import annotations

from textual import events
from textual.widget import Widget


def moves_on(widget: Widget, event: events.Key) -> bool:
    """Whether a key was none of the widget's business any longer, as the focus has moved on: then it was passed on."""
    focused = widget.screen.focused
    if focused is None or focused is widget:
        return False
    take(event)
    focused.post_message(events.Key(event.key, event.character))
    return True


def take(event: events.Key) -> None:
    """Nobody else handles that key."""
    event.stop()
    event.prevent_default()
