"""The sentence that always says what is going on."""

from __future__ import annotations

from specchat.core.events import Prefill
from specchat.core.stats import ReplyStats
from specchat.tui.charts import progress_bar
from specchat.tui.figures import gain_sentence, seconds_text
from specchat.tui.live_chat import LiveChat, Phase
from specchat.tui.pair_shelf import Fetch

State = tuple[str, str, str]
"""A word or two, what there is to say about it, and a style."""


def state_of(chat: LiveChat, stats: ReplyStats, why: str, fetch: Fetch | None, *, is_editing: bool) -> State:
    """What to say now.

    Args:
        chat: what is going on.
        stats: the figures of the reply that is being written, or of the last one.
        why: the engine's own last sentence on the draft length.
        fetch: the fetch that is going on, or that failed.
        is_editing: a question is being written again, which Enter does not send as the next one.
    """
    if fetch is not None and not fetch.is_over:
        checking = fetch.latest is not None and fetch.latest.source == "disk"
        return "checking" if checking else "fetching", _fetch_sentence(fetch), "$warning"
    match chat.phase:
        case Phase.LOADING:
            return "loading", f"{_load_sentence(chat)}. You can type meanwhile; Esc stops.", "$warning"
        case Phase.EMPTY:
            can_go_on = chat.can_load_again or fetch is not None
            hint = "Ctrl+R loads the pair, /pair chooses another." if can_go_on else "/pair chooses one."
            return "no model", hint, "$error"
        case Phase.READING:
            return "reading", f"{_read_sentence(chat)}. Esc stops.", "$warning"
        case Phase.READY if is_editing:
            return "editing a question", "Enter asks it anew, Esc leaves it", "$warning"
    return chat.settings.mode, _mode_sentence(chat, stats, why), "$primary"


def _fetch_sentence(fetch: Fetch) -> str:
    from specchat.pairs.fetching import size_text  # there is a fetch, so it is imported already

    latest = fetch.latest
    if latest is None:
        return "asking where the files are. Esc cancels."
    if not latest.total:
        return f"{latest.model}: {latest.what}, {size_text(latest.done)}. Esc cancels."
    share = latest.done / latest.total
    parts = [f"{progress_bar(share, 16)} {share:.0%}, {size_text(latest.done)} of {size_text(latest.total)}"]
    if rate := fetch.rate():
        parts.append(f"{size_text(rate)}/s, {seconds_text((latest.total - latest.done) / rate)} left")
    what = "" if latest.source == "disk" else f" ({latest.what})"
    return f"{latest.model} {', '.join(parts)}{what}. Esc cancels."


def _load_sentence(chat: LiveChat) -> str:
    if not chat.load_fractions:
        return "the models are being opened"
    fractions = chat.load_fractions.items()
    return ", ".join(f"{model} {progress_bar(fraction, 10)} {fraction:.0%}" for model, fraction in fractions)


def _read_sentence(chat: LiveChat) -> str:
    reading = chat.reading
    if isinstance(reading, Prefill):
        cached = f", {reading.reused:,} of them reused" if reading.reused else ""
        return f"the prompt is read: {reading.tokens + reading.reused:,} tokens{cached}"
    if reading is None:
        return "the target reads the prompt"
    share = reading.read / max(1, reading.total)
    parts = [f"{reading.model} {progress_bar(share, 8)} {share:.0%}, {reading.read:,} of {reading.total:,} tokens"]
    if speed := reading.tokens_per_second:
        parts.append(f"{speed:.0f} tok/s")
    if reading.reused:
        parts.append(f"{reading.reused:,} reused")
    return ", ".join(parts)


def _mode_sentence(chat: LiveChat, stats: ReplyStats, why: str) -> str:
    mode = chat.settings.mode
    if mode == "exact" and chat.settings.sampling.temperature > 0:
        return "the same tokens as plain decoding at temperature 0 only, /temp 0 makes it hold"
    if why:
        return why.removeprefix(f"{mode}: ")
    if chat.settings.drafter == "none":
        return "drafting is off, /draft draft turns it on"
    if chat.settings.drafter == "draft" and chat.loaded is not None and chat.loaded.draft is None:
        return "no draft model, so there is no speculation; /draft ngram drafts from the text so far"
    if mode == "exact":
        return "at temperature 0 the same tokens as plain decoding"
    if not stats.total.drafting_rounds:
        return "drafts every round, so that there is something to see" if mode == "watch" else "never slower than plain"
    if stats.speedup is None:
        return "drafting; the plain speed to compare with is not known yet"
    sentence = gain_sentence(stats.speedup)
    return f"{sentence}, F2 for fast" if mode == "watch" and stats.speedup < 0.995 else sentence
