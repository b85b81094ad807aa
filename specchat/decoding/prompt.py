"""Messages become the tokens of a prompt, by the model's own chat template.

The template is rendered once and its text tokenised as a whole: tokenised in pieces, ids change at the seams. Cut out
are two things only. What looks like a control token but stands in somebody's message is tokenised as plain text, so
that nobody can end a turn or begin a system message by typing it. And earlier replies keep the very ids that the model
wrote, so that its cache still fits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specchat.backends.base import Vocabulary
from specchat.core.settings import ChatMessage
from specchat.decoding.chat_formats import PLAIN, format_for
from specchat.decoding.provenance import Located, locate
from specchat.decoding.template import MessagesRefusedError, render_template
from specchat.errors import TemplateError

NOTE_FORMAT = "The model file has no chat template; it has {name}'s control tokens, so {name}'s format is used."
NOTE_PLAIN = (
    "The model file has no chat template; the chat is written as “User: …” and “Assistant: …”, so replies may run on."
)
NOTE_SYSTEM = "The model's chat template has no place for a system message; it stands in front of the first question."
NOTE_MERGED = "The model's chat template wants questions and answers in turn; questions in a row were joined."
NOTE_CLEANED = "Characters that no model can read (NUL, halves of characters) were replaced."

_UNREADABLE = re.compile(r"[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is to continue. ``notes`` are sentences for the person, ``stop`` strings that end the reply."""

    tokens: list[int]
    text: str
    notes: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()


def render_prompt(vocabulary: Vocabulary, messages: Sequence[ChatMessage], *, continue_last: bool = False) -> Prompt:
    """The prompt for the next reply, or for the rest of the last one.

    Args:
        vocabulary: the model's tokens and its template. Where it has none, the control tokens tell which format to
            use; without those the chat is plain lines that begin with "User:" and "Assistant:".
        messages: the chat.
        continue_last: the last message is a reply that was cut; the prompt ends with its own tokens.

    Raises:
        TemplateError: there are no messages; the template cannot be used, or not for these.
        ValueError: the last message is no reply that could be continued.
    """
    if continue_last and (not messages or messages[-1].role != "assistant"):
        raise ValueError("the last message must be a reply to continue it")
    cleaned = [_cleaned(message) for message in messages]
    notes = () if cleaned == list(messages) else (NOTE_CLEANED,)
    cleaned = [message for message in cleaned if message.role != "system" or message.content.strip()]
    cut_reply = cleaned.pop() if continue_last else None
    if not cleaned:
        raise TemplateError("There is nothing to reply to.", "Write a message first.")
    source, stop, source_notes = _template(vocabulary)
    used, located, used_notes = _rendered(vocabulary, source, cleaned)
    tokens = _Tokens(vocabulary)
    _add(tokens, used, located)
    tokens.begin_with_bos()
    text = located.text
    if cut_reply is not None:
        tokens.add_reply(cut_reply)
        text += cut_reply.content
    return Prompt(tokens.ids, text, (*source_notes, *used_notes, *notes), stop)


def _cleaned(message: ChatMessage) -> ChatMessage:
    content = _UNREADABLE.sub("\ufffd", message.content)
    return message if content == message.content else replace(message, content=content, token_ids=None)


def _template(vocabulary: Vocabulary) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    if vocabulary.chat_template:
        return vocabulary.chat_template, (), ()
    known = format_for(vocabulary.control_texts)
    return known.template, known.stop, (NOTE_PLAIN if known is PLAIN else NOTE_FORMAT.format(name=known.name),)


# --- rendering: what a template does not take is written so that it does ----------------------------------------------


def _rendered(
    vocabulary: Vocabulary, source: str, messages: Sequence[ChatMessage]
) -> tuple[Sequence[ChatMessage], Located, tuple[str, ...]]:
    """The messages as they were taken, where they are in the text, and what had to be changed about them."""
    refusal: TemplateError | None = None
    for used, notes in _variants(messages):
        try:
            located = _locate(vocabulary, source, used)
        except MessagesRefusedError as problem:
            refusal = refusal or problem
            continue
        system_is_lost = used[0].role == "system" and 0 not in located.seen and len(used) > 1
        if not system_is_lost:
            return used, located, notes
    assert refusal is not None  # a variant without a system message cannot lose it
    raise TemplateError(refusal.message, refusal.next_step)


def _variants(messages: Sequence[ChatMessage]) -> Iterator[tuple[Sequence[ChatMessage], tuple[str, ...]]]:
    yield messages, ()
    merged = _merged(messages)
    if merged != messages:
        yield merged, (NOTE_MERGED,)
    if len(messages) > 1 and messages[0].role == "system":
        first, *rest = messages[1:]
        yield [replace(first, content=f"{messages[0].content}\n\n{first.content}"), *rest], (NOTE_SYSTEM,)
        if merged != messages:
            first, *rest = merged[1:]
            folded = [replace(first, content=f"{messages[0].content}\n\n{first.content}"), *rest]
            yield folded, (NOTE_SYSTEM, NOTE_MERGED)


def _merged(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    result: list[ChatMessage] = []
    for message in messages:
        if result and result[-1].role == message.role:
            result[-1] = ChatMessage(message.role, f"{result[-1].content}\n\n{message.content}")
        else:
            result.append(message)
    return result


def _locate(vocabulary: Vocabulary, source: str, messages: Sequence[ChatMessage]) -> Located:
    bos, eos = (_text(vocabulary, token) for token in (vocabulary.bos, vocabulary.eos))

    def render(contents: Sequence[str]) -> str:
        pairs = zip(messages, contents, strict=True)
        return render_template(source, [{"role": m.role, "content": text} for m, text in pairs], bos=bos, eos=eos)

    return locate(render, [message.content for message in messages], vocabulary.control_texts, source)


def _text(vocabulary: Vocabulary, token: int | None) -> str:
    return "" if token is None else vocabulary.piece(token).decode("utf-8", "replace")


# --- tokens -----------------------------------------------------------------------------------------------------------


def _add(tokens: _Tokens, messages: Sequence[ChatMessage], located: Located) -> None:
    """Adds the rendered text, with replies' own ids and plain text where it must be plain."""
    replies = {
        span: messages[index].token_ids for index, span in located.spans.items() if tokens.has_own_ids(messages[index])
    }
    plain = [cut for cut in located.cuts if not any(start <= cut[0] and cut[1] <= end for start, end in replies)]
    at = 0
    for start, end in sorted([*replies, *plain]):
        if start < at:  # it overlaps the one before, which has broken it up already
            continue
        tokens.add_text(located.text[at:start], parse_special=True)
        ids = replies.get((start, end))
        if ids is None:
            tokens.add_plain(located.text[start:end])
        else:
            tokens.ids.extend(ids)
        at = end
    tokens.add_text(located.text[at:], parse_special=True)


class _Tokens:
    """The ids so far; text is added as if it had been tokenised together with what is there."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.ids: list[int] = []
        self._vocabulary = vocabulary
        alone = b"".join(map(vocabulary.piece, vocabulary.tokenize("a", parse_special=False)))
        self._adds_space = alone.startswith(b" ")

    def add_text(self, text: str, *, parse_special: bool) -> None:
        self.ids += self._tokenize(text, parse_special)

    def add_plain(self, text: str) -> None:
        """Adds somebody's text that looks like control tokens; not one of them comes out."""
        ids = self._tokenize(text, parse_special=False)
        if any(map(self._vocabulary.is_control, ids)):  # merging letters can lead back to one
            ids = [token for letter in text for token in self._vocabulary.tokenize(letter, parse_special=False)]
        self.ids += [token for token in ids if not self._vocabulary.is_control(token)]

    def add_reply(self, reply: ChatMessage) -> None:
        if self.has_own_ids(reply):
            self.ids.extend(reply.token_ids or ())
        else:
            self.add_plain(reply.content)

    def has_own_ids(self, message: ChatMessage) -> bool:
        """Whether a message's ids are there and still give its content."""
        if message.token_ids is None:
            return False
        written = (token for token in message.token_ids if not self._vocabulary.is_control(token))
        return b"".join(map(self._vocabulary.piece, written)).decode("utf-8", "replace") == message.content

    def begin_with_bos(self) -> None:
        """Exactly one, where the model wants one; a template may have written it already."""
        bos = self._vocabulary.bos
        if bos is None:
            return
        if self._vocabulary.add_bos:
            self.ids.insert(0, bos)
        while self.ids[:2] == [bos, bos]:
            del self.ids[0]

    def _tokenize(self, text: str, parse_special: bool) -> list[int]:
        if not text:
            return []
        tokenize = self._vocabulary.tokenize
        if self._adds_space and self.ids and not self._vocabulary.is_control(self.ids[-1]):
            # these vocabularies put a space before every text; after a line end that is taken away again, they do not
            head = tokenize("\n", parse_special=False)
            whole = tokenize("\n" + text, parse_special=parse_special)
            if whole[: len(head)] == head:
                return whole[len(head) :]
        return tokenize(text, parse_special=parse_special)
