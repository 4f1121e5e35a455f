"""Derives facts about versions and Jobs from the objects that an API server returns."""
