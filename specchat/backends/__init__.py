"""What produces distributions: llama.cpp models, the toy Markov pair, drafters."""
