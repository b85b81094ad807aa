"""At temperature 0: is what is written speculatively what plain decoding writes, token by token?

In *exact* mode it must be. In the other modes passes have other sizes than plain ones, and where two tokens are nearly
as likely the last bits decide (product.md, "Greedy"). So each difference is looked at: how far apart plain decoding
has the two, and whether that is within the noise of the model's own numbers. After a difference the reply goes on from
plain decoding's text, so that all of it is compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from specchat.core.events import CommittedToken
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import Mode, ReplySettings
from specchat.lab.checks import Check
from specchat.lab.numerics import Noise
from specchat.lab.prompts import BenchPrompt
from specchat.lab.writer import Law, Writer, plain

_MOST_FLIPS = 16
"""So many differences in one reply are enough to know."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A place where speculation wrote another token than plain decoding.

    Attributes:
        prompt: the prompt's name.
        position: which token of the reply.
        plain, written: the two tokens as text.
        distance: of their logits in plain decoding, at temperature 1; infinite where the written one is not among
            those that plain decoding lists.
    """

    prompt: str
    position: int
    plain: str
    written: str
    distance: float


@dataclass(slots=True)
class GreedyDiff:
    """What was compared in one mode.

    Attributes:
        tokens: compared with plain decoding's.
        accepted: how many of them had been drafted.
        flips: the differences.
        why: what was said about drafting.
    """

    mode: Mode
    tokens: int = 0
    accepted: int = 0
    flips: list[Flip] = field(default_factory=list)
    why: str | None = None

    def check(self, noise: Noise) -> Check:
        """Whether the mode keeps its promise: *exact* the same tokens, the others all but near-ties."""
        bound = 0.0 if self.mode == "exact" else noise.distance
        holds = all(flip.distance <= bound for flip in self.flips) and not (self.flips and self.mode == "exact")
        what = "same tokens as plain decoding" + ("" if self.mode == "exact" else ", but for near-ties")
        return Check(f"temperature 0, {self.mode}", what, holds, detail=self._detail(bound))

    def _detail(self, bound: float) -> str:
        said = [f"{self.tokens} tokens compared, {self.accepted} of them drafted"]
        if not self.flips:
            said.append("all the same")
        else:
            worst = max(self.flips, key=lambda flip: flip.distance)
            count = "1 differs" if len(self.flips) == 1 else f"{len(self.flips)} differ"
            noise = "" if self.mode == "exact" else f" (its noise: up to {bound:.2g})"
            said.append(f"{count}, at most {worst.distance:.2g} logits apart in plain decoding{noise}")
            said.append(f"{worst.plain!r} became {worst.written!r} in {worst.prompt!r}, token {worst.position + 1}")
        if self.mode == "exact" and self.why:
            said.append(self.why)
        return "; ".join(said)


class GreedyReplies:
    """Writes replies at temperature 0, plainly and in other ways.

    Args:
        writer: has them written.
        settings: how they are written otherwise.
        num_tokens: the longest reply.
    """

    def __init__(self, writer: Writer, settings: ReplySettings, num_tokens: int) -> None:
        self._writer = writer
        self._settings = replace(settings, sampling=replace(settings.sampling, temperature=0.0))
        self._pure = untruncated(settings.sampling)
        self._num_tokens = num_tokens

    def plain(self, prompt: BenchPrompt) -> tuple[CommittedToken, ...]:
        """The reply of plain decoding."""
        return self._writer.write(prompt.text, plain(self._settings.sampling, self._num_tokens)).tokens

    def law_at_end(self, prompt: BenchPrompt, reply: Sequence[CommittedToken]) -> Law:
        """What plain decoding would draw in place of the reply's last token, at temperature 1 and not truncated.

        Right after `plain` the cache holds the reply as it was written, token by token; after `Writer.forget` it is
        read anew, all at once.
        """
        return self._writer.law(prompt.text, reply[:-1], self._pure)

    def compare(self, prompt: BenchPrompt, reply: Sequence[CommittedToken], diff: GreedyDiff) -> None:
        """Writes the reply in the mode of ``diff``, and adds what differs from plain decoding's.

        Raises:
            NotThisTextError: it cannot go on after a difference.
        """
        start, flips = 0, 0
        while start < len(reply) and flips < _MOST_FLIPS:
            settings = replace(self._settings, max_tokens=len(reply) - start)
            written = self._writer.write(prompt.text, settings, reply[:start])
            diff.why = diff.why or written.why
            here = _first_difference(reply[start:], written.tokens)
            diff.tokens += min(here + 1, len(reply) - start)
            diff.accepted += sum(token.fate == "accepted" for token in written.tokens[:here])
            start += here
            if start < len(reply):
                flips += 1
                other = written.tokens[here] if here < len(written.tokens) else None
                diff.flips.append(self._flip(prompt, reply, start, other))
                start += 1

    def _flip(
        self, prompt: BenchPrompt, reply: Sequence[CommittedToken], position: int, other: CommittedToken | None
    ) -> Flip:
        expected = reply[position]
        if other is None:
            return Flip(prompt.name, position, _text(expected), "", math.inf)
        law = self._writer.law(prompt.text, reply[:position], self._pure)
        known = expected.id in law and other.id in law
        distance = abs(math.log(law[expected.id] / law[other.id])) if known else math.inf
        return Flip(prompt.name, position, _text(expected), _text(other), distance)


def untruncated(sampling: SamplingParams) -> SamplingParams:
    """The same at temperature 1 and without truncation: logarithms of its ratios are distances of logits."""
    return replace(sampling, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def _first_difference(one: Sequence[CommittedToken], other: Sequence[CommittedToken]) -> int:
    """The first place where they differ; the length of ``one`` where ``other`` begins with it."""
    for i, token in enumerate(one):
        if i >= len(other) or other[i].id != token.id:
            return i
    return len(one)


def _text(token: CommittedToken) -> str:
    return token.bytes.decode("utf-8", "replace")
