"""The command line: every option has one name, one meaning and one check, wherever it is offered."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from specchat import __version__
from specchat.errors import UsageError

_MODES = (
    "watch: draft every round; fast: never slower than plain decoding; exact: temperature 0, bit for bit as plain "
    "decoding (default: watch, of ask: fast)"
)
_Number = TypeVar("_Number", int, float)
_EPILOG = "Exit status: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted."


def parser() -> argparse.ArgumentParser:
    """The whole command line. Options of a command are absent from the result unless they were given."""
    root = argparse.ArgumentParser(
        prog="specchat",
        description="Chat with a local language model and see speculative decoding at work.",
        epilog=_EPILOG,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"specchat {__version__}")
    root.add_argument(
        "--pair", metavar="NAME", nargs="?", const="", help="chat with this pair and remember it; alone: pick one"
    )
    root.add_argument("--list", action="store_true", help="with --pair alone: print the pairs instead")
    root.add_argument("--json", action="store_true", help="with --list: one JSON object a line")
    _add_model_options(root, pair=False)
    _add_reply_options(root)
    root.set_defaults(command="chat")
    commands = root.add_subparsers(title="commands", metavar="")
    _add_ask(commands)
    _add_pull(commands)
    _add_doctor(commands)
    _add_replay(commands)
    _add_export(commands)
    _add_bench(commands)
    _add_verify(commands)
    _add_draft(commands)
    return root


def _command(commands: Any, name: str, summary: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=_EPILOG,
        argument_default=argparse.SUPPRESS, allow_abbrev=False,
    )  # fmt: skip
    command.set_defaults(command=name)
    return command


def _add_ask(commands: Any) -> None:
    ask = _command(commands, "ask", "write one reply to standard output, and nothing else")
    ask.add_argument("question", nargs="?", metavar="TEXT", help="the question; text on standard input is added to it")
    ask.add_argument("--json", action="store_true", help="print the reply's events, one JSON object a line")
    ask.add_argument("--details", action="store_true", help="with --json: the ten largest of p, q and the residual")
    _add_model_options(ask)
    _add_reply_options(ask)


def _add_pull(commands: Any) -> None:
    pull = _command(commands, "pull", "fetch a pair's or a model's files ahead of time")
    pull.add_argument("name", nargs="?", metavar="NAME", help="a pair or a model; without it: the default pair")
    pull.add_argument("--list", action="store_true", help="show what there is, what is on disk, and its size")
    _add_offline(pull)


def _add_doctor(commands: Any) -> None:
    doctor = _command(commands, "doctor", "show devices, memory, the llama.cpp build, folders and the network")
    _add_offline(doctor)


def _add_replay(commands: Any) -> None:
    replay = _command(commands, "replay", "play a recorded chat as it happened, in slow motion, or step by step")
    replay.add_argument("record", metavar="FILE", nargs="?", help="the record of a chat (default: the last one)")


def _add_export(commands: Any) -> None:
    export = _command(commands, "export", "write a recorded chat as Markdown, HTML or SVG")
    export.add_argument("record", metavar="FILE", help="the chat's record")
    export.add_argument(
        "--format", choices=("markdown", "html", "svg"), help="default: by the output's name, or Markdown"
    )
    export.add_argument("--output", "-o", metavar="FILE", help="default: standard output")


def _add_bench(commands: Any) -> None:
    bench = _command(commands, "bench", "measure plain decoding against each drafter, draft length and rule")
    what = bench.add_argument_group("what to measure")
    what.add_argument("--quick", action="store_true", help="a few settings and short replies: some minutes")
    what.add_argument(
        "--settings", metavar="TEXT",
        help='for example "draft γ1/2/4 token T0/0.7, auto fast": words of one setting, alternatives by slashes',
    )  # fmt: skip
    what.add_argument("--categories", metavar="NAME,…", help="kinds of prompts (default: all; see the report)")
    what.add_argument("--repetitions", metavar="N", type=_whole(1), help="how often (default 3; quick: 2)")
    what.add_argument("--max-tokens", metavar="N", type=_whole(1), help="the longest reply (default 128; quick: 32)")
    what.add_argument("--seed", metavar="N", type=_whole(0), help="of the first repetition (default 1)")
    what.add_argument(
        "--against", metavar="[NAME=]URL", action="append",
        help="a running llama.cpp server, measured in turn with ours; may be given several times",
    )  # fmt: skip
    output = bench.add_argument_group("output")
    output.add_argument("--json", metavar="FILE|-", help="all figures and replies; -: to standard output, no table")
    output.add_argument("--html", metavar="FILE", help="a page with plots; it needs no network")
    _add_model_options(bench)


def _add_verify(commands: Any) -> None:
    verify = _command(commands, "verify", "check that speculation is lossless, with a pair or on a toy")
    what = verify.add_argument_group("what to check")
    what.add_argument("--toy", action="store_true", help="no model: the decoding loop on a pair whose law is known")
    what.add_argument(
        "--samples", metavar="N", type=_whole(1),
        help="short replies after each of six texts, under each rule (default 60: some minutes for a small pair)",
    )  # fmt: skip
    what.add_argument("--tokens", metavar="N", type=_whole(2), help="of each reply at temperature 0 (48; toy: 6000)")
    _add_rule(what)
    what.add_argument("--seed", metavar="N", type=_whole(0), help="of the replies (default 1)")
    verify.add_argument("--json", action="store_true", help="print all figures as one JSON object")
    _add_model_options(verify)
    _add_sampling(verify.add_argument_group("sampling"))


def _add_draft(commands: Any) -> None:
    draft = _command(commands, "draft", "cut a draft from a target: a file with fewer of its layers")
    draft.add_argument("target", metavar="TARGET", help="a GGUF file, or the name of a model of the catalogue")
    draft.add_argument("--layers", metavar="N", type=_whole(1), required=True, help="how many layers to keep")
    draft.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write")
    draft.add_argument("--force", action="store_true", help="write over a file that is there already")


def _add_model_options(command: argparse.ArgumentParser, pair: bool = True) -> None:
    models = command.add_argument_group("models")
    if pair:
        models.add_argument("--pair", metavar="NAME", help="a pair of the catalogue")
    models.add_argument("--target", metavar="FILE", help="a GGUF file, or the name of a model of the catalogue")
    models.add_argument(
        "--draft", metavar="FILE|NAME|none|ngram|auto",
        help="a GGUF file, a model's name, none, ngram (the text so far), or auto: each round the most promising",
    )  # fmt: skip
    models.add_argument("--ctx", metavar="N", type=_whole(1), help="context in tokens (default: up to 8192)")
    models.add_argument("--gpu-layers", metavar="auto|N", type=_auto_or(_whole(0)), help="layers on the GPU")
    models.add_argument("--device", metavar="NAME", help="where the target runs, as `specchat doctor` names it")
    models.add_argument("--device-draft", metavar="NAME", help="where the draft runs (default: beside the target)")
    models.add_argument("--threads", metavar="N", type=_whole(1), help="processor threads (default: one a fast core)")
    _add_offline(models)


def _add_offline(group: Any) -> None:
    group.add_argument("--offline", action="store_true", help="use what is on disk; never ask the network")


def _add_reply_options(command: argparse.ArgumentParser) -> None:
    reply = command.add_argument_group("replies")
    reply.add_argument("--mode", choices=("watch", "fast", "exact"), help=_MODES)
    reply.add_argument("--gamma", metavar="auto|N", type=_auto_or(_whole(0)), help="tokens to draft a round")
    _add_rule(reply)
    _add_sampling(reply)
    reply.add_argument("--seed", metavar="N", type=_whole(0), help="makes a reply repeatable for a fixed γ and drafter")
    reply.add_argument("--max-tokens", metavar="N", type=_whole(1), help="the longest reply")
    reply.add_argument("--system", metavar="TEXT|@FILE", type=_text_or_file, help="the system message")


def _add_rule(group: Any) -> None:
    group.add_argument("--rule", choices=("block", "token", "match"), help="how drafted tokens are verified")


def _add_sampling(group: Any) -> None:
    group.add_argument("--temp", metavar="T", type=_number(0), help="temperature; 0 is greedy (default 0.7)")
    group.add_argument("--top-k", metavar="K", type=_whole(0), help="keep the K most likely; 0: all (default 40)")
    group.add_argument("--top-p", metavar="P", type=_number(0, 1), help="keep this share of the mass (default 0.95)")
    group.add_argument("--min-p", metavar="P", type=_number(0, 1), help="drop below P times the largest (default 0.05)")
    group.add_argument("--repeat-penalty", metavar="X", type=_number(0, above=True), help="1 is none (default)")


def _whole(least: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        value = _parsed(int, text, "a whole number")
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        return value

    return whole_number


def _number(least: float, most: float | None = None, above: bool = False) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = _parsed(float, text, "a number")
        # written so that NaN, which compares as false, is refused too
        if not (value > least if above else value >= least) or not value <= (most if most is not None else 1e9):
            limits = (
                f"above {least}" if above else f"{least} or more" if most is None else f"between {least} and {most}"
            )
            raise argparse.ArgumentTypeError(f"{text} is not {limits}")
        return value

    return number


def _parsed(kind: Callable[[str], _Number], text: str, what: str) -> _Number:
    try:
        return kind(text)
    except ValueError:  # argparse would name the function
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None


def _auto_or(number: Callable[[str], int]) -> Callable[[str], int | None]:
    def auto_or_number(text: str) -> int | None:
        return None if text == "auto" else number(text)

    return auto_or_number


def _text_or_file(text: str) -> str:
    from specchat.files import text_or_file  # not for --help

    try:
        return text_or_file(text)
    except UsageError as problem:
        raise argparse.ArgumentTypeError(problem.message) from None
