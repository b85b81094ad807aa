"""``verify --toy``: sound code passes, and every plausible mistake is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specchat.core import verification
from specchat.core.events import Round
from specchat.core.sampling import SamplingParams, distribution
from specchat.core.settings import ReplySettings
from specchat.core.verification import BlockRule, TokenRule, VerificationRule
from specchat.engine import toy
from specchat.lab.checks import judged, level, verdict_line
from specchat.lab.toy_proof import WAYS, ToyWorld, exact_law, label, prove_toy, toy_settings

WORLD = ToyWorld(*toy.toy_laws(), toy.START, toy.write_toy)
TESTS_OF_A_RUN = 2 * len(toy_settings()) + 3
SHORT = 1_500


def settings_of(rule: str, length: int | None = 4, truncated: bool = False) -> ReplySettings:
    return next(
        each
        for each in toy_settings()
        if (each.rule, each.num_draft_tokens, each.sampling.truncates) == (rule, length, truncated)
    )


def smallest_p(*settings: ReplySettings) -> float:
    return min(test.fit.p_value for test in prove_toy(WORLD, settings).tests())


def test_sound_code_passes_with_every_setting() -> None:
    """Seeds are fixed, so that this never fails by chance: with others it would once in 10,000 runs."""
    told: list[tuple[float, str]] = []
    proof = prove_toy(WORLD, toy_settings(500), lambda _, share, detail: told.append((share, detail)))
    checks = judged(proof.tests())
    assert proof.complete
    assert len(checks) == TESTS_OF_A_RUN == 27
    assert [check for check in checks if not check.holds] == []
    assert all(check.fit is not None and check.fit.df > 0 for check in checks)
    assert verdict_line(checks, proof.complete) == "Lossless: all 27 checks hold."
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert dict.fromkeys(detail for _, detail in told) == dict.fromkeys(map(label, toy_settings()))


def test_the_same_seed_writes_the_same_and_another_seed_does_not() -> None:
    for settings in (settings_of("token"), settings_of("block", None)):
        short = replace(settings, max_tokens=300)
        one, again, other = (prove_toy(WORLD, [each]).tests() for each in (short, short, replace(short, seed=99)))
        assert one == again
        assert one != other


def test_the_adaptive_rule_drafts_and_stops_drafting() -> None:
    """What it is worth: without rounds of several lengths the setting would test nothing new."""
    lengths = {
        event.num_draft_tokens
        for event in toy.write_toy(replace(settings_of("token", None), max_tokens=1_500))
        if isinstance(event, Round)
    }
    assert 0 in lengths
    assert len(lengths) > 3


@pytest.mark.parametrize(
    "params",
    [
        WAYS[0][0],
        WAYS[1][0],
        SamplingParams(temperature=0),
        SamplingParams(temperature=1.3, top_k=2, top_p=0.5, min_p=0),
        SamplingParams(temperature=0.4, top_k=0, top_p=0.8, min_p=0.3),
    ],
)
def test_the_law_that_is_worked_out_is_the_one_that_is_drawn_from(params: SamplingParams) -> None:
    for matrix in (WORLD.target, *WORLD.drafts.values()):
        expected = [distribution(np.log(row).astype(np.float32), params) for row in matrix]
        for law, row in zip(expected, exact_law(matrix, params), strict=True):
            np.testing.assert_allclose(row, law.probabilities(np.arange(row.size, dtype=np.int32)), atol=1e-6)
    assert ((exact_law(WORLD.target, WAYS[1][0]) == 0).any(axis=1)).any()  # so that there is something forbidden


class ResamplesFromP(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return p[num_accepted]


class ResamplesFromPInTheBlock(BlockRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return p[num_accepted]


class AcceptsAll(TokenRule):
    def num_accepted(self, thresholds, draws):
        return int(thresholds.size)


class BonusFromQ(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        if 0 < num_accepted == len(drafted):
            return q[-1]
        return super().next_distribution(num_accepted, drafted, q, p)


class OneForAll(BlockRule):
    """The joint ratio alone, without what the next position could make good."""

    def thresholds(self, drafted, q, p):
        return self.joint_ratios(drafted, q, p)


class LowerThresholds(TokenRule):
    def thresholds(self, drafted, q, p):
        return 0.8 * super().thresholds(drafted, q, p)


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("token", ResamplesFromP()),
        ("block", ResamplesFromPInTheBlock()),
        ("match", ResamplesFromP("match")),
        ("token", AcceptsAll()),
        ("block", OneForAll()),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_a_broken_rule_is_found(rule: str, broken: VerificationRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verification._RULES, rule, broken)
    assert smallest_p(replace(settings_of(rule), max_tokens=SHORT)) < level(TESTS_OF_A_RUN)


def test_a_bonus_token_that_the_draft_chooses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verification._RULES, "token", BonusFromQ())
    assert smallest_p(replace(settings_of("token", 1, truncated=True), max_tokens=SHORT)) < level(TESTS_OF_A_RUN)


def test_thresholds_that_are_too_low_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one setting where they are a fifth too low. A tenth takes a whole run, which would take too long here."""
    monkeypatch.setitem(verification._RULES, "token", LowerThresholds())
    assert smallest_p(replace(settings_of("token"), max_tokens=4 * SHORT)) < level(TESTS_OF_A_RUN)


class ReportsAnotherQ(toy.ModelDrafter):
    """Draws at temperature 0.7 and reports what it would be at 2."""

    def propose(self, context, length, limit, params, rng):
        draft = super().propose(context, length, limit, params, rng)
        hot = replace(params, temperature=2.0)
        rows = [self.model.transitions[token] for token in (context[-1], *draft.tokens[:-1])][: len(draft)]
        q = tuple(distribution(np.log(row).astype(np.float32), hot) for row in rows)
        return replace(draft, q=q)


def test_a_drafter_that_did_not_draw_from_its_q_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy, "ModelDrafter", ReportsAnotherQ)
    for settings in (settings_of("token"), settings_of("block")):
        assert smallest_p(replace(settings, max_tokens=SHORT)) < level(TESTS_OF_A_RUN)


def test_a_token_that_truncation_forbids_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once is enough: the statistic is infinite then."""
    truncated = settings_of("token", 1, truncated=True)
    written = toy.write_toy(replace(truncated, sampling=WAYS[0][0], max_tokens=300))
    tests = prove_toy(replace(WORLD, write=lambda _: written), [truncated]).tests()
    assert tests[0].fit.p_value == 0


def test_stopping_keeps_the_settings_that_were_finished() -> None:
    told: list[str] = []
    proof = prove_toy(
        WORLD, toy_settings(200), lambda _what, _share, detail: told.append(detail), lambda: len(set(told)) > 2
    )
    assert not proof.complete
    assert {test.subject for test in proof.tests()} == {*map(label, toy_settings()[:2]), "token, all"}
    assert "Stopped" in verdict_line(judged(proof.tests()), proof.complete)
