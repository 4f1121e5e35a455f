"""Speed, measured beside the tools that people use instead."""
