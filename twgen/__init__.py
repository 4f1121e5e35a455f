"""GitOps manifests for Temporal workers: plans versions, renders Deployments, moves traffic step by step."""

__version__ = "0.1.0"
