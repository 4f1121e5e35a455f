"""Simulates Temporal, a cluster and the clock. The package is pure: it does no input or output."""
