"""Read YAML and JSON by the rules of Kubernetes, and write YAML that every parser reads the same way."""
