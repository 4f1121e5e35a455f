"""Which Deployment every version of a worker gets."""
