"""What is remembered from one start to the next, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from specchat.config import State


@dataclass
class Kept:
    """What is remembered, in memory."""

    state: State = field(default_factory=State)

    def read(self) -> State:
        return self.state

    def add_place(self, path: str) -> None:
        self._set(added=(*self.state.added, path))

    def forget_place(self, path: str) -> None:
        self._set(added=tuple(each for each in self.state.added if each != path))

    def add_pair(self, target: str, draft: str) -> None:
        self._set(combined=(*self.state.combined, (target, draft)))

    def forget_pair(self, target: str, draft: str) -> None:
        self._set(combined=tuple(each for each in self.state.combined if each != (target, draft)))

    def _set(self, **changes) -> None:
        self.state = replace(self.state, **changes)
