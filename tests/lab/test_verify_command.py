"""``specchat verify``, as somebody types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from specchat.cli import main
from specchat.cli import verify as command
from specchat.core import verification
from specchat.core.verification import TokenRule
from tests.lab.toys import ToyEngine, tiny_pair

pytestmark = pytest.mark.usefixtures("home")
SHORT = ("--samples", "6", "--tokens", "8")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return tiny_pair(tmp_path_factory.mktemp("gguf"), 0.6)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ProcessEngine", ToyEngine)


def verify(*words: str) -> int:
    return main(["verify", *words])


def test_the_toy(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify("--toy", "--tokens", "400") == 0
    captured = capsys.readouterr()
    assert captured.out.count("holds") == 27
    assert captured.out.endswith("Lossless: all 27 checks hold.\n")
    assert max(map(len, captured.out.splitlines())) <= 100
    assert "toy replies" in captured.err

    class AcceptsAll(TokenRule):
        def num_accepted(self, thresholds, draws):
            return int(thresholds.size)

    monkeypatch.setitem(verification._RULES, "token", AcceptsAll())
    assert verify("--toy", "--tokens", "400", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["complete"], data["lossless"], data["toy"]) == (True, False, True)
    broken = {check["subject"] for check in data["checks"] if not check["holds"]}
    assert broken
    assert all(subject.startswith("token,") for subject in broken)


@pytest.mark.usefixtures("toys")
def test_a_pair(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*models, *SHORT, "--temp", "0", "--seed", "4") == 0
    captured = capsys.readouterr()
    assert "temperature 0.7, seed 4" in captured.out  # nothing could be counted at 0
    assert "Lossless: all" in captured.out
    assert "counting first tokens" in captured.err
    assert verify(*models, *SHORT, "--rule", "match", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {check["subject"] for check in data["checks"] if check["fit"]} == {"match rule"}
    assert (data["num_samples"], data["num_tokens"]) == (6, 8)


def test_a_real_pair_from_the_shell(models: tuple[str, ...]) -> None:
    """The whole way: a child process, llama.cpp, a tiny GGUF pair."""
    words = [*models, "--samples", "6", "--tokens", "12", "--threads", "1", "--ctx", "2000"]
    result = subprocess.run(
        [sys.executable, "-m", "specchat", "verify", *words],
        capture_output=True, timeout=120, check=False, encoding="utf-8",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Lossless: all" in result.stdout
    assert "temperature 0, exact       same tokens as plain decoding: holds" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--toy", "--samples", "3"), "--samples is for a pair"),
        (("--toy", "--pair", "x"), "--pair is for a pair"),
        (("--toy", "--tokens", "2"), "nothing could fail"),
        (("--pair", "no-such-pair"), "no-such-pair"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("toys")
def test_without_a_draft(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*models[:2], "--draft", "none") == 2
    assert "nothing to verify" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("toy", [False, True])
def test_ctrl_c_prints_what_was_done(models: tuple[str, ...], toy: bool) -> None:
    pair = [*models, "--samples", "100000", "--tokens", "4", "--threads", "1", "--ctx", "2000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "specchat", "verify", *(["--toy", "--tokens", "1000000"] if toy else pair)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("toy replies" if toy else "counting first tokens"):
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped before all was checked" in output
