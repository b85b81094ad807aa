"""How many threads are used on processors of all kinds."""

import os
from pathlib import Path

import pytest

from specchat.backends.threads import default_threads, linux_fast_cores


def processors(root: Path, siblings: list[str], fast: str | None = None, capacities: list[int] | None = None) -> Path:
    """What Linux tells of processors with these siblings."""
    for number, text in enumerate(siblings):
        folder = root / f"system/cpu/cpu{number}"
        (folder / "topology").mkdir(parents=True)
        (folder / "topology" / "thread_siblings_list").write_text(text + "\n")
        if capacities:
            (folder / "cpu_capacity").write_text(f"{capacities[number]}\n")
    if fast is not None:
        (root / "cpu_core").mkdir()
        (root / "cpu_core" / "cpus").write_text(fast + "\n")
    return root


def test_this_machine() -> None:
    assert 1 <= default_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("siblings", "fast", "capacities", "cores"),
    [
        (["0", "1", "2", "3"], None, None, 4),
        (["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"], None, None, 4),
        (["0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"], "0-3", None, 2),
        (["0", "1", "2", "3", "4", "5", "6", "7"], None, [250, 250, 250, 250, 920, 920, 1024, 1024], 4),
    ],
    ids=["one thread a core", "hyper-threads", "Intel hybrid", "Arm, big and little"],
)
def test_one_thread_a_fast_core(tmp_path: Path, siblings, fast, capacities, cores) -> None:
    root = processors(tmp_path, siblings, fast, capacities)
    assert linux_fast_cores(set(range(len(siblings))), root) == cores


def test_a_process_that_may_use_some_processors_only(tmp_path: Path) -> None:
    root = processors(tmp_path, ["0-1", "0-1", "2-3", "2-3", "4", "5"], "0-3")
    assert linux_fast_cores({0, 2}, root) == 2
    assert linux_fast_cores({0, 1}, root) == 1
    assert linux_fast_cores({4, 5}, root) == 2, "kept on the small cores it uses them"


@pytest.mark.parametrize("text", ["", "fast", "0-"])
def test_what_cannot_be_read_tells_nothing(tmp_path: Path, text: str) -> None:
    assert linux_fast_cores({0, 1}, tmp_path) is None
    root = processors(tmp_path, ["0", "1"], fast=text)
    assert linux_fast_cores({0, 1}, root) == 2
