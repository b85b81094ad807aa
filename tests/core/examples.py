"""Events for tests, with only what a test is about spelled out."""

from specchat.core.events import (
    Candidate,
    CommittedToken,
    DraftedToken,
    Fate,
    Finished,
    PositionDetail,
    Round,
    RoundSeconds,
)

_FATES = {"a": Fate.ACCEPTED, "r": Fate.REJECTED, "i": Fate.IGNORED}


def played(fates: str, committed: int | None = None, *, seconds: float = 0.1, index: int = 0) -> Round:
    """A round whose drafted tokens have these fates (a, r, i), with as many committed tokens as that makes."""
    kept = fates.count("a")
    committed = kept + 1 if committed is None else committed
    following = Fate.PLAIN if not fates else Fate.BONUS if kept == len(fates) else Fate.RESAMPLED
    return Round(
        index=index,
        at=seconds * (index + 1),
        rule="token" if fates else "plain",
        num_draft_tokens=len(fates),
        drafted=tuple(
            DraftedToken(i, b"x", "x", "draft", q=0.5, p=0.25, threshold=0.5, draw=0.25, fate=_FATES[fate])
            for i, fate in enumerate(fates)
        ),
        committed=tuple(
            CommittedToken(i, b"x", "x", Fate.ACCEPTED if i < kept else following, 0.5) for i in range(committed)
        ),
        seconds=RoundSeconds(draft=seconds / 2, verify=seconds / 4, sample=seconds / 8, other=seconds / 8),
    )


FULL_ROUND = Round(
    index=3,
    at=1.25,
    rule="block",
    num_draft_tokens=2,
    drafted=(
        DraftedToken(11, b"\xf0\x9f", "", "draft", q=0.9, p=0.3, threshold=0.7, draw=0.1, fate=Fate.ACCEPTED),
        DraftedToken(12, b"\xa6\x99", "🦙", "ngram", q=1.0, p=0.0, threshold=0.0, draw=0.0, fate=Fate.REJECTED),
    ),
    committed=(
        CommittedToken(11, b"\xf0\x9f", "", Fate.ACCEPTED, 0.3),
        CommittedToken(0, b"<|im_end|>", "", Fate.RESAMPLED, 1e-300),
    ),
    seconds=RoundSeconds(0.1, 0.2, 0.3, 0.4),
    why="γ 4 → 2: the draft is unsure",
    details=(
        PositionDetail(
            p=(Candidate(11, "�", 0.3),),
            q=(Candidate(11, "�", 0.9), Candidate(1, " ", 0.1)),
            residual=(),
            pi=0.5,
            h=0.7,
        ),
        PositionDetail(p=(Candidate(0, "<|im_end|>", 1.0),), q=(), residual=()),
    ),
)
"""Every field set, with bytes that are no characters, texts that are not ASCII and numbers at their ends."""

FINISHED = Finished(
    reason="stop",
    tokens=5,
    rounds=2,
    seconds=0.5,
    prefill_seconds=0.25,
    acceptance_rate=0.75,
    acceptance_by_position=(1.0, 0.5),
    tokens_per_round=2.5,
    tokens_per_second=10.0,
    plain_tokens_per_second=8.0,
    plain_source="8 plain steps before this reply",
    speedup=1.25,
    tail="…",
)
