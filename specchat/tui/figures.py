"""What the screen says of a reply in numbers and sentences. Every figure comes from `specchat.core.stats`."""

from __future__ import annotations

from dataclasses import dataclass

from specchat.core.events import Finished
from specchat.core.settings import ReplySettings
from specchat.core.stats import ReplyStats, RoundTotals
from specchat.core.theory import RoundCosts, break_even_acceptance

RULE_NAMES = {"token": "token rule", "block": "block rule", "match": "match rule"}
_ENDINGS = {
    "stop": "ended at a stop string",
    "length": "cut at the length limit",
    "context": "cut: the context is full",
    "interrupted": "stopped",
    "error": "cut by an error",
}


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The α from which on drafting γ tokens is not slower than plain; ``acceptance`` None: no α reaches it."""

    num_draft_tokens: int
    acceptance: float | None


def usual_length(totals: RoundTotals) -> int:
    """The γ that most rounds had; 0 where nothing was drafted."""
    drafted = {length: count for length, count in totals.rounds_by_length.items() if length}
    return max(drafted, key=lambda length: (drafted[length], length)) if drafted else 0


def break_even(stats: ReplyStats) -> BreakEven | None:
    """Break-even from what the last rounds cost here, everything included; None where too little is known.

    The cost of a round is its wall-clock time × the plain speed: the number of plain steps that fit into it.
    """
    rounds = [played for played in stats.recent if played.drafted]
    length = usual_length(stats.window)
    alike = [played.seconds.total for played in rounds if len(played.drafted) == length]
    if stats.plain is None or not alike or not sum(alike):
        return None
    cost = sum(alike) / len(alike) * stats.plain.tokens_per_second
    costs = RoundCosts(passes={1: 1.0, length + 1: cost})
    return BreakEven(length, break_even_acceptance(length, costs))


def speedup_text(speedup: float) -> str:
    """1.61×."""
    return f"{speedup:.2f}×"


def gain_sentence(speedup: float) -> str:
    """What drafting brings or costs, in words: drafting costs 38% here."""
    if speedup >= 1.005:
        return f"drafting gains {speedup_text(speedup)} here"
    if speedup > 0.995:
        return "drafting neither gains nor costs here"
    return f"drafting costs {1 - speedup:.0%} here"


def draft_length_text(settings: ReplySettings, totals: RoundTotals | None = None) -> str:
    """γ as it is set; where it is left open also what it is."""
    if settings.drafter == "none":
        return "0"
    if settings.num_draft_tokens is not None:
        return str(settings.num_draft_tokens)
    return f"auto ({usual_length(totals)})" if totals is not None and totals.drafting_rounds else "auto"


def reply_figures(finished: Finished, settings: ReplySettings, totals: RoundTotals, pair: str) -> str:
    """The figures below a reply, in one line."""
    parts = [_ENDINGS[finished.reason]] if finished.reason in _ENDINGS else []
    parts.append(f"{finished.tokens} {'token' if finished.tokens == 1 else 'tokens'}")
    if finished.tokens_per_second is not None:
        parts.append(f"{finished.tokens_per_second:.1f} tok/s")
    if finished.speedup is not None and finished.plain_tokens_per_second is not None:
        parts.append(f"{speedup_text(finished.speedup)} of plain {finished.plain_tokens_per_second:.1f}")
    if finished.acceptance_rate is not None:
        parts.append(f"α {finished.acceptance_rate:.2f}")
    if totals.drafting_rounds and finished.tokens_per_round is not None:
        parts.append(f"{finished.tokens_per_round:.2f} tokens a round")
        parts.append(f"γ {draft_length_text(settings, totals)}")
        parts.append({"draft": "draft model", "ngram": "n-gram draft"}.get(settings.drafter, settings.drafter))
        parts.append(RULE_NAMES[settings.rule])
    else:
        parts.append("decoded plainly")
    if pair:
        parts.append(pair)
    return "\u00a0· ".join(part.replace(" ", "\u00a0") for part in parts)  # lines break after the dots only


def bytes_text(count: float) -> str:
    """A size as people read it: 1.04 GB, 312 MB, 8 kB."""
    if count >= 999.5e6:
        return f"{count / 1e9:.2f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 999.5e3 else f"{count / 1e3:.0f} kB"


def seconds_text(seconds: float) -> str:
    """A duration as people read it: 54 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
