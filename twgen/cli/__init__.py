"""The command line. It parses options, calls the other packages, and prints text.

Only this package reads the clock and the environment.
"""
