"""Which drafts may propose for which targets: twenty pairs that may and twenty that may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.backends.gguf_header import read_header
from specchat.errors import PairMismatchError
from specchat.pairs.compatibility import TokenDifference, Vocabulary, compare, table_of
from tests.gguf_writer import write_tiny_model

WORDS = tuple(b"token %d" % n for n in range(500))
SPECIAL = {"bos": 1, "eos": 2, "eot": 3}
BASE = Vocabulary("gpt2", WORDS, (1,) * 500, "qwen2", SPECIAL, adds_bos=False)


def more(count: int, text: bytes = b"[PAD%d]", kind: int = 1) -> Vocabulary:
    extra = tuple(text % n if b"%d" in text else text for n in range(500, 500 + count))
    return replace(BASE, tokens=WORDS + extra, types=(1,) * 500 + (kind,) * count)


def changed(index: int, text: bytes) -> Vocabulary:
    return replace(BASE, tokens=(*WORDS[:index], text, *WORDS[index + 1 :]))


GOOD = {
    "the same": (BASE, BASE),
    "target padded by 1": (more(1), BASE),
    "target padded by 128": (more(128), BASE),
    "draft padded by 128": (BASE, more(128)),
    "target padded by 3,000 unused ids": (more(3000, b"anything %d", 5), BASE),
    "draft padded by 3,000 pad tokens": (BASE, more(3000)),
    "padding like Gemma's": (more(200, b"<unused%d>"), BASE),
    "padding without text": (more(200, b""), BASE),
    "padding like Phi's": (more(200, b"<|dummy_%d|>"), BASE),
    "real tokens more in the target": (more(20, b"<|tool_%d|>"), BASE),
    "real tokens more in the draft": (BASE, more(20, b"<|tool_%d|>")),
    "another eos": (BASE, replace(BASE, special=SPECIAL | {"eos": 9})),
    "no eos": (BASE, replace(BASE, special={"bos": 1})),
    "another bos": (BASE, replace(BASE, special=SPECIAL | {"bos": 7})),
    "bos added by one": (BASE, replace(BASE, adds_bos=True)),
    "bos not stated by one": (BASE, replace(BASE, adds_bos=None)),
    "other types": (BASE, replace(BASE, types=(3,) * 500)),
    "types unknown": (BASE, replace(BASE, types=())),
    "another way to cut text": (BASE, replace(BASE, split="r1")),
    "special ids out of range": (replace(BASE, special={"eos": 10**6}), BASE),
}
BAD = {
    "another family": (BASE, replace(BASE, kind="llama")),
    "no vocabulary in the draft": (BASE, replace(BASE, tokens=())),
    "no vocabulary in the target": (replace(BASE, tokens=()), BASE),
    "the first differs": (BASE, changed(0, b"x")),
    "one in the middle": (BASE, changed(250, b"x")),
    "the last differs": (BASE, changed(499, b"x")),
    "upper and lower case": (BASE, changed(7, b"Token 7")),
    "a space": (BASE, changed(7, b" token 7")),
    "empty text": (BASE, changed(7, b"")),
    "bytes that are no text": (BASE, changed(7, b"\xff\xfe")),
    "all shifted by one": (BASE, replace(BASE, tokens=(b"new", *WORDS[:-1]))),
    "reversed": (BASE, replace(BASE, tokens=WORDS[::-1])),
    "two swapped": (BASE, replace(BASE, tokens=(WORDS[1], WORDS[0], *WORDS[2:]))),
    "a smaller one of another model": (BASE, Vocabulary("gpt2", tuple(b"w%d" % n for n in range(100)))),
    "129 real tokens more in the target": (more(129, b"<|tool_%d|>"), BASE),
    "129 real tokens more in the draft": (BASE, more(129, b"<|tool_%d|>")),
    "1,000 words more": (more(1000, b"word%d"), BASE),
    "one word behind much padding": (
        replace(more(500), tokens=(*more(500).tokens[:-1], b"word")),
        BASE,
    ),
    "padding in the middle": (BASE, changed(250, b"[PAD250]")),
    "an empty draft of an empty target": (replace(BASE, tokens=()), replace(BASE, tokens=())),
}


@pytest.mark.parametrize("pair", GOOD.values(), ids=GOOD.keys())
def test_good_pairs(pair: tuple[Vocabulary, Vocabulary]):
    verdict = compare(*pair)
    assert verdict.usable
    assert verdict.first_difference is None
    assert "same 500 tokens" in verdict.reason
    verdict.require()


@pytest.mark.parametrize("pair", BAD.values(), ids=BAD.keys())
def test_bad_pairs(pair: tuple[Vocabulary, Vocabulary]):
    verdict = compare(*pair)
    assert not verdict.usable
    with pytest.raises(PairMismatchError) as refused:
        verdict.require()
    assert refused.value.message == verdict.reason
    assert "ngram" in refused.value.next_step


def test_there_are_twenty_of_each():
    assert len(GOOD) == len(BAD) == 20


def test_the_first_difference_is_named_by_id_and_both_texts():
    verdict = compare(BASE, changed(250, b"x"))
    assert verdict.first_difference == TokenDifference(250, "'token 250'", "'x'")
    assert verdict.reason.startswith("Token 250 is 'token 250' for the target and 'x' for the draft")


def test_padding_is_counted():
    assert (compare(more(64), BASE).target_only, compare(more(64), BASE).draft_only) == (64, 0)
    assert (compare(BASE, more(64)).target_only, compare(BASE, more(64)).draft_only) == (0, 64)
    assert compare(more(64), BASE).reason == "Both have the same 500 tokens; the target has 64 more ids of padding."
    assert compare(more(64), BASE).notes == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("another eos", "eos is 2 'token 2' for the target and 9 'token 9' for the draft."),
        ("no eos", "eos is 2 'token 2' for the target and missing for the draft."),
        ("bos added by one", "Only the draft begins its prompts with bos."),
        ("other types", "500 tokens are of another type (control, normal, …) for the draft."),
        (
            "another way to cut text",
            "Text is cut into tokens in the way 'qwen2', and 'r1' for the draft.",
        ),
        (
            "real tokens more in the target",
            "Only the target has 20 ids, among them the token 500 '<|tool_500|>'.",
        ),
        ("special ids out of range", "eos is 1000000 for the target and 2 'token 2' for the draft."),
    ],
)
def test_harmless_differences_are_told(name: str, words: str):
    assert words in compare(*GOOD[name]).notes


def test_a_text_that_a_terminal_would_obey_is_shown_as_escapes():
    shown = compare(BASE, changed(3, b"\x1b]52;c;aGk=\x07\xc2\x9b2J\xe2\x80\xae")).first_difference.draft
    assert shown.isprintable()
    assert "\\x1b" in shown


def test_long_texts_are_cut():
    assert len(compare(BASE, changed(3, b"x" * 5000)).first_difference.draft) < 50


class TestFiles:
    def test_two_models_of_one_family(self, tmp_path: Path):
        target = table_of(read_header(write_tiny_model(tmp_path / "t.gguf", seed=1)))
        draft = table_of(read_header(write_tiny_model(tmp_path / "d.gguf", "qwen2", seed=2)))
        assert compare(target, draft).usable
        assert len(target.tokens) == len(target.types) > 100

    def test_one_of_them_padded(self, tmp_path: Path):
        target = table_of(read_header(write_tiny_model(tmp_path / "t.gguf", n_vocab=1000)))
        draft = table_of(read_header(write_tiny_model(tmp_path / "d.gguf")))
        verdict = compare(target, draft)
        assert verdict.usable
        assert verdict.target_only == 1000 - len(draft.tokens)
        assert verdict.notes == ()

    def test_another_family(self, tmp_path: Path):
        target = table_of(read_header(write_tiny_model(tmp_path / "t.gguf")))
        draft = table_of(read_header(write_tiny_model(tmp_path / "d.gguf", tokenizer="spm")))
        assert not compare(target, draft).usable

    @pytest.mark.pair
    def test_the_default_pair(self, qwen_pair_paths: tuple[Path, Path]):
        target, draft = (table_of(read_header(path)) for path in qwen_pair_paths)
        verdict = compare(target, draft)
        assert verdict.usable
        assert verdict.reason == "Both have the same 151,936 tokens."
        assert verdict.notes == ()
        assert target.special["eos"] == 151_645

    @pytest.mark.pair
    def test_two_families_on_disk(self, qwen_pair_paths: tuple[Path, Path], smollm2_path: Path):
        target, draft = table_of(read_header(qwen_pair_paths[0])), table_of(read_header(smollm2_path))
        assert compare(target, draft).first_difference == TokenDifference(0, "'!'", "'<|endoftext|>'")
