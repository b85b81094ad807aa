"""What a calibration comes to: predictions by hand, and what is recommended."""

import json
from pathlib import Path

import pytest

from specchat.core.theory import RoundCosts
from specchat.engine.interface import Prediction
from specchat.engine.predictions import predict_free, predict_model, recommend
from tests.backends.prompt_lookup import PromptLookup

FLAT = RoundCosts(dict.fromkeys(range(1, 18), 1.0))


def ngram() -> PromptLookup:
    return PromptLookup()


def test_the_draft_model_at_each_length() -> None:
    costs = RoundCosts(dict.fromkeys(range(1, 18), 1.0), draft_step=0.25)
    found = predict_model([0.5, 0.5], costs, [1, 2])
    assert [(each.drafter, each.num_draft_tokens) for each in found] == [("draft", 1), ("draft", 2)]
    assert [each.speedup for each in found] == pytest.approx([1.5 / 1.25, 1.75 / 1.5])


def test_what_repeats_itself_takes_fewer_passes() -> None:
    """Eight tokens that are all in the prompt: the first three rounds find no match of three, then one finds five."""
    prompt = [1, 2, 3, 4, 5, 6, 7, 8, 0]
    reply = [1, 2, 3, 4, 5, 6, 7, 8]
    [two, seven] = predict_free(ngram(), [(prompt, reply)], FLAT, [2, 7])
    assert two == Prediction("ngram", 2, pytest.approx(8 / (3 + 2)))
    assert seven == Prediction("ngram", 7, pytest.approx(8 / (3 + 1)))


def test_a_proposal_that_is_wrong_costs_its_pass() -> None:
    dear = RoundCosts({size: float(size) for size in range(1, 10)})
    prompt, reply = [1, 2, 3, 4, 5, 6, 7, 8, 0], [1, 2, 3, 9, 9]
    [found] = predict_free(ngram(), [(prompt, reply)], dear, [4])
    assert found.speedup == pytest.approx(5 / (1 + 1 + 1 + 2 + 1)), "one token more in the pass before the last"


def test_what_does_not_repeat_itself_is_as_fast_as_plain() -> None:
    [found] = predict_free(ngram(), [([1, 2, 3], [4, 5, 6, 7])], FLAT, [4])
    assert found.speedup == 1.0
    assert predict_free(ngram(), [], FLAT, [4])[0].speedup == 1.0


def test_the_fastest_is_recommended_if_it_gains_enough() -> None:
    plain = Prediction("none", 0, 1.0)
    assert recommend([]) == plain
    assert recommend([Prediction("draft", 1, 0.7), Prediction("ngram", 4, 1.02)]) == plain
    best = Prediction("draft", 3, 1.4)
    assert recommend([Prediction("draft", 1, 1.2), best, Prediction("ngram", 4, 1.1)]) == best


def test_what_was_predicted_for_the_real_pair_is_near_what_replies_then_measured() -> None:
    """A calibration of the real pair and replies that were timed right after it (tests/data/record_predictions.py)."""
    data = json.loads((Path(__file__).parents[1] / "data" / "predictions.json").read_text(encoding="utf-8"))
    seconds = {int(size): value for size, value in data["pass_seconds"].items()}
    costs = RoundCosts.from_seconds(seconds, data["draft_step_seconds"], data["draft_catch_up_seconds"])
    stored = {(drafter, length): speedup for drafter, length, speedup in data["predicted"]}
    for drafter, length, measured in data["measured"]:
        predicted = stored[drafter, length]
        if drafter == "draft":
            [again] = predict_model(data["acceptance_by_position"], costs, [length])
            assert again.speedup == pytest.approx(predicted, rel=1e-3)
        assert predicted == pytest.approx(measured, rel=0.1), (drafter, length)
    recommended = recommend(Prediction(*each) for each in data["predicted"])
    fastest = max(speedup for _, _, speedup in data["measured"])
    assert (recommended.drafter == "none") == (fastest < 1.03)
