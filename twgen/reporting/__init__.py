"""Turns plans, statuses and problems into text for people and programs."""
