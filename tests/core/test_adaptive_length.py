"""γ chosen draw by draw: what it decides, what it says, and that the reply's distribution does not change."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pytest

from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import DraftLength, RoundOutcome
from specchat.core.experience import Experience
from specchat.core.sampling import Distribution
from specchat.core.verification import rule_named
from tests.core.enumeration import Law, Prefix, World, drafts, largest_difference, mixed_laws, random_law

SURE, UNSURE = np.array([9.0, 0.0], dtype=np.float32), np.array([0.3, 0.0], dtype=np.float32)
LIKELY = Distribution.from_dense([0.9, 0.1])
CPU = {1: 1.0, 2: 1.64, 3: 2.2, 4: 2.7, 5: 3.3, 6: 3.9, 8: 6.2, 9: 6.7, 12: 7.7, 16: 7.2, 17: 8.5}


def gpu(step: float = 0.1, growth: float = 0.0) -> Experience:
    experience = Experience(token_share=growth, draft_share=step)
    experience.target.learn({size: 1 + growth * (size - 1) for size in range(1, 18)})
    experience.draft.learn({1: step, 2: step})
    return experience


def cpu() -> Experience:
    experience = Experience(token_share=0.6, draft_share=0.58)
    experience.target.learn(CPU)
    experience.draft.learn({1: 0.58, 2: 1.04})
    return experience


def draw(length: DraftLength, logits: Sequence[np.ndarray], limit: int = 16, probability: float = 0.9) -> int:
    """How many tokens are drafted where the draft's logits are these."""
    if not length.begin_round(limit) or not length.pays(1):
        return 0
    for drawn, row in enumerate(logits):
        if drawn == limit or not length.more(drawn, LIKELY, row):
            return drawn
        if drawn + 1 < limit and not length.go_on(drawn + 1, probability):
            return drawn + 1
    return min(limit, len(logits))


def outcome(length: AdaptiveLength, drafted: int, kept: int, verify: float = 1.0) -> RoundOutcome:
    """A round as it takes as long as it is known to."""
    steps = len(length._draws)
    seconds = steps * length.experience.step()
    return RoundOutcome(drafted, kept, seconds, verify, "draft" if steps else "none", steps)


def test_it_drafts_on_while_the_draft_is_sure() -> None:
    sure = draw(AdaptiveLength(gpu()), [SURE] * 16)
    unsure = draw(AdaptiveLength(gpu()), [UNSURE] * 16)
    mixed = draw(AdaptiveLength(gpu()), [SURE, SURE, UNSURE, UNSURE, UNSURE, UNSURE])
    assert sure > 8
    assert unsure < 6
    assert unsure <= mixed < sure


def test_a_dearer_draft_draws_less_and_a_dear_pass_draws_nothing() -> None:
    lengths = [draw(AdaptiveLength(gpu(step)), [UNSURE] * 16) for step in (0.01, 0.1, 0.5)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    assert draw(AdaptiveLength(cpu()), [SURE] * 16) == 0
    assert draw(AdaptiveLength(gpu(0.1, growth=0.3)), [UNSURE] * 16) < draw(AdaptiveLength(gpu(0.1)), [UNSURE] * 16)


def test_a_token_unlikely_in_its_own_q_ends_the_draft_earlier() -> None:
    rows = [UNSURE, *[SURE] * 15]
    assert draw(AdaptiveLength(gpu(0.25)), rows, probability=0.1) < draw(AdaptiveLength(gpu(0.25)), rows)


def test_the_limit_is_kept_and_a_floor_is_reached() -> None:
    assert draw(AdaptiveLength(gpu()), [SURE] * 16, limit=3) == 3
    assert draw(AdaptiveLength(gpu()), [SURE] * 16, limit=0) == 0
    assert draw(AdaptiveLength(cpu(), floor=1), [UNSURE] * 16) == 1
    assert draw(AdaptiveLength(gpu(), floor=1), [SURE] * 16) > 8


def test_plain_decoding_is_measured_first_where_nothing_is_known() -> None:
    length = AdaptiveLength(Experience(token_share=0.0, draft_share=0.1))
    for _ in range(3):
        assert length.begin_round(8) == 0
        length.observe(RoundOutcome(0, 0, 0.0, 1.0))
    assert length.begin_round(8) == 8
    assert AdaptiveLength(Experience(), floor=1).begin_round(8) == 8


def test_what_is_not_kept_stops_it_and_it_says_so_once() -> None:
    length = AdaptiveLength(gpu(0.3))
    said = []
    for _ in range(200):
        drafted = draw(length, [UNSURE] * 16)
        length.observe(outcome(length, drafted, 0))
        said.append(length.reason)
    assert said[0] == "fast: drafting"
    news = [text for text in said if text is not None]
    assert len(news) == 2
    assert news[1].startswith("fast: not drafting, it would cost more than it saves (α 0.0")
    assert "break-even 0.30)" in news[1]


def test_where_no_acceptance_would_do_it_says_that_from_the_beginning() -> None:
    length = AdaptiveLength(cpu())
    said = []
    for _ in range(300):
        assert draw(length, [SURE] * 16) == 0
        length.observe(RoundOutcome(0, 0, 0.0, 1.0))
        said.append(length.reason)
    assert said[0] == "fast: not drafting, it would cost more than it saves (break-even none)"
    assert set(said[1:]) == {None}, "and it never tries: it cannot pay"


def test_a_floor_has_nothing_to_say() -> None:
    length = AdaptiveLength(cpu(), floor=1)
    length.observe(outcome(length, draw(length, [UNSURE] * 4), 0))
    assert length.reason is None


def test_it_tries_again_later_and_later_while_that_changes_nothing() -> None:
    length = AdaptiveLength(gpu(0.3))
    asked = []
    for number in range(4000):
        drafted = draw(length, [UNSURE] * 16)
        length.observe(outcome(length, drafted, 0))
        if length._asked:
            asked.append(number)
    trials = [number for number in asked if number > asked[0] + 60]
    gaps = np.diff(trials)
    assert len(trials) < 45
    assert gaps[-1] > 128 > gaps[0]
    assert length.experience.interval == 128


def test_a_draft_that_became_good_is_found_and_used() -> None:
    length = AdaptiveLength(gpu(0.3))
    for _ in range(300):
        length.observe(outcome(length, draw(length, [UNSURE] * 16), 0))
    drafted = []
    for _ in range(400):
        drafted.append(draw(length, [SURE] * 16))
        length.observe(outcome(length, drafted[-1], drafted[-1]))
    assert np.mean(drafted[-100:]) > 4
    assert length.experience.interval == 8


def test_reading_a_long_chat_must_pay_too() -> None:
    length = AdaptiveLength(gpu(0.1))
    length.begin_round(16)
    assert length.pays(20)
    length.begin_round(16)
    assert not length.pays(100_000)
    assert not length.pays(1), "settled for this round"


def test_reading_ahead_of_a_round_is_learned_from() -> None:
    length = AdaptiveLength(gpu(0.1))
    length.begin_round(16)
    assert length.pays(3000)
    for _ in range(20):
        length.observe_reading(3000, 3000 * 0.1)
    length.begin_round(16)
    assert not length.pays(3000), "far dearer than was expected"
    assert length.pays(1) is False, "settled for this round"
    length.begin_round(16)
    assert length.pays(1)


def test_a_trial_pays_for_what_was_read_for_it() -> None:
    left = []
    for read in (0.0, 2.0):
        length = AdaptiveLength(gpu(0.4, growth=0.1))
        while not length._is_trial:
            drafted = draw(length, [UNSURE] * 2, probability=0.4)
            if length._is_trial:
                length.observe_reading(100, read)
            length.observe(outcome(length, drafted, 0, length.experience.verify(drafted + 1)))
        left.append(length._trials.amount)
    assert left[0] - left[1] == pytest.approx(2.0)


def test_a_larger_limit_is_looked_at_at_once() -> None:
    length = AdaptiveLength(cpu())
    length.begin_round(1)
    assert not length.could_use(0.45)
    length.begin_round(16)
    assert length.could_use(0.45), "sixteen tokens cost seven steps here, two cost more than one and a half"


def test_of_a_free_proposal_the_best_paying_length_is_used() -> None:
    length = AdaptiveLength(cpu())
    length.begin_round(16)
    assert length.choose([0.5] * 16) == 0
    assert length.choose([0.99] * 16) == 15, "a pass of 16 is cheaper than one of 12"
    assert length.choose([0.99] * 9) < 9
    length.begin_round(2)
    assert length.choose([0.99] * 16) == 2
    generous = AdaptiveLength(gpu())
    generous.begin_round(16)
    assert generous.choose([0.3] * 16) == 16, "where further tokens cost nothing in a pass"


def test_of_a_very_long_proposal_only_the_beginning_is_looked_at() -> None:
    length = AdaptiveLength(gpu())
    length.begin_round(64)
    assert 32 <= length.choose([0.99] * 60) <= 60


def test_what_can_be_lost_on_free_proposals_is_bounded() -> None:
    """A proposer that promises 0.99 and is always wrong costs a few steps, however long the reply is."""
    length = AdaptiveLength(cpu())
    lost, rounds = 0.0, 1000
    for _ in range(rounds):
        length.begin_round(16)
        count = length.choose([0.99] * 16)
        lost += CPU.get(count + 1, 8.0) - 1
        length.observe(RoundOutcome(count, 0, 0.0, CPU.get(count + 1, 8.0), "ngram" if count else "none"))
    assert lost < 0.02 * rounds


def test_an_honest_proposer_that_is_unlucky_is_not_stopped() -> None:
    length, lucky = AdaptiveLength(cpu()), np.random.default_rng(3)
    used = 0
    for _ in range(1000):
        length.begin_round(16)
        count = length.choose([0.95] * 16)
        used += count > 0
        kept = min(count, int(lucky.geometric(0.05)) - 1)
        length.observe(RoundOutcome(count, kept, 0.0, CPU.get(count + 1, 8.0), "ngram" if count else "none"))
    assert used > 990


def test_a_proposal_is_cut_where_passes_are_cheap_and_doubtful_beginnings_are_waited_for() -> None:
    length = AdaptiveLength(cpu())
    length.begin_round(16)
    assert length.choose([0.6, *[0.99] * 15]) == 0, "one plain step tells whether the rest is any good"
    assert length.choose([0.99] * 16) == 15
    assert length.choose([0.99] * 20) in (3, 4, 15)


def test_the_draft_model_and_a_free_proposal_compete() -> None:
    length = AdaptiveLength(gpu(0.1))
    length.begin_round(16)
    assert length.pays(1)
    assert length.choose([0.3, 0.3]) == 0
    assert length.choose([0.97] * 16) == 16
    lonely = AdaptiveLength(gpu(0.1))
    lonely.begin_round(16)
    assert lonely.choose([0.3, 0.3]) == 2, "no draft model was asked for"


def test_a_stall_does_not_change_its_mind() -> None:
    length = AdaptiveLength(gpu(0.1))
    before = []
    for _ in range(30):
        before.append(draw(length, [SURE] * 16))
        length.observe(outcome(length, before[-1], before[-1]))
    length.observe(outcome(length, draw(length, [SURE] * 16), 0, verify=10.0))
    assert draw(length, [SURE] * 16) >= before[-1] - 1


def test_rate_is_never_below_plain_decoding() -> None:
    length = AdaptiveLength(cpu(), floor=1)
    assert length.rate == pytest.approx(1.0)
    for _ in range(20):
        length.observe(outcome(length, draw(length, [UNSURE] * 4), 0, verify=1.64))
    assert length.rate == pytest.approx(1.0, rel=0.05)


# --- losslessness -----------------------------------------------------------------------------------------------------


def trained(experience: Experience, seed: int, rounds: int = 40) -> AdaptiveLength:
    """A length rule with a past: what it decides depends on it."""
    length, rng = AdaptiveLength(experience), np.random.default_rng(seed)
    for _ in range(rounds):
        margins = rng.exponential(1.0, size=6)
        rows = [np.array([margin, 0.0], dtype=np.float32) for margin in margins]
        drafted = draw(length, rows, limit=6, probability=rng.random())
        kept = 0
        while kept < drafted and rng.random() < 1 - 0.6 * np.exp(-margins[kept]):
            kept += 1
        length.observe(outcome(length, drafted, kept))
    return length


def rule_of(length: AdaptiveLength, q: Law, limit: int):
    """The length rule as the enumeration asks for it: after any drafted tokens, whether another one is drawn."""

    def more(drafted: Prefix, following: Distribution) -> bool:
        fresh = copy.deepcopy(length)
        if not fresh.begin_round(limit) or not fresh.pays(1):
            return False
        for i, token in enumerate(drafted):
            assert fresh.more(i, q(drafted[:i]))
            if not fresh.go_on(i + 1, q(drafted[:i]).probability(token)):
                return False
        return fresh.more(len(drafted), following)

    return more


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_whose_length_it_decides_keep_the_target_s_distribution(rule: str, seed: int) -> None:
    """Exactly: every draft, every verdict. Lengths differ from block to block, so the rule is really at work."""
    vocabulary = (0, 1, 2)
    p = random_law(seed, vocabulary)
    q = random_law(seed + 50, vocabulary, sharpness=4.0)
    lengths: set[int] = set()
    for step in (0.2, 0.3, 0.4, 0.5):
        world = World(p, q, num_draft_tokens=3, more=rule_of(trained(gpu(step), seed), q, 3))
        found = {len(drafted) for drafted, _ in drafts(world)}
        lengths |= found if len(found) > 1 else set()
        assert largest_difference(world, rule_named(rule)) < 1e-12
    assert len(lengths) >= 2


@pytest.mark.parametrize("rule", ["token", "block"])
def test_also_where_distributions_are_disjoint_or_certain_and_a_reply_can_end(rule: str) -> None:
    vocabulary = (0, 1, 2)
    for seed in range(4):
        p, q = mixed_laws(seed, vocabulary)
        length = trained(gpu(0.36), seed)
        world = World(p, q, num_draft_tokens=3, ends=frozenset({2}), more=rule_of(length, q, 3))
        assert largest_difference(world, rule_named(rule)) < 1e-12
