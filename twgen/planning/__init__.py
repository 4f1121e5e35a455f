"""The decisions: which versions to keep, which traffic to move, and why; knows no YAML, clock or server."""
