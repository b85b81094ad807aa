"""Checks that hold or fail: what ``specchat verify`` prints, and when it says that a pair is lossless."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from textwrap import wrap

from specchat.errors import UsageError
from specchat.lab.goodness_of_fit import Fit

SIGNIFICANCE = 1e-4
"""How likely a run in which all is well fails by chance, over all of its tests together (Bonferroni)."""

_SUBJECT, _WHAT, _WIDTH = 26, 38, 100


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer.

    Attributes:
        subject: what was looked at, such as a rule and its settings.
        what: what should hold.
        holds: whether it does.
        fit: the test behind it; None where nothing is left to chance.
        detail: figures or an explanation.
    """

    subject: str
    what: str
    holds: bool
    fit: Fit | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """A statistical test before it is judged: how strict to be depends on how many there are."""

    subject: str
    what: str
    fit: Fit
    detail: str = ""


def visible_shift(num_samples: int, num_tests: int) -> float:
    """The probability that a mistake must move, at a chance of one half, to be seen in every other run."""
    return NormalDist().inv_cdf(1 - level(num_tests) / 2) * 0.5 / math.sqrt(num_samples)


def level(num_tests: int) -> float:
    """The p-value below which one of so many tests fails."""
    return SIGNIFICANCE / max(1, num_tests)


def judged(tests: Sequence[Tested]) -> list[Check]:
    """The tests as checks. If everything is lossless one of them fails with a chance of at most `SIGNIFICANCE`.

    A test that had too little to count could not fail, and so is no check.
    """
    able = [test for test in tests if test.fit.df > 0 or test.fit.p_value < 1]
    bound = level(len(able))
    return [Check(test.subject, test.what, test.fit.p_value >= bound, test.fit, test.detail) for test in able]


def require_tests(checks: Sequence[Check], num_samples: int) -> None:
    """Checks that so many samples of each rule could have made a test fail.

    Raises:
        UsageError: they are too few.
    """
    num_tests = sum(check.fit is not None for check in checks)
    if num_tests == 0 or num_samples == 0 or visible_shift(num_samples, num_tests) >= 0.5:
        raise UsageError("So little was counted that nothing could fail.", "Ask for more --samples or --tokens.")


def check_lines(checks: Sequence[Check]) -> list[str]:
    """The checks as a table that fits 100 columns, and what its figures mean."""
    lines: list[str] = []
    tests = [check for check in checks if check.fit is not None]
    for check in checks:
        if check.fit is None:
            lines.append(f"{check.subject:<{_SUBJECT}} {check.what}: {_verdict(check)}")
            lines += _wrapped(check.detail)
    if tests:
        lines += [
            *[""] * bool(lines),
            f"{'test':<{_SUBJECT}} {'':<{_WHAT}} {'statistic':>9} {'df':>4} {'p-value':>8}  verdict",
        ]
    for check in tests:
        assert check.fit is not None
        fit = check.fit
        figures = f"{fit.statistic:9.2f} {fit.df:4d} {fit.p_value:8.2g}  {_verdict(check)}"
        lines.append(f"{check.subject:<{_SUBJECT}} {check.what:<{_WHAT}} {figures}")
        lines += _wrapped(check.detail)
    if tests:
        lines += [
            "",
            (
                f"A test fails below p = {level(len(tests)):.1g}. Where all is well, one of the {len(tests)} does so "
                f"in one run of {1 / SIGNIFICANCE:,.0f}."
            ),
        ]
    return lines


def verdict_line(checks: Sequence[Check], complete: bool) -> str:
    """The last line: what the checks come to."""
    failed = [check for check in checks if not check.holds]
    if failed:
        return f"NOT lossless: {len(failed)} of {len(checks)} checks fail."
    if not complete:
        return f"Stopped before all was checked. What was checked holds ({len(checks)} checks)."
    return f"Lossless: all {len(checks)} checks hold."


def _wrapped(detail: str) -> list[str]:
    return wrap(detail, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _verdict(check: Check) -> str:
    return "holds" if check.holds else "FAILS"
