"""One chat's decoder behind one interface: commands in, messages out."""
