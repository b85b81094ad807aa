"""One encoding of events for the pipe, the record and ``--json``."""

import json
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.core.events import Candidate, Event, Fate, Finished, PlainSpeed, Prefill, Round, from_json, to_json
from tests.core.examples import FINISHED, FULL_ROUND, played

EVENTS: list[Event] = [
    Prefill("draft", tokens=7, reused=3, seconds=0.5),
    PlainSpeed(tokens_per_second=29.7, steps=8, source="8 plain steps before this reply"),
    FULL_ROUND,
    played(""),
    FINISHED,
    replace(FINISHED, acceptance_rate=None, acceptance_by_position=(), tokens_per_round=None, speedup=None, tail=""),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_written_is_read_back(event: Event) -> None:
    line = json.dumps(to_json(event), allow_nan=False)
    assert "\n" not in line
    assert from_json(json.loads(line)) == event


anything = st.one_of(
    st.builds(Prefill, st.sampled_from(["target", "draft"]), st.integers(0), st.integers(0), st.floats(0, 1e6)),
    st.builds(PlainSpeed, st.floats(0.1, 1e4), st.integers(1, 100), st.text()),
    st.builds(
        replace,
        st.just(FULL_ROUND),
        index=st.integers(0),
        why=st.none() | st.text(),
        details=st.none() | st.just(()) | st.just(FULL_ROUND.details),
        committed=st.lists(st.sampled_from(FULL_ROUND.committed)).map(tuple),
        drafted=st.lists(
            st.builds(replace, st.sampled_from(FULL_ROUND.drafted), bytes=st.binary(), text=st.text())
        ).map(tuple),
    ),
    st.builds(replace, st.just(FINISHED), tail=st.text(), acceptance_by_position=st.lists(st.floats(0, 1)).map(tuple)),
)


@given(event=anything)
def test_any_event_survives_json(event: Event) -> None:
    assert from_json(json.loads(json.dumps(to_json(event)))) == event


def test_the_names_and_the_order_that_the_record_promises() -> None:
    assert list(to_json(EVENTS[0])) == ["event", "model", "tokens", "reused", "seconds"]
    data = to_json(FULL_ROUND)
    assert list(data) == [
        *("event", "index", "at", "rule", "num_draft_tokens", "drafted", "committed", "seconds", "why", "details")
    ]
    assert list(data["drafted"][0]) == ["id", "bytes", "text", "drafter", "q", "p", "threshold", "draw", "fate"]
    assert list(data["committed"][0]) == ["id", "bytes", "text", "fate", "p"]
    assert data["seconds"] == {"draft": 0.1, "verify": 0.2, "sample": 0.3, "other": 0.4}
    assert data["drafted"][0]["bytes"] == "f09f"
    assert data["drafted"][0]["fate"] == "accepted"
    assert data["details"][0] == {
        "p": [[11, "�", 0.3]],
        "q": [[11, "�", 0.9], [1, " ", 0.1]],
        "residual": [],
        "pi": 0.5,
        "h": 0.7,
    }
    assert "details" not in to_json(played("a"))
    assert next(iter(to_json(FINISHED))) == "event"
    assert to_json(FINISHED)["acceptance_by_position"] == [1.0, 0.5]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_plain_json_values_only(event: Event) -> None:
    """No tuple, enum or bytes is left for an encoder to trip over."""

    def check(value: object) -> None:
        assert type(value) in (dict, list, str, int, float, bool, type(None)), value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            check(inner)

    check(to_json(event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_a_newer_version_adds_is_ignored(event: Event) -> None:
    data = to_json(event) | {"added": 1}
    if isinstance(event, Round):
        data["drafted"] = [token | {"added": 1} for token in data["drafted"]]
        data["committed"] = [token | {"added": 1} for token in data["committed"]]
        data["seconds"] |= {"added": 1}
        if "details" in data:
            data["details"] = [detail | {"added": 1} for detail in data["details"]]
            data["details"] = [detail | {"p": [[*c, "added"] for c in detail["p"]]} for detail in data["details"]]
    assert from_json(data) == event


def test_what_may_be_missing() -> None:
    data = to_json(played("a"))
    del data["why"]
    assert from_json(data) == played("a")
    data = to_json(FINISHED)
    del data["tail"]
    assert from_json(data) == replace(FINISHED, tail="")


REQUIRED = [
    (event, field.name)
    for event in EVENTS[:3] + EVENTS[4:5]
    for field in fields(event)
    if field.name not in ("why", "details", "tail")
]


@pytest.mark.parametrize(("event", "name"), REQUIRED, ids=lambda value: getattr(type(value), "__name__", value))
def test_a_missing_field_is_an_error(event: Event, name: str) -> None:
    data = to_json(event)
    del data[name]
    with pytest.raises(ValueError, match="not a valid event"):
        from_json(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"event": "tea"},
        {"event": None},
        {"event": []},
        [],
        "round",
        None,
        3,
        to_json(FULL_ROUND) | {"drafted": 3},
        to_json(FULL_ROUND) | {"drafted": ["x"]},
        to_json(FULL_ROUND) | {"committed": [{}]},
        to_json(FULL_ROUND) | {"seconds": None},
        to_json(FULL_ROUND) | {"details": [{"p": [1]}]},
        to_json(FULL_ROUND) | {"drafted": [to_json(FULL_ROUND)["drafted"][0] | {"bytes": "zz"}]},
        to_json(FULL_ROUND) | {"drafted": [to_json(FULL_ROUND)["drafted"][0] | {"bytes": 7}]},
        to_json(FULL_ROUND) | {"committed": [to_json(FULL_ROUND)["committed"][0] | {"fate": "lost"}]},
        to_json(FULL_ROUND) | {"details": [{"p": [[1, "a", "b"]], "q": [], "residual": []}]},
        to_json(FULL_ROUND) | {"at": "soon"},
        to_json(FULL_ROUND) | {"index": None},
        to_json(FULL_ROUND) | {"why": 3},
        to_json(FULL_ROUND) | {"drafted": [to_json(FULL_ROUND)["drafted"][0] | {"q": "0.9"}]},
        to_json(FINISHED) | {"acceptance_by_position": 1},
        to_json(FINISHED) | {"acceptance_by_position": ["x"]},
        to_json(FINISHED) | {"reason": "tired"},
        to_json(FINISHED) | {"speedup": "2x"},
        to_json(EVENTS[0]) | {"model": "third"},
    ],
    ids=lambda data: str(data)[:40],
)
def test_what_is_no_event_is_an_error(data: object) -> None:
    with pytest.raises(ValueError):
        from_json(data)  # type: ignore[arg-type]


def test_events_are_frozen() -> None:
    for event in EVENTS:
        with pytest.raises(FrozenInstanceError):
            setattr(event, fields(event)[0].name, 1)


def test_the_number_accepted_of_a_round() -> None:
    assert [played(fates).num_accepted for fates in ("", "aaa", "ari", "rii")] == [0, 3, 1, 0]


def test_a_rounds_time_is_the_sum_of_its_parts() -> None:
    assert FULL_ROUND.seconds.total == pytest.approx(1.0)


def test_every_fate_has_a_word_of_its_own() -> None:
    assert {fate.value for fate in Fate} == {"accepted", "resampled", "rejected", "ignored", "bonus", "plain"}


def test_records_hold_no_mutable_parts() -> None:
    """They can be keys, and be shared between threads."""
    assert len({hash(event) for event in EVENTS}) == len(EVENTS)
    assert hash(Candidate(1, "a", 0.5)) == hash(Candidate(1, "a", 0.5))
    assert isinstance(from_json(to_json(FINISHED)), Finished)
    assert hash(from_json(to_json(FINISHED))) == hash(FINISHED)
