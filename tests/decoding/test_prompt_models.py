"""Prompts on llama.cpp's own tokenizers: tiny models, and real ones where they are on disk."""

import pytest

from specchat.backends.llama import load_model
from specchat.core.settings import ChatMessage
from specchat.decoding.prompt import render_prompt
from tests.decoding import templates
from tests.decoding.test_prompt import INJECTIONS, chat
from tests.gguf_writer import write_tiny_model


@pytest.fixture(scope="module", params=["bpe", "spm", "spm with spaces", "no template"])
def tiny(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    write_tiny_model(
        path,
        tokenizer=request.param[:3] if request.param != "no template" else "bpe",
        chat_template=None if request.param == "no template" else templates.CHATML,
        metadata={"tokenizer.ggml.add_space_prefix": True} if request.param == "spm with spaces" else None,
    )
    with load_model(path, vocab_only=True) as model:
        yield model.vocabulary


@pytest.fixture(scope="module")
def smollm2(smollm2_path):
    with load_model(smollm2_path, vocab_only=True) as model:
        yield model.vocabulary


def control_ids(vocabulary, tokens):
    return [token for token in tokens if vocabulary.is_control(token)]


def text(vocabulary, tokens):
    return b"".join(map(vocabulary.piece, tokens)).decode()


def check(vocabulary):
    harmless = control_ids(vocabulary, render_prompt(vocabulary, chat("one", "1", "two", system="S")).tokens)
    assert harmless
    for injection in [*INJECTIONS, *sorted(vocabulary.control_texts)[:20]]:
        for place in range(3):
            contents = ["S", "one", "1"]
            contents[place] = injection
            system, question, answer = contents
            prompt = render_prompt(vocabulary, chat(question, answer, "two", system=system))
            assert control_ids(vocabulary, prompt.tokens) == harmless
            spelled = text(vocabulary, prompt.tokens)
            assert injection.strip().replace("▁", " ") in spelled.replace("▁", " ")  # one letter to SentencePiece


def test_no_text_becomes_a_control_token(tiny):
    check(tiny)


def test_the_tokens_spell_the_text_and_begin_rightly(tiny):
    prompt = render_prompt(tiny, chat("hello <|im_end|> world", " yes", "\nhello\n\n world"))
    spelled = text(tiny, prompt.tokens)
    if tiny.add_bos:
        assert prompt.tokens[0] == tiny.bos
        assert prompt.tokens.count(tiny.bos) == 1
        spelled = spelled.removeprefix("<s>")
    spelled = spelled.replace("<|im_start|> ", "<|im_start|>").replace("<|im_end|> ", "<|im_end|>")
    assert spelled == prompt.text.replace("<|im_start|> ", "<|im_start|>").replace("<|im_end|> ", "<|im_end|>")


def test_replies_keep_their_ids(tiny):
    reply = "hello world"
    ids = tuple(token for letter in reply for token in tiny.tokenize(letter, parse_special=False)[-1:])
    assert text(tiny, ids).replace(" ", "") == "helloworld"
    reply = text(tiny, ids)
    first = render_prompt(tiny, chat("one"))
    prompt = render_prompt(tiny, [*chat("one"), ChatMessage("assistant", reply, ids), ChatMessage("user", "two")])
    assert prompt.tokens[: len(first.tokens) + len(ids)] == [*first.tokens, *ids]


@pytest.mark.model
def test_smollm2_takes_no_control_token_from_text(smollm2):
    check(smollm2)


@pytest.mark.pair
@pytest.mark.parametrize("which", [0, 1])
def test_qwen_takes_no_control_token_from_text(qwen_pair_paths, which):
    with load_model(qwen_pair_paths[which], vocab_only=True) as model:
        check(model.vocabulary)


def test_gemma_takes_no_control_token_from_text(gemma_path):
    with load_model(gemma_path, vocab_only=True) as model:
        check(model.vocabulary)


@pytest.mark.model
def test_smollm2_reads_whole_text(smollm2):
    prompt = render_prompt(smollm2, chat("\nhello", "1", "two"))
    assert prompt.tokens == smollm2.tokenize(prompt.text, parse_special=True)
    assert prompt.text.startswith("<|im_start|>system\nYou are a helpful AI assistant")
    assert text(smollm2, prompt.tokens) == prompt.text
