"""One page for people: a fleet of workers, or a simulated rollout."""
