"""The length rules of a loaded pair. They learn from round to round, and live as long as the pair is loaded."""

from __future__ import annotations

from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.experience import Experience


class DraftLengths:
    """One rule for *fast*, and one for modes that draft in every round. Both learn into the same experience.

    So a chat in *watch* teaches what *fast* needs to know, also where γ is fixed.

    Attributes:
        said: the last sentence that a person was shown about drafting.
    """

    def __init__(self, experience: Experience) -> None:
        self.said: str | None = None
        self._fast = AdaptiveLength(experience)
        self._watch = AdaptiveLength(experience)

    def begin_reply(self) -> None:
        """Another reply begins."""
        self._fast.begin_reply()
        self._watch.begin_reply()

    def fast(self, most: int | None = None) -> AdaptiveLength:
        """γ by what pays, from 0 to ``most``."""
        self._fast.most = most
        return self._fast

    def watch(self, least: int, most: int | None = None) -> AdaptiveLength:
        """γ by what pays, from ``least`` to ``most``; always γ where they are the same."""
        self._watch.floor, self._watch.most = least, most
        return self._watch
