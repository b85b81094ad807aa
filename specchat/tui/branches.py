"""Going back in a chat: answering again, asking anew, looking at another version, deleting, another chat."""

from __future__ import annotations

from pathlib import Path

from specchat.tui.live_chat import LiveChat


class Branches:
    """What can be done with what has been said in a chat.

    Args:
        chat: the chat.
    """

    def __init__(self, chat: LiveChat) -> None:
        self._chat = chat

    def regenerate(self, message_id: int | None = None) -> None:
        """Answers a question once more: the last one, or the one that a message answers or is.

        Where not one token comes, what stood there is back.

        Raises:
            UsageError: that cannot be done now.
            ValueError: nothing has been asked yet.
        """
        self._chat.must_be_ready()
        self._chat.kept.regenerate(message_id)
        self._chat.begin()

    def continue_reply(self) -> None:
        """Goes on with the last reply, which was cut.

        Raises:
            UsageError: that cannot be done now.
            ValueError: there is nothing to continue.
        """
        self._chat.must_be_ready()
        self._chat.begin(continue_last=True)

    def edit(self, message_id: int, text: str) -> None:
        """Asks another version of a question, or the same once more where it was not changed.

        Raises:
            UsageError: that cannot be done now.
        """
        self._chat.must_be_ready()
        if text == self._chat.conversation.message(message_id).content:
            self._chat.kept.regenerate(message_id)
        else:
            self._chat.kept.edit(message_id, text)
        self._chat.begin()

    def switch(self, message_id: int) -> None:
        """Looks at the branch of another version of a message.

        Raises:
            UsageError: a reply is being written.
        """
        self._chat.must_be_idle()
        self._chat.kept.switch(message_id)
        self._chat.ask_for_size()

    def delete_last_exchange(self) -> None:
        """Deletes the last question and its answers.

        Raises:
            UsageError: a reply is being written.
            ValueError: nothing has been asked yet.
        """
        self._chat.must_be_idle()
        self._chat.kept.delete_last_exchange()
        self._chat.ask_for_size()

    def open(self, record: Path) -> tuple[str, ...]:
        """Goes on with an earlier chat; returns what there is to say about its record.

        Raises:
            UsageError: a reply is being written.
            RecordError: the record cannot be read, or not be written.
        """
        self._chat.must_be_idle()
        notices = self._chat.kept.open(record)
        self._chat.ask_for_size()
        return notices

    def begin_new(self) -> None:
        """Begins a new chat.

        Raises:
            UsageError: a reply is being written.
        """
        self._chat.must_be_idle()
        self._chat.kept.begin_new()
        self._chat.context_used = 0
