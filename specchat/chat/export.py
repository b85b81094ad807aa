"""A chat as a file to read or to show: Markdown, HTML or SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from specchat.chat.conversation import Conversation, Message, title_of
from specchat.chat.export_html import to_html
from specchat.chat.export_svg import to_svg
from specchat.chat.figures import figures_line
from specchat.chat.markdown_text import quoted, safe_markdown, safe_markdown_line
from specchat.chat.record_lines import Header

ExportForm: TypeAlias = Literal["markdown", "html", "svg"]
SUFFIXES: dict[ExportForm, str] = {"markdown": ".md", "html": ".html", "svg": ".svg"}


def form_of(path: Path) -> ExportForm:
    """The form that a file's name asks for; Markdown where it asks for none."""
    return next((form for form, suffix in SUFFIXES.items() if path.suffix.lower() == suffix), "markdown")


def export(conversation: Conversation, header: Header | None = None, form: ExportForm = "markdown") -> str:
    """The current branch of a chat, in one of the forms; whatever a model or a person wrote cannot act in it.

    Args:
        conversation: the chat.
        header: says which pair and when.
        form: Markdown keeps the replies' own formatting; HTML and SVG show their text coloured by fate.

    Returns:
        The whole file as text, to be written as UTF-8.
    """
    first = next((message.content for message in conversation.messages), "")
    title = title_of(first) or "An empty chat"
    facts = _facts(header or Header())
    if form == "html":
        return to_html(conversation, title, facts)
    if form == "svg":
        return to_svg(conversation, title, facts)
    return _to_markdown(conversation, title, facts)


def _facts(header: Header) -> str:
    pair = header.pair.name if header.pair else ""
    return " · ".join(part for part in (pair, header.created, header.build) if part)


def _to_markdown(conversation: Conversation, title: str, facts: str) -> str:
    parts = [f"# {safe_markdown_line(title)}", safe_markdown_line(facts)]
    if conversation.system:
        parts += ["**System**", _quotation(conversation.system)]
    for message in conversation.messages:
        parts += _markdown_turn(conversation, message)
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_turn(conversation: Conversation, message: Message) -> list[str]:
    if message.role == "user":
        return ["---", _quotation(message.content)]
    figures = figures_line(conversation, message)
    return [safe_markdown(message.content), f"*{safe_markdown_line(figures)}*" if figures else ""]


def _quotation(text: str) -> str:
    return "\n".join(quoted(safe_markdown(text).split("\n")))
