"""Experiments on a pair: benchmarks and proofs of losslessness."""
