import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from specchat.tui.typesetting import Piece, Typesetter, joins_previous, pieces_of

FAMILY = "👩‍👩‍👧‍👦"


def typeset(text, width, indent=None):
    typesetter = Typesetter(width, indent=indent)
    typesetter.extend(pieces_of(text, "plain"))
    return typesetter


def shown(typesetter):
    return ["".join(piece.shown for piece in line.pieces) for line in typesetter.lines]


def copied(typesetter):
    return "".join(line.copied() for line in typesetter.lines)


def test_lines_break_between_words_and_the_space_hangs():
    assert shown(typeset("the quick brown fox jumps", 10)) == ["the quick", "brown fox", "jumps"]


def test_a_word_longer_than_a_line_is_cut():
    assert shown(typeset("a incomprehensibilities", 8)) == ["a", "incompre", "hensibil", "ities"]


def test_indentation_is_no_place_to_break():
    assert shown(typeset("    incomprehensible", 10)) == ["    incomp", "rehensible"]


def test_wide_glyphs_break_anywhere_but_before_closing_punctuation():
    assert shown(typeset("天空為什麼是藍色的。", 18)) == ["天空為什麼是藍色", "的。"]


def test_a_family_is_one_glyph_of_two_cells():
    typesetter = typeset(f"ab{FAMILY}cd", 4)
    assert shown(typesetter) == [f"ab{FAMILY}", "cd"]
    assert [line.width for line in typesetter.lines] == [4, 2]


def test_a_glyph_wider_than_the_line_does_not_hang_the_typesetter():
    assert shown(typeset("天空", 1)) == ["天", "空"]


def test_indent_begins_every_line_but_the_first():
    typesetter = typeset("one two three\nfour", 9, indent=Piece("  ", 2, "", "plain"))
    assert shown(typesetter) == ["one two", "  three", "  four"]
    assert copied(typesetter) == "one two three\nfour"


def test_a_long_first_word_stays_beside_the_mark():
    typesetter = Typesetter(10, lead=Piece("> ", 2, "", "mark"))
    typesetter.extend(pieces_of("incomprehensible", "plain"))
    assert shown(typesetter) == ["> incompre", "hensible"]
    assert copied(typesetter) == "incomprehensible"


def test_what_a_terminal_would_obey_is_a_mark_in_lines_and_copies():
    typesetter = typeset("a\x1b]52;c;QQ==\x07b\x9b2J", 80)
    assert shown(typesetter) == ["a␛]52;c;QQ==␇b⟨U+009B⟩2J"]
    assert copied(typesetter) == shown(typesetter)[0]


def test_bidi_controls_are_marks_on_the_screen_and_themselves_in_a_copy():
    typesetter = typeset("a\u202eb", 80)
    assert shown(typesetter) == ["a⟨U+202E⟩b"]
    assert copied(typesetter) == "a\u202eb"


def test_part_of_a_line_is_copied_by_cells_and_glyphs_are_whole():
    line = typeset(f"ab天{FAMILY}c", 80).lines[0]
    assert line.copied(0, 2) == "ab"
    assert line.copied(3, 4) == "天"  # the right half of a wide glyph belongs to it
    assert line.copied(4, 5) == FAMILY
    assert line.copied(5, -1) == f"{FAMILY}c"


@pytest.mark.parametrize(
    ("text", "previous", "joins"),
    [
        ("\u0301", "e", True),
        ("\u200d", "👩", True),
        ("👧", "👩\u200d", True),
        ("\ufe0f", "❤", True),
        ("👧", "👩", False),
        ("é", "e", False),
        ("\u0301", " ", False),
        ("x", "e", False),
        ("\u0301", "", False),
    ],
)
def test_which_characters_join_the_glyph_before(text, previous, joins):
    assert joins_previous(text, previous) is joins


TEXTS = st.text(
    alphabet=st.sampled_from([*"ab -_.\n\t", "天", "，", "é", "👩", "\u200d", "\u0301", "❤", "\ufe0f"]),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(1, 30))
def test_nothing_is_lost_and_no_line_is_too_wide(text, width):
    typesetter = typeset(text, width)
    assert copied(typesetter) == text
    for line in typesetter.lines:
        assert line.width == sum(cell_len(piece.shown) for piece in line.pieces)
        widest = max((piece.width for piece in line.pieces), default=0)
        assert line.width <= max(width, widest)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["the", " quick", " ", "\n", "天空", " a b", "_x"]), max_size=40), st.integers(1, 25))
def test_lines_do_not_depend_on_how_text_arrives(tokens, width):
    bit_by_bit = Typesetter(width)
    for number, token in enumerate(tokens):
        bit_by_bit.extend(pieces_of(token, "plain", number))
    at_once = typeset("".join(tokens), width)
    assert copied(bit_by_bit) == copied(at_once)
    assert [line.rstrip() for line in shown(bit_by_bit)] == [line.rstrip() for line in shown(at_once)]


@pytest.mark.parametrize("width", [1, 2, 7, 60])
def test_a_word_of_any_length_is_cut_into_lines(width):
    word = "x" * 30_000
    typesetter = Typesetter(width, Piece("> ", 2, "", "question-mark"), Piece("  ", 2, "", "question"))
    typesetter.extend(pieces_of(f"a {word}\nb", "question"))
    assert "".join(line.copied() for line in typesetter.lines) == f"a {word}\nb"
    assert all(line.width <= max(2, width) for line in typesetter.lines)
