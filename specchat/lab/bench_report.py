"""A bench as text: tables that fit a terminal of 100 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from specchat.core.theory import RoundCosts, best_num_draft_tokens, break_even_acceptance
from specchat.lab.bench import BenchResult
from specchat.lab.bench_figures import Figures, Row, costs_of, rows_of
from specchat.lab.bench_plan import OURS
from specchat.lab.paired import Ratio

_LABEL = 22
_DASH = "–"
_GPU_COSTS = (0.05, 0.1, 0.2, 0.4)
_POSITIONS = 8

LEGEND = (
    "tok/s    from the end of the target's prefill to the end of the reply, everything included",
    "× plain  against plain decoding of the same prompt right before or after: the geometric mean over",
    "         prompts of the median over repetitions, with a 95% bootstrap interval over repetitions",
    "α        accepted ÷ judged drafted tokens; a round: tokens that a round commits",
    "pred.    tokens a round ÷ the measured cost of these rounds; ceil.: measured ÷ predicted speedup",
    "own      time outside the models' passes (sampling, verdict, events), as a share of the rounds",
    "first    seconds to the first token, from a cold cache",
)


def report(result: BenchResult) -> str:
    """The whole report."""
    rows = rows_of(result)
    sections = [
        list(head(result)),
        list(_main_table(result, rows)),
        list(LEGEND),
        list(_category_table("× plain by category", rows, against=False)),
        [*_category_table("× server by category", rows, against=True), *_fastest_servers(result, rows)],
        list(_rounds_table(rows)),
        list(_costs(result, rows)),
        list(notes(result, rows)),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def head(result: BenchResult) -> Iterator[str]:
    """What was measured, where, and how much."""
    target, draft = result.loaded.target, result.loaded.draft
    drafted = "no draft model" if draft is None else f"{draft.name} ({draft.quantization})"
    yield f"{target.name} ({target.quantization}) ⟵ {drafted}, context {result.loaded.n_ctx}"
    yield result.machine.text
    yield f"{result.loaded.build}; {result.machine.system}"
    for name, server in result.servers.items():
        yield f"{name} at {server.address}: {server.facts.model}, build {server.facts.build}"
    plan = result.plan
    memory = "" if result.memory_bytes is None else f", at most {result.memory_bytes / 2**30:.2f} GiB resident"
    yield (
        f"{len(plan.prompts)} prompts, up to {plan.max_tokens} tokens, {plan.repetitions} repetitions, "
        f"{sum(len(done.samples) for done in result.trials)} replies{memory}"
    )


def _main_table(result: BenchResult, rows: Sequence[Row]) -> Iterator[str]:
    columns: list[tuple[str, int, Callable[[Figures], str]]] = [
        ("tok/s", 6, lambda each: _number(each.tokens_per_second, 1)),
        ("× plain", 15, lambda each: _ratio(each.speedup)),
        ("× server", 15, lambda each: _ratio(each.against)),
        ("α", 5, lambda each: _number(each.acceptance_rate, 2)),
        ("a round", 7, lambda each: _number(each.tokens_per_round, 2)),
        ("pred.", 6, lambda each: _number(each.predicted_speedup, 2)),
        ("ceil.", 5, lambda each: _percent(each.share_of_ceiling)),
        ("own", 5, lambda each: _percent(each.outside_share, 1)),
        ("first", 5, lambda each: _number(each.first_token_seconds, 2)),
    ]
    if not result.servers:
        del columns[2]
    widths = [width for _, width, _ in columns]
    yield _line("setting", [title for title, _, _ in columns], widths)
    for row in rows:
        yield _line(row.label, [cell(row.overall) for _, _, cell in columns], widths)


def _category_table(title: str, rows: Sequence[Row], *, against: bool) -> Iterator[str]:
    categories = list(dict.fromkeys(name for row in rows for name in row.by_category))

    def value(row: Row, name: str) -> Ratio | None:
        found = row.by_category.get(name)
        return None if found is None else found.against if against else found.speedup

    known = [row for row in rows if any(value(row, name) for name in categories)]
    if known:
        widths = [max(len(name), 5) for name in categories]
        yield _line(title, categories, widths)
        for row in known:
            ratios = [value(row, name) for name in categories]
            yield _line(row.label, [_number(None if ratio is None else ratio.value, 2) for ratio in ratios], widths)


def _fastest_servers(result: BenchResult, rows: Sequence[Row]) -> Iterator[str]:
    """Which of several servers each category of the table is against."""
    if len(result.servers) > 1:
        yield "of several servers against the fastest with prompts of the same category:"
        for row in rows:
            if row.who in OURS and row.fastest_servers:
                named = ", ".join(f"{category}: {who}" for category, who in row.fastest_servers.items())
                yield f"{row.label:<{_LABEL}} {named}"


def _rounds_table(rows: Sequence[Row]) -> Iterator[str]:
    ours = [row for row in rows if row.overall.split is not None]
    if not ours:
        return
    widths = [7, 6, 6, 6, 6, 2]
    yield _line("time of a reply", ["prefill", "draft", "verify", "sample", "other", ""], widths) + "α by position"
    for row in ours:
        split = row.overall.split
        assert split is not None
        parts = (split.draft_prefill, split.draft, split.verify, split.sample, split.other)
        positions = row.overall.acceptance_by_position
        rates = " ".join(_number(rate, 2) for rate in positions[:_POSITIONS]) + " …" * (len(positions) > _POSITIONS)
        yield (_line(row.label, [*(_percent(part, 1) for part in parts), ""], widths) + rates).rstrip()


def _costs(result: BenchResult, rows: Sequence[Row]) -> Iterator[str]:
    costs = costs_of(result.calibration)
    if costs is None:
        return
    seconds = result.calibration.pass_seconds
    yield f"T(1) {seconds[1] * 1000:.2f} ms, a plain step of the target; T(n) ÷ T(1) by n (v is that of γ + 1):"
    yield from _wrapped(f"{size}: {cost:.2f}" for size, cost in sorted(costs.passes.items()))
    if result.loaded.draft is None:
        return
    yield f"c {costs.draft_step:.2f}, a draft step; {costs.catch_up:.2f} more after a round in which all were accepted"
    yield "α at which drafting γ tokens pays here:"
    lengths = [size - 1 for size in sorted(costs.passes) if 1 < size <= _POSITIONS + 1]
    even = ((length, break_even_acceptance(length, costs)) for length in lengths)
    yield from _wrapped(f"γ{length}: {'none' if rate is None else f'{rate:.2f}'}" for length, rate in even)
    rates = _longest_acceptance(rows)
    if rates:
        yield "What this acceptance would bring where passes of all sizes cost the same (v = 1, as on a large GPU):"
        yield from _wrapped(f"c {c:g}: {speedup:.2f}× at γ{length}" for c, length, speedup in elsewhere(rates))


def elsewhere(rates: Sequence[float]) -> Iterator[tuple[float, int, float]]:
    """The draft's cost c, the best γ and its predicted speedup with this acceptance by position, for v = 1."""
    for c in _GPU_COSTS:
        costs = RoundCosts(dict.fromkeys(range(1, len(rates) + 2), 1.0), draft_step=c)
        yield c, *best_num_draft_tokens(rates, costs)


def _longest_acceptance(rows: Sequence[Row]) -> tuple[float, ...]:
    """α by position of the draft model's longest fixed γ under the token rule, whose positions do not depend on γ."""
    found = [
        row.overall.acceptance_by_position
        for row in rows
        if row.setting.drafter == "draft" and row.setting.rule == "token" and row.setting.mode == "watch"
    ]
    return max(found, key=len, default=())


def notes(result: BenchResult, rows: Sequence[Row]) -> Iterator[str]:
    """Sentences that a person should see."""
    yield from result.notices
    for row in rows:
        if row.who == "ours" and row.overall.why:
            yield f"{row.label}: {row.overall.why}"
    if result.stopped or result.problem is not None:
        yield "Stopped before all was measured: the figures are of what there is."


def _line(label: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{label:<{_LABEL}} {' '.join(padded)}"


def _wrapped(parts: Iterable[str]) -> Iterator[str]:
    """The parts in lines of at most 100 columns."""
    line = " "
    for part in parts:
        if len(line) + len(part) + 2 > 100:
            yield line.rstrip()
            line = " "
        line += f" {part} "
    if line.strip():
        yield line.rstrip()


def _number(value: float | None, digits: int) -> str:
    return _DASH if value is None else f"{value:.{digits}f}"


def _percent(value: float | None, digits: int = 0) -> str:
    return _DASH if value is None else f"{value:.{digits}%}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return _DASH
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}" + " " * 10
    return f"{ratio.value:.2f} {ratio.low:.2f}–{ratio.high:.2f}"
