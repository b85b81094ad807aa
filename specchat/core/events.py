"""The vocabulary that holds specchat together.

The decoder yields these records; the screen draws them; the record file stores them and gives them back; ``--json``
prints them; the statistics fold them. All are frozen, hold plain values only, and `to_json` and
`from_json` are the one encoding that the pipe, the record and ``--json`` share.

Times are seconds. ``at`` counts from the beginning of the reply. Probabilities are those after temperature,
truncation, penalties and bias: p is the distribution that plain decoding would draw from at that position, q the
very array that the draft token was drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

ModelRole: TypeAlias = Literal["target", "draft"]
FinishReason: TypeAlias = Literal["end", "stop", "length", "context", "interrupted", "error"]


class Fate(StrEnum):
    """What became of a token."""

    ACCEPTED = "accepted"
    """Drafted and kept."""
    RESAMPLED = "resampled"
    """Drawn from the residual after a rejection."""
    REJECTED = "rejected"
    """Drafted, judged, refused."""
    IGNORED = "ignored"
    """Drafted after a rejection or after the end of the reply: never judged."""
    BONUS = "bonus"
    """Drawn from p after all drafted tokens were accepted."""
    PLAIN = "plain"
    """Drawn from p in a round without a draft."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """A model has read the prompt: ``tokens`` were evaluated, ``reused`` were in its cache already."""

    model: ModelRole
    tokens: int
    reused: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PlainSpeed:
    """What plain decoding reaches here: the baseline that `Finished.speedup` is measured against.

    ``tokens_per_second`` is 1 ÷ the median time of a plain round. ``source`` says how it was measured, in words
    that can be shown ("8 plain steps before this reply").
    """

    tokens_per_second: float
    steps: int
    source: str


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """One token that the drafter proposed.

    ``threshold`` and ``draw`` are min(1, p/q) and u under the token rule, h and η under the block rule
    (product.md: "What the record calls threshold and draw"). ``text`` is the characters that this token would
    complete after the ones before it in the block.
    """

    id: int
    bytes: bytes
    text: str
    drafter: str
    q: float
    p: float
    threshold: float
    draw: float
    fate: Fate


@dataclass(frozen=True, slots=True)
class CommittedToken:
    """One token of the reply. ``text`` is the characters that it completes; joined they are the reply's text."""

    id: int
    bytes: bytes
    text: str
    fate: Fate
    p: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One entry of a distribution, with the text of its token alone."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class PositionDetail:
    """The largest entries of the distributions at one position of a round, largest first.

    ``q`` is empty at the bonus position and in a plain round; ``residual`` is what a rejection at this position
    would draw from. ``pi`` and ``h`` are the block rule's πᵢ and hᵢ, None under the other rules.
    """

    p: tuple[Candidate, ...]
    q: tuple[Candidate, ...]
    residual: tuple[Candidate, ...]
    pi: float | None = None
    h: float | None = None


@dataclass(frozen=True, slots=True)
class RoundSeconds:
    """Where one round's time went. ``other`` is what is left of the wall clock: our own overhead."""

    draft: float
    verify: float
    sample: float
    other: float

    @property
    def total(self) -> float:
        """The round's wall-clock time."""
        return self.draft + self.verify + self.sample + self.other


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of the target: what was drafted, what was committed, and what it cost.

    ``at`` is when the round ended. ``num_draft_tokens`` is γ of this round: ``len(drafted)``; 0 is plain decoding.
    ``rule`` is "token", "block" or "match", and "plain" where nothing was drafted. ``why`` is a sentence where the
    draft length was changed or drafting was stopped for a reason that a person should see.
    """

    index: int
    at: float
    rule: str
    num_draft_tokens: int
    drafted: tuple[DraftedToken, ...]
    committed: tuple[CommittedToken, ...]
    seconds: RoundSeconds
    why: str | None = None
    details: Sequence[PositionDetail] | None = None

    @property
    def num_accepted(self) -> int:
        """How many drafted tokens were kept."""
        return sum(token.fate is Fate.ACCEPTED for token in self.drafted)


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is complete, or was cut. Figures as defined in product.md ("Time", "α, per position").

    ``seconds`` runs from the end of the target's prefill to the end of the reply, everything included.
    ``tail`` is text that was held back (an incomplete character, the beginning of a stop string) and is now part
    of the reply. ``acceptance_rate`` is None where nothing was judged; ``speedup`` where no plain speed is known.
    """

    reason: FinishReason
    tokens: int
    rounds: int
    seconds: float
    prefill_seconds: float
    acceptance_rate: float | None
    acceptance_by_position: tuple[float, ...]
    tokens_per_round: float | None
    tokens_per_second: float | None
    plain_tokens_per_second: float | None
    plain_source: str | None
    speedup: float | None
    tail: str = ""


Event: TypeAlias = Prefill | PlainSpeed | Round | Finished

_EVENT_NAMES: dict[type, str] = {Prefill: "prefill", PlainSpeed: "plain_speed", Round: "round", Finished: "finished"}


def to_json(event: Event) -> dict[str, Any]:
    """The event as JSON values, ``"event"`` first. Bytes become hexadecimal digits."""
    if isinstance(event, Round):
        data: dict[str, Any] = {
            "event": "round",
            "index": event.index,
            "at": event.at,
            "rule": event.rule,
            "num_draft_tokens": event.num_draft_tokens,
            "drafted": [_token_to_json(token) for token in event.drafted],
            "committed": [_token_to_json(token) for token in event.committed],
            "seconds": _fields(event.seconds),
            "why": event.why,
        }
        if event.details is not None:
            data["details"] = details_to_json(event.details)
        return data
    data = {"event": _EVENT_NAMES[type(event)], **_fields(event)}
    if isinstance(event, Finished):
        data["acceptance_by_position"] = list(event.acceptance_by_position)
    return data


def from_json(data: dict[str, Any]) -> Event:
    """The event that `to_json` wrote.

    Unknown keys are ignored, so that a newer specchat's record can be read.

    Raises:
        ValueError: the data is not an event, lacks a field, or has one of the wrong type.
    """
    try:
        match data.get("event"):
            case "prefill":
                return Prefill(**_values(Prefill, data))
            case "plain_speed":
                return PlainSpeed(**_values(PlainSpeed, data))
            case "finished":
                return _finished_from_json(data)
            case "round":
                return _round_from_json(data)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ValueError(f"not a valid event: {problem}") from problem
    raise ValueError(f"not an event: {data.get('event')!r}")


def details_to_json(details: Sequence[PositionDetail]) -> list[dict[str, Any]]:
    """The details of a round as JSON values: a token's candidates are lists of id, text and probability."""
    return [_position_to_json(position) for position in details]


def details_from_json(data: list[dict[str, Any]]) -> tuple[PositionDetail, ...]:
    """The details that `details_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: the data is something else; `from_json` makes one error of them.
    """
    return tuple(_position_from_json(position) for position in data)


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def _token_to_json(token: DraftedToken | CommittedToken) -> dict[str, Any]:
    return _fields(token) | {"bytes": token.bytes.hex(), "fate": token.fate.value}


def _position_to_json(position: PositionDetail) -> dict[str, Any]:
    data: dict[str, Any] = {
        name: [[c.id, c.text, c.probability] for c in getattr(position, name)] for name in ("p", "q", "residual")
    }
    if position.pi is not None or position.h is not None:
        data |= {"pi": position.pi, "h": position.h}
    return data


_JSON_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "None": (type(None),)}
_LITERALS = {"ModelRole": get_args(ModelRole), "FinishReason": get_args(FinishReason)}


@lru_cache
def _json_types(kind: type) -> dict[str, tuple[type, ...]]:
    """What JSON holds for each field: a number, or text (also for bytes, fates, roles and reasons)."""
    return {
        name: tuple(found for part in annotation.split(" | ") for found in _JSON_TYPES.get(part, (str,)))
        for name, annotation in kind.__annotations__.items()
    }


def _values(kind: type, data: dict[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of ``kind`` that ``data`` has, without those named in ``but``.

    Raises:
        TypeError: one has another type than it should, so that a damaged record is noticed here and not on screen.
    """
    found = {}
    for name, types in _json_types(kind).items():
        if name not in data or name in but:
            continue
        value = found[name] = data[name]
        allowed = _LITERALS.get(kind.__annotations__[name])
        if not isinstance(value, types) or (allowed and value not in allowed):
            raise TypeError(f"{name} cannot be {value!r}")
    return found


def _finished_from_json(data: dict[str, Any]) -> Finished:
    name = "acceptance_by_position"
    rates = tuple(data[name])
    if not all(isinstance(rate, float | int) for rate in rates):
        raise TypeError(f"{name} must hold numbers")
    return Finished(**_values(Finished, data, but=(name,)), acceptance_by_position=rates)


def _round_from_json(data: dict[str, Any]) -> Round:
    details = data.get("details")
    return Round(
        **_values(Round, data, but=("drafted", "committed", "seconds", "details")),
        drafted=tuple(DraftedToken(**_token_values(DraftedToken, token)) for token in data["drafted"]),
        committed=tuple(CommittedToken(**_token_values(CommittedToken, token)) for token in data["committed"]),
        seconds=RoundSeconds(**_values(RoundSeconds, data["seconds"])),
        details=None if details is None else details_from_json(details),
    )


def _token_values(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    return _values(kind, data) | {"bytes": bytes.fromhex(data["bytes"]), "fate": Fate(data["fate"])}


def _position_from_json(data: dict[str, Any]) -> PositionDetail:
    def candidates(name: str) -> tuple[Candidate, ...]:
        return tuple(_candidate_from_json(entry) for entry in data[name])

    return PositionDetail(
        **_values(PositionDetail, data, but=("p", "q", "residual")),
        p=candidates("p"),
        q=candidates("q"),
        residual=candidates("residual"),
    )


def _candidate_from_json(entry: list[Any]) -> Candidate:
    # written out, because a round with details has more than a hundred; a newer version may write further values
    token, text, probability, *_ = entry
    if not (isinstance(token, int) and isinstance(text, str) and isinstance(probability, float | int)):
        raise TypeError(f"not an id, a text and a probability: {entry!r}")
    return Candidate(token, text, probability)
