"""How far a prompt has been read."""

import numpy as np

from specchat.backends.base import PassInput, bring_to
from specchat.backends.markov import MarkovModel
from specchat.core.events import PlainSpeed, Prefill
from specchat.engine import reading
from specchat.engine.interface import Load, Reading
from specchat.engine.local import LocalEngine
from tests.engine.conversing import ended, reply, until
from tests.engine.toy_loader import load


def model(batch=10):
    return MarkovModel(np.full((4, 4), 0.25), max_batch=batch)


def watched(target, draft=None, total=60, seconds=0.25):
    """A reading whose clock goes on by so much at each look, and what it told."""
    told, ticks = [], iter(range(10**6))
    return reading.PromptReading(7, total, target, draft, told.append, lambda: next(ticks) * seconds), told


def test_it_tells_how_far_each_model_is_what_it_reuses_and_how_fast_it_reads():
    target, draft = model(), model()
    target.decode([PassInput(0, [1] * 10, 0)])
    watching, told = watched(target, draft)

    def look():
        watching.look()
        return False

    evaluated, reused = bring_to(target, 0, [1] * 5 + [2] * 55, look)
    assert [(each.model, each.total, each.reused) for each in told] == [("target", 60, 5)] * len(told)
    reads = [each.read for each in told]
    assert reads == sorted(set(reads))
    assert (reads[0], reads[-1]) == (5, 55)  # when the first and the last pass begin
    assert told[0].tokens_per_second is None
    assert all(each.tokens_per_second == (each.read - 5) / each.seconds for each in told[1:])
    told.clear()
    watching.observe(Prefill("target", evaluated, reused, 1.0))
    watching.observe(PlainSpeed(30.0, 8, "8 plain steps"))
    bring_to(draft, 0, [1] * 60, look)
    assert {(each.model, each.reused) for each in told} == {("draft", 0)}
    told.clear()
    watching.observe(Prefill("draft", 60, 0, 1.0))
    draft.decode([PassInput(0, [1], 0)])
    look()
    assert not told


def test_what_was_told_just_now_is_not_told_again():
    target = model()
    watching, told = watched(target, total=1000, seconds=0.001)
    for _ in range(50):
        target.decode([PassInput(0, [1], 0)])
        watching.look()
    assert not told  # it has taken less than a tenth of a second
    for _ in range(150):
        target.decode([PassInput(0, [1], 0)])
        watching.look()
    assert [each.seconds for each in told] == [0.1, 0.2]


def test_a_long_prompt_is_told_before_its_prefill(monkeypatch):
    monkeypatch.setattr(reading, "_EVERY", 0.0)

    def load_small_passes(command, on_progress):
        pair = load(command, on_progress)
        pair.target.max_batch = pair.draft.max_batch = 16
        return pair

    engine = LocalEngine(load_small_passes)
    engine.send(Load("toy", "toy-draft"))
    engine.send(reply(1, text="abc" * 100))
    messages = until(engine, lambda message: ended(message, 1))
    engine.close()
    kinds = [
        message.model if isinstance(message, Reading) else type(message.event).__name__
        for message in messages
        if isinstance(message, Reading) or hasattr(message, "event")
    ]
    assert kinds[: kinds.index("Prefill")] == ["target"] * 19
    assert kinds[kinds.index("Prefill") + 1 :].count("target") == 0
