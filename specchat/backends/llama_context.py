"""A llama.cpp context as a `LanguageModel`: passes, cuts, and the bookkeeping that both must agree with.

What llama.cpp's cache holds and what `LlamaLanguageModel.tokens` says are the same at every return, also after an
error or an interruption: the cache is asked (`llama_memory_seq_pos_max`), and what is in doubt is dropped.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import Interrupted, PassInput
from specchat.backends.llama_batch import Batch
from specchat.backends.llama_callbacks import StopCallback
from specchat.backends.llama_checkpoints import Checkpoints
from specchat.backends.llama_library import llama_cpp, log
from specchat.backends.llama_logits import LogitViews
from specchat.errors import DecodeError

if TYPE_CHECKING:
    from specchat.backends.llama import LlamaModel
    from specchat.backends.llama_vocabulary import LlamaVocabulary

_OK, _NO_ROOM, _STOPPED, _INVALID = 0, 1, 2, -1
_FAULT: Final = "This is a fault in specchat: please report it."
_RELOAD: Final = "Load the pair again; if it happens again, choose another model or another device."


@dataclass(slots=True)
class _Sequence:
    """What the cache holds of one sequence."""

    tokens: list[int] = field(default_factory=list)
    last_pass: int = 0
    """How many tokens the last pass added: so far back the recurrent snapshots reach."""
    is_undoable: bool = False
    """Whether that pass may be undone, and so what was before it is remembered already."""
    checkpoints: Checkpoints | None = None


class LlamaLanguageModel:
    """A model with a cache, by sequence (see `specchat.backends.base.LanguageModel`). Made by `LlamaModel.context`.

    Attributes:
        model: the loaded model.
        vocabulary: its tokens.
        n_ctx: tokens that a sequence can hold.
        max_batch: tokens that a pass can take.
        max_logits: rows of logits that a pass can return.
        n_sequences: how many sequences there are, numbered from 0.
        memory_bytes: what llama.cpp allocated for cache and computation.
    """

    def __init__(
        self,
        model: LlamaModel,
        pointer: Any,
        *,
        n_ctx: int,
        max_logits: int,
        n_sequences: int,
        memory_bytes: int,
        close: Callable[[Any], None],
    ) -> None:
        self.model = model
        self.vocabulary: LlamaVocabulary = model.vocabulary
        self.n_ctx = n_ctx
        self.max_batch: int = llama_cpp.llama_n_batch(pointer)
        self.max_logits = min(max_logits, self.max_batch)
        self.n_sequences = n_sequences
        self.memory_bytes = memory_bytes
        self._pointer = pointer
        self._free = weakref.finalize(self, close, pointer)
        self._memory = llama_cpp.llama_get_memory(pointer)
        self._micro_batch: int = llama_cpp.llama_n_ubatch(pointer)
        self._batch = Batch(self.max_batch)
        self._views = LogitViews(pointer, self.vocabulary.n_vocab, self.max_logits)
        self._stop = StopCallback()
        self._snapshots: int = llama_cpp.llama_n_rs_seq(pointer)
        self._sequences = [
            _Sequence(checkpoints=Checkpoints(pointer, number) if model.keeps_running_state else None)
            for number in range(n_sequences)
        ]

    def tokens(self, sequence: int = 0) -> Sequence[int]:
        """The tokens that the cache holds for a sequence. The list itself: do not change it."""
        return self._sequences[sequence].tokens

    def num_read(self, sequence: int = 0) -> int:
        """How many tokens the cache holds, with the micro-batches that a pass that is going on has finished."""
        begun: int = llama_cpp.llama_memory_seq_pos_max(self._memory, sequence) + 1
        return max(len(self.tokens(sequence)), begun - self._micro_batch)

    def decode(self, inputs: Sequence[PassInput]) -> list[NDArray[np.float32]]:
        """Evaluates tokens of one or more sequences in one pass.

        Returns:
            For each input the logits ``[num_logits, n_vocab]`` of its last tokens: read-only views of llama.cpp's
            own buffer, valid until the next call.

        Raises:
            DecodeError: a guard or llama.cpp refused. `tokens` says what is in the cache now.
            Interrupted: the function given to `interruptible` said so.
        """
        pointer = self._open()
        self._check(inputs)
        if self._stop.asked():
            self._stop.raise_error()
            raise Interrupted
        for each in inputs:
            self._save_checkpoint(each)
        self._batch.fill((each, len(self.tokens(each.sequence))) for each in inputs)
        mark = log.mark()
        code = llama_cpp.llama_decode(pointer, self._batch.struct)
        if code != _OK:
            raise self._failed(code, inputs, mark)
        for each in inputs:
            held = self._sequences[each.sequence]
            held.tokens.extend(each.tokens)
            held.last_pass, held.is_undoable = len(each.tokens), each.may_be_undone
        return self._read_logits(inputs, mark)

    def truncate(self, sequence: int, length: int) -> int:
        """Cuts a sequence to its first ``length`` tokens, or to fewer where only that is certain to be right.

        Returns:
            How many tokens the cache holds now; the rest must be evaluated again.
        """
        self._open()
        held = self._sequences[sequence]
        if length >= len(held.tokens):
            return len(held.tokens)
        kept = max(0, length)
        if held.checkpoints is None:
            if not self._window_reaches(sequence, kept) or not self._remove_from(sequence, kept):
                kept = self._empty(sequence)
        elif len(held.tokens) - kept < min(held.last_pass, self._snapshots + 1) and self._remove_from(sequence, kept):
            held.checkpoints.forget_after(kept)
        else:
            kept = self._back_to_checkpoint(sequence, kept)
        del held.tokens[kept:]
        held.last_pass, held.is_undoable = 0, False
        return kept

    def copy(self, source: int, destination: int) -> None:
        """Makes a sequence hold what another one holds, so that several replies share one reading of the prompt.

        Raises:
            DecodeError: llama.cpp refused; the destination is empty then.
        """
        self._open()
        if source == destination:
            return
        self._empty(destination)
        target = self._sequences[destination]
        target.tokens.clear()
        target.last_pass, target.is_undoable = 0, False
        if self._snapshots:
            # after a cut the state is in a snapshot, which llama_memory_seq_cp does not look for
            if not Checkpoints.copy(self._pointer, source, destination):
                self._empty(destination)
                raise DecodeError("llama.cpp could not copy a sequence.", _RELOAD)
        else:
            llama_cpp.llama_memory_seq_cp(self._memory, source, destination, -1, -1)
        target.tokens.extend(self._sequences[source].tokens)

    def interruptible(self, should_stop: Callable[[], bool] | None) -> None:
        """Passes from here on can be stopped once ``should_stop()`` is true; None ends that.

        On the CPU a pass stops half-way, and whole micro-batches are kept. On a GPU, and with a model whose cache
        cannot be cut, it is asked before each pass only.
        """
        pointer = self._open()
        self._stop.should_stop = should_stop
        halfway = should_stop is not None and not self.model.keeps_running_state
        callback = self._stop.callback if halfway else self._stop.none
        llama_cpp.llama_set_abort_callback(pointer, callback, None)

    def close(self) -> None:
        """Frees the context. Safe to call twice; nothing else may be called after it."""
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Any:
        if not self._free.alive:
            raise DecodeError("The model is closed.", "Load the pair again.")
        return self._pointer

    def _check(self, inputs: Sequence[PassInput]) -> None:
        """What llama.cpp would abort on, or refuse with a bare number (decision 13 of the architecture)."""
        total = rows = 0
        for each in inputs:
            total += len(each.tokens)
            rows += each.num_logits
        if not 0 < total <= self.max_batch:
            raise DecodeError(f"A pass of {total} tokens was asked for; it can take 1 to {self.max_batch}.", _FAULT)
        if rows > self.max_logits:
            raise DecodeError(f"{rows} rows of logits were asked for; a pass can return {self.max_logits}.", _FAULT)
        if len(inputs) > 1 and len({each.sequence for each in inputs}) < len(inputs):
            raise DecodeError("A sequence was asked for twice in one pass.", _FAULT)
        for each in inputs:
            if not 0 <= each.sequence < self.n_sequences or not 0 <= each.num_logits <= len(each.tokens):
                raise DecodeError(
                    f"Sequence {each.sequence} with {each.num_logits} rows for {len(each.tokens)} tokens cannot be.",
                    _FAULT,
                )
            if len(self.tokens(each.sequence)) + len(each.tokens) > self.n_ctx:
                raise DecodeError(
                    f"The context of {self.n_ctx} tokens is full.", "Start a new chat or choose a larger context."
                )
            for token in (min(each.tokens, default=0), max(each.tokens, default=0)):
                if not 0 <= token < self.vocabulary.n_vocab:
                    raise DecodeError(f"There is no token {token} in this model's vocabulary.", _FAULT)

    def _read_logits(self, inputs: Sequence[PassInput], mark: int) -> list[NDArray[np.float32]]:
        """The rows that were asked for: they lie one after another in llama.cpp's buffer, in the order of the batch."""
        ends = list(accumulate(each.num_logits for each in inputs))
        rows = ends[-1]
        if rows == 0:
            llama_cpp.llama_synchronize(self._pointer)  # a GPU may still be at it: the time belongs to this pass
            return [np.empty((0, self.vocabulary.n_vocab), np.float32) for _ in inputs]
        every = self._views.read(self._batch.first_wanted, self._batch.last_wanted, rows)
        if every is None:
            raise DecodeError(f"llama.cpp returned no logits. {log.reason(mark)}".strip(), _RELOAD)
        return [every[end - each.num_logits : end] for each, end in zip(inputs, ends, strict=True)]

    def _failed(self, code: int, inputs: Sequence[PassInput], mark: int) -> Exception:
        """Makes the bookkeeping true again after llama.cpp's return code, and says what happened."""
        for each in inputs:
            self._find_out(each)
        if code == _STOPPED:
            self._stop.raise_error()
            return Interrupted()
        reason = log.reason(mark)
        because = f": {reason}" if reason else ""
        if code == _NO_ROOM:
            return DecodeError(
                f"There is no room for {sum(len(each.tokens) for each in inputs)} more tokens in the cache{because}.",
                "Start a new chat or choose a larger context.",
            )
        kind = "refused the tokens" if code == _INVALID else f"failed (code {code})"
        return DecodeError(f"llama.cpp {kind}{because}.", _RELOAD)

    def _find_out(self, each: PassInput) -> None:
        """Asks the cache what is left of a pass that did not finish. A running state in doubt is never kept."""
        held = self._sequences[each.sequence]
        held.last_pass, held.is_undoable = 0, False
        if held.checkpoints is not None:
            del held.tokens[self._back_to_checkpoint(each.sequence, len(held.tokens)) :]
            return
        asked = [*held.tokens, *each.tokens]
        kept = llama_cpp.llama_memory_seq_pos_max(self._memory, each.sequence) + 1
        if kept > len(asked) or (kept and not self._window_reaches(each.sequence, kept)):
            kept = self._empty(each.sequence)
        held.tokens[:] = asked[:kept]

    def _window_reaches(self, sequence: int, length: int) -> bool:
        """Whether all that the token at position ``length`` attends to is still in the cache.

        Layers with a sliding window drop what no later token can see. A cut deep into the past then finds nothing to
        attend to, while llama.cpp says that it succeeded.
        """
        oldest = llama_cpp.llama_memory_seq_pos_min(self._memory, sequence)
        needed = max(0, length - self.model.sliding_window) if self.model.sliding_window else 0
        return bool(0 <= oldest <= needed)

    def _remove_from(self, sequence: int, length: int) -> bool:
        """Removes the tokens from position ``length`` on; whether the cache now ends just before it."""
        removed = llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1)
        return bool(removed and llama_cpp.llama_memory_seq_pos_max(self._memory, sequence) == length - 1)

    def _empty(self, sequence: int) -> int:
        """Removes a whole sequence, which never fails; returns 0."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        held = self._sequences[sequence]
        if held.checkpoints is not None:
            held.checkpoints.forget_after(0)
        return 0

    def _save_checkpoint(self, each: PassInput) -> None:
        """Drafted tokens are often taken back: one pass of several, or several of one. Small passes have snapshots."""
        held = self._sequences[each.sequence]
        if held.checkpoints is not None:
            begins = each.may_be_undone and not held.is_undoable
            often_undone = begins or len(each.tokens) > self._snapshots + 1
            held.checkpoints.before(len(held.tokens), often_undone=often_undone)

    def _back_to_checkpoint(self, sequence: int, length: int) -> int:
        """Restores the latest state of at most ``length`` tokens; returns how many it stands for."""
        checkpoints = self._sequences[sequence].checkpoints
        kept = checkpoints.restore(length) if checkpoints is not None else 0
        # the running state is back; a hybrid model's keys and values after it must go
        return kept if kept and self._remove_from(sequence, kept) else self._empty(sequence)
