"""The stable words for why, of each row of both tables and what else decides, for programs and metrics.

Below each stands when it fits, and then what a person has to do.
"""
