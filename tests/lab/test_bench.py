"""A whole bench on a toy pair: what is asked of the engine, what is kept, and what happens when it is cut short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from specchat.engine.interface import Command, DeviceList, Failed, Load, Message, Reply, ReplyEvent, Stop
from specchat.engine.local import LocalEngine
from specchat.engine.process import ProcessEngine
from specchat.errors import DecodeError, EngineDiedError, LoadError, ServerError, UsageError
from specchat.lab.bench import Bench, BenchResult
from specchat.lab.bench_data import to_data
from specchat.lab.bench_figures import rows_of
from specchat.lab.bench_html import to_html
from specchat.lab.bench_plan import Plan, parse_settings
from specchat.lab.bench_report import report
from specchat.lab.llama_server import LlamaServer
from specchat.lab.machine import resident_bytes
from specchat.lab.prompts import BenchPrompt
from tests.engine import toy_loader
from tests.lab.fake_llama_server import TIMINGS, Script, fake_server

PROMPTS = (BenchPrompt("code", "one", "en", "abc"), BenchPrompt("chat", "two", "en", "cab"))
LOAD = Load("quiet", "toy-draft")
"""A target that never ends a reply, so that all replies have the same length."""


class RecordedEngine:
    """Hands everything on to a toy engine, and keeps what was sent."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.fail_at_reply = 0
        self._engine = LocalEngine(toy_loader.load, lambda: DeviceList((), "toy", "none"))

    def send(self, command: Command) -> None:
        self.commands.append(command)
        self._engine.send(command)

    def receive(self, timeout: float | None = None) -> Message | None:
        message = self._engine.receive(timeout)
        if isinstance(message, ReplyEvent) and message.reply == self.fail_at_reply:
            return Failed("DecodeError", "The device was lost.", "Load the pair again.", reply=message.reply)
        return message

    def drain(self) -> list[Message]:
        return self._engine.drain()

    def close(self) -> None:
        self._engine.close()

    @property
    def replies(self) -> list[Reply]:
        return [command for command in self.commands if isinstance(command, Reply)]


@pytest.fixture
def engine() -> Iterator[RecordedEngine]:
    engine = RecordedEngine()
    yield engine
    engine.close()


def plan(settings: str = "γ2 token, γ4 token T0", **changes) -> Plan:
    return replace(Plan(parse_settings(settings), PROMPTS, repetitions=2, max_tokens=12, seed=5), **changes)


def measured(result: BenchResult | None) -> BenchResult:
    assert result is not None
    return result


def test_everything_of_the_plan_is_measured(engine: RecordedEngine) -> None:
    result = measured(Bench(engine, plan(), memory=lambda: 42).run(LOAD, quick=True))
    assert (result.stopped, result.problem, result.memory_bytes) == (False, None, 42)
    assert result.notices == ["A toy, not a model."] + [note for note in result.notices if "Other programs" in note]
    assert [done.trial for done in result.trials] == list(plan().trials())
    samples = [sample for done in result.trials for sample in done.samples.values()]
    assert [sample.tokens for sample in samples] == [12] * 16
    assert all(sample.memory_bytes == 42 for sample in samples)
    for row in rows_of(result):
        assert row.overall.tokens_per_second is not None
        assert (row.overall.speedup is None) == (row.who == "plain")
        assert (row.overall.acceptance_rate is None) == (row.who == "plain")
        assert set(row.by_category) == {"code", "chat"}
    assert "draft γ4 token T0" in report(result)
    assert to_html(result, "now").count("<svg") > 4
    assert len(to_data(result, "now")["replies"]) == 16


def test_replies_are_written_with_the_settings_of_the_plan(engine: RecordedEngine) -> None:
    Bench(engine, plan("ngram γ8 T0")).run(LOAD, quick=True)
    warm_ups, replies = engine.replies[:2], engine.replies[2:]
    assert {each.messages[0].content for each in warm_ups}.isdisjoint({"abc", "cab"})
    assert [each.messages[0].content for each in replies] == ["abc", "abc", "cab", "cab"] * 2
    assert [each.settings.drafter for each in replies] == ["none", "ngram"] + ["ngram", "none"] * 3
    assert [each.settings.seed for each in replies] == [5] * 4 + [6] * 4
    assert {each.settings.max_tokens for each in replies} == {12}
    assert {each.settings.sampling.temperature for each in replies} == {0.0}
    assert not any(each.measure_plain or each.details for each in replies)
    assert len({each.reply for each in engine.replies}) == len(engine.replies)


def test_a_draft_never_finds_its_prompt_in_its_cache(engine: RecordedEngine) -> None:
    Bench(engine, plan("γ1", prompts=PROMPTS[:1], repetitions=3)).run(LOAD, quick=True)
    contents = [each.messages[0].content for each in engine.replies[2:]]
    assert [content == "abc" for content in contents] == [True, True, False, True, True, False, True, True]


def test_the_same_plan_writes_the_same_replies() -> None:
    def accepted() -> list[int]:
        engine = RecordedEngine()
        result = measured(Bench(engine, plan("γ2/3 token/block")).run(LOAD, quick=True))
        engine.close()
        return [done.samples["ours"].rounds.all.accepted for done in result.trials]

    assert accepted() == accepted()


def test_stopping_keeps_what_was_measured(engine: RecordedEngine) -> None:
    told: list[float] = []
    bench = Bench(
        engine,
        plan(),
        on_progress=lambda what, fraction, _: told.append(fraction) if what == "measuring" else None,
        should_stop=lambda: len(told) > 3,
    )
    result = measured(bench.run(LOAD, quick=True))
    assert result.stopped
    assert len(result.trials) == 3
    assert "Stopped before all was measured" in report(result)
    assert told == [0.0, 1 / 8, 2 / 8, 3 / 8]


def test_a_reply_is_stopped_half_way(engine: RecordedEngine) -> None:
    """The engine answers a `Stop` with an interrupted reply, which is not kept."""
    endless = plan("γ1", max_tokens=100_000)
    bench = Bench(engine, endless, should_stop=lambda: len(engine.replies) > 2)
    result = measured(bench.run(replace(LOAD, target="slow"), quick=True))
    assert result.stopped
    assert result.trials == []
    assert sum(isinstance(command, Stop) for command in engine.commands) == 1


def test_stopped_before_anything_was_measured(engine: RecordedEngine) -> None:
    assert Bench(engine, plan(), should_stop=lambda: True).run(LOAD, quick=True) is None
    loading = Bench(engine, plan(), should_stop=lambda: any(isinstance(each, Load) for each in engine.commands))
    assert loading.run(Load("endless"), quick=True) is None


def test_an_error_half_way_keeps_what_was_measured(engine: RecordedEngine) -> None:
    engine.fail_at_reply = 7  # two warm-ups and two trials before it
    result = measured(Bench(engine, plan()).run(LOAD, quick=True))
    assert isinstance(result.problem, DecodeError)
    assert len(result.trials) == 2
    assert not result.stopped


def test_errors_before_anything_was_measured(engine: RecordedEngine) -> None:
    with pytest.raises(LoadError, match="truncated"):
        Bench(engine, plan()).run(Load("broken"), quick=True)
    engine.fail_at_reply = 3
    with pytest.raises(DecodeError, match="lost"):
        Bench(engine, plan()).run(LOAD, quick=True)


def test_without_a_draft_model_what_needs_one_is_left_out(engine: RecordedEngine) -> None:
    result = measured(Bench(engine, plan("draft γ1, plain T0")).run(Load("quiet"), quick=True))
    assert [row.label for row in rows_of(result)] == ["plain T0"]
    assert any("No draft model" in notice for notice in result.notices)
    with pytest.raises(UsageError, match="None of these settings"):
        Bench(engine, plan("draft γ1")).run(Load("quiet"), quick=True)


def test_drafts_too_long_for_a_pass_are_left_out(engine: RecordedEngine) -> None:
    result = measured(Bench(engine, plan("γ1/900")).run(LOAD, quick=True))
    assert [setting.num_draft_tokens for setting in result.plan.settings] == [1]
    assert any("more than 511 draft tokens" in notice for notice in result.notices)


def test_a_server_writes_the_same_replies_in_its_turn(engine: RecordedEngine) -> None:
    with fake_server() as (url, script):
        bench = Bench(engine, plan("γ2 T0"), servers={"server": LlamaServer(url)})
        result = measured(bench.run(LOAD, quick=True))
        server_row = next(row for row in rows_of(result) if row.who == "server")
    asked = script.requests[1:]  # after the warm-up
    assert [each["messages"][0]["content"] for each in asked] == ["abc", "cab"] * 2
    assert [each["seed"] for each in asked] == [5, 5, 6, 6]
    assert {each["temperature"] for each in asked} == {0.0}
    assert server_row.overall.tokens_per_second == pytest.approx(20)
    assert [done.trial.order[0] for done in result.trials] == ["plain", "server", "server", "ours"]
    assert "× server by category" in report(result)
    assert to_data(result, "now")["servers"]["server"]["build"] == "b9999-abc"


def test_a_server_that_fails_half_way(engine: RecordedEngine) -> None:
    script = Script()

    def break_later(what: str, fraction: float, _: str) -> None:
        if what == "measuring" and fraction > 0.3:
            script.reply = {"timings": TIMINGS | {"predicted_n": None}}

    with fake_server(script) as (url, _):
        bench = Bench(engine, plan("γ2"), servers={"server": LlamaServer(url)}, on_progress=break_later)
        result = measured(bench.run(LOAD, quick=True))
    assert isinstance(result.problem, ServerError)
    assert 0 < len(result.trials) < 4


def test_a_server_is_not_waited_for_when_a_person_stops(engine: RecordedEngine) -> None:
    script = Script(delay=0.0)

    def slow_down(what: str, _fraction: float, _detail: str) -> None:
        if what == "measuring":
            script.delay = 60.0

    with fake_server(script) as (url, _):
        bench = Bench(
            engine,
            plan("γ2"),
            servers={"server": LlamaServer(url)},
            on_progress=slow_down,
            should_stop=lambda: len(script.requests) > 1,
        )
        result = measured(bench.run(LOAD, quick=True))
    assert result.stopped
    assert result.trials == []


def test_a_model_process_that_dies_is_told() -> None:
    engine = ProcessEngine("tests.engine.toy_loader:load")
    try:
        with pytest.raises(EngineDiedError, match="SIGABRT"):
            Bench(engine, plan()).run(Load("abort", "toy-draft"), quick=True)
    finally:
        engine.close()


def test_memory_is_that_of_the_model_process() -> None:
    engine = ProcessEngine("tests.engine.toy_loader:load")
    try:
        result = measured(
            Bench(engine, plan("γ1", repetitions=1), memory=lambda: resident_bytes(engine.pid)).run(LOAD, quick=True)
        )  # fmt: skip
        assert result.memory_bytes is not None
        assert result.memory_bytes > 10 << 20  # an interpreter with numpy
    finally:
        engine.close()
    assert resident_bytes(None) is None
    assert resident_bytes(2**22 + 1) is None
