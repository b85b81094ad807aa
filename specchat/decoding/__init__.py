"""The decoding loop, and what turns messages into tokens and tokens into text."""
