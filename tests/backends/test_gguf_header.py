"""The header reader: what a file says is read, and what a file cannot mean is an error with a sentence of its own."""

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from specchat.backends.gguf_header import check_can_chat, check_tokens, read_header
from specchat.backends.gguf_tables import TENSOR_TYPES
from specchat.errors import ModelFileError
from tests.gguf_writer import write_gguf, write_tiny_model
from tests.tiny_vocabulary import CHATML, bpe


@pytest.fixture
def tiny(tmp_path):
    return write_tiny_model(tmp_path / "tiny.gguf", "qwen2", n_layers=3, n_vocab=384, storage="f16")


def load_checks(path):
    header = read_header(path)
    check_can_chat(header)
    check_tokens(header)
    return header


def test_what_a_file_says(tiny):
    header = load_checks(tiny)
    assert (header.name, header.architecture, header.quantization) == ("Tiny qwen2", "qwen2", "F16")
    assert (header.n_layers, header.n_embd, header.n_ctx_train, header.n_vocab) == (3, 64, 4096, 384)
    assert (header.n_heads, header.n_heads_kv) == ((4, 4, 4), (2, 2, 2))
    assert (header.head_size_k, header.head_size_v, header.sliding_window) == (16, 16, None)
    assert header.chat_template == CHATML
    assert header.tokens()[:3] == [text.encode() for text in bpe().tokens[:3]]
    assert header.token_types()[-1] == 5
    assert header.file_bytes == tiny.stat().st_size
    assert 0.9 * header.file_bytes < header.tensor_bytes < header.file_bytes
    assert header.n_params == sum(tensor.n_values for tensor in header.tensors)
    assert not header.is_recurrent


def test_tensor_sizes_are_ggmls():
    """The table of types against the library's own answers."""
    import ctypes

    from specchat.backends.llama_library import ggml_function

    block = ggml_function("ggml_blck_size", ctypes.c_int64, ctypes.c_int)
    size = ggml_function("ggml_type_size", ctypes.c_size_t, ctypes.c_int)
    name = ggml_function("ggml_type_name", ctypes.c_char_p, ctypes.c_int)
    for code, (ours, values, n_bytes) in TENSOR_TYPES.items():
        assert (name(code).decode().upper(), block(code), size(code)) == (ours.upper(), values, n_bytes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"GG", "not a GGUF file"),
        (b"GGUF", "incomplete"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"PK\x03\x04" + bytes(60), "PyTorch"),
        (b"\x10\0\0\0\0\0\0\0" + b'{"a":{}}', "safetensors"),
        (b"tjgg" + bytes(60), "old GGML file"),
        (bytes(1000), "not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "byte order"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1), "claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "claims"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62), "text of"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IQ", 8, 2**40), "text of"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IQ", 8, 2**25), "incomplete"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99), "type 99"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**50), "array of"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**20), "incomplete"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQ", 9, 9, 1), "array of type 9"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<IIQQ", 9, 8, 5, 2**40), "text of"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + 2 * (struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 1)),
            "twice",
        ),
        (b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 64) + b"n" * 64, "text of 64"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 1) + b"n" + struct.pack("<I", 10**6), "1000000 dimensions"),
        (
            b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 1) + b"n" + struct.pack("<I3Q", 2, 2**40, 2**40, 0),
            "impossible size",
        ),
    ],
)
def test_broken_files(tmp_path, content, says):
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=says) as raised:
        read_header(path)
    assert raised.value.next_step
    assert len(str(raised.value)) < 400


def test_files_that_are_none(tmp_path):
    with pytest.raises(ModelFileError, match="There is no file"):
        read_header(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError, match="is a folder"):
        read_header(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_header("a\0b.gguf")


@pytest.mark.parametrize("alignment", [0, 3, 2**21, "32"])
def test_alignment_must_be_a_power_of_two(tmp_path, alignment):
    path = write_gguf(tmp_path / "x.gguf", {"general.alignment": alignment}, {})
    with pytest.raises(ModelFileError, match="alignment"):
        read_header(path)


def test_version_2_and_other_alignments(tmp_path):
    path = write_gguf(
        tmp_path / "x.gguf", {"general.alignment": 64}, {"a": np.ones((2, 3)), "b": np.ones(5)}, version=2, alignment=64
    )
    assert [tensor.n_bytes for tensor in read_header(path).tensors] == [24, 20]
    assert read_header(path).tensors[0].shape == (3, 2)


@pytest.mark.parametrize("cut", [1, 1000, 0.5, 0.9, 0.02])
def test_truncated(tiny, cut):
    content = tiny.read_bytes()
    tiny.write_bytes(content[: -cut if isinstance(cut, int) else int(len(content) * cut)])
    with pytest.raises(ModelFileError, match="incomplete"):
        read_header(tiny)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"general.architecture": None}, "does not name an architecture"),
        ({"general.architecture": "bert"}, "embedding model"),
        ({"qwen2.pooling_type": 1}, "embedding model"),
        ({"general.architecture": "t5"}, "left to right"),
        ({"qwen2.attention.causal": False}, "left to right"),
        ({"general.architecture": "clip"}, "image encoder"),
        ({"general.architecture": "eagle3"}, "draft head"),
        ({"general.type": "adapter"}, "LoRA adapter"),
        ({"tokenizer.ggml.tokens": None}, "no vocabulary"),
        ({"tokenizer.ggml.model": "none"}, "no vocabulary"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "no vocabulary"),
        ({"qwen2.block_count": 0}, "0 layers"),
        ({"qwen2.block_count": 513}, "513 layers"),
        ({"qwen2.nextn_predict_layers": 9}, "prediction"),
        ({"qwen2.expert_count": 8}, "experts"),
        ({"qwen2.expert_count": 8, "qwen2.expert_used_count": 9}, "experts"),
        ({"qwen2.expert_used_count": 1.5}, "experts"),
        ({"qwen2.rope.scaling.type": "magic"}, "magic"),
        ({"qwen2.attention.head_count": 32}, "32 heads"),
        ({"qwen2.attention.sliding_window": 8, "qwen2.attention.sliding_window_pattern": 1}, "no layer uses"),
        ({"tokenizer.ggml.tokens": ["a", "b", "a"]}, "twice"),
        ({"tokenizer.ggml.tokens": ["", "[EMPTY_0]"]}, "twice"),
        ({"tokenizer.ggml.tokens": ["ab", "ab\0c"]}, "twice"),
    ],
)
def test_files_that_cannot_chat(tmp_path, changes, says):
    path = write_tiny_model(tmp_path / "x.gguf", "qwen2", metadata=changes)
    with pytest.raises(ModelFileError, match=says) as raised:
        load_checks(path)
    assert raised.value.next_step


def test_a_vocabulary_alone(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", {"general.architecture": "qwen2", **bpe().metadata}, {})
    with pytest.raises(ModelFileError, match="no weights"):
        load_checks(path)


class TestParts:
    """Models that are split over several files."""

    def write(self, folder, count=2):
        paths = [folder / f"m-{index:05d}-of-{count:05d}.gguf" for index in range(1, count + 1)]
        write_tiny_model(paths[0], metadata={"split.count": count, "split.no": 0})
        for index, path in enumerate(paths[1:], 1):
            write_gguf(path, {"split.count": count, "split.no": index}, {f"extra{index}": np.ones((4, 32))})
        return paths

    def test_are_one_model(self, tmp_path):
        paths = self.write(tmp_path)
        header = read_header(paths[0])
        assert header.parts == tuple(paths)
        assert header.file_bytes == sum(path.stat().st_size for path in paths)
        assert header.tensors[-1].name == "extra1"

    def test_a_missing_part(self, tmp_path):
        paths = self.write(tmp_path, 3)
        paths[1].unlink()
        with pytest.raises(ModelFileError, match=r"1 are missing: m-00002-of-00003"):
            read_header(paths[0])

    def test_another_part_than_the_first(self, tmp_path):
        paths = self.write(tmp_path)
        with pytest.raises(ModelFileError, match="part 2 of 2"):
            read_header(paths[1])

    def test_a_part_with_another_name(self, tmp_path):
        paths = self.write(tmp_path)
        with pytest.raises(ModelFileError, match="does not say which"):
            read_header(paths[0].rename(tmp_path / "m.gguf"))


def test_a_large_vocabulary_is_skipped(tmp_path):
    """Only what is asked for is read: the header of 100,000 tokens leaves the texts where they are."""
    texts = [f"token{index}" for index in range(100_000)]
    changes = {"tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": [1] * len(texts)}
    header = read_header(write_tiny_model(tmp_path / "x.gguf", metadata=changes))
    assert header.n_vocab == 100_000
    assert header.tokens()[-1] == b"token99999"
    assert header.token_types() == (1,) * 100_000
    check_tokens(header)


NUMBERS = (0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def mutants(content: bytes, count: int):
    """Copies with some bytes changed, mostly in the header: noise, big numbers, swapped pieces, cuts."""
    rng = np.random.default_rng(2024)
    header = 9000
    for _ in range(count):
        broken = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(4, header))
            match rng.integers(5):
                case 0:
                    broken[at] = rng.integers(256)
                case 1:
                    broken[at : at + 8] = struct.pack("<Q", NUMBERS[rng.integers(len(NUMBERS))])
                case 2:
                    broken[at : at + 4] = struct.pack("<I", int(rng.integers(0, 50)))
                case 3:
                    other = int(rng.integers(4, header))
                    broken[at : at + 16] = content[other : other + 16]
                case 4:
                    del broken[at : at + int(rng.integers(1, 9))]
        yield bytes(broken)


def test_mutants_are_read_or_refused(tmp_path):
    """No other exception, no hang, and the errors are short. llama.cpp then loads what was let through, or refuses."""
    content = write_tiny_model(tmp_path / "tiny.gguf", n_layers=1, n_embd=32).read_bytes()
    folder = tmp_path / "let_through"
    folder.mkdir()
    refused = longest = 0
    for index, broken in enumerate(mutants(content, 400)):
        path = folder / f"{index}.gguf"
        path.write_bytes(broken)
        try:
            load_checks(path)
        except ModelFileError as error:
            longest = max(longest, len(error.message))
            path.unlink()
            refused += 1
    assert longest < 400
    assert 50 < refused < 350
    child = subprocess.run(
        [sys.executable, "-c", LOAD_ALL, str(folder)], capture_output=True, text=True, timeout=120, cwd=Path.cwd()
    )
    assert child.returncode == 0, child.stdout[-200:] + child.stderr[-500:]
    assert child.stderr == ""


LOAD_ALL = """
import sys
from pathlib import Path
from specchat.backends.base import PassInput
from specchat.backends.llama import load_model
from specchat.errors import SpecchatError
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        with load_model(path) as model, model.context(n_ctx=32, threads=1) as context:
            context.decode([PassInput(0, [1, 2, 3], 1)])
    except SpecchatError:
        pass
"""
