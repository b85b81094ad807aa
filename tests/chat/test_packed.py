import json
import tracemalloc

from specchat.chat.packed import PackedDetails, packed
from specchat.core.events import Candidate, PositionDetail, Prefill, from_json, to_json
from tests.chat.replies import committed, round_of

DETAILS = (
    PositionDetail((Candidate(1, " a", 0.1 + 0.2), Candidate(2, "\ud83d", 1e-300)), (), (Candidate(3, "", 1.0),)),
    PositionDetail((Candidate(7, "天\x1b", 0.5),), (Candidate(7, "天\x1b", 0.9),), (), pi=0.25, h=1.0),
)


def test_packed_details_are_what_they_were():
    played = round_of(committed("a"), details=DETAILS)
    light = packed(played)
    assert isinstance(light.details, PackedDetails)
    assert light == played
    assert played == light
    assert hash(light) == hash(played)
    assert len(light.details) == 2
    assert light.details[1].pi == 0.25
    assert light.details[:1] == DETAILS[:1]
    assert list(light.details) == list(DETAILS)
    assert light.details != DETAILS[:1]
    assert light.details != "something else"


def test_packed_rounds_are_written_as_any_other():
    played = round_of(committed("a"), details=DETAILS)
    assert json.dumps(to_json(packed(played))) == json.dumps(to_json(played))
    assert from_json(to_json(packed(played))) == played


def test_what_has_no_details_stays_as_it_is():
    for event in (round_of(committed("a")), Prefill("target", 1, 0, 0.1)):
        assert packed(event) is event
    once = packed(round_of(committed("a"), details=DETAILS))
    assert packed(once) is once


def test_packed_details_take_a_fraction_of_the_memory():
    def made(number):
        candidates = tuple(Candidate(1000 + n, f" word{n * number}", 1 / (n + number + 2)) for n in range(10))
        return tuple(PositionDetail(candidates, candidates, candidates, 0.5, 0.5) for _ in range(5))

    def size(kept):
        tracemalloc.start()
        held = [kept(made(number)) for number in range(20)]
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held
        return size

    assert size(PackedDetails) < size(lambda details: from_json_again(details)) / 5


def from_json_again(details):
    """Objects of their own, as they come through the pipe."""
    return from_json(json.loads(json.dumps(to_json(round_of(committed("a"), details=details)))))
