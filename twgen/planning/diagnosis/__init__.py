"""What of an installation would bite, and what mends it."""
