"""Models that are not the catalogue's own."""

from specchat.pairs.catalog import load_catalog
from specchat.pairs.library import other_models
from tests.gguf_writer import write_tiny_model


def test_the_catalogue_s_own_files_are_left_out(folder, tmp_path, monkeypatch):
    """They have rows of their own; also where they were not checked yet."""
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "home")
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    catalog = load_catalog()
    folder.mkdir()
    for seed, name in enumerate((catalog.models["smollm2-135m"].file, "mine.gguf")):
        write_tiny_model(folder / name, seed=seed)
    (folder / "torn.gguf").write_bytes((folder / "mine.gguf").read_bytes()[:999])
    added = write_tiny_model(tmp_path / "added.gguf", seed=9)
    found = other_models(catalog, folder, [str(added)])
    assert [(each.name, each.origin) for each in found.models] == [("added", "added"), ("mine", "models folder")]
    assert [each.path.name for each in found.left_out] == ["torn.gguf"]
    assert other_models(catalog, folder, cancelled=lambda: True).models == ()
