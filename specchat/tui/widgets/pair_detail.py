"""What there is to say about a pair: why it cannot be used, the memory sum, the vocabulary, what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from specchat.pairs.fetching import size_text
from specchat.pairs.row_text import details
from specchat.tui.charts import progress_bar
from specchat.tui.figures import seconds_text
from specchat.tui.pair_fetches import FetchState
from specchat.tui.pair_table import Entry
from specchat.tui.pair_words import shown
from specchat.tui.widgets.status import QuietStatic


class PairDetail(VerticalScroll):
    """The detail pane; Tab leads into it, so that it can be scrolled."""

    DEFAULT_CSS = """
    PairDetail {
        height: 45%;
        min-height: 6;
        border: round $line;
        border-title-color: $quiet;
        border-subtitle-color: $quiet;
        padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    PairDetail:focus { border: round $primary; border-title-color: $primary; }
    PairDetail > QuietStatic { height: auto; width: 100%; }
    """

    def compose(self) -> ComposeResult:
        """One text."""
        yield QuietStatic(id="pair-detail-text")

    def show(self, entry: Entry | None, help_lines: tuple[str, ...] = ()) -> None:
        """Shows a pair. ``help_lines`` say which keys would help."""
        name = "" if entry is None else entry.row.pair.name
        self.border_title = Content(shown(name)).markup
        self.border_subtitle = "recommended for this machine" if entry is not None and entry.row.is_recommended else ""
        text = Content("No pair has these words in it.") if entry is None else _page(entry, help_lines)
        self.query_one(QuietStatic).show_content(text, layout=True)


def _page(entry: Entry, help_lines: tuple[str, ...]) -> Content:
    lines: list[Content] = [] if entry.fetch is None else list(_fetch_lines(entry.fetch))
    if help_lines:
        lines += [Content.styled(shown(text), "$warning") for text in help_lines]
    for detail in details(entry.row):
        bad = detail.heading == "Cannot be used"
        lines.append(Content.styled(detail.heading, "$error bold" if bad else "$primary bold"))
        lines += [Content(f"  {shown(text)}") for text in detail.lines]
    return Content("\n").join(lines)


def _fetch_lines(fetch: FetchState) -> Iterator[Content]:
    of = "" if fetch.total is None else f" of {size_text(fetch.total)}"
    parts = [f"{fetch.status} {size_text(fetch.done)}{of}"]
    if fetch.status == "fetching" and fetch.rate:
        parts.append(f"{size_text(fetch.rate)}/s")
    if fetch.status == "fetching" and fetch.seconds_left is not None:
        parts.append(f"{seconds_text(fetch.seconds_left)} left")
    bar = "" if fetch.share is None else f"{progress_bar(fetch.share, 14)} {fetch.share:.0%} "
    yield Content.assemble((bar, "$primary"), (", ".join(parts), "bold"))
    if fetch.what:
        yield Content.styled(shown(fetch.what), "$quiet")
    if fetch.error is not None:
        yield Content.styled(shown(fetch.error.message), "$error bold")
        yield Content(shown(f"{fetch.error.next_step} p goes on from there."))
