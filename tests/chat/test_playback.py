"""What a replay shows when."""

import pytest

from specchat.chat.conversation import Conversation
from specchat.chat.playback import Phase, Playback
from specchat.core.events import Fate, Finished, Round
from tests.chat.replies import committed, drafted, finished, plain_reply, round_of, speculative_reply


def conversation(*replies):
    """A conversation whose questions have these replies."""
    made = Conversation()
    for number, events in enumerate(replies, 1):
        made.add_user(f"question {number}")
        made.add_reply(made.begin_reply(), events)
    return made


def test_each_round_comes_when_it_ended():
    playback = Playback(conversation(speculative_reply(), plain_reply("a", "b")))
    kinds = [step.message.role[0] + ("r" if step.round else "e" if step.ends else "") for step in playback.steps]
    assert kinds == ["ue", "ar", "ar", "ar", "ae", "ue", "ar", "ar", "ar", "ae"]
    times = [step.at for step in playback.steps]
    assert times[:5] == pytest.approx([0, 1.05, 1.10, 1.15, 1.15]), "a second after the question, then as recorded"
    assert times == sorted(times)
    assert playback.duration == times[-1]
    everything = [event for step in playback.steps[1:5] for event in step.events]
    assert everything == list(speculative_reply()), "nothing is left out, nothing comes twice"
    assert [type(event) for event in playback.steps[4].events] == [Finished]
    for position in range(len(times) + 1):
        assert playback.position_at(playback.time_of(position)) >= position


def test_the_phases_of_a_round_take_as_long_as_they_took():
    drafts = [drafted("a", Fate.ACCEPTED)]
    played = round_of(committed("a", fate=Fate.ACCEPTED), committed("b", fate=Fate.BONUS), drafts=drafts)
    playback = Playback(conversation([played, finished()]))
    end = playback.steps[1].at
    shares = ((0.046, Phase.DRAFTING), (0.032, Phase.DRAFTED), (0.004, Phase.DRAFTED), (0.002, Phase.VERIFIED))
    for before, phase in shares:
        assert playback.phase_at(end - before) is phase, before
    assert playback.phase_at(end) is Phase.DRAFTING, "what follows is no round"


def test_questions_and_rounds_are_found():
    made = conversation(speculative_reply(), plain_reply("a", "b"))
    playback = Playback(made)
    assert [playback.question_after(position) for position in (0, 1, 5, 6)] == [1, 6, 6, 10]
    assert [playback.question_before(position) for position in (10, 6, 5, 1)] == [6, 1, 1, 0]
    second = [event for event in made.messages[1].events if isinstance(event, Round)][1]
    position = playback.before_round(second)
    assert position == 2
    assert playback.following(position).round is second
    assert playback.before_round(round_of(committed("x"))) is None
    assert [playback.before_round_of(2, number) for number in (0, 1, 3)] == [1, 2, None]
    assert playback.before_round_of(1, 0) is None, "a question has no rounds"


def test_a_reply_that_was_cut_edited_and_continued():
    made = Conversation()
    made.add_user("q")
    cut = made.add_reply(made.begin_reply(), plain_reply("one", " two", reason="interrupted"))
    edited = made.edit(cut.id, "ONE")
    made.add_reply(made.begin_reply(continue_last=True), plain_reply(" three"))
    playback = Playback(made)
    assert [step.round is not None for step in playback.steps] == [False, True, True, False]
    assert made.beginning(made.head.id) == "ONE"
    assert made.beginning(edited.id) == "ONE"
    assert made.beginning(cut.id) == ""


def test_an_empty_chat_has_no_steps():
    playback = Playback(Conversation())
    assert (playback.steps, playback.duration, playback.position_at(3.0), playback.following(0)) == ((), 0.0, 0, None)
