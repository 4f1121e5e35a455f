"""Judges a ramping version by its metrics. It keeps no state: all measurements can be read again."""
