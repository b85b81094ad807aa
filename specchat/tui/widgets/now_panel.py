"""What speculation brings now: the measured speedup first, then where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Digits

from specchat.chat.figures import first_token_text, usual_length
from specchat.core.events import Fate, Round
from specchat.core.safe_text import safe_text
from specchat.core.stats import ReplyStats, RoundTotals
from specchat.tui.charts import bar, columns, dot_level, grouped, stacked
from specchat.tui.charts import curve as curve_of
from specchat.tui.figures import break_even
from specchat.tui.speedup_curve import SpeedupCurve
from specchat.tui.widgets.status import QuietStatic

_Part = tuple[str, str]
_TIME_STYLES = {
    "draft": "$fate-accepted",
    "verify": "$fate-bonus",
    "sample": "$fate-resampled",
    "other": "$quiet",
    "rest": "$quiet",  # these two in one
}
_CHART_HEIGHT = 3
_DIGITS = 3
_LENGTH_CELLS = 3
_EMPTY: tuple[Sequence[_Part], ...] = (
    (("What drafting brings", "bold"),),
    (("stands here as soon as tokens come: the measured speedup against plain decoding on this machine.", "$quiet"),),
    (("", ""),),
    (("Then α, the share of drafted tokens that the target keeps, beside the α that breaks even;", "$quiet"),),
    (("", ""),),
    (("and where the time of a round goes.", "$quiet"),),
)


class _Short(IntEnum):
    """What is made shorter or left out where there is less room: one after the other, until the rest fits."""

    NOTHING = 0
    POSITIONS_IN_ONE_ROW = 1
    NO_CURVE = 2
    TIME_IN_THREE_ROWS = 3
    RATES_IN_ONE_ROW = 4
    NO_GAPS = 5
    NO_SOURCE = 6
    NO_POSITIONS = 7
    NO_MEMORY = 8
    NO_RATES = 9
    NO_HEADING = 10
    TIME_IN_ONE_ROW = 11
    MOST_WANTED_ONLY = 12


class _Speedup(Digits):
    ALLOW_SELECT = False


class NowPanel(Vertical):
    """The figures of the reply that is being written, or of the last one; below a line those of its last rounds."""

    BORDER_TITLE = "now"
    _num_lines = 0
    _latest: tuple[ReplyStats, SpeedupCurve | None, str] | None = None

    def compose(self) -> ComposeResult:
        """The speedup in large digits, and everything else as text."""
        yield _Speedup("", id="speedup")
        yield QuietStatic(id="figures")

    def show(self, stats: ReplyStats, curve: SpeedupCurve | None = None, memory: str = "") -> None:
        """Shows what is known by now; ``memory`` is what the models take, in words."""
        self._latest = stats, curve, memory
        if not self.display:
            return
        speedup, digits = stats.speedup, self.query_one(Digits)
        digits.display = speedup is not None
        if speedup is not None and digits.value != f"{speedup:.2f}x":
            digits.update(f"{speedup:.2f}x")
        width = max(12, self.query_one("#figures").size.width or 28)
        room = self.scrollable_content_region.height - (_DIGITS if digits.display else 0)
        if stats.total.rounds:
            parts = _lines(stats, curve, memory, width, room)
        else:
            parts = [*_EMPTY, [("", "")], [(memory, "$quiet")]] if memory else list(_EMPTY)
        lines = [Content.assemble(*line) for line in parts]
        self.query_one("#figures", QuietStatic).show_content(
            Content("\n").join(lines), layout=len(lines) != self._num_lines
        )
        self._num_lines = len(lines)

    def on_resize(self) -> None:
        """More fits, or less."""
        if self._latest is not None:
            self.show(*self._latest)


def one_line(stats: ReplyStats) -> Content:
    """The panel in one line, for narrow terminals: figures of the whole reply."""
    parts: list[_Part] = []
    if stats.speedup is not None:
        parts.append((f"{stats.speedup:.2f}×", "bold"))
    if stats.tokens_per_second is not None:
        parts.append((f"{stats.tokens_per_second:.1f} tok/s", ""))
    parts.append((_plain_text(stats), "$quiet"))
    if (rate := stats.total.acceptance_rate) is not None:
        parts.append((f"α {rate:.2f}", ""))
    if stats.total.tokens_per_round is not None:
        parts.append((f"{stats.total.tokens_per_round:.2f} a round", ""))
    return Content("  ").join([Content.styled(*part) for part in parts])


def _plain_text(stats: ReplyStats) -> str:
    return "plain speed not known yet" if stats.plain is None else f"plain {stats.plain.tokens_per_second:.1f}"


def _lines(stats: ReplyStats, curve: SpeedupCurve | None, memory: str, width: int, room: int) -> list[Sequence[_Part]]:
    """As much as there is room for in so many lines."""
    lines: list[Sequence[_Part]] = []
    for short in _Short:
        lines = [*_reply_lines(stats, memory, width, short), *_window_lines(stats, curve, width, short)]
        if len(lines) <= room:
            break
    return lines


def _gap(short: _Short) -> Sequence[Sequence[_Part]]:
    return () if short >= _Short.NO_GAPS else ([("", "")],)


def _reply_lines(stats: ReplyStats, memory: str, width: int, short: _Short) -> Iterator[Sequence[_Part]]:
    """What holds for the whole reply."""
    speed = stats.tokens_per_second
    first = f"  {first_token_text(stats.prefill_seconds)}" if stats.prefill_seconds > 0 else ""
    yield [(f"{speed:.1f}" if speed is not None else "–", "bold"), (f" tok/s{first}", "$quiet")]
    if short < _Short.MOST_WANTED_ONLY:
        yield from _plain_lines(stats, width, short)
    if memory and short < _Short.NO_MEMORY:
        yield [(memory, "$quiet")]
    yield from _gap(short)


def _window_lines(
    stats: ReplyStats, curve: SpeedupCurve | None, width: int, short: _Short
) -> Iterator[Sequence[_Part]]:
    """What is reckoned from the last rounds only, below a line that says how many they are."""
    window = stats.window
    if short < _Short.NO_HEADING:
        said = "last round " if window.rounds == 1 else f"last {window.rounds} rounds "
        yield [(said + "─" * (width - len(said)), "$quiet")]
    yield from _acceptance_lines(stats, window, width, short)
    if short < _Short.MOST_WANTED_ONLY:
        yield from _round_lines(window)
    if curve is not None and short < _Short.NO_CURVE:
        yield from _gap(short)
        yield from _curve_lines(curve, width)
    by_position = window.acceptance_by_position
    if by_position and short < _Short.NO_POSITIONS:
        yield from _gap(short)
        yield [("accepted at position", "$quiet")]
        in_one_row = short >= _Short.POSITIONS_IN_ONE_ROW
        yield from _short_position_lines(by_position, width) if in_one_row else _position_lines(by_position, width)
    yield from _gap(short)
    yield from _time_lines(window, width, short)


def _plain_lines(stats: ReplyStats, width: int, short: _Short) -> Iterator[Sequence[_Part]]:
    has_source = short < _Short.NO_SOURCE
    if stats.plain is None:
        yield [("plain speed not known yet", "$quiet")]
        if has_source:
            yield [("", "")]
        return
    speed = f"{stats.plain.tokens_per_second:.1f}"
    yield [("plain ", "$quiet"), (speed, ""), (" tok/s, from" if has_source else " tok/s", "$quiet")]
    if has_source:
        source = safe_text(stats.plain.source, keep_newlines=False, keep_tabs=False)
        yield [(source if len(source) <= width else source[: width - 1] + "…", "$quiet")]


def _acceptance_lines(stats: ReplyStats, window: RoundTotals, width: int, short: _Short) -> Iterator[Sequence[_Part]]:
    rate = window.acceptance_rate
    even = break_even(stats)
    line: list[_Part] = [("α ", "$quiet"), ("–" if rate is None else f"{rate:.2f}", "bold")]
    if even is not None:
        line.append(("   break-even ", "$quiet"))
        line.append(("none" if even.acceptance is None else f"{even.acceptance:.2f}", ""))
    yield line
    if short >= _Short.NO_RATES:
        return
    axes = ("1┤", " │", "0┘") if short < _Short.RATES_IN_ONE_ROW else (" │",)
    chart = columns(grouped([_judged(played) for played in stats.recent], width - 2), len(axes))
    for axis, row in zip(axes, chart, strict=True):
        yield [(axis, "$quiet"), (row, "$fate-accepted")]


def _judged(played: Round) -> tuple[int, int]:
    """Accepted, and judged, drafted tokens of a round."""
    judged = [token.fate for token in played.drafted if token.fate in (Fate.ACCEPTED, Fate.REJECTED)]
    return judged.count(Fate.ACCEPTED), len(judged)


def _round_lines(window: RoundTotals) -> Iterator[Sequence[_Part]]:
    each = window.tokens_per_round
    yield [
        ("tokens a round ", "$quiet"),
        ("–" if each is None else f"{each:.2f}", "bold"),
        ("   γ ", "$quiet"),
        (str(usual_length(window)) if window.rounds else "–", ""),
    ]


def _position_lines(by_position: Sequence[float], width: int) -> Iterator[Sequence[_Part]]:
    for position, rate in list(enumerate(by_position, start=1))[:8]:
        yield [
            (f"{position:>2} ", "$quiet"),
            (bar(rate, width - 8), "$fate-accepted"),
            (f" {rate:.2f}", ""),
        ]


def _short_position_lines(by_position: Sequence[float], width: int) -> Iterator[Sequence[_Part]]:
    fitting = list(enumerate(by_position, start=1))[: width // 8]
    yield [part for position, rate in fitting for part in ((f"{position} ", "$quiet"), (f"{rate:<6.2f}", ""))]


def _curve_lines(curve: SpeedupCurve, width: int) -> Iterator[Sequence[_Part]]:
    """Predicted speedup at each γ and the measured one. Where one γ is known only, there is no curve to draw."""
    if len(curve.predicted) < 2:
        length, predicted = next(iter(curve.predicted.items()))
        yield [(f"theory at γ {length}  ", "$quiet"), (f"{predicted:.2f}×", "$fate-accepted")]
        return
    yield [("speedup vs γ   ", "$quiet"), ("⠒⠒ theory", "$fate-accepted"), ("   ● now", "bold")]
    lengths = sorted({*curve.predicted, *([curve.now[0]] if curve.now else [])})[: (width - 4) // _LENGTH_CELLS]
    theory = [curve.predicted.get(length) for length in lengths]
    now = curve.now if curve.now is not None and curve.now[0] in lengths else None
    known = [1.0, *(value for value in theory if value is not None), *([now[1]] if now else [])]
    low, high = min(known), max(known)
    even = dot_level(1.0, low, high, _CHART_HEIGHT) // 4
    dots = curve_of(theory, low, high, _CHART_HEIGHT)
    for row, line in enumerate(dots):
        level = _CHART_HEIGHT - 1 - row
        label = f"{high if row == 0 else low:.1f}" if row in (0, _CHART_HEIGHT - 1) else "1.0" if level == even else ""
        parts: list[_Part] = [(f"{label:>3}┤" if label else "   │", "$quiet")]
        for length, dot in zip(lengths, line, strict=True):
            filler = "┄" if level == even else " "
            if now is not None and length == now[0] and dot_level(now[1], low, high, _CHART_HEIGHT) // 4 == level:
                parts += [(filler * (_LENGTH_CELLS - 1), "$quiet"), ("●", "bold")]
            else:
                style = "$quiet" if dot == " " else "$fate-accepted"
                parts += [(filler * (_LENGTH_CELLS - 1), "$quiet"), (filler if dot == " " else dot, style)]
        yield parts
    yield [("   γ" + "".join(f"{length:>{_LENGTH_CELLS}}" for length in lengths), "$quiet")]


def _time_lines(window: RoundTotals, width: int, short: _Short) -> Iterator[Sequence[_Part]]:
    parts = {
        "draft": window.draft_seconds,
        "verify": window.verify_seconds,
        "sample": window.sample_seconds,
        "other": window.other_seconds,
    }
    if not window.rounds or window.seconds <= 0:
        yield [("time of a round", "$quiet"), (" –", "")]
        return
    yield [("time of a round ", "$quiet"), (f"{window.seconds / window.rounds * 1000:.0f} ms", "bold")]
    if short >= _Short.TIME_IN_ONE_ROW:
        return
    if short >= _Short.TIME_IN_THREE_ROWS:
        parts = {name: parts[name] for name in ("draft", "verify")} | {"rest": parts["sample"] + parts["other"]}
    cells = stacked(list(parts.values()), width)
    yield [("█" * count, _TIME_STYLES[name]) for name, count in zip(parts, cells, strict=True)]
    if short >= _Short.TIME_IN_THREE_ROWS:
        line: list[_Part] = []
        for name, seconds in parts.items():
            line += [("  " if line else "", ""), (name, _TIME_STYLES[name]), (f" {seconds / window.seconds:.0%}", "")]
        yield line
        return
    for name, seconds in parts.items():
        yield [
            ("■ ", _TIME_STYLES[name]),
            (f"{name:<7}", "$quiet"),
            (f"{seconds / window.seconds:>5.0%}", ""),
            (f"{seconds / window.rounds * 1000:>8.1f} ms", "$quiet"),
        ]
