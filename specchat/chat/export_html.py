"""A chat as one HTML file without scripts: tokens coloured by fate, with p, q, threshold and draw on hover."""

from __future__ import annotations

import html
from collections.abc import Iterable

from specchat.chat.conversation import Conversation, Message
from specchat.chat.figures import figures_line
from specchat.chat.pieces import Piece, reply_pieces
from specchat.core.events import Fate
from specchat.core.fate_style import DARK_BACKGROUND, DARK_TEXT, FATE_STYLES, LIGHT_BACKGROUND, LIGHT_TEXT
from specchat.core.safe_text import safe_pieces, safe_text
from specchat.html_page import escaped, html_page

_ATTRIBUTES = {
    "": "",
    "bold": "font-weight:bold",
    "underline": "text-decoration:underline",
    "strike": "text-decoration:line-through",
    "dim": "opacity:.7",
}
_SHOWN = (Fate.ACCEPTED, Fate.RESAMPLED, Fate.REJECTED, Fate.BONUS, Fate.PLAIN)
_QUIET = (Fate.ACCEPTED, Fate.PLAIN)

_BODY = """<input type="checkbox" id="show"><label for="show">show rejected tokens</label>
<p class="legend">{legend}</p>
<main>
{messages}
</main>"""

_STYLE = """:root {{ color-scheme: light dark; }}
body {{ max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1rem; margin: 1.5rem 0 .3rem; }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere; font-family: ui-monospace, monospace; }}
.facts, .figures, .legend {{ font-size: .85rem; }} .legend span {{ margin-right: 1.2em; }}
.user .text, .system .text {{ border-left: 3px solid; padding-left: .8rem; }}
[data-mark]::before {{ content: attr(data-mark); }}
.text .rejected {{ display: none; }} #show:checked ~ main .rejected {{ display: inline; }}
{attributes}
body {{ background: {light_background}; color: {light_text}; }}
{light}
@media (prefers-color-scheme: dark) {{
body {{ background: {dark_background}; color: {dark_text}; }}
{dark}
}}"""


def to_html(conversation: Conversation, title: str, facts: str) -> str:
    """The current branch as one page.

    Args:
        conversation: the chat.
        title: its heading.
        facts: a line about the pair and the time.
    """
    system = (
        [_message("system", "System", escaped(conversation.system, keep_newlines=True))] if conversation.system else []
    )
    legend = "".join(f'<span class="{fate.value}">{fate.value}: {FATE_STYLES[fate].meaning}</span>' for fate in _SHOWN)
    messages = "\n".join([*system, *(_turn(conversation, message) for message in conversation.messages)])
    return html_page(title, [facts], _style(), _BODY.format(legend=legend, messages=messages))


def _turn(conversation: Conversation, message: Message) -> str:
    if message.role == "user":
        return _message("user", "You", escaped(message.content, keep_newlines=True))
    figures = figures_line(conversation, message)
    return _message(
        "assistant", "Reply", _spans(reply_pieces(conversation, message)), escaped(figures, keep_newlines=True)
    )


def _message(kind: str, heading: str, text: str, figures: str = "") -> str:
    below = f'\n<p class="figures">{figures}</p>' if figures else ""
    return f'<section class="{kind}">\n<h2>{heading}</h2>\n<div class="text">{text}</div>{below}\n</section>'


def _spans(pieces: list[Piece]) -> str:
    written = iter(safe_pieces([piece.text for piece in pieces if piece.fate is not Fate.REJECTED]))
    shown = (safe_text(piece.text) if piece.fate is Fate.REJECTED else next(written) for piece in pieces)
    return "".join(_span(piece, text) for piece, text in zip(pieces, shown, strict=True))


def _span(piece: Piece, text: str) -> str:
    title = f' title="{escaped(piece.title)}"' if piece.title else ""
    mark = "" if piece.fate in _QUIET or text.strip() else "⏎" * text.count("\n") or "␣"
    marked = f' data-mark="{mark}"' if mark and text else ""
    return f'<span class="{piece.fate.value}"{title}{marked}>{html.escape(text)}</span>'


def _style() -> str:
    attributes = ((fate, _ATTRIBUTES[FATE_STYLES[fate].attribute]) for fate in _SHOWN)
    return _STYLE.format(
        attributes=_rules((fate, rule) for fate, rule in attributes if rule),
        light=_rules((fate, f"color:{FATE_STYLES[fate].light}") for fate in _SHOWN),
        dark=_rules((fate, f"color:{FATE_STYLES[fate].dark}") for fate in _SHOWN),
        light_background=LIGHT_BACKGROUND,
        light_text=LIGHT_TEXT,
        dark_background=DARK_BACKGROUND,
        dark_text=DARK_TEXT,
    )


def _rules(rules: Iterable[tuple[Fate, str]]) -> str:
    return "\n".join(f".{fate.value} {{ {rule} }}" for fate, rule in rules)
