"""What has been written and not sent: whatever is done meanwhile, it comes back."""

from __future__ import annotations

from specchat.chat.conversation import Message
from specchat.tui.commands import is_command
from specchat.tui.widgets.prompt import Prompt


class Unsent:
    """What stands in the prompt, and what will stand there again.

    Args:
        prompt: where it is written.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._question: Message | None = None  # that is being written again
        self._before_editing = ""
        self._displaced = ""  # by a command

    @property
    def editing(self) -> int | None:
        """The id of the question that is being written again; None where none is."""
        return None if self._question is None else self._question.id

    def begin_command(self, command: str) -> None:
        """Puts the beginning of a command into the prompt; what stood there comes back after it."""
        if not is_command(self._prompt.text):
            self._displaced = _joined(self._displaced, self._prompt.message)
        self._prompt.set_text(command)

    def give_back(self) -> None:
        """Something was sent or carried out: what it displaced comes back, unless there is more in the prompt by now.

        A question that is being edited does so too where the command was typed in its place: the next message would
        otherwise take the question's.
        """
        if self._prompt.text:
            return
        text, self._displaced = self._displaced, ""
        if not text and self._question is not None:
            text = self._question.content
        if text:
            self._prompt.set_message(text)

    def leave_command(self) -> bool:
        """A command that was begun makes way for what it displaced; False where it displaced nothing."""
        if not self._displaced or (self._prompt.text and not is_command(self._prompt.text)):
            return False
        self._prompt.set_text("")
        self.give_back()
        return True

    def begin_editing(self, question: Message) -> None:
        """Takes a question back into the prompt; what stood there comes back after it."""
        if self._question is None:
            self._before_editing = _joined(self._displaced, self._prompt.message)
        self._question, self._displaced = question, ""
        self._prompt.set_message(question.content)

    def stop_editing(self) -> bool:
        """Leaves the question as it was; False where none is being edited."""
        if self._question is None:
            return False
        self._question, self._displaced = None, ""
        self._prompt.set_message(self._before_editing)
        return True

    def take_back(self, messages: str) -> None:
        """Messages that waited are not sent after all: they come before what is being written for the next one."""
        if self._question is not None:
            self._before_editing = _joined(messages, self._before_editing)
        elif is_command(self._prompt.text):
            self._displaced = _joined(messages, self._displaced)
        else:
            self._prompt.set_message(_joined(messages, self._prompt.message))


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text.strip())
