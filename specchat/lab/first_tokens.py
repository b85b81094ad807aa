"""What speculation writes after a few fixed texts, counted over many short replies, against the law of plain decoding.

The first token of each reply, and the second given the first, must come as often as p says, whatever the rule and γ.
p is the one that the passes themselves report: it moves in the last bits with the size of a pass, so counts are held
against what was drawn from, and that in turn against plain decoding's own p (`FirstTokens.variations`), within the
noise of the model's numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specchat.core.events import CommittedToken, Fate, Round
from specchat.core.settings import ReplySettings, Rule
from specchat.lab.checks import Tested
from specchat.lab.goodness_of_fit import Table, binomial_fit, simulated_fit
from specchat.lab.numerics import variation
from specchat.lab.prompts import BenchPrompt
from specchat.lab.writer import Law, NotThisTextError, Writer, law_of

_DEPTH = 2
"""Tokens of each reply that are counted."""
_EXPLORED = 24
"""How far into a reply a text is looked for after which much is open."""
_OFTEN = 8
"""What follows a first token is looked at where it came so often."""
_OVERRATED = 0.01
"""By how much q exceeds p for a token that the draft overrates."""


@dataclass(frozen=True, slots=True)
class Context:
    """A fixed text: a prompt and the first tokens of a reply to it."""

    prompt: BenchPrompt
    after: tuple[CommittedToken, ...]


class Node:
    """What followed one text: how often each token, and what the passes said was drawn from."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._mass: defaultdict[int, float] = defaultdict(float)
        self._listed: Counter[int] = Counter()

    def add(self, token: int, p: Law) -> None:
        """One more token came, drawn where p was this."""
        self.counts[token] += 1
        for each, probability in p.items():
            self._mass[each] += probability
            self._listed[each] += 1

    @property
    def law(self) -> Law:
        """What p was on average, of the tokens that were listed every time."""
        total = self.counts.total()
        return {token: self._mass[token] / total for token, times in self._listed.items() if times == total}

    def table(self) -> Table:
        """Counts and probabilities; the last entry is every token that is not listed."""
        law = self.law
        counts = [self.counts[token] for token in law]
        probs = [*law.values(), max(0.0, 1.0 - sum(law.values()))]
        every = np.array([*counts, self.counts.total() - sum(counts)], dtype=np.int64)
        return every, np.array(probs) / sum(probs)


class Samples:
    """What one rule wrote after the contexts.

    Attributes:
        rule: the rule.
        replies: how many replies.
        judged, rejected: drafted tokens that were judged, and those of them that were refused.
        written: the tokens that were counted, by id.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.replies = self.judged = self.rejected = 0
        self.written: dict[int, CommittedToken] = {}
        self._nodes: defaultdict[tuple[int, tuple[int, ...]], Node] = defaultdict(Node)
        self._overrated: dict[int, frozenset[int]] = {}

    def add(self, context: int, rounds: Sequence[Round]) -> None:
        """Counts the first tokens of a reply that was written after that context."""
        self.replies += 1
        fates = Counter(token.fate for played in rounds for token in played.drafted)
        self.judged += fates[Fate.ACCEPTED] + fates[Fate.REJECTED]
        self.rejected += fates[Fate.REJECTED]
        before: tuple[int, ...] = ()
        for played in rounds:
            assert played.details is not None
            if not before and played.drafted and context not in self._overrated:
                p, q = law_of(played.details[0].p), law_of(played.details[0].q)
                self._overrated[context] = frozenset(t for t in q if q[t] > p.get(t, 0.0) + _OVERRATED)
            for token, position in zip(played.committed, played.details, strict=False):
                if len(before) == _DEPTH:
                    return
                self._nodes[context, before].add(token.id, law_of(position.p))
                self.written[token.id] = token
                before = (*before, token.id)

    def nodes(self, context: int) -> Iterator[tuple[tuple[int, ...], Node]]:
        """What came after that context, and after its frequent first tokens."""
        for (where, before), node in self._nodes.items():
            if where == context and (not before or node.counts.total() >= _OFTEN):
                yield before, node

    def tests(self) -> Iterator[Tested]:
        """The tests of what was counted; none where nothing was drafted, or nothing could come out wrong."""
        if not self.judged:
            return
        rng = np.random.default_rng(0)  # the same counts give the same p-value
        first = [node.table() for (_, before), node in self._nodes.items() if not before]
        refused = f"{self.replies} replies, {self.rejected} of {self.judged} judged tokens refused"
        if not self.rejected:
            refused += ": the draft agrees with the target here, so this says little of the rule"
        subject = f"{self.rule} rule"
        yield Tested(subject, "first token", simulated_fit(first, rng), refused)
        second = [node.table() for (_, before), node in self._nodes.items() if before]
        if second:
            yield Tested(subject, "second token given the first", simulated_fit(second, rng))
        groups, successes = [], 0
        for context, tokens in self._overrated.items():
            node = self._nodes[context, ()]
            chance = min(1.0, sum(probability for token, probability in node.law.items() if token in tokens))
            groups.append((node.counts.total(), chance))
            successes += sum(node.counts[token] for token in tokens if token in node.law)
        if any(0 < chance < 1 for _, chance in groups):
            yield Tested(subject, "first tokens that the draft overrates", binomial_fit(successes, groups))


class FirstTokens:
    """Finds the contexts and writes the replies.

    Args:
        writer: has them written.
        settings: how they are written, but for the rule, γ and the length.
        seed: decides the seeds of the replies.

    Attributes:
        variations: how far p was from plain decoding's own, after each text.
    """

    def __init__(self, writer: Writer, settings: ReplySettings, seed: int) -> None:
        self.variations: list[float] = []
        self._writer = writer
        self._settings = settings
        self._seed = seed * 1_000_000

    def context(self, prompt: BenchPrompt) -> Context | None:
        """Where in a reply to the prompt most is open, and the draft disagrees most; None where nothing is drafted."""
        self._seed += 1
        settings = replace(self._settings, max_tokens=_EXPLORED, seed=self._seed)
        written: list[CommittedToken] = []
        best: tuple[float, int] | None = None
        for played in self._writer.write(prompt.text, settings, details=True).rounds:
            assert played.details is not None
            if played.drafted:
                p, q = law_of(played.details[0].p), law_of(played.details[0].q)
                disagreement = sum(max(0.0, p[token] - q.get(token, 0.0)) for token in p)
                best = max(best or (0.0, 0), (1 - max(p.values()) + disagreement, len(written)))
            written += played.committed
        return None if best is None else Context(prompt, tuple(written[: best[1]]))

    def sample(self, index: int, context: Context, num_draft_tokens: int, samples: Samples) -> None:
        """Writes one reply of 1 + γ tokens after the context with that number, and counts it."""
        self._seed += 1
        settings = replace(
            self._settings,
            rule=samples.rule,
            num_draft_tokens=num_draft_tokens,
            max_tokens=num_draft_tokens + 1,
            seed=self._seed,
        )
        samples.add(index, self._writer.write(context.prompt.text, settings, context.after, details=True).rounds)

    def compare_laws(self, index: int, context: Context, every: Sequence[Samples]) -> None:
        """Holds what the passes reported after that context, and after its first tokens, against plain decoding."""
        laws: dict[tuple[int, ...], Law | None] = {}
        for samples in every:
            for before, node in samples.nodes(index):
                if before not in laws:
                    after = (*context.after, *(samples.written[token] for token in before))
                    laws[before] = self._plain_law(context.prompt, after)
                if (law := laws[before]) is not None:
                    self.variations.append(variation(node.law, law))

    def _plain_law(self, prompt: BenchPrompt, after: Sequence[CommittedToken]) -> Law | None:
        """Plain decoding's law; None where a reply cannot go on after these tokens."""
        try:
            return self._writer.law(prompt.text, after, self._settings.sampling)
        except NotThisTextError:
            return None
