"""The figures that stay with a reply, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.core.events import Event, Finished, Round
from specchat.core.settings import ReplySettings
from specchat.core.stats import RoundTotals

RULE_NAMES = {"token": "token rule", "block": "block rule", "match": "match rule"}
DRAFTER_NAMES = {"draft": "draft model", "ngram": "n-gram draft"}
ENDINGS = {
    "stop": "ended at a stop string",
    "length": "cut at the length limit",
    "context": "cut: the context is full",
    "interrupted": "stopped",
    "error": "cut by an error",
}


def usual_length(totals: RoundTotals) -> int:
    """The γ that most rounds had; 0 where nothing was drafted."""
    drafted = {length: count for length, count in totals.rounds_by_length.items() if length}
    return max(drafted, key=lambda length: (drafted[length], length)) if drafted else 0


def draft_length_text(settings: ReplySettings, totals: RoundTotals | None = None) -> str:
    """γ as it is set; where it is left open also what it is."""
    if settings.drafter == "none":
        return "0"
    if settings.num_draft_tokens is not None:
        return str(settings.num_draft_tokens)
    return f"auto ({usual_length(totals)})" if totals is not None and totals.drafting_rounds else "auto"


def speedup_text(speedup: float) -> str:
    """1.61×."""
    return f"{speedup:.2f}×"


def reply_figures(events: Sequence[Event], settings: ReplySettings | None = None, pair: str = "") -> list[str]:
    """The figures of a reply, to be joined: how it ended, tokens, tokens a second, speedup, α, …; empty if unknown.

    Args:
        events: what happened while it was written.
        settings: what it was written with.
        pair: the name of the pair that wrote it.
    """
    finished = next((event for event in reversed(events) if isinstance(event, Finished)), None)
    totals = RoundTotals(event for event in events if isinstance(event, Round))
    if finished is None:
        return []
    parts = [ENDINGS[finished.reason]] if finished.reason in ENDINGS else []
    parts.append(f"{finished.tokens} {'token' if finished.tokens == 1 else 'tokens'}")
    if finished.tokens_per_second is not None:
        parts.append(f"{finished.tokens_per_second:.1f} tok/s")
    if finished.speedup is not None and finished.plain_tokens_per_second is not None:
        parts.append(f"{speedup_text(finished.speedup)} of plain {finished.plain_tokens_per_second:.1f}")
    if finished.acceptance_rate is not None:
        parts.append(f"α {finished.acceptance_rate:.2f}")
    if not totals.drafting_rounds:
        parts.append("decoded plainly")
    elif finished.tokens_per_round is not None:
        parts.append(f"{finished.tokens_per_round:.2f} tokens a round")
        if settings is not None:
            parts.append(f"γ {draft_length_text(settings, totals)}")
            parts.append(DRAFTER_NAMES.get(settings.drafter, settings.drafter))
            parts.append(RULE_NAMES[settings.rule])
    return [*parts, pair] if pair else parts
