"""Sends requests to Temporal, and converts the answers to values."""
