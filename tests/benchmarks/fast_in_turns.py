"""*Fast* against plain decoding and against llama.cpp's own server in each of its kinds, a few tokens at a time.

``python -m tests.benchmarks.fast_in_turns TARGET.gguf DRAFT.gguf --server llama-server`` takes a good half hour a
repetition, without ``--server`` some minutes: see `taking_turns` for why and how. Temperature 0; everything of ours is
as in the engine: calibrated costs, the combined drafter, no draft model where it cannot pay. No two copies of a model
in memory are equally fast: our own two change places from prompt to prompt, and all processes but this one are started
anew for each repetition, so that a server also forgets what it remembers of earlier prompts.

Prints *fast* ÷ each of the others by kind of text: geometric means with 95% intervals from drawing the turns anew. Then
*fast* ÷ the best server of each kind: with the best chosen by the very figures it is compared with, which favours the
luckiest, and, where there are several repetitions, by those of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specchat.core.sampling import SamplingParams
from specchat.core.settings import ReplySettings
from specchat.engine.draft_lengths import DraftLengths
from specchat.engine.interface import Load
from specchat.engine.loading import load_pair
from specchat.engine.measuring import calibrate
from specchat.engine.pair import LoadedPair
from specchat.engine.process import child_environment
from specchat.lab.bench_plan import choose_prompts
from specchat.lab.prompts import CATEGORIES, PROMPTS
from tests.benchmarks.taking_turns import OurReply, Server, ServersReply, Writer, take_turns

KINDS = ("plain", "ngram-simple", "ngram-mod", "ngram-map-k", "ngram-map-k4v", "ngram-cache")
"""The server's kinds that need no second model; "draft-simple" can be asked for."""
FAST, PLAIN = "fast", "our plain"
_N_CTX = 2048
_RESAMPLES = 2000
_STALL = 1.5
"""See `_undisturbed`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one of them did on one prompt: the tokens and seconds of each turn."""

    repetition: int
    category: str
    prompt: str
    who: str
    turns: Sequence[tuple[int, float]]

    @property
    def tokens_per_second(self) -> float:
        """Of the whole reply."""
        return sum(tokens for tokens, _ in self.turns) / sum(seconds for _, seconds in self.turns)

    def tokens_per_second_of(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of replies put together out of its turns, by ``[resamples, turns]`` places from 0 to 1: ``[resamples]``."""
        turns = np.array(self.turns)[(places * len(self.turns)).astype(int)]
        return np.asarray(turns[..., 0].sum(axis=1) / turns[..., 1].sum(axis=1))


Begin = Callable[[str], Writer]
"""Has one of them read a prompt."""


def measure(options: argparse.Namespace) -> Iterator[Reply]:
    """All prompts once a repetition, with new processes and new copies of the model."""
    prompts = choose_prompts(PROMPTS, options.categories.split(","))
    load = Load(str(options.target), str(options.draft), n_ctx=_N_CTX, draft_if_it_pays=True)
    for repetition in range(options.repetitions):
        with ExitStack() as until_then:
            pairs = [until_then.enter_context(closing(load_pair(load, lambda *_: True))) for _ in range(2)]
            found = calibrate(pairs[0], quick=True, on_progress=lambda _: None, should_stop=lambda: False)
            pairs[1].experience.target.learn(found.pass_seconds)
            ours = [_ours(pair, options.max_tokens) for pair in pairs]
            theirs = {
                kind: _theirs(until_then.enter_context(closing(_server(kind, options))), options.max_tokens)
                for kind in (options.kinds.split(",") if options.server else ())
            }
            for number, prompt in enumerate(prompts):
                fast, plain = (number + repetition) % 2, (number + repetition + 1) % 2
                begin: dict[str, Begin] = {FAST: ours[fast][FAST], PLAIN: ours[plain][PLAIN], **theirs}
                names = list(begin)
                first = (3 * number + repetition) % len(names)
                writers = {name: begin[name](prompt.text) for name in names[first:] + names[:first]}
                for who, turns in take_turns(writers).items():
                    yield Reply(repetition, prompt.category, prompt.name, who, turns)


def _ours(pair: LoadedPair, max_tokens: int) -> dict[str, Begin]:
    sampling, lengths = SamplingParams(temperature=0), DraftLengths(pair.experience)
    fast = ReplySettings(sampling, "fast", None, drafter="auto", max_tokens=max_tokens, seed=1)
    plain = ReplySettings(sampling, "watch", drafter="none", max_tokens=max_tokens, seed=1)
    return {
        FAST: lambda prompt: OurReply(pair, lengths, fast, prompt),
        PLAIN: lambda prompt: OurReply(pair, lengths, plain, prompt),
    }


def _theirs(server: Server, max_tokens: int) -> Begin:
    return lambda prompt: ServersReply(server, prompt, max_tokens)


def _server(kind: str, options: argparse.Namespace) -> Server:
    settings = ["--ctx-size", str(_N_CTX), "--parallel", "1", "--cache-ram", "0", "--no-webui"]
    if kind == "draft-simple":
        settings += ["--model-draft", str(options.draft)]
    if kind != "plain":
        settings += ["--spec-type", kind]
    return Server(options.server, options.target, settings)


class Figures:
    """Ratios of *fast* to the others."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        by_prompt: dict[tuple[str, str, int], list[Reply]] = {}
        for each in replies:
            by_prompt.setdefault((each.category, each.prompt, each.repetition), []).append(each)
        self._replies = {
            (*prompt, each.who): each for prompt, group in by_prompt.items() for each in _undisturbed(group)
        }

    @property
    def categories(self) -> list[str]:
        """Those that were measured."""
        return list(dict.fromkeys(category for category, *_ in self._replies))

    @property
    def others(self) -> list[str]:
        """Who is compared with *fast*."""
        return sorted({who for *_, who in self._replies} - {FAST}, key=(PLAIN, *KINDS, "draft-simple").index)

    @property
    def num_repetitions(self) -> int:
        """How often each prompt was answered."""
        return len({repetition for _, _, repetition, _ in self._replies})

    def best(self, category: str, *, but: int | None = None) -> str:
        """The server that was fastest on a kind of text, over all repetitions but one."""

        def speed(kind: str) -> float:
            return float(np.mean([np.log(each.tokens_per_second) for each in self._by(kind, category, but)]))

        return max((who for who in self.others if who != PLAIN), key=speed)

    def ratio(self, categories: Sequence[str], other: Callable[[str, int], str]) -> tuple[float, float, float]:
        """*Fast* ÷ who ``other(category, repetition)`` names: geometric mean and interval, from drawing turns anew."""
        rng = np.random.default_rng(0)
        logs, drawn = [], []
        for (category, prompt, repetition, who), ours in self._replies.items():
            if who == FAST and category in categories:
                theirs = self._replies[category, prompt, repetition, other(category, repetition)]
                logs.append(np.log(ours.tokens_per_second / theirs.tokens_per_second))
                places = rng.random((_RESAMPLES, max(len(ours.turns), len(theirs.turns))))  # the same seconds for both
                drawn.append(np.log(ours.tokens_per_second_of(places) / theirs.tokens_per_second_of(places)))
        low, high = np.percentile(np.mean(drawn, axis=0), (2.5, 97.5))
        return float(np.exp(np.mean(logs))), float(np.exp(low)), float(np.exp(high))

    def _by(self, who: str, category: str, but: int | None) -> Iterator[Reply]:
        for (of, _, repetition, name), reply in self._replies.items():
            if (of, name) == (category, who) and repetition != but:
                yield reply


def _undisturbed(replies: Sequence[Reply]) -> Iterator[Reply]:
    """The replies to one prompt without the turns that something else on the machine has slowed down.

    Plain decoding is always equally fast: where it took half as long again as usual, the turn counts for nobody.
    """
    disturbed: set[int] = set()
    for reply in replies:
        if reply.who in (PLAIN, "plain"):
            paces = [seconds / tokens for tokens, seconds in reply.turns]
            disturbed |= {i for i, pace in enumerate(paces) if pace > _STALL * float(np.median(paces))}
    for reply in replies:
        yield replace(reply, turns=[turn for i, turn in enumerate(reply.turns) if i not in disturbed])


def report(figures: Figures) -> Iterator[str]:
    """The ratios as lines, by kind of text and of all."""
    for name, categories in [*((each, [each]) for each in figures.categories), ("all", figures.categories)]:
        yield name
        for who in figures.others:
            yield _line(who, figures.ratio(categories, lambda *_, who=who: who))
        if figures.others != [PLAIN]:
            best = f" ({figures.best(name)})" if name in figures.categories else ""
            by_same = figures.ratio(categories, lambda category, _: figures.best(category))
            yield _line(f"best, by the same figures{best}", by_same)
            if figures.num_repetitions > 1:
                by_others = figures.ratio(categories, lambda category, but: figures.best(category, but=but))
                yield _line("best, by other repetitions", by_others)


def _line(label: str, ratio: tuple[float, float, float]) -> str:
    value, low, high = ratio
    return f"  {label:45} {value:.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    options = _options()
    environment = child_environment()
    if any(os.environ.get(name) != value for name, value in environment.items()):
        # as the engine's own process: some of it is read before Python starts
        os.execve(sys.executable, [sys.executable, "-m", "tests.benchmarks.fast_in_turns", *sys.argv[1:]], environment)
    replies = []
    for reply in measure(options):
        replies.append(reply)
        _say(f"{reply.repetition} {reply.category} {reply.prompt} {reply.who}: {reply.tokens_per_second:.2f} tok/s")
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in replies], ensure_ascii=False) + "\n", "utf-8")
    for line in report(Figures(replies)):
        _say(line)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("--server", type=Path, help="llama-server, built from the sources that llama-cpp-python has")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--categories", default=",".join(CATEGORIES))
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
