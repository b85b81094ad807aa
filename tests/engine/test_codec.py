"""Every command and every message survives the pipe."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.core.events import Event, PositionDetail, Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine import codec
from specchat.engine.interface import Command, Inspect, Learned, Message, Set

# NaN never equals itself; infinities are in biases only, see below.
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(
    SamplingParams,
    st.builds(
        SamplingParams,
        temperature=st.floats(0, 100),
        top_k=st.integers(0, 1000),
        top_p=st.floats(0, 1, exclude_min=True),
        min_p=st.floats(0, 1),
        repeat_penalty=st.floats(0.1, 10),
        frequency_penalty=st.floats(-10, 10),
        presence_penalty=st.floats(-10, 10),
        penalty_last_n=st.integers(-1, 1000),
        logit_bias=st.dictionaries(st.integers(0, 200_000), st.floats(-100, 100) | st.just(-math.inf)),
    ),
)
st.register_type_strategy(
    Learned,
    st.builds(
        Learned,
        setup=st.text(),
        experience=st.dictionaries(st.text(), st.none() | st.floats(-10, 10) | st.lists(st.integers(0, 9))),
    ),
)
st.register_type_strategy(
    Round,
    st.builds(
        Round,
        why=st.none() | st.text(),
        # any sequence will do, and what comes out of the pipe is a tuple
        details=st.none() | st.lists(st.from_type(PositionDetail), max_size=3).map(tuple),
    ),
)
THOROUGH = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", get_args(Command), ids=lambda kind: kind.__name__)
def test_commands_survive(kind: type[Any]) -> None:
    @THOROUGH
    @given(st.from_type(kind))
    def survives(command: Any) -> None:
        line = codec.encode_command(command)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert codec.decode_command(line) == command

    survives()


@pytest.mark.parametrize("kind", get_args(Message), ids=lambda kind: kind.__name__)
def test_messages_survive(kind: type[Any]) -> None:
    @THOROUGH
    @given(st.from_type(kind))
    def survives(message: Any) -> None:
        line = codec.encode_message(message)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert codec.decode_message(line) == message

    survives()


def test_every_event_is_covered_by_reply_event() -> None:
    assert {kind.__name__ for kind in get_args(Event)} == {"Prefill", "PlainSpeed", "Round", "Finished"}


def test_banned_token_and_broken_text_survive() -> None:
    banned = Set(ReplySettings(sampling=SamplingParams(logit_bias={3: -math.inf})))
    assert codec.decode_command(codec.encode_command(banned)) == banned
    torn = Inspect((ChatMessage("user", "half a pair: \ud83d, and \x1b]52;c;\x07 \u2028"),))
    assert codec.decode_command(codec.encode_command(torn)) == torn


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"not JSON",
        b"\xff\xfe",
        b'{"record":"Explode"}',
        b'{"record":"Load"}',
        b'{"record":"Load","target":7}',
        b'{"record":"LoadProgress","model":"target","fraction":1}',
        b'{"record":3}',
        b'{"record":"Set","settings":{"sampling":{"temperature":-1}}}',
    ],
)
def test_what_is_not_a_command_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        codec.decode_command(line)


@pytest.mark.parametrize(
    "data",
    [
        {"record": "ReplyEvent"},
        {"record": "ReplyEvent", "reply": 1, "event": {"event": "prefill"}},
        {"record": "ReplyEvent", "reply": 1, "event": []},
        {"record": "ReplyEvent", "reply": None, "event": {}},
        {"record": "LoadProgress", "model": "middle", "fraction": 0.5},
    ],
)
def test_what_is_not_a_message_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        codec.decode_message(json.dumps(data).encode())
