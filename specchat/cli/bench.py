"""``specchat bench``: measures a pair here, and prints, saves and draws the figures."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from specchat.cli import INTERRUPTED
from specchat.cli.choices import Choices, look_around
from specchat.cli.files import bring
from specchat.cli.terminal import Interrupt, ProgressLine, interrupts, say, write_text
from specchat.core.safe_text import safe_json, safe_text
from specchat.engine.interface import Load
from specchat.engine.process import ProcessEngine
from specchat.errors import SpecchatError, UsageError
from specchat.files import expanded
from specchat.lab.bench import Bench, BenchResult
from specchat.lab.bench_data import to_data
from specchat.lab.bench_html import to_html
from specchat.lab.bench_plan import OURS, QUICK, STANDARD, Plan, Who, choose_prompts, one_of_each, parse_settings
from specchat.lab.bench_report import report
from specchat.lab.llama_server import LlamaServer
from specchat.lab.machine import resident_bytes
from specchat.lab.prompts import PROMPTS

_STDOUT = Path("-")
_NAMED = re.compile(r"(?P<name>[\w.-]{1,16})=(?P<address>.+)")


def bench(options: argparse.Namespace) -> int:
    """Measures and reports. Returns the exit status."""
    plan = _plan(options)
    json_file, html_file = (_output(options, name) for name in ("json", "html"))
    servers = _servers(getattr(options, "against", []))
    world = look_around()
    choices = Choices(options, world)
    pair = choices.pair()
    with interrupts() as interrupt:
        models = [pair.target] if pair.draft is None else [pair.target, pair.draft]
        paths = bring(models, world.paths.models, offline=choices.offline, interrupt=interrupt)
        load = replace(
            choices.load("watch"), target=str(paths[0]), draft=str(paths[1]) if pair.draft is not None else None
        )
        result = _measure(load, plan, servers, interrupt, quick=hasattr(options, "quick"))
    if result is None:
        return INTERRUPTED
    _write(result, json_file, html_file)
    if result.problem is not None:
        raise result.problem
    return INTERRUPTED if result.stopped else 0


def _plan(options: argparse.Namespace) -> Plan:
    quick = hasattr(options, "quick")
    text = getattr(options, "settings", ", ".join(QUICK if quick else STANDARD))
    prompts = PROMPTS
    if hasattr(options, "categories"):
        names = [name.strip() for name in options.categories.split(",") if name.strip()]
        prompts = choose_prompts(prompts, names or [options.categories])
    return Plan(
        settings=parse_settings(text),
        prompts=one_of_each(prompts) if quick else prompts,
        repetitions=getattr(options, "repetitions", 2 if quick else 3),
        max_tokens=getattr(options, "max_tokens", 32 if quick else 128),
        seed=getattr(options, "seed", 1),
    )


def _servers(texts: Sequence[str]) -> dict[Who, LlamaServer]:
    """The servers to compare with, by name: as said, or ``server``, ``server2`` and so on.

    Raises:
        UsageError: a name or an address is wrong.
        ServerError: no such server answers.
    """
    servers: dict[Who, LlamaServer] = {}
    for number, text in enumerate(texts, 1):
        named = _NAMED.fullmatch(text)
        name, address = (named["name"], named["address"]) if named else ("server", text)
        if not named and name in servers:
            name = f"server{number}"
        if name in servers or name in OURS:
            raise UsageError(
                f"{name!r} cannot be the name of this server: it stands for another.",
                "Give each its own: --against mod=http://127.0.0.1:8081",
            )
        servers[name] = LlamaServer(address)
    return servers


def _output(options: argparse.Namespace, name: str) -> Path | None:
    """Where an output goes. It is tried now, not after an hour of measuring.

    Raises:
        UsageError: that is no place for a file.
    """
    text: str | None = getattr(options, name, None)
    if text is None:
        return None
    path = expanded(text)
    if name == "json" and path == _STDOUT:
        return path
    try:
        _try_to_write(path)
    except OSError as problem:
        raise UsageError(
            f"{path} cannot be written: {problem.strerror or problem}.",
            f"Give --{name} the name of a file in a folder that you may write to.",
        ) from None
    return path


def _try_to_write(path: Path) -> None:
    """Opens the file and changes nothing. A pipe is let be: who reads it would take this for all that comes."""
    is_new = not os.path.lexists(path)
    if is_new or path.is_file() or path.is_dir():
        with path.open("ab"):
            pass
    if is_new:
        path.unlink()


def _measure(
    load: Load, plan: Plan, servers: dict[Who, LlamaServer], interrupt: Interrupt, *, quick: bool
) -> BenchResult | None:  # fmt: skip
    line = ProgressLine(sys.stderr)
    engine = ProcessEngine()
    try:
        return Bench(
            engine,
            plan,
            servers=servers,
            memory=lambda: resident_bytes(engine.pid),
            on_progress=line.show,
            should_stop=lambda: bool(interrupt),
        ).run(load, quick=quick)
    finally:
        line.clear()
        engine.close()


def _write(result: BenchResult, json_file: Path | None, html_file: Path | None) -> None:
    measured_at = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
    data = json.dumps(to_data(result, measured_at), ensure_ascii=False, indent=1) + "\n"
    files: list[tuple[Path, str]] = []
    if json_file is not None and json_file != _STDOUT:
        files.append((json_file, data))
    if html_file is not None:
        files.append((html_file, to_html(result, measured_at)))
    try:
        write_text(safe_json(data) if json_file == _STDOUT else safe_text(report(result)))
    finally:  # also where nobody reads on
        problems = [problem for path, text in files if (problem := _save(path, text))]
    if problems:
        raise SpecchatError(" ".join(problems), "The figures above are all there is.")


def _save(path: Path, text: str) -> str | None:
    """Writes a file; what is wrong where that fails, which must not keep the next one from being written."""
    try:
        path.write_text(text, "utf-8", "replace", newline="\n")
    except OSError as problem:
        return f"{path} cannot be written: {problem.strerror or problem}."
    say(f"{path} was written.")
    return None
