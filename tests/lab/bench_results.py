"""Results of a bench, written down by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from specchat.core.events import CommittedToken, DraftedToken, Fate, Round, RoundSeconds
from specchat.core.verification import fates
from specchat.engine.interface import Calibration, Device, Loaded, ModelDescription
from specchat.lab.bench import BenchResult
from specchat.lab.bench_plan import Plan, Setting, Trial, Who, parse_settings
from specchat.lab.bench_samples import RoundsByDrafter, Sample, TrialResult
from specchat.lab.llama_server import ServerFacts
from specchat.lab.machine import Machine
from specchat.lab.prompts import BenchPrompt

PROMPTS = (BenchPrompt("code", "one", "en", "a"), BenchPrompt("chat", "two", "en", "b"))
CALIBRATION = Calibration({1: 0.010, 2: 0.015, 3: 0.020, 5: 0.030}, 0.002, 0.001, (0.8,), 100.0)


def model(name: str = "toy") -> ModelDescription:
    return ModelDescription(name, f"/m/{name}.gguf", "llama", "Q4_K_M", 1, 1, 1, 0, 1, 1, 1, "CPU")


def machine(**changes: Any) -> Machine:
    values: dict[str, Any] = {
        "processor": "A processor",
        "cores": 2,
        "logical": 4,
        "memory_bytes": 16 << 30,
        "devices": (Device("CUDA0", "A GPU", "gpu", 1, 2),),
        "build": "b1",
        "system_info": "AVX = 1",
        "system": "Linux",
        "threads": None,
        "load": 0.1,
    }
    return Machine(**(values | changes))


def played(num_drafted: int, num_accepted: int, drafter: str = "draft", seconds: float = 0.04) -> Round:
    """A round in which the accepted tokens and one more were committed; a tenth of its time is ours."""
    drafted = tuple(
        DraftedToken(7, b"a", "a", drafter, 0.5, 0.5, 1.0, 0.5, fate) for fate in fates(num_accepted, num_drafted)
    )
    committed = tuple(CommittedToken(7, b"a", "a", Fate.ACCEPTED, 0.5) for _ in range(num_accepted + 1))
    parts = RoundSeconds(0.2 * seconds, 0.7 * seconds, 0.06 * seconds, 0.04 * seconds)
    return Round(0, 0.0, "token", num_drafted, drafted, committed, parts)


def sample(tokens_per_second: float, *, rounds: tuple[Round, ...] = (), **changes: Any) -> Sample:
    fold = RoundsByDrafter()
    for each in rounds:
        fold.add(each)
    values: dict[str, Any] = {
        "tokens": 100,
        "seconds": 100 / tokens_per_second,
        "prompt_tokens": 20,
        "prompt_seconds": None,
        "first_seconds": 0.02,
        "memory_bytes": 1 << 30,
    }
    return Sample(rounds=fold, **(values | changes))


def trial(setting: Setting, prompt: BenchPrompt, repetition: int = 0, **samples: Sample) -> TrialResult:
    return TrialResult(Trial(repetition, setting, prompt, tuple(samples)), samples)


def result(trials: list[TrialResult], settings: str = "draft γ4 token T0.7", **changes: Any) -> BenchResult:
    plan = Plan(parse_settings(settings), PROMPTS, repetitions=2)
    loaded = Loaded(model("Target"), model("Draft"), 4096, 31, True, "llama.cpp b1")
    values: dict[str, Any] = {"machine": machine(), "loaded": loaded, "calibration": CALIBRATION}
    return BenchResult(plan, trials=trials, **(values | changes))


def servers(*names: Who) -> dict[Who, Any]:
    one = SimpleNamespace(address="127.0.0.1:8080", facts=ServerFacts("b7", "toy.gguf", 4))
    return dict.fromkeys(names or ("server",), one)


def small_result(**changes: Any) -> BenchResult:
    """One setting on two prompts, twice: half as fast as plain on the first, 1.5 times on the second."""
    [setting] = parse_settings("draft γ4 token T0.7")
    fast = (played(4, 4), played(4, 2))
    slow = (played(4, 0), played(4, 1))
    trials = []
    for repetition in range(2):
        for prompt, speed, rounds in zip(PROMPTS, (50.0, 150.0), (slow, fast), strict=True):
            plain = sample(100.0, rounds=(played(0, 0),), prompt_seconds=0.1 if repetition == 0 else None)
            ours = sample(speed, rounds=rounds, prompt_seconds=0.1 if repetition else None, draft_prefill_seconds=0.08)
            trials.append(trial(setting, prompt, repetition, plain=plain, ours=ours))
    return result(trials, **changes)
