"""A bounded reader of a GGUF file's header, and checks whether the file is a model that can chat.

llama.cpp aborts the whole process on some malformed files, so every file is read here first: counts, strings, sizes
and offsets are checked against limits and the file's length, and nothing is allocated because a file says so. Rules
that llama.cpp states as assertions are checked as well. Big arrays (the vocabulary) are skipped and read only when
asked for: a header with 150,000 tokens takes about 0.1 s.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from specchat.backends.gguf_description import GgufHeader, Metadata, TensorInfo
from specchat.backends.gguf_reader import DOWNLOAD_AGAIN, MAX_KEY, Reader, Value
from specchat.backends.gguf_tables import ENCODER_ARCHITECTURES, HEAD_ARCHITECTURES, SQUARE_ATTENTION, TENSOR_TYPES
from specchat.errors import ModelFileError

__all__ = ["GgufHeader", "TensorInfo", "check_can_chat", "check_tokens", "read_header"]

MAX_ENTRIES = 65_536
MAX_TENSORS = 100_000
MAX_TENSOR_NAME = 63
MAX_ALIGNMENT = 2**20
MAX_LAYERS = 512
MAX_EXPERTS = 1024
_PART = re.compile(r"(?P<stem>.*)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_CHOOSE = "Choose a model that writes text: one whose name has “instruct” or “chat” in it."
_OTHER_TYPES = {
    "adapter": "a LoRA adapter, which changes another model",
    "mmproj": "an image encoder, which goes with another model",
    "imatrix": "an importance matrix, which is used to quantise a model",
    "vocab": "a vocabulary without a network",
}


def read_header(path: str | Path) -> GgufHeader:
    """Reads and checks the header of a model file, and of its other parts where it is split.

    Raises:
        ModelFileError: there is no such file, it is no GGUF file, it breaks the format's rules, it is shorter than its
            header says, or a part is missing.
    """
    first = _read_file(Path(path))
    count = first.number("split.count") or 1
    if count == 1:
        return first
    paths = _part_paths(first, count)
    others = [_read_file(part) for part in paths[1:]]
    return replace(
        first,
        parts=paths,
        file_bytes=first.file_bytes + sum(other.file_bytes for other in others),
        tensors=first.tensors + tuple(tensor for other in others for tensor in other.tensors),
    )


def check_can_chat(header: GgufHeader) -> None:
    """Checks that the file is a language model with a vocabulary and weights, of sizes that llama.cpp accepts.

    Raises:
        ModelFileError: it is not; the message says what it is.
    """
    other = _what_else(header)
    if other:
        raise ModelFileError(f"{header.path.name} is {other}.", _CHOOSE)
    if header.n_vocab is None or header.text("tokenizer.ggml.model") in (None, "none", "no_vocab"):
        raise ModelFileError(f"{header.path.name} has no vocabulary.", "Look for a newer conversion of this model.")
    if not header.tensors:
        raise ModelFileError(f"{header.path.name} holds a vocabulary and no weights.", _CHOOSE)
    _check_sizes(header)


def check_tokens(header: GgufHeader) -> None:
    """Checks that no two tokens have the same text, which llama.cpp asserts. Takes 0.2 s for 150,000 tokens.

    Raises:
        ModelFileError: two have.
    """
    # llama.cpp reads up to the first zero byte, and gives a token without a text one
    read = (text.partition(b"\0")[0] for text in header.tokens())
    texts = [text or b"[EMPTY_%d]" % index for index, text in enumerate(read)]
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        raise _malformed(header, f"the token {twice[:40]!r} is in its vocabulary twice")


def _part_paths(first: GgufHeader, count: int) -> tuple[Path, ...]:
    """The names of all parts, checked: llama.cpp opens the first and finds the others by name."""
    named = _PART.fullmatch(first.path.name)
    if named is None or int(named["count"]) != count or not 2 <= count <= 99_999:
        raise ModelFileError(
            f"{first.path.name} is one of {count} parts, but its name does not say which.",
            f"Name the parts as they were: …-00001-of-{count:05d}.gguf and so on.",
        )
    paths = tuple(
        first.path.with_name(f"{named['stem']}-{index:05d}-of-{count:05d}.gguf") for index in range(1, count + 1)
    )
    if int(named["index"]) != 1:
        raise ModelFileError(
            f"{first.path.name} is part {int(named['index'])} of {count}.", f"Give the first part, {paths[0].name}."
        )
    missing = [part.name for part in paths if not part.exists()]
    if missing:
        raise ModelFileError(
            f"{first.path.name} is one of {count} parts, and {len(missing)} are missing: {', '.join(missing[:3])}.",
            "Put all parts into one folder.",
        )
    return paths


def _read_file(path: Path) -> GgufHeader:
    with Reader(path) as reader:
        reader.magic()
        version = reader.u32()
        if version not in (2, 3):
            swapped = version >> 24 in (2, 3) and not version & 0xFFFFFF
            what = "was made for a machine of the other byte order" if swapped else f"has GGUF version {version}"
            raise ModelFileError(f"{path.name} {what}; versions 2 and 3 can be read.", "Look for a newer conversion.")
        n_tensors, n_entries = reader.u64(), reader.u64()
        if n_tensors > MAX_TENSORS or n_entries > MAX_ENTRIES:
            raise reader.malformed(f"it claims {n_tensors:,} tensors and {n_entries:,} metadata entries")
        metadata = _read_metadata(reader, n_entries)
        tensors = _read_tensors(reader, n_tensors, _alignment(reader, metadata))
        return GgufHeader(path, version, reader.size, metadata, tensors, (path,))


def _read_metadata(reader: Reader, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(count):
        key = reader.string(MAX_KEY).decode("utf-8", "replace")
        if key in metadata:
            raise reader.malformed(f"the entry {key[:60]!r} is there twice")
        metadata[key] = reader.value()
    return metadata


def _alignment(reader: Reader, metadata: Metadata) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise reader.malformed(
            f"an alignment of {str(alignment)[:20]}, which must be a power of two up to {MAX_ALIGNMENT:,}"
        )
    return alignment


def _read_tensors(reader: Reader, count: int, alignment: int) -> tuple[TensorInfo, ...]:
    """Reads the list of tensors and checks that all their bytes are in the file."""
    found: list[tuple[str, tuple[int, ...], int, int]] = []
    names: set[str] = set()
    for _ in range(count):
        name = reader.string(MAX_TENSOR_NAME).decode("utf-8", "replace")
        n_dims = reader.u32()
        if n_dims > 4:
            raise reader.malformed(f"the tensor {name!r} has {n_dims} dimensions, where 4 is the limit")
        shape = tuple(reader.u64() for _ in range(n_dims))
        if math.prod(max(size, 1) for size in shape) >= 2**63:
            raise reader.malformed(f"the tensor {name!r} has an impossible size")
        if name in names:
            raise reader.malformed(f"the tensor {name!r} is there twice")
        names.add(name)
        found.append((name, shape, reader.u32(), reader.u64()))
    data_begins = -(-reader.position // alignment) * alignment
    room = reader.size - data_begins
    tensors = []
    for name, shape, kind, offset in found:
        type_name, n_bytes = _stored(reader, name, shape, kind)
        if offset % alignment:
            raise reader.malformed(f"the tensor {name!r} is not aligned")
        if offset + n_bytes > room:
            raise reader.truncated(data_begins + offset + n_bytes)
        tensors.append(TensorInfo(name, shape, type_name, n_bytes))
    return tuple(tensors)


def _stored(reader: Reader, name: str, shape: tuple[int, ...], kind: int) -> tuple[str, int]:
    """The name of a tensor's type, and its size in bytes (0 for a type that only a newer llama.cpp knows)."""
    if kind not in TENSOR_TYPES:
        return f"type {kind}", 0
    type_name, block, block_bytes = TENSOR_TYPES[kind]
    if shape and shape[0] % block:
        raise reader.malformed(f"the tensor {name!r} has rows of {shape[0]} values, which {type_name} cannot store")
    return type_name, math.prod(shape) // block * block_bytes


def _what_else(header: GgufHeader) -> str | None:
    """What the file is, where it is no model that writes text."""
    architecture, kind = header.architecture, header.text("general.type")
    if not architecture:
        return "a GGUF file that does not name an architecture"
    if kind in _OTHER_TYPES:
        return _OTHER_TYPES[kind]
    if architecture == "clip":
        return _OTHER_TYPES["mmproj"]
    if architecture in HEAD_ARCHITECTURES:
        return f"a draft head ({architecture}), which cannot run without its own target"
    if architecture in ENCODER_ARCHITECTURES or header.size("pooling_type"):
        return f"an embedding model ({architecture}), which turns text into vectors"
    if architecture == "t5" or header.metadata.get(f"{architecture}.attention.causal") is False:
        return f"a model ({architecture}) that does not write from left to right"
    return None


def _check_sizes(header: GgufHeader) -> None:
    """The rules of llama.cpp's hyperparameters that it states as assertions."""
    n_layers = header.n_layers
    if n_layers is None:
        return  # llama.cpp says what is missing
    if not 1 <= n_layers <= MAX_LAYERS:
        raise _malformed(header, f"it has {n_layers} layers")
    if (header.size("nextn_predict_layers") or 0) > n_layers:
        raise _malformed(header, "it has more layers for prediction than layers")
    n_experts = header.size("expert_count") or 0
    used = header.metadata.get(f"{header.architecture}.expert_used_count") or 0
    most_used = max((int(count) for count in used), default=0) if isinstance(used, tuple) else used
    if (
        not isinstance(most_used, int)
        or n_experts > MAX_EXPERTS
        or most_used > n_experts
        or bool(n_experts) != bool(most_used)
    ):
        raise _malformed(header, f"it has {n_experts} experts and uses {most_used}")
    n_heads = max(header.n_heads, default=0)
    if header.architecture in SQUARE_ATTENTION and n_heads * header.head_size_k != header.n_embd:
        raise _malformed(header, f"{n_heads} heads of {header.head_size_k} do not make {header.n_embd}")
    pattern = f"{header.architecture}.attention.sliding_window_pattern"
    if header.sliding_window and pattern in header.metadata and not any(header.has_window):
        raise _malformed(header, "it has a sliding window that no layer uses")
    scaling = header.metadata.get(f"{header.architecture}.rope.scaling.type", "linear")
    if scaling not in ("none", "linear", "yarn", "longrope"):
        raise _malformed(header, f"a RoPE scaling of {str(scaling)[:40]!r}")


def _malformed(header: GgufHeader, what: str) -> ModelFileError:
    return ModelFileError(f"{header.path.name} is malformed: {what}.", DOWNLOAD_AGAIN)
