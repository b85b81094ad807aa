"""Text from a model, a person or a file, made safe to show.

Terminals obey what they print: escape sequences write to the clipboard, set titles, clear the screen; bidirectional
controls reorder what is read; zero-width characters hide. Everything that is shown goes through `safe_text` (or
`safe_pieces`, where it comes in tokens), which turns such characters into visible marks: control characters into
their pictures (␛), everything else into its number (⟨U+202E⟩). Characters that belong to writing are left alone: the
joiner and the variation selectors inside an emoji, the joiners between the letters of Persian or Hindi, the variant
of a Han character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"  # all of C0 but \t and \n, DEL, C1; halves of a pair
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_NO_CHARACTER = r"\ufdd0-\ufdef\ufffe\uffff\U0010fffe\U0010ffff"

_EMOJI = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    r"\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_HAN = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_JOINING = r"[\u0620-\u06d3\u06fa-\u06ff\u0750-\u077f\u08a0-\u08c9\u0904-\u0dff]"  # Arabic letters; India's scripts
_LEFT_ALONE = "|".join(
    (
        rf"(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI}|\Z)",  # at the very end the rest may be on its way
        rf"(?:(?<={_EMOJI})|(?<=[0-9#*]))[\ufe0e\ufe0f]",
        rf"(?<={_HAN})[\ufe00-\ufe02\U000e0100-\U000e01ef]",
        rf"(?<={_JOINING})[\u200c\u200d]",
    )
)
_SUSPECT = re.compile(f"[{_CONTROL}{_INVISIBLE}{_NO_CHARACTER}]")
_UNSAFE = re.compile(f"(?P<left_alone>{_LEFT_ALONE})|[\t\n{_CONTROL}{_INVISIBLE}{_NO_CHARACTER}]")


def safe_text(text: str, *, keep_newlines: bool = True, keep_tabs: bool = True) -> str:
    r"""The text with everything that a terminal would obey, or that nobody would see, as a visible mark.

    Line ends become ``\n``; a lone carriage return, which would overwrite a line, becomes ␍. Doing it twice changes
    nothing.

    Args:
        text: anything, lone surrogates included.
        keep_newlines: False turns line ends into ⏎, for what must stay on one line.
        keep_tabs: False turns tabs into ␉.
    """
    return safe_pieces((text,), keep_newlines=keep_newlines, keep_tabs=keep_tabs)[0]


def safe_pieces(pieces: Sequence[str], *, keep_newlines: bool = True, keep_tabs: bool = True) -> list[str]:
    """`safe_text` of pieces that stand next to each other, such as the tokens of a reply.

    Joined, the result is the safe text of the pieces joined: an emoji that tokens cut at its joiners stays whole.
    """
    text = "".join(pieces)
    if text.isascii() and text.isprintable():
        return list(pieces)
    kept = ("\n" if keep_newlines else "") + ("\t" if keep_tabs else "")
    if not (_SUSPECT.search(text) or (not keep_newlines and "\n" in text) or (not keep_tabs and "\t" in text)):
        return list(pieces)
    marks = [
        (match.start(), _mark(text, match.start()))
        for match in _UNSAFE.finditer(text)
        if match["left_alone"] is None and match[0] not in kept
    ]
    return _replaced(pieces, marks)


def safe_json(line: str) -> str:
    r"""A line of JSON that is safe to print: the same values, with such characters written as ``\u`` escapes.

    Letters of every script stay readable, which ``ensure_ascii`` would not leave.

    Args:
        line: valid JSON, so that control characters can stand in it as escapes only.
    """
    if (line.isascii() and line.isprintable()) or not _SUSPECT.search(line):
        return line
    return _UNSAFE.sub(_json_escape, line)


def _mark(text: str, index: int) -> str:
    character = text[index]
    if character == "\n":
        return "⏎"
    if character == "\r" and text[index + 1 : index + 2] == "\n":
        return ""
    if character < " ":
        return chr(0x2400 + ord(character))
    return "␡" if character == "\x7f" else f"⟨U+{ord(character):04X}⟩"


def _replaced(pieces: Sequence[str], marks: Sequence[tuple[int, str]]) -> list[str]:
    """The pieces with the characters at these places, counted over all pieces, replaced by their marks."""
    results, following, start = [], 0, 0
    for piece in pieces:
        parts, done = [], 0
        while following < len(marks) and marks[following][0] < start + len(piece):
            index, mark = marks[following]
            parts += [piece[done : index - start], mark]
            done = index - start + 1
            following += 1
        results.append("".join([*parts, piece[done:]]))
        start += len(piece)
    return results


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if match["left_alone"] is not None or character in "\t\n\r":
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
