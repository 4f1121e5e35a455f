"""A simulation as text, JSON and a picture."""
