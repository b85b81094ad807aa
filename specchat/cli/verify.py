"""``specchat verify``: checks that speculation is lossless, on the pair at hand or on a toy."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from specchat.cli import INTERRUPTED
from specchat.cli.choices import Choices, World, look_around
from specchat.cli.files import bring
from specchat.cli.terminal import Interrupt, ProgressLine, interrupts, write_text
from specchat.core.safe_text import safe_json, safe_text
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import ReplySettings
from specchat.engine.process import ProcessEngine
from specchat.errors import UsageError
from specchat.lab.bench_plan import one_of_each
from specchat.lab.checks import Check, require_tests
from specchat.lab.lossless import PairProof, ProofPlan, Verification
from specchat.lab.lossless_report import pair_data, pair_report, toy_checks, toy_data, toy_report
from specchat.lab.prompts import PROMPTS
from specchat.lab.toy_proof import NUM_TOKENS, RULES, ToyProof, ToyWorld, prove_toy, toy_settings

_PAIR_OPTIONS = ("pair", "target", "draft", "samples")


def verify(options: argparse.Namespace) -> int:
    """Checks and reports. Returns the exit status: 0 only where everything was checked and holds."""
    with interrupts() as interrupt:
        if hasattr(options, "toy"):
            return _verify_toy(options, interrupt)
        world = look_around()
        choices = Choices(options, world)
        proof = _verify_pair(_plan(options, choices), choices, world, interrupt)
    if proof is None:
        return INTERRUPTED
    checks = proof.checks()
    _write(options, pair_report(proof), pair_data(proof))
    if proof.problem is not None:
        raise proof.problem
    return _status(checks, proof.complete)


def _verify_toy(options: argparse.Namespace, interrupt: Interrupt) -> int:
    for name in _PAIR_OPTIONS:
        if hasattr(options, name):
            raise UsageError(f"--{name} is for a pair, and --toy needs none.", "Leave one of them out.")
    proof = _prove_toy(getattr(options, "tokens", NUM_TOKENS), _seed(options), interrupt)
    checks = toy_checks(proof)
    if proof.complete:
        require_tests(checks, proof.tokens_a_rule)
    _write(options, toy_report(proof), toy_data(proof))
    return _status(checks, proof.complete)


def _prove_toy(num_tokens: int, seed: int, interrupt: Interrupt) -> ToyProof:
    from specchat.engine.toy import START, toy_laws, write_toy  # the decoder, which a real pair has in its own process

    line = ProgressLine(sys.stderr)
    try:
        return prove_toy(
            ToyWorld(*toy_laws(), START, write_toy),
            toy_settings(num_tokens, seed),
            line.show,
            lambda: bool(interrupt),
        )
    finally:
        line.clear()


def _plan(options: argparse.Namespace, choices: Choices) -> ProofPlan:
    settings = choices.reply_settings("watch")
    if settings.sampling.temperature == 0:  # which leaves nothing to count; replies at 0 are compared in any case
        settings = replace(settings, sampling=replace(settings.sampling, temperature=SamplingParams().temperature))
    given = ProofPlan(
        prompts=one_of_each(PROMPTS),
        settings=ReplySettings(settings.sampling, rule=settings.rule, drafter=choices.drafter("watch")),
        rules=(options.rule,) if hasattr(options, "rule") else RULES,
        seed=_seed(options),
    )
    return replace(
        given,
        num_tokens=getattr(options, "tokens", given.num_tokens),
        num_samples=getattr(options, "samples", given.num_samples),
    )


def _seed(options: argparse.Namespace) -> int:
    seed: int = getattr(options, "seed", 1)
    return seed


def _verify_pair(plan: ProofPlan, choices: Choices, world: World, interrupt: Interrupt) -> PairProof | None:
    pair = choices.pair()
    models = [pair.target] if pair.draft is None else [pair.target, pair.draft]
    paths = bring(models, world.paths.models, offline=choices.offline, interrupt=interrupt)
    load = replace(choices.load("watch"), target=str(paths[0]), draft=str(paths[1]) if pair.draft is not None else None)
    line = ProgressLine(sys.stderr)
    engine = ProcessEngine()
    try:
        verification = Verification(engine, plan, on_progress=line.show, should_stop=lambda: bool(interrupt))
        return verification.run(load)
    finally:
        line.clear()
        engine.close()


def _write(options: argparse.Namespace, text: str, data: dict[str, Any]) -> None:
    if hasattr(options, "json"):
        write_text(safe_json(json.dumps(data, ensure_ascii=False, allow_nan=False)) + "\n")
    else:
        write_text(safe_text(text))


def _status(checks: Sequence[Check], complete: bool) -> int:
    if not complete:
        return INTERRUPTED
    return 0 if all(check.holds for check in checks) else 1
