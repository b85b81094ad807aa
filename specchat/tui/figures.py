"""What the screen says of a reply in numbers and sentences. Every figure comes from `specchat.core.stats`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specchat.chat.figures import speedup_text, usual_length
from specchat.core.stats import ReplyStats
from specchat.core.theory import RoundCosts, break_even_acceptance
from specchat.engine.interface import Device, Loaded, ModelDescription


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The α from which on drafting γ tokens is not slower than plain; ``acceptance`` None: no α reaches it."""

    num_draft_tokens: int
    acceptance: float | None


def break_even(stats: ReplyStats) -> BreakEven | None:
    """Break-even from what the last rounds cost here, everything included; None where too little is known.

    The cost of a round is its wall-clock time × the plain speed: the number of plain steps that fit into it.
    """
    rounds = [played for played in stats.recent if played.drafted]
    length = usual_length(stats.window)
    alike = [played.seconds.total for played in rounds if len(played.drafted) == length]
    if stats.plain is None or not alike or not sum(alike):
        return None
    cost = sum(alike) / len(alike) * stats.plain.tokens_per_second
    costs = RoundCosts(passes={1: 1.0, length + 1: cost})
    return BreakEven(length, break_even_acceptance(length, costs))


def gain_sentence(speedup: float) -> str:
    """What drafting brings or costs, in words: drafting costs 38% here."""
    if speedup >= 1.005:
        return f"drafting gains {speedup_text(speedup)} here"
    if speedup > 0.995:
        return "drafting neither gains nor costs here"
    return f"drafting costs {1 - speedup:.0%} here"


def seconds_text(seconds: float) -> str:
    """A duration as people read it: 54 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def memory_text(loaded: Loaded, devices: Sequence[Device]) -> str:
    """What the loaded models take, contexts included, beside all the memory of their device, where that is known."""
    models = [model for model in (loaded.target, loaded.draft) if model is not None]
    taken = sum(model.memory_bytes for model in models)
    if len({model.path for model in models}) < len(models):  # the target drafts for itself: its weights count once
        taken -= models[1].file_bytes
    there = _memory_of(models, devices)
    return f"memory {taken / 1e9:.1f} {f'/ {there / 1e9:.1f} ' if there else ''}GB"


def _memory_of(models: Sequence[ModelDescription], devices: Sequence[Device]) -> int:
    """All memory of where these models lie; 0 where that is not known, or they are spread over CPU and GPU."""
    places = {model.device if model.gpu_layers else "CPU" for model in models}
    if len(places) > 1 or any(0 < model.gpu_layers <= model.n_layers for model in models):
        return 0
    place = places.pop()
    if place == "CPU":
        return next((device.total for device in devices if device.kind == "cpu"), 0)
    gpus = [device for device in devices if device.kind != "cpu"]
    if place == ", ".join(gpu.description for gpu in gpus):  # as a model that lies on all of them says it
        return sum(gpu.total for gpu in gpus)
    return next((gpu.total for gpu in gpus if gpu.description == place), 0)
