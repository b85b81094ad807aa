"""A message as formatted text. Textual's Markdown is slow to import: only who reads pays for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from textual.widgets import Markdown

from specchat.chat.conversation import Message
from specchat.chat.markdown_text import quoted
from specchat.core.safe_text import safe_text


class Formatted(Markdown):
    """One message, given as Markdown. A widget of its own: a code fence that it leaves open ends with it."""

    def __init__(self, markdown: str) -> None:
        super().__init__(markdown, parser_factory=_parser, open_links=False)
        self.markdown = markdown


def markdown_of(message: Message) -> str:
    """A message as Markdown, a question as a quotation; HTML in it is left as it is, for `Formatted` shows it."""
    text = safe_text(message.content)
    return "\n".join(quoted(text.split("\n"))) if message.role == "user" else text


def _parser() -> MarkdownIt:
    """A parser for which HTML, pictures and definitions of links are text: Textual draws none of them."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference", "image"])
    parser.core.ruler.push("visible", _make_visible)
    return parser


def _make_visible(state: StateCore) -> None:
    for token in state.tokens:
        token.content = safe_text(token.content)
        if token.children:
            token.children = list(_visible(token.children))


def _visible(tokens: Iterable[Token]) -> Iterator[Token]:
    """What the parser decoded, which `safe_text` has not seen yet; and behind a link where it leads: none is opened."""
    address = ""
    for token in tokens:
        token.content = safe_text(token.content)
        yield token
        if token.type == "link_open" and token.info != "auto":
            address = safe_text(str(token.attrs.get("href", "")), keep_newlines=False)
        elif token.type == "link_close" and address:
            yield Token("text", "", 0, content=f" ({address})")
            address = ""
