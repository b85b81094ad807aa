"""Every pair that one can choose, and what a person does with them."""

from __future__ import annotations

import pytest

from specchat.config import Measurement, Recommended
from specchat.errors import ModelFileError, UsageError
from specchat.pairs import collection as collections
from specchat.pairs.catalog import Catalog, Model, Pair
from specchat.pairs.collection import Collection
from specchat.pairs.combining import pair_of, references, remembered_pair
from specchat.pairs.found import find_models
from specchat.pairs.memory import Surroundings
from specchat.pairs.places import Place
from tests.gguf_writer import write_tiny_model
from tests.pairs.kept import Kept
from tests.pairs.machines import machine

TARGET = Model(key="t", name="Target", file="t.gguf", size=1000)
DRAFT = Model(key="d", name="Draft", file="d.gguf", size=300)
CATALOG = Catalog({"t": TARGET, "d": DRAFT}, {"p": Pair(key="p", target="t", draft="d")})


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A folder of a person's own, which is looked through once it has been added."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setattr(
        "specchat.pairs.library.known_places", lambda _, added=(): [Place("added", folder) for path in added]
    )
    return folder


def made(folder, kept) -> Collection:
    return Collection(CATALOG, folder, kept, lambda: Surroundings(machine(8), "b1"))


class TestCombining:
    def test_any_two_models_and_what_drafts_without_a_model(self):
        assert pair_of(TARGET, DRAFT).key == "t+d"
        assert pair_of(TARGET, "ngram").drafter == "ngram"
        assert pair_of(TARGET, "ngram").name == "Target ⟵ n-gram"
        assert pair_of(TARGET, "none").drafter == "none"
        assert pair_of(TARGET, "none").models == (TARGET,)

    @pytest.mark.parametrize("draft", [DRAFT, "ngram", "none"])
    def test_a_pair_comes_back_from_what_is_remembered_of_it(self, draft):
        pair = pair_of(TARGET, draft)
        assert remembered_pair(*references(pair), CATALOG) == pair

    def test_files_are_remembered_by_their_paths_while_they_are_there(self, tmp_path):
        own = write_tiny_model(tmp_path / "own.gguf")
        pair = remembered_pair("t", str(own), CATALOG)
        assert pair is not None
        assert references(pair) == ("t", str(own))
        own.unlink()
        assert remembered_pair("t", str(own), CATALOG) is None
        assert remembered_pair("gone", "d", CATALOG) is None
        assert remembered_pair("../../etc/passwd", "d", CATALOG) is None

    def test_a_combined_pair_is_there_at_the_next_start_until_it_is_forgotten(self, folder, kept, added):
        first = made(folder, kept)
        key = first.combine(DRAFT, TARGET)
        assert (key, kept.state.combined) == ("d+t", (("d", "t"),))
        assert first.combine(DRAFT, TARGET) == key
        again = made(folder, kept)
        assert again.pair("d+t").target == DRAFT
        assert again.is_combined("d+t")
        assert again.put_there_by("d+t") == "combined"
        again.forget("d+t")
        assert "d+t" not in again.keys
        assert kept.state.combined == ()

    def test_a_pair_of_the_catalogue_is_not_made_again(self, folder, kept):
        collection = made(folder, kept)
        assert collection.combine(TARGET, DRAFT) == "p"
        assert kept.state.combined == ()
        assert collection.put_there_by("p") is None
        collection.forget("p")
        assert "p" in collection.keys

    def test_two_pairs_never_share_a_key(self, folder, kept, tmp_path):
        collection = made(folder, kept)
        own = write_tiny_model(tmp_path / "d.gguf")
        model = Model(key="d", name="mine", path=str(own))
        assert [collection.combine(TARGET, each) for each in (model, "ngram")] == ["t+d", "t+ngram"]
        other = Model(key="d", name="mine too", path=str(tmp_path / "other.gguf"))
        assert collection.combine(TARGET, other) == "t+d-2"
        assert collection.pair("t+d-2").key == "t+d-2"


class TestAdding:
    def test_a_folder_makes_pairs_and_can_be_forgotten(self, folder, kept, added):
        write_tiny_model(added / "big.gguf", n_layers=12)
        write_tiny_model(added / "small.gguf", n_layers=1)
        (added / "broken.gguf").write_bytes(b"GGUF")
        collection = made(folder, kept)
        assert {model.name for model in collection.add(added)} == {"big", "small"}
        keys = collection.discover()
        assert "big+small" in keys
        assert [each.path.name for each in collection.left_out] == ["broken.gguf"]
        assert {"big", "small", "Target", "Draft"} <= {model.name for model in collection.models()}
        (added / "big.gguf").unlink()
        assert "big+small" not in collection.discover()
        assert "big+small" not in collection.keys

    def test_a_folder_is_taken_off_as_a_whole(self, folder, kept, added):
        (added / "inner").mkdir()
        write_tiny_model(added / "inner" / "one.gguf")
        collection = made(folder, kept)
        collection.add(added)
        assert collection.discover() == ("one",)
        assert collection.put_there_by("one") == str(added)
        collection.forget("one")
        assert collection.discover() == ()

    def test_while_it_looks_the_pairs_stay_as_they_were(self, folder, kept, added, monkeypatch):
        write_tiny_model(added / "one.gguf")
        collection = made(folder, kept)
        collection.add(added)
        collection.discover()
        seen = []
        suggest = collections.suggest_pairs

        def look(*arguments):
            seen.append(collection.keys)
            return suggest(*arguments)

        monkeypatch.setattr(collections, "suggest_pairs", look)
        collection.discover()
        assert seen == [("p", "one")]

    def test_what_cannot_be_used_is_not_remembered(self, folder, kept, added):
        (added / "broken.gguf").write_bytes(b"GGUF")
        with pytest.raises(ModelFileError, match=r"broken\.gguf"):
            made(folder, kept).add(added)
        assert kept.state.added == ()

    def test_a_look_that_is_stopped_adds_nothing(self, folder, kept, added):
        write_tiny_model(added / "one.gguf")
        stopped = iter([False, True, True, True])
        assert made(folder, kept).add(added, lambda: next(stopped)) == []
        assert kept.state.added == ()

    def test_a_file_that_was_added_can_be_taken_off_again(self, folder, kept, tmp_path, monkeypatch):
        own = write_tiny_model(tmp_path / "own.gguf")
        monkeypatch.setattr(
            "specchat.pairs.library.known_places", lambda _, added=(): [Place("added", own)][: len(added)]
        )
        collection = made(folder, kept)
        collection.add(own)
        assert collection.discover() == ("own",)
        assert collection.put_there_by("own") == str(own)
        collection.forget("own")
        assert (collection.discover(), kept.state.added) == ((), ())
        assert own.exists()


def test_many_suggestions_take_no_time_to_compare(folder, kept, added, monkeypatch):
    """Looking up a pair does not go through all of them."""
    write_tiny_model(added / "one.gguf")
    (found,) = find_models([Place("added", added)])
    collection, calls = made(folder, kept), []
    monkeypatch.setattr(collections, "references", lambda pair: calls.append(1) or references(pair))
    for number in range(200):
        collection.take(pair_of(Model(key=f"m{number}", name="m", path=f"{found.path}{number}"), "none"))
    assert len(collection.keys) == 201
    assert len(calls) <= 600


def test_an_unknown_pair_names_the_nearest(folder, kept):
    with pytest.raises(UsageError) as error:
        made(folder, kept).pair("t+e")
    assert error.value.next_step == "/pair alone lists all pairs."


def test_figures_of_this_machine_are_shown_and_of_no_other(folder, kept):
    measured = Measurement(
        pair="p",
        device="CPU",
        version="b1",
        measured_at="2026-11-30",
        pass_seconds={1: 0.02, 2: 0.02, 3: 0.02},
        draft_step_seconds=0.004,
        acceptance_by_position=(0.8, 0.7),
        plain_tokens_per_second=50.0,
        recommended=Recommended(drafter="ngram", num_draft_tokens=2, speedup=1.2),
    )
    kept._set(measurements=(measured,))
    collection = made(folder, kept)
    assert collection.measured(collection.row("p")) is None, "the devices are not known yet"
    (row,) = collection.all_rows()
    assert row.measured.best == ("ngram", 2, 1.2)
    other = Collection(CATALOG, folder, kept, lambda: Surroundings(machine(8), "b2"))
    assert other.all_rows()[0].measured is None
