"""What a person can change about a reply, and the messages that it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from specchat.core.sampling_params import SamplingParams

Mode: TypeAlias = Literal["watch", "fast", "exact"]
Rule: TypeAlias = Literal["token", "block", "match"]
Role: TypeAlias = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """Everything about a reply that can change while a pair is loaded.

    ``num_draft_tokens`` is γ, None for *auto*. ``drafter`` is "draft" (the draft model), "ngram" or "none".
    """

    sampling: SamplingParams = field(default_factory=SamplingParams)
    mode: Mode = "watch"
    num_draft_tokens: int | None = None
    rule: Rule = "token"
    drafter: str = "draft"
    max_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt. ``token_ids`` are the ids of an earlier reply, without its end token."""

    role: Role
    content: str
    token_ids: tuple[int, ...] | None = None
