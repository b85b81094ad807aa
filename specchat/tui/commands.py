"""The commands that begin with a slash: their names, what they take, and how what was typed is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from specchat.core.settings import Mode, ReplySettings, Rule, in_mode
from specchat.errors import UsageError

DRAFTERS = ("none", "draft", "ngram", "auto")


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. ``takes`` is how its argument is written; empty where it has none."""

    name: str
    takes: str
    summary: str


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("mode", "watch|fast|exact", "draft always; never slower than plain; the bits of plain"),
        Command("gamma", "N|auto", "how many tokens are drafted a round"),
        Command("draft", "none|draft|ngram|auto", "what drafts: nothing, the model, the text so far, what pays most"),
        Command("rule", "token|block|match", "how drafted tokens are verified"),
        Command("temp", "T", "temperature; 0 always takes the most likely token"),
        Command("top-k", "K", "keep the K most likely tokens; 0 keeps all"),
        Command("top-p", "P", "keep the most likely tokens that together have this share"),
        Command("min-p", "P", "drop tokens below this share of the most likely one"),
        Command("repeat-penalty", "X", "above 1 what was said lately becomes less likely; 1 is off"),
        Command("seed", "N|none", "makes a reply repeatable for a fixed γ and drafter"),
        Command("max-tokens", "N|none", "the longest reply"),
        Command("system", "TEXT|@FILE", "the system message; without text it is removed"),
        Command("editor", "[TEXT]", "write the message in $EDITOR, as Ctrl+G does"),
        Command("regenerate", "[N]", "answer the last question once more, or the Nth"),
        Command("continue", "", "go on with a reply that was cut"),
        Command("edit", "[N]", "ask the last question anew, or the Nth; the rest stays as a branch"),
        Command("version", "N", "show another version of the last message that has several"),
        Command("delete", "", "delete the last question and its answers"),
        Command("new", "", "begin a new chat"),
        Command("open", "", "go on with an earlier chat"),
        Command("copy", "[N]", "copy the message that is looked at, or the last reply, or the Nth"),
        Command("export", "[FILE]", "write this chat to a file: .md, .html or .svg"),
        Command("rejected", "", "show or hide rejected tokens"),
        Command("reading", "", "show the chat as formatted text, or as tokens again"),
        Command("slow", "", "slow motion: the round that is looked at, or the last reply, step by step"),
        Command("rounds", "", "show or hide the rounds"),
        Command("pair", "NAME", "chat with another pair; without a name: choose from a list"),
        Command("load", "", "load the pair again"),
        Command("help", "", "all keys and commands"),
        Command("quit", "", "leave specchat"),
    )
}


def is_command(text: str) -> bool:
    """Whether that is a command and not a message: one line that begins with one slash."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text


def commands_like(text: str) -> list[Command]:
    """The commands that what is typed so far can become."""
    if not is_command(text):
        return []
    name, space, _ = text[1:].partition(" ")
    return [each for each in COMMANDS.values() if (each.name == name if space else each.name.startswith(name))]


def read_command(text: str) -> tuple[Command, str]:
    """The command that was typed, and its argument.

    Raises:
        UsageError: there is no such command; it names the nearest.
    """
    name, _, argument = text[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        alike = get_close_matches(name, COMMANDS, n=1, cutoff=0.4)
        hint = f"Did you mean /{alike[0]}?" if alike else "/help lists all commands."
        raise UsageError(f"There is no command /{name}.", hint)
    if argument and not command.takes:
        raise UsageError(f"/{name} takes nothing after it.", f"Type /{name} alone.")
    return command, argument.strip()


def changed_settings(command: Command, argument: str, settings: ReplySettings) -> ReplySettings | None:
    """The settings that a command makes of these; None where the command changes no setting.

    Raises:
        UsageError: the argument is missing or makes no sense.
    """
    readers: dict[str, Callable[[], ReplySettings]] = {
        "mode": lambda: in_mode(settings, _one_of(command, argument, get_args(Mode))),
        "rule": lambda: replace(settings, rule=_one_of(command, argument, get_args(Rule))),
        "draft": lambda: replace(settings, drafter=_one_of(command, argument, DRAFTERS)),
        "gamma": lambda: replace(settings, num_draft_tokens=_number(command, argument, int, 0, 64, or_word="auto")),
        "seed": lambda: replace(settings, seed=_number(command, argument, int, 0, 2**63, or_word="none")),
        "max-tokens": lambda: replace(settings, max_tokens=_number(command, argument, int, 1, 2**31, or_word="none")),
        "temp": lambda: _sampling(settings, temperature=_number(command, argument, float, 0, 100)),
        "top-k": lambda: _sampling(settings, top_k=_number(command, argument, int, 0, 2**31)),
        "top-p": lambda: _sampling(settings, top_p=_number(command, argument, float, 0, 1)),
        "min-p": lambda: _sampling(settings, min_p=_number(command, argument, float, 0, 1)),
        "repeat-penalty": lambda: _sampling(settings, repeat_penalty=_number(command, argument, float, 0, 100)),
    }
    reader = readers.get(command.name)
    try:
        return reader() if reader is not None else None
    except ValueError as problem:  # a number that the sampling itself refuses
        raise UsageError(f"/{command.name} {argument}: {problem}.", _form(command)) from None


def _sampling(settings: ReplySettings, **values: Any) -> ReplySettings:
    return replace(settings, sampling=replace(settings.sampling, **values))


def _one_of(command: Command, argument: str, choices: tuple[str, ...]) -> Any:
    if argument not in choices:
        raise _wrong(command, argument)
    return argument


def _number(command: Command, argument: str, kind: type, least: float, most: float, or_word: str = "") -> Any:
    if or_word and argument == or_word:
        return None
    try:
        value = kind(argument)
    except ValueError:
        raise _wrong(command, argument) from None
    if not least <= value <= most:  # also false for NaN
        raise UsageError(f"/{command.name} {argument}: that is not between {least:g} and {most:g}.", _form(command))
    return value


def _wrong(command: Command, argument: str) -> UsageError:
    said = f"/{command.name} cannot be {argument}." if argument else f"/{command.name} needs a value."
    return UsageError(said, _form(command))


def _form(command: Command) -> str:
    return f"Write /{command.name} {command.takes}."
