"""What llama.cpp says of the processor it was built for, and what follows from it before it computes anything."""

from __future__ import annotations

import re

TILED_SWITCH = "GGML_CPU_TILED_MM"
"""The variable of the environment that llama.cpp reads at its first matrix product: 0 leaves the tiled ones out."""


def features(system_info: str) -> frozenset[str]:
    """The names that are on in llama.cpp's own line: ``… AVX2 = 1 | REPACK = 1 | …``."""
    return frozenset(re.findall(r"(\w+) = 1\b", system_info))


def has_slow_tiles(system_info: str) -> bool:
    """Whether small passes are better off without llama.cpp's tiled matrix products.

    For weights that are not kept in a second order they serve passes of 8 tokens and more, in tiles of 16. Without
    AVX-512 VNNI a tile costs about what 16 single rows cost, however few are filled. Measured on two Zen 3 cores with
    the default pair's target, tiles ÷ no tiles: 8 tokens 1.28 to 1.35, 9 tokens 1.27 to 1.33, 12 and 13 tokens 1.13 to
    1.18, 17 tokens 1.17, 16 tokens and 20 to 64 equal, and a prompt is read in 0.90 to 0.97 of the time. Without them
    passes of all sizes sum alike, so that *exact* may draft as many as it tries, and not 6.
    """
    built_for = features(system_info)
    return "AVX2" in built_for and "AVX512_VNNI" not in built_for
