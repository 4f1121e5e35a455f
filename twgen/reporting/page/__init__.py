"""The HTML page of a fleet of workers, or of a simulated rollout."""
