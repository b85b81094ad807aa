"""The built-in prompts of ``specchat bench``: six kinds of work, in English and Chinese.

The kinds differ in how predictable the reply is. Rewriting given code is nearly all copying, which costs a draft
nothing; free chat is where a draft helps least. A speedup on one kind says little of another.
"""

from __future__ import annotations

from dataclasses import dataclass

_INVENTORY = """\
class Inventory:
    def __init__(self, items, limit):
        self.items = items
        self.limit = limit

    def add(self, name, count):
        total = sum(self.items.values()) + count
        if total > self.limit:
            raise ValueError("inventory is full")
        self.items[name] = self.items.get(name, 0) + count
        return self.items[name]

    def remove(self, name, count):
        if self.items.get(name, 0) < count:
            raise ValueError("not enough in stock")
        self.items[name] -= count
        if self.items[name] == 0:
            del self.items[name]
        return self.items.get(name, 0)

    def most_common(self, k):
        pairs = sorted(self.items.items(), key=lambda pair: -pair[1])
        return [name for name, count in pairs[:k]]
"""

_STATISTICS = """\
def mean(data):
    total = 0
    for value in data:
        total += value
    return total / len(data)


def variance(data):
    center = mean(data)
    return sum((value - center) ** 2 for value in data) / len(data)


def median(data):
    ordered = sorted(data)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def histogram(data, bins):
    low, high = min(data), max(data)
    width = (high - low) / bins
    counts = [0] * bins
    for value in data:
        index = min(int((value - low) / width), bins - 1)
        counts[index] += 1
    return counts
"""

_MATRIX = """\
def transpose(matrix):
    return [list(row) for row in zip(*matrix)]


def multiply(a, b):
    columns = transpose(b)
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def identity(n):
    return [[1 if i == j else 0 for j in range(n)] for i in range(n)]


def power(matrix, exponent):
    result = identity(len(matrix))
    while exponent > 0:
        if exponent % 2 == 1:
            result = multiply(result, matrix)
        matrix = multiply(matrix, matrix)
        exponent //= 2
    return result


def trace(matrix):
    return sum(matrix[i][i] for i in range(len(matrix)))
"""

_LIGHTHOUSE = """\
The lighthouse at Cape Harrow was built in 1858 after three ships were lost on the reef within a single winter. Its \
first keeper, a retired whaler named Tobias Flint, lived there with his two daughters and kept a log of every vessel \
that passed. The lamp burned whale oil until 1884, when it was converted to kerosene, and was electrified in 1931. \
During the storm of 1902 the sea broke the lower windows and flooded the oil room, but the lamp stayed lit for four \
nights. The station was automated in 1976, and the last keeper, Ruth Alder, moved to the village, where she wrote a \
history of the light. Today a trust maintains the tower. Visitors may climb the 142 steps on weekends from May to \
September, and the log of Tobias Flint is shown in the former oil room."""

_TEA = """\
茶起源于中国西南地区，最初作为药材使用，到唐代已成为日常饮品。陆羽在公元八世纪写成《茶经》，系统记述了茶树的栽培、采制和煮饮方法。\
宋代流行点茶，人们把茶饼研成细末，用沸水冲点，并以茶筅击拂出泡沫。明代以后，散茶冲泡逐渐取代了饼茶，绿茶、乌龙茶和红茶的工艺先后成熟。\
十七世纪，荷兰商人把茶叶带到欧洲，英国很快成为最大的进口国。十九世纪，印度和锡兰建立了大规模的茶园，改变了世界茶叶贸易的格局。\
今天，中国仍是产量最高的国家，约有三百万公顷茶园，茶产业为数千万人提供生计。"""


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt: its kind of work, a short name, the language and the text of the one message."""

    category: str
    name: str
    language: str
    text: str


def _rewrite(name: str, wish: str, code: str, language: str = "en") -> BenchPrompt:
    return BenchPrompt("rewriting", name, language, f"{wish}\n\n```python\n{code}```")


PROMPTS: tuple[BenchPrompt, ...] = (
    BenchPrompt(
        "code", "lru cache", "en", "Write a Python class that implements an LRU cache with get and put in O(1)."
    ),
    BenchPrompt("code", "快速排序", "zh", "用 Python 写一个原地快速排序函数，并解释时间复杂度。"),
    BenchPrompt(
        "chat", "blue sky", "en", "Why is the sky blue, and why are sunsets red? Explain it to a curious child."
    ),
    BenchPrompt("chat", "学习计划", "zh", "我想在三个月内学会弹吉他，每天只有半小时，请给我一些建议。"),
    BenchPrompt(
        "mathematics",
        "trains",
        "en",
        "Two trains leave stations 420 km apart at the same time and travel towards each other at 80 km/h and "
        "60 km/h. When and where do they meet? Show every step.",
    ),
    BenchPrompt(
        "mathematics", "鸡兔同笼", "zh", "鸡兔同笼，共有 35 个头，94 只脚。鸡和兔各有多少只？请列方程并逐步求解。"
    ),
    BenchPrompt(
        "list", "planets", "en", "List the planets of the solar system with diameter, moons and one fact each."
    ),
    BenchPrompt("list", "省会", "zh", "列出中国十个省份及其省会，每行一个，并各写一句介绍。"),
    _rewrite(
        "add checks",
        "Add a type check of the arguments to each method of this class: raise TypeError with a clear message. "
        "Change nothing else and print the whole class.",
        _INVENTORY,
    ),
    _rewrite(
        "rename",
        "Rename the parameter `data` to `samples` everywhere and add type hints to all functions. Change nothing "
        "else and print the whole file.",
        _STATISTICS,
    ),
    _rewrite(
        "docstrings",
        "Add a one-line docstring to every function. Change nothing else and print the whole file.",
        _MATRIX,
    ),
    _rewrite("加注释", "给下面每个函数加上中文文档字符串，其余代码不要改动，输出完整文件。", _STATISTICS, "zh"),
    BenchPrompt("summary", "lighthouse", "en", f"Summarise this text in four sentences.\n\n{_LIGHTHOUSE}"),
    BenchPrompt("summary", "茶", "zh", f"用三句话概括下面这段文字。\n\n{_TEA}"),
)
"""Every prompt, in the order of the report."""

CATEGORIES: tuple[str, ...] = tuple(dict.fromkeys(prompt.category for prompt in PROMPTS))
"""The kinds of work, in the order of the report."""
