"""Pairs made of models that were found."""

import pytest

from specchat.pairs.found import find_models
from specchat.pairs.places import Place
from specchat.pairs.suggestions import suggest_pairs
from tests.gguf_writer import write_tiny_model


@pytest.fixture
def found(tmp_path):
    for name, layers, options in (
        ("a-large", 24, {}),
        ("b-middle", 6, {}),
        ("c-small", 2, {}),
        ("d-padded", 3, {"n_vocab": 400}),
        ("e-other", 1, {"tokenizer": "spm"}),
    ):
        write_tiny_model(tmp_path / f"{name}.gguf", n_layers=layers, **options)
    return list(find_models([Place("LM Studio", tmp_path)]))


def test_each_has_the_smallest_draft_with_its_vocabulary(found):
    pairs = {pair.target.key: pair for pair in suggest_pairs(found)}
    drafts = {key: pair.draft.key if pair.draft else None for key, pair in pairs.items()}
    assert drafts == {"a-large": "c-small", "b-middle": None, "c-small": None, "d-padded": None, "e-other": None}
    pair = pairs["a-large"]
    assert (pair.key, pair.pair.note, pair.target.path) == ("a-large+c-small", "Found: LM Studio.", str(found[0].path))


def test_names_are_distinct(tmp_path, found):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write_tiny_model(tmp_path / folder / "same.gguf", seed=ord(folder))
    both = [each for each in find_models([Place("added", tmp_path)]) if each.name == "same"]
    assert [pair.key for pair in suggest_pairs(both)] == ["same", "same-2"]


def test_it_can_be_stopped(found):
    assert suggest_pairs(found, lambda: True) == []
