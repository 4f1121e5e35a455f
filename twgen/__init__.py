"""GitOps for Temporal workers: twgen plans versions, renders Deployments, and moves traffic step by step."""

__version__ = "0.1.0"
