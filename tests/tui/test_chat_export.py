"""Places that a chat cannot be written to end in a message."""

import os
import sys

import pytest

from specchat.chat.conversation import Conversation
from specchat.errors import SpecchatError, UsageError
from specchat.tui.chat_export import export_chat
from specchat.tui.chat_record import RecordedConversation


@pytest.fixture
def kept():
    kept = RecordedConversation(Conversation())
    kept.add_user("why?")
    return kept


def test_a_name_that_begins_with_the_home_of_nobody(kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"~no-such-user\.md begins with ~") as caught:
        export_chat(kept, "~no-such-user.md")
    assert "./~no-such-user.md" in caught.value.next_step
    assert export_chat(kept, "./~no-such-user.md") == tmp_path / "~no-such-user.md"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the current folder cannot be deleted")
@pytest.mark.parametrize("name", ["", "notes.md"])
def test_the_current_folder_is_gone(kept, tmp_path, monkeypatch, name):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    try:
        with pytest.raises(SpecchatError, match="cannot be written: No such file or directory") as caught:
            export_chat(kept, name)
    finally:
        os.chdir(tmp_path)
    assert caught.value.next_step
