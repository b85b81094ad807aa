"""Which models there are, where their files come from, and which go together."""
