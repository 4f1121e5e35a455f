"""The requests to Temporal, and its answers as values."""
