"""The program that renders chat templates: a process of its own, which `specchat.decoding.template` watches and kills.

A chat template is a program that came with a model file. It runs in Jinja's sandbox, which cannot limit time or
memory; a process can be killed, whatever the template does. It reads one JSON request a line from its standard input
and writes one JSON answer a line; it ends when the input does. It imports nothing of specchat's.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import signal
import sys
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

ORPHAN_CPU_SECONDS = 30
"""A render that nobody watches any more ends by itself after that much processor time (where the system can)."""


class _RefusalError(TemplateError):
    """The template called ``raise_exception``."""


class _Generation(Extension):
    """``{% generation %}`` marks what a model wrote, for training; here its body is rendered as it is."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> None:
    raise _RefusalError(str(message))


def _strftime_now(form: str) -> str:
    return dt.datetime.now().astimezone().strftime(form)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As in Hugging Face's templates: plain JSON, without the escapes for HTML that Jinja's own filter adds."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@functools.cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
    return environment


@functools.lru_cache(maxsize=8)
def _compiled(source: str) -> Template:
    return _environment().from_string(source)


def answer(request: dict[str, Any]) -> dict[str, str]:
    """Renders one template.

    Args:
        request: ``template`` (its source), ``values`` (its variables), ``limit`` (characters that may come out).

    Returns:
        ``text``; or ``refused`` where the template says that it does not take these messages, ``failed`` where it
        stumbled over them, ``broken`` where it can never work, each with a sentence.
    """
    try:
        parts, length = [], 0
        for part in _compiled(request["template"]).generate(request["values"]):
            length += len(part)
            if length > request["limit"]:
                return {"broken": "it writes without end"}
            parts.append(part)
    except _RefusalError as refusal:
        return {"refused": str(refusal)}
    except SecurityError as problem:
        return {"broken": f"it does what a template must not do: {problem}"}
    except TemplateSyntaxError as problem:
        return {"broken": f"it is not valid: {problem}"}
    except RecursionError:
        return {"broken": "it calls itself without end"}
    except Exception as problem:  # a template can raise anything
        return {"failed": f"{type(problem).__name__}: {problem}"}
    return {"text": "".join(parts)}


def _give_up_rights() -> None:
    """Should a template ever leave the sandbox, it can write no file and start no program."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
            resource.setrlimit(limit, (0, 0))


def _limit_orphan() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + ORPHAN_CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main() -> None:
    """Answers requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the program that started this one
    _environment()
    _give_up_rights()
    print("{}", flush=True)  # noqa: T201 - ready
    for line in sys.stdin.buffer:
        _limit_orphan()
        print(json.dumps(answer(json.loads(line))), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
