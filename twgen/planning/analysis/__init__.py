"""Judges a ramping version by its metrics. No state is kept: the measurements can be read again."""
