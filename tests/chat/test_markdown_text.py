"""Markdown stays Markdown, but brings no HTML and no pictures along: checked with a CommonMark parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from specchat.chat.markdown_text import safe_markdown

PARSERS = [MarkdownIt("commonmark", {"html": True}), MarkdownIt("gfm-like", {"html": True, "linkify": False})]


def kinds(tokens):
    for token in tokens:
        yield token.type
        yield from kinds(token.children or [])


def code(text):
    return [token.content for token in PARSERS[0].parse(text) if token.type == "fence"]


@pytest.mark.parametrize(
    "text",
    [
        "plain, a < b, x <- y, <3, **bold**, [link](http://x)",
        "`List<String>` and ``a ` <b>``",
        "```html\n<div>&amp;</div>\n```\nafter",
        "~~~\n<b>\n```\n~~~",
        "1. do\n   ```c++\n   vector<int> x;\n   ```\n2. then\n\n```\n<i>\n```",
        "| `a<b>` | c |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_what_is_harmless_stays(text):
    assert safe_markdown(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("use the <div> element", "use the &lt;div> element"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("\\<script>", "\\&lt;script>"),
        ("![x](http://evil?q=secret)", "&#33;[x](http://evil?q=secret)"),
        ("<!-- hidden -->", "&lt;!-- hidden -->"),
        ("```\n<b>", "```\n<b>\n```"),
        ("  ~~~~\n  <b>", "  ~~~~\n  <b>\n  ~~~~"),
        ("a\x1b[2J", "a␛[2J"),
        ("a ` b\n`<script>`", "a ` b\n`&lt;script>`"),
        ("\\`<script>`", "\\`&lt;script>`"),
        ("- ~~~\n  ```\n  x\n  ~~~\n  <script>", "> - ~~~\n>   ```\n>   x\n>   ~~~\n>   &lt;script>"),
        ("| a | b |\n|---|---|\n| ` | <b> ` |", "| a | b |\n|---|---|\n| ` | &lt;b> ` |"),
        ("```a|b\n<b>", "> ```a|b\n> &lt;b>"),
    ],
)
def test_what_a_viewer_would_run_or_fetch_becomes_text(text, safe):
    assert safe_markdown(text) == safe


def test_code_is_left_as_it_is():
    text = "Look:\n\n```rust\nfn f<T>() {}\n```\n\n1. a\n   ```\n   <x>\n   ```\n"
    assert code(safe_markdown(text)) == code(text) == ["fn f<T>() {}\n", "<x>\n"]


FRAGMENTS = [
    *("```", "~~~", "````", "`", "``", "\\", "<script>", "<b", ">", "![a](b)", "![", "]", "(x)", "<!--", "-->", "<?"),
    *("\n", "\n\n", " ", "  ", "   ", "    ", "\t", "- ", "* ", "1. ", "> ", "10) ", "# ", "|", "|---|---|\n", "a"),
    *("html", "</div>", "<http://x>", "&lt;", "***", "---\n", "===\n", "[a]: b\n", "[a]: <b> '\n", "<![CDATA["),
]
markup = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@settings(max_examples=500)
@given(markup)
def test_no_html_and_no_picture_in_any_viewer(text):
    safe = safe_markdown(text)
    for parser in PARSERS:
        found = set(kinds(parser.parse(safe)))
        assert not found & {"html_block", "html_inline", "image"}
