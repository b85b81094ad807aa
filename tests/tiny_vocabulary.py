"""Vocabularies of a few hundred tokens for the tiny models of `tests.gguf_writer`.

Both kinds hold every byte, so any text can be tokenised, some words, the control tokens of ChatML and one ordinary
token with the text ``</s>``, which llama.cpp counts as an end of generation although it is text (as in Qwen2.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6

WORDS = (
    "the", "and", "you", "is", "to", "of", "in", "it", "that", "for", "hello", "world", "token", "model", "draft",
    "user", "assistant", "system", "def", "return", "one", "two", "three", "A", "B", "cat", "dog", "yes", "no",
)  # fmt: skip

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Vocabulary:
    """Token texts as a GGUF stores them, their types, and the metadata that goes with them."""

    tokens: list[str]
    types: list[int]
    metadata: dict[str, Any]


def byte_texts() -> list[str]:
    """How GPT-2 writes each byte: printable ones as themselves, the others as characters from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    texts, spare = [], 0
    for byte in range(256):
        texts.append(chr(byte) if byte in printable else chr(256 + spare))
        spare += byte not in printable
    return texts


def bpe(n_vocab: int | None = None) -> Vocabulary:
    """GPT-2's kind: 256 bytes, words with and without a leading space and the pieces that lead to them, specials."""
    texts = byte_texts()
    tokens, merges = list(texts), []
    for word in WORDS:
        steps = [(word[: end - 1], word[end - 1]) for end in range(2, len(word) + 1)]
        for left, right in [*steps, (texts[ord(" ")], word)]:
            if left + right not in tokens:
                tokens.append(left + right)
                merges.append(f"{left} {right}")
    types = [NORMAL] * len(tokens)
    special = {"</s>": NORMAL, "<|endoftext|>": CONTROL, "<|im_start|>": CONTROL, "<|im_end|>": CONTROL}
    tokens, types = tokens + list(special), types + list(special.values())
    tokens, types = _pad(tokens, types, n_vocab)
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": tokens.index("<|endoftext|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }
    return Vocabulary(tokens, types, metadata)


def spm(n_vocab: int | None = None) -> Vocabulary:
    """SentencePiece's kind: <unk>, <s>, <eos>, 256 byte tokens, ASCII, words, specials; a prompt begins with <s>."""
    tokens = ["<unk>", "<s>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256
    scores = [0.0] * len(tokens)
    pieces = [chr(byte) for byte in range(33, 127)] + ["\u2581"]
    for word in WORDS:
        for spelled in (word, "\u2581" + word):
            pieces += [spelled[:end] for end in range(2, len(spelled) + 1)]
    for piece in dict.fromkeys(pieces):
        tokens.append(piece)
        types.append(NORMAL)
        scores.append(float(len(piece)))
    special = {"</s>": NORMAL, "<|im_start|>": CONTROL, "<|im_end|>": CONTROL}
    tokens, types = tokens + list(special), types + list(special.values())
    tokens, types = _pad(tokens, types, n_vocab)
    scores += [0.0] * (len(tokens) - len(scores))
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": False,
    }
    return Vocabulary(tokens, types, metadata)


def _pad(tokens: list[str], types: list[int], n_vocab: int | None) -> tuple[list[str], list[int]]:
    """Adds unused ids up to ``n_vocab``, as vocabularies that are rounded up to a multiple of 64 do."""
    missing = 0 if n_vocab is None else n_vocab - len(tokens)
    if missing < 0:
        raise ValueError(f"the vocabulary has {len(tokens)} tokens, more than {n_vocab}")
    return tokens + [f"[PAD{index}]" for index in range(missing)], types + [UNUSED] * missing
