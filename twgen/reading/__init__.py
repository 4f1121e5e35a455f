"""Reads the input for decisions. A state that cannot be read is an error, and is never treated as empty."""
