"""Another server is asked for the same replies; whatever else answers is told in one sentence."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from specchat.core.sampling import SamplingParams
from specchat.errors import ServerError, UsageError
from specchat.lab.llama_server import LlamaServer
from tests.lab.fake_llama_server import TIMINGS, Script, fake_server


def ask(url: str, **options):
    return LlamaServer(url, **options).reply("hello", SamplingParams(temperature=0.7), 64, 5)


def test_it_says_what_it_is() -> None:
    with fake_server() as (url, _):
        server = LlamaServer(url)
    assert (server.facts.build, server.facts.model, server.facts.slots) == ("b9999-abc", "toy.gguf", 4)
    assert server.address == url.removeprefix("http://")


def test_a_path_and_a_missing_scheme_are_understood() -> None:
    with fake_server() as (url, script):
        server = LlamaServer(url.removeprefix("http://") + "/some/where/")
        server.reply("hello", SamplingParams(), 8, 1)
    assert script.requests[0]["path"] == "/some/where/v1/chat/completions"


def test_the_same_is_asked_of_it_that_is_asked_of_us() -> None:
    with fake_server() as (url, script):
        sample = ask(url)
    request = script.requests[0]
    assert request["messages"] == [{"role": "user", "content": "hello"}]
    wanted = {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0}
    assert wanted.items() <= request.items()
    assert (request["max_tokens"], request["seed"], request["cache_prompt"], request["stream"]) == (64, 5, False, False)
    assert sample is not None
    # 11 tokens: the first one came out of the prompt's pass, so half a second is the time of ten
    assert (sample.tokens, sample.seconds, sample.tokens_per_second) == (10, 0.5, 20.0)
    assert (sample.prompt_tokens, sample.prompt_seconds) == (31, 0.06)


def test_the_time_of_a_prompt_that_was_cached_is_no_time() -> None:
    with fake_server(Script(reply={"timings": TIMINGS | {"prompt_n": 1, "cache_n": 30}})) as (url, _):
        sample = ask(url)
    assert sample is not None
    assert sample.prompt_seconds is None


def test_a_key_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    with fake_server() as (url, script):
        ask(url)
    assert script.headers[0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    "url",
    ["", "http://", "ftp://127.0.0.1:80", "http://127.0.0.1:99999", "http://[::1", "http://u:p@127.0.0.1:1", "a b://c"],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="is no address of a server") as caught:
        LlamaServer(url)
    assert "http://127.0.0.1:8080" in caught.value.next_step


def test_nobody_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ServerError, match=rf"Nobody answers at 127.0.0.1:{port} \(Connection refused\)") as caught:
        LlamaServer(f"http://127.0.0.1:{port}")
    assert "llama-server" in caught.value.next_step


@pytest.mark.parametrize(
    "script",
    [
        Script(props={"status": "ok"}),
        Script(props=[1, 2]),
        Script(props=b"<html>a page</html>"),
        Script(props_status=404),
        Script(props=b"<html>no such page</html>", props_status=404),
        Script(props={"build_info": 7}),
        Script(props=b"[" * 100_000),
    ],
)
def test_another_kind_of_server(script: Script) -> None:
    with fake_server(script) as (url, _), pytest.raises(ServerError, match=r"is not llama.cpp's server") as caught:
        LlamaServer(url)
    assert caught.value.next_step


def test_it_is_still_loading() -> None:
    error = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    with fake_server(Script(props=error, props_status=503)) as (url, _), pytest.raises(ServerError, match="loading"):
        LlamaServer(url)


def test_it_wants_a_key() -> None:
    script = Script(reply={"error": {}}, reply_status=401)
    with fake_server(script) as (url, _), pytest.raises(ServerError, match="wants a key") as caught:
        ask(url)
    assert "LLAMA_API_KEY" in caught.value.next_step


def test_its_own_words_are_kept() -> None:
    script = Script(reply={"error": {"message": "the request exceeds the context."}}, reply_status=400)
    with (
        fake_server(script) as (url, _),
        pytest.raises(ServerError, match=r"refused: the request exceeds the context\."),
    ):
        ask(url)


@pytest.mark.parametrize(
    "reply", [{"choices": []}, {"timings": {}}, {"timings": TIMINGS | {"predicted_ms": "soon"}}, {"timings": None}]
)
def test_a_reply_without_times(reply: object) -> None:
    with fake_server(Script(reply=reply)) as (url, _), pytest.raises(ServerError, match="how long it took"):
        ask(url)


def test_it_takes_too_long() -> None:
    with fake_server(Script(delay=2.0)) as (url, _), pytest.raises(ServerError, match="did not answer in time"):
        ask(url, reply_seconds=0.1)


def test_a_reply_is_given_up_at_once() -> None:
    with fake_server(Script(delay=30.0)) as (url, script):
        server = LlamaServer(url)
        before = time.monotonic()
        found = server.reply("hello", SamplingParams(), 8, 1, should_stop=lambda: bool(script.requests))
        assert found is None
        assert time.monotonic() - before < 20  # not until the answer comes
    assert [thread for thread in threading.enumerate() if thread.name == "llama-server"] == []


def test_proxies_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with fake_server() as (url, _):
        assert ask(url) is not None
