"""What the slash commands do to a chat screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specchat.errors import UsageError
from specchat.tui.commands import Command, changed_settings, read_command
from specchat.tui.live_chat import Phase

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
                self._change(command, settings)
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

    def _change(self, command: Command, settings: object) -> None:
        from specchat.core.settings import ReplySettings

        assert isinstance(settings, ReplySettings)
        needs_exact = settings.mode == "exact"
        if needs_exact != self._chat.is_exact and self._chat.phase in (Phase.LOADING, Phase.READING, Phase.WRITING):
            raise UsageError("The mode exact needs the target loaded in another way.", "Stop with Esc first.")
        self._chat.change(settings)
        if needs_exact != self._chat.is_exact and self._chat.can_load_again:
            how = "so that passes of several tokens give the same bits" if needs_exact else "for speed"
            self._screen.say("info", f"The target is loaded again, set up {how}.")
            self._chat.load_again(exact=needs_exact)
        self._screen.forget_reason()

    def _system(self, text: str) -> None:
        self._chat.conversation.system = text
        said = "The system message holds from the next reply on." if text else "There is no system message any longer."
        self._screen.say("info", said)

    # --- the conversation -----------------------------------------------------------------------------------------

    def _idle(self) -> None:
        if self._chat.is_replying:
            raise UsageError("A reply is being written.", "Stop it with Esc first.")

    def _ready(self) -> None:
        self._idle()
        if self._chat.phase is not Phase.READY:
            raise UsageError("No model is loaded yet.", "Wait until it is, or load one with /pair.")

    def _regenerate(self) -> None:
        self._ready()
        self._chat.conversation.regenerate()
        self._screen.show_conversation()
        self._chat.answer()

    def _continue(self) -> None:
        self._ready()
        self._chat.answer(continue_last=True)
        self._screen.continue_reply()

    def _edit(self) -> None:
        self._idle()
        questions = [message for message in self._chat.conversation.messages if message.role == "user"]
        if not questions:
            raise ValueError("nothing has been asked yet")
        self._editing = questions[-1].id
        self._screen.prompt.set_text(questions[-1].content)
        self._screen.prompt.focus()

    def send_edited(self, text: str) -> bool:
        """Sends a question that was written again; False where none is."""
        if self._editing is None:
            return False
        number, self._editing = self._editing, None
        try:
            self._ready()
        except UsageError as error:
            self._editing = number
            self._screen.say("error", error.message, error.next_step)
            self._screen.prompt.set_text(text)
            return True
        self._chat.conversation.edit(number, text)
        self._screen.show_conversation()
        self._chat.answer()
        return True

    def _delete(self) -> None:
        self._idle()
        self._chat.conversation.delete_last_exchange()
        self._screen.show_conversation()

    def _new(self) -> None:
        self._idle()
        self._chat.conversation.clear()
        self._screen.show_conversation()

    def _copy(self) -> None:
        replies = [message for message in self._chat.conversation.messages if message.role == "assistant"]
        if not replies:
            raise ValueError("there is no reply yet")
        self._screen.copy(replies[-1].content)

    # --- screens --------------------------------------------------------------------------------------------------

    def _pair(self, name: str) -> None:
        self._idle()
        if not name:
            self.choose_pair()
            return
        self._screen.open_pair(name)

    def choose_pair(self) -> None:
        """Shows the list of pairs."""
        from specchat.tui.screens.pairs import PairsScreen

        self._screen.app.push_screen(PairsScreen(self._screen.pairs.choices()), self._chosen)

    def _chosen(self, key: str | None) -> None:
        if key is not None:
            self._screen.open_pair(key)

    def _help(self) -> None:
        from specchat.tui.screens.help import HelpScreen

        self._screen.app.push_screen(HelpScreen())
