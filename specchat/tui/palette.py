"""The slash commands in the command palette."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

from specchat.tui.commands import COMMANDS, Command

if TYPE_CHECKING:
    from specchat.tui.screens.chat import ChatScreen


class SlashCommands(Provider):
    """Every slash command, found by its name or by what it does; none where no chat is shown to carry them out."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for command in self._commands():
            yield DiscoveryHit(_title(command), partial(self._choose, command), help=command.summary)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for command in self._commands():
            title = _title(command)
            score = matcher.match(f"{title} {command.summary}")
            if score > 0:
                yield Hit(score, matcher.highlight(title), partial(self._choose, command), help=command.summary)

    def _commands(self) -> Iterable[Command]:
        return () if self._chat() is None else COMMANDS.values()

    def _choose(self, command: Command) -> None:
        if (chat := self._chat()) is not None:
            chat.offer(command)

    def _chat(self) -> ChatScreen | None:
        """The screen below the palette, where that is the chat."""
        from specchat.tui.screens.chat import ChatScreen

        return self.screen if isinstance(self.screen, ChatScreen) else None


def _title(command: Command) -> str:
    return f"/{command.name} {command.takes}".strip()
