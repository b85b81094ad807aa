"""No test of this room may reach a real hub or a real package index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.pairs.hub_server import HubServer
from tests.pairs.wheel_index import UNSET, WheelIndex, pip_environment

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Points the hub's library and pip to where nobody answers, and the hub's cache to an empty folder."""
    home = tmp_path / "hf"
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_ETAG_TIMEOUT", *UNSET):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_ENDPOINT", NOBODY)
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name, value in pip_environment(f"{NOBODY}/simple").items():
        monkeypatch.setenv(name, value)
    cache = home / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    return cache


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelIndex]:
    """A package index that pip uses."""
    served = WheelIndex()
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    yield served
    served.close()


@pytest.fixture
def hub_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub that the library uses in the child process.

    A busy machine may take longer than the seconds that a person is made to wait, to answer and to tidy up.
    """
    monkeypatch.setattr("specchat.pairs.hub.ANSWER_SECONDS", 60.0)
    monkeypatch.setattr("specchat.pairs.hub._END_SECONDS", 60.0)
    served = HubServer()
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    yield served
    served.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A models folder that does not exist yet."""
    return tmp_path / "models"
