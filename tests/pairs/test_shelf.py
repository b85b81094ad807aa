"""Rows of the picker: made from real files, sorted, searched, recommended, and put into words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.pairs.catalog import Model, ModelPair, Pair, load_catalog, pair_from_files
from specchat.pairs.measured import Measured
from specchat.pairs.row_text import details, fit_text, measured_text, row_json, where
from specchat.pairs.rows import matching_rows, recommend, sorted_rows
from specchat.pairs.shelf import examine, glance
from specchat.pairs.wheels import part_path
from tests.gguf_writer import write_tiny_model
from tests.pairs.machines import machine

PAYS = Measured(0.8, 1.5, False, 4, 30.0, "2026-11-30")
COSTS = Measured(0.4, 1.0, True, 0, 30.0, "2026-11-30")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        "target": write_tiny_model(folder / "target.gguf", n_layers=8, metadata={"general.license": "mit"}),
        "draft": write_tiny_model(folder / "draft.gguf"),
        "other": write_tiny_model(folder / "other.gguf", tokenizer="spm"),
        "mamba": write_tiny_model(folder / "mamba.gguf", "mamba"),
        "lfm2": write_tiny_model(folder / "lfm2.gguf", "lfm2"),
        "big": write_tiny_model(folder / "big.gguf", n_vocab=152_064, n_embd=32, n_layers=1),
        "small": write_tiny_model(folder / "small.gguf", n_vocab=151_936, n_embd=32, n_layers=1),
    }


def row(made, target, draft=None, measured=None, **options):
    pair = pair_from_files(made[target], None if draft is None else made[draft])
    return examine(glance(pair, Path("nowhere")), machine(8), measured, **options)


def catalog_rows(the_machine, folder, measured=None):
    pairs = load_catalog().all_pairs()
    return [examine(glance(pair, folder), the_machine, (measured or {}).get(pair.key)) for pair in pairs]


def heading(the_row, name):
    return " ".join(next((detail.lines for detail in details(the_row) if detail.heading == name), ()))


class TestMatch:
    def test_the_same_vocabulary(self, made):
        found = row(made, "target", "draft")
        assert (found.match, found.problems, found.warnings) == ("same vocabulary", (), ())
        assert found.fit.verdict == "fits in memory"
        assert (found.is_here, found.missing) == (True, 0)
        assert found.licenses == "mit, not stated"

    def test_padding_is_no_difference(self, made):
        """As in Qwen2.5: 152,064 rows in the large models and 151,936 in the small ones."""
        found = row(made, "big", "small")
        assert found.match == "same, padded"
        assert found.compatibility.target_only == 128
        assert "the target has 128 more ids of padding" in heading(found, "Vocabulary")

    def test_a_difference_names_the_first_id_and_both_texts(self, made):
        found = row(made, "target", "other")
        assert found.match == "differs"
        assert "a vocabulary of the kind 'gpt2', the draft one of the kind 'llama'" in found.warnings[0]
        assert "--draft ngram" in found.warnings[0]

    def test_the_first_differing_token(self, made, tmp_path):
        from tests.tiny_vocabulary import bpe

        tokens = bpe().tokens
        tokens[300] = "elsewhere"
        other = write_tiny_model(tmp_path / "changed.gguf", metadata={"tokenizer.ggml.tokens": tokens})
        found = row({**made, "changed": other}, "target", "changed")
        assert found.match == "differs"
        difference = row_json(found)["vocabulary"]["first_difference"]
        assert (difference["id"], difference["draft"]) == (300, "'elsewhere'")
        assert f"Token 300 is {difference['target']} for the target and 'elsewhere' for the draft" in found.warnings[0]

    def test_what_is_not_here_is_checked_when_fetched(self, folder):
        found = catalog_rows(machine(16), folder)[0]
        assert found.match == "checked when fetched"
        assert found.compatibility is None
        assert "once both files are here" in heading(found, "Vocabulary")

    def test_a_model_that_drafts_for_itself_and_one_alone(self, made):
        found = row(made, "target", "target")
        assert (found.match, len(found.states)) == ("same model", 1)
        assert found.size == made["target"].stat().st_size
        assert row(made, "target").match == "no draft"


class TestFilesThatCannotBeUsed:
    def test_each_has_its_own_sentence_and_next_step(self, made, tmp_path):
        torn, text = tmp_path / "torn.gguf", tmp_path / "text.gguf"
        torn.write_bytes(made["draft"].read_bytes()[:9000])
        text.write_text("<!DOCTYPE html>")
        mute = write_tiny_model(tmp_path / "mute.gguf", metadata={"tokenizer.ggml.model": "none"})
        vectors = write_tiny_model(tmp_path / "vectors.gguf", metadata={"general.architecture": "nomic-bert"})
        for path, says, step in (
            (torn, "torn.gguf is incomplete", "Download it again."),
            (text, "text.gguf is not a GGUF file; it looks like a web page", "Give a file in the GGUF format"),
            (mute, "mute.gguf has no vocabulary", "Look for a newer conversion"),
            (
                vectors,
                "an embedding model (nomic-bert), which turns text into vectors",
                "Choose a model that writes text",
            ),
        ):
            found = self.pair(made["target"], path)
            assert found.match == "cannot be read"
            assert found.fit is None
            assert says in found.problems[0]
            assert step in found.problems[0]
            assert says in heading(found, "Cannot be used")

    def test_a_file_that_is_gone(self, made, tmp_path):
        found = self.pair(made["target"], tmp_path / "gone.gguf")
        assert "There is no file" in found.problems[0]
        assert not found.is_here

    def pair(self, target, draft):
        models = [Model(key=path.stem, name=path.stem, path=str(path), size=1000) for path in (target, draft)]
        return examine(glance(ModelPair(Pair(key="x", target="t", draft="d"), *models), Path("nowhere")), machine(8))


class TestWarnings:
    def test_a_draft_that_is_larger_than_its_target(self, made):
        found = row(made, "draft", "target")
        assert "is larger than its target" in found.warnings[0]
        assert "Exchange them" in found.warnings[0]
        assert found.problems == ()

    def test_a_model_that_cannot_be_rolled_back(self, made):
        assert "The target keeps a running state" in row(made, "mamba").warnings[0]
        assert "tokens that are refused are evaluated again" in row(made, "mamba").warnings[0]
        assert "a few tokens can be taken back" in row(made, "lfm2").warnings[0]
        assert any("The draft keeps a running state" in text for text in row(made, "target", "mamba").warnings)


class TestBeforeFetching:
    def test_sizes_and_fit_are_known(self, folder):
        rows = {found.key: found for found in catalog_rows(machine(32, 7.5), folder)}
        pair = rows["qwen2_5-7b"]
        assert (pair.is_here, pair.missing) == (False, pair.size)
        assert where(pair) == "to fetch 5.4 GB"
        assert pair.fit.verdict == "fits the GPU"
        assert not pair.fit.is_rough
        assert "to fetch from bartowski/Qwen2.5-7B-Instruct-GGUF" in heading(pair, "Files")
        assert fit_text(rows["qwen3-8b"]) == "fits the GPU (4,096 tokens)"

    def test_what_an_interrupted_fetch_left_counts(self, folder):
        model = load_catalog().models["smollm2-135m"]
        folder.mkdir()
        part_path(folder, model.file).write_bytes(bytes(1_000_000))
        found = glance(load_catalog().pair("smollm2-135m"), folder)
        assert found.missing == model.size - 1_000_000
        assert "1.0 MB are here already" in heading(found, "Files")

    def test_a_file_that_was_not_checked_yet_is_here(self, folder, made):
        model = load_catalog().models["smollm2-135m"]
        folder.mkdir()
        (folder / model.file).write_bytes(made["target"].read_bytes())
        found = examine(glance(load_catalog().pair("smollm2-135m"), folder), machine(8))
        assert found.is_here
        assert "not checked yet" in heading(found, "Files")

    def test_where_nothing_is_known_it_says_so(self, folder):
        unknown = ModelPair(Pair(key="x", target="m"), Model(key="m", name="M", file="m.gguf"), None)
        found = examine(glance(unknown, folder), machine(8))
        assert (found.fit, found.size, found.missing, where(found)) == (None, None, None, "to fetch")
        assert fit_text(found) == "not known"
        sized = replace(unknown, target=Model(key="m", name="M", file="m.gguf", size=4 * 10**9))
        found = examine(glance(sized, folder), machine(8))
        assert fit_text(found) == "about: fits in memory"
        assert heading(found, "Memory").startswith("About:")

    def test_without_devices_the_fit_is_not_known(self, made):
        pair = pair_from_files(made["target"])
        assert examine(glance(pair, Path("nowhere"))).fit is None


class TestRecommending:
    def best(self, rows):
        marked = [found.key for found in recommend(rows) if found.is_recommended]
        assert len(marked) <= 1
        return marked[0] if marked else None

    @pytest.mark.parametrize(
        ("gpus", "expected"),
        [
            ((), "qwen2_5-coder-1_5b"),
            ((8 * 0.94,), "llama3_1-8b"),
            ((12 * 0.94,), "qwen2_5-14b"),
            ((24 * 0.94,), "qwen2_5-32b"),
        ],
    )
    def test_the_largest_that_runs_well(self, folder, gpus, expected):
        assert self.best(catalog_rows(machine(64, *gpus), folder)) == expected

    def test_one_that_was_measured_to_pay_goes_first(self, folder):
        rows = catalog_rows(machine(64, 24), folder, {"qwen2_5-7b": PAYS})
        assert self.best(rows) == "qwen2_5-7b"
        rows = catalog_rows(machine(64, 24), folder, {"qwen2_5-32b": COSTS})
        assert self.best(rows) not in ("qwen2_5-32b", None)
        assert self.best(catalog_rows(machine(64), folder, {"qwen2_5-coder-1_5b": COSTS})) == "qwen2_5-coder-1_5b"

    def test_nothing_that_cannot_be_used(self, made, folder):
        assert self.best(catalog_rows(machine(0.5), folder)) is None
        assert self.best([row(made, "target", "other")]) is None
        assert self.best([row(made, "target", "draft")]) is not None
        assert self.best([]) is None


class TestSortingAndSearching:
    def test_orders(self, folder):
        rows = catalog_rows(machine(64, 8), folder, {"qwen2_5-7b": PAYS, "qwen2_5-14b": COSTS})
        by_fit = [found.fit.verdict for found in sorted_rows(rows, "fit")]
        assert by_fit[0] == "fits the GPU"
        assert by_fit == sorted(by_fit, key=("fits the GPU", "fits in memory", "partly on the GPU").index)
        assert [found.key for found in sorted_rows(rows, "speedup")][:2] == ["qwen2_5-7b", "qwen2_5-14b"]
        sizes = [found.size for found in sorted_rows(rows, "size")]
        assert sizes == sorted(sizes)

    def test_words(self, folder, made):
        rows = catalog_rows(machine(64), folder)
        assert [found.key for found in matching_rows(rows, "LLAMA 8b")] == ["llama3_1-8b"]
        assert {found.key for found in matching_rows(rows, "gemma")} == {"gemma3-12b"}
        assert len(matching_rows(rows, "  ")) == len(rows)
        assert len(matching_rows(rows, "to fetch")) == len(rows)
        assert matching_rows(rows, "nonsense") == []
        assert len(matching_rows([row(made, "target", "draft")], "target.gguf on disk")) == 1


class TestWords:
    def test_a_measurement(self, made):
        found = row(made, "target", "draft", PAYS)
        assert measured_text(found) == "α 0.80, 1.50×"
        assert "Best with γ 4" in heading(found, "Measured here")
        assert measured_text(replace(found, measured=COSTS)) == "α 0.40, about 1.00×"
        assert "does not pay here" in heading(replace(found, measured=COSTS), "Measured here")
        assert measured_text(replace(found, measured=None)) == "not measured"

    def test_memory_is_a_sum(self, made):
        text = heading(row(made, "target", "draft"), "Memory")
        for part in ("target: weights (RAM)", "draft: cache (RAM)", "draft: computing (RAM)", "that are free"):
            assert part in text

    def test_json_has_everything_and_is_json(self, made, folder):
        for found in [row(made, "target", "draft", PAYS), row(made, "target", "other"), *catalog_rows(None, folder)]:
            data = json.loads(json.dumps(row_json(found), allow_nan=False))
            assert data["key"] == found.key
            assert set(data) >= {
                "target",
                "draft",
                "fit",
                "vocabulary",
                "measured",
                "recommended",
                "license",
                "missing",
            }
        data = row_json(row(made, "target", "draft", PAYS))
        assert data["fit"]["verdict"] == "fits in memory"
        assert sum(part["size"] for part in data["fit"]["parts"]) == data["fit"]["needed"]
        assert data["vocabulary"]["usable"] is True
        assert (data["measured"]["speedup"], data["measured"]["pays"]) == (1.5, True)
        assert data["target"]["path"] == str(made["target"])
