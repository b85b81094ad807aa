"""``specchat verify``: is speculation lossless with this pair, on this machine?

Everything goes through the engine's interface: what is checked is what writes the replies of a chat. Replies at
temperature 0 are compared token by token, in all modes; many short ones after fixed texts are counted, under each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from specchat.core.settings import Mode, ReplySettings, Rule, in_mode
from specchat.engine.interface import Engine, Load, Loaded
from specchat.errors import SpecchatError, UsageError
from specchat.lab.checks import Check, Tested, judged, require_tests
from specchat.lab.engine_talk import OnProgress, Stopped
from specchat.lab.first_tokens import FirstTokens, Samples
from specchat.lab.greedy_diff import GreedyDiff, GreedyReplies
from specchat.lab.numerics import Noise
from specchat.lab.prompts import BenchPrompt
from specchat.lab.writer import NotThisTextError, Writer

_LENGTHS = (1, 2, 3, 4)
"""γ of the short replies, in turn: with each the bonus token stands elsewhere."""


@dataclass(frozen=True, slots=True)
class ProofPlan:
    """What is going to be checked.

    Attributes:
        prompts: what the replies answer.
        settings: how they are written, in *watch*; each check changes what it is about.
        rules: those whose first tokens are counted.
        num_tokens: the length of the replies at temperature 0.
        num_samples: short replies after each context, under each rule.
        seed: decides all seeds.
    """

    prompts: tuple[BenchPrompt, ...]
    settings: ReplySettings
    rules: tuple[Rule, ...]
    num_tokens: int = 48
    num_samples: int = 60
    seed: int = 1


@dataclass(slots=True)
class PairProof:
    """What was found, complete or not.

    Attributes:
        plan: what was to be checked.
        loaded: the pair.
        noise: how far the model's own numbers move.
        diffs: what was compared at temperature 0, by mode.
        samples: what was counted, by rule.
        variations: how far p was from plain decoding's own, after each text that was counted.
        notices: sentences that a person should see.
        complete: whether all was checked.
        problem: the error that ended it.
    """

    plan: ProofPlan
    loaded: Loaded
    noise: Noise = field(default_factory=Noise)
    diffs: dict[Mode, GreedyDiff] = field(default_factory=dict)
    samples: list[Samples] = field(default_factory=list)
    variations: list[float] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    complete: bool = False
    problem: SpecchatError | None = None

    def checks(self) -> list[Check]:
        """Every check, of what there is."""
        return [
            *(diff.check(self.noise) for diff in self.diffs.values() if diff.tokens),
            *self._same_law(),
            *judged(self.tests()),
        ]

    @property
    def num_replies(self) -> int:
        """How many short replies were written with each rule."""
        return max((samples.replies for samples in self.samples), default=0)

    def tests(self) -> list[Tested]:
        """The statistical tests."""
        return [test for samples in self.samples for test in samples.tests()]

    def _same_law(self) -> Iterator[Check]:
        if self.variations:
            worst, bound = max(self.variations), self.noise.variation
            detail = (
                f"total variation at most {worst:.2g} after {len(self.variations)} texts; up to {bound:.2g} counts as "
                f"the same (plain decoding itself differs by {max(self.noise.variations, default=0.0):.2g} when it "
                "reads in other passes)"
            )
            yield Check("p of drafting passes", "same as plain decoding's", worst <= bound, detail=detail)


class Verification:
    """Carries out a plan.

    Args:
        engine: writes the replies.
        plan: what to check.
        on_progress: told how far it is.
        should_stop: asked ten times a second.
    """

    def __init__(
        self,
        engine: Engine,
        plan: ProofPlan,
        *,
        on_progress: OnProgress = lambda *_: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan
        self._on_progress = on_progress
        self._writer = Writer(engine, on_progress, should_stop)

    def run(self, load: Load) -> PairProof | None:
        """Loads the pair and checks it.

        Returns:
            What was found, also where it was stopped or an error ended it half-way (see `PairProof`); None where it
            was stopped before the pair was loaded.

        Raises:
            UsageError: nothing would be drafted.
            SpecchatError: the pair cannot be loaded.
        """
        try:
            loaded = self._writer.load(load)
        except Stopped:
            return None
        self._require_drafts(loaded)
        proof = PairProof(self._plan, loaded, notices=self._writer.notices)
        try:
            self._compare_modes(proof, "watch", "fast")
            self._count(proof)
            self._writer.load(replace(load, exact=True))
            self._compare_modes(proof, "exact")
            proof.complete = True
        except Stopped:
            pass
        except SpecchatError as error:
            proof.problem = error
        return proof

    def _require_drafts(self, loaded: Loaded) -> None:
        drafter = self._plan.settings.drafter
        if drafter == "none" or (drafter == "draft" and loaded.draft is None):
            why = " ".join(loaded.notes)
            raise UsageError(
                f"Nothing is drafted without a draft, so there is nothing to verify. {why}".strip(),
                "Name a pair with a draft model, or --draft ngram.",
            )

    def _compare_modes(self, proof: PairProof, *modes: Mode) -> None:
        """Writes every prompt's reply at temperature 0, plainly and in these modes."""
        plan = self._plan
        ways = {mode: GreedyReplies(self._writer, in_mode(plan.settings, mode), plan.num_tokens) for mode in modes}
        diffs = {mode: GreedyDiff(mode) for mode in modes}
        proof.diffs |= diffs
        first = ways[modes[0]]
        for i, prompt in enumerate(plan.prompts):
            self._on_progress(f"temperature 0, {', '.join(modes)}", i / len(plan.prompts), prompt.category)
            try:
                reply = first.plain(prompt)
                as_written = first.law_at_end(prompt, reply)
                for mode, way in ways.items():
                    way.compare(prompt, reply, diffs[mode])
                if "exact" not in modes:  # whose passes have no noise
                    self._writer.forget()
                    proof.noise.add(as_written, first.law_at_end(prompt, reply))
            except NotThisTextError:
                self._skipped(prompt)
        if not all(diff.tokens for diff in diffs.values()):
            raise SpecchatError("No reply could be compared with plain decoding's.", "Choose another pair.")

    def _count(self, proof: PairProof) -> None:
        """Writes the short replies, rule by rule in turn, so that a run that is stopped has samples of all."""
        plan = self._plan
        counting = FirstTokens(self._writer, plan.settings, plan.seed)
        proof.samples = [Samples(rule) for rule in plan.rules]
        proof.variations = counting.variations
        lengths = [length for length in _LENGTHS if length <= proof.loaded.max_draft_tokens]
        for i, prompt in enumerate(plan.prompts):
            if (context := counting.context(prompt)) is None:
                continue
            try:
                self._writer.forget()  # plain decoding's law must not rest on what speculation left in the cache
                for done in range(plan.num_samples):
                    share = (i + done / plan.num_samples) / len(plan.prompts)
                    self._on_progress("counting first tokens", share, prompt.category)
                    for samples in proof.samples:
                        counting.sample(i, context, lengths[done % len(lengths)], samples)
                counting.compare_laws(i, context, proof.samples)
            except NotThisTextError:
                self._skipped(prompt)
        if not any(samples.judged for samples in proof.samples):  # which would have shown nothing
            raise SpecchatError("Nothing was drafted, so nothing was verified.", "Choose another draft.")
        require_tests(proof.checks(), proof.num_replies)

    def _skipped(self, prompt: BenchPrompt) -> None:
        self._writer.notices.append(f"The reply to {prompt.name!r} cannot be gone on with, and was left out in part.")
