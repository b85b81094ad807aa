"""What follows from the processor that llama.cpp was built for."""

import os
import subprocess
import sys

import pytest

from specchat.backends.llama_library import system_info
from specchat.backends.processor import TILED_SWITCH, features, has_slow_tiles

ZEN3 = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | LLAMAFILE = 1 | OPENMP = 1 | REPACK = 1 | "
ICE_LAKE = "CPU : AVX = 1 | AVX2 = 1 | AVX512 = 1 | AVX512_VBMI = 1 | AVX512_VNNI = 1 | REPACK = 1 | "
APPLE = "MTL : EMBED_LIBRARY = 1 | CPU : NEON = 1 | ARM_FMA = 1 | DOTPROD = 1 | ACCELERATE = 1 | REPACK = 1 | "


def test_features_are_those_that_are_on():
    assert features("CPU : SSE3 = 1 | AVX2 = 0 | REPACK = 1 | ") == {"SSE3", "REPACK"}


@pytest.mark.parametrize(("info", "slow"), [(ZEN3, True), (ICE_LAKE, False), (APPLE, False), ("", False)])
def test_tiles_are_slow_with_avx2_alone(info, slow):
    assert has_slow_tiles(info) == slow


@pytest.mark.parametrize("chosen", [None, "1"])
def test_llama_cpp_is_told_before_it_computes_unless_a_person_has_told_it(chosen):
    """In a process of its own: llama.cpp reads its environment once."""
    environment = {name: value for name, value in os.environ.items() if name != TILED_SWITCH}
    if chosen is not None:
        environment[TILED_SWITCH] = chosen
    script = (
        "import ctypes, specchat.backends.llama_library as library\n"
        "library.start()\n"
        "find = ctypes.CDLL(None).getenv\n"
        "find.restype = ctypes.c_char_p\n"
        f"print((find(b'{TILED_SWITCH}') or b'unset').decode())\n"
    )
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    by_itself = "0" if has_slow_tiles(system_info()) else "unset"
    assert found.stdout.strip() == (chosen or by_itself)
