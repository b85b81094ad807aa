"""What ``specchat bench`` measures: settings by prompts by repetitions, in an order in which drift cancels.

A setting is written in words, and its label can be typed again: ``draft γ4 token T0.7``. Alternatives are joined by
a slash and stand for every combination: ``draft/ngram γ4/8 T0/0.7`` are eight settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from typing import TypeAlias, get_args

from specchat.core.sampling import SamplingParams
from specchat.core.settings import DEFAULT_RULE, Mode, ReplySettings, Rule
from specchat.errors import UsageError
from specchat.lab.prompts import BenchPrompt

Who: TypeAlias = str
"""Who writes one of the replies that are compared: ``plain`` decoding, ``ours`` (the setting), or another server, by
its name."""
OURS: frozenset[Who] = frozenset({"plain", "ours"})
"""Everybody who is no other server."""

DRAFTERS = ("draft", "ngram", "auto")
_LENGTH = re.compile(r"(?:γ|g)(\d{1,3}|auto)")
_TEMPERATURE = re.compile(r"[Tt](\d+(?:\.\d+)?)")
_DEFAULT_LENGTH = 4

STANDARD = (
    "draft γ1/2/3/4/5/6/7/8 token T0.7",
    "draft γ4 block/match T0.7",
    "draft γ4 token T0",
    "draft γ4 token/block/match T1",
    "ngram γ4/8/16 token T0/0.7",
    "auto γ4 token T0/0.7/1",
    "draft/ngram/auto fast T0/0.7",
    "auto fast T1",
)
"""What is measured unless told otherwise: one axis at a time, from the default settings on."""
QUICK = ("draft γ4 token T0.7", "draft γ4 block T0.7", "ngram γ7 token T0.7", "auto fast T0.7")
"""What ``--quick`` measures."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How replies are written. ``num_draft_tokens`` is γ, None for *auto*; plain decoding has the drafter "none"."""

    drafter: str = "draft"
    mode: Mode = "watch"
    num_draft_tokens: int | None = _DEFAULT_LENGTH
    rule: Rule = DEFAULT_RULE
    temperature: float = 0.7

    @property
    def label(self) -> str:
        """The setting in the words that `parse_settings` reads."""
        temperature = f"T{self.temperature:g}"
        if self.is_plain:
            return f"plain {temperature}"
        length = "auto" if self.num_draft_tokens is None else str(self.num_draft_tokens)
        return f"{self.drafter} {'fast' if self.mode == 'fast' else f'γ{length}'} {self.rule} {temperature}"

    @property
    def is_plain(self) -> bool:
        """Whether nothing is ever drafted."""
        return self.drafter == "none"

    @property
    def plain(self) -> Setting:
        """What it is compared with: plain decoding at the same temperature."""
        return Setting("none", "watch", None, "token", self.temperature)

    def reply_settings(self, max_tokens: int, seed: int) -> ReplySettings:
        """The settings of one reply. Truncation is the default one, penalties are off."""
        return ReplySettings(
            sampling=SamplingParams(temperature=self.temperature),
            mode=self.mode,
            num_draft_tokens=self.num_draft_tokens,
            rule=self.rule,
            drafter=self.drafter,
            max_tokens=max_tokens,
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison: the replies to one prompt that ``order`` names, written right after each other."""

    repetition: int
    setting: Setting
    prompt: BenchPrompt
    order: tuple[Who, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is going to be measured.

    Each setting has its own plain replies, written next to its own: a machine that grows hot or busy slows both. The
    prompts follow each other within a setting, so that no reply finds its prompt in the draft's cache. Repetitions
    are the outer loop, so that a run that is stopped has measured every setting.

    Attributes:
        settings, prompts: every combination of them is a trial in each repetition.
        repetitions: how often.
        max_tokens: the longest reply.
        seed: the replies of repetition r are drawn with ``seed + r``.
    """

    settings: tuple[Setting, ...]
    prompts: tuple[BenchPrompt, ...]
    repetitions: int = 3
    max_tokens: int = 128
    seed: int = 1

    def trials(self, servers: Sequence[Who] = ()) -> Iterator[Trial]:
        """The trials in order, in each of which the other ``servers`` take their turns.

        Who begins changes from trial to trial, and so does who of two neighbours comes first: a machine that becomes
        slower would otherwise always be slower for the same one.
        """
        for repetition in range(self.repetitions):
            for setting in self.settings:
                whole = ["plain", *([] if setting.is_plain else ["ours"]), *servers]
                for turn, prompt in enumerate(self.prompts, repetition):
                    first = turn // 2 % len(whole)
                    order = (*whole[first:], *whole[:first])
                    yield Trial(repetition, setting, prompt, order[::-1] if turn % 2 else order)

    def without(self, drafters: Collection[str]) -> Plan:
        """The plan without the settings that need one of these drafters."""
        return replace(self, settings=tuple(each for each in self.settings if each.drafter not in drafters))


def parse_settings(text: str) -> tuple[Setting, ...]:
    """The settings that the words stand for, each once, in their order. A comma ends a group.

    Words: ``plain``, ``draft``, ``ngram`` or ``auto`` (who drafts), ``γ4`` or ``g4``, ``γauto``, ``fast``, ``token``,
    ``block`` or ``match``, ``T0.7``. What a group leaves out is: draft, γ4, the default rule, T0.7.

    Raises:
        UsageError: a word is unknown, or a group says something twice.
    """
    found: dict[Setting, None] = {}
    for group in text.split(","):
        if group.strip():
            found.update(dict.fromkeys(_group(group.split())))
    if not found:
        raise UsageError("No settings were named.", f'For example: --settings "{QUICK[0]}, {QUICK[-1]}".')
    return tuple(found)


def _group(words: Sequence[str]) -> Iterator[Setting]:
    base = Setting()
    changes: dict[str, list[Callable[[Setting], Setting]]] = {}
    for word in words:
        kind, alternatives = _alternatives(word)
        if kind in changes:
            raise UsageError(f"{' '.join(words)!r} says twice what its {kind} is.", "Separate settings by a comma.")
        changes[kind] = alternatives
    for combination in product(*changes.values()):
        setting = base
        for change in combination:
            setting = change(setting)
        yield setting.plain if setting.is_plain else setting


def _alternatives(word: str) -> tuple[str, list[Callable[[Setting], Setting]]]:
    """What a word is about, and how each of its alternatives changes a setting."""
    first, *others = word.split("/")
    sign = first[0] if re.match(r"[γgTt]\d", first) else ""  # said once, meant for each number
    read = [_meaning(part) for part in (first, *(sign + part if part[:1].isdigit() else part for part in others))]
    kinds = {kind for kind, _ in read}
    if len(kinds) > 1:
        raise UsageError(f"{word!r} mixes {' and '.join(sorted(kinds))}.", "Write them as words of their own.")
    return read[0][0], [change for _, change in read]


def _meaning(word: str) -> tuple[str, Callable[[Setting], Setting]]:
    if word in ("plain", *DRAFTERS):
        return "drafter", lambda setting: replace(setting, drafter="none" if word == "plain" else word)
    rule = next((rule for rule in get_args(Rule) if rule == word), None)
    if rule is not None:
        return "rule", lambda setting: replace(setting, rule=rule)
    if word == "fast":
        return "draft length", lambda setting: replace(setting, mode="fast", num_draft_tokens=None)
    if length := _LENGTH.fullmatch(word):
        gamma = None if length[1] == "auto" else int(length[1])
        return "draft length", lambda setting: replace(setting, num_draft_tokens=gamma)
    if heat := _TEMPERATURE.fullmatch(word):
        return "temperature", lambda setting: replace(setting, temperature=float(heat[1]))
    known = ("plain", *DRAFTERS, "fast", *get_args(Rule), "γ4", "γauto", "T0.7")
    near = get_close_matches(word, known, 1)
    raise UsageError(
        f"{word!r} is no word for a setting.", f"Did you mean {near[0]!r}?" if near else f"Words: {', '.join(known)}."
    )


def choose_prompts(prompts: Sequence[BenchPrompt], categories: Collection[str]) -> tuple[BenchPrompt, ...]:
    """The prompts of these categories.

    Raises:
        UsageError: there is no such category.
    """
    known = tuple(dict.fromkeys(prompt.category for prompt in prompts))
    for name in categories:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise UsageError(
                f"There is no category {name!r}.",
                f"Did you mean {near[0]!r}?" if near else f"Categories: {', '.join(known)}.",
            )
    return tuple(prompt for prompt in prompts if prompt.category in categories)


def one_of_each(prompts: Sequence[BenchPrompt]) -> tuple[BenchPrompt, ...]:
    """The first prompt of each category."""
    return tuple({prompt.category: prompt for prompt in reversed(prompts)}.values())[::-1]
