"""How each fate looks: one table for the screen, the exports and the plots.

Both sets of colours were found by search over simulated colour blindness: the smallest distance (ΔE76) between two
fates is 54 / 42 / 40 (dark) and 40 / 42 / 40 (light) for protan / deutan / tritan vision; the usual
red / green / yellow / blue reaches 32 / 22 / 20. Contrast is at least 4.5 on the backgrounds below. Where there is no
colour at all, the marks tell the fates apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from specchat.core.events import Fate

DARK_BACKGROUND = "#1E1E1E"
DARK_TEXT = "#E6E6E6"
LIGHT_BACKGROUND = "#FBFBFA"
LIGHT_TEXT = "#24292F"


@dataclass(frozen=True, slots=True)
class FateStyle:
    """Colours and marks of one fate.

    ``dark`` and ``light`` are the colours of its text on a dark and on a light background. ``attribute`` is the text
    attribute that marks it where there is no colour, ``mark`` the sign that stands for it in the rounds view,
    ``meaning`` a few words for the legend.
    """

    dark: str
    light: str
    attribute: str
    mark: str
    meaning: str


FATE_STYLES: dict[Fate, FateStyle] = {
    Fate.ACCEPTED: FateStyle("#96C0EC", "#427398", "", "■", "drafted and kept"),
    Fate.RESAMPLED: FateStyle("#FFD400", "#AC6000", "underline", "~", "drawn from the residual after a rejection"),
    Fate.REJECTED: FateStyle("#F18258", "#442403", "strike", "×", "drafted, judged, refused"),
    Fate.IGNORED: FateStyle("#8A8A8A", "#6A737D", "dim", "·", "drafted after a rejection, never judged"),
    Fate.BONUS: FateStyle("#C04CFD", "#9241E5", "bold", "+", "drawn from p after all were accepted"),
    Fate.PLAIN: FateStyle(DARK_TEXT, LIGHT_TEXT, "", "○", "no draft this round"),
}

WORST_FIRST = (Fate.REJECTED, Fate.RESAMPLED, Fate.BONUS, Fate.PLAIN, Fate.ACCEPTED, Fate.IGNORED)
"""Which fate a character shows that several tokens share."""


def worst(*fates: Fate) -> Fate:
    """The fate that a character made of tokens with these fates shows."""
    return min(fates, key=WORST_FIRST.index)
