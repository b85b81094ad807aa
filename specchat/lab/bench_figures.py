"""The figures of a bench: of each setting, over all prompts and in each category. Definitions: product.md."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from specchat.core.theory import RoundCosts, share_of_ceiling
from specchat.engine.interface import Calibration
from specchat.lab.bench import BenchResult
from specchat.lab.bench_plan import OURS, Setting, Who
from specchat.lab.bench_samples import RoundsByDrafter, Sample, TrialResult
from specchat.lab.paired import Ratio, geometric_mean_of_medians, paired_ratio


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where the time after the target's prefill went, in shares of it."""

    draft_prefill: float
    draft: float
    verify: float
    sample: float
    other: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one setting.

    Attributes:
        replies: how many replies stand behind it.
        tokens_per_second: over prompts the geometric mean of each one's median.
        speedup: against plain decoding, pair by pair.
        against: against the other server, pair by pair; of several against the one that was the fastest with the
            prompts of the same category.
        acceptance_rate, acceptance_by_position, tokens_per_round: over all rounds together.
        predicted_speedup: from these rounds and the measured costs of passes and draft steps.
        share_of_ceiling: measured ÷ predicted speedup.
        outside_share: sampling and all else that is ours (`sample` and `other`), as a share of the rounds.
        split: where the time went.
        first_token_seconds: from a cold cache; the median.
        memory_bytes: the most resident memory after a reply.
        why: what was said last about the draft length.
    """

    replies: int
    tokens_per_second: float | None
    speedup: Ratio | None
    against: Ratio | None
    acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    tokens_per_round: float | None
    predicted_speedup: float | None
    share_of_ceiling: float | None
    outside_share: float | None
    split: TimeSplit | None
    first_token_seconds: float | None
    memory_bytes: int | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report: a setting, plain decoding or another server, at one temperature.

    Attributes:
        fastest_servers: by category the server that `Figures.against` is against.
    """

    who: Who
    setting: Setting
    label: str
    overall: Figures
    by_category: dict[str, Figures]
    fastest_servers: dict[str, Who]


def costs_of(calibration: Calibration) -> RoundCosts | None:
    """What a round costs, in plain steps; None where that was not measured."""
    try:
        return RoundCosts.from_seconds(
            calibration.pass_seconds, calibration.draft_step_seconds, calibration.draft_catch_up_seconds
        )
    except ValueError:
        return None


def rows_of(result: BenchResult) -> list[Row]:
    """The report's lines: by temperature plain decoding, the other servers, then the settings in their order."""
    costs = costs_of(result.calibration)
    done = result.trials
    rows = []
    for plain in dict.fromkeys(setting.plain for setting in result.plan.settings):
        near = [each for each in done if each.trial.setting.plain == plain]
        rows.append(_row("plain", plain, plain.label, near, costs))
        rows += [_row(name, plain, f"{name} T{plain.temperature:g}", near, costs) for name in result.servers]
        for setting in result.plan.settings:
            if setting.plain == plain and not setting.is_plain:
                own = [each for each in near if each.trial.setting == setting]
                rows.append(_row("ours", setting, setting.label, own, costs))
    return [row for row in rows if row.overall.replies]


def _row(who: Who, setting: Setting, label: str, trials: Sequence[TrialResult], costs: RoundCosts | None) -> Row:
    by_category: dict[str, list[TrialResult]] = defaultdict(list)
    for each in trials:
        by_category[each.trial.prompt.category].append(each)
    fastest = {name: found for name, done in by_category.items() if (found := _fastest_server(done)) is not None}
    return Row(
        who,
        setting,
        label,
        figures(trials, who, costs, fastest),
        {name: figures(done, who, costs, fastest) for name, done in by_category.items()},
        fastest,
    )


def _fastest_server(trials: Sequence[TrialResult]) -> Who | None:
    """The other server with the most tokens a second in these trials. None without one.

    It is chosen by the figures that it is then compared by, chance included: that flatters it, never us.
    """
    servers = dict.fromkeys(who for each in trials for who in each.samples if who not in OURS)
    return max(servers, key=lambda who: _average_speed(trials, who) or 0.0, default=None)


def figures(
    trials: Sequence[TrialResult], who: Who, costs: RoundCosts | None, fastest_servers: Mapping[str, Who]
) -> Figures:
    """The figures of what ``who`` wrote in these trials; ``fastest_servers``: by category."""
    samples = [each.samples[who] for each in trials if who in each.samples]
    rounds = RoundsByDrafter()
    for sample in samples:
        rounds.include(sample.rounds)
    totals = rounds.all
    speedup = None if who == "plain" else _ratio(trials, who, lambda _: "plain")
    against = _ratio(trials, who, fastest_servers.get) if who in OURS else None
    predicted = None
    if costs is not None and who == "ours" and totals.drafting_rounds:
        predicted = rounds.predicted_speedup(costs)
    return Figures(
        replies=len(samples),
        tokens_per_second=_average_speed(trials, who),
        speedup=speedup,
        against=against,
        acceptance_rate=totals.acceptance_rate,
        acceptance_by_position=totals.acceptance_by_position,
        tokens_per_round=totals.tokens_per_round,
        predicted_speedup=predicted,
        share_of_ceiling=share_of_ceiling(speedup.value, predicted) if speedup and predicted else None,
        outside_share=(totals.sample_seconds + totals.other_seconds) / totals.seconds if totals.seconds else None,
        split=_split(samples, rounds),
        first_token_seconds=_median(_first_token(each, who) for each in trials),
        memory_bytes=max((each.memory_bytes for each in samples if each.memory_bytes is not None), default=None),
        why=next((each.why for each in reversed(samples) if each.why), None),
    )


def _speed(sample: Sample | None) -> float | None:
    return None if sample is None else sample.tokens_per_second


def _average_speed(trials: Sequence[TrialResult], who: Who) -> float | None:
    return geometric_mean_of_medians(_by_prompt(trials, lambda each: _speed(each.samples.get(who))))


def _by_prompt(trials: Sequence[TrialResult], value: Callable[[TrialResult], float | None]) -> list[list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for each in trials:
        if (found := value(each)) is not None:
            groups[each.trial.prompt.name].append(found)
    return list(groups.values())


def _ratio(trials: Sequence[TrialResult], who: Who, other: Callable[[str], Who | None]) -> Ratio | None:
    """Against who ``other`` names for a trial's category."""

    def ratio(each: TrialResult) -> float | None:
        rival = other(each.trial.prompt.category)
        ours, theirs = (_speed(each.samples.get(name)) if name else None for name in (who, rival))
        return ours / theirs if ours and theirs else None

    return paired_ratio(_by_prompt(trials, ratio))


def _split(samples: Sequence[Sample], rounds: RoundsByDrafter) -> TimeSplit | None:
    totals = rounds.all
    prefill = sum(sample.draft_prefill_seconds for sample in samples)
    whole = totals.seconds + prefill
    if whole <= 0:
        return None
    parts = (prefill, totals.draft_seconds, totals.verify_seconds, totals.sample_seconds, totals.other_seconds)
    return TimeSplit(*(part / whole for part in parts))


def _first_token(done: TrialResult, who: Who) -> float | None:
    """A cold cache's prefill, which one of our two replies had, and the time from there to the first token.

    None where another server read the prompt from a cold cache and we did not, or we did alone: medians over different
    prompts would compare short ones with long ones.
    """
    sample = done.samples.get(who)
    ours = [done.samples[name].prompt_seconds for name in done.trial.order if name in OURS]
    prefill = next((seconds for seconds in ours if seconds is not None), None)
    servers_cold = all(each.prompt_seconds is not None for name, each in done.samples.items() if name not in OURS)
    if sample is None or prefill is None or not servers_cold:
        return None
    return prefill + sample.first_seconds if who in OURS else sample.prompt_seconds


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
