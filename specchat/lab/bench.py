"""``specchat bench``: plain decoding against each drafter, length and rule, on this machine, with this pair.

Everything is measured through the engine's interface, as the screen would see it. What is compared is written right
after each other, again and again (A B A B …), with fixed seeds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from specchat.core.settings import ChatMessage
from specchat.engine.interface import Calibrate, Calibration, Engine, Load, Loaded
from specchat.errors import SpecchatError, UsageError
from specchat.lab.bench_plan import OURS, Plan, Setting, Trial, Who
from specchat.lab.bench_samples import ReplyFold, Sample, TrialResult
from specchat.lab.engine_talk import EngineTalk, OnProgress, Stopped
from specchat.lab.llama_server import LlamaServer
from specchat.lab.machine import Machine, find_machine
from specchat.lab.prompts import BenchPrompt

_WARM_UP = BenchPrompt("warm-up", "warm-up", "en", "Name three colours and three animals.")
_WARM_UP_TOKENS = 16


@dataclass(slots=True)
class BenchResult:
    """What was measured, complete or not.

    Attributes:
        plan: what was to be measured.
        machine: where.
        loaded: the pair.
        calibration: the cost of passes and of the draft's steps.
        servers: the other servers, by name.
        trials: the trials that were finished, in order.
        notices: sentences that a person should see.
        stopped: whether a person ended it.
        problem: the error that ended it.
        memory_bytes: the most resident memory that the engine's processes had.
    """

    plan: Plan
    machine: Machine
    loaded: Loaded
    calibration: Calibration
    servers: Mapping[Who, LlamaServer] = field(default_factory=dict)
    trials: list[TrialResult] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    stopped: bool = False
    problem: SpecchatError | None = None
    memory_bytes: int | None = None


class Bench:
    """Runs a plan.

    Args:
        engine: writes the replies.
        plan: what to measure.
        servers: other servers that write the same replies, for comparison, by name.
        memory: gives the engine's resident memory, in bytes.
        on_progress: told how far it is.
        should_stop: asked ten times a second.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        *,
        servers: Mapping[Who, LlamaServer] | None = None,
        memory: Callable[[], int | None] = lambda: None,
        on_progress: OnProgress = lambda *_: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._servers = servers or {}
        self._memory = memory
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._notices: list[str] = []
        self._talk = EngineTalk(engine, self._notices.append, on_progress, should_stop)
        self._last_prompt: BenchPrompt | None = None

    def run(self, load: Load, *, quick: bool = False) -> BenchResult | None:
        """Loads the pair, measures its passes, then every trial.

        Returns:
            What was measured, also where it was stopped or an error ended it half-way (see `BenchResult`); None where
            it was stopped before anything was measured.

        Raises:
            UsageError: nothing of the plan can be measured with this pair.
            SpecchatError: an error came before anything was measured.
        """
        try:
            result = self._prepare(load, quick)
        except Stopped:
            return None
        try:
            self._measure(result)
        except Stopped:
            result.stopped = True
        except SpecchatError as error:
            if not result.trials:
                raise
            result.problem = error
        result.notices = self._notices
        known = [sample.memory_bytes for done in result.trials for sample in done.samples.values()]
        result.memory_bytes = max((size for size in known if size is not None), default=None)
        return result

    def _prepare(self, load: Load, quick: bool) -> BenchResult:
        machine = find_machine(self._engine, load.threads)
        loaded = self._talk.ask(load, Loaded)
        self._notices += loaded.notes
        if machine.is_busy:
            self._notices.append(f"Other programs are at work here ({machine.load_text}): the times are not reliable.")
        plan = self._possible(loaded)
        calibration = self._talk.ask(Calibrate(quick=quick), Calibration)
        for drafter in ("none", *dict.fromkeys(setting.drafter for setting in plan.settings)):
            self._write(Setting(drafter=drafter), _WARM_UP, _WARM_UP_TOKENS, seed=plan.seed)
        for server in self._servers.values():
            self._other(server, Setting(), _WARM_UP, _WARM_UP_TOKENS, seed=plan.seed)
        return BenchResult(plan, machine, loaded, calibration, self._servers)

    def _possible(self, loaded: Loaded) -> Plan:
        """The plan without what this pair cannot do."""
        plan = self._plan if loaded.draft is not None else self._plan.without({"draft"})
        longest = loaded.max_draft_tokens
        fitting = tuple(each for each in plan.settings if (each.num_draft_tokens or 0) <= longest)
        if len(plan.settings) < len(self._plan.settings):
            self._notices.append("No draft model is loaded: the settings that need one are left out.")
        if len(fitting) < len(plan.settings):
            self._notices.append(f"Settings with more than {longest} draft tokens are left out: no pass holds them.")
        if not fitting:
            raise UsageError(
                "None of these settings can be measured with this pair.",
                "Choose others with --settings, or a pair with a draft model.",
            )
        return replace(plan, settings=fitting)

    def _measure(self, result: BenchResult) -> None:
        trials = list(result.plan.trials(tuple(self._servers)))
        began = time.monotonic()
        for done, trial in enumerate(trials):
            left = (time.monotonic() - began) / done * (len(trials) - done) if done else None
            self._on_progress("measuring", done / len(trials), _title(trial, result.plan.repetitions, left))
            result.trials.append(self._trial(trial, result.plan))
        self._on_progress("measuring", 1.0, "")

    def _trial(self, trial: Trial, plan: Plan) -> TrialResult:
        if self._last_prompt == trial.prompt:  # a draft must read its prompt: that is part of what it costs
            self._write(trial.setting, _WARM_UP, 1, seed=plan.seed)
        self._last_prompt = trial.prompt
        seed = plan.seed + trial.repetition
        samples: dict[Who, Sample] = {}
        for who in trial.order:
            setting = trial.setting if who == "ours" else trial.setting.plain
            if who in OURS:
                samples[who] = self._write(setting, trial.prompt, plan.max_tokens, seed=seed)
            else:
                samples[who] = self._other(self._servers[who], setting, trial.prompt, plan.max_tokens, seed=seed)
        return TrialResult(trial, samples)

    def _write(self, setting: Setting, prompt: BenchPrompt, max_tokens: int, *, seed: int) -> Sample:
        """One reply of ours."""
        fold = ReplyFold()
        settings = setting.reply_settings(max_tokens, seed)
        for event in self._talk.reply((ChatMessage("user", prompt.text),), settings):
            fold.add(event)
        return fold.sample(self._memory())

    def _other(
        self, server: LlamaServer, setting: Setting, prompt: BenchPrompt, max_tokens: int, *, seed: int
    ) -> Sample:
        """One reply of another server."""
        sampling = setting.reply_settings(max_tokens, seed).sampling
        sample = server.reply(prompt.text, sampling, max_tokens, seed, self._should_stop)
        if sample is None:
            raise Stopped
        return sample


def _title(trial: Trial, repetitions: int, seconds_left: float | None) -> str:
    left = "" if seconds_left is None else f", {math.ceil(seconds_left / 60)} min left"
    return f"{trial.setting.label}, {trial.prompt.category} {trial.repetition + 1}/{repetitions}{left}"
