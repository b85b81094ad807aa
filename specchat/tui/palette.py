"""The slash commands in the command palette."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from specchat.tui.commands import COMMANDS, Command


class SlashCommands(Provider):
    """Every slash command, found by its name or by what it does."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for command in COMMANDS.values():
            yield DiscoveryHit(_title(command), partial(self._choose, command), help=command.summary)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for command in COMMANDS.values():
            title = _title(command)
            score = matcher.match(f"{title} {command.summary}")
            if score > 0:
                yield Hit(score, matcher.highlight(title), partial(self._choose, command), help=command.summary)

    def _choose(self, command: Command) -> None:
        from specchat.tui.screens.chat import ChatScreen

        screen = self.app.screen
        if isinstance(screen, ChatScreen):
            screen.offer(command)


def _title(command: Command) -> str:
    return f"/{command.name} {command.takes}".strip()
