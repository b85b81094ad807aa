"""``verify`` on a pair, by an engine with a toy pair: what holds, what fails, and what happens when it is cut short."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from specchat.backends.markov import MarkovModel
from specchat.core import verification
from specchat.core.settings import ReplySettings
from specchat.core.verification import TokenRule
from specchat.engine.interface import Command, DeviceList, Load, Message, Reply, ReplyEvent
from specchat.engine.local import LocalEngine
from specchat.errors import DecodeError, LoadError, UsageError
from specchat.lab.greedy_diff import Flip, GreedyDiff
from specchat.lab.lossless import PairProof, ProofPlan, Verification
from specchat.lab.lossless_report import pair_data, pair_report
from specchat.lab.numerics import Noise, variation
from specchat.lab.prompts import BenchPrompt
from tests.engine import toy_loader
from tests.engine.conversing import PLAIN_SAMPLING

PROMPTS = tuple(BenchPrompt(name, name, "en", text) for name, text in (("code", "abc"), ("chat", "cabd")))
LOAD = Load("quiet", "toy-draft")
PLAN = ProofPlan(PROMPTS, ReplySettings(PLAIN_SAMPLING), ("token", "block", "match"), num_tokens=20, num_samples=30)


class Engine(LocalEngine):
    """A toy pair; ``commands`` were sent to it, and that reply ``fails``."""

    def __init__(self, loader=toy_loader.load) -> None:
        super().__init__(loader, lambda: DeviceList((), "toy", "none"))
        self.commands: list[Command] = []
        self.fails = 0

    def send(self, command: Command) -> None:
        self.commands.append(command)
        super().send(command)

    def receive(self, timeout: float | None = None) -> Message | None:
        message = super().receive(timeout)
        if isinstance(message, ReplyEvent) and message.reply == self.fails:
            raise DecodeError("The device was lost.", "Load the pair again.")
        return message

    @property
    def replies(self) -> list[Reply]:
        return [command for command in self.commands if isinstance(command, Reply)]


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def prove(engine: Engine, plan: ProofPlan = PLAN, load: Load = LOAD, **options) -> PairProof:
    proof = Verification(engine, plan, **options).run(load)
    assert proof is not None
    return proof


def failed(proof: PairProof) -> set[str]:
    return {check.what for check in proof.checks() if not check.holds}


def test_a_sound_pair_is_lossless(engine: Engine) -> None:
    told: list[tuple[str, float]] = []
    proof = prove(engine, on_progress=lambda what, share, _: told.append((what, share)))
    assert failed(proof) == set()
    assert proof.complete
    assert [check.subject for check in proof.checks() if check.fit is None] == [
        "temperature 0, watch", "temperature 0, fast", "temperature 0, exact", "p of drafting passes"
    ]  # fmt: skip
    assert len(proof.tests()) == 9
    assert all(test.fit.df > 0 for test in proof.tests())
    assert {mode: (diff.tokens, diff.flips) for mode, diff in proof.diffs.items()} == {
        "watch": (40, []), "fast": (40, []), "exact": (40, [])
    }  # fmt: skip
    assert proof.diffs["watch"].accepted > 0
    assert proof.diffs["exact"].why == "exact: passes of up to 3"
    assert all(samples.replies == 60 and samples.rejected > 0 for samples in proof.samples)
    assert max(proof.variations) < 1e-12
    assert [command.exact for command in engine.commands if isinstance(command, Load)] == [False, True]
    assert {reply.settings.seed for reply in engine.replies if reply.details} > {1_000_001, 1_000_050}
    assert [what for what in dict.fromkeys(what for what, _ in told) if "loading" not in what] == [
        "temperature 0, watch, fast", "counting first tokens", "temperature 0, exact"
    ]  # fmt: skip
    text = pair_report(proof)
    assert text.endswith("Lossless: all 13 checks hold.\n")
    assert "fails below p = 1e-05" in text
    assert "in one run of 10,000" in text
    assert "60 short replies with a rule show a mistake that moves a probability by 0.28 or more" in text
    assert "A toy, not a model." in text
    data = pair_data(proof)
    assert (data["complete"], data["lossless"], len(data["checks"])) == (True, True, 13)


def test_the_same_plan_finds_the_same(engine: Engine) -> None:
    plan = replace(PLAN, num_samples=10, rules=("block",))
    other = Engine()
    try:
        assert prove(engine, plan).tests() == prove(other, plan).tests()
    finally:
        other.close()


class ResamplesFromP(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return p[num_accepted]


def test_a_broken_rule_is_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verification._RULES, "token", ResamplesFromP())
    proof = prove(engine, replace(PLAN, rules=("token",), num_samples=100, num_tokens=4))
    assert "first tokens that the draft overrates" in failed(proof)
    assert "NOT lossless" in pair_report(proof)
    assert not pair_data(proof)["lossless"]


class AnotherInLongPasses(MarkovModel):
    """Passes of several tokens are as if the first of them were another one: as a cache with a wrong cell does."""

    def decode(self, inputs):
        [each] = inputs
        rows = super().decode(inputs)
        if each.num_logits > 1:
            rows[0] = rows[0].copy()
            rows[0][0] = self._logits[(each.tokens[0] + 1) % len(self._logits)]
        return rows


def with_target(kind: type[MarkovModel]):
    def load(command: Load, on_progress):
        pair = toy_loader.load(command, on_progress)
        target = kind(pair.target.transitions, end=toy_loader.END)
        target.vocabulary.chat_template = toy_loader.TEMPLATE
        return replace(pair, target=target)

    return load


def test_passes_that_see_another_text_are_found() -> None:
    engine = Engine(with_target(AnotherInLongPasses))
    try:
        proof = prove(engine, replace(PLAN, rules=("token",), num_samples=20))
    finally:
        engine.close()
    assert failed(proof) >= {
        "same tokens as plain decoding",
        "same tokens as plain decoding, but for near-ties",
        "same as plain decoding's",
    }
    assert proof.diffs["exact"].flips
    assert max(flip.distance for flip in proof.diffs["watch"].flips) > 0.1
    proof.diffs["fast"].flips.append(Flip("code", 1, "a", "b", math.inf))
    data = json.loads(json.dumps(pair_data(proof), allow_nan=False))
    assert data["temperature_0"]["fast"]["flips"][-1]["distance"] is None, "JSON knows no infinity"


def test_near_ties_may_change_places_within_the_noise_but_not_in_exact_mode() -> None:
    noise = Noise([0.05, -0.05, 0.04], [0.01])
    near, far = (Flip("blue sky", 3, " a", " the", distance) for distance in (0.15, 0.5))
    assert noise.distance == pytest.approx(4 * math.sqrt((0.05**2 * 2 + 0.04**2) / 3))
    assert GreedyDiff("fast", 40, 30, [near]).check(noise).holds
    assert not GreedyDiff("fast", 40, 30, [near, far]).check(noise).holds
    assert not GreedyDiff("exact", 40, 30, [near]).check(noise).holds
    assert GreedyDiff("exact", 40, 30).check(noise).holds
    assert not GreedyDiff("watch", 40, 30, [near]).check(Noise()).holds
    detail = GreedyDiff("fast", 40, 30, [near, far]).check(noise).detail
    assert "2 differ, at most 0.5 logits apart" in detail
    assert "' a' became ' the' in 'blue sky', token 4" in detail


def test_noise_is_what_two_evaluations_differ_by() -> None:
    noise = Noise()
    noise.add({1: 0.5, 2: 0.25, 3: 0.25}, {1: 0.5, 2: 0.3, 3: 0.2})
    assert sorted(noise.distances) == pytest.approx([math.log(0.25 / 0.3), math.log(0.25 / 0.2)])
    assert noise.variations == [pytest.approx(0.05)]
    assert noise.variation == pytest.approx(0.1)
    assert (Noise().distance, Noise().variation) == (0.01, 0.1)
    noise.variations.append(0.2)
    assert noise.variation == pytest.approx(0.4)


def test_a_token_at_the_edge_of_truncation_is_no_difference_but_more_is() -> None:
    full, cut = {1: 0.6, 2: 0.35, 3: 0.05}, {1: 0.6 / 0.95, 2: 0.35 / 0.95}
    assert variation(full, cut) == pytest.approx(0, abs=1e-12)
    assert variation({1: 0.5, 2: 0.5}, {1: 1.0}) == pytest.approx(0.4)
    assert variation({1: 1.0}, {2: 1.0}) == 1.0


def test_stopping_keeps_what_was_found(engine: Engine) -> None:
    proof = prove(engine, should_stop=lambda: len(engine.replies) > 60)
    assert not proof.complete
    assert proof.problem is None
    assert "temperature 0, exact" not in {check.subject for check in proof.checks()}
    assert [samples.replies for samples in proof.samples] != [0, 0, 0]
    assert "Stopped before all was checked." in pair_report(proof)
    assert not pair_data(proof)["lossless"]


def test_stopped_before_the_pair_was_loaded(engine: Engine) -> None:
    assert Verification(engine, PLAN, should_stop=lambda: True).run(LOAD) is None


def test_an_error_half_way_keeps_what_was_found(engine: Engine) -> None:
    engine.fails = 30
    proof = prove(engine)
    assert isinstance(proof.problem, DecodeError)
    assert not proof.complete
    assert len(proof.diffs) == 2


def test_a_pair_that_cannot_be_loaded(engine: Engine) -> None:
    with pytest.raises(LoadError, match="truncated"):
        Verification(engine, PLAN).run(Load("broken"))


def test_without_a_draft_there_is_nothing_to_verify(engine: Engine) -> None:
    for drafter, load in (("draft", Load("quiet")), ("none", LOAD)):
        plan = replace(PLAN, settings=replace(PLAN.settings, drafter=drafter))
        with pytest.raises(UsageError, match="nothing to verify"):
            Verification(engine, plan).run(load)
    idle = replace(PLAN, settings=replace(PLAN.settings, drafter="auto"))
    proof = prove(engine, idle, Load("quiet"))
    assert proof.problem is not None
    assert "Nothing was drafted" in proof.problem.message
    single = prove(engine, replace(PLAN, num_samples=1))
    assert single.problem is not None
    assert "nothing could fail" in single.problem.message
