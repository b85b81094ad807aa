"""The figures that stay with a reply, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from specchat.chat.conversation import Conversation, Message
from specchat.core.events import Event, Fate, Finished, Round
from specchat.core.settings import ReplySettings
from specchat.core.stats import RoundTotals

RULE_NAMES = {"token": "token rule", "block": "block rule", "match": "match rule"}
DRAFTER_NAMES = {"draft": "draft model", "ngram": "n-gram draft"}
PROPOSED = {"ngram": "copied", "draft": "by the model"}
"""What is said of tokens that these drafters proposed, where several of them are at hand."""
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


def first_token_text(seconds: float) -> str:
    """The time to the first token: the target's prefill, which is the same with and without a draft."""
    return f"first token {seconds:.1f} s" if seconds >= 0.1 else f"first token {seconds:.2f} s"


def figures_line(conversation: Conversation, message: Message) -> str:
    """The figures of a reply of a chat in one line, those of the parts that it continues included.

    Empty if they are not known. Where a part was cut by the end of the engine, what it took is not known: then only
    the last part counts.
    """
    parts = conversation.parts(message.id)
    if not all(part.finished is not None for part in parts):
        parts = parts[-1:]
    events = [event for part in parts for event in part.events]
    return " · ".join(reply_figures(events, message.settings, message.pair))


def reply_figures(events: Sequence[Event], settings: ReplySettings | None = None, pair: str = "") -> list[str]:
    """The figures of a reply, to be joined: how it ended, tokens, tokens a second, speedup, α, …; empty if unknown.

    Args:
        events: what happened while it was written; where it was cut and continued, in all its parts.
        settings: what it was written with.
        pair: the name of the pair that wrote it.
    """
    rounds = [event for event in events if isinstance(event, Round)]
    totals = RoundTotals(rounds)
    finished = _whole([event for event in events if isinstance(event, Finished)], totals)
    if finished is None:
        return []
    parts = [ENDINGS[finished.reason]] if finished.reason in ENDINGS else []
    parts.append(f"{finished.tokens} {'token' if finished.tokens == 1 else 'tokens'}")
    if finished.tokens_per_second is not None:
        parts.append(f"{finished.tokens_per_second:.1f} tok/s")
    if finished.speedup is not None and finished.plain_tokens_per_second is not None:
        parts.append(f"{speedup_text(finished.speedup)} of plain {finished.plain_tokens_per_second:.1f}")
    if finished.prefill_seconds > 0:
        parts.append(first_token_text(finished.prefill_seconds))
    if finished.acceptance_rate is not None:
        parts.append(f"α {finished.acceptance_rate:.2f}")
    if not totals.drafting_rounds:
        parts.append("decoded plainly")
    elif finished.tokens_per_round is not None:
        parts.append(f"{finished.tokens_per_round:.2f} tokens a round")
        if settings is not None:
            parts.append(f"γ {draft_length_text(settings, totals)}")
            parts.append(_drafter_text(settings.drafter, rounds))
            parts.append(RULE_NAMES[settings.rule])
    return [*parts, pair] if pair else parts


def _drafter_text(drafter: str, rounds: Sequence[Round]) -> str:
    """Who drafted; where that was settled round by round, how many kept tokens each had proposed."""
    if drafter != "auto":
        return DRAFTER_NAMES.get(drafter, drafter)
    drafted = [token for played in rounds for token in played.drafted]
    kept = Counter(token.drafter for token in drafted if token.fate is Fate.ACCEPTED)
    proposed = {token.drafter for token in drafted}
    names = [name for name in dict.fromkeys((*PROPOSED, *sorted(proposed))) if name in proposed]
    return "draft auto: " + ", ".join(f"{kept[name]} {PROPOSED.get(name, name)}" for name in names)


def _whole(parts: Sequence[Finished], totals: RoundTotals) -> Finished | None:
    """The end of a reply of several parts: how the last one ended, and the figures of all."""
    if len(parts) < 2:
        return parts[0] if parts else None
    last = parts[-1]
    tokens, rounds = sum(part.tokens for part in parts), sum(part.rounds for part in parts)
    seconds = sum(part.seconds for part in parts)
    speed, plain = tokens / seconds if seconds > 0 else None, last.plain_tokens_per_second
    return replace(
        last,
        tokens=tokens,
        rounds=rounds,
        seconds=seconds,
        prefill_seconds=parts[0].prefill_seconds,  # what came before the first token of all
        acceptance_rate=totals.acceptance_rate,
        tokens_per_round=tokens / rounds if rounds else None,
        tokens_per_second=speed,
        speedup=speed / plain if speed and plain else None,
    )
