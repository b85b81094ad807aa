"""Loading: what is said of a model, how far it is, and what is said where it fails. Nothing reaches the terminal."""

import subprocess
import sys

import numpy as np
import pytest

from specchat.backends.base import Interrupted, PassInput
from specchat.backends.llama import build, devices, load_model
from specchat.backends.llama_library import LogRing, log
from specchat.errors import LoadError, ModelFileError, SpecchatError, UsageError
from tests.gguf_writer import write_gguf, write_tiny_model
from tests.tiny_vocabulary import CHATML


def test_what_is_said_of_a_model(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf", "qwen2", n_layers=3, storage="q8_0")
    with load_model(path) as model, model.context(n_ctx=1024, threads=1) as context:
        facts = model.facts
        assert (facts.name, facts.architecture, facts.quantization, facts.device) == (
            "Tiny qwen2",
            "qwen2",
            "Q8_0",
            "CPU",
        )
        assert (facts.n_layers, facts.n_vocab, facts.gpu_layers, facts.n_ctx_train) == (3, 360, 0, 4096)
        assert facts.path == str(path)
        assert facts.file_bytes == path.stat().st_size
        assert 0.5 * facts.file_bytes < facts.memory_bytes < 2 * facts.file_bytes
        assert context.memory_bytes > 1024 * 3 * 2 * 2 * 16 * 2  # keys and values of f16, and more
        assert model.vocabulary.chat_template == CHATML
        assert not model.keeps_running_state


def test_nothing_reaches_the_terminal(tmp_path, capfd):
    path = write_tiny_model(tmp_path / "tiny.gguf", "gemma3")
    bad = write_tiny_model(tmp_path / "bad.gguf", metadata={"general.architecture": "nonsense"})
    mark = log.mark()
    with load_model(path) as model, model.context(n_ctx=64, threads=1) as context:
        context.decode([PassInput(0, [1], 1)])
    with pytest.raises(LoadError):
        load_model(bad)
    assert capfd.readouterr() == ("", "")
    assert len(log.since(mark)) > 50


def test_progress(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf", n_layers=4)
    seen = []

    def progress(fraction):
        seen.append(fraction)
        return True

    load_model(path, progress=progress).close()
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) > 3


def test_cancelled(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf", n_layers=4)
    with pytest.raises(Interrupted):
        load_model(path, progress=lambda fraction: fraction < 0.5)

    def fails(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_model(path, progress=fails)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"general.architecture": "nonsense"}, "unknown model architecture: 'nonsense'"),
        ({"llama.block_count": 3}, r"tensor 'blk\.2\.attn_norm\.weight' not found"),
        ({"llama.block_count": "many"}, "wrong type str"),
        ({"llama.embedding_length": 96}, "wrong shape"),
        ({"llama.context_length": None}, "key not found in model: llama.context_length"),
        ({"tokenizer.ggml.model": "nonsense"}, "unknown tokenizer"),
        ({"tokenizer.ggml.merges": None}, "cannot find tokenizer merges"),
    ],
)
def test_llama_cpps_own_sentence(tmp_path, changes, says):
    path = write_tiny_model(tmp_path / "bad.gguf", metadata=changes)
    with pytest.raises(LoadError, match=says) as raised:
        load_model(path)
    assert raised.value.message.startswith("llama.cpp could not load bad.gguf: ")
    assert raised.value.message.count("\n") == 0
    assert raised.value.next_step


def test_the_header_is_checked_first(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(ModelFileError, match="incomplete"):
        load_model(path)
    with pytest.raises(ModelFileError, match="no file"):
        load_model(tmp_path / "none.gguf")


def test_split_models(tmp_path):
    """llama.cpp finds the other part by its name."""
    from tests import gguf_writer

    whole = {}
    real = gguf_writer.write_gguf

    def keep(path, metadata, tensors, storage):
        whole.update(metadata=metadata, tensors=tensors)
        return real(path, metadata, tensors, storage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf_writer, "write_gguf", keep)
        write_tiny_model(tmp_path / "whole.gguf")
    names = list(whole["tensors"])
    split = {"split.count": np.uint16(2), "split.tensors.count": np.int32(len(names))}
    for number, part in enumerate((names[:8], names[8:])):
        metadata = whole["metadata"] if number == 0 else {}
        tensors = {name: whole["tensors"][name] for name in part}
        write_gguf(
            tmp_path / f"m-0000{number + 1}-of-00002.gguf", metadata | split | {"split.no": np.uint16(number)}, tensors
        )
    with load_model(tmp_path / "m-00001-of-00002.gguf") as model, model.context(n_ctx=64, threads=1) as context:
        assert model.facts.n_params == sum(tensor.size for tensor in whole["tensors"].values())
        context.decode([PassInput(0, [1, 2], 1)])


def test_devices_and_build(tmp_path):
    found = devices()
    assert [device.kind for device in found].count("cpu") == 1
    assert all(0 < device.free <= device.total for device in found)
    assert "llama-cpp-python" in build().version
    assert build().system_info
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with pytest.raises(UsageError, match="no device 'GPU7'") as raised:
        load_model(path, device="GPU7")
    assert "CPU" in raised.value.next_step
    load_model(path, device="cpu", gpu_layers=99).close()


def test_vocabulary_only(tmp_path):
    path = write_tiny_model(tmp_path / "tiny.gguf")
    with load_model(path, vocab_only=True) as model:
        assert model.vocabulary.tokenize("hello", parse_special=False) == [284]
        assert model.facts.memory_bytes == 0
        with pytest.raises(LoadError, match="without its weights"):
            model.context()


def test_closing_a_model_closes_its_contexts(tmp_path):
    model = load_model(write_tiny_model(tmp_path / "tiny.gguf"))
    context = model.context(n_ctx=64, threads=1)
    model.close()
    model.close()
    for use in (
        lambda: context.decode([PassInput(0, [1], 1)]),
        lambda: model.vocabulary.tokenize("a", parse_special=False),
        lambda: model.context(),
    ):
        with pytest.raises(SpecchatError, match="closed"):
            use()


def test_what_is_dropped_is_freed(tmp_path):
    """Without a call of close: no cycle keeps a context or the weights under it."""
    context = load_model(write_tiny_model(tmp_path / "tiny.gguf")).context(n_ctx=64, threads=1)
    context.interruptible(lambda: False)
    context.decode([PassInput(0, [1], 1)])
    frees = (context._free, context.model._free)
    del context
    assert [free.alive for free in frees] == [False, False]


SHORT_OF_MEMORY = """
import resource, sys
from specchat.backends.llama import load_model
from specchat.errors import MemoryShortError
with load_model(sys.argv[1]) as model:
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    try:
        model.context(n_ctx=2**21, threads=1)
    except MemoryShortError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
def test_a_context_that_does_not_fit(tmp_path):
    """In a process whose memory is limited: 8 GiB of cache are refused, with llama.cpp's sentence and what to do."""
    path = write_tiny_model(tmp_path / "tiny.gguf", n_embd=256, n_layers=8)
    child = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY, path], capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
    assert "could not make a context of 2097152 tokens" in child.stdout
    assert "memory (attempted to allocate 8192" in child.stdout
    assert "--ctx" in child.stdout
    assert child.stderr == ""


def test_base_and_header_are_light():
    """Neither the contract nor the header reader loads llama.cpp, and the header reader does without numpy."""
    program = (
        "import sys, specchat.backends.gguf_header; heavy = {'numpy', 'llama_cpp'} & sys.modules.keys();"
        "import specchat.backends.base; heavy |= {'llama_cpp'} & sys.modules.keys(); print(sorted(heavy))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert child.stdout.strip() == "[]"


def test_log_ring():
    """Lines that go on with `…`, marks that outlive what fell out of the ring, and the line that tells the cause."""
    ring = LogRing(size=3)
    ring.add(2, "load: begun ")
    ring.add(5, "and ended\n")
    ring.add(1, "for developers ")
    ring.add(5, "only\n")
    assert ring.since() == ["load: begun and ended"]
    mark = ring.mark()
    ring.add(4, "llama_model_load: error loading model: tensor 'a' is missing\n")
    ring.add(4, "llama_model_load_from_file_impl: failed to load model\n")
    assert ring.reason(mark) == "tensor 'a' is missing"
    ring.add(2, "more\n")
    assert len(ring.since()) == 3
    assert ring.reason(ring.mark()) == ""
    only_warned = ring.mark()
    ring.add(3, "init: using less memory\n")
    assert ring.reason(only_warned) == "using less memory"
