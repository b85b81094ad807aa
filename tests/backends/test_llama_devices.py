"""What is said of a GPU that lies idle."""

import pytest

from specchat.backends.llama_devices import unused_gpu_note


@pytest.mark.parametrize(
    ("nvidia", "system", "machine", "says"),
    [
        (True, "Linux", "x86_64", "GGML_CUDA=on"),
        (True, "Windows", "AMD64", "GGML_CUDA=on"),
        (False, "Darwin", "arm64", "GGML_METAL=on"),
        (False, "Darwin", "x86_64", None),
        (False, "Linux", "x86_64", None),
    ],
)
def test_note_on_an_idle_gpu(nvidia, system, machine, says):
    note = unused_gpu_note(nvidia, system, machine)
    assert (note is None) if says is None else (says in note and "pip install" in note)
