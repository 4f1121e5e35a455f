"""Sends requests to Temporal, and converts the responses to values."""
