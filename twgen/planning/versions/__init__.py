"""Decides which Deployment each version of a worker gets."""
