"""The lines that are always there: what is set, what is going on, what the colours mean."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from specchat.core.events import Fate
from specchat.core.fate_style import FATE_STYLES
from specchat.core.safe_text import safe_text

_LEGEND = (Fate.ACCEPTED, Fate.RESAMPLED, Fate.REJECTED, Fate.BONUS, Fate.PLAIN)
_CONTEXT_BAR = 8


class QuietStatic(Static):
    """A text that is painted only when it has changed, and never moves anything else."""

    ALLOW_SELECT = False
    _shown: Content | None = None

    def show_content(self, content: Content, *, layout: bool = False) -> None:
        """Shows a text; ``layout`` where its height may have changed."""
        if self._shown is None or not content.is_same(self._shown):
            self._shown = content
            self.update(content, layout=layout)


class StatusLine(QuietStatic):
    """Pair, mode, γ, temperature, rule and how full the context is; what does not fit is left out from the right."""

    def show(self, pair: str, items: Sequence[tuple[str, str]], context: tuple[int, int] | None) -> None:
        """Shows the pair's name, (label, value) items, and (used, available) tokens of the context."""
        parts = [Content.styled(safe_text(pair, keep_newlines=False), "bold")]
        for label, value in items:
            shown = safe_text(value, keep_newlines=False)
            parts.append(Content.assemble((f"{label} " if label else "", "$quiet"), shown))
        if context is not None and context[1]:
            parts.append(_context_bar(*context))
        width = self.size.width - 2
        while len(parts) > 1 and sum(part.cell_length + 3 for part in parts) - 3 > width:
            parts.pop()
        self.show_content(Content("   ").join(parts))


def _context_bar(used: int, available: int) -> Content:
    share = min(1.0, used / available)
    cells = min(_CONTEXT_BAR, round(share * _CONTEXT_BAR + (0.4 if used else 0)))
    style = "$error" if share > 0.95 else "$warning" if share > 0.8 else "$fate-accepted"
    return Content.assemble(
        ("ctx ", "$quiet"), ("▓" * cells, style), ("░" * (_CONTEXT_BAR - cells), "$quiet"), f" {share:.0%}"
    )


class Legend(QuietStatic):
    """The fates in their own colours, and without colour in their own marks."""

    def on_mount(self) -> None:
        """The legend never changes, but its colours do."""
        parts = []
        for fate in _LEGEND:
            style = FATE_STYLES[fate]
            shown = f"×{fate}×" if fate is Fate.REJECTED else f"■ {fate}" if not self.app.no_color else str(fate)
            attribute = style.attribute if self.app.no_color or fate is Fate.REJECTED else ""
            parts.append(Content.styled(shown, f"$fate-{fate} {attribute}"))
        self.update(Content("  ").join(parts))


class StateLine(QuietStatic):
    """One sentence on what is going on, always visible."""

    def show(self, state: str, sentence: str, style: str = "", news: str = "") -> None:
        """Shows a state in a word or two and what there is to say about it, after ``news`` if there are any."""
        head = (f"{state}: " if sentence else state, f"bold {style}".strip())
        first = (f"{news}   " if news else "", "$warning")
        self.show_content(Content.assemble(first, head, safe_text(sentence, keep_newlines=False)))
