"""The engine in this process, on toy pairs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from specchat.backends.markov import MarkovModel
from specchat.core.events import Fate, Finished, PlainSpeed, Prefill, Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings, in_mode
from specchat.engine import measuring
from specchat.engine.interface import (
    Calibrate,
    Calibration,
    DeviceList,
    Devices,
    Failed,
    Inspect,
    Learned,
    Load,
    Loaded,
    LoadProgress,
    Note,
    Progress,
    PromptSize,
    ReplyEvent,
    Set,
    Stop,
)
from specchat.engine.local import LocalEngine
from specchat.engine.pair import LoadedPair, check_same_vocabulary
from specchat.errors import PairMismatchError
from tests.decoding.toys import cyclic
from tests.engine import toy_loader
from tests.engine.conversing import (
    LOAD,
    PATIENCE,
    ended,
    events_of,
    is_round,
    reply,
    rounds,
    settings,
    until,
    until_kind,
    written,
)

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(toy_loader.load, lambda: DeviceList((), "toy", "none"))
    yield engine
    engine.close()


@pytest.fixture
def loaded(engine: LocalEngine) -> LocalEngine:
    engine.send(LOAD)
    until_kind(engine, Loaded)
    return engine


def test_loading_tells_how_far_it_is_and_what_was_loaded(engine: LocalEngine) -> None:
    engine.send(LOAD)
    *progress, last = until(engine, lambda message: isinstance(message, Loaded))
    assert [message.fraction for message in progress if isinstance(message, LoadProgress)] == [0.0, 0.5, 1.0]
    assert isinstance(last, Loaded)
    assert (last.target.name, last.draft and last.draft.name) == ("toy", "toy-draft")
    assert last.n_ctx == 4096
    assert last.max_draft_tokens == 511
    assert last.has_chat_template
    assert last.notes == ("A toy, not a model.",)


def test_a_pair_that_cannot_be_loaded_leaves_the_engine_alive(engine: LocalEngine) -> None:
    engine.send(Load("broken"))
    failed = until_kind(engine, Failed)
    assert failed == Failed("LoadError", "llama.cpp: the file is truncated.", "Fetch it again with `specchat pull`.")
    engine.send(LOAD)
    until_kind(engine, Loaded)


def test_loading_can_be_stopped(engine: LocalEngine) -> None:
    engine.send(Load("endless"))
    until_kind(engine, LoadProgress)
    engine.send(Stop())
    assert until_kind(engine, Failed).kind == "CancelledError"
    engine.send(reply())
    assert until_kind(engine, Failed).kind == "LoadError"


def test_nothing_works_before_a_pair_is_loaded_but_devices(engine: LocalEngine) -> None:
    for command in (reply(5), Inspect((ChatMessage("user", "a"),)), Calibrate()):
        engine.send(command)
        failed = until_kind(engine, Failed)
        assert failed.kind == "LoadError"
        assert failed.next_step
    engine.send(Devices())
    assert until_kind(engine, DeviceList) == DeviceList((), "toy", "none")


def test_watch_drafts_every_round(loaded: LocalEngine) -> None:
    loaded.send(reply())
    events = events_of(loaded, 1)
    assert isinstance(events[0], Prefill)
    assert isinstance(events[1], PlainSpeed)
    assert isinstance(events[-1], Finished)
    played = rounds(events)
    assert {event.num_draft_tokens for event in played[:-1]} == {4}
    assert {event.rule for event in played} == {"token"}
    fates = {token.fate for event in played for token in event.drafted}
    assert Fate.ACCEPTED in fates
    assert Fate.REJECTED in fates


@pytest.mark.parametrize(("changes", "lengths"), [({"num_draft_tokens": 2}, {2}), ({"num_draft_tokens": 0}, {0})])
def test_watch_with_another_length(loaded: LocalEngine, changes: dict[str, int], lengths: set[int]) -> None:
    loaded.send(reply(the_settings=settings(**changes)))
    assert {event.num_draft_tokens for event in rounds(events_of(loaded, 1))[:-1]} == lengths


@pytest.mark.parametrize("rule", ["token", "block", "match"])
def test_the_rule_is_the_one_that_was_set(loaded: LocalEngine, rule: str) -> None:
    loaded.send(reply(the_settings=settings(rule=rule)))
    assert {event.rule for event in rounds(events_of(loaded, 1))[:-1]} == {rule}


def fast(**changes: Any) -> ReplySettings:
    return in_mode(settings(**changes), "fast")


def test_fast_says_whether_it_drafts_and_only_when_that_changes(loaded: LocalEngine) -> None:
    said = []
    for number in range(1, 6):
        loaded.send(reply(number, the_settings=fast()))
        said += [event.why for event in rounds(events_of(loaded, number)) if event.why is not None]
    assert said, "the first decision is news"
    assert all(text == "fast: drafting" or text.startswith("fast: not drafting") for text in said)
    assert all(text.split(",")[0] != after.split(",")[0] for text, after in pairwise(said))


def test_in_fast_the_number_of_draft_tokens_is_a_limit(loaded: LocalEngine) -> None:
    loaded.send(reply(the_settings=fast(num_draft_tokens=2, max_tokens=200)))
    assert max(event.num_draft_tokens for event in rounds(events_of(loaded, 1))) <= 2


def test_a_draft_that_is_not_expected_to_pay_is_left_out_until_it_is_wanted(engine: LocalEngine) -> None:
    engine.send(Load("quiet", "toy-draft", draft_if_it_pays=True))
    assert until_kind(engine, Loaded).draft is None
    for number in (1, 2):
        engine.send(reply(number, the_settings=fast()))
        played = rounds(events_of(engine, number))
        assert {event.num_draft_tokens for event in played} == {0}
        assert [event.why for event in played if event.why] == ["fast: the draft is left out"] * (number == 1)
    engine.send(reply(3, the_settings=settings()))
    messages = until(engine, lambda message: ended(message, 3))
    assert [message.model for message in messages if isinstance(message, LoadProgress)] == ["draft"]
    [loaded] = [message for message in messages if isinstance(message, Loaded)]
    assert loaded.draft is not None
    assert max(message.event.num_draft_tokens for message in messages if is_round(message)) == 4


def test_what_was_learned_comes_before_the_end_and_is_given_back(engine: LocalEngine) -> None:
    engine.send(LOAD)
    engine.send(reply(the_settings=settings(max_tokens=40)))
    messages = until(engine, lambda message: ended(message, 1))
    learned = messages[-2]
    assert isinstance(learned, Learned)
    assert learned.setup == "toys"
    assert set(learned.experience["target"]) >= {"1", "5"}, "watch teaches what fast needs to know"
    engine.send(replace(LOAD, learned=(learned,)))
    engine.send(reply(2, the_settings=settings(max_tokens=1, drafter="none"), measure_plain=False))
    again = until(engine, lambda message: ended(message, 2))[-2]
    assert isinstance(again, Learned)
    assert again.experience["target"]["5"] == pytest.approx(learned.experience["target"]["5"], rel=0.2)


def test_watch_with_an_adaptive_length_drafts_at_least_one(loaded: LocalEngine) -> None:
    loaded.send(reply(the_settings=settings(num_draft_tokens=None)))
    lengths = [event.num_draft_tokens for event in rounds(events_of(loaded, 1))]
    assert min(lengths[:-1]) >= 1


def test_no_drafter_is_plain_decoding(loaded: LocalEngine) -> None:
    loaded.send(reply(the_settings=settings(drafter="none")))
    played = rounds(events_of(loaded, 1))
    assert {event.rule for event in played} == {"plain"}
    assert {event.why for event in played} == {None}


def test_a_drafter_that_is_not_there_is_told(loaded: LocalEngine) -> None:
    loaded.send(reply(the_settings=settings(drafter="ngram")))
    assert "ngram" in (rounds(events_of(loaded, 1))[0].why or "")


GREEDY = SamplingParams(temperature=0)


def test_exact_stays_within_the_tested_pass(engine: LocalEngine) -> None:
    engine.send(Load("quiet", "toy-draft", exact=True))
    until_kind(engine, Loaded)
    engine.send(reply(1, the_settings=settings(mode="exact", sampling=GREEDY)))
    exact = events_of(engine, 1)
    assert max(event.num_draft_tokens for event in rounds(exact)) == 2
    assert rounds(exact)[0].why == "exact: passes of up to 3"
    engine.send(reply(2, the_settings=settings(drafter="none", sampling=GREEDY)))
    assert written(exact) == written(events_of(engine, 2))


def test_exact_decodes_plainly_where_nothing_was_tested(loaded: LocalEngine) -> None:
    loaded.send(reply(the_settings=settings(mode="exact", sampling=GREEDY)))
    played = rounds(events_of(loaded, 1))
    assert {event.num_draft_tokens for event in played} == {0}
    assert "plainly" in (played[0].why or "")


def test_exact_says_that_it_is_about_temperature_zero(engine: LocalEngine) -> None:
    engine.send(Load("quiet", "toy-draft", exact=True))
    engine.send(reply(the_settings=settings(mode="exact")))
    until_kind(engine, Loaded)
    assert "temperature 0" in (rounds(events_of(engine, 1))[0].why or "")


def test_a_seed_makes_a_reply_repeatable(loaded: LocalEngine) -> None:
    replies = []
    for number in range(1, 4):
        loaded.send(reply(number, the_settings=settings(seed=None if number == 3 else 11)))
        replies.append(written(events_of(loaded, number)))
    assert replies[0] == replies[1]
    assert replies[0] != replies[2], "equal with a chance below 1e-9: 24 tokens drawn anew"


def test_replies_without_a_seed_differ(engine: LocalEngine) -> None:
    engine.send(Load("quiet", "toy-draft"))
    until_kind(engine, Loaded)
    replies = []
    for number in (1, 2):
        engine.send(reply(number, the_settings=settings(seed=None)))
        replies.append(written(events_of(engine, number)))
    assert replies[0] != replies[1]


def test_plain_speed_is_measured_once_a_chat(loaded: LocalEngine) -> None:
    speeds = []
    for number in (1, 2):
        loaded.send(reply(number))
        speeds += [event for event in events_of(loaded, number) if isinstance(event, PlainSpeed)]
    assert len(speeds) == 2
    assert speeds[0].tokens_per_second == speeds[1].tokens_per_second
    assert speeds[0].source.endswith("plain steps before this reply")
    assert speeds[1].source.endswith("plain steps before a past reply")
    loaded.send(LOAD)
    until_kind(loaded, Loaded)
    loaded.send(reply(3, measure_plain=False))
    assert not [event for event in events_of(loaded, 3) if isinstance(event, PlainSpeed)], "another pair, another speed"


@pytest.mark.parametrize(("mode", "is_renewed"), [("watch", True), ("fast", False)])
def test_an_old_plain_speed_is_measured_again_but_fast_does_not_stop_for_it(
    loaded: LocalEngine, monkeypatch: pytest.MonkeyPatch, mode: str, is_renewed: bool
) -> None:
    monkeypatch.setattr("specchat.engine.local._PLAIN_LASTS", -1.0)
    first, again = [], []
    for number, speeds in ((1, first), (2, again)):
        loaded.send(reply(number, the_settings=settings(mode=mode, max_tokens=4)))
        speeds += [event for event in events_of(loaded, number) if isinstance(event, PlainSpeed)]
    assert len(first) == len(again) == 1
    assert (first[0].tokens_per_second != again[0].tokens_per_second) == is_renewed


def test_a_plain_speed_that_is_used_again_grows_no_younger(
    loaded: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("specchat.engine.local.monotonic", lambda: now[0])
    speeds = []
    for number, at in enumerate((0.0, 100.0, 200.0), 1):
        now[0] = 1000.0 + at
        loaded.send(reply(number, the_settings=settings(max_tokens=4)))
        events = events_of(loaded, number)
        speeds += [event.tokens_per_second for event in events if isinstance(event, PlainSpeed)]
    assert speeds[0] == speeds[1] != speeds[2]


def test_stop_keeps_what_came(engine: LocalEngine) -> None:
    engine.send(Load("slow", "toy-draft"))
    engine.send(reply(the_settings=settings(max_tokens=None)))
    until(engine, is_round)
    engine.send(Stop())
    events = events_of(engine, 1)
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "interrupted"
    assert events[-1].tokens > 0


def test_stop_also_reaches_a_reply_that_has_not_begun(loaded: LocalEngine) -> None:
    loaded.send(reply(1, the_settings=settings(max_tokens=None)))
    loaded.send(reply(2, the_settings=settings(max_tokens=None)))
    loaded.send(Stop())
    loaded.send(reply(3))
    ends = {}
    while len(ends) < 3:
        message = loaded.receive(PATIENCE)
        if isinstance(message, ReplyEvent) and isinstance(message.event, Finished):
            ends[message.reply] = message.event.reason
    assert ends[1] == ends[2] == "interrupted"
    assert ends[3] in ("length", "end"), "a Stop concerns what came before it"


def test_settings_change_while_a_reply_is_written(engine: LocalEngine) -> None:
    engine.send(Load("slow", "toy-draft"))
    engine.send(reply(the_settings=settings(max_tokens=None)))
    until(engine, is_round)
    engine.send(Set(settings(max_tokens=None, num_draft_tokens=2, rule="block")))

    def changed(message: object) -> bool:
        return is_round(message) and (message.event.num_draft_tokens, message.event.rule) == (2, "block")

    until(engine, changed)
    engine.send(Set(fast(max_tokens=None)))
    until(engine, lambda message: is_round(message) and (message.event.why or "").startswith("fast: "))
    engine.send(Stop())
    events_of(engine, 1)


def test_settings_of_before_do_not_touch_a_later_reply(loaded: LocalEngine) -> None:
    loaded.send(Set(settings(num_draft_tokens=1)))
    loaded.send(reply(the_settings=settings(num_draft_tokens=3)))
    assert {event.num_draft_tokens for event in rounds(events_of(loaded, 1))[:-1]} == {3}


def test_the_size_of_a_prompt(loaded: LocalEngine) -> None:
    messages = (ChatMessage("user", "abc"),)
    loaded.send(Inspect(messages))
    before = until_kind(loaded, PromptSize)
    assert before.reused == 0
    assert before.n_ctx == 4096
    loaded.send(reply())
    events_of(loaded, 1)
    loaded.send(Inspect(messages))
    after = until_kind(loaded, PromptSize)
    assert after.tokens == before.tokens
    assert after.reused == after.tokens


def test_a_conversation_that_does_not_fit(engine: LocalEngine) -> None:
    engine.send(Load("toy", None, n_ctx=16))
    until_kind(engine, Loaded)
    engine.send(reply(4, "abc" * 20))
    failed = until_kind(engine, Failed)
    assert (failed.kind, failed.reply) == ("ContextFullError", 4)
    engine.send(reply(5))
    assert rounds(events_of(engine, 5))


def test_a_fault_of_ours_is_told_and_survived(engine: LocalEngine) -> None:
    def explode(command: Load, on_progress: object) -> LoadedPair:
        raise KeyError("missing")

    engine = LocalEngine(explode)
    engine.send(LOAD)
    failed = until_kind(engine, Failed)
    assert failed.kind == "KeyError"
    assert "missing" in failed.message
    engine.send(LOAD)
    assert until_kind(engine, Failed).kind == "KeyError"
    engine.close()


@pytest.mark.parametrize("quick", [True, False])
def test_calibration(engine: LocalEngine, quick: bool) -> None:
    engine.send(Load("quiet", "toy-draft"))
    until_kind(engine, Loaded)
    engine.send(reply())
    held = len(written(events_of(engine, 1)))
    assert held == 24
    engine.send(Calibrate(quick))
    messages = until(engine, lambda message: isinstance(message, Calibration | Failed))
    assert all(0 <= message.fraction <= 1 for message in messages if isinstance(message, Progress))
    assert isinstance(messages[-1], Calibration)
    measured = messages[-1]
    assert list(measured.pass_seconds)[:4] == [1, 2, 3, 4]
    assert all(seconds > 0 for seconds in measured.pass_seconds.values())
    assert measured.draft_step_seconds is not None
    assert measured.draft_step_seconds > 0
    assert len(measured.acceptance_by_position) == 4
    assert 0 < measured.acceptance_by_position[0] < 1
    assert measured.plain_tokens_per_second > 0
    engine.send(Inspect((ChatMessage("user", "abc"),)))
    size = until_kind(engine, PromptSize)
    assert size.reused == size.tokens, "the chat's cache is there again"


def test_a_quick_calibration_ends_in_time_and_is_whole(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where passes take so long that there is time for the fewest of them only."""
    monkeypatch.setattr(measuring, "_QUICK_PASSES_SECONDS", 0.0)
    monkeypatch.setattr(measuring, "_QUICK_SECONDS", 0.0)
    engine.send(Load("quiet", "toy-draft"))
    until_kind(engine, Loaded)
    engine.send(Calibrate())
    messages = until(engine, lambda message: isinstance(message, Calibration | Failed))
    fractions = [message.fraction for message in messages if isinstance(message, Progress)]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 20
    assert max(fractions) < 0.8, "the second reply was not begun"
    measured = messages[-1]
    assert isinstance(measured, Calibration)
    assert list(measured.pass_seconds)[:4] == [1, 2, 3, 4]
    assert len(measured.acceptance_by_position) == 4
    assert measured.plain_tokens_per_second > 0
    assert measured.recommended is not None


def test_calibration_without_a_draft(engine: LocalEngine) -> None:
    engine.send(Load("quiet"))
    until_kind(engine, Loaded)
    engine.send(Calibrate())
    measured = until_kind(engine, Calibration)
    assert measured.draft_step_seconds is None
    assert measured.acceptance_by_position == ()


def test_calibration_can_be_stopped(engine: LocalEngine) -> None:
    engine.send(Load("slow", "toy-draft"))
    until_kind(engine, Loaded)
    engine.send(Calibrate())
    until_kind(engine, Progress)
    engine.send(Stop())
    assert until_kind(engine, Failed).kind == "CancelledError"


def test_closing_in_the_middle_of_a_reply_and_twice() -> None:
    closed = []

    def load(command: Load, on_progress: object) -> LoadedPair:
        from dataclasses import replace

        return replace(toy_loader.load(command, on_progress), close=lambda: closed.append(command.target))

    engine = LocalEngine(load)
    engine.send(Load("slow", "toy-draft"))
    engine.send(reply(the_settings=settings(max_tokens=None)))
    until(engine, is_round)
    engine.close()
    engine.close()
    assert closed == ["slow"]
    engine.send(LOAD)
    assert [message for message in engine.drain() if isinstance(message, Loaded)] == []
    assert engine.receive() is None


def test_an_engine_that_nobody_closes_ends_with_the_program() -> None:
    code = (
        "from tests.engine import toy_loader\n"
        "from tests.engine.conversing import *\n"
        "from specchat.engine.local import LocalEngine\n"
        "engine = LocalEngine(toy_loader.load)\n"
        "engine.send(Load('slow', 'toy-draft'))\n"
        "engine.send(reply(the_settings=settings(max_tokens=None)))\n"
        "until(engine, is_round)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=PATIENCE, cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, b"")


def test_one_pair_is_closed_before_the_next_is_loaded() -> None:
    steps = []

    def load(command: Load, on_progress: object) -> LoadedPair:
        from dataclasses import replace

        steps.append(f"load {command.target}")
        return replace(toy_loader.load(command, on_progress), close=lambda: steps.append(f"close {command.target}"))

    engine = LocalEngine(load)
    for target in ("toy", "quiet"):
        engine.send(Load(target))
        until_kind(engine, Loaded)
    engine.close()
    assert steps == ["load toy", "close toy", "load quiet", "close quiet"]


def test_what_a_prompt_had_to_change_is_told_once(loaded: LocalEngine) -> None:
    notes = []
    for number in (1, 2):
        loaded.send(reply(number, "a\x00c"))
        messages = until(loaded, lambda message, number=number: ended(message, number))
        notes.append([message for message in messages if isinstance(message, Note)])
    assert [note.reply for note in notes[0]] == [1]
    assert "NUL" in notes[0][0].text
    assert notes[1] == []


def test_round_events_come_one_by_one(engine: LocalEngine) -> None:
    engine.send(Load("slow", "toy-draft"))
    engine.send(reply(the_settings=settings(max_tokens=None)))
    first = until(engine, is_round)[-1]
    assert isinstance(first, ReplyEvent)
    assert isinstance(first.event, Round)
    assert first.event.index == 0
    engine.send(Stop())
    events_of(engine, 1)


def test_vocabularies_are_compared_by_text() -> None:
    same = MarkovModel(cyclic(5)).vocabulary
    check_same_vocabulary(same, MarkovModel(cyclic(7)).vocabulary)
    check_same_vocabulary(MarkovModel(cyclic(7)).vocabulary, same)
    with pytest.raises(PairMismatchError, match="token 4 is 'e' in the target and '<end>' in the draft"):
        check_same_vocabulary(same, MarkovModel(cyclic(5), end=4).vocabulary)
