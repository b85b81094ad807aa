"""What is said of a GPU that lies idle."""

from pathlib import Path

import pytest

from specchat.backends.llama_devices import gpu_makers, unused_gpu_note

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("makers", "system", "machine", "says"),
    [
        ({"NVIDIA"}, "Linux", "x86_64", "CMAKE_ARGS=\"-DGGML_CUDA=on\" '/my env/python' -m pip install "),
        ({"NVIDIA", "Intel"}, "Windows", "AMD64", 'set "CMAKE_ARGS=-DGGML_CUDA=on" && "/my env/python" -m pip '),
        ({"AMD", "Intel"}, "Linux", "x86_64", "CMAKE_ARGS=\"-DGGML_VULKAN=on\" '/my env/python' -m pip install "),
        (set(), "Darwin", "arm64", "CMAKE_ARGS=\"-DGGML_METAL=on\" '/my env/python' -m pip install "),
        (set(), "Darwin", "x86_64", None),
        (set(), "Linux", "x86_64", None),
    ],
)
def test_note_on_an_idle_gpu(makers, system, machine, says):
    note = unused_gpu_note(makers, system, machine, "/my env/python")
    if says is None:
        assert note is None
        return
    assert says in note
    requirement = note[note.rindex("llama-cpp-python") : -1]
    assert f'"{requirement}"' in (ROOT / "pyproject.toml").read_text("utf-8"), "what is installed is what is needed"
    option = says[says.index("-D") :].split("=")[0]
    line = f'CMAKE_ARGS="{option}=on" .venv/bin/pip install --force-reinstall --no-cache-dir "{requirement}"'
    assert line in (ROOT / "README.md").read_text("utf-8")


def test_makers_of_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert gpu_makers(tmp_path) == set()
    for node, vendor in (("renderD128", "0x8086\n"), ("renderD129", "0x1af4\n"), ("renderD130", None)):
        (tmp_path / "dev/dri").mkdir(parents=True, exist_ok=True)
        (tmp_path / "dev/dri" / node).touch()
        device = tmp_path / "sys/class/drm" / node / "device"
        device.mkdir(parents=True)
        if vendor is not None:
            (device / "vendor").write_text(vendor)
    assert gpu_makers(tmp_path) == {"Intel"}, "a virtual machine's display and a board's own are not named"
    (tmp_path / "dev/kfd").touch()
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").touch()
    assert gpu_makers(tmp_path) == {"NVIDIA", "AMD", "Intel"}
