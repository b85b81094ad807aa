"""One round in slow motion: what was drafted, how the target judged it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from textual.content import Content

from specchat.chat.playback import Phase
from specchat.core.events import DraftedToken, Fate, Round
from specchat.core.fate_style import FATE_STYLES
from specchat.core.safe_text import safe_text
from specchat.tui.charts import bar
from specchat.tui.widgets.inspector import quoted
from specchat.tui.widgets.status import QuietStatic

_Part = tuple[str, str]
_LABEL = 9
_COLUMN = 15
_BAR = 6
_HOW = {
    Fate.RESAMPLED: "drawn from what p has more than q: the residual",
    Fate.BONUS: "all were kept, and the same pass gave one more, drawn from p",
    Fate.PLAIN: "drawn from p: nothing was drafted",
}
_STEPS = {Phase.DRAFTED: "draft", Phase.VERIFIED: "verify", Phase.CORRECTED: "correct"}


class RoundGlass(QuietStatic):
    """Shows a round as far as it has happened; each drafted token is a column."""

    def show(self, played: Round | None, phase: Phase) -> None:
        """Shows a round; None where there is none yet."""
        self.border_title = "one round" if played is None else f"round {played.index + 1}"
        if played is None:
            hint = "A round stands here: → plays the next one, Enter a part of it."
            self.show_content(Content.styled(hint, "$quiet"))
            return
        lines = [_head(played, phase), *_columns(played, phase, self.size.width)]
        if phase is Phase.CORRECTED:
            lines.append(_correction(played))
        self.show_content(Content("\n").join([Content.assemble(*line) for line in lines]))


def _head(played: Round, phase: Phase) -> list[_Part]:
    """The three phases with the time that each took; the one that is over last is bright."""
    seconds = played.seconds
    times = {Phase.DRAFTED: seconds.draft, Phase.VERIFIED: seconds.verify, Phase.CORRECTED: seconds.sample}
    parts: list[_Part] = []
    for each, name in _STEPS.items():
        style = "bold $primary" if each is phase else "" if each < phase else "$quiet"
        parts.append((f"{name} {times[each] * 1000:.0f} ms", style))
        parts.append(("  →  " if each is not Phase.CORRECTED else "", "$quiet"))
    return [*parts, (f"   {safe_text(played.rule, keep_newlines=False)}, γ {played.num_draft_tokens}", "$quiet")]


def _columns(played: Round, phase: Phase, width: int) -> Iterator[list[_Part]]:
    if not played.drafted:
        yield [("nothing was drafted", "$quiet")]
        return
    shown = played.drafted[: max(1, (width - _LABEL) // _COLUMN)] if phase >= Phase.DRAFTED else ()
    judged = phase >= Phase.VERIFIED
    yield _row("draft x̂", shown, lambda token: (quoted(token.text, token.bytes), _style(token, judged)))
    yield _row("q", shown, lambda token: (_bar(token.q), "$fate-accepted"))
    yield _row("p", shown, lambda token: (_bar(token.p), "$fate-bonus") if _is_judged(token) and judged else None)
    yield _row("draw", shown, lambda token: (_draw(token), "") if _is_judged(token) and judged else None)
    left_out = len(played.drafted) - len(shown) if shown else 0
    verdicts = _row("", shown, lambda token: (_verdict(token), f"$fate-{token.fate}") if judged else None)
    yield [*verdicts, (f" … and {left_out} more" if left_out else "", "$quiet")]


def _row(label: str, tokens: Sequence[DraftedToken], cell: Callable[[DraftedToken], _Part | None]) -> list[_Part]:
    parts: list[_Part] = [(label.ljust(_LABEL + label.count("\u0302")), "$quiet")]
    for token in tokens:
        text, style = cell(token) or ("", "")
        content = Content(text)
        if content.cell_length >= _COLUMN:
            content = content.truncate(_COLUMN - 1, ellipsis=True)
        parts.append((content.plain, style))
        parts.append((" " * (_COLUMN - content.cell_length), ""))
    return parts


def _is_judged(token: DraftedToken) -> bool:
    return token.fate is not Fate.IGNORED


def _style(token: DraftedToken, judged: bool) -> str:
    return f"$fate-{token.fate} bold" if judged else "bold"


def _bar(probability: float) -> str:
    return f"{bar(probability, _BAR)} {probability:.3f}"


def _draw(token: DraftedToken) -> str:
    sign = "<" if token.draw < token.threshold else "≥"
    return f"{token.draw:.3f} {sign} {token.threshold:.3f}"


def _verdict(token: DraftedToken) -> str:
    return f"{FATE_STYLES[token.fate].mark} {token.fate}"


def _correction(played: Round) -> list[_Part]:
    own = next((token for token in played.committed if token.fate is not Fate.ACCEPTED), None)
    if own is None:
        return [("the reply ends with a drafted token", "$quiet")]
    return [
        ("then".ljust(_LABEL), "$quiet"),
        (quoted(own.text, own.bytes), f"$fate-{own.fate} bold"),
        (f"  {FATE_STYLES[own.fate].mark} {own.fate}: {_HOW[own.fate]}", "$quiet"),
    ]
