"""Connections to servers. No other package handles credentials."""
