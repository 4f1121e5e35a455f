"""A real Kubernetes API server with its controllers, and how tests talk to it."""
