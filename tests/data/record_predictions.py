"""Makes predictions.json: what a calibration predicts for a pair, and what replies then measure.

``python -m tests.data.record_predictions TARGET.gguf DRAFT.gguf`` takes some minutes on a machine that does nothing
else. After the calibration each prompt is answered plainly and with each draft in turn, so that all of them meet the
same moments of the machine.
"""

from __future__ import annotations

import json
import platform
import sys
from collections import defaultdict
from pathlib import Path
from typing import TypeVar

from specchat.core.events import Finished
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine.interface import Calibrate, Calibration, Engine, Failed, Load, Loaded, Reply, ReplyEvent
from specchat.engine.measuring import PROMPTS
from specchat.engine.process import ProcessEngine

OUTPUT = Path(__file__).with_name("predictions.json")
DRAFTS = (("none", 0), ("draft", 2), ("draft", 4), ("ngram", 3), ("ngram", 7))
MAX_TOKENS = 128
_Answer = TypeVar("_Answer")


def main(target: str, draft: str, repetitions: str = "1") -> None:
    engine = ProcessEngine()
    try:
        engine.send(Load(target, draft, n_ctx=2048))
        loaded = wait_for(engine, Loaded)
        engine.send(Calibrate())
        calibration = wait_for(engine, Calibration)
        measured = replies(engine, int(repetitions))
    finally:
        engine.close()
    plain = measured["none", 0]
    data = {
        "pair": [loaded.target.name, loaded.draft.name if loaded.draft else ""],
        "machine": platform.processor() or platform.machine(),
        "llama.cpp": loaded.build,
        "pass_seconds": {str(size): round(seconds, 6) for size, seconds in calibration.pass_seconds.items()},
        "draft_step_seconds": calibration.draft_step_seconds,
        "draft_catch_up_seconds": calibration.draft_catch_up_seconds,
        "acceptance_by_position": calibration.acceptance_by_position,
        "predicted": [[each.drafter, each.num_draft_tokens, each.speedup] for each in calibration.predictions],
        "measured": [[*setting, speed / plain] for setting, speed in measured.items() if setting[1]],
    }
    OUTPUT.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def replies(engine: Engine, repetitions: int) -> dict[tuple[str, int], float]:
    """Tokens a second of each setting, over all replies."""
    tokens: defaultdict[tuple[str, int], int] = defaultdict(int)
    seconds: defaultdict[tuple[str, int], float] = defaultdict(float)
    number = 0
    for repetition in range(repetitions):
        for prompt in PROMPTS:
            for drafter, length in DRAFTS:
                number += 1
                settings = ReplySettings(
                    SamplingParams(), "watch", length, "token", drafter, max_tokens=MAX_TOKENS, seed=100 + repetition
                )
                engine.send(Reply(number, (ChatMessage("user", prompt),), settings, measure_plain=False))
                finished = wait_for_end(engine, number)
                tokens[drafter, length] += finished.tokens
                seconds[drafter, length] += finished.seconds
    return {setting: tokens[setting] / seconds[setting] for setting in tokens}


def wait_for(engine: Engine, kind: type[_Answer]) -> _Answer:
    while True:
        message = engine.receive(600)
        if isinstance(message, kind):
            return message
        if message is None or isinstance(message, Failed):
            raise SystemExit(f"It failed: {message}")


def wait_for_end(engine: Engine, number: int) -> Finished:
    while True:
        event = wait_for(engine, ReplyEvent)
        if event.reply == number and isinstance(event.event, Finished):
            return event.event


if __name__ == "__main__":
    main(*sys.argv[1:])
