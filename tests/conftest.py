"""Fixtures that every room uses: the real models, where they are on disk."""

import os
from pathlib import Path

import pytest


def _model(name: str, *, required: bool = False) -> Path:
    from specchat.config import models_folder  # where `specchat pull` puts files

    path = models_folder() / name
    if path.is_file():
        return path
    if required and os.environ.get("CI"):
        pytest.fail(f"{name} is not in {path.parent}: CI must run `specchat pull` first")
    pytest.skip(f"{name} is not on disk: run `specchat pull`")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M Instruct: `specchat pull smollm2-135m`."""
    return _model("SmolLM2-135M-Instruct.Q4_1.gguf", required=True)


@pytest.fixture(scope="session")
def qwen_pair_paths() -> tuple[Path, Path]:
    """The default pair, target and draft: `specchat pull`. Never required: 1.6 GB."""
    return _model("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"), _model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")


@pytest.fixture(scope="session")
def gemma_path() -> Path:
    """Gemma 3 270M, for sliding-window behaviour only; never required."""
    return _model("gemma3-270m-q4_k_m.gguf")
