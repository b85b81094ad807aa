import pytest

from specchat.core.settings import ReplySettings
from specchat.errors import UsageError
from specchat.tui.commands import COMMANDS, changed_settings, read_command


def changed(text):
    command, argument = read_command(text)
    return changed_settings(command, argument, ReplySettings())


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("/gamma 6", lambda s: s.num_draft_tokens == 6),
        ("/gamma auto", lambda s: s.num_draft_tokens is None),
        ("/temp 0", lambda s: s.sampling.temperature == 0),
        ("/top-k 20", lambda s: s.sampling.top_k == 20),
        ("/top-p 0.5", lambda s: s.sampling.top_p == 0.5),
        ("/min-p 0.1", lambda s: s.sampling.min_p == 0.1),
        ("/repeat-penalty 1.2", lambda s: s.sampling.repeat_penalty == 1.2),
        ("/rule block", lambda s: s.rule == "block"),
        ("/mode fast", lambda s: s.mode == "fast"),
        ("/draft ngram", lambda s: s.drafter == "ngram"),
        ("/seed 7", lambda s: s.seed == 7),
        ("/seed none", lambda s: s.seed is None),
        ("/max-tokens 10", lambda s: s.max_tokens == 10),
    ],
)
def test_settings_are_read(text, read):
    assert read(changed(text))


@pytest.mark.parametrize(
    "text",
    [
        "/gamma",
        "/gamma x",
        "/gamma -1",
        "/temp nan",
        "/top-p 1.5",
        "/top-p 0",
        "/repeat-penalty 0",
        "/rule tokens",
        "/mode slow",
        "/new chat",
    ],
)
def test_what_makes_no_sense_is_refused_with_the_right_form(text):
    with pytest.raises(UsageError) as error:
        changed(text)
    assert text.split()[0] in error.value.message
    assert error.value.next_step


def test_an_unknown_command_names_the_nearest():
    with pytest.raises(UsageError, match="no command /gama") as error:
        read_command("/gama 3")
    assert error.value.next_step == "Did you mean /gamma?"
    with pytest.raises(UsageError) as error:
        read_command("/qqqqqqq")
    assert error.value.next_step == "/help lists all commands."


def test_other_commands_change_no_settings():
    others = {name for name in COMMANDS if not COMMANDS[name].takes} | {"system", "pair"}
    for name in others:
        assert changed_settings(COMMANDS[name], "", ReplySettings()) is None
