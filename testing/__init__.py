"""Starts real servers and workers for tests and demos. twgen itself never imports this package."""
