"""Where a pair goes, on machines that are made up: the target first, then the draft, then the context."""

from dataclasses import dataclass, replace

import pytest

from specchat.backends.gguf_header import read_header
from specchat.backends.gguf_memory import Memory, ModelMemory, estimate
from specchat.backends.placement import (
    Wish,
    draft_pays,
    layers_that_fit,
    offload_devices,
    place,
    ram_room,
    room_on,
    shares_ram,
)
from tests.gguf_writer import write_tiny_model

GIB = 2**30
DRIVER = 128 * 2**20


@dataclass(frozen=True)
class Device:
    name: str
    kind: str
    free: int


CPU = Device("CPU", "cpu", 64 * GIB)


def gpu(room, name="CUDA0"):
    """A GPU of which ``room`` bytes can be used."""
    return Device(name, "gpu", int((room + DRIVER) / 0.95) + 2)


def enlarged(header, factor):
    """A header whose tensors are so many times as large: placing looks at sizes only."""
    tensors = tuple(replace(tensor, n_bytes=tensor.n_bytes * factor) for tensor in header.tensors)
    return replace(header, tensors=tensors)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return enlarged(read_header(write_tiny_model(folder / "target.gguf", n_layers=6, n_ctx_train=32768)), 1000)


@pytest.fixture(scope="module")
def draft(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return enlarged(read_header(write_tiny_model(folder / "draft.gguf", n_layers=2, n_ctx_train=32768)), 300)


def whole(header, n_ctx, **options):
    return estimate(header, n_ctx, gpu_layers=(header.n_layers or 0) + 1, **options).gpu.needed


def test_both_on_a_gpu_with_room(target, draft):
    placed = place(target, draft, [CPU, gpu(whole(target, 8192) + whole(draft, 8192))])
    assert (placed.n_ctx, placed.target.gpu_layers, placed.draft.gpu_layers) == (8192, 7, 3)
    assert placed.fits
    assert placed.notes == ()


def test_a_context_that_nobody_asked_for_gives_way_to_the_draft(target, draft):
    device = gpu(whole(target, 4096) + whole(draft, 4096))
    placed = place(target, draft, [CPU, device])
    assert (placed.n_ctx, placed.target.gpu_layers, placed.draft.gpu_layers) == (4096, 7, 3)
    assert "4,096 tokens rather than 8,192" in placed.notes[0]


def test_the_draft_gives_way_to_a_context_that_was_asked_for(target, draft):
    device = gpu(whole(target, 8192) + whole(draft, 4096))
    placed = place(target, draft, [CPU, device], Wish(n_ctx=8192))
    assert (placed.n_ctx, placed.target.gpu_layers) == (8192, 7)
    assert placed.draft is None
    assert "on the CPU it would cost more" in placed.notes[0]
    assert "--ctx" in placed.notes[0]


def test_a_draft_that_is_small_enough_pays_on_the_cpu(target, draft):
    tiny = enlarged(draft, 1)
    small = replace(tiny, tensors=tuple(replace(t, n_bytes=t.n_bytes // 50) for t in tiny.tensors))
    placed = place(target, small, [CPU, gpu(whole(target, 8192))], Wish(n_ctx=8192))
    assert (placed.target.gpu_layers, placed.draft.gpu_layers) == (7, 0)
    assert "stays on the CPU; it should still pay" in placed.notes[0]


def test_the_target_comes_first_also_in_part(target, draft):
    """Memory that would hold the draft goes to layers of the target."""
    some = estimate(target, 8192, gpu_layers=4).gpu.needed
    assert some > whole(draft, 8192)
    placed = place(target, draft, [CPU, gpu(some)])
    assert placed.target.gpu_layers == 4
    assert placed.draft is None
    assert "4 of the target's 7 layers" in placed.notes[0]
    assert "A smaller target makes room" in placed.notes[1]


def test_no_gpu_or_none_wanted(target, draft):
    for devices, wish in (([CPU], Wish()), ([CPU, gpu(64 * GIB)], Wish(gpu_layers=0))):
        placed = place(target, draft, devices, wish)
        assert (placed.target.gpu_layers, placed.draft.gpu_layers, placed.notes) == (0, 0, ())
        assert placed.gpu == Memory()
        assert placed.fits


def test_a_gpu_without_room_for_a_layer(target, draft):
    placed = place(target, draft, [CPU, gpu(0)])
    assert placed.target.gpu_layers == placed.draft.gpu_layers == 0
    assert "no room for a layer" in placed.notes[0]


def test_layers_that_were_asked_for_are_tried(target, draft):
    placed = place(target, draft, [CPU, gpu(0)], Wish(gpu_layers=3))
    assert placed.target.gpu_layers == 3
    assert place(target, None, [CPU, gpu(0)], Wish(gpu_layers=99)).target.gpu_layers == 7


def test_ram_that_is_short_makes_the_context_smaller_and_then_warns(target, draft):
    both = place(target, draft, [CPU]).cpu.needed
    short = replace(CPU, free=int(both / 0.95) - 2**20)
    placed = place(target, draft, [short])
    assert placed.n_ctx == 4096
    assert placed.fits
    assert not place(target, draft, [short], Wish(n_ctx=8192)).fits
    hopeless = place(target, draft, [replace(CPU, free=1000)])
    assert (hopeless.fits, hopeless.n_ctx) == (False, 8192)


def test_a_second_copy_of_weights_does_not_have_to_fit(target):
    """The mapped file may go out of memory again, so that it is no reason to say that a model does not fit."""
    wish = Wish(n_ctx=2048, repacked=frozenset({"Q8_0"}))
    placed = place(target, None, [CPU], wish)
    assert placed.cpu.repacked > 0.8 * placed.cpu.weights
    tight = replace(CPU, free=int(placed.cpu.needed / 0.95) + 2)
    assert place(target, None, [tight], wish).fits


def test_what_lies_on_a_built_in_gpu_lies_in_ram(target, draft):
    built_in = Device("Vulkan0", "igpu", 64 * GIB)
    placed = place(target, draft, [CPU, built_in])
    assert placed.target.gpu_layers == 7
    assert placed.in_ram == placed.cpu.needed + placed.gpu.needed
    enough = int(placed.in_ram / 0.95) + 2
    assert place(target, draft, [replace(CPU, free=enough), built_in]).fits
    assert not place(target, draft, [replace(CPU, free=enough // 2), built_in]).fits
    assert place(target, draft, [replace(CPU, free=enough // 2), gpu(64 * GIB)]).fits
    assert shares_ram(Device("MTL0", "gpu", 1))


def test_a_draft_on_a_device_of_its_own(target, draft):
    first, second = gpu(whole(target, 8192)), gpu(whole(draft, 8192), "CUDA1")
    placed = place(target, draft, [CPU, first], draft_devices=[CPU, second])
    assert (placed.n_ctx, placed.target.gpu_layers, placed.draft.gpu_layers) == (8192, 7, 3)
    placed = place(target, draft, [CPU], draft_devices=[CPU, second])
    assert (placed.target.gpu_layers, placed.draft.gpu_layers) == (0, 3)
    placed = place(target, draft, [CPU, first], draft_devices=[CPU])
    assert placed.draft is not None
    assert (placed.target.gpu_layers, placed.draft.gpu_layers, placed.notes) == (7, 0, ()), "as it was asked for"
    placed = place(target, draft, [CPU, first], Wish(n_ctx=8192), draft_devices=[CPU, gpu(0)])
    assert placed.draft is None
    assert "its GPU" in placed.notes[0]


def test_a_model_that_drafts_for_itself_needs_no_second_copy(target):
    own = whole(target, 8192) + whole(target, 8192, has_own_weights=False)
    placed = place(target, target, [CPU, gpu(own)], Wish(draft_shares_weights=True))
    assert (placed.target.gpu_layers, placed.draft.gpu_layers) == (7, 7)
    assert placed.draft.gpu.weights == 0
    placed = place(target, target, [CPU, gpu(own - 1000)], Wish(n_ctx=8192, draft_shares_weights=True))
    assert placed.draft is None


def test_a_context_is_not_larger_than_what_the_model_was_trained_on(target, draft):
    short = replace(target, metadata={**target.metadata, "llama.context_length": 2048})
    assert place(short, draft, [CPU]).n_ctx == 2048
    assert place(short, draft, [CPU], Wish(n_ctx=4096)).n_ctx == 2048


def test_layers_that_fit(target):
    for layers in range(1, 8):
        needed = estimate(target, 4096, gpu_layers=layers).gpu.needed
        assert layers_that_fit(target, needed, 4096) == layers
        assert layers_that_fit(target, needed - 1, 4096) == layers - 1
    assert layers_that_fit(target, 0, 4096) == 0
    two = estimate(target, 4096, gpu_layers=7).gpu
    assert layers_that_fit(target, two.needed, 4096, n_devices=2) < 7
    assert layers_that_fit(target, two.needed + two.compute, 4096, n_devices=2) == 7


def test_free_memory_is_that_of_what_llama_cpp_uses():
    built_in = Device("Vulkan0", "igpu", 20)
    cards = [Device(f"CUDA{number}", "gpu", GIB) for number in range(2)]
    assert offload_devices([CPU]) == []
    assert offload_devices([CPU, built_in]) == [built_in]
    assert offload_devices([CPU, built_in, *cards]) == cards
    assert room_on(cards) == 2 * (int(GIB * 0.95) - DRIVER)
    assert room_on([built_in]) == 0
    assert ram_room(cards) is None
    assert ram_room([*cards, CPU]) == int(CPU.free * 0.95)


def test_when_a_draft_on_the_cpu_pays():
    """With α = 0.7 and passes that cost nothing more: (1 + 0.7)/(1 + c) ≥ 1.1 up to c = 0.545, at γ = 1."""
    target = ModelMemory(9, Memory(weights=8000), Memory())
    assert draft_pays(target, ModelMemory(0, Memory(), Memory(weights=540)))
    assert not draft_pays(target, ModelMemory(0, Memory(), Memory(weights=550)))
    assert draft_pays(target, ModelMemory(2, Memory(weights=4000), Memory()))
    assert not draft_pays(
        ModelMemory(0, Memory(), Memory(weights=1000)), ModelMemory(2, Memory(weights=8000), Memory())
    )
