"""Settings in words, and the order in which they are measured."""

from __future__ import annotations

from itertools import pairwise

import pytest

from specchat.core.settings import ReplySettings
from specchat.errors import UsageError
from specchat.lab.bench_plan import (
    QUICK,
    STANDARD,
    Plan,
    Setting,
    choose_prompts,
    one_of_each,
    parse_settings,
)
from specchat.lab.prompts import CATEGORIES, PROMPTS


def labels(text: str) -> list[str]:
    return [setting.label for setting in parse_settings(text)]


def test_what_is_left_out_is_the_default() -> None:
    assert parse_settings("draft") == (Setting("draft", "watch", 4, "block", 0.7),)
    assert parse_settings("T0") == (Setting("draft", "watch", 4, "block", 0.0),)


def test_alternatives_stand_for_every_combination() -> None:
    assert labels("draft γ1/2 T0/0.7") == [
        "draft γ1 block T0", "draft γ1 block T0.7", "draft γ2 block T0", "draft γ2 block T0.7"
    ]  # fmt: skip
    assert labels("g4/fast/γauto, plain T1, ngram/auto g16") == [
        "draft γ4 block T0.7",
        "draft fast block T0.7",
        "draft γauto block T0.7",
        "plain T1",
        "ngram γ16 block T0.7",
        "auto γ16 block T0.7",
    ]


def test_plain_has_neither_rule_nor_length_and_each_setting_comes_once() -> None:
    assert labels("plain γ4 token T0, plain T0, T0.7, draft T0.7") == ["plain T0", "draft γ4 block T0.7"]


@pytest.mark.parametrize("text", [*STANDARD, *QUICK])
def test_a_label_can_be_typed_again(text: str) -> None:
    for setting in parse_settings(text):
        assert parse_settings(setting.label) == (setting,)


def test_the_standard_plan_has_all_that_is_asked_for() -> None:
    settings = parse_settings(", ".join(STANDARD))
    assert {each.num_draft_tokens for each in settings} >= {*range(1, 9), None}
    assert {each.rule for each in settings} == {"token", "block", "match"}
    assert {each.temperature for each in settings} == {0.0, 0.7, 1.0}
    assert {each.drafter for each in settings} == {"draft", "ngram", "auto"}
    assert {each.mode for each in settings} == {"watch", "fast"}
    assert len(settings) == len(set(settings))


@pytest.mark.parametrize(
    ("text", "message", "next_step"),
    [
        ("", "No settings were named", "--settings"),
        ("tokn", "'tokn' is no word", "'token'"),
        ("xyz", "'xyz' is no word", "Words: plain"),
        ("γ", "'γ' is no word", ""),
        ("T", "'T' is no word", ""),
        ("γ4 γ5", "says twice what its draft length is", "comma"),
        ("fast γ5", "says twice what its draft length is", "comma"),
        ("draft/token", "mixes drafter and rule", "words of their own"),
    ],
)
def test_words_that_are_wrong(text: str, message: str, next_step: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_settings(text)
    assert message in caught.value.message
    assert next_step in caught.value.next_step


def test_a_setting_is_written_with_the_settings_of_a_reply() -> None:
    [setting] = parse_settings("ngram γ8 block T0")
    written = setting.reply_settings(96, 7)
    assert (written.drafter, written.mode, written.num_draft_tokens, written.rule) == ("ngram", "watch", 8, "block")
    assert (written.sampling.temperature, written.max_tokens, written.seed) == (0.0, 96, 7)
    assert written.sampling.top_k == ReplySettings().sampling.top_k
    assert setting.plain.reply_settings(96, 7).drafter == "none"
    assert setting.plain.label == "plain T0"


def test_each_reply_stands_next_to_its_reference_and_who_begins_changes() -> None:
    plan = Plan(parse_settings("γ1/2, plain T0"), PROMPTS[:2], repetitions=2)
    trials = list(plan.trials())
    one, two = ("plain", "ours"), ("ours", "plain")
    first = [one, two] * 2 + [("plain",)] * 2
    second = [two, two] * 2 + [("plain",)] * 2
    assert [trial.order for trial in trials] == first + second
    assert [trial.repetition for trial in trials] == [0] * 6 + [1] * 6
    # two prompts in a row are never the same, so that a draft finds none in its cache
    assert all(one.prompt != next_one.prompt for one, next_one in pairwise(trials))


def test_servers_take_their_turns() -> None:
    plan = Plan(parse_settings("γ1"), PROMPTS[:1], repetitions=8)
    orders = [trial.order for trial in plan.trials(["one", "two"])]
    assert orders[:3] == [
        ("plain", "ours", "one", "two"), ("two", "one", "ours", "plain"), ("ours", "one", "two", "plain")
    ]  # fmt: skip
    for place in range(4):
        assert sorted(order[place] for order in orders) == sorted(("plain", "ours", "one", "two") * 2)
    assert sum(order.index("plain") < order.index("ours") for order in orders) == 4


def test_a_plan_without_a_drafter() -> None:
    plan = Plan(parse_settings("draft/ngram/auto, plain T0"), PROMPTS)
    assert [each.drafter for each in plan.without({"draft", "auto"}).settings] == ["ngram", "none"]


def test_prompts_by_category() -> None:
    assert {prompt.category for prompt in choose_prompts(PROMPTS, ["list", "code"])} == {"list", "code"}
    assert choose_prompts(PROMPTS, CATEGORIES) == PROMPTS
    assert [prompt.category for prompt in one_of_each(PROMPTS)] == list(CATEGORIES)
    assert one_of_each(PROMPTS)[0] == PROMPTS[0]
    with pytest.raises(UsageError, match="no category 'maths'") as caught:
        choose_prompts(PROMPTS, ["maths"])
    assert "mathematics" in caught.value.next_step
    with pytest.raises(UsageError) as caught:
        choose_prompts(PROMPTS, ["zzz"])
    assert "Categories: code" in caught.value.next_step
