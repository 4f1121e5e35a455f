"""The workflows that hold draining versions, and the ways to end them."""
