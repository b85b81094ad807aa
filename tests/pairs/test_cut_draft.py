"""Drafts that are cut from their targets: what stays is as it was, and llama.cpp runs them."""

import errno
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from specchat.backends.base import PassInput
from specchat.backends.gguf_header import read_header
from specchat.backends.gguf_layout import read_layout
from specchat.backends.llama import load_model
from specchat.errors import CancelledError, DiskFullError, ModelFileError, SpecchatError, UsageError
from specchat.pairs import cut_draft as cutting
from specchat.pairs.compatibility import compare_files
from specchat.pairs.cut_draft import cut_draft, kept_layers
from tests.gguf_writer import write_gguf, write_tiny_model


@pytest.fixture
def target(tmp_path):
    return write_tiny_model(tmp_path / "target.gguf", "qwen2", n_layers=7)


def data(tensor):
    with tensor.path.open("rb") as file:
        file.seek(tensor.begin)
        return file.read(tensor.n_bytes)


def same_but_for_layers(target, cut):
    """Whether every tensor of ``cut`` has the bytes of the one that it was, and every entry too but for two."""
    before = {tensor.name: tensor for part in read_header(target).parts for tensor in read_layout(part).tensors}
    after = read_layout(cut.path)
    names = set()
    for tensor in after.tensors:
        part = tensor.name.split(".")
        if part[0] == "blk":
            part[1] = str(cut.layers[int(part[1])])
        was = before[".".join(part)]
        names.add(was.name)
        assert (tensor.shape, tensor.kind, data(tensor)) == (was.shape, was.kind, data(was))
    assert names == {name for name in before if not name.startswith("blk.") or int(name.split(".")[1]) in cut.layers}
    entries = {entry.key: entry.value for entry in read_layout(target).entries}
    return {entry.key for entry in after.entries if entries.get(entry.key) != entry.value}


class TestWhichLayers:
    def test_the_first_and_the_last(self):
        assert kept_layers(30, 6) == (0, 1, 2, 27, 28, 29)
        assert kept_layers(30, 5) == (0, 1, 2, 28, 29)
        assert kept_layers(2, 1) == (0,)
        for keep in range(1, 12):
            layers = kept_layers(12, keep)
            assert len(set(layers)) == keep
            assert list(layers) == sorted(layers)
            assert set(layers) <= set(range(12))

    @pytest.mark.parametrize("keep", [0, -1, 12, 13])
    def test_not_none_and_not_all(self, keep):
        with pytest.raises(UsageError, match="12 layers") as refused:
            kept_layers(12, keep)
        assert refused.value.next_step == "Choose between 1 and 11: --layers 3, for instance."


class TestTheFile:
    def test_everything_but_the_layers_is_as_it_was(self, target, tmp_path):
        seen = []
        cut = cut_draft(target, tmp_path / "draft.gguf", 3, progress=seen.append)
        assert cut.layers == (0, 1, 6)
        assert cut.n_layers_before == 7
        assert cut.size == cut.path.stat().st_size < target.stat().st_size
        assert same_but_for_layers(target, cut) == {"qwen2.block_count", "general.name"}
        header = read_header(cut.path)
        assert (header.n_layers, header.name) == (3, "Tiny qwen2 (3 of 7 layers)")
        assert compare_files(read_header(target), header).reason.startswith("Both have the same")
        assert seen == sorted(seen)
        assert seen[-1] == 1
        assert {path.name for path in tmp_path.iterdir()} == {"target.gguf", "draft.gguf"}

    @pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3", "mamba", "lfm2"])
    def test_llama_cpp_runs_it(self, tmp_path, architecture):
        path = write_tiny_model(tmp_path / "target.gguf", architecture, n_layers=6)
        cut = cut_draft(path, tmp_path / "draft.gguf", 4)
        with load_model(cut.path) as model, model.context(n_ctx=64, threads=1) as context:
            logits = context.decode([PassInput(0, [5, 6, 7], 1)])[0]
            assert np.isfinite(logits).all()
            assert model.facts.n_layers == 4

    def test_layers_with_windows_keep_them(self, tmp_path):
        """By its place every sixth layer of Gemma 3 has none; the file now says for each layer what it was."""
        path = write_tiny_model(
            tmp_path / "gemma.gguf", "gemma3", n_layers=12, metadata={"gemma3.attention.sliding_window_pattern": None}
        )
        before = read_header(path)
        cut = cut_draft(path, tmp_path / "draft.gguf", 5)
        assert read_header(cut.path).has_window == tuple(before.has_window[layer] for layer in cut.layers)
        assert same_but_for_layers(path, cut) == {
            "gemma3.block_count", "general.name", "gemma3.attention.sliding_window_pattern",
        }  # fmt: skip
        with load_model(cut.path) as model, model.context(n_ctx=1024, threads=1) as context:
            assert context.decode([PassInput(0, [5], 1)])

    def test_what_a_file_says_layer_by_layer_is_picked(self, tmp_path):
        path = write_tiny_model(tmp_path / "lfm2.gguf", "lfm2", n_layers=6)
        cut = cut_draft(path, tmp_path / "draft.gguf", 3)
        assert read_header(cut.path).n_heads_kv == (0, 0, 2)
        assert same_but_for_layers(path, cut) == {"lfm2.block_count", "lfm2.attention.head_count_kv", "general.name"}

    def test_a_split_target_becomes_one_file(self, tmp_path):
        first = write_tiny_model(
            tmp_path / "x-00001-of-00002.gguf", n_layers=1, metadata={"split.count": 2, "llama.block_count": 3}
        )
        extra = {}
        for layer in (1, 2):
            for tensor in read_layout(first).tensors:
                if tensor.name.startswith("blk.0."):
                    shape = tuple(reversed(tensor.shape))
                    extra[tensor.name.replace("blk.0.", f"blk.{layer}.")] = np.full(shape, layer, np.float32)
        write_gguf(tmp_path / "x-00002-of-00002.gguf", {"split.count": 2, "split.no": 1}, extra)
        cut = cut_draft(first, tmp_path / "draft.gguf", 2)
        assert cut.layers == (0, 2)
        header = read_header(cut.path)
        assert header.parts == (cut.path,)
        assert same_but_for_layers(first, cut) == {"llama.block_count", "general.name"}
        assert not any(entry.key.startswith("split.") for entry in read_layout(cut.path).entries)

    @pytest.mark.model
    def test_a_real_model(self, smollm2_path, tmp_path):
        cut = cut_draft(smollm2_path, tmp_path / "draft.gguf", 4)
        assert same_but_for_layers(smollm2_path, cut) == {"llama.block_count", "general.name"}
        with load_model(cut.path) as model, model.context(n_ctx=64, threads=1) as context:
            assert np.isfinite(context.decode([PassInput(0, [5, 6, 7], 1)])[0]).all()


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "key", ["nextn_predict_layers", "attention.shared_kv_layers", "embedding_length_per_layer_input"]
    )
    def test_networks_that_depend_on_their_depth(self, tmp_path, key):
        path = write_tiny_model(tmp_path / "x.gguf", n_layers=4, metadata={f"llama.{key}": 1})
        with pytest.raises(ModelFileError, match="cannot be cut") as refused:
            cut_draft(path, tmp_path / "draft.gguf", 2)
        assert "--draft ngram" in refused.value.next_step

    def test_layers_of_several_kinds_by_their_place(self, tmp_path):
        """Here the last layer attends and the others do not, and nothing in the file says which do."""
        path = write_tiny_model(tmp_path / "x.gguf", "lfm2", n_layers=4, metadata={"lfm2.attention.head_count_kv": 2})
        with pytest.raises(ModelFileError, match="several kinds, by their place"):
            cut_draft(path, tmp_path / "draft.gguf", 2)

    def test_the_target_itself_a_folder_or_another_file(self, target, tmp_path):
        for output, says in ((target, "is the target itself"), (tmp_path, "is a folder")):
            with pytest.raises(UsageError, match=says):
                cut_draft(target, output, 3, overwrite=True)
        other = tmp_path / "other.gguf"
        other.write_text("precious")
        with pytest.raises(UsageError, match="is there already") as refused:
            cut_draft(target, other, 3)
        assert "--force" in refused.value.next_step
        assert other.read_text() == "precious"
        assert cut_draft(target, other, 3, overwrite=True).size == other.stat().st_size

    def test_a_target_that_cannot_be_read(self, target, tmp_path):
        torn = tmp_path / "torn.gguf"
        torn.write_bytes(target.read_bytes()[:-100])
        with pytest.raises(ModelFileError, match="incomplete"):
            cut_draft(torn, tmp_path / "draft.gguf", 3)


class TestNothingHalfWritten:
    def left(self, tmp_path):
        return {path.name for path in tmp_path.iterdir()}

    def test_stopped(self, target, tmp_path):
        answers = iter([False, False, True])
        with pytest.raises(CancelledError):
            cut_draft(target, tmp_path / "draft.gguf", 3, cancelled=lambda: next(answers))
        assert self.left(tmp_path) == {"target.gguf"}

    def test_too_little_room(self, target, tmp_path, monkeypatch):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.raises(DiskFullError, match=r"1\.0 kB free") as refused:
            cut_draft(target, tmp_path / "draft.gguf", 3)
        assert "(-o)" in refused.value.next_step
        assert self.left(tmp_path) == {"target.gguf"}

    @pytest.mark.parametrize(("code", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EROFS, SpecchatError)])
    def test_the_system_refuses_in_the_middle(self, target, tmp_path, monkeypatch, code, kind):
        def refuse(_descriptor):
            raise OSError(code, "refused")

        monkeypatch.setattr(cutting.os, "fsync", refuse)
        with pytest.raises(kind) as refused:
            cut_draft(target, tmp_path / "draft.gguf", 3)
        assert refused.type is kind
        assert self.left(tmp_path) == {"target.gguf"}

    def test_a_folder_that_is_not_there(self, target, tmp_path):
        with pytest.raises(SpecchatError, match="cannot be written"):
            cut_draft(target, tmp_path / "none" / "draft.gguf", 3)

    def test_a_target_that_becomes_shorter(self, target, tmp_path, monkeypatch):
        read = cutting.read_layout

        def read_and_shorten(path):
            layout = read(path)
            path.write_bytes(path.read_bytes()[:-100])
            return layout

        monkeypatch.setattr(cutting, "read_layout", read_and_shorten)
        with pytest.raises(ModelFileError, match="became shorter"):
            cut_draft(target, tmp_path / "draft.gguf", 3)
        assert self.left(tmp_path) == {"target.gguf"}
