"""A plan as text, JSON and Markdown."""
