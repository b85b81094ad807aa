"""Rewritings that a script makes of given texts, as a faithful model would answer: one of each kind of change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from tests.data.texts import BREAD, CART, HARBOUR, LIBRARY, PEOPLE, SERVICES, SHAPES, STORE, TOWNS, WORDS

AMERICAN = (
    (r"\bharbour", "harbor"), ("grey", "gray"), ("coloured", "colored"), ("labourers", "laborers"),
    ("favourite", "favorite"), ("centre", "center"), ("organised", "organized"), ("programme", "program"),
    ("catalogued", "cataloged"), ("theatre", "theater"), ("honours", "honors"), ("neighbours", "neighbors"),
)  # fmt: skip
CHINESE = (
    ("a circle, given by its radius", "由半径给定的圆"), ("the area of the disc", "圆盘的面积"),
    ("the length of the border", "边界的长度"), ("a rectangle, given by its sides", "由边长给定的矩形"),
    ("the product of the sides", "两边的乘积"), ("twice the sum of the sides", "两边之和的两倍"),
    ("whether all sides are equal", "各边是否相等"),
)  # fmt: skip
STORE_COMMENTS = {
    "New": "// New returns an empty store.",
    "Put": "// Put stores the value under the key.",
    "Get": "// Get returns the value stored under the key, or an error.",
    "Delete": "// Delete removes the key from the store, or returns an error.",
    "Len": "// Len returns the number of stored values.",
}


class Scripted(NamedTuple):
    """A prompt, and the answer to it."""

    name: str
    prompt: str
    reply: str


def fenced(body: str, language: str = "python") -> str:
    return f"```{language}\n{body}```"


def ask(wish: str, body: str, language: str = "python") -> str:
    return f"{wish}\n\n{fenced(body, language)}"


def replaced(text: str, *pairs: tuple[str, str | Callable[[re.Match[str]], str]]) -> str:
    for pattern, new in pairs:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text


def functions(text: str) -> list[str]:
    return [block.strip("\n") + "\n" for block in text.strip("\n").split("\n\n\n")]


def with_prints(text: str) -> str:
    """A line at the head of each function that prints its name and its arguments."""

    def head(found: re.Match[str]) -> str:
        shown = ", ".join(f"{{{name.strip()}}}" for name in found[2].split(","))
        return f'{found[0]}\n    print(f"{found[1]}: {shown}")'

    return replaced(text, (r"^def (\w+)\((.*)\):$", head))


def in_class(text: str) -> str:
    blocks = [
        "    @staticmethod\n" + "".join(f"    {line}\n" if line else "\n" for line in block[:-1].split("\n"))
        for block in functions(text)
    ]
    return "class TextTools:\n" + "\n\n".join(blocks)


def comment_above(found: re.Match[str]) -> str:
    return f"{STORE_COMMENTS[found[1]]}\n{found[0]}"


SINCE_1860, LATELY = HARBOUR.index("In 1867"), HARBOUR.index("In recent years")
COUNTY = r"^(\| [A-Z]\w+ \| (?:\w+shire|Suffolk|Norfolk|Somerset)) \|"

SCRIPTED = (
    Scripted(
        "rename js",
        ask("Rename `product` to `article` everywhere.", CART, "javascript"),
        "Here is the class with the new name:\n\n" + fenced(replaced(CART, (r"\bproduct\b", "article")), "javascript"),
    ),
    Scripted(
        "log lines",
        ask("Add a print of the name and the arguments at the start of each function.", WORDS),
        fenced(with_prints(WORDS)) + "\n\nEach function now prints its name and its arguments when it is called.",
    ),
    Scripted(
        "no comments",
        ask("Remove all comments.", SHAPES),
        fenced(replaced(SHAPES, (r"^ *# .*\n", ""))) + "\n\nAll comments have been removed.",
    ),
    Scripted(
        "reorder",
        ask("Sort the functions by name.", WORDS),
        "Sure! Here are the functions in alphabetical order:\n\n" + fenced("\n\n".join(sorted(functions(WORDS)))),
    ),
    Scripted(
        "注释",
        ask("把注释翻译成中文。", SHAPES),
        "下面是翻译后的代码：\n\n" + fenced(replaced(SHAPES, *CHINESE)),
    ),
    Scripted(
        "json indent",
        f"Format this JSON with an indentation of two spaces.\n\n{json.dumps(PEOPLE)}",
        fenced(json.dumps(PEOPLE, indent=2) + "\n", "json"),
    ),
    Scripted(
        "spelling",
        f"Change the British spelling of this text to American spelling.\n\n{HARBOUR}",
        replaced(HARBOUR, *AMERICAN),
    ),
    Scripted(
        "hints",
        ask("Add type hints.", WORDS),
        "Here is the file with type hints added:\n\n"
        + fenced(
            replaced(
                WORDS,
                (r"\(text\):", "(text: str):"),
                (r"\(text, shift\):", "(text: str, shift: int):"),
                (r"(word_count\(.*\)):", r"\1 -> dict[str, int]:"),
                (r"((?:longest_line|caesar)\(.*\)):$", r"\1 -> str:"),
                (r"(is_palindrome\(.*\)):", r"\1 -> bool:"),
            )
        ),
    ),
    Scripted(
        "into class",
        ask("Make these functions static methods of a class TextTools.", WORDS),
        fenced(in_class(WORDS)),
    ),
    Scripted("quotes", ask("Use double quotes for all strings.", WORDS), fenced(WORDS.replace("'", '"'))),
    Scripted(
        "quote paragraph",
        "Quote the sentences of this text about the years after 1860 word for word, then say what they have in common."
        f"\n\n{HARBOUR}",
        f"> {HARBOUR[SINCE_1860:LATELY].strip()}\n\n> {HARBOUR[LATELY:]}\n\n"
        "All of them describe how the harbour lost its trade and found another use.",
    ),
    Scripted(
        "面包",
        f"把这段文字里的“面团”改成“生面团”，“烤箱”改成“炉子”，其余不变。\n\n{BREAD}",
        BREAD.replace("面团", "生面团").replace("烤箱", "炉子"),
    ),
    Scripted(
        "sql",
        ask("Use lower case for all keywords.", LIBRARY, "sql"),
        fenced(replaced(LIBRARY, (r"\b[A-Z]{2,}\b", lambda found: found[0].lower())), "sql"),
    ),
    Scripted(
        "yaml",
        ask(
            "Change the version of both shop images to 1.9, the log level to debug, and add `restart: always` to every "
            "service.",
            SERVICES,
            "yaml",
        ),
        "Here is the updated file:\n\n"
        + fenced(
            replaced(
                SERVICES,
                (r":1\.8", ":1.9"),
                ("LOG_LEVEL: info", "LOG_LEVEL: debug"),
                (r"^(    image: .*)$", r"\1\n    restart: always"),
            ),
            "yaml",
        ),
    ),
    Scripted(
        "table",
        f"Add a column with the country, England, after the county.\n\n{TOWNS}",
        replaced(
            TOWNS,
            (r"^\| Town \| County \|", "| Town | County | Country |"),
            (r"^\|---\|", "|---|---|"),
            (COUNTY, r"\1 | England |"),
        ),
    ),
    Scripted(
        "go",
        ask("Add a comment above every function that says what it does.", STORE, "go"),
        fenced(replaced(STORE, (r"^func (?:\(s \*Store\) )?(\w+)", comment_above)), "go")
        + "\n\nEvery function now has a comment.",
    ),
)
