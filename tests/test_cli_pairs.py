"""``specchat --pair --list`` with devices of this machine or made-up ones, and ``specchat draft``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from specchat.cli import main, pairs
from specchat.config import Measurement, Recommended, State, find_paths, update_state
from specchat.engine.interface import Device, DeviceList, Failed
from specchat.errors import UsageError
from tests.gguf_writer import write_tiny_model

GIB = 2**30
GPU = Device("CUDA0", "NVIDIA Test", "gpu", 23 * GIB, 24 * GIB)
CPU = Device("CPU", "Test", "cpu", 60 * GIB, 64 * GIB)
BUILD = "llama.cpp test"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a machine with a GPU of 24 GB."""
    from huggingface_hub import constants

    for name in ("config", "data", "cache", "state"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    monkeypatch.setattr(pairs, "ask_devices", lambda: DeviceList((GPU, CPU), BUILD, "AVX2 = 1 | REPACK = 1"))
    return tmp_path


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["--pair", "--list", "--json", *words]) == 0
    return {row["key"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}


def run(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "specchat", *words], input=b"", capture_output=True, timeout=120)


@pytest.mark.usefixtures("home")
def test_json_has_fit_match_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys)
    assert [key for key, row in found.items() if row["recommended"]] == ["qwen2_5-32b"]
    row = found["qwen2_5-7b"]
    assert (row["fit"]["verdict"], row["fit"]["n_ctx"], row["on_disk"]) == ("fits the GPU", 8192, False)
    assert row["vocabulary"]["verdict"] == "checked when fetched"
    assert row["measured"] is None
    assert row["missing"] == row["size"] == row["target"]["size"] + row["draft"]["size"]
    assert rows(capsys, "--ctx", "2048")["qwen2_5-7b"]["fit"]["n_ctx"] == 2048
    assert rows(capsys, "--gpu-layers", "0")["qwen2_5-7b"]["fit"]["verdict"] == "fits in memory"


def test_models_that_were_added_are_compared(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "my models"
    folder.mkdir()
    target = write_tiny_model(folder / "large.gguf", n_layers=20)
    write_tiny_model(folder / "small.gguf")
    (folder / "torn.gguf").write_bytes(target.read_bytes()[:5000])
    update_state(find_paths().state_file, lambda state: State(added=(str(folder),)))
    row = rows(capsys)["large+small"]
    assert (row["vocabulary"]["verdict"], row["vocabulary"]["usable"]) == ("same vocabulary", True)
    assert (row["on_disk"], row["missing"], row["target"]["path"]) == (True, 0, str(target))
    assert main(["--pair", "--list"]) == 0
    text = capsys.readouterr().out
    assert f"large+small: specchat --target '{target}' --draft '{folder / 'small.gguf'}'" in text
    assert "small: specchat" in text
    assert "torn.gguf: torn.gguf is incomplete" in text


def test_figures_are_those_of_this_device_and_version(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def measured(device: str, version: str, speedup: float, pair: str = "qwen2_5-7b") -> Measurement:
        return Measurement(
            pair=pair, device=device, version=version, measured_at="2026-11-30", plain_tokens_per_second=40.0,
            pass_seconds={1: 0.02, 2: 0.02}, draft_step_seconds=0.004, acceptance_by_position=(0.8,), speedup=speedup,
        )  # fmt: skip

    others = (measured("CPU", "another version", 9.0), measured("Another GPU", BUILD, 9.0))
    update_state(find_paths().state_file, lambda state: State(measurements=others))
    assert rows(capsys)["qwen2_5-7b"]["measured"] is None
    mine = measured("NVIDIA Test", BUILD, 1.6)
    update_state(find_paths().state_file, lambda state: state.with_measurement(mine))
    row = rows(capsys)["qwen2_5-7b"]
    assert (row["measured"]["speedup"], row["measured"]["acceptance"], row["measured"]["pays"]) == (1.6, 0.8, True)
    assert row["recommended"]
    (home / "models").mkdir()
    for name, layers in (("one-00001-of-00001", 9), ("two", 1)):
        write_tiny_model(home / "models" / f"{name}.gguf", n_layers=layers)
    assert row["measured"]["recommended"] is None, "it was not asked then"
    best = Recommended(drafter="none", num_draft_tokens=0, speedup=1.0)
    update_state(find_paths().state_file, lambda state: state.with_measurement(replace(mine, recommended=best)))
    recommended = rows(capsys)["qwen2_5-7b"]["measured"]["recommended"]
    assert recommended == {"drafter": "none", "num_draft_tokens": 0, "speedup": 1.0}
    own = measured("NVIDIA Test", BUILD, 1.2, "one-00001-of-00001+two")
    update_state(find_paths().state_file, lambda state: state.with_measurement(own))
    assert rows(capsys)["one+two"]["measured"]["speedup"] == 1.2


def test_pairs_that_a_person_made_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = State(combined=(("qwen3-8b", "qwen2_5-0_5b"), ("qwen3-8b", "ngram"), ("gone", "none")))
    update_state(find_paths().state_file, lambda _: made)
    found = rows(capsys)
    assert found["qwen3-8b+qwen2_5-0_5b"]["draft"]["key"] == "qwen2_5-0_5b"
    assert found["qwen3-8b+ngram"]["name"] == "Qwen3 8B ⟵ n-gram"
    assert not any("gone" in key for key in found)


@pytest.mark.usefixtures("home")
def test_the_devices_that_were_chosen_are_reckoned_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert rows(capsys, "--device", "CPU")["qwen2_5-7b"]["fit"]["verdict"] == "fits in memory"
    assert rows(capsys, "--device-draft", "CPU")["qwen2_5-7b"]["fit"]["verdict"] == "partly on the GPU"
    assert main(["--pair", "--list", "--device", "CUDA7"]) == 0
    assert "There is no device 'CUDA7'. Choose one of: CUDA0, CPU." in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pair", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["pair", "target", "draft", "memory", "vocabulary", "measured", "here", "licence"]
    best = next(line for line in lines if line.startswith("*"))
    for cell in ("qwen2_5-32b", "19.9 GB", "676 MB", "to fetch 20.5 GB", "fits the GPU", "not measured", "apache-2.0"):
        assert cell in best
    assert "* recommended for this machine" in "\n".join(lines)


@pytest.mark.usefixtures("home")
def test_without_devices_the_rest_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    failed = Failed("EngineDiedError", "llama.cpp gave up.", "Reinstall llama-cpp-python.", died=True)
    monkeypatch.setattr(pairs, "ask_devices", lambda: failed)
    assert main(["--pair", "--list"]) == 0
    output = capsys.readouterr()
    assert "not known" in output.out
    assert output.err == "Memory is not compared: llama.cpp gave up. Reinstall llama-cpp-python.\n"


@pytest.mark.parametrize("words", [["--list"], ["--json"], ["--pair", "--json"], ["--pair", "smollm2-135m", "--list"]])
def test_options_that_go_together(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == UsageError.exit_status
    assert "specchat --pair --list" in capsys.readouterr().err


@pytest.mark.usefixtures("home")
def test_this_machine_is_asked_and_no_model_is_loaded() -> None:
    result = run("--pair", "--list", "--json")
    assert (result.returncode, result.stderr) == (0, b"")
    assert all(json.loads(line)["fit"]["devices"] for line in result.stdout.splitlines())


# --- draft ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("home")
def test_a_draft_is_cut_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, output = write_tiny_model(tmp_path / "target.gguf", n_layers=5), tmp_path / "a draft.gguf"
    assert main(["draft", str(target), "--layers", "4", "-o", str(output)]) == 0
    text = capsys.readouterr().out
    assert f"{output}: 4 of 5 layers" in text
    assert f"specchat --target {target} --draft '{output}'" in text
    words = ["ask", "hello", "--target", str(target), "--draft", str(output), "--mode", "watch", "--json"]
    words += ["--max-tokens", "40", "--threads", "1", "--ctx", "512"]
    result = run(*words)
    assert (result.returncode, result.stderr) == (0, b"")
    finished = json.loads(result.stdout.splitlines()[-1])
    assert finished["event"] == "finished"
    assert 0 < finished["acceptance_rate"] <= 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["target.gguf", "--layers", "5", "-o", "x.gguf"], "Choose between 1 and 4"),
        (["target.gguf", "--layers", "2", "-o", "target.gguf"], "is the target itself"),
        (["gone.gguf", "--layers", "2", "-o", "x.gguf"], "There is no file"),
        (["qwen2_5-7b", "--layers", "2", "-o", "x.gguf"], "specchat pull qwen2_5-7b"),
        (["qwen2_5-7c", "--layers", "2", "-o", "x.gguf"], 'Did you mean "qwen2_5-7b"?'),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_cannot_be_cut(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_model(tmp_path / "target.gguf", n_layers=5)
    monkeypatch.chdir(tmp_path)
    assert main(["draft", *words]) in (1, 2)
    assert says in capsys.readouterr().err
    assert not (tmp_path / "x.gguf").exists()


@pytest.mark.usefixtures("home")
def test_a_pair_that_was_put_together_is_used_again_at_the_next_start() -> None:
    from specchat.cli.chat import RememberingShelf
    from specchat.cli.choices import Choices, look_around
    from specchat.tui.pair_shelf import PairFiles

    world = look_around()
    shelf = RememberingShelf(world, Choices(argparse.Namespace(), world), None)
    collection = shelf.collection
    key = collection.combine(collection.catalog.models["qwen3-8b"], "ngram")
    shelf.chosen(PairFiles(key, "", "/models/qwen3.gguf", None, drafter="ngram"))
    again = look_around()
    pair = Choices(argparse.Namespace(), again).pair()
    assert (pair.key, pair.drafter) == (key, "ngram")
    assert RememberingShelf(again, Choices(argparse.Namespace(), again), pair).collection.keys.count(key) == 1
    shelf.chosen(PairFiles("qwen3-8b", "", "/models/qwen3.gguf", "/models/draft.gguf"))
    assert Choices(argparse.Namespace(), look_around()).pair().key == "qwen3-8b"
    assert shelf.problems == []
