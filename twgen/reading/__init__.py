"""Reads the input for decisions. A state that cannot be read is an error. It never counts as empty."""
