"""The rules of an API server beyond the types of fields.

They, and their exceptions, come from Kubernetes 1.36 (k8s.io/kubernetes, pkg/apis): core, apps,
autoscaling and policy, the file validation/validation.go of each.
"""
