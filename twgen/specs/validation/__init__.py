"""The API server's rules in addition to the types of fields.

The rules and their exceptions are from Kubernetes 1.36: from validation/validation.go in core, apps,
autoscaling and policy of k8s.io/kubernetes/pkg/apis.
"""
