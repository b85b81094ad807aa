"""Cuts a draft from its own target: a file with fewer of its layers, and everything else as it was.

It has the target's vocabulary for certain, and needs no training; how often it is right is another matter.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from specchat.backends.gguf_header import GgufHeader, check_can_chat, read_header
from specchat.backends.gguf_layout import (
    MAGIC,
    VERSION,
    Layout,
    RawEntry,
    RawTensor,
    aligned,
    array_length,
    flags_entry,
    number_entry,
    picked,
    read_layout,
    text_entry,
)
from specchat.errors import CancelledError, DiskFullError, ModelFileError, SpecchatError, UsageError
from specchat.files import sync_folder
from specchat.pairs.fetching import size_text

_CHUNK = 4 << 20
_LAYER = re.compile(r"blk\.(\d+)\.(.+)", re.DOTALL)
_TIED_TO_DEPTH = {
    "nextn_predict_layers": "layers that predict ahead",
    "attention.shared_kv_layers": "layers that share their caches",
    "embedding_length_per_layer_input": "an embedding for every layer",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """What was written: the file, its size in bytes, and which layers of the target it has."""

    path: Path
    size: int
    layers: tuple[int, ...]
    n_layers_before: int


def kept_layers(n_layers: int, keep: int) -> tuple[int, ...]:
    """Which layers stay: the first ones and the last ones, of an odd number one more of the first.

    Raises:
        UsageError: there would be none, or no fewer than before.
    """
    if not 1 <= keep < n_layers:
        raise UsageError(
            f"The model has {n_layers} layers; a draft with {keep} of them is not possible.",
            f"Choose between 1 and {n_layers - 1}: --layers {max(1, n_layers // 4)}, for instance.",
        )
    first = keep - keep // 2
    return (*range(first), *range(n_layers - keep // 2, n_layers))


def cut_draft(
    target: Path,
    output: Path,
    keep: int,
    *,
    overwrite: bool = False,
    progress: Callable[[float], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Cut:
    """Writes ``output``, whole or not at all. The target is only read, a few megabytes at a time.

    Args:
        target: a GGUF file; the first part where it is split.
        output: the file to write; one file, also where the target is split.
        keep: how many layers to keep.
        overwrite: whether ``output`` may be there already.
        progress: told which part is written, 0 to 1.
        cancelled: asked a few times a second whether to stop.

    Raises:
        ModelFileError: the target cannot be read, cannot chat, or cannot be cut.
        UsageError: the number of layers, or the output, makes no sense.
        DiskFullError: there is no room.
        CancelledError: ``cancelled`` said so.
        SpecchatError: the system refused to write.
    """
    header = read_header(target)
    check_can_chat(header)
    layers = kept_layers(header.n_layers or 0, keep)
    _check_can_be_cut(header, layers)
    _check_output(output, header, overwrite)
    layouts = [read_layout(part) for part in header.parts]
    entries = _entries(header, layouts[0], layers)
    tensors = _tensors(layouts, layers)
    head, offsets = _head(entries, tensors, layouts[0].alignment)
    size = len(head) + (offsets[-1] + tensors[-1][1].n_bytes if tensors else 0)
    with _system_errors(output):
        folder = output.absolute().parent
        free = shutil.disk_usage(folder).free
        if free < size * 1.02:
            raise DiskFullError(
                f"{folder} has {size_text(free)} free; {size_text(size)} are needed.",
                "Free some room, or write it to another disk (-o).",
            )
        with _temporary(output) as (file, path):
            _write(file, head, tensors, offsets, progress, cancelled)
            file.close()
            check_can_chat(read_header(path))  # what was written can be read again
            path.replace(output)
        sync_folder(folder)
    return Cut(output, size, layers, header.n_layers or 0)


def _check_can_be_cut(header: GgufHeader, layers: Sequence[int]) -> None:
    """Refuses networks whose layers depend on how many there are, or differ by their place in a way that would change.

    Raises:
        ModelFileError: it is one.
    """
    for key, what in _TIED_TO_DEPTH.items():
        if header.size(key):
            raise _not_cut(header, f"it has {what}")
    parts: dict[int, set[str]] = defaultdict(set)
    for tensor in header.tensors:
        if found := _LAYER.fullmatch(tensor.name):
            parts[int(found[1])].add(found[2])
    if isinstance(header.metadata.get(f"{header.architecture}.attention.head_count_kv"), tuple):
        return  # the file says layer by layer what each is, and will say it of those that stay
    if any(parts[layer] != parts[place] for place, layer in enumerate(layers)):
        raise _not_cut(header, "its layers are of several kinds, by their place")


def _not_cut(header: GgufHeader, reason: str) -> ModelFileError:
    return ModelFileError(
        f"{header.path.name} ({header.architecture}) cannot be cut: {reason}.",
        "Choose a smaller model of its family as draft, or --draft ngram.",
    )


def _check_output(output: Path, header: GgufHeader, overwrite: bool) -> None:
    if output.is_dir():
        raise UsageError(f"{output} is a folder.", "Name the file to write.")
    if not output.exists():
        return
    if any(output.samefile(part) for part in header.parts):
        raise UsageError(f"{output} is the target itself.", "Choose another name.")
    if not overwrite:
        raise UsageError(f"{output} is there already.", "Choose another name, or add --force to write over it.")


def _entries(header: GgufHeader, layout: Layout, layers: Sequence[int]) -> list[RawEntry]:
    """The metadata, with what depends on the layers changed, and what tells of parts left out."""
    architecture, before = header.architecture, header.n_layers or 0
    pattern = f"{architecture}.attention.sliding_window_pattern"
    changed = {
        f"{architecture}.block_count": number_entry(f"{architecture}.block_count", len(layers)),
        "general.name": text_entry("general.name", f"{header.name} ({len(layers)} of {before} layers)"),
    }
    if any(header.has_window):  # which layers have the window is no longer what their place says
        changed[pattern] = flags_entry(pattern, [header.has_window[layer] for layer in layers])
    entries = []
    for entry in layout.entries:
        if entry.key.startswith("split."):
            continue
        if entry.key in changed:
            entries.append(changed.pop(entry.key))
        elif entry.key.startswith(f"{architecture}.") and array_length(entry) == before > 1:
            entries.append(picked(entry, layers))
        else:
            entries.append(entry)
    return [*entries, *changed.values()]


def _tensors(layouts: Sequence[Layout], layers: Sequence[int]) -> list[tuple[str, RawTensor]]:
    """The tensors that stay, with their names in the new file."""
    places = {layer: place for place, layer in enumerate(layers)}
    kept = []
    for tensor in (tensor for layout in layouts for tensor in layout.tensors):
        found = _LAYER.fullmatch(tensor.name)
        if found is None:
            kept.append((tensor.name, tensor))
        elif int(found[1]) in places:
            kept.append((f"blk.{places[int(found[1])]}.{found[2]}", tensor))
    return kept


def _head(
    entries: Sequence[RawEntry], tensors: Sequence[tuple[str, RawTensor]], alignment: int
) -> tuple[bytes, list[int]]:
    """The new file up to its data, and where in the data each tensor begins."""
    offsets, end = [], 0
    for _, tensor in tensors:
        offsets.append(end)
        end = aligned(end + tensor.n_bytes, alignment)
    numbers = VERSION.to_bytes(4, "little") + len(tensors).to_bytes(8, "little") + len(entries).to_bytes(8, "little")
    head = MAGIC + numbers + b"".join(entry.encoded for entry in entries)
    head += b"".join(
        tensor.encoded(name, offset) for (name, tensor), offset in zip(tensors, offsets, strict=True)
    )  # fmt: skip
    return head.ljust(aligned(len(head), alignment), b"\0"), offsets


def _write(
    file: IO[bytes],
    head: bytes,
    tensors: Sequence[tuple[str, RawTensor]],
    offsets: Sequence[int],
    progress: Callable[[float], None],
    cancelled: Callable[[], bool],
) -> None:
    total = sum(tensor.n_bytes for _, tensor in tensors) or 1
    done = 0
    file.write(head)
    with contextlib.ExitStack() as stack:
        sources = {path: stack.enter_context(path.open("rb")) for path in {tensor.path for _, tensor in tensors}}
        for (_, tensor), offset in zip(tensors, offsets, strict=True):
            file.write(bytes(len(head) + offset - file.tell()))
            sources[tensor.path].seek(tensor.begin)
            left = tensor.n_bytes
            while left:
                if cancelled():
                    raise CancelledError("Cutting the draft was stopped; nothing was written.", "Run it again.")
                chunk = sources[tensor.path].read(min(left, _CHUNK))
                if not chunk:
                    raise ModelFileError(f"{tensor.path.name} became shorter while it was read.", "Run it again.")
                file.write(chunk)
                left -= len(chunk)
                done += len(chunk)
                progress(done / total)
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _temporary(output: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A file beside ``output``, which is gone afterwards unless it was renamed."""
    handle, name = tempfile.mkstemp(prefix=f".{output.name}.", suffix=".tmp", dir=output.absolute().parent)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _system_errors(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            raise DiskFullError(
                f"The disk of {output.absolute().parent} is full; nothing was written.",
                "Free some room, or write it to another disk (-o).",
            ) from None
        reason = problem.strerror or problem
        raise SpecchatError(f"{output} cannot be written: {reason}.", "Choose another place (-o).") from None
