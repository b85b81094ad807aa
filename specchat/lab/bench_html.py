"""A bench as one HTML page with plots: it needs no script and no network, and is light or dark as the system is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specchat.core.fate_style import DARK_BACKGROUND, DARK_TEXT, LIGHT_BACKGROUND, LIGHT_TEXT
from specchat.html_page import escaped, html_page
from specchat.lab.bench import BenchResult
from specchat.lab.bench_figures import Figures, Row, costs_of, rows_of
from specchat.lab.bench_report import LEGEND, head, notes
from specchat.lab.paired import Ratio
from specchat.lab.svg import NUM_COLOURS, Dot, Line, dot_rows, legend, line_chart, scatter, stacked_rows

_LIGHT = ("#0B66A8", "#C24A00", "#00795A", "#A8427E", "#8A6A00", "#3E8FC4", "#6B3FA0", "#5B6470")
_DARK = ("#6FB7EE", "#F29A5B", "#4CC9A2", "#E58FC0", "#D9BC4A", "#A5D8FF", "#B79BE8", "#A8B0BA")
_PARTS = ("draft's prefill", "draft", "verify", "sample", "other")

_STYLE = """:root {{ color-scheme: light dark; {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif;
  background: var(--background); color: var(--text); }}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1.05rem; margin: 2rem 0 .3rem; }}
.facts, .legend, .note {{ font-size: .85rem; }} .note {{ white-space: pre-line; }}
.legend span {{ margin-right: 1.2em; }} .key {{ width: .8em; height: .8em; margin-right: .35em; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-size: .85rem; }}
th, td {{ padding: .1rem .6rem; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
th:first-child {{ text-align: left; }} tr + tr {{ border-top: 1px solid var(--grid); }} td small {{ opacity: .7; }}
.plot {{ width: 100%; height: auto; }} .plot text {{ font-size: 11px; fill: var(--text); }}
.grid {{ stroke: var(--grid); }} .mark {{ stroke: var(--text); stroke-dasharray: 4 3; }}
.line {{ fill: none !important; stroke-width: 2; }} .whisker {{ stroke-width: 2; }}
{colours}"""


def to_html(result: BenchResult, measured_at: str) -> str:
    """The page."""
    rows = rows_of(result)
    title = f"specchat bench: {result.loaded.target.name}"
    facts = [*head(result), f"measured at {measured_at}"]
    return html_page(title, facts, _style(), "\n".join(section for section in _sections(result, rows) if section))


def _sections(result: BenchResult, rows: Sequence[Row]) -> Iterator[str]:
    yield _section("Figures", _table(rows), "\n".join(LEGEND))
    yield _speedups("Speedup against plain decoding, by setting and category", rows, against=False)
    yield _speedups("Ratio to the (fastest) other server, by setting and category", rows, against=True)
    yield _pass_costs(result)
    yield _acceptance(rows)
    yield _predictions(rows)
    yield _splits(rows)
    said = "\n".join(notes(result, rows))
    yield _section("Notes", "", said) if said else ""


def _section(title: str, body: str, note: str = "") -> str:
    lines = "\n".join(map(escaped, note.splitlines()))
    below = f'\n<p class="note">{lines}</p>' if note else ""
    return f"<section>\n<h2>{escaped(title)}</h2>\n{body}{below}\n</section>"


def _table(rows: Sequence[Row]) -> str:
    with_server = any(row.overall.against for row in rows)
    titles = ["setting", "tokens/s", "× plain", *(["× server"] if with_server else [])]
    titles += ["α", "tokens a round", "predicted", "ceiling", "own time", "first token", "memory"]
    head_cells = "".join(f"<th>{escaped(title)}</th>" for title in titles)
    lines = []
    for row in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in _cells(row.overall, with_server))
        lines.append(f"<tr><th>{escaped(row.label)}</th>{cells}</tr>")
    body = "\n".join(lines)
    return f'<div class="scroll"><table>\n<tr>{head_cells}</tr>\n{body}\n</table></div>'


def _cells(each: Figures, with_server: bool) -> list[str]:
    memory = None if each.memory_bytes is None else each.memory_bytes / 2**30
    return [
        _shown(each.tokens_per_second, ".1f"),
        _ratio_cell(each.speedup),
        *([_ratio_cell(each.against)] if with_server else []),
        _shown(each.acceptance_rate, ".2f"),
        _shown(each.tokens_per_round, ".2f"),
        _shown(each.predicted_speedup, ".2f"),
        _shown(each.share_of_ceiling, ".0%"),
        _shown(each.outside_share, ".1%"),
        _shown(each.first_token_seconds, ".2f", " s"),
        _shown(memory, ".2f", " GiB"),
    ]


def _shown(value: float | None, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


def _ratio_cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    return f"{ratio.value:.2f}" + (f" <small>{_interval(ratio)}</small>" if ratio.low is not None else "")


def _interval(ratio: Ratio) -> str:
    return "" if ratio.low is None or ratio.high is None else f"{ratio.low:.2f}–{ratio.high:.2f}"


def _speedups(title: str, rows: Sequence[Row], *, against: bool) -> str:
    """A row a setting: the large dot is all prompts with the interval, the small ones are the categories."""
    categories = list(dict.fromkeys(name for row in rows for name in row.by_category))
    drawn = []
    for row in rows:
        figures = {"all": row.overall, **row.by_category}
        ratios = {name: each.against if against else each.speedup for name, each in figures.items()}
        dots = [
            Dot(ratio.value, (categories.index(name) + 1) % NUM_COLOURS, _hint(row, name, ratio), small=True)
            for name, ratio in ratios.items()
            if ratio is not None and name != "all"
        ]
        if (whole := ratios["all"]) is not None:
            dots.append(Dot(whole.value, 0, _hint(row, "all prompts", whole), whole.low, whole.high))
            drawn.append((row.label, dots))
    return _section(title, dot_rows(drawn, 1.0, title) + legend(["all prompts", *categories])) if drawn else ""


def _hint(row: Row, name: str, ratio: Ratio) -> str:
    return f"{row.label}, {name}: {ratio.value:.3f} {_interval(ratio)}".rstrip()


def _pass_costs(result: BenchResult) -> str:
    costs = costs_of(result.calibration)
    if costs is None:
        return ""
    passes = Line("T(n) ÷ T(1)", sorted(costs.passes.items()))
    seconds = result.calibration.pass_seconds[1]
    note = f"A plain step takes {seconds * 1000:.2f} ms."
    if result.loaded.draft is not None:
        note += f" A draft step is c = {costs.draft_step:.2f} of it; the catch-up {costs.catch_up:.2f}."
    title = "What a pass of n tokens costs, in plain steps"
    return _section(title, line_chart([passes], title, "n", "T(n) ÷ T(1)", from_zero=True), note)


def _acceptance(rows: Sequence[Row]) -> str:
    """The settings with the most positions; more lines than colours could not be told apart."""
    known = [row for row in rows if len(row.overall.acceptance_by_position) > 1]
    chosen = sorted(known, key=lambda row: -len(row.overall.acceptance_by_position))[:NUM_COLOURS]
    lines = [Line(row.label, list(enumerate(row.overall.acceptance_by_position, 1))) for row in chosen]
    title = "α by position: kept ÷ judged at that position"
    drawn = line_chart(lines, title, "position", "α", from_zero=True) + legend(line.name for line in lines)
    return _section(title, drawn) if lines else ""


def _predictions(rows: Sequence[Row]) -> str:
    dots = [
        (
            row.overall.predicted_speedup,
            Dot(row.overall.speedup.value, 0, f"{row.label}: {_shown(row.overall.share_of_ceiling, '.0%')}"),
        )
        for row in rows
        if row.overall.predicted_speedup is not None and row.overall.speedup is not None
    ]
    title = "Predicted and measured speedup"
    note = (
        "On the line both are the same; below it lies our own overhead, the draft's prefill, or the prediction's error."
    )
    return _section(title, scatter(dots, title, "predicted", "measured"), note) if dots else ""


def _splits(rows: Sequence[Row]) -> str:
    known = [(row.label, row.overall.split) for row in rows if row.overall.split is not None]
    bars = [
        (label, (split.draft_prefill, split.draft, split.verify, split.sample, split.other)) for label, split in known
    ]
    title = "Where the time went"
    return _section(title, stacked_rows(bars, _PARTS, title) + legend(_PARTS)) if bars else ""


def _style() -> str:
    def variables(colours: Sequence[str], background: str, text: str, grid: str) -> str:
        series = " ".join(f"--c{i}: {colour};" for i, colour in enumerate(colours))
        return f"{series} --background: {background}; --text: {text}; --grid: {grid};"

    return _STYLE.format(
        light=variables(_LIGHT, LIGHT_BACKGROUND, LIGHT_TEXT, "#D8DCE0"),
        dark=variables(_DARK, DARK_BACKGROUND, DARK_TEXT, "#3A3A3A"),
        colours="\n".join(f".c{i} {{ fill: var(--c{i}); stroke: var(--c{i}); }}" for i in range(NUM_COLOURS)),
    )
