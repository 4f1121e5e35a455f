"""Runs a real Kubernetes API server with its controllers, and clients for tests."""
