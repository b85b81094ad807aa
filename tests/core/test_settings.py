"""The defaults that are promised."""

from dataclasses import FrozenInstanceError

import pytest

from specchat.core.sampling import SamplingParams
from specchat.core.settings import (
    DEFAULT_RULE,
    ChatMessage,
    ReplySettings,
    default_draft_tokens,
    default_drafter,
    in_mode,
)


def test_the_defaults() -> None:
    settings = ReplySettings()
    assert settings.sampling == SamplingParams(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05)
    assert not settings.sampling.penalizes
    assert (settings.mode, settings.rule, settings.drafter) == ("watch", DEFAULT_RULE, "draft")
    assert settings.num_draft_tokens == 4
    assert settings.max_tokens is settings.seed is None
    assert (settings.num_draft_tokens, settings.drafter) == (default_draft_tokens("watch"), default_drafter("watch"))


def test_another_mode_brings_its_own_defaults_and_keeps_what_was_chosen() -> None:
    fast = in_mode(ReplySettings(), "fast")
    assert (fast.mode, fast.num_draft_tokens, fast.drafter) == ("fast", None, "auto")
    assert in_mode(fast, "watch") == ReplySettings()
    exact = in_mode(ReplySettings(), "exact")
    assert (exact.num_draft_tokens, exact.drafter) == (4, "draft")
    assert exact.sampling == SamplingParams(temperature=0)
    assert in_mode(exact, "watch") == ReplySettings()
    warm = SamplingParams(temperature=0.3)
    chosen = in_mode(in_mode(ReplySettings(warm, num_draft_tokens=7, drafter="ngram"), "fast"), "exact")
    assert (chosen.num_draft_tokens, chosen.drafter, chosen.sampling) == (7, "ngram", warm)


def test_settings_and_messages_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ReplySettings().mode = "fast"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        ChatMessage("user", "hello").content = ""  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        SamplingParams().top_k = 1  # type: ignore[misc]


def test_two_settings_do_not_share_their_bias() -> None:
    assert ReplySettings().sampling.logit_bias is not ReplySettings().sampling.logit_bias
