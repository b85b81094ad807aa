"""Makes replies.json: what a target answers, and what a script would (read by tests/backends/recorded_replies.py).

``python -m tests.data.record_replies TARGET.gguf`` takes a quarter of an hour on two cores. Greedy replies to the
prompts of ``specchat bench`` and to further wishes, replies at temperature 0.7 to the former, and rewritings made by
scripts. There to be fitted (see tests/backends/copy_fitting.py) are the further rewritings and every other one of the
rest; none of the bench's own rewritings and summaries, and nothing at temperature 0.7.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from specchat.backends.base import LanguageModel, Vocabulary
from specchat.backends.copying import CopyDrafter
from specchat.backends.llama import load_model
from specchat.core.draft_length import FixedLength
from specchat.core.events import Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.decoding.rounds import RoundPlan
from specchat.lab.prompts import PROMPTS
from tests.data.scripted import SCRIPTED
from tests.data.wishes import FREE, REWRITINGS, WORK

OUTPUT = Path(__file__).with_name("replies.json")
SAMPLED, SAMPLED_TOKENS = 0.7, 110
COPIED_TOKENS, WORK_TOKENS, FREE_TOKENS = 500, 300, 200
WISHES = (("rewriting", REWRITINGS, COPIED_TOKENS), ("work", WORK, WORK_TOKENS), ("free", FREE, FREE_TOKENS))


@dataclass(frozen=True)
class Recording:
    """A reply to be written down, with its prompt."""

    category: str
    name: str
    temperature: float
    for_fitting: bool
    prompt: list[int]
    tokens: list[int]


def main(path: str) -> None:
    target = load_model(path)
    with target.context(n_ctx=2048, max_logits=1) as context:
        recordings = [*recorded(context), *scripted(target.vocabulary)]
    write(recordings, target.vocabulary)


def recorded(context: LanguageModel) -> Iterable[Recording]:
    """What the model answers."""
    for prompt in PROMPTS:
        ids = prompt_of(context.vocabulary, prompt.text)
        most = COPIED_TOKENS if prompt.category == "rewriting" else FREE_TOKENS
        fitted = is_fitted(prompt.category, prompt.name)
        yield Recording(prompt.category, prompt.name, 0.0, fitted, ids, answer(context, ids, 0.0, most))
        sampled = answer(context, ids, SAMPLED, SAMPLED_TOKENS)
        yield Recording(prompt.category, prompt.name, SAMPLED, False, ids, sampled)
    for category, wishes, most in WISHES:
        for number, (name, text) in enumerate(wishes.items()):
            ids = prompt_of(context.vocabulary, text)
            fitted = category == "rewriting" or number % 2 == 0
            yield Recording(category, name, 0.0, fitted, ids, answer(context, ids, 0.0, most))


def scripted(vocabulary: Vocabulary) -> Iterable[Recording]:
    """What scripts answer."""
    for number, each in enumerate(SCRIPTED):
        reply = [*vocabulary.tokenize(each.reply, parse_special=False), vocabulary.eos or 0]
        name = f"scripted {each.name}"
        yield Recording("rewriting", name, 0.0, number % 2 == 0, prompt_of(vocabulary, each.prompt), reply)


def is_fitted(category: str, name: str) -> bool:
    """Every other free reply is; what is to be reached on the bench is not."""
    free = [prompt.name for prompt in PROMPTS if prompt.category not in ("rewriting", "summary")]
    return category not in ("rewriting", "summary") and free.index(name) % 2 == 0


def prompt_of(vocabulary: Vocabulary, text: str) -> list[int]:
    return list(render_prompt(vocabulary, [ChatMessage("user", text)]).tokens)


def answer(context: LanguageModel, prompt: list[int], temperature: float, max_tokens: int) -> list[int]:
    plan = RoundPlan(SamplingParams(temperature=temperature))
    events = generate(context, prompt, plan, np.random.default_rng(1), max_tokens=max_tokens)
    return [token.id for event in events if isinstance(event, Round) for token in event.committed]


class _Listening:
    """The vocabulary, and what was asked of it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.tokenized: dict[str, list[int]] = {}

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        self.tokenized[text] = list(self._vocabulary.tokenize(text, parse_special=parse_special))
        return self.tokenized[text]

    def __getattr__(self, name: str) -> object:
        return getattr(self._vocabulary, name)


def write(recordings: list[Recording], vocabulary: Vocabulary) -> None:
    """Writes all that a test needs of the replies and of the vocabulary."""
    listening = _Listening(vocabulary)
    drafter = CopyDrafter(listening)
    for each in recordings:
        for end in range(len(each.tokens)):
            context = [*each.prompt, *each.tokens[:end]]
            drafter.propose(context, FixedLength(1), 1, SamplingParams(), np.random.default_rng(0))
    tokenized = listening.tokenized
    used = {token for each in recordings for token in (*each.prompt, *each.tokens)}
    used.update(token for ids in tokenized.values() for token in ids)
    replies = []
    for each in recordings:
        fields = asdict(each)
        fields["for fitting"] = fields.pop("for_fitting")
        del fields["prompt"]
        replies.append(fields)
    data = {
        "replies": replies,
        "prompts": {each.name: each.prompt for each in recordings},
        "tokenized": tokenized,
        "pieces": {token: vocabulary.piece(token).decode("latin-1") for token in sorted(used)},
        "controls": sorted(filter(vocabulary.is_control, used)),
    }
    OUTPUT.write_text(compact(data) + "\n", encoding="utf-8")


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main(*sys.argv[1:])
