"""Turning a plan into manifests and their text; decides nothing."""
