"""Further prompts, beyond those of ``specchat bench``: for rewritings, for work on a given text, for free replies."""

from __future__ import annotations

RING_BUFFER = """\
class RingBuffer:
    def __init__(self, capacity):
        self.capacity = capacity
        self.data = [None] * capacity
        self.head = 0
        self.size = 0

    def push(self, value):
        tail = (self.head + self.size) % self.capacity
        self.data[tail] = value
        if self.size < self.capacity:
            self.size += 1
        else:
            self.head = (self.head + 1) % self.capacity

    def pop(self):
        if self.size == 0:
            raise IndexError("empty buffer")
        value = self.data[self.head]
        self.head = (self.head + 1) % self.capacity
        self.size -= 1
        return value

    def peek(self):
        if self.size == 0:
            raise IndexError("empty buffer")
        return self.data[self.head]

    def __len__(self):
        return self.size
"""

GROUPING = """\
function groupBy(items, getKey) {
  const groups = {};
  for (const item of items) {
    const key = getKey(item);
    if (!groups[key]) {
      groups[key] = [];
    }
    groups[key].push(item);
  }
  return groups;
}

function sumBy(items, getValue) {
  let total = 0;
  for (const item of items) {
    total += getValue(item);
  }
  return total;
}

function maxBy(items, getValue) {
  let best = null;
  let bestValue = -Infinity;
  for (const item of items) {
    const value = getValue(item);
    if (value > bestValue) {
      best = item;
      bestValue = value;
    }
  }
  return best;
}
"""

CSV_ROWS = """\
import csv
import os


def load_rows(path):
    # open the file and read every row
    with open(path) as f:
        reader = csv.DictReader(f)
        rows = list(reader)
    print("loaded", len(rows))
    return rows


def filter_rows(rows, column, value):
    # keep only the rows with this value
    result = []
    for row in rows:
        if row[column] == value:
            result.append(row)
    print("filtered", len(result))
    return result


def write_rows(path, rows):
    # write the rows with a header
    if not rows:
        return
    with open(path, "w") as f:
        writer = csv.DictWriter(f, fieldnames=rows[0].keys())
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
    print("wrote", os.path.getsize(path), "bytes")
"""

STATION = """\
{
  "name": "weather-station",
  "version": "1.4.2",
  "location": {"latitude": 51.4779, "longitude": -0.0015, "altitude": 46},
  "sensors": [
    {"id": "t1", "type": "temperature", "unit": "celsius", "interval": 60},
    {"id": "h1", "type": "humidity", "unit": "percent", "interval": 60},
    {"id": "p1", "type": "pressure", "unit": "hectopascal", "interval": 300},
    {"id": "w1", "type": "wind", "unit": "metres per second", "interval": 10}
  ],
  "upload": {"url": "https://example.org/api/v2/observations", "retries": 3, "timeout": 30}
}
"""

LETTER = """\
Dear Mrs Whitfield,

thank you for you're letter of the 3rd of March. I am sorry to here that the parcel arived damaged. We have spoken \
with the courier, and they confirmed that the box was droped at there depot in Leeds. A replacement lamp will leave \
our warehouse tomorow and should reach you by Friday at the latest. You do not need to return the broken one; please\
 dispose of it safely, because the glass have sharp edges. We will also refund the cost off the original delivery.

If the second parcel shows any sign of damage, please do not sign for it and call us at once under the number below.\
 We hope that you will enjoy your lamp for many years.

Yours sincerely,
Peter Lang"""

VECTOR = """\
#include <stdlib.h>
#include <string.h>

typedef struct {
    int *items;
    size_t len;
    size_t cap;
} vec;

vec *vec_new(void) {
    vec *v = malloc(sizeof(vec));
    v->items = NULL;
    v->len = 0;
    v->cap = 0;
    return v;
}

void vec_push(vec *v, int x) {
    if (v->len == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 8;
        v->items = realloc(v->items, v->cap * sizeof(int));
    }
    v->items[v->len++] = x;
}

int vec_pop(vec *v) {
    return v->items[--v->len];
}

void vec_free(vec *v) {
    free(v->items);
    free(v);
}
"""

ACCOUNT = """\
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("insufficient funds")
        self.balance -= amount
        self.history.append(("withdraw", amount))

    def transfer(self, other, amount):
        self.withdraw(amount)
        other.deposit(amount)

    def statement(self):
        lines = []
        for kind, amount in self.history:
            lines.append(f"{kind}: {amount}")
        return "\\n".join(lines)
"""

ORDERS = """\
SELECT c.name, c.city, COUNT(o.id) AS orders, SUM(o.total) AS revenue
FROM customers c
JOIN orders o ON o.customer_id = c.id
WHERE o.created_at >= '2023-01-01'
GROUP BY c.name, c.city
HAVING SUM(o.total) > 1000
ORDER BY revenue DESC;

SELECT p.title, p.price, COUNT(i.id) AS sold
FROM products p
JOIN order_items i ON i.product_id = p.id
JOIN orders o ON o.id = i.order_id
WHERE o.created_at >= '2023-01-01'
GROUP BY p.title, p.price
ORDER BY sold DESC
LIMIT 20;
"""


def _given(wish: str, body: str, language: str = "python") -> str:
    return f"{wish}\n\n```{language}\n{body}```"


REWRITINGS = {
    "logging": _given(
        "Add a logging.debug call at the beginning of each method. Change nothing else and print the whole class.",
        RING_BUFFER,
    ),
    "rename self field": _given(
        "Rename the attribute `data` to `slots` and `size` to `count` everywhere. Change nothing else. Print the whole "
        "class.",
        RING_BUFFER,
    ),
    "js rename": _given(
        "Rename `items` to `elements` in all functions and convert them to arrow functions assigned to const. Print "
        "everything.",
        GROUPING,
        "javascript",
    ),
    "jsdoc": _given(
        "Add a JSDoc comment to every function. Leave the code as it is and print all of it.", GROUPING, "javascript"
    ),
    "no prints": _given(
        'Remove all print statements and add `encoding="utf-8"` to every open call. Print the whole file.', CSV_ROWS
    ),
    "注释翻译": _given("把代码里的英文注释翻译成中文，其他内容不要改，输出完整文件。", CSV_ROWS),
    "json keys": _given(
        'Rename the key "type" to "kind" in every sensor and add "enabled": true to each sensor. Print the whole JSON '
        "document.",
        STATION,
        "json",
    ),
    "typos": "Correct the spelling and grammar of this letter. Change nothing else and print the whole letter.\n\n"
    + LETTER,
    "c null checks": _given(
        "Add a NULL check of the argument at the start of each function and after malloc. Print the whole file.",
        VECTOR,
        "c",
    ),
    "type hints": _given("Add type hints to all methods. Change nothing else and print the whole class.", ACCOUNT),
    "checks": _given(
        "Add a check to `deposit` and `withdraw` that amount is positive, raising ValueError. Print the whole class.",
        ACCOUNT,
    ),
    "sql date": _given(
        "Change the date in both queries to '2024-01-01', add c.email to the first one (select and group by). Print "
        "both queries.",
        ORDERS,
        "sql",
    ),
    "bug": _given(
        "There is a bug: peek should not raise but return None on an empty buffer. Fix it and print the whole class.",
        RING_BUFFER,
    ),
    "async": _given(
        "Make all functions of this file async and use `async with aiofiles.open`. Print the whole file.", CSV_ROWS
    ),
}
"""By short names, as the others."""

WORK = {
    "explain": _given("Explain what this class does and how its methods work together.", RING_BUFFER),
    "unit tests": _given("Write unit tests with pytest for this class.", ACCOUNT),
    "to python": _given("Translate these functions to Python.", GROUPING, "javascript"),
    "to rust": _given("Rewrite this code in Rust.", VECTOR, "c"),
    "indent json": "Format this JSON with an indentation of four spaces.\n\n" + STATION.replace("\n", " "),
    "json to yaml": _given("Convert this JSON document to YAML.", STATION, "json"),
    "in german": f"Translate this letter to German.\n\n{LETTER}",
    "shorter": f"Shorten this letter to half of its length.\n\n{LETTER}",
    "answer": f"What went wrong with the delivery, and what will the company do about it?\n\n{LETTER}",
    "review": _given("Review this file. List problems with the lines that have them.", CSV_ROWS),
    "one query": _given("Explain the first query, then write one that also shows the month.", ORDERS, "sql"),
    "解释": _given("用中文逐个解释这些函数。", CSV_ROWS),
}
"""Where a part of the reply is copied."""

FREE = {
    "bicycle": "How do I fix a flat bicycle tyre on the road?",
    "tcp": "Explain the difference between TCP and UDP with an example of each.",
    "argparse": "Show me how to use argparse with subcommands in Python.",
    "binary tree": "Write a binary search tree in C++ with insert, find and delete.",
    "poem": "Write a poem of four stanzas about the sea in winter.",
    "recipes": "Give me three recipes with lentils. For each: ingredients, then steps.",
    "interest": "I put 2000 euros in an account with 3% interest a year. How much is it after 5 years? Show each year.",
    "capitals": "Make a table of ten European countries with capital, population and currency.",
    "邮件": "写一封邮件，向客户说明发货会晚两天，并表示歉意。",
    "冒泡": "冒泡排序和归并排序有什么区别？各给一个 Python 例子。",
}
"""Where nothing is."""
