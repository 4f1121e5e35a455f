"""Simulates Temporal, a cluster and the clock. It is pure: it reads and renders nothing."""
