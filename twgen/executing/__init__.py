"""The only package that writes."""
