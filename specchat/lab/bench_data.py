"""A bench as JSON values: the figures, and every reply that they come from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from specchat import __version__
from specchat.lab.bench import BenchResult
from specchat.lab.bench_figures import Row, costs_of, rows_of
from specchat.lab.bench_samples import Sample, TrialResult

FORMAT = 2
"""Raised when what is written changes its meaning."""


def to_data(result: BenchResult, measured_at: str) -> dict[str, Any]:
    """Everything that was measured. Times are seconds; ratios have the 95% interval of `specchat.lab.paired`."""
    costs = costs_of(result.calibration)
    return {
        "format": FORMAT,
        "specchat": __version__,
        "measured_at": measured_at,
        "complete": not result.stopped and result.problem is None,
        "machine": asdict(result.machine),
        "build": result.loaded.build,
        "target": asdict(result.loaded.target),
        "draft": None if result.loaded.draft is None else asdict(result.loaded.draft),
        "n_ctx": result.loaded.n_ctx,
        "servers": {
            name: {"address": server.address, **asdict(server.facts)} for name, server in result.servers.items()
        },
        "notices": result.notices,
        "memory_bytes": result.memory_bytes,
        "costs": {
            "pass_seconds": {str(size): seconds for size, seconds in result.calibration.pass_seconds.items()},
            "draft_step_seconds": result.calibration.draft_step_seconds,
            "draft_catch_up_seconds": result.calibration.draft_catch_up_seconds,
            "c": None if costs is None or result.loaded.draft is None else costs.draft_step,
            "v": None if costs is None else {str(size): cost for size, cost in costs.passes.items()},
        },
        "plan": {
            "repetitions": result.plan.repetitions,
            "max_tokens": result.plan.max_tokens,
            "seed": result.plan.seed,
            "prompts": [asdict(prompt) for prompt in result.plan.prompts],
        },
        "rows": [_row(row) for row in rows_of(result)],
        "replies": [reply for done in result.trials for reply in _replies(done)],
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "label": row.label,
        "who": row.who,
        "setting": asdict(row.setting),
        **asdict(row.overall),
        "fastest_servers": row.fastest_servers,
        "categories": {name: asdict(figures) for name, figures in row.by_category.items()},
    }


def _replies(done: TrialResult) -> list[dict[str, Any]]:
    trial = done.trial
    return [
        {
            "setting": trial.setting.label,
            "category": trial.prompt.category,
            "prompt": trial.prompt.name,
            "repetition": trial.repetition,
            "who": who,
            **_sample(done.samples[who]),
        }
        for who in trial.order
    ]


def _sample(sample: Sample) -> dict[str, Any]:
    totals = sample.rounds.all
    return {
        "tokens": sample.tokens,
        "seconds": sample.seconds,
        "prompt_tokens": sample.prompt_tokens,
        "prompt_seconds": sample.prompt_seconds,
        "first_seconds": sample.first_seconds,
        "draft_prefill_seconds": sample.draft_prefill_seconds,
        "memory_bytes": sample.memory_bytes,
        "why": sample.why,
        "rounds": totals.rounds,
        "accepted": totals.accepted,
        "rejected": totals.rejected,
        "ignored": totals.ignored,
        "draft_seconds": totals.draft_seconds,
        "verify_seconds": totals.verify_seconds,
        "sample_seconds": totals.sample_seconds,
        "other_seconds": totals.other_seconds,
    }
