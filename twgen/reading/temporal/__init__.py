"""What is asked of Temporal, and its answers as values."""
