"""Replays what a real draft did along replies of its real target, with simulated costs: no model, no clock.

Recorded of Qwen2.5-Coder 0.5B drafting for 1.5B (`tests/data/record_drafts.py`), position by position of a reply: how
sure the draft was, how likely its token would have been kept given that the target wrote what it wrote, and what the
draft would have gone on with after a token that is rejected.

That a reply is given does not bias the rounds. Under the token rule, P(drafted and kept, x) = min(p(x), q(x)); so
given that x is written, it was drafted and kept with probability min(1, q(x)/p(x)), whatever the length rule does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from specchat.core.draft_length import DraftLength, RoundOutcome
from specchat.core.sampling import Distribution
from specchat.decoding.decoder import CATCH_UP

FILE = Path(__file__).parent.parent / "data" / "drafts.json"


@dataclass(frozen=True)
class Look:
    """The draft's view of one position: what the length rule sees, and the drawn token's probability in q."""

    q: Distribution
    logits: np.ndarray
    probability: float

    @classmethod
    def of(cls, margin: float, largest: float, probability: float) -> Look:
        q = Distribution.one_hot(0) if largest >= 1 else Distribution.from_dense([largest, 1 - largest])
        return cls(q, np.array([margin, 0.0], dtype=np.float32), probability)


@dataclass(frozen=True)
class Position:
    """``kept``: how likely the draft's token is kept here. ``wrong``: the rejected token, and what follows it."""

    kept: float
    look: Look
    wrong: tuple[Look, ...]


@dataclass(frozen=True)
class RecordedReply:
    category: str
    temperature: float
    num_prompt_tokens: int
    positions: tuple[Position, ...]


@cache
def recorded_replies() -> tuple[RecordedReply, ...]:
    """All of them. Margins are stored in tenths, probabilities in hundredths."""
    return tuple(
        RecordedReply(
            each["category"],
            each["temperature"],
            each["prompt"],
            tuple(
                Position(
                    kept / 100,
                    Look.of(margin / 10, largest / 100, probability / 100),
                    tuple(Look.of(m / 10, most / 100, p / 100) for m, most, p in zip(*[iter(wrong)] * 3, strict=True)),
                )
                for kept, margin, largest, probability, *wrong in each["positions"]
            ),
        )
        for each in json.loads(FILE.read_text(encoding="utf-8"))
    )


@dataclass(frozen=True)
class Machine:
    """What things cost, in plain target steps.

    ``verify[n]`` is a pass of n tokens, ``step`` and ``two`` are draft passes of one token and of two, ``read`` is
    what reading a token of the prompt costs the draft.
    """

    name: str
    verify: Mapping[int, float]
    step: float
    two: float
    read: float

    @property
    def is_cpu(self) -> bool:
        return self.verify[2] > 1.5


def gpu(step: float, growth: float = 0.0) -> Machine:
    """A GPU: reading the weights is nearly all that a pass costs."""
    name = f"v=1, c={step}" if not growth else f"v(5)={1 + 4 * growth:g}, c={step}"
    return Machine(name, {size: 1 + growth * (size - 1) for size in range(1, 18)}, step, step, step / 20)


def cpu() -> Machine:
    """Two AVX-512 cores (the design's table; sizes between those that were measured lie on the line)."""
    known = {1: 1.0, 2: 1.64, 3: 2.2, 4: 2.7, 5: 3.3, 6: 3.9, 8: 6.2, 9: 6.7, 12: 7.7, 16: 7.2, 17: 8.5}
    sizes = list(range(1, 18))
    verify = dict(zip(sizes, np.interp(sizes, list(known), list(known.values())).tolist(), strict=True))
    return Machine("two CPU cores", verify, 0.58, 1.04, 0.12)


@dataclass
class Simulated:
    """What rounds brought: ``tokens`` in ``time`` plain steps; (drafted, kept) by round."""

    tokens: int = 0
    time: float = 0.0
    rounds: list[tuple[int, int]] = field(default_factory=list)

    @property
    def speedup(self) -> float:
        return self.tokens / self.time

    def add(self, other: Simulated) -> None:
        self.tokens += other.tokens
        self.time += other.time
        self.rounds += other.rounds


def simulate(
    reply: RecordedReply,
    length: DraftLength,
    machine: Machine,
    rng: np.random.Generator,
    *,
    most: int = 16,
    slow: Callable[[], float] = lambda: 1.0,
    spoil: float = 1.0,
) -> Simulated:
    """Writes the reply with a length rule that drafts with the model.

    Args:
        reply: what is written.
        length: the rule; it is told of each round.
        machine: what things cost.
        rng: decides what is kept.
        most: the largest γ.
        slow: how many times longer the next round takes than it should. The rule sees it; the result does not.
        spoil: the draft's tokens are kept with this share of their chance, however sure it is.
    """
    done, behind, played = 0, reply.num_prompt_tokens, Simulated()
    while done < len(reply.positions):
        left = reply.positions[done:]
        limit, factor = length.begin_round(min(most, len(left) - 1)), slow()
        draft, ahead = _Draft(), 0.0
        if limit > 0 and length.pays(behind):
            if behind > CATCH_UP:  # as the decoder does, outside of the round
                ahead = (behind - 1) * machine.read * factor
                length.observe_reading(behind - 1, ahead)
                behind = 1
            draft.draw(left, length, limit, rng, spoil)
            first = machine.step if behind == 1 else machine.two + max(0, behind - 2) * machine.read
            draft.time = first + (draft.passes - 1) * machine.step
            evaluated = behind + draft.passes - 1
            behind = 2 if 0 < draft.drafted == draft.kept and draft.passes == draft.drafted else 1
        else:
            evaluated, behind = 0, behind + 1
        verify = machine.verify[draft.drafted + 1]
        length.observe(
            RoundOutcome(
                draft.drafted,
                draft.kept,
                draft.time * factor,
                verify * factor,
                "draft" if draft.passes else "none",
                evaluated,
            )
        )
        done += draft.kept + 1
        played.add(Simulated(draft.kept + 1, ahead / factor + draft.time + verify, [(draft.drafted, draft.kept)]))
    return played


@dataclass
class _Draft:
    drafted: int = 0
    kept: int = 0
    passes: int = 0
    time: float = 0.0

    def draw(
        self, left: Sequence[Position], length: DraftLength, limit: int, rng: np.random.Generator, spoil: float
    ) -> None:
        """As a draft model does: from where the reply stands, and after a rejected token on a way of its own."""
        wrong: list[Look] | None = None
        while True:
            position = left[self.drafted] if self.drafted < len(left) else None
            if wrong is None:
                assert position is not None
                look = position.look
            elif wrong:
                look = wrong.pop(0)
            else:
                return
            self.passes += 1
            if not length.more(self.drafted, look.q, look.logits):
                return
            probability = look.probability
            if wrong is None:
                assert position is not None
                if rng.random() < spoil * position.kept:
                    self.kept += 1
                else:
                    wrong = list(position.wrong) or [position.look] * 6
                    probability = wrong.pop(0).probability
            self.drafted += 1
            if self.drafted == limit or not length.go_on(self.drafted, probability):
                return
