"""Read YAML and JSON as Kubernetes does, and write YAML that every parser reads the same way."""
