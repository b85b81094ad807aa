"""Can this draft propose tokens for this target? Only if an id means the same text to both.

Speculative decoding exchanges ids, never text, so the two vocabularies must agree on every id that both have. That is
also all that losslessness needs: what the draft knows of special tokens, or a few ids that only one model has, changes
how often it is right, not what comes out. Such differences are therefore told as notes and do not forbid the pair.

Models of one family often differ in how far their vocabulary is padded: Qwen2.5 has 151,936 rows in its small models
and 152,064 in its large ones. Like llama.cpp we allow 128 ids more or fewer, and any number if all are padding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from specchat.backends.gguf_header import GgufHeader
from specchat.errors import PairMismatchError

MAX_SIZE_DIFFERENCE = 128
_UNUSED = 5
_PADDING = re.compile(rb"\[(PAD|UNUSED|EMPTY_)[ _]?\d+\]|<\|?(PAD|pad|dummy|extra|unused)[_ ]?\d+\|?>|<unused\d+>|")
_SPECIAL = ("bos", "eos", "eot", "eom")


class TokenTable(Protocol):
    """What must be known of a vocabulary to compare it."""

    @property
    def kind(self) -> str:
        """The tokeniser's family, as GGUF names it, such as "gpt2" (byte pairs) or "llama" (SentencePiece)."""

    @property
    def split(self) -> str | None:
        """How text is cut up before it becomes tokens ("qwen2"), where the family has several ways."""

    @property
    def tokens(self) -> Sequence[bytes]:
        """The text of each id, as the model's file writes it."""

    @property
    def types(self) -> Sequence[int]:
        """llama.cpp's type of each id (3 control, 5 unused); empty where it is not known."""

    @property
    def special(self) -> Mapping[str, int | None]:
        """The ids of "bos", "eos", "eot" and "eom", None or left out where the model has none."""

    @property
    def adds_bos(self) -> bool | None:
        """Whether prompts begin with bos; None where the file leaves it to the family's custom."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A `TokenTable` of plain values."""

    kind: str
    tokens: Sequence[bytes]
    types: Sequence[int] = ()
    split: str | None = None
    special: Mapping[str, int | None] = field(default_factory=dict)
    adds_bos: bool | None = None


@dataclass(frozen=True, slots=True)
class TokenDifference:
    """The first id that means two things. The texts are safe to show: control characters are written as escapes."""

    id: int
    target: str
    draft: str


@dataclass(frozen=True, slots=True)
class Compatibility:
    """The verdict on a pair.

    Attributes:
        usable: whether the draft can propose for the target.
        reason: one sentence: why not, or in what way they agree.
        first_difference: the first id that means two things, where there is one.
        target_only: how many ids only the target has.
        draft_only: how many ids only the draft has; they are never proposed.
        notes: differences that make the draft less often right, and do no harm.
    """

    usable: bool
    reason: str
    first_difference: TokenDifference | None = None
    target_only: int = 0
    draft_only: int = 0
    notes: tuple[str, ...] = ()

    def require(self) -> None:
        """Refuses a pair that is not usable.

        Raises:
            PairMismatchError: it is not.
        """
        if not self.usable:
            raise PairMismatchError(self.reason, "Choose a draft of the target's own family, or `--draft ngram`.")


def table_of(header: GgufHeader) -> Vocabulary:
    """The vocabulary that a model's file describes. Reads it from the file: 0.1 s for 152,000 tokens."""
    kind, split = header.text("tokenizer.ggml.model") or "", header.text("tokenizer.ggml.pre")
    special: dict[str, int | None] = {name: header.number(f"tokenizer.ggml.{name}_token_id") for name in _SPECIAL}
    stated = header.metadata.get("tokenizer.ggml.add_bos_token")
    adds_bos = stated if isinstance(stated, bool) else None
    return Vocabulary(kind, header.tokens(), header.token_types(), split, special, adds_bos)


def compare_files(target: GgufHeader, draft: GgufHeader) -> Compatibility:
    """`compare` of the vocabularies that two files describe. Reads neither weights nor llama.cpp: about 0.5 s.

    Raises:
        ModelFileError: a file cannot be read any more.
    """
    return compare(table_of(target), table_of(draft))


def compare(target: TokenTable, draft: TokenTable) -> Compatibility:
    """Whether ``draft`` can propose tokens for ``target``."""
    if not target.tokens or not draft.tokens:
        return Compatibility(False, f"The {'draft' if target.tokens else 'target'} has no vocabulary.")
    common = min(len(target.tokens), len(draft.tokens))
    difference = _first_difference(target.tokens, draft.tokens, common)
    if target.kind != draft.kind:
        reason = f"The target has a vocabulary of the kind {target.kind!r}, the draft one of the kind {draft.kind!r}."
        return Compatibility(False, reason, difference)
    if difference is not None:
        reason = (
            f"Token {difference.id} is {difference.target} for the target and {difference.draft} for the draft:"
            " their vocabularies differ."
        )
        return Compatibility(False, reason, difference)
    return _compare_rest(target, draft, common)


def _compare_rest(target: TokenTable, draft: TokenTable, common: int) -> Compatibility:
    """All ids that both have agree; what of those that one has more, and of the special ones?"""
    more = {"target": len(target.tokens) - common, "draft": len(draft.tokens) - common}
    real = {"target": _first_real(target, common), "draft": _first_real(draft, common)}
    for who in ("target", "draft"):
        if more[who] > MAX_SIZE_DIFFERENCE and real[who] is not None:
            reason = f"The {who} has {more[who]:,} tokens more, from {real[who]} on: their vocabularies differ."
            return Compatibility(False, reason, None, more["target"], more["draft"])
    notes = [
        f"Only the {who} has {more[who]:,} ids, among them the token {real[who]}."
        for who in ("target", "draft")
        if real[who] is not None
    ]
    notes += _special_notes(target, draft)
    if not any(more.values()):
        reason = f"Both have the same {common:,} tokens."
    else:
        who = "target" if more["target"] else "draft"
        padding = " of padding" if real[who] is None else ""
        reason = f"Both have the same {common:,} tokens; the {who} has {more[who]:,} more ids{padding}."
    return Compatibility(True, reason, None, more["target"], more["draft"], tuple(notes))


def _first_difference(target: Sequence[bytes], draft: Sequence[bytes], common: int) -> TokenDifference | None:
    if list(target[:common]) == list(draft[:common]):
        return None
    index = next(index for index in range(common) if target[index] != draft[index])
    return TokenDifference(index, _shown(target[index]), _shown(draft[index]))


def _first_real(table: TokenTable, start: int) -> str | None:
    """The first id from ``start`` on that is more than padding, with its text."""
    for index in range(start, len(table.tokens)):
        unused = index < len(table.types) and table.types[index] == _UNUSED
        if not unused and not _PADDING.fullmatch(table.tokens[index]):
            return f"{index} {_shown(table.tokens[index])}"
    return None


def _special_notes(target: TokenTable, draft: TokenTable) -> list[str]:
    notes = []
    for name in _SPECIAL:
        ours, theirs = target.special.get(name), draft.special.get(name)
        if ours != theirs:
            notes.append(f"{name} is {_named(target, ours)} for the target and {_named(draft, theirs)} for the draft.")
    if None not in (target.adds_bos, draft.adds_bos) and target.adds_bos != draft.adds_bos:
        who = "target" if target.adds_bos else "draft"
        notes.append(f"Only the {who} begins its prompts with bos.")
    if target.split != draft.split:
        notes.append(f"Text is cut into tokens in the way {target.split!r}, and {draft.split!r} for the draft.")
    changed = sum(ours != theirs for ours, theirs in zip(target.types, draft.types, strict=False))
    if changed:
        notes.append(f"{changed:,} tokens are of another type (control, normal, …) for the draft.")
    return notes


def _named(table: TokenTable, token: int | None) -> str:
    if token is None:
        return "missing"
    return f"{token} {_shown(table.tokens[token])}" if 0 <= token < len(table.tokens) else str(token)


def _shown(text: bytes) -> str:
    """The text of a token in quotes, at most 40 characters of it, with nothing that a terminal would obey."""
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text.decode("utf-8", "replace")[:40])
    return f"{shown!r}".replace("\\\\", "\\")
