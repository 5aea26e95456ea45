"""YAML files to frozen dataclasses: nodes with their places, read by type, every problem told at once."""
