"""What ``specchat verify`` found, as text and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from specchat import __version__
from specchat.lab.checks import SIGNIFICANCE, Check, check_lines, judged, verdict_line, visible_shift
from specchat.lab.lossless import PairProof
from specchat.lab.toy_proof import ToyProof

FORMAT = 1
"""Raised when what is written changes its meaning."""


def toy_checks(proof: ToyProof) -> list[Check]:
    """The tests of a toy proof, judged."""
    return judged(proof.tests())


def toy_report(proof: ToyProof) -> str:
    """The whole report of ``--toy``."""
    checks = toy_checks(proof)
    head = [
        f"A toy target whose law is known: a reply of {proof.num_tokens:,} tokens with each setting, temperature 0.7.",
        "Drafts: the target blurred, and a stranger. cut: with top-k, top-p and min-p.",
    ]
    counted = proof.tokens_a_rule
    return _text(head, checks, proof.complete, [_resolution(f"{counted:,} tokens", counted, checks)])


def pair_report(proof: PairProof) -> str:
    """The whole report on a pair."""
    plan, loaded = proof.plan, proof.loaded
    draft = "no draft model" if loaded.draft is None else f"{loaded.draft.name} ({loaded.draft.quantization})"
    sampling = plan.settings.sampling
    head = [
        f"{loaded.target.name} ({loaded.target.quantization}) ⟵ {draft}, context {loaded.n_ctx}",
        f"{loaded.build}, {loaded.target.device}",
        f"{len(plan.prompts)} prompts: replies of up to {plan.num_tokens} tokens at temperature 0, and under each rule",
        f"{plan.num_samples} short ones after a text of each at temperature {sampling.temperature:g}, seed {plan.seed}",
        *proof.notices,
    ]
    checks = proof.checks()
    shown = _resolution(f"{proof.num_replies} short replies", proof.num_replies, checks)
    finer = "More --samples make that finer; `specchat verify --toy` looks at the rules themselves." if shown else ""
    return _text(head, checks, proof.complete, [shown, finer])


def toy_data(proof: ToyProof) -> dict[str, Any]:
    """The same as JSON values; infinite numbers, which JSON has no word for, are null."""
    return _data(toy_checks(proof), proof.complete, {"toy": True, "num_tokens": proof.num_tokens})


def pair_data(proof: PairProof) -> dict[str, Any]:
    """The same as JSON values; infinite numbers, which JSON has no word for, are null."""
    plan = proof.plan
    more = {
        "toy": False,
        "build": proof.loaded.build,
        "target": asdict(proof.loaded.target),
        "draft": None if proof.loaded.draft is None else asdict(proof.loaded.draft),
        "n_ctx": proof.loaded.n_ctx,
        "num_tokens": plan.num_tokens,
        "num_samples": plan.num_samples,
        "seed": plan.seed,
        "settings": asdict(plan.settings),
        "prompts": [asdict(prompt) for prompt in plan.prompts],
        "noise": {"distance": proof.noise.distance, "variation": proof.noise.variation, **asdict(proof.noise)},
        "variations": proof.variations,
        "temperature_0": {mode: asdict(diff) for mode, diff in proof.diffs.items()},
        "notices": proof.notices,
    }
    return _data(proof.checks(), proof.complete, more)


def _resolution(what: str, counted: int, checks: Sequence[Check]) -> str:
    """What so much counting with each rule can show."""
    num_tests = sum(check.fit is not None for check in checks)
    if not counted or not num_tests:
        return ""
    shift = visible_shift(counted, num_tests)
    return f"{what} with a rule show a mistake that moves a probability by {shift:.2g} or more."


def _text(head: Sequence[str], checks: Sequence[Check], complete: bool, remarks: Sequence[str] = ()) -> str:
    return "\n".join([*head, "", *check_lines(checks), *filter(None, remarks), verdict_line(checks, complete)]) + "\n"


def _data(checks: Sequence[Check], complete: bool, more: dict[str, Any]) -> dict[str, Any]:
    data = {
        "format": FORMAT,
        "specchat": __version__,
        "complete": complete,
        "lossless": complete and all(check.holds for check in checks),
        "significance": SIGNIFICANCE,
        "checks": [asdict(check) for check in checks],
    }
    return {key: _json(value) for key, value in (data | more).items()}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
