from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser

from specchat.tui.terminal_input import TerminalDecoder

BEGIN, END = "\x1b[200~", "\x1b[201~"


def decoded(data, cuts=()):
    decoder, places = TerminalDecoder(), [0, *sorted(cuts), len(data)]
    return "".join(decoder.decode(data[a:b]) for a, b in pairwise(places))


def events_of(text):
    return [str(getattr(event, "text", getattr(event, "key", event))) for event in XTermParser().feed(text)]


def test_bytes_that_are_no_utf_8_become_marks():
    assert decoded(b"caf\xe9 \xf0\x9f\x98\x80 \xff", cuts=(6, 7, 8)) == "caf� 😀 �"


@pytest.mark.parametrize(
    "inside", ["\x1b[31mred\x1b[0m \x07", "\x1b", "\x1b[A\x11\r", "\x1b[200~again", "\x1b[201", "x"]
)
def test_a_paste_is_one_paste_and_presses_no_keys(inside):
    text = decoded(f"a{BEGIN}{inside}{END}b\x1b[A".encode())
    assert events_of(text) == ["a", inside.replace("\x1b", "␛"), "b", "up"]


def test_keys_are_handed_on_at_once():
    decoder = TerminalDecoder()
    assert [decoder.decode(data) for data in (b"\x1b", b"[", b"A", b"\x1b[20")] == ["\x1b", "[", "A", "\x1b[20"]
    assert decoder.decode(b"0~x\x1b") == "0~x"
    assert decoder.decode(b"y\x1b[201") == "␛y"
    assert decoder.decode(b"~z") == f"{END}z"


pieces = st.lists(st.sampled_from(["a", "\x1b", "[", "2", "0", "1", "~", BEGIN, END, "天", "\r"]), max_size=30)


@given(pieces, st.sets(st.integers(0, 60)))
def test_it_does_not_matter_where_the_bytes_are_cut(parts, cuts):
    data = "".join(parts).encode()
    whole = TerminalDecoder()
    text = whole.decode(data)
    cut = TerminalDecoder()
    places = [0, *sorted(min(place, len(data)) for place in cuts), len(data)]
    assert "".join(cut.decode(data[a:b]) for a, b in pairwise(places)) == text


@given(st.text(), st.text(st.characters(exclude_characters="\x1b", exclude_categories=["Cs"])))
def test_nothing_but_escapes_is_changed(inside, outside):
    inside = inside.encode("utf-8", "replace").decode().replace(END, "")
    if END in inside + END[:-1]:
        return
    text = decoded(f"{outside}{BEGIN}{inside}{END}{outside}".encode())
    assert text == f"{outside}{BEGIN}{inside.replace(chr(27), '␛')}{END}{outside}"
