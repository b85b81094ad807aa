"""Keys that move the focus, and the keys after them.

Textual hands a key to what has the focus when it arrives, and carries out bindings later. Where keys come faster than
that, as they do on a busy machine, those after a Tab or a / would go to what was left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import actions, events
from textual.widget import Widget


def moves_on(widget: Widget, event: events.Key) -> bool:
    """Whether a key was none of the widget's business any longer, as the focus has moved on: then it was passed on."""
    focused = widget.screen.focused
    if focused is None or focused is widget:
        return False
    take(event)
    focused._forward_event(events.Key(event.key, event.character))  # noqa: SLF001 - as Textual hands keys over itself
    return True


def take(event: events.Key) -> None:
    """Nobody else handles that key."""
    event.stop()
    event.prevent_default()


def own_action(widget: Widget, key: str) -> Callable[[], object] | None:
    """What a widget's own binding does for a key; None where it has none, or one that another widget carries out."""
    for binding in widget._bindings.key_to_bindings.get(key, ()):  # noqa: SLF001 - there is no public way to them
        namespace, name, parameters = actions.parse(binding.action)
        method = None if namespace else getattr(widget, f"action_{name}", None)
        if method is not None:
            return partial(method, *parameters)
    return None
