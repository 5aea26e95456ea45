"""Tells, for every site a team crawls, whether it still behaves like its own normal, and why not."""

__version__ = "0.1.0"
