"""What is said of how a pair fits, on machines that are made up; and sizes that are known before a file is here."""

from dataclasses import replace

import pytest

from specchat.backends.gguf_header import read_header
from specchat.backends.gguf_memory import estimate
from specchat.errors import UsageError
from specchat.pairs.catalog import load_catalog
from specchat.pairs.memory import fits
from specchat.pairs.unfetched import header_of
from tests.gguf_writer import write_tiny_model
from tests.pairs.machines import GIB, machine


def headers(key):
    pair = load_catalog().pair(key)
    return [header_of(model.network, model.file, model.size) for model in (pair.target, pair.draft)]


class TestVerdicts:
    def test_the_sum_has_both_models_with_both_caches(self):
        target, draft = headers("qwen2_5-7b")
        fit = fits(target, draft, machine(32, 24))
        assert fit.verdict == "fits the GPU"
        sizes = {(part.what, part.where): part.size for part in fit.parts}
        assert sizes["target: cache", "GPU"] == 28 * 2 * 4 * 128 * 2 * 8192
        assert sizes["draft: cache", "GPU"] == 24 * 2 * 2 * 64 * 2 * 8192
        assert sizes["target: weights", "GPU"] > 0.85 * target.file_bytes
        assert sizes["draft: weights", "GPU"] > 0.7 * draft.file_bytes
        assert [part.size for part in fit.parts] == sorted(sizes.values(), reverse=True)
        assert fit.needed == sum(sizes.values())
        assert {use.name: use.free for use in fit.devices} == {"CUDA0": 24 * GIB, "RAM": 32 * GIB}
        assert sum(use.needed for use in fit.devices) == fit.needed
        assert (fit.n_ctx, fit.target_layers, fit.advice, fit.notes) == (8192, (29, 29), (), ())

    def test_without_a_gpu_it_fits_in_memory_or_not(self):
        target, draft = headers("qwen2_5-7b")
        assert fits(target, draft, machine(16)).verdict == "fits in memory"
        fit = fits(target, draft, machine(4))
        assert fit.verdict == "does not fit"
        assert "4.1 GB can be used" in fit.advice[-1]

    def test_a_shorter_context_or_no_draft_is_advised_where_that_helps(self):
        target, draft = headers("llama3_1-8b")
        fit = fits(target, draft, machine(32, 7), n_ctx=32768)
        assert fit.verdict == "partly on the GPU"
        assert fit.advice[0] == "With a context of 8,192 tokens it fits the GPU (--ctx 8192)."
        assert fits(target, draft, machine(32, 7), n_ctx=8192).verdict == "fits the GPU"
        fit = fits(target, draft, machine(32, 6.2), n_ctx=8192)
        assert any("Without the draft it fits the GPU: --draft ngram" in sentence for sentence in fit.advice)

    def test_layers_that_were_asked_for_and_do_not_help(self):
        target, draft = headers("qwen2_5-7b")
        fit = fits(target, draft, machine(32, 24), gpu_layers=10)
        assert (fit.verdict, fit.target_layers) == ("partly on the GPU", (10, 29))
        assert "With --gpu-layers auto it fits the GPU." in fit.advice

    def test_devices_that_were_chosen_are_reckoned_with(self):
        target, draft = headers("qwen2_5-7b")
        two = machine(32, 24, 4)
        small = fits(target, draft, replace(two, device="CUDA1"))
        assert small.verdict == "partly on the GPU"
        assert {use.name for use in small.devices} == {"CUDA1", "RAM"}
        assert fits(target, draft, replace(two, device="cpu")).verdict == "fits in memory"
        split = fits(target, draft, replace(two, device="CUDA0", draft_device="CUDA1"))
        assert split.verdict == "fits the GPU"
        needed = {use.name: use.needed for use in split.devices}
        parts = {who: sum(part.size for part in split.parts if part.what.startswith(who) and part.where == "GPU")
                 for who in ("target", "draft")}  # fmt: skip
        assert (needed["CUDA0"], needed["CUDA1"]) == (parts["target"], parts["draft"])
        with pytest.raises(UsageError, match="no device 'CUDA7'"):
            replace(two, draft_device="CUDA7")

    def test_a_target_that_is_too_large_says_how_much_would_do(self):
        fit = fits(*headers("qwen2_5-32b"), machine(32, 8))
        assert fit.verdict == "partly on the GPU"
        assert "All of the target takes 21.7 GB of the GPU, and 8.0 GB can be used" in fit.advice[-1]
        assert any("layers fit the GPU" in note for note in fit.notes)

    def test_layers_are_spread_over_gpus_by_what_is_free(self):
        fit = fits(*headers("qwen2_5-14b"), machine(32, 6, 12))
        assert fit.verdict == "fits the GPU"
        small, large, _ = fit.devices
        assert (small.name, large.name) == ("CUDA0", "CUDA1")
        assert large.needed == pytest.approx(2 * small.needed, rel=0.01)
        assert small.needed < small.free

    def test_a_pair_of_one_model_counts_its_weights_once(self, tmp_path):
        header = read_header(write_tiny_model(tmp_path / "x.gguf", n_embd=256, n_vocab=4000))
        once, twice = fits(header, None, machine()), fits(header, header, machine())
        weights = [sum(p.size for p in fit.parts if "weights" in p.what) for fit in (once, twice)]
        assert weights == [header.tensor_bytes] * 2

    @pytest.mark.parametrize("pair", [pair for pair in load_catalog().all_pairs() if pair.pair.gpu_memory_gb])
    def test_every_pair_fits_the_class_of_gpu_that_it_is_for(self, pair):
        """With the 6% that a driver and a screen take of it."""
        fit = fits(*headers(pair.key), machine(64, pair.pair.gpu_memory_gb * 0.94))
        assert (fit.verdict, fit.n_ctx) == ("fits the GPU", 8192)


class TestBeforeTheFileIsHere:
    @pytest.mark.parametrize("model", load_catalog().models.values(), ids=lambda model: model.key)
    def test_sizes_of_networks_agree_with_sizes_of_files(self, model):
        """Bits a weight, vocabulary and norms included: Q8_0 stores 8.5, Q4_K_M some 4.9, small models more."""
        bits = model.size * 8 / model.network.n_params
        lowest, highest = (8.5, 8.7) if "q8_0" in model.file.lower() else (4.8, 6.5)
        assert lowest < bits < highest

    @pytest.mark.model
    def test_as_good_as_the_file_itself(self, smollm2_path):
        self.check("smollm2-135m", smollm2_path)

    @pytest.mark.pair
    def test_as_good_as_the_files_themselves(self, qwen_pair_paths):
        for key, path in zip(("qwen2_5-coder-1_5b", "qwen2_5-coder-0_5b"), qwen_pair_paths, strict=True):
            self.check(key, path)

    def check(self, key, path):
        model, header = load_catalog().models[key], read_header(path)
        outline = header_of(model.network, model.file, model.size)
        for n_ctx in (2048, 8192):
            for layers in (0, 5, 99):
                known = estimate(header, n_ctx, gpu_layers=layers)
                guessed = estimate(outline, n_ctx, gpu_layers=layers)
                assert guessed.whole.kv_cache == known.whole.kv_cache
                assert guessed.whole.compute == known.whole.compute
                # layers are taken to be alike, and the output like the embedding; real files mix types
                assert guessed.whole.total == pytest.approx(known.whole.total, rel=0.06)
                assert guessed.gpu.total == pytest.approx(known.gpu.total, rel=0.15)

    def test_where_only_the_size_is_known_it_is_reckoned_roughly(self):
        header = header_of(None, "x.gguf", 5 * GIB)
        assert fits(header, None, machine(8), is_rough=True).verdict == "fits in memory"
        assert fits(header, None, machine(6), is_rough=True).verdict == "does not fit"
        assert fits(header, None, machine(6, 8), is_rough=True).verdict == "fits the GPU"
