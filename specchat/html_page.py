"""A page of HTML that stands alone: no script, and nothing that a browser would have to fetch."""

from __future__ import annotations

import html
from collections.abc import Iterable

from specchat.core.safe_text import safe_text

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="facts">{facts}</p>
{body}
</body>
</html>
"""


def html_page(title: str, facts: Iterable[str], style: str, body: str) -> str:
    """The page.

    Args:
        title: its heading, any text.
        facts: lines below it, any text.
        style: CSS.
        body: the rest, as HTML: texts in it must have gone through `escaped`.
    """
    below = "<br>".join(escaped(line) for line in facts)
    return _PAGE.format(title=escaped(title), facts=below, style=style, body=body)


def escaped(text: str, *, keep_newlines: bool = False) -> str:
    """Any text, to stand in HTML: no markup, no control characters; on one line unless ``keep_newlines``."""
    return html.escape(safe_text(text, keep_newlines=keep_newlines))
