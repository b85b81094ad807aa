"""What the slash commands do to a chat screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from specchat.core.settings import ReplySettings
from specchat.errors import SpecchatError, UsageError
from specchat.files import text_or_file
from specchat.tui.branches import Branches
from specchat.tui.commands import changed_settings, read_command

if TYPE_CHECKING:
    from specchat.chat.conversation import Message
    from specchat.tui.screens.chat import ChatScreen


class ChatCommands:
    """Carries out commands; keys and palette entries come here, too."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._chat = screen.chat
        self._branches = Branches(screen.chat)

    def run(self, text: str) -> bool:
        """Carries out what was typed; False, with a sentence in the chat, where that cannot be done."""
        return self._try(lambda: self._run(text))

    def _run(self, text: str) -> None:
        command, argument = read_command(text)
        settings = changed_settings(command, argument, self._chat.settings)
        if settings is None:
            self._actions()[command.name](argument)
        else:
            self._change(settings)

    def _try(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except SpecchatError as error:
            self._screen.say("error", error.message, error.next_step)
            return False
        except ValueError as problem:
            self._screen.say("error", f"That cannot be done: {problem}.", "F1 shows all keys and commands.")
            return False
        return True

    def _actions(self) -> dict[str, Callable[[str], object]]:
        return {
            "system": self._system,
            "editor": self._editor,
            "regenerate": lambda number: self._regenerate(self._question(number)),
            "continue": lambda _: self._continue(),
            "edit": lambda number: self._edit(self._question(number)),
            "version": self._version,
            "delete": lambda _: self._delete(),
            "new": lambda _: self._new(),
            "open": lambda _: self._choose_chat(),
            "copy": self._copy,
            "export": self._export,
            "rejected": lambda _: self._screen.pane.action_toggle_rejected(),
            "reading": lambda _: self._screen.call_later(self._screen.pane.action_toggle_reading),
            "slow": lambda _: self._slow_motion(),
            "rounds": lambda _: self._screen.action_toggle_rounds(),
            "pair": self._pair,
            "load": lambda _: self._screen.action_load_again(),
            "help": lambda _: self._help(),
            "quit": lambda _: self._screen.app.exit(),
        }

    # --- settings -------------------------------------------------------------------------------------------------

    def _change(self, settings: ReplySettings) -> None:
        was_exact, was_drawn_at = self._chat.is_exact, self._chat.settings.sampling.temperature
        self._chat.change(settings)
        if self._chat.is_exact != was_exact:
            how = "for speed" if was_exact else "so that passes of several tokens give the same bits as single ones"
            temperature = settings.sampling.temperature
            also = f" The temperature is {temperature:g} now." if temperature != was_drawn_at else ""
            hint = "" if was_exact or not temperature else "/temp 0 makes the replies those of plain decoding as well."
            self._screen.say("info", f"The target is loaded again, set up {how}.{also}", hint)
        self._screen.forget_reason()

    def _system(self, text: str) -> None:
        text = text_or_file(text)
        self._chat.kept.set_system(text)
        said = "The system message holds from the next reply on." if text else "There is no system message any longer."
        self._screen.say("info", said)

    def _editor(self, text: str) -> None:
        if text:
            self._screen.prompt.set_text(text)
        else:
            self._screen.unsent.give_back()
        self._screen.set_focus(self._screen.prompt)
        self._screen.prompt.action_open_editor()

    # --- the conversation -----------------------------------------------------------------------------------------

    def regenerate(self, message_id: int | None) -> None:
        """Answers a question once more: the last one, or that of a message; what stood there stays as a branch."""
        self._try(lambda: self._regenerate(message_id))

    def _regenerate(self, message_id: int | None) -> None:
        self._branches.regenerate(message_id)
        self._screen.pane.show_tokens()  # a reply is read once it is complete
        self._show_branch()

    def _continue(self) -> None:
        self._branches.continue_reply()
        self._screen.fold.continue_reply()

    def edit(self, message_id: int | None) -> None:
        """Takes a question back into the prompt: the last one, or that of a message."""
        self._try(lambda: self._edit(message_id))

    def _edit(self, message_id: int | None) -> None:
        self._chat.must_be_idle()
        self._screen.unsent.begin_editing(self._chat.conversation.question(message_id))
        self._screen.set_focus(self._screen.prompt)

    def _question(self, number: str) -> int | None:
        """The id of the question of that number, counted from the first; None for the last, where none is given."""
        return self._numbered("question", number).id if number else None

    def _numbered(self, what: Literal["question", "reply"], number: str) -> Message:
        """The question or reply of that number, counted from the first."""
        role = "user" if what == "question" else "assistant"
        found = [message for message in self._chat.conversation.messages if message.role == role]
        if not number.isdecimal() or not 1 <= int(number) <= len(found):
            hint = f"They are numbered from 1 to {len(found)}." if found else "There is none yet."
            raise UsageError(f"There is no {what} {number}.", hint)
        return found[int(number) - 1]

    def step_version(self, message_id: int | None, step: int) -> None:
        """Goes to the version before or after, of that message or of the last one that has several."""
        self._try(lambda: self._step_version(message_id, step))

    def _step_version(self, message_id: int | None, step: int) -> None:
        shown = self._last_with_versions() if message_id is None else message_id
        number, count = self._chat.conversation.version(shown)
        if count == 1:
            raise UsageError("This message has one version only.", "e edits a question, g answers it again.")
        self._show_version(shown, min(count, max(1, number + step)))

    def _version(self, number: str) -> None:
        shown = self._last_with_versions()
        count = self._chat.conversation.version(shown)[1]
        if not number.isdecimal() or not 1 <= int(number) <= count:
            said = f"There is no version {number}." if number else "/version needs a number."
            raise UsageError(said, f"The last message with several versions has {count}.")
        self._show_version(shown, int(number))

    def _last_with_versions(self) -> int:
        conversation = self._chat.conversation
        for message in reversed(conversation.messages):
            if conversation.version(message.id)[1] > 1:
                return message.id
        raise UsageError("No message has several versions yet.", "/edit and /regenerate make one.")

    def _show_version(self, shown: int, number: int) -> None:
        transcript = self._screen.pane.transcript
        was_looked_at = transcript.message_looked_at == shown
        other = self._chat.conversation.siblings(shown)[number - 1].id
        if other == shown:
            return
        self._branches.switch(other)
        self._show_branch()
        if was_looked_at:
            transcript.look_at_message(other)
        else:
            transcript.show_message(other)

    def _show_branch(self) -> None:
        """Shows the conversation as it is now; a question that was being edited may not be there any longer."""
        self._screen.unsent.stop_editing()
        self._screen.fold.show_conversation()

    def send_edited(self, text: str) -> bool:
        """Sends a question that was written again; False where none is."""
        question = self._screen.unsent.editing
        if question is None:
            return False
        try:
            self._branches.edit(question, text)
        except UsageError as error:
            self._screen.say("error", error.message, error.next_step)
            self._screen.prompt.set_message(text)
            return True
        self._show_branch()
        return True

    def _delete(self) -> None:
        self._branches.delete_last_exchange()
        self._show_branch()

    def _new(self) -> None:
        self._branches.begin_new()
        self._screen.pane.show_tokens()
        self._screen.fold.begin_figures()
        self._show_branch()

    def _copy(self, number: str) -> None:
        """Copies the reply of that number, or else the message that is looked at, or the last reply."""
        pane, conversation = self._screen.pane, self._chat.conversation
        looked_at = None if pane.is_reading else pane.transcript.message_looked_at
        if number:
            message: Message | None = self._numbered("reply", number)
        elif looked_at is not None:
            message = conversation.get(looked_at)
            if message is None:
                raise UsageError("This reply is being written.", "It can be copied when it is complete.")
        else:
            message = next((each for each in reversed(conversation.messages) if each.role == "assistant"), None)
        if message is None:
            raise ValueError("there is no reply yet")
        self._screen.copy(message.content)

    def _export(self, name: str) -> None:
        from specchat.tui.chat_export import export_chat

        path = export_chat(self._chat.kept, name)
        self._screen.say("info", f"This chat was written to {path}.")

    # --- screens --------------------------------------------------------------------------------------------------

    def _pair(self, name: str) -> None:
        self._chat.must_be_idle()
        if not name:
            self.choose_pair()
            return
        self._screen.open_pair(name)

    def choose_pair(self) -> None:
        """Shows the pair picker."""
        from specchat.tui.screens.pairs import PairsScreen

        opening = self._screen.opening
        opening.is_picking = True
        self._screen.app.push_screen(PairsScreen(opening, self._screen.still), self._chosen)

    def _chosen(self, key: str | None) -> None:
        opening = self._screen.opening
        opening.is_picking = False
        if key is not None and (key != opening.loaded_key or self._chat.loaded is None):
            self._screen.open_pair(key, is_warned=True)  # the picker has shown it

    def _choose_chat(self) -> None:
        self._chat.must_be_idle()
        folder = self._chat.kept.folder
        if folder is None:
            raise UsageError("Chats are not recorded here.", "This one cannot be opened again either.")
        from specchat.tui.screens.chats import ChatsScreen

        self._screen.app.push_screen(ChatsScreen(folder, self._chat.kept.path), self._open_chat)

    def _open_chat(self, record: Path | None) -> None:
        if record is not None:
            self._try(lambda: self._open(record))

    def _open(self, record: Path) -> None:
        notices = self._branches.open(record)
        self._screen.fold.begin_figures()
        self._show_branch()
        for notice in notices:
            self._screen.say("warning", notice)
        self._screen.show_figures()

    def _slow_motion(self) -> None:
        self._chat.must_be_idle()
        conversation = self._chat.conversation
        replies = [message.id for message in conversation.messages if message.role == "assistant"]
        if not replies:
            raise UsageError("There is no reply yet.", "Ask something first.")
        from specchat.chat.conversation import title_of
        from specchat.tui.screens.replay import ReplayScreen

        start = self._screen.pane.transcript.round_looked_at or (replies[-1], 0)
        title = title_of(conversation.messages[0].content)  # the pair's name stands beside it
        self._screen.app.push_screen(ReplayScreen(conversation, title, start, still=self._screen.still))

    def _help(self) -> None:
        from specchat.tui.screens.help import HelpScreen

        self._screen.app.push_screen(HelpScreen())
