"""Reading YAML and JSON as Kubernetes reads them, and writing YAML that every reader reads the same way."""
