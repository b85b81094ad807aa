"""Characters and stop strings come out whole, wherever the tokens cut them."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.decoding.detokenizer import TextStream

FAMILY = "👩‍👩‍👧‍👦🦙歪é\u0301!"

nearly_utf8 = st.lists(
    st.one_of(
        st.binary(max_size=4),
        st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.sampled_from([b"\xed\xa0\x80", b"\xf0\x9f", b"\xe6\xad", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xff"]),
    ),
    max_size=12,
).map(b"".join)


def cut(data, places):
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def run(stream, pieces):
    return "".join([*map(stream.push, pieces), stream.finish()])


def expected(text, stops):
    """The text that is left when its characters arrive one at a time."""
    for end in range(len(text) + 1):
        endings = [stop for stop in stops if text[:end].endswith(stop)]
        if endings:
            return text[: end - max(map(len, endings))], True
    return text, False


@given(nearly_utf8, st.lists(st.integers(0, 100), max_size=12))
def test_random_bytes_cut_anywhere_give_the_text_of_the_whole(data, places):
    assert run(TextStream(), cut(data, places)) == data.decode("utf-8", "replace")


def test_a_character_comes_with_the_byte_that_completes_it():
    stream = TextStream()
    shown = [stream.push(bytes([byte])) for byte in FAMILY.encode()]
    assert "".join(shown) == FAMILY
    assert all(len(text) <= 1 for text in shown)


def test_an_incomplete_character_at_the_end_is_one_replacement():
    stream = TextStream()
    assert stream.push("歪".encode()[:2]) == ""
    assert stream.finish() == "\ufffd"
    assert stream.finish() == ""


@pytest.mark.parametrize("stop", ["\nUser:", "<|im_end|>", "aab", "🦙歪", "x"])
def test_a_stop_string_is_found_at_every_split_over_up_to_four_tokens(stop):
    data = f"so it is {stop}and never this".encode()
    for places in combinations(range(len(data) + 1), 3):
        stream = TextStream([stop])
        shown = [stream.push(piece) for piece in cut(data, places)]
        assert "".join(shown) == "so it is "
        assert stream.stopped
        assert stream.stop_string == stop
        assert stream.finish() == ""


@given(
    st.text(alphabet="ab🦙", max_size=20),
    st.lists(st.text(alphabet="ab🦙", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_several_stop_strings_give_the_same_text_at_every_split(text, stops, places):
    stream = TextStream(stops)
    assert run(stream, cut(text.encode(), places)) == expected(text, stops)[0]
    assert stream.stopped == expected(text, stops)[1]


@given(st.text(alphabet="ab", max_size=12), st.text(alphabet="ab", min_size=1, max_size=4))
def test_no_character_of_a_stop_string_is_ever_shown(text, stop):
    stream = TextStream([stop])
    whole, _ = expected(text, [stop])
    shown = ""
    for character in text:
        shown += stream.push(character.encode())
        assert whole.startswith(shown)


def test_a_beginning_that_goes_on_differently_is_given_out():
    stream = TextStream(["\nUser:"])
    assert stream.push(b"one\nUs") == "one"
    assert stream.push(b"eful") == "\nUseful"
    assert stream.push(b"\nUser") == ""
    assert stream.finish() == "\nUser"
    assert not stream.stopped


def test_nothing_comes_after_the_stop():
    stream = TextStream(["."])
    assert stream.push(b"a.b") == "a"
    assert stream.push(b"c") == ""
    assert stream.finish() == ""


def test_a_fork_goes_its_own_way():
    stream = TextStream(["END"])
    stream.push(b"x E")
    stream.push("é".encode()[:1])
    twin = stream.fork()
    assert twin.push("é".encode()[1:]) == "Eé"
    assert twin.push(b"END") == ""
    assert twin.stopped
    assert not stream.stopped
    assert stream.push("ê".encode()[1:]) == "Eê"


def test_an_empty_piece_changes_nothing():
    stream = TextStream(["ab"])
    assert stream.push(b"a") == ""
    assert stream.push(b"") == ""
    assert stream.push(b"c") == "ac"


def test_an_empty_stop_string_is_refused():
    with pytest.raises(ValueError, match="empty"):
        TextStream(["a", ""])
