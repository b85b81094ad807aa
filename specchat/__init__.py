"""specchat: a terminal chat for local language models that makes speculative decoding visible."""

__version__ = "0.1.0"
