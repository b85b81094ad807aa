"""What the slash commands do to a chat screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.core.settings import ReplySettings
from specchat.errors import UsageError
from specchat.tui.commands import changed_settings, read_command

if TYPE_CHECKING:
    from specchat.tui.screens.chat import ChatScreen


class ChatCommands:
    """Carries out commands; keys and palette entries come here, too."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._chat = screen.chat
        self._editing: int | None = None  # the question that is being written again

    def run(self, text: str) -> bool:
        """Carries out what was typed; False, with a sentence in the chat, where that cannot be done."""
        try:
            command, argument = read_command(text)
            settings = changed_settings(command, argument, self._chat.settings)
            if settings is None:
                self._actions()[command.name](argument)
            else:
                self._change(settings)
        except UsageError as error:
            self._screen.say("error", error.message, error.next_step)
            return False
        except ValueError as problem:
            self._screen.say("error", f"/{command.name}: {problem}.", "Ask something first.")
            return False
        return True

    def _actions(self) -> dict[str, Callable[[str], None]]:
        return {
            "system": self._system,
            "regenerate": lambda _: self._regenerate(),
            "continue": lambda _: self._continue(),
            "edit": lambda _: self._edit(),
            "delete": lambda _: self._delete(),
            "new": lambda _: self._new(),
            "copy": lambda _: self._copy(),
            "pair": self._pair,
            "load": lambda _: self._screen.action_load_again(),
            "help": lambda _: self._help(),
            "quit": lambda _: self._screen.app.exit(),
        }

    # --- settings -------------------------------------------------------------------------------------------------

    def _change(self, settings: ReplySettings) -> None:
        was_exact = self._chat.is_exact
        self._chat.change(settings)
        if self._chat.is_exact != was_exact:
            how = "for speed" if was_exact else "so that passes of several tokens give the same bits as single ones"
            self._screen.say("info", f"The target is loaded again, set up {how}.")
        self._screen.forget_reason()

    def _system(self, text: str) -> None:
        self._chat.kept.set_system(text)
        said = "The system message holds from the next reply on." if text else "There is no system message any longer."
        self._screen.say("info", said)

    # --- the conversation -----------------------------------------------------------------------------------------

    def _regenerate(self) -> None:
        self._chat.regenerate()
        self._screen.fold.show_conversation()

    def _continue(self) -> None:
        self._chat.continue_reply()
        self._screen.fold.continue_reply()

    def _edit(self) -> None:
        self._chat.must_be_idle()
        questions = [message for message in self._chat.conversation.messages if message.role == "user"]
        if not questions:
            raise ValueError("nothing has been asked yet")
        self._editing = questions[-1].id
        self._screen.say("info", "The last question is in the prompt. Enter asks it anew, Esc leaves it as it was.")
        self._screen.prompt.set_text(questions[-1].content)
        self._screen.prompt.focus()

    def send_edited(self, text: str) -> bool:
        """Sends a question that was written again; False where none is."""
        if self._editing is None:
            return False
        try:
            self._chat.edit(self._editing, text)
        except UsageError as error:
            self._screen.say("error", error.message, error.next_step)
            self._screen.prompt.set_text(text)
            return True
        self._editing = None
        self._screen.fold.show_conversation()
        return True

    def stop_editing(self) -> bool:
        """Esc leaves the question as it was; False where none is being written again."""
        was_editing, self._editing = self._editing is not None, None
        if was_editing:
            self._screen.prompt.set_text("")
        return was_editing

    def _delete(self) -> None:
        self._chat.delete_last_exchange()
        self._screen.fold.show_conversation()

    def _new(self) -> None:
        self._chat.begin_new()
        self._screen.fold.begin_figures()
        self._screen.fold.show_conversation()

    def _copy(self) -> None:
        replies = [message for message in self._chat.conversation.messages if message.role == "assistant"]
        if not replies:
            raise ValueError("there is no reply yet")
        self._screen.copy(replies[-1].content)

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
        loaded = opening.files is not None and opening.files.key == key and self._chat.loaded is not None
        if key is not None and not loaded:
            self._screen.open_pair(key)

    def _help(self) -> None:
        from specchat.tui.screens.help import HelpScreen

        self._screen.app.push_screen(HelpScreen())
