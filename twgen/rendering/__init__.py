"""Converts a plan to manifests and text. This package makes no decisions."""
