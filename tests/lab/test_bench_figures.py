"""The figures of a bench, from results that are written down by hand."""

from __future__ import annotations

import json
import math

import pytest

from specchat.core.events import Finished, Prefill
from specchat.core.stats import RoundTotals
from specchat.core.theory import RoundCosts
from specchat.engine.interface import Calibration
from specchat.lab.bench_data import to_data
from specchat.lab.bench_figures import costs_of, figures, rows_of
from specchat.lab.bench_plan import parse_settings
from specchat.lab.bench_samples import ReplyFold, RoundsByDrafter
from tests.lab.bench_results import CALIBRATION, PROMPTS, played, result, sample, servers, small_result, trial

[SETTING] = parse_settings("draft γ4 token T0.7")


def test_a_reply_is_folded_into_what_the_report_needs() -> None:
    fold = ReplyFold()
    for event in (Prefill("target", 29, 0, 0.5), Prefill("draft", 29, 0, 0.25), played(4, 2), played(0, 0)):
        fold.add(event)
    assert fold.finished is None
    fold.add(Finished("end", 4, 2, 0.33, 0.5, None, (), None, None, None, None, None))
    found = fold.sample(memory_bytes=7)
    assert (found.tokens, found.seconds, found.prompt_tokens, found.prompt_seconds) == (4, 0.33, 30, 0.5)
    assert found.draft_prefill_seconds == 0.25
    assert found.first_seconds == pytest.approx(0.25 + 0.04)
    assert found.tokens_per_second == pytest.approx(4 / 0.33)
    assert set(found.rounds.totals) == {"draft", "none"}
    assert found.memory_bytes == 7


def test_a_warm_cache_gives_no_time_of_a_prompt_and_no_tokens_give_no_speed() -> None:
    fold = ReplyFold()
    fold.add(Prefill("target", 1, 28, 0.01))
    fold.add(Finished("length", 0, 0, 0.0, 0.01, None, (), None, None, None, None, None))
    found = fold.sample(None)
    assert found.prompt_seconds is None
    assert found.tokens_per_second is None
    assert found.first_seconds == 0.0


def test_folds_are_put_together() -> None:
    one, other = RoundTotals([played(4, 2), played(0, 0)]), RoundTotals([played(4, 4), played(2, 0)])
    one.include(other)
    whole = RoundTotals([played(4, 2), played(0, 0), played(4, 4), played(2, 0)])
    for name in ("rounds", "tokens", "accepted", "rejected", "ignored", "all_accepted", "rounds_by_length"):
        assert getattr(one, name) == getattr(whole, name)
    assert one.acceptance_by_position == whole.acceptance_by_position
    assert one.seconds == pytest.approx(whole.seconds)


def test_a_prediction_counts_draft_steps_of_the_draft_model_only() -> None:
    costs = RoundCosts({1: 1.0, 5: 3.0}, draft_step=0.5, catch_up=0.25)
    rounds = RoundsByDrafter()
    for each in (played(4, 4), played(4, 1, "ngram"), played(0, 0)):
        rounds.add(each)
    # tokens 5 + 2 + 1; costs 4 · 0.5 + 3 + 0.25, 3, and 1
    assert rounds.predicted_speedup(costs) == pytest.approx(8 / (5.25 + 3 + 1))
    rounds.add(played(8, 0))
    assert rounds.predicted_speedup(costs) is None  # passes of nine tokens were not measured
    assert RoundsByDrafter().predicted_speedup(costs) is None


def test_figures_over_all_prompts() -> None:
    found = figures(small_result().trials, "ours", costs_of(CALIBRATION), {})
    assert found.replies == 4
    assert found.tokens_per_second == pytest.approx(math.sqrt(50 * 150))
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(math.sqrt(0.5 * 1.5))
    # replies did not differ, so repeating does not move the figure
    assert (found.speedup.low, found.speedup.high) == (
        pytest.approx(found.speedup.value), pytest.approx(found.speedup.value)
    )  # fmt: skip
    # by round: 4 + 2 + 0 + 1 kept; all but the first round have one rejected
    assert found.acceptance_rate == pytest.approx(7 / 10)
    assert found.acceptance_by_position == pytest.approx((3 / 4, 2 / 3, 1 / 2, 1.0))
    assert found.tokens_per_round == pytest.approx(11 / 4)
    cost = 4 * (4 * 0.2 + 3.0) + 0.1
    assert found.predicted_speedup == pytest.approx(11 / cost)
    assert found.share_of_ceiling == pytest.approx(found.speedup.value / (11 / cost))
    assert found.outside_share == pytest.approx(0.10)
    assert found.first_token_seconds == pytest.approx(0.12)
    assert found.split is not None
    shares = (
        found.split.draft_prefill, found.split.draft, found.split.verify, found.split.sample, found.split.other
    )  # fmt: skip
    assert sum(shares) == pytest.approx(1)
    assert found.split.draft_prefill == pytest.approx(0.5)
    assert found.split.verify == pytest.approx(0.35)


def test_plain_is_what_others_are_compared_with() -> None:
    found = figures(small_result().trials, "plain", costs_of(CALIBRATION), {})
    assert (found.speedup, found.predicted_speedup, found.share_of_ceiling) == (None, None, None)
    assert found.tokens_per_second == pytest.approx(100)


def test_a_reply_without_tokens_is_left_out_of_ratios() -> None:
    done = trial(SETTING, PROMPTS[0], plain=sample(100), ours=sample(50, tokens=0))
    found = figures([done], "ours", None, {})
    assert found.speedup is None
    assert found.tokens_per_second is None


def test_rows_stand_by_temperature_with_their_reference_first() -> None:
    settings = parse_settings("draft γ4 token T0.7, draft γ4 token T0, ngram γ8 token T0.7, plain T1")
    done = [
        trial(each, PROMPTS[0], plain=sample(100), **({} if each.is_plain else {"ours": sample(50)}))
        for each in settings
    ]
    rows = rows_of(result(done, ", ".join(each.label for each in settings)))
    assert [row.label for row in rows] == [
        "plain T0.7", "draft γ4 token T0.7", "ngram γ8 token T0.7", "plain T0", "draft γ4 token T0", "plain T1"
    ]  # fmt: skip
    assert rows[0].overall.replies == 2  # the plain replies next to both settings of that temperature


def test_what_was_not_measured_has_no_row() -> None:
    rows = rows_of(result([trial(SETTING, PROMPTS[0], plain=sample(100), ours=sample(50))], "γ4 token, γ8, γ4 T0"))
    assert [row.label for row in rows] == ["plain T0.7", "draft γ4 token T0.7"]


@pytest.mark.parametrize(("ours", "others"), [(None, 0.1), (0.1, None)])
def test_prompts_that_only_one_side_read_from_a_cold_cache_say_nothing(ours, others) -> None:
    samples = {
        "plain": sample(100, prompt_seconds=ours),
        "ours": sample(120),
        "server": sample(80, prompt_seconds=others, first_seconds=0.0),
    }
    both = {
        "plain": sample(100, prompt_seconds=0.3),
        "ours": sample(120),
        "server": sample(80, prompt_seconds=0.4, first_seconds=0.0),
    }
    done = [trial(SETTING, PROMPTS[0], **samples), trial(SETTING, PROMPTS[1], **both)]
    found = {row.label: row.overall.first_token_seconds for row in rows_of(result(done, servers=servers()))}
    assert found == {
        name: pytest.approx(value)
        for name, value in (("plain T0.7", 0.32), ("server T0.7", 0.4), ("draft γ4 token T0.7", 0.32))
    }


def test_another_server_is_compared_with_both_of_ours() -> None:
    done = [
        trial(
            SETTING,
            prompt,
            plain=sample(100, prompt_seconds=0.3),
            ours=sample(120),
            server=sample(80, prompt_seconds=0.4, first_seconds=0.0),
        )
        for prompt in PROMPTS
    ]
    plain, other, ours = rows_of(result(done, servers=servers()))
    assert (plain.label, other.label, ours.label) == ("plain T0.7", "server T0.7", "draft γ4 token T0.7")
    assert plain.overall.against is not None
    assert ours.overall.against is not None
    assert other.overall.speedup is not None
    assert plain.overall.against.value == pytest.approx(100 / 80)
    assert ours.overall.against.value == pytest.approx(120 / 80)
    assert other.overall.speedup.value == pytest.approx(80 / 100)
    assert other.overall.against is None
    assert other.overall.first_token_seconds == pytest.approx(0.4)
    assert ours.overall.first_token_seconds == pytest.approx(0.32)
    assert ours.by_category["chat"].against == ours.by_category["code"].against


def test_several_servers_are_met_where_each_is_the_fastest() -> None:
    """The first is the fastest of the two with code, the second with chat."""
    speeds = {"code": {"one": 80.0, "two": 50.0}, "chat": {"one": 60.0, "two": 240.0}}
    done = [
        trial(
            SETTING,
            prompt,
            repetition,
            plain=sample(100),
            ours=sample(120),
            **{name: sample(speed) for name, speed in speeds[prompt.category].items()},
        )
        for prompt in PROMPTS
        for repetition in range(2)
    ]
    plain, one, two, ours = rows_of(result(done, servers=servers("one", "two")))
    assert (one.label, two.label) == ("one T0.7", "two T0.7")
    assert plain.fastest_servers == ours.fastest_servers == {"code": "one", "chat": "two"}
    ratios = {name: each.against and each.against.value for name, each in ours.by_category.items()}
    assert ratios == {"code": pytest.approx(120 / 80), "chat": pytest.approx(120 / 240)}
    assert ours.overall.against is not None
    assert ours.overall.against.value == pytest.approx(math.sqrt(120 / 80 * 120 / 240))
    assert ours.overall.against.pairs == 4


def test_costs_that_make_no_sense_are_no_costs() -> None:
    assert costs_of(Calibration({1: 0.0}, None, None, (), 1.0)) is None
    assert costs_of(Calibration({}, None, None, (), 1.0)) is None


def test_the_data_are_json_and_complete() -> None:
    data = to_data(small_result(), "2026-01-02T03:04:05+00:00")
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == json.loads(json.dumps(data))
    assert data["complete"] is True
    assert [row["label"] for row in data["rows"]] == ["plain T0.7", "draft γ4 token T0.7"]
    assert set(data["rows"][1]["categories"]) == {"code", "chat"}
    assert len(data["replies"]) == 8
    assert data["costs"]["c"] == pytest.approx(0.2)
    assert data["costs"]["v"]["5"] == pytest.approx(3.0)
    assert data["machine"]["devices"][0]["description"] == "A GPU"
    assert to_data(small_result(stopped=True), "")["complete"] is False
