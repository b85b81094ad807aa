"""``specchat``: the chat on the terminal's screen."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from specchat.chat.conversation import Conversation
from specchat.cli.choices import Choices, World, look_around, theme_of
from specchat.cli.remembering import RememberingEngine, StateMemory, keys_of
from specchat.cli.terminal import is_terminal, say
from specchat.config import update_state
from specchat.engine.process import ProcessEngine
from specchat.errors import UsageError
from specchat.tui.pair_shelf import CollectionShelf, PairFiles

if TYPE_CHECKING:
    from specchat.pairs.catalog import ModelPair
    from specchat.pairs.collection import Collection


def chat(options: argparse.Namespace) -> int:
    """Opens the chat, or lists the pairs. Returns the exit status when it is closed."""
    if getattr(options, "list", False) or getattr(options, "json", False):
        return _list(options)
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("The chat needs a terminal.", 'For one reply in a script or a pipe: specchat ask "…".')
    world = look_around()
    choices = Choices(options, world)
    settings = choices.reply_settings("watch")
    pair = None if getattr(options, "pair", None) == "" else choices.pair()
    shelf = RememberingShelf(world, choices, pair)
    theme = theme_of(world)

    from specchat.tui.app import SpecchatApp

    engine = RememberingEngine(ProcessEngine(), world.paths.state_file, keys_of(world.catalog))
    app = SpecchatApp(
        lambda: engine,
        shelf,
        None if pair is None else pair.key,
        settings=settings,
        load=choices.load(settings.mode),
        conversation=Conversation(choices.system),
        records=world.paths.records,
        theme=theme,
    )
    app.run()
    for problem in filter(None, (*shelf.problems, engine.problem)):
        say(problem)
    return app.return_code or 0


def _list(options: argparse.Namespace) -> int:
    if getattr(options, "pair", None) != "" or not getattr(options, "list", False):
        raise UsageError("--list and --json go with --pair.", "Write: specchat --pair --list, or add --json to that.")
    from specchat.cli.pairs import pairs

    return pairs(options)


class RememberingShelf(CollectionShelf):
    """The pairs that there are, and the one that the command line made; remembers which one was used last.

    Args:
        world: catalogue, folders and memory.
        choices: offline or not, and how large a context and how many layers to reckon with.
        pair: the pair to begin with; it stands in place of the catalogue's of that name.

    Attributes:
        problems: why something could not be remembered.
    """

    def __init__(self, world: World, choices: Choices, pair: ModelPair | None) -> None:
        self._memory = StateMemory(world.paths.state_file)
        super().__init__(lambda: self._collect(world, choices))
        self._first = pair
        self._problem: str | None = None
        self._state_file = world.paths.state_file

    def _collect(self, world: World, choices: Choices) -> Collection:
        from specchat.cli.pairs import collection_of

        collection = collection_of(world, choices, self._memory)
        if self._first is not None:
            collection.put(self._first)
        return collection

    def name(self, key: str) -> str:
        """A pair's name as people read it."""
        return self._first.name if self._first is not None and self._first.key == key else super().name(key)

    @property
    def problems(self) -> list[str]:
        """Why something could not be remembered."""
        return [text for text in (self._problem, self._memory.problem) if text is not None]

    def chosen(self, files: PairFiles) -> None:
        """Takes note that a pair is used now."""
        from specchat.pairs.combining import references

        known = files.key in self.collection.catalog.pairs
        target, draft = (None, None) if known else references(self.collection.pair(files.key))
        used = {"last_pair": files.key if known else None, "last_target": target, "last_draft": draft}
        try:
            update_state(self._state_file, lambda state: msgspec.structs.replace(state, **used))
        except OSError as problem:  # nothing can be printed while the screen is up
            self._problem = f"{self._state_file} cannot be written ({problem.strerror}): this pair is not remembered."
