"""``specchat ask``: one reply on standard output, and nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from specchat.cli import INTERRUPTED
from specchat.cli.choices import Choices, World, look_around
from specchat.cli.files import bring
from specchat.cli.remembering import RememberingEngine, keys_of
from specchat.cli.terminal import Interrupt, ProgressLine, interrupts, is_terminal, say, write_text
from specchat.core.events import Event, Finished, Round, to_json
from specchat.core.safe_text import safe_json, safe_pieces
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine.interface import Failed, Load, Loaded, LoadProgress, Note, Reply, ReplyEvent, Stop
from specchat.engine.process import ProcessEngine
from specchat.errors import SpecchatError, UsageError, from_dict

if TYPE_CHECKING:
    from specchat.engine.interface import Engine

_WAKE_SECONDS = 0.1  # how soon a Ctrl+C is seen while the engine is silent
_TAIL = 8  # characters before a token that decide whether it is safe to show


def ask(options: argparse.Namespace) -> int:
    """Writes one reply. Returns the exit status."""
    question = _question(getattr(options, "question", None))
    world = look_around()
    choices = Choices(options, world)
    settings = choices.reply_settings("fast")
    output: _Output = _Json() if getattr(options, "json", False) else _Text()
    messages = [ChatMessage("user", question)]
    if choices.system:
        messages.insert(0, ChatMessage("system", choices.system))
    reply = Reply(
        1,
        tuple(messages),
        settings,
        details=getattr(options, "details", False),
        # nobody sees a speedup in plain text, and measuring it delays the first word
        measure_plain=isinstance(output, _Json) and settings.mode != "fast",
    )
    with interrupts() as interrupt:
        load = _with_files(choices.load(settings.mode), settings, choices, world, interrupt)
        engine = RememberingEngine(ProcessEngine(), world.paths.state_file, keys_of(world.catalog))
        try:
            return _converse(engine, load, reply, output, interrupt)
        finally:
            engine.close()
            if engine.problem is not None:
                say(engine.problem)


def _question(words: str | None) -> str:
    """What was asked on the command line, with the text on standard input after it."""
    text = ""
    if sys.stdin is not None and not is_terminal(sys.stdin):
        text = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    parts = [part for part in (words, text) if part and part.strip()]
    if not parts:
        raise UsageError("There is no question.", 'Write it after the command: specchat ask "…", or pipe it in.')
    return "\n\n".join(parts)


def _with_files(
    load: Load, settings: ReplySettings, choices: Choices, world: World, interrupt: Interrupt
) -> Load:  # fmt: skip
    """The `Load` with its files. A draft that would not be used is neither fetched nor loaded."""
    from specchat.pairs.sources import find

    pair = choices.pair()
    draft = pair.draft if settings.drafter in ("draft", "auto") else None
    if draft is not None and settings.mode == "fast" and not choices.names_draft:
        # it is used only where it pays: worth loading if it is here, and not worth waiting for its download
        draft = draft if find(draft, world.paths.models) else None
    models = [pair.target] if draft is None else [pair.target, draft]
    paths = bring(models, world.paths.models, offline=choices.offline, interrupt=interrupt)
    return replace(load, target=str(paths[0]), draft=None if draft is None else str(paths[1]))


def _converse(engine: Engine, load: Load, reply: Reply, output: _Output, interrupt: Interrupt) -> int:
    """Loads, asks, and writes what comes. Returns the exit status."""
    engine.send(load)
    line = ProgressLine() if is_terminal(sys.stderr) else None
    finished: Finished | None = None
    stopping = False
    while finished is None or finished.reason == "error":
        if interrupt and not stopping:
            stopping = True
            engine.send(Stop())
        message = engine.receive(_WAKE_SECONDS)
        match message:
            case LoadProgress() if line is not None:
                line.show(f"loading the {message.model}", message.fraction)
            case Loaded():
                if line is not None:
                    line.clear()
                for note in message.notes:
                    say(note)
                engine.send(reply)
                stopping = False  # a Stop that came too late to stop loading did not reach the reply
            case Note(text=text):
                say(text)
            case ReplyEvent(event=event):
                output.write(event)
                finished = event if isinstance(event, Finished) else finished
            case Failed():
                if line is not None:
                    line.clear()
                output.end()
                if message.kind == "CancelledError":
                    return INTERRUPTED
                raise _error(message)
    output.end()
    if finished.reason == "context":
        say("The reply ends here because the context is full; --ctx makes it larger.")
    return INTERRUPTED if finished.reason == "interrupted" else 0


def _error(failed: Failed) -> SpecchatError:
    return from_dict({"kind": failed.kind, "message": failed.message, "next_step": failed.next_step})


class _Output(Protocol):
    def write(self, event: Event) -> None:
        """Writes what an event brings."""

    def end(self) -> None:
        """The reply is complete."""


class _Text:
    """The reply's text as it comes: raw into a pipe or a file, safe on a terminal."""

    def __init__(self) -> None:
        self._is_terminal = is_terminal(sys.stdout)
        self._tail = ""

    def write(self, event: Event) -> None:
        if isinstance(event, Round):
            text = "".join(token.text for token in event.committed)
        elif isinstance(event, Finished):
            text = event.tail
        else:
            return
        if not text:
            return
        write_text(safe_pieces([self._tail, text])[1] if self._is_terminal else text)
        self._tail = (self._tail + text)[-_TAIL:]

    def end(self) -> None:
        if self._is_terminal and self._tail and not self._tail.endswith("\n"):
            write_text("\n")


class _Json:
    """The events, one JSON object a line; the last one, `Finished`, is the summary."""

    def write(self, event: Event) -> None:
        write_text(safe_json(json.dumps(to_json(event), ensure_ascii=False)) + "\n")

    def end(self) -> None:
        pass
