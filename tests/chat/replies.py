"""Events of made-up replies, as the decoder would yield them."""

from specchat.core.events import (
    Candidate,
    CommittedToken,
    DraftedToken,
    Fate,
    Finished,
    PlainSpeed,
    PositionDetail,
    Prefill,
    Round,
    RoundSeconds,
)


def committed(text, number=None, fate=Fate.PLAIN, data=None):
    data = text.encode("utf-8", "surrogatepass") if data is None else data
    return CommittedToken(sum(data) if number is None else number, data, text, fate, 0.5)


def drafted(text, fate, q=0.62, p=0.18, draw=0.71):
    return DraftedToken(sum(text.encode()), text.encode(), text, "draft", q, p, min(1.0, p / q), draw, fate)


def round_of(*tokens, index=0, drafts=(), details=None):
    rule = "token" if drafts else "plain"
    seconds = RoundSeconds(0.01, 0.03, 0.001, 0.002)
    return Round(index, 0.05 * (index + 1), rule, len(drafts), tuple(drafts), tuple(tokens), seconds, None, details)


def finished(reason="end", tail="", tokens=1, rounds=1):
    return Finished(reason, tokens, rounds, 1.5, 0.2, 0.75, (0.8, 0.7), 2.5, 41.3, 29.9, "8 plain steps", 1.38, tail)


END = committed("", 2, data=b"<|im_end|>")


def plain_reply(*texts, reason="end", tail=""):
    """One plain round a token; ends with an end token where that is the reason."""
    tokens = [committed(text) for text in texts] + ([END] if reason == "end" else [])
    rounds = [round_of(token, index=i) for i, token in enumerate(tokens)]
    return [Prefill("target", 5, 3, 0.1), *rounds, finished(reason, tail, len(tokens), len(rounds))]


def speculative_reply():
    """Two rounds of a draft: one rejection, one bonus; with details; ends by itself."""
    details = (PositionDetail((Candidate(1, " a", 0.7),), (Candidate(2, "<b>", 0.9),), (Candidate(1, " a", 1.0),)),)
    return [
        Prefill("target", 12, 0, 0.12),
        Prefill("draft", 12, 0, 0.05),
        PlainSpeed(29.9, 8, "8 plain steps before this reply"),
        round_of(
            committed("The", fate=Fate.ACCEPTED),
            committed(" waves", fate=Fate.RESAMPLED),
            drafts=[drafted("The", Fate.ACCEPTED), drafted(" colors", Fate.REJECTED), drafted(" of", Fate.IGNORED)],
            details=details,
        ),
        round_of(
            committed(" go", fate=Fate.ACCEPTED),
            committed(" on.", fate=Fate.BONUS),
            index=1,
            drafts=[drafted(" go", Fate.ACCEPTED)],
        ),
        round_of(END, index=2),
        finished(tokens=5, rounds=3),
    ]
