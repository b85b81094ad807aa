"""Makes drafts.json: what a draft did along replies of its target (read by tests/core/recorded_drafts.py).

``python -m tests.data.record_drafts TARGET.gguf DRAFT.gguf OUTPUT.json [TOKENS]`` takes an hour or so on two cores.
The replies are written by speculation itself, which is lossless, so they are the target's own. Each position of a
reply becomes one list: P(kept | what was written) in hundredths, the draft's margin in tenths, the largest probability
of q and that of the written token in hundredths; then the same three numbers for the token that would be rejected
here and for those that the draft would go on with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from specchat.backends.base import LanguageModel, PassInput, bring_to
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.llama import load_model
from specchat.core.acceptance import margin
from specchat.core.draft_length import FixedLength
from specchat.core.events import Round
from specchat.core.sampling import Distribution, SamplingParams, distribution, excess
from specchat.core.settings import ChatMessage
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.decoding.rounds import RoundPlan
from specchat.lab.prompts import PROMPTS

TEMPERATURES = (0.7, 0.0, 1.0)
FOLLOWING = 6
"""How many tokens the draft goes on with after a rejected one."""
CHUNK = 32


def main(target_path: str, draft_path: str, output: str, max_tokens: int = 110) -> None:
    target, draft = load_model(target_path), load_model(draft_path)
    models = [model.context(n_ctx=2048, max_logits=CHUNK, threads=1) for model in (target, draft)]
    recorded = []
    for temperature in TEMPERATURES:
        for number, prompt in enumerate(PROMPTS):
            tokens = list(render_prompt(target.vocabulary, [ChatMessage("user", prompt.text)]).tokens)
            positions = record(*models, tokens, SamplingParams(temperature=temperature), max_tokens, number)
            recorded.append(
                {
                    "category": prompt.category,
                    "name": prompt.name,
                    "temperature": temperature,
                    "prompt": len(tokens),
                    "positions": positions,
                }
            )
            print(prompt.name, temperature, len(positions), flush=True)  # noqa: T201
            lines = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in recorded)
            Path(output).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def record(
    target: LanguageModel, draft: LanguageModel, prompt: list[int], params: SamplingParams, max_tokens: int, seed: int
) -> list[list[int]]:
    """The positions of one reply."""
    rng, n_vocab = np.random.default_rng(seed), target.vocabulary.n_vocab
    plan = RoundPlan(params, ModelDrafter(draft, n_vocab), FixedLength(4))
    events = generate(target, prompt, plan, rng, max_tokens=max_tokens)
    whole = prompt + [token.id for event in events if isinstance(event, Round) for token in event.committed]
    p = [distribution(row, params) for row in rows_after(target, whole, len(prompt))]
    positions, wrong = [], []
    for i, row in enumerate(rows_after(draft, whole, len(prompt))):
        q, written = distribution(row, params, (), n_vocab), whole[len(prompt) + i]
        kept = min(1.0, q.probability(written) / p[i].probability(written))
        surplus = excess(q, p[i])
        rejected = (
            int(Distribution.of_weights(q.ids[surplus > 0], surplus[surplus > 0]).sample(rng))
            if kept < 1 and surplus.any()
            else None
        )
        seen = (margin(q, row[:n_vocab]), float(q.probs.max()))
        first = written if rejected is None or q.probability(written) > 0 else rejected
        positions.append([round(100 * kept), *look(*seen, q.probability(first))])
        wrong.append(None if rejected is None else (rejected, look(*seen, q.probability(rejected))))
    for i, each in enumerate(wrong):
        if each is not None:
            token, here = each
            bring_to(draft, 0, whole[: len(prompt) + i])
            positions[i] += [*here, *go_on(draft, token, params, n_vocab, rng)]
    return positions


def go_on(
    draft: LanguageModel, token: int, params: SamplingParams, n_vocab: int, rng: np.random.Generator
) -> Iterator[int]:
    """What the draft draws after a token that will be rejected."""
    for _ in range(FOLLOWING):
        if draft.vocabulary.is_end(token):
            return
        row = draft.decode([PassInput(0, (token,), 1)])[0][0]
        q = distribution(row, params, (), n_vocab)
        token = q.sample(rng)
        yield from look(margin(q, row[:n_vocab]), float(q.probs.max()), q.probability(token))


def rows_after(model: LanguageModel, tokens: list[int], first: int) -> Iterator[np.ndarray]:
    """The logits that each of ``tokens[first:]`` was drawn from."""
    bring_to(model, 0, tokens[: first - 1])
    for start in range(first - 1, len(tokens) - 1, CHUNK):
        chunk = tokens[start : min(start + CHUNK, len(tokens) - 1)]
        yield from model.decode([PassInput(0, chunk, len(chunk))])[0].copy()


def look(sureness: float, largest: float, probability: float) -> list[int]:
    return [min(99, round(10 * sureness)), round(100 * largest), max(1, round(100 * probability))]


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
