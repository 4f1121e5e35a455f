"""What holds versions that drain, and what ends it."""
