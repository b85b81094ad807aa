"""Loads a pair with llama.cpp, and says what had to be decided or given up on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from specchat.backends.base import Drafter
from specchat.backends.combined import CombinedDrafter
from specchat.backends.copying import CopyDrafter
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.gguf_header import GgufHeader, read_header
from specchat.backends.gguf_memory import DEFAULT_ROWS, repacked_types
from specchat.backends.identical_passes import largest_identical_pass
from specchat.backends.llama import BuildFacts, LlamaLanguageModel, LlamaModel, build, devices, load_model
from specchat.backends.llama_library import log
from specchat.backends.placement import SMALLEST_CONTEXT, Placement, Wish, expected_shares, place, usable_by_each
from specchat.core.experience import Experience
from specchat.engine.interface import Device, DeviceList, Load, ModelDescription
from specchat.engine.pair import LoadedPair, OnProgress, check_same_vocabulary
from specchat.errors import LoadError, MemoryShortError, ModelFileError, PairMismatchError

MAX_DRAFT_TOKENS = DEFAULT_ROWS - 1
"""The largest γ. Rows of logits cost memory, so a context has room for one pass of this many and one more."""
_LARGEST_EXACT_PASS = 9
"""Larger ones are not tried: on two cores trying 9 takes some 20 seconds, and much larger passes bring little more."""


def list_devices() -> DeviceList:
    """What llama.cpp can use on this machine."""
    facts = build()
    return DeviceList(
        tuple(Device(**asdict(device)) for device in devices()),
        facts.version,
        facts.system_info,
        () if facts.advice is None else (facts.advice,),
    )


def tell_errors_to(on_error: Callable[[str], object]) -> None:
    """Has llama.cpp's errors told at once: it may abort right after, and then they are what the person needs."""
    log.on_error = on_error


def load_pair(command: Load, on_progress: OnProgress) -> LoadedPair:
    """Loads what the command names. A draft that cannot be loaded is left out, and a note says so.

    Raises:
        ModelFileError: the target's file is missing or cannot be used.
        LoadError: llama.cpp refused the target, or memory is short for it.
        PairMismatchError: the draft's vocabulary is not the target's.
        Interrupted: ``on_progress`` returned False.
    """
    return _Loading(command, on_progress).run()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """One model with its context."""

    model: LlamaModel
    context: LlamaLanguageModel

    @property
    def description(self) -> ModelDescription:
        facts = asdict(self.model.facts)
        facts["memory_bytes"] += self.context.memory_bytes
        return ModelDescription(**facts)


class _Loading:
    def __init__(self, command: Load, on_progress: OnProgress) -> None:
        self._command = command
        self._on_progress = on_progress
        self._notes: list[str] = []

    def run(self) -> LoadedPair:
        facts = build()
        if facts.note is not None:
            self._notes.append(facts.note)
        placement = self._place(facts)
        with ExitStack() as stack:
            target = self._load_target(stack, placement)
            setup = self._setup(target, facts)
            experience = self._experience(placement, setup)
            wanted = not self._command.draft_if_it_pays or experience.could_gain(MAX_DRAFT_TOKENS)
            draft = self._load_draft(stack, target, placement) if wanted else None
            identical_pass = self._identical_pass(target)
            models = stack.pop_all()
        pair = LoadedPair(
            target=target.context,
            description=target.description,
            drafters=_drafters(target, draft),
            draft=None if draft is None else draft.context,
            draft_description=None if draft is None else draft.description,
            identical_pass=identical_pass,
            build=facts.version,
            notes=tuple(self._notes),
            close=models.close,
            experience=experience,
            setup=setup,
        )
        if wanted or placement.draft is None:
            return pair
        return replace(
            pair,
            draft_left_out=_left_out(experience),
            load_draft=lambda pair, on_progress: self._add_draft(pair, on_progress, models, target, placement),
        )

    def _add_draft(
        self, pair: LoadedPair, on_progress: OnProgress, models: ExitStack, target: _Loaded, placement: Placement
    ) -> LoadedPair:
        """The pair with the draft that was left out; without it, and with the reason, where it cannot be loaded.

        Its notes are the new ones only.
        """
        self._on_progress = on_progress
        try:
            draft = self._load_draft(models, target, placement)
        except PairMismatchError as error:
            draft = None
            self._notes.append(_unused(error))
        return replace(
            pair,
            drafters=_drafters(target, draft),
            draft=None if draft is None else draft.context,
            draft_description=None if draft is None else draft.description,
            load_draft=None,
            draft_left_out=self._notes[-1] if draft is None else None,
            notes=tuple(self._notes[len(pair.notes) :]),
        )

    def _setup(self, target: _Loaded, facts: BuildFacts) -> str:
        """Everything but the pair that costs depend on."""
        command, model = self._command, target.description
        threads = "default" if command.threads is None else command.threads
        exact = ", exact" if command.exact else ""
        where = f"{model.device}, {model.gpu_layers} layers, {threads} threads"
        return f"{where}, {target.context.n_ctx} tokens{exact}, {facts.version}"

    def _experience(self, placement: Placement, setup: str) -> Experience:
        """What was learned in this setup before, or what can be expected of it."""
        experience = Experience(*expected_shares(placement.target, placement.draft))
        for known in self._command.learned:
            # what another version wrote is learned anew
            with suppress(ValueError):
                if known.setup == setup:
                    experience.restore(known.experience)
        return experience

    def _place(self, facts: BuildFacts) -> Placement:
        """Decides the context and which layers go to GPUs, before anything is loaded."""
        command = self._command
        target = read_header(command.target)
        trained = target.n_ctx_train
        if command.n_ctx is not None and trained is not None and command.n_ctx > trained:
            self._notes.append(f"{target.name} was trained on {trained} tokens of context; that many are used.")
        wish = Wish(
            n_ctx=command.n_ctx,
            gpu_layers=command.gpu_layers,
            repacked=frozenset() if command.exact else repacked_types(facts.system_info),
            draft_shares_weights=self._drafts_for_itself(),
        )
        draft = self._draft_header()
        if draft is not None and draft.tensor_bytes > target.tensor_bytes:
            self._notes.append("The draft is larger than its target: drafting cannot pay. Exchange them.")
        of_target, of_draft = usable_by_each(devices(), command.target_device, command.draft_device)
        placement = place(target, draft, of_target, wish, draft_devices=of_draft)
        self._notes += placement.notes
        if not placement.fits:
            need = f"{placement.in_ram / 2**30:.1f} GiB"
            self._notes.append(f"The pair needs {need} of memory, more than is free: it may be slow, or be ended.")
        return placement

    def _draft_header(self) -> GgufHeader | None:
        """The draft's header; None where there is no draft or its file cannot be read, which a note then says."""
        if self._command.draft is None:
            return None
        try:
            return read_header(self._command.draft)
        except ModelFileError as error:
            self._notes.append(_unused(error))
            return None

    @property
    def _draft_device(self) -> str | None:
        """The target's, unless the draft has one of its own."""
        return self._command.draft_device or self._command.target_device

    def _drafts_for_itself(self) -> bool:
        command = self._command
        if command.draft is None or self._draft_device != command.target_device:
            return False
        return _same_file(command.draft, command.target)

    def _load_target(self, stack: ExitStack, placement: Placement) -> _Loaded:
        command = self._command
        model = stack.enter_context(
            load_model(
                command.target,
                gpu_layers=placement.target.gpu_layers,
                device=command.target_device,
                repack=not command.exact,
                progress=lambda fraction: self._on_progress("target", fraction),
            )
        )
        return _Loaded(model, self._context_that_fits(model, placement.n_ctx))

    def _context_that_fits(self, model: LlamaModel, n_ctx: int) -> LlamaLanguageModel:
        """A context of the wanted size; a smaller one where memory is short and nobody asked for this size."""
        size = n_ctx
        while True:
            try:
                context = self._context(model, size)
            except MemoryShortError:
                if self._command.n_ctx is not None or size // 2 < SMALLEST_CONTEXT:
                    raise
                size //= 2
                continue
            if size < n_ctx:
                self._notes.append(f"There is memory for a context of {size} tokens, not {n_ctx}.")
            return context

    def _context(self, model: LlamaModel, n_ctx: int) -> LlamaLanguageModel:
        return model.context(
            n_ctx=n_ctx, max_logits=MAX_DRAFT_TOKENS + 1, threads=self._command.threads, exact=self._command.exact
        )

    def _load_draft(self, stack: ExitStack, target: _Loaded, placement: Placement) -> _Loaded | None:
        if placement.draft is None:
            return None
        try:
            with ExitStack() as own:
                model = self._draft_model(own, target, placement.draft.gpu_layers)
                _check_vocabularies(target.model, model)
                draft = _Loaded(model, self._context(model, target.context.n_ctx))
                stack.push(own.pop_all())
                return draft
        except (LoadError, ModelFileError) as error:
            self._notes.append(_unused(error))
            return None

    def _draft_model(self, stack: ExitStack, target: _Loaded, gpu_layers: int) -> LlamaModel:
        """The draft's weights; the target's own where it drafts for itself."""
        command = self._command
        assert command.draft is not None
        if self._drafts_for_itself():
            self._on_progress("draft", 1.0)
            return target.model
        return stack.enter_context(
            load_model(
                command.draft,
                gpu_layers=gpu_layers,
                device=self._draft_device,
                progress=lambda fraction: self._on_progress("draft", fraction),
            )
        )

    def _identical_pass(self, target: _Loaded) -> int:
        return largest_identical_pass(target.context, _LARGEST_EXACT_PASS) if self._command.exact else 1


def _check_vocabularies(target: LlamaModel, draft: LlamaModel) -> None:
    """`check_same_vocabulary`, four times faster where the files themselves agree: pieces are read one by one."""
    kinds = {model.header.text("tokenizer.ggml.model") for model in (target, draft)}
    tables = [model.header.tokens() for model in (target, draft)]
    common = min(len(table) for table in tables)
    if len(kinds) > 1 or tables[0][:common] != tables[1][:common]:
        check_same_vocabulary(target.vocabulary, draft.vocabulary)


def _drafters(target: _Loaded, draft: _Loaded | None) -> dict[str, Drafter]:
    copy = CopyDrafter(target.context.vocabulary)
    if draft is None:
        return {"ngram": copy, "auto": CombinedDrafter([copy])}
    model = ModelDrafter(draft.context, target.context.vocabulary.n_vocab)
    return {"ngram": copy, "draft": model, "auto": CombinedDrafter([copy], model)}


def _left_out(experience: Experience) -> str:
    needed = experience.break_even(MAX_DRAFT_TOKENS + 1)
    even = "none" if needed is None else f"{needed:.2f}"
    return f"fast: no draft model is loaded, it would cost more than it saves (break-even {even})"


def _unused(error: LoadError | ModelFileError | PairMismatchError) -> str:
    return f"The draft is not used: {error.message} {error.next_step}"


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
