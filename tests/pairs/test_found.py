"""Models in other programs' folders, which are made up here; whatever else lies there does no harm."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from specchat.errors import ModelFileError
from specchat.pairs import found, places
from specchat.pairs.found import FoundModel, LeftOut, added_models, find_models
from specchat.pairs.places import Place, known_places
from specchat.pairs.sources import find
from tests.gguf_writer import write_tiny_model

NOT_WINDOWS = pytest.mark.skipif(sys.platform == "win32", reason="POSIX")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("made") / "tiny.gguf")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person's home folder; no folder of the system's is looked at."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def put(source, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, path)
    return path


def split(source, folder, count, stem="big"):
    """A model in parts: the first has all of it, the others hold nothing but say which they are."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index in range(1, count + 1):
        path = folder / f"{stem}-{index:05}-of-{count:05}.gguf"
        write_tiny_model(path, metadata={"split.count": count, "split.no": index - 1}, n_layers=index)
        paths.append(path)
    return paths


def look(*paths, **options):
    return list(find_models([Place("added", path) for path in paths], **options))


def names(findings):
    return [finding.name for finding in findings if isinstance(finding, FoundModel)]


def reasons(findings):
    return [finding.reason for finding in findings if isinstance(finding, LeftOut)]


class TestPlaces:
    def test_every_program_s_folder_is_known(self, home, tiny, alone, monkeypatch):
        models = home / "specchat"
        hub = put(tiny, alone / "models--a--b" / "snapshots" / "1234" / "hub.gguf")
        studio = put(tiny, home / ".lmstudio" / "models" / "owner" / "model" / "studio.gguf")
        llama = put(tiny, home / ".cache" / "llama.cpp" / "owner_model.gguf")
        own = put(tiny, models / "own.gguf")
        added = put(tiny, home / "Downloads" / "added.gguf")
        for copy in (hub, studio, llama, own, added):  # not the same bytes: one model each
            copy.write_bytes(copy.read_bytes() + bytes(32))
        findings = {each.name: each for each in find_models(known_places(models, [str(added.parent)]))}
        assert {name: each.origin for name, each in findings.items()} == {
            "hub": "Hugging Face cache",
            "studio": "LM Studio",
            "owner_model": "llama.cpp",
            "own": "models folder",
            "added": "added",
        }
        assert findings["studio"].path == studio
        assert findings["studio"].model.path == str(studio)
        assert find(findings["studio"].model, models) == studio
        assert findings["studio"].size == studio.stat().st_size

    def test_lm_studio_may_have_moved(self, home, tiny):
        elsewhere = home / "big disk"
        (home / ".lmstudio-home-pointer").write_text(str(elsewhere))
        put(tiny, elsewhere / "models" / "a.gguf")
        (elsewhere / "settings.json").write_text(json.dumps({"downloadsFolder": str(home / "downloads")}))
        put(write_tiny_model(home / "b.gguf", seed=2), home / "downloads" / "b.gguf")
        assert sorted(names(find_models(known_places(home / "none")))) == ["a", "b"]

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", '{"downloadsFolder": 3}', "[" * 100_000, '{"downloadsFolder": "\\u0000"}']
    )
    def test_settings_of_others_do_no_harm(self, home, content):
        (home / ".lmstudio" / "models").mkdir(parents=True)
        (home / ".lmstudio" / "settings.json").write_text(content)
        (home / ".lmstudio-home-pointer").write_bytes(b"\xff\x00\n")
        assert [place.path for place in known_places(home / "none") if place.origin == "LM Studio"] == [
            home / ".lmstudio" / "models"
        ]

    def test_folders_that_the_environment_names(self, home, monkeypatch):
        for name in ("ollama", "llama"):
            (home / name).mkdir()
        monkeypatch.setenv("OLLAMA_MODELS", str(home / "ollama"))
        monkeypatch.setenv("LLAMA_CACHE", str(home / "llama"))
        assert {place.path: place.origin for place in known_places(home / "none")} == {
            home / "ollama": "Ollama",
            home / "llama": "llama.cpp",
        }

    def test_a_folder_counts_once(self, home):
        assert [place.origin for place in known_places(home, [str(home)])] == ["added"]


class TestOllama:
    def manifest(self, root, parts, digest, media="application/vnd.ollama.image.model"):
        path = root.joinpath("manifests", *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        layers = [
            {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'0' * 64}", "size": 1},
            {"mediaType": media, "digest": digest, "size": 1},
        ]
        path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))

    def test_manifests_name_files_by_their_hashes(self, home, tiny):
        root = home / ".ollama" / "models"
        for letter, parts in (
            ("a", ("registry.ollama.ai", "library", "qwen2.5", "0.5b")),
            ("b", ("registry.ollama.ai", "someone", "model", "latest")),
            ("c", ("hf.co", "owner", "repo", "Q4_K_M")),
        ):
            self.manifest(root, parts, f"sha256:{letter * 64}")
            write_tiny_model(put(tiny, root / "blobs" / f"sha256-{letter * 64}"), seed=ord(letter))
        findings = list(find_models(known_places(home / "none")))
        assert names(findings) == ["hf.co/owner/repo:Q4_K_M", "qwen2.5:0.5b", "someone/model:latest"]
        assert {each.origin for each in findings} == {"Ollama"}
        assert findings[1].model.key == "qwen2.5-0.5b"
        assert findings[1].model.path == str(root / "blobs" / f"sha256-{'a' * 64}")

    def test_a_blob_that_is_missing_is_named(self, home):
        self.manifest(home / ".ollama" / "models", ("registry.ollama.ai", "library", "x", "1b"), f"sha256:{'a' * 64}")
        (left_out,) = find_models(known_places(home / "none"))
        assert "x:1b is not here whole" in left_out.reason
        assert left_out.next_step == "Run: ollama pull x:1b"

    @pytest.mark.parametrize(
        "digest", ["sha256:../../../../etc/passwd", "sha256:" + "A" * 64, 5, None, "md5:" + "a" * 64]
    )
    def test_a_digest_is_a_hash_or_nothing(self, home, digest):
        self.manifest(home / ".ollama" / "models", ("registry.ollama.ai", "library", "x", "1b"), digest)
        assert list(find_models(known_places(home / "none"))) == []

    @pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"layers": [{}]}', b"\xff\xfe", b'{"layers": 3}'])
    def test_other_manifests_do_no_harm(self, home, content):
        path = home / ".ollama" / "models" / "manifests" / "a" / "b" / "c" / "d"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        assert list(find_models(known_places(home / "none"))) == []

    def test_projectors_are_no_models(self, home):
        parts = ("registry.ollama.ai", "library", "llava", "7b")
        self.manifest(
            home / ".ollama" / "models", parts, f"sha256:{'a' * 64}", "application/vnd.ollama.image.projector"
        )
        assert list(find_models(known_places(home / "none"))) == []


class TestFiles:
    def test_a_split_set_is_one_model(self, tmp_path):
        paths = split(None, tmp_path / "whole", 3)
        (only,) = look(tmp_path)
        assert (only.name, only.path) == ("big", paths[0])
        assert only.size == sum(path.stat().st_size for path in paths)

    def test_a_set_with_a_part_missing_names_it(self, tmp_path):
        paths = split(None, tmp_path, 4)
        paths[2].unlink()
        (left_out,) = look(tmp_path)
        assert "big-00003-of-00004.gguf" in left_out.reason
        assert left_out.next_step == "Put all parts into one folder."
        paths[0].unlink()
        (left_out,) = look(tmp_path)
        assert left_out.path == paths[1]
        assert "the first is missing: big-00001-of-00004.gguf" in left_out.reason

    def test_what_cannot_chat_is_left_out_with_its_reason(self, tmp_path):
        write_tiny_model(tmp_path / "mmproj-x.gguf", metadata={"general.architecture": "clip"})
        write_tiny_model(tmp_path / "lora.gguf", metadata={"general.type": "adapter"})
        write_tiny_model(tmp_path / "embed.gguf", metadata={"general.architecture": "nomic-bert"})
        write_tiny_model(tmp_path / "mute.gguf", metadata={"tokenizer.ggml.model": "none"})
        (tmp_path / "torn.gguf").write_bytes((tmp_path / "lora.gguf").read_bytes()[:3000])
        (tmp_path / "text.gguf").write_text("not a model")
        told = dict(zip(("embed", "lora", "mmproj", "mute", "text", "torn"), look(tmp_path), strict=True))
        assert "an embedding model" in told["embed"].reason
        assert "a LoRA adapter" in told["lora"].reason
        assert "an image encoder" in told["mmproj"].reason
        assert "no vocabulary" in told["mute"].reason
        assert "not a GGUF file" in told["text"].reason
        assert "incomplete" in told["torn"].reason
        assert all(left_out.next_step for left_out in told.values())

    def test_other_files_are_not_looked_at(self, tmp_path, tiny):
        for name in ("x.bin", "x.gguf.part", "README.md", "gguf"):
            put(tiny, tmp_path / name)
        put(tiny, tmp_path / "UPPER.GGUF")
        assert names(look(tmp_path)) == ["UPPER"]

    def test_one_file_counts_once(self, tmp_path, tiny):
        path = put(tiny, tmp_path / "a" / "x.gguf")
        (tmp_path / "b").mkdir()
        os.link(path, tmp_path / "b" / "hard.gguf")
        if sys.platform != "win32":
            (tmp_path / "b" / "soft.gguf").symlink_to(path)
        assert len(look(tmp_path, path)) == 1

    @NOT_WINDOWS
    def test_links_that_lead_in_circles(self, tmp_path, tiny):
        put(tiny, tmp_path / "models" / "x.gguf")
        (tmp_path / "models" / "up").symlink_to(tmp_path)
        (tmp_path / "models" / "self").symlink_to(tmp_path / "models" / "self")
        (tmp_path / "nowhere.gguf").symlink_to(tmp_path / "gone")
        assert names(look(tmp_path)) == ["x"]

    @NOT_WINDOWS
    def test_pipes_and_closed_folders_are_passed_over(self, tmp_path, tiny):
        os.mkfifo(tmp_path / "pipe.gguf")
        put(tiny, tmp_path / "closed" / "x.gguf")
        put(tiny, tmp_path / "open" / "y.gguf")
        (tmp_path / "closed").chmod(0)
        try:
            found_here = names(look(tmp_path))
        finally:
            (tmp_path / "closed").chmod(0o700)
        assert found_here == (["x", "y"] if os.geteuid() == 0 else ["y"])

    def test_depth_and_numbers_are_bounded(self, tmp_path, tiny, monkeypatch):
        deep = tmp_path.joinpath(*"123456789")
        put(tiny, deep / "deep.gguf")
        assert look(tmp_path) == []
        assert names(look(deep)) == ["deep"]
        monkeypatch.setattr(found, "MAX_ENTRIES", 5)
        for number in range(7):
            (tmp_path / f"file{number}").touch()
        assert "only the first 5 were looked at" in reasons(look(tmp_path))[0]

    def test_models_are_bounded(self, tmp_path, monkeypatch):
        monkeypatch.setattr(found, "MAX_MODELS", 2)
        for number in range(3):
            write_tiny_model(tmp_path / f"{number}.gguf", seed=number)
        findings = look(tmp_path)
        assert names(findings) == ["0", "1"]
        assert reasons(findings) == ["Only the first 2 models are shown."]

    def test_it_can_be_stopped(self, tmp_path):
        for number in range(3):
            write_tiny_model(tmp_path / f"{number}.gguf", seed=number)
        answers = iter([False, True])
        assert names(look(tmp_path, cancelled=lambda: next(answers))) == ["0"]


class TestAdding:
    def test_a_file_or_a_folder(self, tmp_path, tiny):
        path = put(tiny, tmp_path / "a" / "x.gguf")
        assert names(added_models(path)) == names(added_models(path.parent)) == ["x"]

    def test_a_file_of_another_name(self, tmp_path, tiny):
        """A person who names a file means that file: Ollama's have no ending."""
        path = put(tiny, tmp_path / "sha256-0123")
        assert added_models(path)[0].path == path

    def test_what_is_not_there(self, tmp_path):
        with pytest.raises(ModelFileError, match="There is no file or folder"):
            added_models(tmp_path / "gone")
        with pytest.raises(ModelFileError, match=r"no \.gguf file"):
            added_models(tmp_path)

    def test_places_have_distinct_origins(self):
        assert set(places.Origin.__args__) >= {"Ollama", "LM Studio", "Hugging Face cache", "models folder", "added"}
