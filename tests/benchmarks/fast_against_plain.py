"""*Fast* against plain decoding, a few tokens at a time.

``python -m tests.benchmarks.fast_against_plain TARGET.gguf DRAFT.gguf`` takes some minutes. Why not the bench?
``specchat bench`` compares whole replies, and a machine that other people use as well changes its speed within one.
Here both ways of writing a reply take turns every few tokens, each with a clock that stands still meanwhile, so that
both meet the same seconds. Each has models of its own, and they change places, for no two copies in memory are equally
fast. Everything else is as in the engine: calibrated costs, the combined drafter, no draft model where it cannot pay;
temperature 0. Prints the ratio for each prompt, for each kind of text, and of all.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from specchat.core.events import Event, Finished, Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.engine.draft_lengths import DraftLengths
from specchat.engine.interface import Load
from specchat.engine.loading import load_pair
from specchat.engine.measuring import calibrate
from specchat.engine.pair import LoadedPair
from specchat.engine.round_plans import RoundPlans
from specchat.lab.bench_plan import choose_prompts
from specchat.lab.paired import Ratio, paired_ratio
from specchat.lab.prompts import CATEGORIES, PROMPTS, BenchPrompt

SLICE = 8
"""Tokens after which it is the other one's turn."""


class Stopwatch:
    """A clock that stands still while somebody else is at work."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """Seconds."""
        return self._seconds + (0.0 if self._since is None else time.perf_counter() - self._since)

    def start(self) -> None:
        """It runs from now on."""
        self._since = time.perf_counter()

    def stop(self) -> None:
        """It stands still from now on."""
        self._seconds = self()
        self._since = None


class Writer:
    """One way of writing a reply."""

    def __init__(self, pair: LoadedPair, lengths: DraftLengths, settings: ReplySettings, prompt: BenchPrompt) -> None:
        self.finished: Finished | None = None
        self.drafted = 0
        self._clock = Stopwatch()
        rendered = render_prompt(pair.target.vocabulary, (ChatMessage("user", prompt.text),))
        plans = RoundPlans(pair, lengths, lambda: settings)
        self._events: Iterator[Event] = generate(
            pair.target,
            rendered.tokens,
            plans,
            np.random.default_rng(1),
            max_tokens=settings.max_tokens,
            stop=rendered.stop,
            clock=self._clock,
        )
        self._clock.start()
        next(self._events)  # the prompt is read
        self._clock.stop()

    def write(self, num_tokens: int) -> None:
        """Writes about so many tokens, or to the end."""
        self._clock.start()
        while num_tokens > 0 and self.finished is None:
            match next(self._events):
                case Round() as played:
                    num_tokens -= len(played.committed)
                    self.drafted += len(played.drafted)
                case Finished() as finished:
                    self.finished = finished
        self._clock.stop()

    @property
    def tokens_per_second(self) -> float:
        """Of the finished reply."""
        assert self.finished is not None
        return self.finished.tokens / self.finished.seconds


def compare(fast: Writer, plain: Writer, *, fast_first: bool) -> float:
    """How many times as fast *fast* was."""
    turns = (fast, plain) if fast_first else (plain, fast)
    while any(each.finished is None for each in turns):
        for each in turns:
            each.write(SLICE)
    return fast.tokens_per_second / plain.tokens_per_second


def main() -> None:
    options = _options()
    load = Load(options.target, options.draft, n_ctx=2048, draft_if_it_pays=True)
    with closing(load_pair(load, lambda *_: True)) as one, closing(load_pair(load, lambda *_: True)) as other:
        _say("calibrating …")
        found = calibrate(one, quick=True, on_progress=lambda _: None, should_stop=lambda: False)
        other.experience.target.learn(found.pass_seconds)
        ratios = _measure(one, other, options)
    if options.json:
        options.json.write_text(json.dumps(ratios, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    groups = defaultdict(list)
    for prompt in PROMPTS:
        if prompt.name in ratios:
            groups[prompt.category].append(ratios[prompt.name])
    for category, values in groups.items():
        _say(f"{category:12} {_text(paired_ratio(values))}")
    _say(f"{'all':12} {_text(paired_ratio(list(ratios.values())))}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--categories", default=",".join(CATEGORIES))
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _measure(one: LoadedPair, other: LoadedPair, options: argparse.Namespace) -> dict[str, list[float]]:
    """By prompt the ratio of each repetition: the mean of two, for each of which the models change places."""
    sampling = SamplingParams(temperature=0)
    fast = ReplySettings(sampling, "fast", None, drafter="auto", max_tokens=options.max_tokens, seed=1)
    plain = ReplySettings(sampling, "watch", drafter="none", max_tokens=options.max_tokens, seed=1)
    loaded = [(pair, DraftLengths(pair.experience)) for pair in (one, other)]
    ratios: dict[str, list[float]] = defaultdict(list)
    for repetition in range(options.repetitions):
        for prompt in choose_prompts(PROMPTS, options.categories.split(",")):
            found = []
            for number, (mine, yours) in enumerate((loaded, loaded[::-1])):
                ours = Writer(*mine, fast, prompt)
                found.append(compare(ours, Writer(*yours, plain, prompt), fast_first=(number + repetition) % 2 == 0))
            ratios[prompt.name].append(math.sqrt(found[0] * found[1]))
            both = ", ".join(f"{each:.3f}" for each in found)
            _say(f"{repetition} {prompt.category} {prompt.name}: {both}; {ours.drafted} drafted")
    return ratios


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _text(ratio: Ratio | None) -> str:
    assert ratio is not None
    interval = "" if ratio.low is None else f" ({ratio.low:.3f} to {ratio.high:.3f})"
    return f"{ratio.value:.3f}{interval}, {ratio.pairs} pairs"


if __name__ == "__main__":
    main()
