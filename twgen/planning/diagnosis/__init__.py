"""The problems of an installation, and how to fix each of them."""
