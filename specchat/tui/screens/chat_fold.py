"""What happens in a chat, folded into its transcript and its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from specchat.chat.figures import figures_line
from specchat.core.events import Finished, Round
from specchat.core.safe_text import safe_text
from specchat.core.stats import ReplyStats
from specchat.tui.blocks import Notice, Question
from specchat.tui.live_chat import LiveChat
from specchat.tui.occurrences import Noted, Occurrence, PairLoaded, ReplyBegan, ReplyEnded, WentWrong, Wrote
from specchat.tui.pair_opening import PairOpening
from specchat.tui.reply_block import Reply
from specchat.tui.widgets.chat_pane import ChatPane

Kind = Literal["info", "warning", "error"]


class ChatFold:
    """The transcript and the figures of one chat.

    Attributes:
        stats: the figures of the reply that is being written, or of the last one.
        why: the engine's last sentence on the draft length, for the settings of now.
    """

    def __init__(self, pane: ChatPane, chat: LiveChat, opening: PairOpening) -> None:
        self.stats = ReplyStats()
        self.why = ""
        self._pane = pane
        self._chat = chat
        self._opening = opening
        self._reply: Reply | None = None
        self._waiting: list[Question] = []

    def take(self, occurrences: list[Occurrence]) -> None:
        """Takes what has happened, and shows it."""
        for occurrence in occurrences:
            self._take(occurrence)
        if self._reply is not None and occurrences:
            self._pane.transcript.flush(self._reply)

    def say(self, kind: Kind, message: str, next_step: str = "", *, before: Reply | None = None) -> None:
        """A notice in the chat, before a reply or at the end; in passing also on the screen where that is elsewhere."""
        is_seen = self._pane.transcript.following and not self._pane.is_reading
        self._pane.transcript.add(Notice(kind, message, next_step), before=before)
        if not is_seen:
            said = safe_text(f"{message} {next_step}".strip())
            self._pane.notify(said, severity="information" if kind == "info" else kind, markup=False)

    def ask(self, text: str) -> None:
        """A question is sent, or waits."""
        waits = "waits until this reply is over" if self._chat.is_replying else "waits until the model is ready"
        sent = self._chat.ask(text)
        question = Question(text, "" if sent else waits)
        head = self._chat.conversation.head
        if not sent:
            self._waiting.append(question)
        elif head is not None:
            question.stands_for(head.id, self._chat.conversation.version(head.id))
        self._pane.transcript.add(question)
        self._pane.transcript.to_end()

    def forget_waiting(self) -> None:
        """The questions that wait are not asked after all."""
        for question in self._waiting:
            self._pane.transcript.remove_block(question)
        self._waiting = []

    def show_conversation(self) -> None:
        """Shows the current branch from its beginning."""
        self._pane.show_conversation(self._chat.conversation)
        for question in self._waiting:
            self._pane.transcript.add(question)

    def begin_figures(self) -> None:
        """New figures; the plain speed of this pair still holds, until a newer one comes."""
        plain = self.stats.plain
        self.stats = ReplyStats()
        if plain is not None:
            self.stats.plain = replace(plain, source="measured earlier with this pair")

    def continue_reply(self) -> None:
        """The next reply goes on in the last one's place."""
        blocks = self._pane.transcript.index.blocks
        self._reply = next((block for block in reversed(blocks) if isinstance(block, Reply)), None)
        if self._reply is not None:
            self._reply.reopen()
            self._pane.transcript.changed(self._reply)

    def _take(self, occurrence: Occurrence) -> None:
        match occurrence:
            case PairLoaded(loaded):
                if not self._chat.is_replying:  # else it is a draft that was left out until now
                    self.why = ""
                    self.stats = ReplyStats()  # another pair, or another set-up: its plain speed is not known
                if self._opening.files is not None:
                    self._chat.kept.set_pair(self._opening.files, loaded.build)
                for note in loaded.notes:
                    self.say("info", note)
            case ReplyBegan():
                self._begin(occurrence)
            case Wrote(event):
                self.stats.add(event)
                if isinstance(event, Round):
                    self.why = event.why or self.why
                    if self._reply is not None:
                        self._reply.add(event)
            case ReplyEnded():
                self._end(occurrence)
            case Noted(text):
                self.say("info", text, before=self._reply)
            case WentWrong(message, next_step):
                self.say("error", message, next_step)

    def _begin(self, began: ReplyBegan) -> None:
        if began.question is not None and self._waiting:
            question = self._waiting.pop(0)
            question.answer()
            question.stands_for(began.question.id, self._chat.conversation.version(began.question.id))
            self._pane.transcript.changed(question)
        self.begin_figures()
        if self._reply is None:
            self._reply = Reply()
            self._pane.transcript.add(self._reply)
        self._reply.message_id = began.place.id

    def _end(self, ended: ReplyEnded) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if ended.events and isinstance(ended.events[-1], Finished):
            self.stats.add(ended.events[-1])
        message, head = ended.message, self._chat.conversation.head
        if message is None and ended.place.continues is not None:
            message = head  # it was to be continued, and not one token came
        if message is not None:
            figures = figures_line(self._chat.conversation, message)
            reply.stands_for(message.id, self._chat.conversation.version(message.id))
            reply.finish(message.content, figures or "cut: the engine stopped")
            self._pane.transcript.changed(reply)
            self._pane.chat_changed()
        elif head is not None and head.id == ended.place.parent:
            self._pane.transcript.remove_block(reply)
        else:
            self.show_conversation()  # it was to be another answer: what stood there is back
