"""The report on a terminal, and the page with plots."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from specchat.engine.interface import Calibration
from specchat.errors import DecodeError
from specchat.lab.bench_html import to_html
from specchat.lab.bench_plan import parse_settings
from specchat.lab.bench_report import elsewhere, report
from specchat.lab.svg import Dot, Line, dot_rows, line_chart, scatter, stacked_rows
from tests.lab.bench_results import CALIBRATION, PROMPTS, machine, model, result, sample, servers, small_result, trial

HOSTILE = '</title><script>alert("x")</script>\x1b]0;t\x07\u202e&'


class Page(HTMLParser):
    """Tags, attributes and whether each tag is closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_fits_a_terminal_and_says_what_was_measured() -> None:
    text = report(small_result(memory_bytes=3 << 30))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == "Target (Q4_K_M) ⟵ Draft (Q4_K_M), context 4096"
    assert "A processor, 2 cores (4 logical), 16 GiB, A GPU" in text
    assert "2 prompts, up to 128 tokens, 2 repetitions, 8 replies, at most 3.00 GiB resident" in text
    [row] = [line for line in lines if line.startswith("draft γ4") and "0.87" in line][:1]
    assert row.split() == [
        "draft", "γ4", "token", "T0.7", "86.6", "0.87", "0.87–0.87", "0.70", "2.75", "0.72", "120%", "10.0%", "0.12"
    ]  # fmt: skip
    [by_category] = [line for line in lines if line.startswith("draft γ4") and line.split()[4:] == ["0.50", "1.50"]]
    assert by_category
    assert "c 0.20, a draft step; 0.10 more after a round in which all were accepted" in text
    assert re.search(r"1: 1\.00 +2: 1\.50 +3: 2\.00 +5: 3\.00", text)
    assert "γ1: 1.00" not in text
    assert "0.75 0.67 0.50 1.00" in text


def test_columns_stand_below_their_titles() -> None:
    lines = report(small_result()).splitlines()
    title = next(line for line in lines if line.startswith("setting"))
    row = next(line for line in lines if line.startswith("draft γ4 token T0.7   "))
    assert len(title) == len(row)
    assert title.index("tok/s") + len("tok/s") == row.index("86.6") + len("86.6")


def test_a_server_has_a_row_a_column_and_a_table() -> None:
    [setting] = parse_settings("draft γ4 token")
    done = [trial(setting, each, plain=sample(100), ours=sample(120), server=sample(80)) for each in PROMPTS]
    text = report(result(done, servers=servers()))
    assert max(map(len, text.splitlines())) <= 100
    assert "server at 127.0.0.1:8080: toy.gguf, build b7" in text
    assert re.search(r"^draft γ4 token T0\.7 +120\.0 +1\.20 +1\.50", text, re.MULTILINE)
    assert re.search(r"^server T0\.7 +80\.0 +0\.80 +–", text, re.MULTILINE)
    assert "× server by category" in text


def test_of_several_servers_the_fastest_are_named() -> None:
    [setting] = parse_settings("draft γ4 token")
    done = [trial(setting, each, plain=sample(100), ours=sample(120), a=sample(80), b=sample(90)) for each in PROMPTS]
    text = report(result(done, servers=servers("a", "b")))
    assert re.search(r"^b T0\.7 +90\.0 +0\.90 +–", text, re.MULTILINE)
    assert re.search(r"^draft γ4 token T0\.7 +code: b, chat: b$", text, re.MULTILINE)
    assert "several" not in report(result(done, servers=servers("a")))


def test_notes_say_why_and_whether_it_was_cut() -> None:
    [setting] = parse_settings("auto fast")
    done = [trial(setting, PROMPTS[0], plain=sample(100), ours=sample(100, why="fast: not drafting, it costs more"))]
    stopped = result(done, "auto fast", stopped=True, notices=["A notice."])
    text = report(stopped)
    assert "auto fast block T0.7: fast: not drafting, it costs more" in text
    assert "A notice." in text
    assert "Stopped before all was measured" in text
    assert "Stopped" in report(result(done, "auto fast", problem=DecodeError("The device was lost.", "Load again.")))


def test_a_report_of_nothing_but_plain_and_without_costs() -> None:
    [setting] = parse_settings("plain T0")
    done = [trial(setting, PROMPTS[0], plain=sample(100))]
    bare = result(done, "plain T0", calibration=Calibration({}, None, None, (), 1.0))
    alone = replace_loaded(bare)
    for each in (bare, alone):
        assert "plain T0" in report(each)
        assert "<svg" not in to_html(each, "now")


def replace_loaded(found):
    found.loaded = replace(found.loaded, draft=None)
    return found


def test_what_the_acceptance_would_bring_on_a_gpu() -> None:
    """α 0.8 at each of four positions, c 0.1: E = 3.36 at γ 4, so 3.36 / 1.4."""
    found = {c: (length, speedup) for c, length, speedup in elsewhere((0.8,) * 4)}
    assert found[0.1] == (4, pytest.approx(3.3616 / 1.4))
    assert found[0.4][0] < 4


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    text = to_html(small_result(), "2026-01-02T03:04:05+00:00")
    page = Page(text)
    assert page.open == []
    assert page.tags.count("svg") - text.count('class="key"') == 5
    assert not {"script", "link", "img", "iframe", "object", "image", "use"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("href", "src", "xlink:href") or name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "nan" not in text.lower().replace("financial", "")


def test_names_cannot_act() -> None:
    hostile = small_result(notices=[HOSTILE], machine=machine(processor=HOSTILE))
    hostile.loaded = replace(hostile.loaded, target=model(HOSTILE), build=HOSTILE)
    page = to_html(hostile, HOSTILE)
    assert "<script" not in page
    assert not set("\x1b\x07\u202e") & set(page)
    assert Page(page).open == []


def test_numbers_of_any_kind_can_be_drawn() -> None:
    for plot in (
        dot_rows([("a", [Dot(1.0, 0, "t")])], 1.0, "t"),
        dot_rows([], 1.0, "t"),
        line_chart([Line("a", [(1.0, 0.0)])], "t", "x", "y", from_zero=True),
        line_chart([Line("a", [(1.0, 5.0), (2.0, 5.0)])], "t", "x", "y"),
        scatter([(1e-9, Dot(1e6, 0, "t"))], "t", "x", "y"),
        stacked_rows([("a", (0.5, 0.5))], ("one", "two"), "t"),
    ):
        assert Page(plot).open == []
        assert "nan" not in plot
        assert "inf" not in plot


def test_a_larger_ratio_stands_further_to_the_right() -> None:
    plot = dot_rows([("a", [Dot(0.5, 0, "x"), Dot(1.5, 1, "y", 1.4, 1.6)])], 1.0, "t")
    places = [float(at) for at in re.findall(r'cx="([\d.]+)"', plot)]
    assert places[0] < float(re.search(r'class="mark" x1="([\d.]+)"', plot)[1]) < places[1]
    low, high = map(float, re.search(r'class="whisker c1" x1="([\d.]+)".*? x2="([\d.]+)"', plot).groups())
    assert low < places[1] < high


def test_the_parts_of_a_bar_stand_side_by_side() -> None:
    plot = stacked_rows([("a", (0.25, 0.75))], ("one", "two"), "t")
    (left, width), (next_left, rest) = (
        tuple(map(float, found)) for found in re.findall(r'x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', plot)
    )
    assert next_left == pytest.approx(left + width, abs=0.2)
    assert rest == pytest.approx(3 * width, abs=0.2)


def test_calibrated_costs_are_drawn_once_each() -> None:
    sections = to_html(small_result(), "now").split("</section>")
    [plot] = [section for section in sections if "<h2>What a pass of n tokens costs" in section]
    assert plot.count("<circle") == len(CALIBRATION.pass_seconds)
