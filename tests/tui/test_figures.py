from dataclasses import replace

import pytest

from specchat.core.stats import ReplyStats
from specchat.core.theory import expected_tokens
from specchat.engine.interface import Device
from specchat.tui.figures import break_even, gain_sentence, memory_text, seconds_text
from specchat.tui.widgets.now_panel import one_line
from tests.tui.scripted_engine import LOADED, described, reply_events, round_of
from tests.tui.stories import sky_rounds


def folded(events):
    stats = ReplyStats()
    for event in events:
        stats.add(event)
    return stats


def test_break_even_is_the_alpha_at_which_a_round_yields_what_it_costs():
    stats = folded(reply_events(sky_rounds()))
    found = break_even(stats)
    assert found.num_draft_tokens == 4
    lengths = [played for played in stats.recent if len(played.drafted) == 4]
    cost = sum(played.seconds.total for played in lengths) / len(lengths) * stats.plain.tokens_per_second
    assert expected_tokens(found.acceptance, 4) == pytest.approx(cost)


def test_break_even_needs_a_plain_speed_and_a_draft():
    assert break_even(folded(reply_events(sky_rounds(), plain=False))) is None
    assert break_even(folded(reply_events([round_of("a|p")]))) is None


def test_gains_and_costs_are_said_in_words():
    assert gain_sentence(1.61) == "drafting gains 1.61× here"
    assert gain_sentence(0.62) == "drafting costs 38% here"
    assert gain_sentence(1.0) == "drafting neither gains nor costs here"


def test_durations():
    assert [seconds_text(n) for n in (54, 170, 7500)] == ["54 s", "3 min", "2 h 5 min"]


def test_the_line_of_narrow_terminals_is_of_the_whole_reply():
    stats = folded(reply_events([*[round_of("a|a b|b")] * 60, *[round_of("a|x b|r")] * 60]))
    assert stats.window.acceptance_rate == 0
    assert one_line(stats).plain.endswith("α 0.50  1.50 a round")


def test_the_models_memory_stands_beside_their_devices():
    cpu = Device("CPU", "a processor", "cpu", 1, 16 * 10**9)
    gpus = [Device(f"CUDA{n}", "a card", "gpu", 1, 8 * 10**9) for n in range(2)]
    assert memory_text(LOADED, ()) == "memory 2.0 GB"
    assert memory_text(LOADED, (cpu, *gpus)) == "memory 2.0 / 16.0 GB"
    assert memory_text(replace(LOADED, draft=None), (cpu,)) == "memory 1.0 / 16.0 GB"

    def on_gpu(device, layers=25):
        model = replace(described("target"), gpu_layers=layers, device=device)
        return replace(LOADED, target=model, draft=replace(model, path="draft.gguf"))

    assert memory_text(on_gpu("a card, a card"), (cpu, *gpus)) == "memory 2.0 / 16.0 GB"
    assert memory_text(on_gpu("a card"), (cpu, *gpus)) == "memory 2.0 / 8.0 GB"
    assert memory_text(on_gpu("a card", layers=20), (cpu, *gpus)) == "memory 2.0 GB", "some of it is in RAM"
    itself = on_gpu("a card")
    itself = replace(itself, draft=replace(itself.target, memory_bytes=12 * 10**8))
    assert memory_text(itself, ()) == "memory 1.2 GB", "its weights count once"
