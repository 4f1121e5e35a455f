"""Simulates Temporal, a cluster and the clock. Pure: it reads and renders nothing."""
