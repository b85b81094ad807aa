"""Exports show what was said, coloured by fate, and nothing in them acts, whatever the text."""

import html.parser
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from specchat.chat.conversation import Conversation
from specchat.chat.export import export
from specchat.chat.figures import figures_line, reply_figures
from specchat.chat.pieces import reply_pieces
from specchat.chat.record import Header, ModelFile, PairFiles
from specchat.core.events import Fate
from specchat.core.fate_style import FATE_STYLES
from specchat.core.safe_text import safe_text
from specchat.core.settings import ReplySettings
from tests.chat.replies import committed, drafted, finished, plain_reply, round_of, speculative_reply
from tests.chat.test_markdown_text import PARSERS, markup

HEADER = Header(PairFiles("big ⟵ small", ModelFile("Big", "big.gguf")), created="2026-11-30T05:20:11+00:00", build="b1")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "]]><svg onload=x>",
    '" onmouseover="alert(1)',
    "'><img src=x>",
    "</style></title><b>",
    "<!-- --><!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
    "&lt;b&gt; &amp; {title} {0} %s",
    "\x00\x08\x1b[2J\x9b\ufffe\uffff\ud800\udc00",
    "![x](http://evil)",
    "\u202eabc\u2066",
    "\r\n\r\t\x0b\x0c\u2028\u2029\x85",
    "```\n<i>\n",
    "😀👩‍👧 歪 e\u0301",
]


def chat(question="why?", events=None, system=""):
    conversation = Conversation(system)
    conversation.add_user(question)
    events = speculative_reply() if events is None else events
    settings = ReplySettings(num_draft_tokens=3, rule="token")
    conversation.add_reply(conversation.begin_reply(), events, settings, "big ⟵ small")
    return conversation


class Page(html.parser.HTMLParser):
    """Tags, attributes and the text of each element with a class."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "input"):
            self.open.append(dict(attributes).get("class", tag))

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        for name in set(self.open):
            self.texts[name] = self.texts.get(name, "") + data

    def handle_comment(self, data):
        raise AssertionError(data)


PAGE_TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "input", "label", "span", "main"}


# --- pieces ---------------------------------------------------------------------------------------------------------


def pieces(conversation):
    return reply_pieces(conversation, conversation.head)


def test_a_reply_in_pieces():
    assert [(piece.text, piece.fate) for piece in pieces(chat())] == [
        ("The", Fate.ACCEPTED),
        (" colors", Fate.REJECTED),
        (" waves", Fate.RESAMPLED),
        (" go", Fate.ACCEPTED),
        (" on.", Fate.BONUS),
    ]


def test_each_piece_says_what_it_was_judged_by():
    titles = [piece.title for piece in pieces(chat())]
    assert titles[0] == "accepted, round 1, position 1 · p 0.5 · q 0.62 · threshold 0.29 · draw 0.71"
    assert titles[1] == "rejected, round 1, position 2 · p 0.18 · q 0.62 · threshold 0.29 · draw 0.71"
    assert titles[2] == "resampled, round 1, position 2 · p 0.5 · instead of “ colors”"
    assert titles[4] == "bonus, round 2, position 2 · p 0.5"


def test_a_character_made_of_several_tokens_shows_the_fate_that_matters_most():
    llama = "🦙".encode()
    tokens = [committed("", 1, Fate.RESAMPLED, llama[:2]), committed("🦙", 2, Fate.ACCEPTED, llama[2:])]
    conversation = chat(events=[round_of(*tokens), finished("length")])
    assert [(piece.text, piece.fate) for piece in pieces(conversation)] == [("🦙", Fate.RESAMPLED)]


def test_text_that_came_at_the_end():
    tokens = [committed("so", 1), committed("", 2, Fate.BONUS, b"\nUs")]
    conversation = chat(events=[round_of(*tokens), finished("length", "\nUs")])
    assert [(piece.text, piece.fate) for piece in pieces(conversation)] == [("so", Fate.PLAIN), ("\nUs", Fate.BONUS)]


def test_a_continued_reply_has_the_pieces_of_both_parts():
    llama = "🦙".encode()
    cut = [committed("a", 1), committed("", 2, data=llama[:2])]
    conversation = chat(events=[round_of(*cut), finished("interrupted", "\ufffd")])
    conversation.add_reply(conversation.begin_reply(continue_last=True), plain_reply("🦙", "."))
    assert conversation.head.content == "a🦙."
    assert [piece.text for piece in pieces(conversation)] == ["a", "🦙", "."]


def test_an_edited_reply_is_one_piece():
    conversation = chat()
    conversation.edit(conversation.head.id, "my own words")
    assert [(piece.text, piece.fate) for piece in pieces(conversation)] == [("my own words", Fate.PLAIN)]


@given(st.lists(st.text(max_size=3), min_size=1, max_size=8), st.sampled_from(["end", "length", "interrupted"]))
def test_pieces_give_the_content(texts, reason):
    conversation = chat(events=plain_reply(*texts, reason=reason))
    assert "".join(piece.text for piece in pieces(conversation)) == conversation.head.content


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_figures_of_a_reply():
    assert reply_figures(speculative_reply(), ReplySettings(num_draft_tokens=3, rule="token"), "a pair") == [
        "5 tokens",
        "41.3 tok/s",
        "1.38× of plain 29.9",
        "first token 0.2 s",
        "α 0.75",
        "2.50 tokens a round",
        "γ 3",
        "draft model",
        "token rule",
        "a pair",
    ]
    assert reply_figures(plain_reply("a", reason="length"))[0] == "cut at the length limit"
    assert "decoded plainly" in reply_figures(plain_reply("a"))
    assert "γ auto (3)" in reply_figures(speculative_reply(), ReplySettings(num_draft_tokens=None))
    so = [replace(drafted(" so", fate), drafter="ngram") for fate in (Fate.ACCEPTED, Fate.REJECTED)]
    both = reply_figures([round_of(drafts=so), *speculative_reply()], ReplySettings(drafter="auto"))
    assert "draft auto: 1 copied, 2 by the model" in both, "tokens that were kept, by who proposed them"
    assert reply_figures([]) == []


def test_the_figures_of_a_continued_reply_are_those_of_all_its_parts():
    conversation = Conversation()
    conversation.add_user("why?")
    first = plain_reply("a", "b", reason="length")
    conversation.add_reply(conversation.begin_reply(), first)
    second = [*plain_reply(" c")[:-1], replace(finished(tokens=2, rounds=2), prefill_seconds=9.0)]
    conversation.add_reply(conversation.begin_reply(continue_last=True), second)
    tokens, seconds = 2 + 2, 2 * 1.5
    assert figures_line(conversation, conversation.head).startswith(f"{tokens} tokens · {tokens / seconds:.1f} tok/s")
    assert f"{tokens / seconds / 29.9:.2f}× of plain 29.9" in figures_line(conversation, conversation.head)
    assert "first token 0.2 s" in figures_line(conversation, conversation.head)


def test_a_part_that_the_engines_end_cut_is_left_out_of_the_figures():
    conversation = Conversation()
    conversation.add_user("why?")
    conversation.add_reply(conversation.begin_reply(), plain_reply("a", "b")[:-1])
    assert figures_line(conversation, conversation.head) == ""
    conversation.add_reply(conversation.begin_reply(continue_last=True), plain_reply(" c"))
    assert figures_line(conversation, conversation.head).startswith("2 tokens · 41.3 tok/s")


# --- Markdown -------------------------------------------------------------------------------------------------------


def test_markdown():
    assert export(chat("why?\nplease", system="Be brief."), HEADER) == (
        "# why? please\n\nbig ⟵ small · 2026-11-30T05:20:11+00:00 · b1\n\n**System**\n\n> Be brief.\n\n"
        "---\n\n> why?\n> please\n\nThe waves go on.\n\n"
        "*5 tokens · 41.3 tok/s · 1.38× of plain 29.9 · first token 0.2 s · α 0.75 · "
        "2.50 tokens a round · γ 3 · draft model · token rule · big ⟵ small*\n"
    )


def test_an_empty_chat():
    for form in ("markdown", "html", "svg"):
        assert "An empty chat" in export(Conversation(), form=form)


def test_a_code_fence_that_was_cut_does_not_swallow_the_rest():
    conversation = chat(events=plain_reply("```py\nx", reason="length"))
    conversation.add_user("and?")
    parsed = MarkdownIt().parse(export(conversation))
    assert [token.content for token in parsed if token.type == "fence"] == ["x\n"]


# --- HTML -----------------------------------------------------------------------------------------------------------


def test_html_shows_each_token_with_its_fate():
    page = export(chat("why?"), HEADER, "html")
    assert '<span class="rejected" title="rejected, round 1' in page
    assert page.count('class="accepted"') == 3  # two tokens and the legend
    for fate in (Fate.ACCEPTED, Fate.RESAMPLED, Fate.REJECTED, Fate.BONUS):
        assert f".{fate.value} {{ color:{FATE_STYLES[fate].light} }}" in page
        assert f".{fate.value} {{ color:{FATE_STYLES[fate].dark} }}" in page
        assert FATE_STYLES[fate].meaning in page
    assert "prefers-color-scheme: dark" in page
    assert "draw 0.71" in page
    assert "1.38× of plain" in page


def test_html_marks_white_space_whose_fate_would_not_be_seen():
    tokens = [committed("a", 1), committed("\n\n", 2, Fate.RESAMPLED), committed(" ", 3, Fate.BONUS), committed(" ", 4)]
    page = export(chat(events=[round_of(*tokens), finished()]), form="html")
    assert 'data-mark="⏎⏎">\n\n</span>' in page
    assert page.count('data-mark="␣"> </span>') == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_the_html_acts(text):
    conversation = chat(text, [*plain_reply(text)], system=text)
    page = Page(export(conversation, HEADER, "html"))
    assert set(page.tags) <= PAGE_TAGS | {"section", "div"}
    assert {name for name, _ in page.attributes} <= {
        *("lang", "charset", "name", "content", "http-equiv", "class", "type", "id", "for", "title", "data-mark")
    }
    assert page.texts["text"].count(safe_text(text)) == 3


def test_what_is_refused_is_escaped_too():
    tokens = [committed("ok", fate=Fate.RESAMPLED)]
    events = [round_of(*tokens, drafts=[drafted("<b>\x1b", Fate.REJECTED)]), finished("length")]
    page = Page(export(chat(events=events), form="html"))
    assert "b" not in page.tags
    assert "<b>␛" in page.texts["rejected"]


# --- SVG ------------------------------------------------------------------------------------------------------------


def rows(svg):
    root = ET.fromstring(svg)
    return ["".join(row.itertext()) for row in root.iter(f"{SVG}text")]


def test_svg_shows_the_text_in_its_colours():
    svg = export(chat("why?"), HEADER, "svg")
    root = ET.fromstring(svg)
    spans = [(span.get("class"), span.text) for span in root.iter(f"{SVG}tspan")]
    assert spans[0] == ("title", "why?")
    assert ("user", "> why?") in spans
    assert [span for span in spans if span[0] in ("accepted", "resampled", "bonus")][-4:] == [
        ("accepted", "The"),
        ("resampled", " waves"),
        ("accepted", " go"),
        ("bonus", " on."),
    ]
    assert FATE_STYLES[Fate.BONUS].dark in svg
    assert " colors" not in svg


def test_svg_breaks_lines_at_spaces():
    svg = export(chat(events=plain_reply("word " * 40 + "x" * 100)), form="svg")
    lines = [row for row in rows(svg) if row.startswith(("word", "x"))]
    assert [len(line) for line in lines] == [85, 85, 30, 88, 12]
    assert "".join(lines) == "word " * 40 + "x" * 100


def test_svg_gives_wide_characters_two_columns():
    tokens = [committed("歪e\u0301", 1), committed("x", 2, Fate.BONUS)]
    root = ET.fromstring(export(chat(events=[round_of(*tokens), finished()]), form="svg"))
    spans = {span.text: span for span in root.iter(f"{SVG}tspan")}
    assert spans["歪e\u0301"].get("textLength") == f"{3 * 8.4:.1f}"
    assert spans["x"].get("x") == f"{16 + 3 * 8.4:.1f}"


@pytest.mark.parametrize("text", HOSTILE)
def test_the_svg_is_sound_and_nothing_in_it_acts(text):
    svg = export(chat(text, plain_reply(text), system=text), HEADER, "svg")
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags <= {"svg", "style", "rect", "text", "tspan"}
    shown = "".join(safe_text(text).split())
    assert "".join("".join(rows(svg)).split()).count(shown) >= 3


# --- all forms ------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.text(max_size=6), st.sampled_from(HOSTILE)), min_size=1, max_size=5))
def test_any_text_can_be_exported(texts):
    conversation = chat(texts[0], plain_reply(*texts), system=texts[-1])
    for form in ("markdown", "html", "svg"):
        text = export(conversation, HEADER, form)
        text.encode()
        assert safe_text(text) == text
    page = Page(export(conversation, HEADER, "html"))
    assert set(page.tags) <= PAGE_TAGS | {"section", "div"}
    ET.fromstring(export(conversation, HEADER, "svg"))
    parsed = MarkdownIt("commonmark").parse(export(conversation, HEADER, "markdown"))
    found = {child.type for token in parsed for child in [token, *(token.children or [])]}
    assert not found & {"html_block", "html_inline", "image"}


@given(st.lists(markup, min_size=2, max_size=5))
def test_one_message_does_not_change_how_the_next_is_read(texts):
    conversation = Conversation(texts[0])
    for text in texts:
        conversation.add_user(text)
        conversation.add_reply(conversation.begin_reply(), plain_reply(text))
    for parser in PARSERS:
        parsed = parser.parse(export(conversation, HEADER))
        found = {child.type for token in parsed for child in [token, *(token.children or [])]}
        assert not found & {"html_block", "html_inline", "image"}
        assert sum(token.type == "hr" for token in parsed) >= len(texts)
