"""What the copy drafter proposes after each kind of change, how sure it says to be, and that nothing upsets it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.backends.base import Draft
from specchat.backends.copying import CopyDrafter
from specchat.core.sampling import SamplingParams
from tests.backends.listening import Listening
from tests.backends.words import END, REPLY, WordVocabulary

CODE = """\
def mean(data):
    total = 0
    for value in data:
        total += value
    return total / len(data)

def variance(data):
    center = mean(data)
    return sum((value - center) ** 2 for value in data) / len(data)

def median(data):
    ordered = sorted(data)
    middle = len(ordered) // 2
    return ordered[middle]

def spread(data):
    low, high = min(data), max(data)
    return high - low
"""


class Chat:
    """A prompt, and a reply that is written token by token with a drafter looking on."""

    def __init__(self, wish: str, text: str = f"```python\n{CODE}```", vocabulary=None, drafter=None) -> None:
        self.vocabulary = vocabulary or WordVocabulary()
        self.drafter = drafter or CopyDrafter(self.vocabulary)
        self.context = self.vocabulary.tokenize(f"<user>{wish}\n\n{text}<end><reply>")
        self.length = Listening(64)

    def propose(self, limit: int = 12) -> Draft:
        self.length.chances = []
        return self.drafter.propose(self.context, self.length, limit, SamplingParams(), np.random.default_rng(0))

    def write(self, text: str) -> None:
        for token in self.vocabulary.tokenize(text):
            self.propose()
            self.context.append(token)

    def next(self, limit: int = 12) -> str:
        """What is proposed, as text."""
        return b"".join(map(self.vocabulary.piece, self.propose(limit).tokens)).decode()

    def chance(self) -> float:
        """Of the first token that is proposed."""
        self.propose()
        return self.length.chances[0]


def written(until: str, code: str = CODE) -> str:
    """The beginning of a reply that gives the code, up to and with ``until``."""
    return "```python\n" + code[: code.index(until) + len(until)]


def test_a_fenced_block_is_copied_from_its_beginning() -> None:
    chat = Chat("Repeat this file.")
    chat.write("Here it is:\n\n```python\n")
    assert CODE.startswith(chat.next())
    assert chat.next().startswith("def mean(data)")


def test_the_copy_goes_on_after_a_substitution() -> None:
    chat = Chat("Improve this.")
    chat.write(written("total = ") + "1")
    chat.write("\n")
    assert chat.next().startswith("    for value in data")


def test_the_copy_goes_on_after_an_insertion() -> None:
    chat = Chat("Improve this.")
    chat.write(written("def variance(data):\n") + "    assert len(data) > 1, data\n    center")
    assert chat.next().startswith(" = mean(data)\n    return")


def test_the_copy_goes_on_after_a_deletion() -> None:
    chat = Chat("Shorten this.")
    chat.write(written("    middle = len(ordered) // 2\n").replace("    ordered = sorted(data)\n", ""))
    assert chat.next().startswith("    return ordered[middle]\n")


def test_functions_in_another_order_are_found() -> None:
    chat = Chat("Sort this.")
    chat.write("```python\ndef median(data):\n    ordered =")
    assert chat.next().startswith(" sorted(data)\n    middle = len")
    chat.write(CODE[CODE.index(" sorted") : CODE.index("def spread")] + "def mean(data):\n    total =")
    assert chat.next().startswith(" 0\n    for value in data")


@pytest.mark.parametrize("new", ["samples", "list_of_samples", "x"])
def test_a_renamed_variable_is_proposed_by_its_new_name_also_where_it_is_written_otherwise(new) -> None:
    """With another number of tokens, after a blank, after a bracket."""
    chat = Chat("Rename the parameter.")
    chat.write("```python\n" + CODE[: CODE.index("):")].replace("data", new) + "):\n    total = 0\n    for value")
    assert chat.next(20).startswith(f" in {new}:\n        total += value\n    return")
    chat.write(f" in {new}:\n        total += value\n    return total /")
    assert chat.next().startswith(f" len({new})\n\ndef variance({new})")


def test_a_renaming_that_was_asked_for_is_expected_from_the_first_time_on() -> None:
    told = Chat("Rename `data` to `samples`.")
    told.write("```python\ndef mean(")
    assert told.next().startswith("samples):\n    total = 0\n    for value in")
    told.write("samples):\n    total = 0\n    for value in")
    assert told.next().startswith(" samples:\n        total += value\n    return")
    untold = Chat("Improve this, please.")
    untold.write("```python\ndef mean(")
    assert untold.next().startswith("data):")


def test_a_renaming_that_does_not_come_is_given_up() -> None:
    chat = Chat("Do not rename `data` to `samples`.")
    chat.write(written("for value in"))
    assert chat.next().startswith(" data")


def test_a_change_that_was_made_at_such_places_is_expected_at_the_next_one() -> None:
    """A line after the head of each function: the third time it is proposed, and copying on is not."""
    chat = Chat("Add a log line to each function.")
    code = CODE.replace("(data):\n", '(data):\n    log("called")\n')
    chat.write(written("def median(data", code))
    assert chat.next(16).startswith('):\n    log("called")\n    ordered')


def test_a_type_that_was_added_to_an_argument_is_expected_at_the_next_function() -> None:
    chat = Chat("Add type hints.")
    typed = CODE.replace("(data):\n", "(data: list[float]) -> float:\n")
    chat.write(written("def median(data", typed))
    assert chat.next().startswith(": list[float]) -> float:\n")


def test_where_a_change_is_expected_copying_on_is_less_sure() -> None:
    """The docstrings differ, so they cannot be foreseen; that there is one can."""
    chat = Chat("Add docstrings.")
    chat.write(written("def mean(data):\n"))
    before = chat.chance()
    code = CODE
    for name, text in (("mean", "The average."), ("variance", "How far values lie apart."), ("median", "In half.")):
        code = code.replace(f"def {name}(data):\n", f'def {name}(data):\n    """{text}"""\n')
    chat.write(code[code.index('    """The') : code.index("def spread")] + "def spread(data):\n   ")
    chat.propose()
    assert chat.next(3).startswith(' """') or chat.length.chances[0] < before - 0.2


def test_lines_that_are_indented_deeper_teach_by_how_much() -> None:
    chat = Chat("Put this into a class.")
    deeper = "class Statistics:\n" + "".join(f"    {line}\n" for line in CODE.split("\n"))
    chat.write(written("        total = 0\n", deeper))
    chat.write("        for value in data:\n")
    assert chat.next().startswith("            total += value\n        return total")


def test_text_that_the_reply_repeats_is_proposed_without_a_source() -> None:
    chat = Chat("Write a song.", "About rain.")
    refrain = "oh the rain it falls on me and on the tree\n"
    chat.write(f"one cloud came\n{refrain}two clouds came\n{refrain}three clouds came\noh the rain it")
    assert chat.next().startswith(" falls on me and on the tree")


def test_where_nothing_points_anywhere_nothing_is_proposed() -> None:
    chat = Chat("Tell a tale.", "About wind.")
    chat.write("Once upon")
    assert len(chat.propose()) == 0
    assert chat.length.chances == [], "the length rule is not asked"


def test_every_proposal_is_certain_and_no_longer_than_asked_for() -> None:
    chat = Chat("Repeat this file.")
    chat.write(written("total = 0\n"))
    draft = chat.propose(5)
    assert len(draft) == len(draft.q) == 5
    assert draft.drafter == "ngram"
    assert all(q.probability(token) == 1 for q, token in zip(draft.q, draft.tokens, strict=True))
    assert len(chat.propose(0)) == 0
    assert [round(chance, 6) for chance in chat.length.chances] == []


def test_nothing_is_proposed_beyond_the_end_of_a_turn() -> None:
    chat = Chat("Repeat:", "one two three four five six")
    chat.write("one two three four")
    draft = chat.propose(20)
    assert draft.tokens[-1] == END
    assert draft.tokens.count(END) == 1
    assert REPLY not in draft.tokens


def test_a_miss_lowers_the_chance_at_once_and_agreement_raises_it_again() -> None:
    chat = Chat("Improve this.")
    chat.write(written("return total / len(data)\n"))
    before = chat.chance()
    chat.write("# something else entirely")
    chat.propose()
    assert not chat.length.chances or chat.length.chances[0] < before - 0.3
    chat.write("\n\ndef variance")
    soon = chat.chance()
    chat.write("(data):\n    center = mean(data)\n    return sum((value - center) ** 2")
    assert soon < chat.chance()
    assert chat.chance() > 0.9


def test_a_text_whose_copies_go_wrong_is_trusted_less() -> None:
    """Each line is begun like one of the source and goes on otherwise."""
    lines = [f"line {name} says {name} again and again" for name in ("red", "blue", "green", "black", "white", "grey")]
    chat = Chat("Answer:", "\n".join(lines))
    chances = []
    for name in ("red", "blue", "green", "black", "white", "grey"):
        chat.write(f"\nline {name} says")
        chances.append(chat.chance())
        chat.write(" what nobody knew")
    assert chances[-1] < chances[0]


def test_another_turn_copies_from_the_reply_before_it() -> None:
    chat = Chat("Write it.", "Three numbers.")
    chat.write("x = one + two + three\ny = four + five\n<end><user>Now add six.<end><reply>x = one")
    assert chat.next().startswith(" + two + three\ny = four")


def test_an_edited_chat_leaves_nothing_of_the_old_one() -> None:
    vocabulary = WordVocabulary()
    chat = Chat("Repeat this file.", vocabulary=vocabulary)
    chat.write(written("total = 0\n"))
    other = Chat("Repeat:", "the cat sat on the mat and slept", vocabulary, chat.drafter)
    other.write("the cat sat on")
    assert other.next() == " the mat and slept<end>"
    again = Chat("Repeat this file.", vocabulary=vocabulary, drafter=chat.drafter)
    again.write(written("total = 0\n"))
    assert again.next().startswith("    for value in data")


def test_a_drafter_that_was_not_asked_for_a_while_catches_up() -> None:
    chat = Chat("Repeat this file.")
    chat.propose()
    chat.context += chat.vocabulary.tokenize(written("ordered = sorted("))
    chat.write("data)\n    middle")
    assert chat.next().startswith(" = len(ordered) // 2")


def test_there_is_no_model_to_be_behind() -> None:
    chat = Chat("Repeat this file.")
    assert chat.drafter.behind(chat.context) == 0
    assert chat.drafter.prefill(chat.context, lambda: False) is None
    chat.drafter.observe(chat.propose(), 0, [5])


VOCABULARY = WordVocabulary()
WORDS = VOCABULARY.tokenize("<end><user><reply>a b c (a) \n    \n  d_e ``` 1 'é' \n\n")
PIECES = st.lists(st.sampled_from(WORDS), max_size=40)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), PIECES, st.integers(0, 9)), min_size=1, max_size=8))
def test_whatever_is_written_proposals_are_tokens_of_the_text_and_the_same_each_time(steps) -> None:
    """Contexts grow, shrink and branch. Two drafters that see the same say the same."""
    drafters = CopyDrafter(VOCABULARY), CopyDrafter(VOCABULARY)
    context: list[int] = []
    for cut, new, limit in steps:
        context = [*context[: len(context) - cut or None], *new, *context[-10:]]
        lengths = Listening(64), Listening(64)
        drafts = [
            drafter.propose(context, length, limit, SamplingParams(), np.random.default_rng(0))
            for drafter, length in zip(drafters, lengths, strict=True)
        ]
        assert drafts[0].tokens == drafts[1].tokens
        assert lengths[0].chances == lengths[1].chances
        assert len(drafts[0]) <= limit
        assert all(0 <= token < VOCABULARY.n_vocab for token in drafts[0].tokens)
        assert all(0 < chance < 1 for chance in lengths[0].chances)
