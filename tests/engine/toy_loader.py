"""Loads toy pairs instead of llama.cpp's, by the name of the target. The child process of tests uses it too.

``toy``         a Markov pair
``quiet``       a target that never ends a reply
``slow``        each pass takes a moment
``stuck``       the first pass never ends
``noisy``       native code writes to file descriptors 1 and 2 in every pass
``abort``       the process aborts in the fifth pass, as llama.cpp does
``broken``      cannot be loaded
``endless``     loads for ever, unless it is stopped
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np

from specchat.backends.base import Interrupted
from specchat.backends.combined import CombinedDrafter
from specchat.backends.markov import MarkovModel
from specchat.engine.interface import Load, ModelDescription
from specchat.engine.pair import LoadedPair, OnProgress
from specchat.errors import LoadError
from tests.decoding.toys import ChainDrafter

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
N_VOCAB = 6
END = 5


class OddModel(MarkovModel):
    """A Markov model with a bad habit."""

    habit = "none"
    passes = 0

    def decode(self, inputs):
        self.passes += 1
        if self.habit == "slow":
            time.sleep(0.01)
        elif self.habit == "stuck":
            time.sleep(3600)
        elif self.habit == "noisy":
            os.write(1, b'{"record":"Failed"}\nnot a message, and no end of line')
            os.write(2, b"\x1b]0;title\x07 llama_decode: noise\n" * 3)
            print("printed by Python", flush=True)  # noqa: T201 - stray output, on purpose
        elif self.habit == "abort" and self.passes == 5:
            os.write(2, b"ggml.c:7: GGML_ASSERT(n_tokens <= n_batch) failed\n")
            os.abort()
        return super().decode(inputs)


def load(command: Load, on_progress: OnProgress) -> LoadedPair:
    if command.target == "broken":
        raise LoadError("llama.cpp: the file is truncated.", "Fetch it again with `specchat pull`.")
    for fraction in (0.0, 0.5, 1.0):
        if not on_progress("target", fraction):
            raise Interrupted
    while command.target == "endless":
        time.sleep(0.001)
        if not on_progress("target", 1.0):
            raise Interrupted
    target = _model(OddModel, seed=1, ends=command.target == "toy", n_ctx=command.n_ctx or 4096)
    target.habit = command.target
    draft = _model(MarkovModel, seed=2, ends=command.target == "toy", n_ctx=command.n_ctx or 4096)
    pair = LoadedPair(
        target=target,
        description=_description(command.target),
        drafters={"auto": CombinedDrafter([])},
        identical_pass=3 if command.exact else 1,
        build="toy",
        notes=("A toy, not a model.",),
        setup="toys",
    )
    for known in command.learned:
        pair.experience.restore(known.experience)
    if command.draft is None:
        return pair

    def load_draft(pair: LoadedPair, on_progress: OnProgress) -> LoadedPair:
        on_progress("draft", 1.0)
        drafter = ChainDrafter(draft)
        return replace(
            pair,
            drafters={"draft": drafter, "auto": CombinedDrafter([], drafter)},
            draft=draft,
            draft_description=_description(command.draft or ""),
            load_draft=None,
            draft_left_out=None,
        )

    if command.draft_if_it_pays:
        return replace(pair, load_draft=load_draft, draft_left_out="fast: the draft is left out")
    return load_draft(pair, lambda model, fraction: True)


def _model(kind, seed: int, ends: bool, n_ctx: int):
    transitions = np.random.default_rng(seed).dirichlet(np.ones(N_VOCAB), size=N_VOCAB)
    if not ends:
        transitions[:, END] = 0
        transitions /= transitions.sum(axis=1, keepdims=True)
    model = kind(transitions, end=END, n_ctx=n_ctx)
    model.vocabulary.chat_template = TEMPLATE
    return model


def _description(name: str) -> ModelDescription:
    return ModelDescription(
        name=name,
        path=f"/models/{name}.gguf",
        architecture="markov",
        quantization="F64",
        n_params=N_VOCAB**2,
        n_vocab=N_VOCAB,
        n_layers=0,
        gpu_layers=0,
        n_ctx_train=4096,
        file_bytes=288,
        memory_bytes=288,
        device="CPU",
    )
