"""What the objects of an API server say of a version, and of Jobs."""
