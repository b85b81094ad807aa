"""The pair picker's tests use the servers of the pairs' tests; nothing here may reach a real one."""

import pytest

from tests.pairs.conftest import alone, folder, hub_server, index

__all__ = ["alone", "folder", "hub_server", "index"]


@pytest.fixture(autouse=True)
def no_models_elsewhere(monkeypatch, tmp_path_factory):
    """No models of other programs are found, unless a test puts them there; home is a folder of the test's own."""
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
