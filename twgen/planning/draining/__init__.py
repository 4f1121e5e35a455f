"""The workflows that hold draining versions, and how they are ended."""
