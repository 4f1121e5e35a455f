"""Converts a plan to manifests and text. It makes no decisions."""
