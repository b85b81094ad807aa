"""Loading pairs with llama.cpp: tiny random models, and what is told when something has to be given up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specchat.backends.base import Interrupted
from specchat.backends.llama import DeviceFacts
from specchat.core.events import Fate
from specchat.core.sampling import SamplingParams
from specchat.engine import loading
from specchat.engine.interface import Calibrate, Calibration, DeviceList, Devices, Failed, Load, Loaded
from specchat.engine.loading import load_pair
from specchat.engine.local import LocalEngine
from specchat.errors import MemoryShortError, ModelFileError, PairMismatchError
from tests.engine.conversing import events_of, reply, rounds, settings, until_kind, written
from tests.gguf_writer import write_tiny_model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    made = {
        "target": write_tiny_model(folder / "target.gguf", seed=1),
        "draft": write_tiny_model(folder / "draft.gguf", seed=1, perturb=0.3),
        "padded": write_tiny_model(folder / "padded.gguf", seed=1, n_vocab=512),
        "other": write_tiny_model(folder / "other.gguf", seed=1, tokenizer="spm"),
        "short": write_tiny_model(folder / "short.gguf", seed=1, n_ctx_train=300),
        "deep": write_tiny_model(folder / "deep.gguf", seed=1, n_layers=5),
    }
    (folder / "torn.gguf").write_bytes(made["draft"].read_bytes()[:5000])
    return {name: str(path) for name, path in made.items()} | {"torn": str(folder / "torn.gguf")}


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine()
    yield engine
    engine.close()


def loaded(engine: LocalEngine, command: Load) -> Loaded:
    engine.send(command)
    return until_kind(engine, Loaded)


def go_on(model: str, fraction: float) -> bool:
    return True


def command(target: str, draft: str | None = None, **options: object) -> Load:
    return Load(target, draft, threads=1, **options)  # type: ignore[arg-type]


def test_a_pair_drafts_and_verifies(engine: LocalEngine, files: dict[str, str]) -> None:
    ready = loaded(engine, command(files["target"], files["draft"], n_ctx=512))
    assert (ready.target.architecture, ready.draft and ready.draft.architecture) == ("llama", "llama")
    assert ready.n_ctx == 512
    assert ready.max_draft_tokens == 32
    assert ready.has_chat_template
    assert "llama" in ready.build
    assert ready.target.memory_bytes > ready.target.file_bytes // 2
    engine.send(reply(the_settings=settings(max_tokens=60)))
    played = rounds(events_of(engine, 1))
    fates = {token.fate for event in played for token in event.drafted}
    assert {Fate.ACCEPTED, Fate.REJECTED} <= fates
    for event in played:
        for token in event.drafted:
            assert token.q > 0
            if token.fate is not Fate.IGNORED:
                assert token.threshold == pytest.approx(min(1, token.p / token.q))
                assert (token.draw < token.threshold) == (token.fate is Fate.ACCEPTED)


@pytest.mark.parametrize("devices", [("cpu", None), ("CPU", "CPU"), (None, "CPU")])
def test_devices_by_name(engine: LocalEngine, files: dict[str, str], devices: tuple[str | None, str | None]) -> None:
    target, draft = devices
    ready = loaded(
        engine, command(files["target"], files["draft"], n_ctx=256, target_device=target, draft_device=draft)
    )
    assert (ready.target.device, ready.draft and ready.draft.device) == ("CPU", "CPU")


@pytest.mark.parametrize("wrong", [{"target_device": "CUDA9"}, {"draft_device": "CUDA9"}])
def test_a_device_that_is_not_there_is_named_with_those_that_are(
    engine: LocalEngine, files: dict[str, str], wrong: dict[str, str]
) -> None:
    engine.send(command(files["target"], files["draft"], n_ctx=256, **wrong))
    failed = until_kind(engine, Failed)
    assert "'CUDA9'" in failed.message
    assert "CPU" in failed.next_step


def test_ids_that_only_one_model_has_do_not_matter(engine: LocalEngine, files: dict[str, str]) -> None:
    for target, draft in (("padded", "target"), ("target", "padded")):
        assert loaded(engine, command(files[target], files[draft], n_ctx=256)).draft is not None
        engine.send(reply(the_settings=settings(max_tokens=20)))
        assert written(events_of(engine, 1))


def test_another_vocabulary_is_refused_with_the_first_token_that_differs(files: dict[str, str]) -> None:
    with pytest.raises(PairMismatchError, match=r"token \d+ is '.*' in the target and '.*' in the draft") as error:
        load_pair(command(files["target"], files["other"]), go_on)
    assert "ngram" in error.value.next_step


@pytest.mark.parametrize("name", ["torn", "missing.gguf"])
def test_a_draft_that_cannot_be_loaded_is_left_out_and_told(
    engine: LocalEngine, files: dict[str, str], name: str
) -> None:
    ready = loaded(engine, command(files["target"], files.get(name, name), n_ctx=256))
    assert ready.draft is None
    assert any(note.startswith("The draft is not used: ") for note in ready.notes)
    engine.send(reply(the_settings=settings(max_tokens=8)))
    played = rounds(events_of(engine, 1))
    assert len(played) == 8
    assert "no drafter called draft" in (played[0].why or "")


def test_a_target_that_cannot_be_loaded_is_an_error(files: dict[str, str]) -> None:
    with pytest.raises(ModelFileError):
        load_pair(command(files["torn"]), go_on)
    with pytest.raises(ModelFileError):
        load_pair(command("missing.gguf"), go_on)


def test_a_model_that_drafts_for_itself_shares_its_weights(engine: LocalEngine, files: dict[str, str]) -> None:
    pair = load_pair(command(files["target"], files["target"], n_ctx=256), go_on)
    assert pair.draft is not None
    assert pair.draft.vocabulary is pair.target.vocabulary
    pair.close()
    loaded(engine, command(files["target"], files["target"], n_ctx=256, exact=True))
    engine.send(reply(the_settings=settings(mode="exact", sampling=SamplingParams(temperature=0))))
    judged = [t for event in rounds(events_of(engine, 1)) for t in event.drafted if t.fate is not Fate.IGNORED]
    assert judged
    assert {token.fate for token in judged} == {Fate.ACCEPTED}


def test_exact_mode_writes_what_plain_decoding_writes(engine: LocalEngine, files: dict[str, str]) -> None:
    loaded(engine, command(files["target"], files["draft"], n_ctx=256, exact=True))
    greedy = SamplingParams(temperature=0)
    engine.send(reply(1, the_settings=settings(mode="exact", sampling=greedy, max_tokens=80)))
    exact = events_of(engine, 1)
    engine.send(reply(2, the_settings=settings(drafter="none", sampling=greedy, max_tokens=80)))
    assert written(exact) == written(events_of(engine, 2))
    assert any(event.num_draft_tokens for event in rounds(exact))


def test_ngram_needs_no_draft(engine: LocalEngine, files: dict[str, str]) -> None:
    loaded(engine, command(files["target"], n_ctx=256))
    greedy = settings(drafter="ngram", sampling=SamplingParams(temperature=0), max_tokens=200)
    engine.send(reply(the_settings=greedy))
    drafters = {token.drafter for event in rounds(events_of(engine, 1)) for token in event.drafted}
    assert drafters == {"ngram"}, "a greedy reply of a random model repeats itself sooner or later"


@pytest.mark.parametrize(("wanted", "used"), [(None, 300), (256, 256), (9000, 300)])
def test_the_context_is_what_was_asked_for_or_what_the_model_can(
    files: dict[str, str], wanted: int | None, used: int
) -> None:
    pair = load_pair(command(files["short"], files["short"], n_ctx=wanted), go_on)
    assert pair.target.n_ctx == used
    assert pair.draft is not None
    assert pair.draft.n_ctx == used
    assert any("300 tokens" in note for note in pair.notes) == (wanted == 9000)
    pair.close()


def test_a_context_that_memory_is_short_for(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from specchat.backends.llama import LlamaModel

    make = LlamaModel.context

    def context(self: LlamaModel, *, n_ctx: int, **options: object) -> object:
        if n_ctx > 1100:
            raise MemoryShortError(f"no memory for {n_ctx}", "Choose a shorter context (--ctx).")
        return make(self, n_ctx=n_ctx, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LlamaModel, "context", context)
    pair = load_pair(command(files["target"], files["draft"]), go_on)
    assert pair.target.n_ctx == 1024
    assert "There is memory for a context of 1024 tokens, not 4096." in pair.notes
    pair.close()
    with pytest.raises(MemoryShortError, match="no memory for 2000"):
        load_pair(command(files["target"], n_ctx=2000), go_on)
    monkeypatch.setattr(loading, "SMALLEST_CONTEXT", 2048)
    with pytest.raises(MemoryShortError):
        load_pair(command(files["target"]), go_on)


def test_memory_is_reckoned_before_anything_is_loaded(files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that is short of memory may end the process rather than refuse: the context is chosen to fit."""

    def with_free(free: int) -> None:
        monkeypatch.setattr(loading, "devices", lambda: (DeviceFacts("CPU", "", "cpu", free, 2**40),))

    on_cpu = command(files["target"], files["draft"], gpu_layers=0)
    with_free(2**40)
    pair = load_pair(on_cpu, go_on)
    used = sum(each.memory_bytes for each in (pair.description, pair.draft_description) if each is not None)
    pair.close()
    assert pair.target.n_ctx == 4096
    with_free(used)
    pair = load_pair(on_cpu, go_on)
    pair.close()
    assert pair.target.n_ctx == 2048
    assert "The context is 2,048 tokens rather than 4,096, which memory is short for." in pair.notes
    with_free(1000)
    pair = load_pair(on_cpu, go_on)
    pair.close()
    assert any("more than is free: it may be slow" in note for note in pair.notes), "warned, and tried all the same"


def test_a_draft_that_is_larger_than_its_target_is_told(files: dict[str, str]) -> None:
    pair = load_pair(command(files["target"], files["deep"], n_ctx=256), go_on)
    pair.close()
    assert "The draft is larger than its target: drafting cannot pay. Exchange them." in pair.notes
    assert pair.draft is not None


@pytest.mark.parametrize("role", ["target", "draft"])
def test_loading_stops_when_it_is_told_to(files: dict[str, str], role: str) -> None:
    with pytest.raises(Interrupted):
        load_pair(command(files["target"], files["draft"]), lambda model, fraction: model != role)


def test_progress_of_both_models(files: dict[str, str]) -> None:
    told: dict[str, float] = {}

    def on_progress(model: str, fraction: float) -> bool:
        assert fraction >= told.get(model, 0.0)
        told[model] = fraction
        return True

    load_pair(command(files["target"], files["draft"], n_ctx=256), on_progress).close()
    assert told == {"target": 1.0, "draft": 1.0}


def test_devices(engine: LocalEngine) -> None:
    engine.send(Devices())
    found = until_kind(engine, DeviceList)
    assert any(device.kind == "cpu" for device in found.devices)
    assert all(0 < device.free <= device.total for device in found.devices)
    assert found.build
    assert found.system_info


def test_calibration_of_real_models(engine: LocalEngine, files: dict[str, str]) -> None:
    loaded(engine, command(files["target"], files["draft"], n_ctx=512))
    engine.send(Calibrate())
    measured = until_kind(engine, Calibration)
    assert set(measured.pass_seconds) == {*range(1, 10), 12, 16, 17, 24, 32}
    assert 0 < measured.acceptance_by_position[0] <= 1


def test_a_malformed_file_is_told_and_the_engine_lives(engine: LocalEngine, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 200)
    engine.send(Load(str(path)))
    failed = until_kind(engine, Failed)
    assert failed.kind == "ModelFileError"
    assert failed.next_step
