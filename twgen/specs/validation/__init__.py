"""The rules of an API server beyond the types of fields.

The rules and their exceptions come from Kubernetes 1.36 (k8s.io/kubernetes, pkg/apis): from the file
validation/validation.go in core, apps, autoscaling and policy.
"""
