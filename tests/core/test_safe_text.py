"""Nothing that a terminal obeys, and nothing that hides, gets through; what belongs to writing does."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.core.safe_text import safe_json, safe_pieces, safe_text

VISIBLE_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
IGNORABLE = [  # Unicode's Default_Ignorable_Code_Point, where it is not a format character anyway
    *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xFFF0, 0xFFF9),
    *range(0xE0000, 0xE1000),
]
HOSTILE = "\x1b\x9b\x07\x08\x7f\u202e\u2066\u200b\u200d\u200c\ufe0f\U000e0041\ud800\r\n\t\u2028"
any_text = st.text(st.one_of(st.characters(exclude_categories=()), st.sampled_from(HOSTILE + "👩🏽1é歪م a⟨")))


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII, with [/INST] and [bold]markup[/]",
        "line one\nline two\tafter a tab",
        "日本語, 歪, Ελληνικά, e\u0301, ไทย",
        "👩‍👩‍👧‍👦 🦙 ❤️ ☺︎ 🏳️‍🌈 🧑🏽‍💻 1️⃣ 🇩🇪",
        "می‌خواهم क्‍ष",
        "葛\U000e0100城",
        "",
    ],
)
def test_what_belongs_to_writing_is_left_alone(text):
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;ZXZpbA==\x07", "␛]52;c;ZXZpbA==␇"),
        ("\x1b]0;title\x1b\\", "␛]0;title␛\\"),
        ("\x9b2J", "⟨U+009B⟩2J"),
        ("a\x00b\x7f", "a␀b␡"),
        ("user\u202etxt.exe", "user⟨U+202E⟩txt.exe"),
        ("a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("a\ufe0f\u200d👩", "a⟨U+FE0F⟩⟨U+200D⟩👩"),
        ("👩\u200d\u200d👩", "👩⟨U+200D⟩⟨U+200D⟩👩"),
        ("x\U000e0041\U000e0100", "x⟨U+E0041⟩⟨U+E0100⟩"),
        ("\ud83d alone \udc00", "⟨U+D83D⟩ alone ⟨U+DC00⟩"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("\ufffd stays, \uffff does not", "\ufffd stays, ⟨U+FFFF⟩ does not"),
    ],
)
def test_what_a_terminal_would_obey_becomes_visible(text, shown):
    assert safe_text(text) == shown


def test_one_line():
    assert safe_text("a\r\nb\nc\td", keep_newlines=False) == "a⏎b⏎c\td"
    assert safe_text("a\nb\tc", keep_tabs=False) == "a\nb␉c"
    assert safe_text("\t\n", keep_newlines=False, keep_tabs=False) == "␉⏎"


def test_every_control_and_every_invisible_character_of_unicode_is_covered():
    categories = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    hidden = {c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in categories}
    hidden = (hidden | set(IGNORABLE)) - VISIBLE_FORMATS - {ord("\n"), ord("\t")}
    assert [hex(c) for c in sorted(hidden) if chr(c) in safe_text(f"a{chr(c)}a")] == []


@given(any_text)
def test_the_result_is_safe_and_stays_as_it_is(text):
    shown = safe_text(text)
    assert safe_text(shown) == shown
    assert all(c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode()


@given(any_text)
def test_on_one_line_it_is_one_line(text):
    assert len(safe_text(text, keep_newlines=False).splitlines()) <= 1


@given(st.lists(any_text, max_size=6))
def test_pieces_join_to_the_text_of_the_whole(pieces):
    shown = safe_pieces(pieces)
    assert "".join(shown) == safe_text("".join(pieces))
    assert len(shown) == len(pieces)


def test_an_emoji_cut_at_its_joiners_stays_whole():
    pieces = ["👩", "\u200d", "👩", "\u200d👧", "\r", "\n"]
    assert safe_pieces(pieces) == ["👩", "\u200d", "👩", "\u200d👧", "", "\n"]


@given(any_text)
def test_json_keeps_its_values_and_is_safe(text):
    line = json.dumps({"text": text}, ensure_ascii=False)
    printed = safe_json(line)
    assert json.loads(printed) == json.loads(line)
    assert safe_text(printed) == printed


def test_json_keeps_letters_readable():
    assert safe_json('{"text": "歪 \u202e 👩‍👧"}') == '{"text": "歪 \\u202e 👩‍👧"}'
    assert safe_json('"\U000e0041"') == '"\\udb40\\udc41"'
